"""Snapshots of public feeds: GTFS-realtime as protocol buffers or JSON, and GBFS."""

from math import nan
from pathlib import Path
from typing import Any

import polars as pl

from anonymizer.audit.foreign.readers.reader import FileKind, check_size, frame_of, json_of
from anonymizer.codecs import gtfs_rt, gtfs_rt_json
from anonymizer.domain.fixes import Fix
from anonymizer.errors import InputError

_LISTS = ("bikes", "vehicles")
"""Of GBFS 1 and 2, and of 3."""


def read_gtfs(path: Path) -> pl.DataFrame:
    """Return the vehicles of a feed that state a place."""
    check_size(path)
    data = path.read_bytes()
    is_json = data.lstrip()[:1] == b"{"
    found = (gtfs_rt_json if is_json else gtfs_rt).decode(data)
    fixes = [each for each in found if isinstance(each, Fix)]
    if not fixes:
        raise InputError(f"{path}: no vehicle states a place")
    return pl.DataFrame(
        {
            "id": [each.device for each in fixes],
            "time": [nan if each.ts is None else each.ts for each in fixes],
            "lat": [each.lat for each in fixes],
            "lon": [each.lon for each in fixes],
        }
    )


def read_gbfs(path: Path) -> pl.DataFrame:
    """Return the vehicles of a snapshot; one without a time of its own has that of the feed."""
    found = json_of(path)
    try:
        listed = next(found["data"][name] for name in _LISTS if name in found["data"])
        rows = [_vehicle(each, found.get("last_updated")) for each in listed]
    except (KeyError, TypeError, StopIteration):
        raise InputError(f"{path}: lists no vehicles as GBFS does") from None
    return frame_of(rows)


def _vehicle(stated: dict[str, Any], updated: Any) -> dict[str, Any]:  # noqa: ANN401  of JSON
    return {
        "id": stated.get("vehicle_id", stated.get("bike_id")),
        "time": stated.get("last_reported", updated),
        "lat": stated.get("lat"),
        "lon": stated.get("lon"),
    }


def _is_gtfs(path: Path, head: bytes) -> bool:
    if path.suffix.lower() in {".pb", ".pbf", ".protobuf"}:
        return True
    return head.lstrip()[:1] == b"{" and b'"entity"' in head and b'"vehicle' in head


def _is_gbfs(_path: Path, head: bytes) -> bool:
    return b'"data"' in head and any(f'"{name}"'.encode() in head for name in _LISTS)


GTFS = FileKind("GTFS-realtime", _is_gtfs, read_gtfs)
GBFS = FileKind("GBFS", _is_gbfs, read_gbfs)
