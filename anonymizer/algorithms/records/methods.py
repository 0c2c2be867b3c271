"""Registry of the models and of the methods that form equivalence classes for them.

The command line, the estimators, the streams and `tune` all choose a method here. The names and
defaults are cheap to import: each method imports its algorithm when it is called.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from anonymizer.algorithms.kaca.clustering import Method as KacaMethod
    from anonymizer.algorithms.kaca.features import Feature
    from anonymizer.algorithms.records.problem import Problem
    from anonymizer.domain.arrays import Int32Array, IntArray
    from anonymizer.domain.promises import Promise
    from anonymizer.domain.records import Records, Schema

SHARE_PRICE = 0.1
"""Price of a preferred share, in GCP, unless the caller sets one."""
TIME_BUDGET_S = 20.0
"""Time budget of a search, unless the caller sets one."""
WORK_PER_S = 100_000_000
"""Work of a search that takes about one second of one core, at six columns; see `Task`."""
AUTO = "auto"
"""Stands for the default method; so does None."""

_RECORDS_PER_S = 50_000
_ALWAYS_PAYS_S, _ALWAYS_PAYS_PER_RECORD_S = 4.0, 1e-6


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Task:
    """Input of a method.

    Attributes
    ----------
    records, schema
        The records to partition.
    promise, problem
        The criteria of a class, as numbers and as arrays.
    dm_weight
        Weight of the discernibility metric relative to the information loss.
    prefer_share, share_price
        Preferred largest share of a value in a class, and its price, see `local_search.best`. Only
        a search uses them.
    time_left
        Returns the share of the time budget that is left, from 1 down to 0. A search stops at 0.
        None: there is no limit, and the search ends by itself.
    work
        Work that a search may do in place of the time, see `Effort`: equal tasks then have equal
        classes, however fast or busy the machine.
    progress, spent
        Called with the information loss so far, and at last with the work that a search did.
    seed
        Seed of everything random.
    target, numeric_target
        What a model will learn from the release, one label or number per record, and which of
        the two it is. None: there is no target. Only `cells` uses it.
    features
        Distance between records, one entry per quasi-identifier. Empty: the defaults. Only
        `kaca` uses it.
    usual_qi
        Where the records are a part of a table: how often each code of each quasi-identifier
        occurs in all of it. Only `cells` uses it.
    """

    records: "Records"
    schema: "Schema"
    promise: "Promise"
    problem: "Problem"
    dm_weight: float = 0.0
    prefer_share: float = 1.0
    share_price: float = 0.0
    time_left: Callable[[], float] | None = None
    work: int | None = None
    progress: Callable[[float], None] = lambda _loss: None
    spent: Callable[[int], None] = lambda _work: None
    seed: int = 0
    target: "ArrayLike | None" = None
    numeric_target: bool = False
    features: "Sequence[Feature]" = ()
    usual_qi: "Sequence[IntArray] | None" = None


Method: TypeAlias = "Callable[[Task], Int32Array]"
"""Returns the class of each record, `SUPPRESSED` where it has none, shape (n,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A kind of promise: its defaults, and the methods that keep it.

    `d`, `l`: default number of distinct values of a quasi-identifier and of a sensitive attribute.
    `has_labels`: the user chooses labels for quasi-identifiers, the release has counts and means,
    and no two classes have the same labels. `methods`: by name, the default first. `time_budget_s`:
    default time budget of a search.
    """

    d: int
    l: int  # noqa: E741  the field's name for it
    needs_sensitive: bool = False
    has_labels: bool = False
    methods: Mapping[str, Method]
    time_budget_s: float = TIME_BUDGET_S

    def forms_classes_like(self, other: "Model") -> bool:
        """Return whether the methods of streams have the same names in both models."""
        return not self.methods.keys().isdisjoint(other.methods)

    def method_name(self, name: str | None, *, n: int, time_budget_s: float) -> str:
        """Return the method to use: `name`, or for None and `auto` the default one.

        Notes
        -----
        A search is the default only where it has time to improve on the first method that does
        not search: 1 s per 50,000 records, but never more than 4 s and 1 s per million. Before
        that it is still cutting the whole table, see notes/laboratory.md.
        """
        if name is not None and name != AUTO:
            return name
        needed_s = min(n / _RECORDS_PER_S, _ALWAYS_PAYS_S + n * _ALWAYS_PAYS_PER_RECORD_S)
        pays = time_budget_s > 0 and time_budget_s >= needed_s
        return next(each for each in self.methods if pays or not searches(each))


class TimeBudget:
    """Time budget of one search, by a clock that is passed in; serves as `Task.time_left`."""

    def __init__(self, budget_s: float, clock: Callable[[], float]) -> None:
        self._budget_s, self._clock, self._began_s = budget_s, clock, clock()
        self.ended_search, self.was_asked = False, False
        """Whether a search asked for more time than there was; and whether one asked at all."""

    def __call__(self) -> float:
        """Return the share of the budget that is left."""
        self.was_asked = True
        used_s = self._clock() - self._began_s
        if used_s >= self._budget_s:
            self.ended_search = True
            return 0.0
        return 1 - used_s / self._budget_s


def share_of(time_left: Callable[[], float], leave: float) -> Callable[[], float]:
    """Return the share that is left of the time from now until only `leave` is left of all."""
    first = time_left() - leave
    return lambda: max((time_left() - leave) / first, 0.0) if first > 0 else 0.0


def searches(method: str) -> bool:
    """Return whether a method takes all the time that it is given, and loses less with more."""
    return method == "best"


def search_is_compiled() -> bool:
    """Return whether a search runs as machine code, see `kernels.runs_as_python`."""
    from anonymizer.kernel_cache import current_background  # noqa: PLC0415  see the top

    if current_background() is None:
        return True
    from anonymizer.algorithms.records.local_search import has_kernels  # noqa: PLC0415  likewise

    return has_kernels()


def weighs(method: str) -> bool:
    """Return whether a method knows how much the loss of each quasi-identifier counts."""
    return method in {"best", "mondrian"}


def warm_up(method: str, schema: "Schema", promise: "Promise") -> None:
    """Compile and load the kernels of a method of `kd` before its time is counted.

    In the background (`kernel_background`) those of a search are only asked for.
    """
    if searches(method):
        from anonymizer.algorithms.records import local_search  # noqa: PLC0415  see the top
        from anonymizer.kernel_cache import current_background  # noqa: PLC0415

        background = current_background()
        if background is None:
            local_search.warm_up(schema, promise)
        elif not search_is_compiled():
            background.submit(local_search.warm_up, schema, promise)
    elif method in _CLASSES:
        _CLASSES[method](_synthetic(schema, promise))


def _synthetic(schema: "Schema", promise: "Promise") -> Task:
    import numpy as np  # noqa: PLC0415

    from anonymizer.algorithms.records.problem import make_problem  # noqa: PLC0415
    from anonymizer.domain.records import Records  # noqa: PLC0415

    number = np.arange(2 * promise.k, dtype=np.int32)
    codes = [
        np.array([number % each.size for each in columns], np.int32).reshape(-1, len(number)).T
        for columns in (schema.qis, schema.sensitive)
    ]
    some = Records(np.ascontiguousarray(codes[0]), np.ascontiguousarray(codes[1]), number)
    problem = make_problem(some, schema, promise)
    return Task(records=some, schema=schema, promise=promise, problem=problem)


def _best(task: Task) -> "Int32Array":
    from anonymizer.algorithms.records.local_search import best  # noqa: PLC0415

    if task.work is None and not search_is_compiled():
        return _hilbert(task)  # as Python, a search would use its time for nothing
    time_left = task.time_left if task.work is None else None
    return best(
        task.problem,
        _order(task),
        dm_weight=task.dm_weight,
        prefer_share=task.prefer_share,
        share_price=task.share_price,
        keep_going=lambda: time_left is None or time_left() > 0,
        time_left=time_left,
        work=task.work,
        seed=task.seed,
        progress=task.progress,
        spent=task.spent,
    )


def _hilbert(task: Task) -> "Int32Array":
    from anonymizer.algorithms.records.sweep import sweep  # noqa: PLC0415

    return sweep(task.problem, _order(task))


def _printed(task: Task) -> "Int32Array":
    from anonymizer.algorithms.records.bucket_sweep import bucket_sweep  # noqa: PLC0415

    return bucket_sweep(task.problem, _order(task), n_sensitive=len(task.schema.sensitive))


def _order(task: Task) -> "IntArray":
    from anonymizer.algorithms.records.ordering import hilbert_order  # noqa: PLC0415

    return hilbert_order(task.records.qi, [qi.size for qi in task.schema.qis])


def _mondrian(task: Task) -> "Int32Array":
    from anonymizer.algorithms.records.mondrian import mondrian  # noqa: PLC0415

    return mondrian(task.problem)


def _fast(task: Task) -> "Int32Array":
    from anonymizer.algorithms.kaca.clustering import Method as KacaMethod  # noqa: PLC0415

    return _kaca(task, KacaMethod.FAST)


def _kmeans(task: Task) -> "Int32Array":
    from anonymizer.algorithms.kaca.clustering import Method as KacaMethod  # noqa: PLC0415

    return _kaca(task, KacaMethod.KMEANS)


def _kaca(task: Task, method: "KacaMethod") -> "Int32Array":
    from anonymizer.algorithms.kaca.clustering import kaca  # noqa: PLC0415

    return kaca(
        task.records,
        task.schema,
        task.promise,
        method=method,
        how=task.features,
        seed=task.seed,
        problem=task.problem,
    )


def _tree(task: Task) -> "Int32Array":
    from anonymizer.algorithms.cells.pruning import prune  # noqa: PLC0415
    from anonymizer.algorithms.cells.tree import grow  # noqa: PLC0415

    grown = grow(
        task.records,
        task.schema,
        task.target,
        min_leaf=task.promise.k,
        numeric=task.numeric_target,
        seed=task.seed,
        usual_qi=task.usual_qi,
    )
    return prune(grown, task.problem).class_of


_CLASSES: Mapping[str, Method] = {"best": _best, "hilbert": _hilbert, "mondrian": _mondrian}
_CLUSTERS: Mapping[str, Method] = {"fast": _fast, "kmeans": _kmeans}

MODELS: Mapping[str, Model] = {
    "kd": Model(d=2, l=1, methods=_CLASSES),
    "kld": Model(d=2, l=2, needs_sensitive=True, methods={**_CLASSES, "printed": _printed}),
    "kaca": Model(d=1, l=1, has_labels=True, methods=_CLUSTERS),
    "cells": Model(d=1, l=1, methods={"tree": _tree}),
}
"""By the name in options and settings."""
