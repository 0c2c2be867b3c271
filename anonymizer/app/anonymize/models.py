"""What `anonymize` can promise, and how it forms classes: one entry for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from anonymizer.algorithms.cells.pruning import prune
from anonymizer.algorithms.cells.tree import grow
from anonymizer.algorithms.kaca import clustering as forming
from anonymizer.algorithms.kaca.features import Feature
from anonymizer.algorithms.records.local_search import best
from anonymizer.algorithms.records.mondrian import mondrian
from anonymizer.algorithms.records.ordering import hilbert_order
from anonymizer.algorithms.records.problem import Problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise, check_cells_promise
from anonymizer.domain.records import Records, Schema
from anonymizer.errors import SettingsError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Task:
    """What a method gets.

    Attributes
    ----------
    records, schema
        What is to be put into classes.
    promise, problem
        What each class must keep, in words and as arrays.
    dm_weight
        What the discernibility of classes counts beside their information loss.
    keep_going
        Asked now and then by a method that could go on for ever; False: that is enough.
    left
        Share of its time that is left; None: there is no limit.
    progress
        Told the information loss so far.
    seed
        For what a method leaves to chance.
    target
        What a model is to learn from the records, a class each; None: nothing is said of that.
    how
        How each quasi-identifier counts where records are compared; empty: the default for all.
    """

    records: Records
    schema: Schema
    promise: Promise
    problem: Problem
    dm_weight: float = 0.0
    keep_going: Callable[[], bool] = lambda: True
    left: Callable[[], float] | None = None
    progress: Callable[[float], None] = lambda _loss: None
    seed: int = 0
    target: Int32Array | None = None
    how: Sequence[Feature] = ()


Method: TypeAlias = Callable[[Task], Int32Array]
"""Returns the class of each record."""


@dataclass(frozen=True, slots=True)
class Model:
    """A promise with its defaults, and the methods that keep it.

    Attributes
    ----------
    d, l
        Distinct values that are asked for where the user does not say.
    needs_sensitive
        Whether there must be a sensitive attribute.
    methods
        By name, the default first.
    has_labels
        Whether classes are told in the labels that are asked for, no two alike, with counts and
        means beside them.
    """

    d: int
    l: int  # noqa: E741  the field's name for it
    needs_sensitive: bool
    methods: Mapping[str, Method]
    has_labels: bool = False

    @property
    def default_method(self) -> str:
        """The method where the user names none."""
        return next(iter(self.methods))


def _order(task: Task) -> IntArray:
    return hilbert_order(task.records.qi, [qi.size for qi in task.schema.qis])


def _best(task: Task) -> Int32Array:
    return best(
        task.problem,
        _order(task),
        dm_weight=task.dm_weight,
        keep_going=task.keep_going,
        left=task.left,
        seed=task.seed,
        progress=task.progress,
    )


def _hilbert(task: Task) -> Int32Array:
    return sweep(task.problem, _order(task))


def _mondrian(task: Task) -> Int32Array:
    return mondrian(task.problem)


def _kmeans(task: Task) -> Int32Array:
    kmeans = forming.Method.KMEANS
    return forming.kaca(
        task.records, task.schema, task.promise, method=kmeans, how=task.how, seed=task.seed
    )


def _fast(task: Task) -> Int32Array:
    return forming.kaca(task.records, task.schema, task.promise, how=task.how)


def _tree(task: Task) -> Int32Array:
    try:
        check_cells_promise(task.promise)
    except ValueError as wrong:
        raise SettingsError(f"model cells: {wrong}") from wrong
    min_leaf = task.promise.k
    grown = grow(task.records, task.schema, task.target, min_leaf=min_leaf, seed=task.seed)
    return prune(grown, task.problem).class_of


_CLUSTERS: Mapping[str, Method] = {"fast": _fast, "kmeans": _kmeans}
_CLASSES: Mapping[str, Method] = {"best": _best, "hilbert": _hilbert, "mondrian": _mondrian}

MODELS: Mapping[str, Model] = {
    "kd": Model(d=2, l=1, needs_sensitive=False, methods=_CLASSES),
    "kld": Model(d=2, l=2, needs_sensitive=True, methods=_CLASSES),
    "kaca": Model(d=1, l=1, needs_sensitive=False, methods=_CLUSTERS, has_labels=True),
    "cells": Model(d=1, l=1, needs_sensitive=False, methods={"tree": _tree}),
}
"""By the name it has on the command line."""
