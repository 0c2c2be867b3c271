"""Columns and geometries as a GeoJSON FeatureCollection."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np


def feature_collection(columns: Mapping[str, Any], geometry: Sequence[Mapping[str, Any]]) -> bytes:
    """Return a feature for each row, on a line of its own.

    Parameters
    ----------
    columns
        Arrays or lists by the name of the property, each of shape (rows,). Times are ISO 8601, a
        NaN is null.
    geometry
        Of each row.
    """
    rows = zip(geometry, *map(as_json, columns.values()), strict=True)
    encode = msgspec.json.Encoder().encode
    features = [
        encode(
            {
                "type": "Feature",
                "geometry": where,
                "properties": dict(zip(columns, row, strict=True)),
            }
        )
        for where, *row in rows
    ]
    return b'{"type":"FeatureCollection","features":[\n' + b",\n".join(features) + b"\n]}\n"


def as_json(column: Any) -> list[Any]:  # noqa: ANN401  an array or a list
    """Return the values of a column as JSON has them."""
    if not isinstance(column, np.ndarray):
        return list(column)
    if column.dtype.kind != "M":
        values: list[Any] = column.tolist()
        return values
    moments: list[datetime | None] = column.astype("datetime64[ms]").tolist()
    return [None if at is None else at.replace(tzinfo=UTC).isoformat() for at in moments]
