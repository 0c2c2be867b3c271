"""What is published of the quasi-identifiers of classes, as JSON.

The last look at generalized values: from the records and what is told of classes alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anonymizer.algorithms.records.classes import Classes
from anonymizer.algorithms.records.generalization import (
    MISSING,
    Node,
    Range,
    Value,
    Values,
    generalize,
)
from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Attribute, Records
from anonymizer.pipeline.records.declaration import Stream


def cost_of(stream: Stream) -> Cost:
    """Return the information loss that a stream is to keep low."""
    return Cost[stream.settings.cost.upper()]


def generalized(stream: Stream, records: Records, classes: Classes) -> list[Mapping[str, Any]]:
    """Return the generalized values of each class, by name."""
    told = generalize(records.qi, classes, stream.schema, cost_of(stream))
    return [
        {qi.name: _json(told.value(c, j)) for j, qi in enumerate(told.qis)}
        for c in range(len(classes))
    ]


def whole(value: float) -> float | int:
    """Return a number as an integer where it is one: `30`, not `30.0`."""
    return int(value) if value.is_integer() else value


def _json(value: Value) -> dict[str, Any]:
    match value:
        case Range(lo, hi, missing):
            told: dict[str, Any] = {"range": [whole(lo), whole(hi)]}
        case Values(labels):
            return {"values": list(labels)}
        case Node(label, missing):
            told = {"label": label}
    return told | {"missing": True} if missing else told


def uncovered(
    codes: Int32Array,
    class_of: Int32Array,
    told: Sequence[Mapping[str, Any]],
    qis: Sequence[Attribute],
) -> set[int]:
    """Return the classes whose generalized values do not cover every member.

    Parameters
    ----------
    codes
        Code of each record in each quasi-identifier, shape (n, qis).
    class_of
        Of each record, below 0 for none, shape (n,).
    told
        Of each class the generalized values, by name, as JSON.

    Notes
    -----
    O(n log n), and a value is looked at once for each different code in its class.
    """
    some = class_of >= 0
    refused: set[int] = set()
    for j, qi in enumerate(qis):
        pairs = np.unique(np.column_stack([class_of[some], codes[some, j]]), axis=0)
        refused.update(c for c, code in pairs.tolist() if not covers(told[c][qi.name], code, qi))
    return refused


def covers(value: Mapping[str, Any], code: int, qi: Attribute) -> bool:
    """Return whether a generalized value covers the value behind a code."""
    categories = value.get("values", ())
    if code == qi.missing:
        marker = MISSING if qi.numeric else qi.label[code]
        return bool(value.get("missing")) or marker in categories
    if qi.numeric:
        lo, hi = value.get("range", (1, 0))
        return bool(lo <= qi.position[code] <= hi)
    if qi.hierarchy is not None and "label" in value:
        nodes = qi.hierarchy.ancestor[code].tolist()
        return value["label"] in [qi.hierarchy.label[node] for node in nodes]
    return qi.label[code] in categories
