"""Trials of the minimizer: released cells, generalized further while a model keeps its score.

The chain is that of the published search for k and l: cells for k and l, the user's model fitted
on the released rows, and the minimizer fitted on them, too.
"""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from anonymizer.algorithms.cells.representatives import representatives
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of, without_gaps
from anonymizer.app.tuning.bench import Bench, Window
from anonymizer.app.tuning.own_model import OwnModel, frame_of, frame_of_codes
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import NO_CODE
from anonymizer.estimators.minimizer import Minimizer


def minimize(bench: Bench, class_of: Int32Array) -> tuple[Minimizer, Int32Array]:
    """Minimize released rows for the user's own model.

    Parameters
    ----------
    bench
        Of a table, with the user's own model.
    class_of
        Class of each record in the release, negative where it is suppressed.

    Returns
    -------
    The fitted minimizer, and the class of each record afterwards: the released rows that it makes
    equal. Each is a union of released classes, and keeps what they keep.

    Raises
    ------
    ValueError
        If the minimizer cannot be fitted; the message says why.
    """
    (window,) = bench.windows
    if lacking := _lacking(bench, window):
        raise ValueError(f"{lacking} lacks values, which the minimizer cannot handle")
    kept = np.flatnonzero(class_of >= 0)
    shown = representatives(window.records.qi, classes_of(class_of), bench.schema)
    rows = frame_of(shown[class_of[kept]], bench.schema)
    assert bench.own is not None  # noqa: S101  the search has seen to it
    model = _OfNumbers(bench.own) if bench.is_regression else _OfClasses(bench.own)
    minimizer = Minimizer(
        model,
        categorical=[qi.name for qi in bench.schema.qis if not qi.numeric],
        missing=None,
        random_state=bench.seed,
    )
    stated = np.flatnonzero(bench.states(window)[kept])
    if not len(stated):
        raise ValueError("no record that is published states a target")
    learned = kept[stated]
    labels = bench.labels[window.target[learned]]
    minimizer.fit(rows[stated], labels, window.records.person[learned])
    made = minimizer.transform(rows).astype(str)
    found = np.full(len(class_of), SUPPRESSED, np.int32)
    found[kept] = np.unique(made, axis=0, return_inverse=True)[1].reshape(-1)
    return minimizer, without_gaps(found)


def score_of_minimized(bench: Bench, class_of: Int32Array) -> float | None:
    """Return the score on minimized test rows, or None if nothing is published.

    The model and the minimizer learn from the released rows alone.
    """
    if (class_of < 0).all():
        return None
    minimizer, _ = minimize(bench, class_of)
    (test,) = bench.stating(bench.test_windows)
    rows = frame_of_codes(test.records.qi, bench.schema)
    shown = minimizer.transform(rows)
    generalized = pl.DataFrame({name: shown[:, j].tolist() for j, name in enumerate(rows.columns)})
    assert bench.own is not None  # noqa: S101
    return bench.own.score(minimizer.estimator_.predict(generalized), bench.labels[test.target])


class _Own(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The user's model as the minimizer uses one: its failures are told without values."""

    def __init__(self, own: OwnModel) -> None:
        self.own = own

    def fit(self, X: pl.DataFrame, y: NDArray[Any]) -> Self:  # noqa: N803  as in scikit-learn
        self.alone_ = y[0] if (y == y[0]).all() else None
        self.fitted_ = self.own.fitted(X, y) if self.alone_ is None else None
        return self

    def predict(self, X: pl.DataFrame) -> NDArray[Any]:  # noqa: N803
        if self.alone_ is not None:
            return np.full(len(X), self.alone_)
        return self.own.predicted(self.fitted_, X)


class _OfClasses(ClassifierMixin, _Own):  # type: ignore[misc]
    def fit(self, X: pl.DataFrame, y: NDArray[Any]) -> Self:  # noqa: N803
        self.classes_ = np.unique(y)
        return super().fit(X, y)


class _OfNumbers(RegressorMixin, _Own):  # type: ignore[misc]
    pass


def _lacking(bench: Bench, window: Window) -> str | None:
    """Return the first number that lacks a value in some record, or None."""

    def lacks() -> Iterator[str]:
        for qi, column in zip(bench.schema.qis, window.records.qi.T, strict=True):
            if qi.numeric and qi.missing != NO_CODE and (column == qi.missing).any():
                yield qi.name

    return next(lacks(), None)
