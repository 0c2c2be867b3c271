"""Plug-ins: codecs and cloaks of other distributions, found by their entry points.

A distribution names them in its pyproject.toml:

    [project.entry-points."anonymizer.codecs"]
    acme = "acme_gateway:decode"

Whoever installs a distribution trusts its code; only what the settings name is imported.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from anonymizer.errors import SettingsError

CODECS = "anonymizer.codecs"
"""Group of codecs: functions from a payload to its positions, see `anonymizer.codecs`."""
CLOAKS = "anonymizer.cloaks"
"""Group of cloaks: functions from a network and the settings to a `Cloak`."""


def plugin_names(group: str) -> list[str]:
    """Return the names of the installed plug-ins of a group, sorted."""
    return sorted({each.name for each in entry_points(group=group)})


def load_plugin(group: str, name: str) -> Any:  # noqa: ANN401  whatever the entry point names
    """Import a plug-in.

    Raises `SettingsError` if there is none of this name, if several distributions have one, or if
    it cannot be imported.
    """
    found = {
        (each.value, _distribution(each)): each for each in entry_points(group=group, name=name)
    }
    if not found:
        raise SettingsError(f"{name}: no plug-in of this name is installed")
    if len(found) > 1:
        owners = ", ".join(sorted(owner for _, owner in found))
        raise SettingsError(f"{name}: several distributions have a plug-in of this name: {owners}")
    [(_, owner)] = found
    try:
        return found.popitem()[1].load()
    except Exception as error:  # noqa: BLE001  an import runs code of others, which may raise anything
        problem = f"{type(error).__name__}: {error}"
        raise SettingsError(f"{name}: the plug-in of {owner} cannot be loaded: {problem}") from None


def _distribution(entry: EntryPoint) -> str:
    return "an unknown distribution" if entry.dist is None else entry.dist.name
