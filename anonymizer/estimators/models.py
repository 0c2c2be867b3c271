"""The algorithms that form classes, by name."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from anonymizer.algorithms.kaca.clustering import Method, kaca
from anonymizer.algorithms.records.local_search import best, warm_up
from anonymizer.algorithms.records.mondrian import mondrian
from anonymizer.algorithms.records.ordering import hilbert_order
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Task:
    """What a method gets: records, what each class must keep, and how long it may search."""

    records: Records
    schema: Schema
    promise: Promise
    seed: int
    time_budget_s: float


def _order(task: Task) -> IntArray:
    return hilbert_order(task.records.qi, [qi.size for qi in task.schema.qis])


def _hilbert(task: Task) -> Int32Array:
    return sweep(make_problem(task.records, task.schema, task.promise), _order(task))


def _best(task: Task) -> Int32Array:
    warm_up(task.schema, task.promise)
    began_s = time.monotonic()

    def left() -> float:
        used_s = time.monotonic() - began_s
        return max(1 - used_s / task.time_budget_s, 0.0) if task.time_budget_s else 0.0

    return best(
        make_problem(task.records, task.schema, task.promise),
        _order(task),
        keep_going=lambda: left() > 0,
        left=left,
        seed=task.seed,
    )


def _mondrian(task: Task) -> Int32Array:
    return mondrian(make_problem(task.records, task.schema, task.promise))


def _kaca_fast(task: Task) -> Int32Array:
    return kaca(task.records, task.schema, task.promise, method=Method.FAST)


def _kaca_kmeans(task: Task) -> Int32Array:
    return kaca(task.records, task.schema, task.promise, method=Method.KMEANS)


@dataclass(frozen=True, slots=True)
class Model:
    """How many distinct values a model asks for if nobody says, and its methods, default first."""

    d: int
    l: int  # noqa: E741  the field's name for it
    methods: Mapping[str, Callable[[Task], Int32Array]]


_CLASSES = {"hilbert": _hilbert, "mondrian": _mondrian, "best": _best}
MODELS: Mapping[str, Model] = {
    "kd": Model(d=2, l=1, methods=_CLASSES),
    "kld": Model(d=2, l=2, methods=_CLASSES),
    "kaca": Model(d=1, l=1, methods={"fast": _kaca_fast, "kmeans": _kaca_kmeans}),
}
"""All but `cells`, which need a target."""
