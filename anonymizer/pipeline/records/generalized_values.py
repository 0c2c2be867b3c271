"""What is published of the quasi-identifiers of classes, as JSON."""

from collections.abc import Mapping
from typing import Any

from anonymizer.algorithms.records.classes import Classes
from anonymizer.algorithms.records.generalization import Node, Range, Value, Values, generalize
from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.records import Records
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
