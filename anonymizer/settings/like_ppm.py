"""Settings that take the place of the US DOT's privacy protection module (PPM): `init --like ppm`.

References
----------
.. [1] https://github.com/usdot-jpo-ode/jpo-cvdp, config/ppmBsm.properties, docs/configuration.md.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from anonymizer.errors import SettingsError

_SHIPPED: Mapping[str, str] = {
    "privacy.topic.consumer": "topic.OdeBsmJson",
    "privacy.topic.producer": "topic.FilteredOdeBsmJson",
    "group.id": "PPM_BSM",
    "metadata.broker.list": "127.0.0.1:9092",
    "privacy.filter.velocity": "ON",
    "privacy.filter.velocity.min": "2.235",
    "privacy.filter.velocity.max": "35.763",
    "privacy.filter.geofence": "ON",
    "privacy.filter.geofence.mapfile": "CO-Motorways.edges",
}
"""What the settings that it comes with say, but for the addresses."""
_HALF_WIDTH_M = 11.0
"""Of a motorway, which it takes to be 22 m wide; `geofence.extension` lengthens its parts."""
_SPEED = "privacy.filter.velocity"
_FENCE = "privacy.filter.geofence"

_TEXT = """\
## Settings in place of the privacy protection module (jpo-cvdp) of the US DOT: its topics and its
## filters, and k besides. `anonymizer check --config FILE` checks them; the manual's recipes say
## line by line what is different.

[network]
{source}
{limit}

[kafka]
servers = {servers}  # metadata.broker.list
group = {group}  # group.id

[[inputs]]
topic = {consumer}  # privacy.topic.consumer
codec = "j2735"
device_from = "payload"
{speeds}echo = {producer}  # privacy.topic.producer

[output]
topic = "kafka:topic.CloakedPositions"  # new: groups and their regions

[adka]
k_floor = 5
"""


def settings_like_ppm(properties: Path | None, *, network: str | None = None) -> str:
    """Return a settings file.

    Parameters
    ----------
    properties
        The module's own settings. None: those that it comes with.
    network
        Used in place of its map.

    Raises
    ------
    SettingsError
        If the file cannot be used, or names no map.
    """
    stated = dict(_SHIPPED) if properties is None else _read(properties)
    fenced = stated.get(_FENCE) == "ON"
    source = network or (stated.get(f"{_FENCE}.mapfile") if fenced else None)
    if source is None:
        raise SettingsError("--network: is needed, because the properties state no map of roads")
    beside = f"  # {_FENCE}.mapfile: positions off its roads are left out" if fenced else ""
    speeds = ""
    if stated.get(_SPEED) == "ON":
        lo, hi = _number(stated, f"{_SPEED}.min", 0.0), _number(stated, f"{_SPEED}.max", 163.8)
        speeds = f"within = {{ speed_mps = [{lo}, {hi}] }}  # {_SPEED}.min and .max\n"
    return _TEXT.format(
        source=f"source = {json.dumps(source)}{beside}",
        limit=f"snap_limit_m = {_HALF_WIDTH_M}  # half the width that it gives a motorway"
        if fenced
        else "# snap_limit_m = 100.0",
        servers=_text(stated, "metadata.broker.list"),
        group=_text(stated, "group.id"),
        consumer=_text(stated, "privacy.topic.consumer", "kafka:"),
        speeds=speeds,
        producer=_text(stated, "privacy.topic.producer"),
    )


def _read(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise SettingsError(f"--like: {path}: cannot be read") from None
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, value in pairs}


def _text(stated: Mapping[str, str], key: str, before: str = "") -> str:
    if key not in stated:
        raise SettingsError(f"--like: the properties lack {key}")
    return json.dumps(before + stated[key])


def _number(stated: Mapping[str, str], key: str, default: float) -> float:
    try:
        return float(stated.get(key, default))
    except ValueError:
        raise SettingsError(f"--like: {key} is no number") from None
