"""Reload: a new settings file is applied whole while the gateway runs, or not at all.

Only keys marked `Reloadable` may change, none of them to where it protects less. A file that was
cut off therefore changes nothing.
"""

from typing import Any, NamedTuple

from anonymizer.errors import SettingsError
from anonymizer.settings.base import Group, Reloadable
from anonymizer.settings.model import Settings


class Change(NamedTuple):
    """Result of a reload."""

    settings: Settings
    """The wanted settings."""
    changed: dict[str, tuple[Any, Any]]
    """Old and new value of each key that differs. None of them is a secret."""


def change(running: Settings, wanted: Settings) -> Change:
    """Return the running settings with the changes of a new file.

    Raises `SettingsError` if a restart is needed: one line names the keys, never a value.
    """
    tables: dict[str, Group] = {}
    changed: dict[str, tuple[Any, Any]] = {}
    refused: dict[str, list[str]] = {}
    for name in Settings.model_fields:
        old, new = getattr(running, name), getattr(wanted, name)
        if not isinstance(old, Group):
            if old != new:
                refused.setdefault(_FIXED, []).append(name)
            continue
        values: dict[str, Any] = {}
        for key in type(old).model_fields:
            is_stated = [key in each.model_fields_set for each in (old, new)]
            means_more = f"{name}.{key}" in _MEAN_MORE and len({*is_stated}) > 1
            if getattr(old, key) == getattr(new, key) and not means_more:
                continue
            problem = _problem(old, new, key)
            if problem:
                refused.setdefault(problem, []).append(f"{name}.{key}")
            values[key] = getattr(new, key)
            changed[f"{name}.{key}"] = getattr(old, key), values[key]
        if values:
            # The other keys stay as they were stated, or left out, at the start.
            tables[name] = old.model_copy(update=values)
    if refused:
        reasons = [f"{', '.join(keys)}: {problem}" for problem, keys in refused.items()]
        raise SettingsError(f"{'; '.join(reasons)}. Nothing has changed; a restart applies it all")
    return Change(running.model_copy(update=tables), changed)


def mark_of(table: type[Group], key: str) -> Reloadable | None:
    """Return the mark of a key that may change; None: a change needs a restart."""
    marks = [each for each in table.model_fields[key].metadata if isinstance(each, Reloadable)]
    return marks[0] if marks else None


_MEAN_MORE = {"presence.ttl_s", "session.epoch_s"}
"""Left out, these mean something else than their default: see `Settings.follows_intervals`."""
_FIXED = "cannot change while the gateway runs"
_WEAKER = "would protect less than what runs"
_MISSING = "no longer stated, as in a file that was cut off"


def _problem(old: Group, new: Group, key: str) -> str:
    """Return why a key that differs must not change; empty: it may."""
    mark = mark_of(type(old), key)
    if mark is None:
        return _FIXED
    if mark.weakens(old, new, key):
        return _WEAKER
    return "" if key in new.model_fields_set else _MISSING
