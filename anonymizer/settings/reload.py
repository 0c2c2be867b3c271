"""Which settings may change while the gateway runs, and what a changed file comes to."""

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
"""Keys that hold from the next message, tick or group on. None of them is a secret.

Everything else is part of what runs (connections, the graph that zones are cut out of, groups and
their pseudonyms) or of what was promised to consumers (topics, forms, the floor of k).
"""


class Change(NamedTuple):
    """What a changed file comes to.

    Attributes
    ----------
    settings
        The running ones, with what may change as it is wanted.
    changed
        Old and new value of each key that changes.
    waiting
        Keys that need a restart.
    """

    settings: Settings
    changed: dict[str, tuple[Any, Any]]
    waiting: list[str]


def change(running: Settings, wanted: Settings) -> Change:
    """Return what becomes of the running settings when others are wanted.

    Raises
    ------
    SettingsError
        If what may change does not fit what may not.
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
