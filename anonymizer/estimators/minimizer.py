"""Data minimization: rows as coarse as a fitted model bears, as a scikit-learn transformer.

Levels of generalization: the trees of one pruning path, from the finest to a root alone.

How coarse rows may become: the coarsest generalization that keeps a score.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from anonymizer.algorithms.cells.description import distinctions, widths
from anonymizer.algorithms.cells.pruning import Cells, prune
from anonymizer.algorithms.cells.representatives import representatives
from anonymizer.algorithms.cells.tree import grow, pruning_path
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.algorithms.records.criteria import why_impossible
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.promises import Promise, check_cells_promise
from anonymizer.domain.records import Records, Schema
from anonymizer.estimators.data_frames import (
    Column,
    ColumnArray,
    RowTransformer,
    as_given,
    learn_columns,
    names_of,
    rows_to_learn_from,
    rows_to_transform,
    seed_of,
)

_MOST = 24
"""Trees looked at: more are too near each other to make a difference."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Level:
    """One tree's cells.

    Attributes
    ----------
    cells
        Of the records it was grown on.
    representative
        Positions, shape (classes, qis).
    losses
        Mean loss of each quasi-identifier over these records, 0 to 1, shape (qis,).
    """

    cells: Cells
    representative: FloatArray
    losses: FloatArray


@dataclass(slots=True, eq=False, repr=False)
class Levels:
    """The levels, each grown when it is asked for.

    Attributes
    ----------
    target, numeric
        What the model says of each record, and whether that is a number.
    """

    records: Records
    schema: Schema
    promise: Promise
    target: ColumnArray
    numeric: bool
    seed: int
    alphas: FloatArray = field(init=False)
    _grown: dict[int, Level] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        every = pruning_path(
            self.records,
            self.schema,
            self.target,
            min_leaf=self.promise.k,
            numeric=self.numeric,
            seed=self.seed,
        )
        # Near the root a step changes much, near the leaves little.
        from_last = np.unique(np.geomspace(1, len(every), _MOST).round().astype(np.int64))
        self.alphas = every[len(every) - from_last[::-1]]

    def __len__(self) -> int:
        return len(self.alphas)

    def __getitem__(self, level: int) -> Level:
        if level not in self._grown:
            self._grown[level] = self._grow(level)
        return self._grown[level]

    def _grow(self, level: int) -> Level:
        records, schema = self.records, self.schema
        grown = grow(
            records,
            schema,
            self.target,
            min_leaf=self.promise.k,
            numeric=self.numeric,
            seed=self.seed,
            divide=False,
            ccp_alpha=float(self.alphas[level]),
        )
        cells = prune(grown, make_problem(records, schema, self.promise))
        classes = classes_of(cells.class_of)
        share = np.diff(classes.first_of) / max(len(classes.member), 1)
        return Level(
            cells=cells,
            representative=representatives(records.qi, classes, schema),
            losses=share @ widths(records.qi, classes, schema),
        )


Released: TypeAlias = frozenset[int]
"""Quasi-identifiers that are left as they are."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A level of generalization, 0 the finest, and the quasi-identifiers that are left out of it.

    Attributes
    ----------
    score
        What the model scores so.
    loss
        How much is generalized: the sum of the losses of the others.
    """

    level: int
    released: Released
    score: float
    loss: float


@dataclass(frozen=True, slots=True)
class Search:
    """What a search asks.

    Attributes
    ----------
    score
        Of a level with some quasi-identifiers released.
    losses
        Of each quasi-identifier at a level.
    n_levels
        How many there are, 0 the finest.
    target
        The least score. With everything released it is reached.
    """

    score: Callable[[int, Released], float]
    losses: Callable[[int], Sequence[float]]
    n_levels: int
    target: float

    def coarsest(self) -> Choice:
        """Return the best choice that is found from several levels.

        From each, quasi-identifiers are released, one by one, until the score is reached; what
        later releases made needless is taken back; then the level is raised as far as the score
        stays so. At most levels * qis^2 / 2 scores.
        """
        starts = sorted({0, self.n_levels // 4, self.n_levels // 2, 3 * self.n_levels // 4})
        return max((self._from(level) for level in starts), key=lambda c: (c.loss, -c.level))

    def _from(self, level: int) -> Choice:
        released = self._release(level)
        for j in sorted(released, key=self.losses(level).__getitem__, reverse=True):
            if self.score(level, released - {j}) >= self.target:
                released -= {j}
        level = self._raise(level, released)
        losses = self.losses(level)
        loss = sum(x for j, x in enumerate(losses) if j not in released)
        return Choice(level, released, self.score(level, released), loss)

    def _release(self, level: int) -> Released:
        """Release what gains most score for the loss it gives up, until the score is reached."""
        losses = self.losses(level)
        released: Released = frozenset()
        score = self.score(level, released)
        while score < self.target:
            scores = {
                j: self.score(level, released | {j})
                for j in range(len(losses))
                if j not in released
            }
            gain = {j: (new - score) / max(losses[j], 1e-9) for j, new in scores.items()}
            best = max(gain, key=gain.__getitem__)
            released |= {best}
            score = scores[best]
        return released

    def _raise(self, level: int, released: Released) -> int:
        """Return a level that reaches the score, when the next but one does not."""
        low, high = level, self.n_levels
        while high - low > 1:
            middle = (low + high) // 2
            if self.score(middle, released) >= self.target:
                low = middle
            else:
                high = middle
        return low


class Minimizer(RowTransformer):
    """Generalizes rows to representatives as far as a model keeps its score.

    Parameters
    ----------
    estimator
        The model, a classifier or regressor. Where it is not fitted, a clone is, on the rows
        given to `fit`. Whatever clones a `Minimizer` (a grid search does) clones it, which forgets
        what it has learned: wrap it in scikit-learn's `FrozenEstimator`.
    target_score
        Share of the score on untouched rows that is to remain. Of a score below 0, as large a part
        may be lost.
    scoring
        As everywhere in scikit-learn; None: the model's own score.
    k, l
        Distinct persons, and distinct values of every sensitive column, behind each cell.
    test_size
        Share of the rows that the score is taken on; cells are learned from the others.
    categorical, sensitive, bands, untouched, missing
        See `Anonymizer`.
    random_state
        Of the tree and of which rows are which.

    Attributes
    ----------
    estimator_
        The model that was asked.
    generalizations_
        `ranges`: the borders that a number is told apart at, by column; `categories`: groups that
        are told apart; `untouched`: columns left as they are, for the score or by parameter.
    ncp_
        Normalized certainty penalty: mean loss of a quasi-identifier over the rows learned from,
        0 nothing to 1 everything; what is left as it is loses nothing.
    score_, original_score_
        On the rows that were kept back: generalized, and untouched.
    n_cells_
        Number of cells.
    deletion_ratio_
        Share of the rows learned from that are in no cell.

    Notes
    -----
    A decision tree learns what the model says. Cells are cut from it at several levels of its
    minimal cost-complexity pruning; where not even the finest keeps the score, quasi-identifiers
    are released from generalization, those first that gain most for what they give up. The idea is
    that of [1]_; unlike there, levels and releases are searched together, and a representative is
    the medians and most frequent categories of the cell, not one of its rows.

    Rows that are transformed are no anonymized release: cells have k persons among the rows that
    were learned from, and what is released is as it was.

    References
    ----------
    .. [1] A. Goldsteen et al., "Data minimization for GDPR compliance in machine learning models",
       AI and Ethics, 2022.
    """

    def __init__(
        self,
        estimator: Any,  # noqa: ANN401  scikit-learn has no types
        *,
        target_score: float = 0.99,
        scoring: Any = None,  # noqa: ANN401
        k: int = 1,
        l: int = 1,  # noqa: E741  the field's name for it
        test_size: float = 0.4,
        categorical: Sequence[Column] = (),
        sensitive: Sequence[Column] = (),
        bands: Mapping[Column, Sequence[float]] | None = None,
        untouched: Sequence[Column] = (),
        missing: str | None = "?",
        random_state: Any = 0,  # noqa: ANN401
    ) -> None:
        self.estimator = estimator
        self.target_score = target_score
        self.scoring = scoring
        self.k = k
        self.l = l
        self.test_size = test_size
        self.categorical = categorical
        self.sensitive = sensitive
        self.bands = bands
        self.untouched = untouched
        self.missing = missing
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,  # noqa: N803  as everywhere in scikit-learn
        y: ArrayLike | None = None,
        person: ArrayLike | None = None,
    ) -> Self:
        """Learn how coarse rows may be.

        Parameters
        ----------
        X
            Rows, best such as the model was not fitted on, shape (n, columns).
        y
            What is true of them, to score against. None: what the model says of them, untouched.
        person
            Whose row each is. None: each is a person's only one.

        Raises
        ------
        ValueError
            If a parameter or column is not as it should be, the model is not fitted and cannot be,
            or the rows cannot keep k and l.
        """
        promise = Promise(k=self.k, l=self.l)
        check_cells_promise(promise)
        if not (0 < self.target_score <= 1 and 0 < self.test_size < 1):
            raise ValueError("target_score must be above 0 and at most 1, test_size between them")
        rows = rows_to_learn_from(self, X)
        self.columns_ = learn_columns(
            rows,
            names_of(self),
            categorical=self.categorical,
            sensitive=self.sensitive,
            untouched=self.untouched,
            bands=self.bands,
            marker=self.missing,
        )
        self.estimator_ = self._fitted_model(X, y)
        said = column_or_1d(self.estimator_.predict(X))
        truth = said if y is None else column_or_1d(y)
        who = np.arange(len(rows)) if person is None else column_or_1d(person)
        check_consistent_length(rows, truth, who)
        seed = seed_of(self.random_state)
        learned, judged = _split(len(rows), self.test_size, seed)
        schema = self.columns_.schema
        records = self.columns_.records(rows[learned], who[learned])
        if reason := why_impossible(make_problem(records, schema, promise), schema):
            raise ValueError(f"the promise cannot be kept: {reason}")
        levels = Levels(
            records, schema, promise, said[learned], bool(is_regressor(self.estimator_)), seed
        )
        choice = self._search(X, rows[judged], truth[judged], levels)
        self._settle(choice, levels[choice.level])
        return self

    def transform(self, X: ArrayLike) -> ColumnArray:  # noqa: N803
        """Return rows with representatives for the quasi-identifiers that are generalized."""
        check_is_fitted(self)
        return self._shown(rows_to_transform(self, X), self.level_, self.released_)

    def _fitted_model(self, X: ArrayLike, y: ArrayLike | None) -> Any:  # noqa: ANN401, N803
        try:
            check_is_fitted(self.estimator)
        except NotFittedError:
            if y is None:
                raise
            return clone(self.estimator).fit(X, y)
        return self.estimator

    def _search(
        self,
        X: ArrayLike,  # noqa: N803
        rows: ColumnArray,
        truth: ColumnArray,
        levels: Levels,
    ) -> Choice:
        scorer = check_scoring(self.estimator_, scoring=self.scoring)
        scores: dict[tuple[int, Released], float] = {}

        def score(level: int, released: Released) -> float:
            if (level, released) not in scores:
                shown = as_given(self._shown(rows, levels[level], released), X)
                scores[level, released] = float(scorer(self.estimator_, shown, truth))
            return scores[level, released]

        everything = frozenset(range(len(self.columns_.qi_columns)))
        self.original_score_ = score(0, everything)
        lost = (1 - self.target_score) * abs(self.original_score_)
        search = Search(
            score=score,
            losses=lambda level: levels[level].losses.tolist(),
            n_levels=len(levels),
            target=self.original_score_ - lost,
        )
        return search.coarsest()

    def _settle(self, choice: Choice, level: Level) -> None:
        self.level_, self.released_ = level, choice.released
        self.score_ = choice.score
        self.n_cells_ = level.cells.n_classes
        self.deletion_ratio_ = level.cells.deletion_ratio
        qis = self.columns_.schema.qis
        self.ncp_ = choice.loss / max(len(qis), 1)
        kept = [self.columns_.names[j] for j, _ in self._generalized()]
        told = {qi.name: told for qi, told in zip(qis, distinctions(level.cells), strict=True)}
        self.generalizations_: dict[str, Any] = {
            "ranges": {qi.name: told[qi.name] for qi in qis if qi.numeric and qi.name in kept},
            "categories": {
                qi.name: told[qi.name] for qi in qis if not qi.numeric and qi.name in kept
            },
            "untouched": [name for name in self.columns_.names if name not in kept],
        }

    def _generalized(self) -> list[tuple[int, int]]:
        """Return column and place among the quasi-identifiers of those that are generalized."""
        places = enumerate(self.columns_.qi_columns)
        return [(column, at) for at, column in places if at not in self.released_]

    def _shown(self, rows: ColumnArray, level: Level, released: Released) -> ColumnArray:
        class_of = level.cells.assign(self.columns_.values(rows))
        shown = self.columns_.published(rows, class_of, level.representative)
        back = [self.columns_.qi_columns[at] for at in sorted(released)]
        shown[:, back] = rows[:, back]
        return shown


def _split(n: int, test_size: float, seed: int) -> tuple[IntArray, IntArray]:
    """Return the rows to learn from and those to judge by; of fewer than ten, all for both."""
    order = np.random.default_rng(seed).permutation(n)
    if n < 10:
        return order, order
    n_judged = min(max(round(n * test_size), 1), n - 1)
    return order[n_judged:], order[:n_judged]
