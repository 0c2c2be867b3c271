"""GeoJSON (RFC 7946): points, lines with times of their corners, and areas by their middle."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from anonymizer.audit.foreign.readers.reader import FileKind, frame_of, json_of
from anonymizer.errors import InputError

_TIMES = ("coordTimes", "coordinateProperties", "times", "timestamps")
"""Properties that list a time for each corner of a line, as converters of GPX write them."""


def read(path: Path) -> pl.DataFrame:
    """Return a row for each point, corner of a line or area, with the properties of its feature."""
    found = json_of(path)
    features = found.get("features", [found]) if isinstance(found, dict) else found
    try:
        rows = [row for number, each in enumerate(features) for row in _rows(each, number)]
    except (TypeError, ValueError, KeyError, AttributeError, IndexError):
        raise InputError(f"{path}: a feature is none of GeoJSON") from None
    return frame_of(rows)


def _rows(feature: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    geometry, stated = feature.get("geometry") or {}, dict(feature.get("properties") or {})
    times = next((stated.pop(name) for name in _TIMES if name in stated), None)
    if isinstance(times, dict):
        times = times.get("times")
    if "id" in feature:
        stated.setdefault("id", feature["id"])
    corners = _corners(geometry)
    if geometry.get("type") in {"Polygon", "MultiPolygon"} and corners:
        corners = [[sum(each[i] for each in corners) / len(corners) for i in (0, 1)]]
    if len(corners) > 1:
        stated["_track"] = str(number)
    flat = _flat(times)
    for i, (lon, lat, *_) in enumerate(corners):
        at = {"time": flat[i]} if len(flat) == len(corners) else {}
        yield {**stated, **at, "lat": float(lat), "lon": float(lon)}


def _corners(geometry: dict[str, Any]) -> list[list[float]]:
    found: list[list[float]] = []
    pending = [geometry.get("coordinates", [])]
    while pending:
        part = pending.pop()
        if part and isinstance(part[0], int | float):
            found.append(part)
        else:
            pending += reversed(part)
    return found


def _flat(times: Any) -> list[Any]:  # noqa: ANN401  of JSON
    if not isinstance(times, list):
        return []
    return [at for each in times for at in (each if isinstance(each, list) else [each])]


def _recognizes(path: Path, head: bytes) -> bool:
    return path.suffix.lower() == ".geojson" or (
        b'"type"' in head and (b'"FeatureCollection"' in head or b'"Feature"' in head)
    )


READER = FileKind("GeoJSON", _recognizes, read)
