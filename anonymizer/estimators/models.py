"""The algorithms that form classes, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from anonymizer.algorithms.kaca.forming import Method, kaca
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.mondrian import mondrian
from anonymizer.algorithms.records.problem import pose
from anonymizer.algorithms.records.sweeping import sweep
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.tables import Records, Schema


def _hilbert(records: Records, schema: Schema, promise: Promise) -> Int32Array:
    order = hilbert_order(records.qi, [qi.size for qi in schema.qis])
    return sweep(pose(records, schema, promise), order)


def _mondrian(records: Records, schema: Schema, promise: Promise) -> Int32Array:
    return mondrian(pose(records, schema, promise))


def _kaca_fast(records: Records, schema: Schema, promise: Promise) -> Int32Array:
    return kaca(records, schema, promise, method=Method.FAST)


def _kaca_kmeans(records: Records, schema: Schema, promise: Promise) -> Int32Array:
    return kaca(records, schema, promise, method=Method.KMEANS)


@dataclass(frozen=True, slots=True)
class Model:
    """How many distinct values a model asks for if nobody says, and its methods, default first."""

    d: int
    l: int  # noqa: E741  the field's name for it
    methods: Mapping[str, Callable[[Records, Schema, Promise], Int32Array]]


_CLASSES = {"hilbert": _hilbert, "mondrian": _mondrian}
MODELS: Mapping[str, Model] = {
    "kd": Model(d=2, l=1, methods=_CLASSES),
    "kld": Model(d=2, l=2, methods=_CLASSES),
    "kaca": Model(d=1, l=1, methods={"fast": _kaca_fast, "kmeans": _kaca_kmeans}),
}
"""All but `cells`, which need a target."""
