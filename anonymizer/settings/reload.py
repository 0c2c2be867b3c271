"""Reload: the settings that may change while the gateway runs, and how a new file is applied."""

from typing import Any, NamedTuple

from anonymizer.settings.base import Group
from anonymizer.settings.model import Settings
from anonymizer.settings.toml_file import validated

CHANGEABLE = frozenset(
    {
        "adka.density_steps",
        "adka.k_values",
        "limits.max_device_id_chars",
        "limits.max_payload_bytes",
        "limits.max_positions",
        "log.level",
        "output.rejected_every_s",
        "presence.max_ahead_s",
        "presence.max_behind_s",
        "region.k_extra",
        "tick.queue_limit",
        "watch.sample",
    }
)
"""Keys that take effect with the next message, tick or group. None of them is a secret.

All others belong to running parts (connections, the graph without zones, groups and their
pseudonyms) or to what consumers rely on (topics, message forms, the floor of k).
"""


class Change(NamedTuple):
    """Result of a reload.

    Attributes
    ----------
    settings
        The running settings, updated with those that may change.
    changed
        Old and new value of each updated key.
    waiting
        Changed keys that need a restart.
    """

    settings: Settings
    changed: dict[str, tuple[Any, Any]]
    waiting: list[str]


def change(running: Settings, wanted: Settings) -> Change:
    """Return the running settings, updated where they may change to the wanted ones.

    Raises
    ------
    SettingsError
        If the updated keys do not fit those that need a restart.
    """
    changed: dict[str, tuple[Any, Any]] = {}
    waiting: list[str] = []
    tables: dict[str, Any] = {}
    for name in Settings.model_fields:
        old, new = getattr(running, name), getattr(wanted, name)
        tables[name] = old
        if old == new:
            continue
        if not isinstance(old, Group):
            waiting.append(name)
            continue
        kept = old.model_dump()
        for key in type(old).model_fields:
            was, will_be = getattr(old, key), getattr(new, key)
            if was == will_be:
                continue
            if f"{name}.{key}" in CHANGEABLE:
                changed[f"{name}.{key}"] = was, will_be
                kept[key] = will_be
            else:
                waiting.append(f"{name}.{key}")
        tables[name] = kept
    return Change(validated(tables, "with what needs a restart"), changed, waiting)
