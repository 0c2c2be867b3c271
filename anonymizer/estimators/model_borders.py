"""A model's own borders: the thresholds between which it cannot tell numbers apart.

A model made of decision trees compares each number with a few thresholds. All numbers between two
of them may become one, and the model answers as before; fewer borders generalize more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from anonymizer.estimators.frame_columns import FrameColumns


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelBorders:
    """Intervals of each quasi-identifier, and the number that stands for each.

    Attributes
    ----------
    cuts
        Borders of each quasi-identifier, rising; a number that is equal to one lies below it.
    middle
        Median of the training rows in each interval, shape (borders + 1,).
    losses
        Mean share of its domain that a value is generalized to, 0 to 1, shape (qis,).
    class_of
        Class of each training row: rows in the same intervals.
    """

    cuts: tuple[FloatArray, ...]
    middle: tuple[FloatArray, ...]
    losses: FloatArray
    class_of: Int32Array

    @classmethod
    def of(cls, cuts: Sequence[FloatArray], values: FloatArray) -> "ModelBorders":
        """Return the intervals between borders, by the values of training rows, shape (n, qis)."""
        middle, losses, inside = [], np.zeros(len(cuts)), np.empty(values.shape, np.int64)
        for j, (cut, column) in enumerate(zip(cuts, values.T, strict=True)):
            inside[:, j] = _interval(cut, column)
            stands = _within(cut)
            for i in np.unique(inside[:, j]):
                some = column[inside[:, j] == i]
                stands[i] = np.median(some)
                losses[j] += float(np.ptp(some)) * len(some)
            losses[j] /= max(len(column) * float(np.ptp(column)), 1e-300)
            middle.append(stands)
        class_of = np.unique(inside, axis=0, return_inverse=True)[1].ravel().astype(np.int32)
        return cls(tuple(cuts), tuple(middle), losses, class_of)

    @property
    def n_cells(self) -> int:
        """Number of combinations of intervals that a training row is in."""
        return int(self.class_of.max(initial=-1)) + 1

    def places(self, values: FloatArray) -> tuple[Int32Array, FloatArray]:
        """Return a class of each row, and what stands for it, shapes (n,) and (classes, qis)."""
        shown = np.empty(values.shape)
        for j, (cut, middle) in enumerate(zip(self.cuts, self.middle, strict=True)):
            shown[:, j] = middle[_interval(cut, values[:, j])]
        distinct, of = np.unique(shown, axis=0, return_inverse=True)
        return of.ravel().astype(np.int32), distinct


def own_borders(model: Any, columns: FrameColumns) -> list[FloatArray] | None:  # noqa: ANN401
    """Return the thresholds of a model in each quasi-identifier, rising.

    None: it is not made of decision trees over these columns, or a quasi-identifier is no plain
    number that every row has.
    """
    model = (
        getattr(model, "estimator", model) if type(model).__name__ == "FrozenEstimator" else model
    )
    trees = (
        [model] if hasattr(model, "tree_") else list(np.ravel(getattr(model, "estimators_", [])))
    )
    qis, n = columns.schema.qis, len(columns.names)
    if not trees or hasattr(model, "estimators_features_"):
        return None
    if not all(hasattr(t, "tree_") and t.n_features_in_ == n for t in trees):
        return None
    if not all(qi.numeric and qi.missing < 0 for qi in qis):
        return None
    if columns.clocks.keys() & set(columns.qi_columns):
        return None
    feature = np.concatenate([t.tree_.feature for t in trees])
    threshold = np.concatenate([t.tree_.threshold for t in trees])
    return [np.unique(threshold[feature == j]) for j in columns.qi_columns]


def fewest_borders(
    cuts: Sequence[FloatArray],
    values: FloatArray,
    reaches: Callable[[ModelBorders], bool],
) -> ModelBorders | None:
    """Return intervals of few borders that reach the target, or None if all borders do not.

    Column by column, those of most borders first, the fewest of 0, 1, 2, 4 ... evenly chosen
    borders are taken with which the others still reach it. O(qis * log(borders)) calls.
    """
    kept = list(cuts)
    found = ModelBorders.of(kept, values)
    if not reaches(found):
        return None
    for j in sorted(range(len(cuts)), key=lambda j: (-len(cuts[j]), j)):
        for n in (0, *(2**i for i in range(len(cuts[j]).bit_length()))):
            if n >= len(cuts[j]):
                break
            fewer = kept.copy()
            fewer[j] = cuts[j][np.linspace(0, len(cuts[j]) - 1, n + 2).round().astype(int)[1:-1]]
            tried = ModelBorders.of(fewer, values)
            if reaches(tried):
                kept, found = fewer, tried
                break
    return found


def keeps(borders: ModelBorders, records: Records, schema: Schema, promise: Promise) -> bool:
    """Return whether the classes of the training rows keep a promise."""
    return not verify_classes(records, schema, promise, borders.class_of)


def _interval(cut: FloatArray, column: FloatArray) -> IntArray:
    """Return the interval of each number, as a tree of scikit-learn compares it: in 32 bits."""
    with np.errstate(over="ignore"):
        seen = column.astype(np.float32).astype(np.float64)
    return np.asarray(np.searchsorted(cut, seen, side="left"), np.int64)


def _within(cut: FloatArray) -> FloatArray:
    """Return a number of each interval: its upper border, and one above the last border."""
    below = cut.astype(np.float32)
    below = np.where(below > cut, np.nextafter(below, np.float32(-np.inf)), below)
    above = [] if not len(cut) else [np.nextafter(np.float32(cut[-1]), np.float32(np.inf))]
    return np.concatenate([below, above or [np.float32(0)]]).astype(np.float64)
