"""Trials of the minimizer: rows generalized as far as the user's own model keeps its score.

What comes out is no release: cells have k persons among the training rows only, and some columns
keep their values. No attack is run on it, and no stream can have it as a setting.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from anonymizer.algorithms.records.measures import measure
from anonymizer.app.tuning.bench import Bench, Window
from anonymizer.app.tuning.cross_validation import Score, score_of_split
from anonymizer.app.tuning.own_model import OwnModel, frame_of_codes
from anonymizer.app.tuning.space import Configuration
from anonymizer.domain.records import NO_CODE
from anonymizer.estimators.minimizer import Minimizer

_MARKER = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimized:
    """Figures of the minimizer, with the meaning that they have in `Trial`."""

    why: str | None = None
    n_classes: int = 0
    deletion: float = 1.0
    gcp: float = 1.0
    reached_k: int = 0
    reached_d: int = 0
    reached_l: int = 0
    score: Score | None = None


def minimize(bench: Bench, configuration: Configuration, *, n_qis: int) -> Minimized:
    """Minimize the records for the user's own model, and score it on minimized test rows.

    Parameters
    ----------
    bench
        Of a table, with the user's own model.
    n_qis
        Number of quasi-identifiers, including those that are left out.

    Notes
    -----
    The figures are those of the training rows of a minimizer of all records. Each fold has a model
    and a minimizer of its own, which have not seen its test rows.
    """
    (window,) = bench.windows
    if lacking := _lacking(bench, window):
        return Minimized(why=f"{lacking} lacks values, which the minimizer cannot handle")
    try:
        found = _fitted(bench, window, configuration)
        scores = [_score(each, configuration) for each in bench.fold_benches()]
        alone = None if scores else _score(bench, configuration)
    except ValueError as error:  # the promise cannot be kept
        return Minimized(why=str(error))
    cells = found.level_.cells
    reached = measure(window.records.only(found.learned_rows_), bench.schema, cells.class_of)
    return Minimized(
        n_classes=found.n_cells_,
        deletion=found.deletion_ratio_,
        gcp=(found.ncp_ * len(bench.schema.qis) + n_qis - len(bench.schema.qis)) / n_qis,
        reached_k=reached.k,
        reached_d=min(reached.d, default=0),
        reached_l=min(reached.l, default=0),
        score=score_of_split(alone, bench.n_judged) if alone is not None else bench.score(scores),
    )


class _OnQis(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # they have no types
    """The user's model on the quasi-identifiers of rows that have sensitive columns beside them."""

    def __init__(self, own: OwnModel, names: tuple[str, ...]) -> None:
        self.own = own
        self.names = names

    def fit(self, X: pl.DataFrame, y: NDArray[Any]) -> Self:  # noqa: N803  as in scikit-learn
        self.classes_ = np.unique(y)
        self.fitted_ = self.own.fitted(X.select(self.names), y)
        return self

    def predict(self, X: pl.DataFrame) -> NDArray[Any]:  # noqa: N803
        return self.own.predicted(self.fitted_, X.select(self.names))


def _fitted(bench: Bench, window: Window, configuration: Configuration) -> Minimizer:
    assert bench.own is not None  # noqa: S101  the search has seen to it
    schema = bench.schema
    secret = [attribute.name for attribute in schema.sensitive]
    minimizer = Minimizer(
        _OnQis(bench.own, tuple(qi.name for qi in schema.qis)),
        k=configuration.k,
        l=configuration.l,
        categorical=[*(qi.name for qi in schema.qis if not qi.numeric), *secret],
        sensitive=secret,
        missing=_MARKER,
        random_state=bench.seed,
    )
    return minimizer.fit(_rows(bench, window), bench.labels[window.target], window.records.person)


def _score(bench: Bench, configuration: Configuration) -> float:
    """Return the accuracy on minimized test rows."""
    (window,), (test,) = bench.windows, bench.test_windows
    minimizer = _fitted(bench, window, configuration)
    rows = _rows(bench, test)
    shown = minimizer.transform(rows)
    generalized = pl.DataFrame({name: shown[:, j].tolist() for j, name in enumerate(rows.columns)})
    predicted = minimizer.estimator_.predict(generalized)
    return float(np.mean(predicted == bench.labels[test.target]))


def _rows(bench: Bench, window: Window) -> pl.DataFrame:
    """Return the quasi-identifiers of records, and the codes of sensitive attributes as text."""
    frame = frame_of_codes(window.records.qi, bench.schema)
    secret = zip(bench.schema.sensitive, window.records.sensitive.T, strict=True)
    return frame.with_columns(
        pl.Series(
            attribute.name,
            [_MARKER if code == attribute.missing else str(code) for code in column.tolist()],
        )
        for attribute, column in secret
    )


def _lacking(bench: Bench, window: Window) -> str | None:
    """Return the first number that lacks a value in some record, or None."""

    def lacks() -> Iterator[str]:
        for qi, column in zip(bench.schema.qis, window.records.qi.T, strict=True):
            if qi.numeric and qi.missing != NO_CODE and (column == qi.missing).any():
                yield qi.name

    return next(lacks(), None)
