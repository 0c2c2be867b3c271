"""Data minimization: generalize rows as far as a fitted model keeps its score.

A decision tree learns what the model predicts. The trees of its pruning path are the levels of
generalization; the search finds the coarsest level with which the model still reaches the target
score. Only if none does are quasi-identifiers released from generalization. The idea is Goldsteen
et al.'s (2022); see `Minimizer` for the differences.
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
from anonymizer.algorithms.cells.pruning import TreeCells, prune
from anonymizer.algorithms.cells.representatives import representatives
from anonymizer.algorithms.cells.tree import grow, pruning_path
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.algorithms.records.criteria import why_impossible
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.app.table_options import real_number, whole_number
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.promises import Promise, check_cells_promise
from anonymizer.domain.records import Records, Schema
from anonymizer.estimators.data_frames import (
    Column,
    ColumnArray,
    RowTransformer,
    as_given,
    names_of,
    rows_to_learn_from,
    rows_to_transform,
    seed_of,
)
from anonymizer.estimators.frame_columns import as_value_errors, code_rows, some_of
from anonymizer.estimators.model_borders import ModelBorders, fewest_borders, keeps, own_borders

_MAX_LEVELS = 24
"""Number of trees of the pruning path; more would differ too little."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Level:
    """A level of generalization: the cells of one tree.

    Attributes
    ----------
    cells
        Cells of the training records.
    representative
        Positions of the representatives, shape (classes, qis).
    losses
        Mean information loss of each quasi-identifier, 0 to 1, shape (qis,).
    """

    cells: TreeCells
    representative: FloatArray
    losses: FloatArray

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.cells.n_classes

    def places(self, values: FloatArray) -> tuple[Int32Array, FloatArray]:
        """Return the class of each row, and the representatives of the classes."""
        return self.cells.assign(values), self.representative


@dataclass(slots=True, eq=False, repr=False)
class GeneralizationLevels:
    """The levels of generalization, finest first; each is grown on demand.

    Attributes
    ----------
    target
        Prediction of the model for each record.
    """

    records: Records
    schema: Schema
    promise: Promise
    target: ModelTarget
    seed: int
    alphas: FloatArray = field(init=False)
    _grown: dict[int, Level] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        every = pruning_path(
            self.records,
            self.schema,
            self.target,
            min_leaf=self.promise.k,
            seed=self.seed,
        )
        # Geometric steps, because steps near the root change more than steps near the leaves.
        from_last = np.unique(np.geomspace(1, len(every), _MAX_LEVELS).round().astype(np.int64))
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
"""Quasi-identifiers that are not generalized."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A level of generalization, 0 the finest, and the quasi-identifiers released from it.

    Attributes
    ----------
    score
        Score of the model on rows generalized in this way.
    n_distinct
        Number of distinct rows among them.
    loss
        Sum of the information losses of the generalized quasi-identifiers.
    """

    level: int
    released: Released
    score: float
    n_distinct: int
    loss: float

    def rank(self) -> tuple[int, float, int]:
        """Return what orders choices with releases, the best first."""
        return self.n_distinct, -self.loss, self.level


@dataclass(frozen=True, slots=True)
class LevelSearch:
    """Search for the coarsest generalization that keeps a score.

    Attributes
    ----------
    judge
        Returns the score of a level with some quasi-identifiers released, and the number of
        distinct rows that remain.
    losses
        Returns the information loss of each quasi-identifier at a level.
    n_levels
        Number of levels; level 0 is the finest.
    target
        The least score, which is reached if all quasi-identifiers are released.
    """

    judge: Callable[[int, Released], tuple[float, int]]
    losses: Callable[[int], Sequence[float]]
    n_levels: int
    target: float

    def coarsest(self) -> Choice:
        """Return the coarsest level without a release, or the best choice with some."""
        return self.without_release() or self.with_releases()

    def without_release(self) -> Choice | None:
        """Return the coarsest level that reaches the target without a release, or None.

        Every level is tried, the coarsest first, because a finer one may have a lower score.
        """
        none: Released = frozenset()
        for level in reversed(range(self.n_levels)):
            if self.score(level, none) >= self.target:
                return self._choice(level, none)
        return None

    def with_releases(self) -> Choice:
        """Return the choice of fewest distinct rows found from several starting levels.

        From each one, quasi-identifiers are released one by one until the score is reached;
        releases that later ones made unnecessary are undone; then the level is raised as far as
        the score allows. At most levels * qis^2 / 2 scores. Among equally many rows, the greater
        information loss decides.
        """
        starts = sorted({0, self.n_levels // 4, self.n_levels // 2, 3 * self.n_levels // 4})
        return min((self._from(level) for level in starts), key=Choice.rank)

    def score(self, level: int, released: Released) -> float:
        """Return the score of a level with some quasi-identifiers released."""
        return self.judge(level, released)[0]

    def _choice(self, level: int, released: Released) -> Choice:
        score, n_distinct = self.judge(level, released)
        losses = self.losses(level)
        loss = sum(x for j, x in enumerate(losses) if j not in released)
        return Choice(level, released, score, n_distinct, loss)

    def _from(self, level: int) -> Choice:
        released = self._release(level)
        for j in sorted(released, key=self.losses(level).__getitem__, reverse=True):
            if self.score(level, released - {j}) >= self.target:
                released -= {j}
        return self._choice(self._raise(level, released), released)

    def _release(self, level: int) -> Released:
        """Release quasi-identifiers, by score gained per loss given up, up to the target."""
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
        """Return, by bisection, a level that reaches the target although the next one does not."""
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
        The model, a classifier or regressor. If it is not fitted, a clone is fitted on the rows
        given to `fit`. Cloning a `Minimizer`, as a grid search does, also clones the model, which
        then loses its fit: wrap a fitted model in scikit-learn's `FrozenEstimator`.
    target_score
        Share of the original score to keep. Of a negative score, the same share may be lost.
    release
        Whether quasi-identifiers may keep their original values where no level of generalization
        reaches the target. False: that is an error.
    scoring
        As everywhere in scikit-learn; None: the score method of the model.
    k, l
        Least number of persons, and of values of every sensitive column, in each cell.
    test_size
        Share of the rows used for the score; cells are learned from the others.
    categorical, sensitive, bands, untouched, missing
        See `Anonymizer`.
    random_state
        Seed of the tree, of the split of the rows, and of the model where that is fitted here and
        has no `random_state` of its own.

    Attributes
    ----------
    estimator_
        The fitted model.
    generalizations_
        `ranges`: borders between distinguished numbers, by column; `categories`: distinguished
        groups of categories, by column; `untouched`: columns that are not generalized, for the
        sake of the score or by parameter.
    ncp_
        Normalized certainty penalty: mean information loss of a quasi-identifier over the training
        rows, from 0 to 1; 0 for those that are not generalized.
    score_, original_score_
        Scores on the test rows: generalized, and original.
    distinct_rows_
        Number of distinct rows, in the quasi-identifiers, among the generalized test rows.
    n_cells_
        Number of cells.
    learned_rows_
        Indices of the rows that the cells were learned from; the others, one of each person, are
        the test rows.
    deletion_ratio_
        Share of the training rows that are in no cell.

    Notes
    -----
    A decision tree learns the predictions of the model. Its minimal cost-complexity pruning gives
    several levels of cells, and the coarsest that keeps the score is used. If none does,
    quasi-identifiers are released from generalization, first those that gain most score for the
    loss they give up, from several levels; the fewest distinct rows decide between the results.
    The idea is that of [1]_. Unlike there, a representative consists of the medians and most
    frequent categories of a cell, not of one row, and levels are searched with the releases.

    Of a model that is made of decision trees over plain numbers, its own borders are tried, too:
    numbers between two of its thresholds are one to it. What leaves fewer distinct rows is kept.

    The score is that of the test rows, which also chose the level: on further rows it is somewhat
    lower. A released column of numbers leaves about as many distinct rows as there are rows.

    Transformed rows are not an anonymized release: cells have k persons among the training rows
    only, and released quasi-identifiers keep their original values.

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
        release: bool = True,
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
        self.release = release
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
        """Learn the coarsest generalization that keeps the score.

        Parameters
        ----------
        X
            Rows, preferably rows that the model was not fitted on, shape (n, columns).
        y
            True targets for the score. None: the predictions of the model for the original rows.
        person
            Person of each row. None: every row is a person of its own.

        Raises
        ------
        ValueError
            If a parameter or column is invalid, the model is not fitted and cannot be, the rows
            cannot keep k and l, or no level keeps the score and nothing may be released.
        """
        promise = self._promise()
        rows = rows_to_learn_from(self, X)
        seed = seed_of(self.random_state)
        self.columns_, coded = code_rows(
            rows,
            names_of(self),
            categorical=self.categorical,
            sensitive=self.sensitive,
            untouched=self.untouched,
            bands=self.bands,
            marker=self.missing,
            person=person,
            seed=seed,
        )
        self.estimator_ = self._fitted_model(X, y, seed)
        predicted = column_or_1d(self.estimator_.predict(X))
        truth = predicted if y is None else column_or_1d(y)
        check_consistent_length(rows, truth)
        learned, judged = _split(coded.records.n, self.test_size, seed)
        train, test = coded.row[learned], coded.row[judged]
        records, schema = some_of(coded, learned).records, coded.schema
        if reason := why_impossible(make_problem(records, schema, promise), schema):
            raise ValueError(f"the promise cannot be kept: {reason}")
        target = ModelTarget(predicted[train], is_numeric=bool(is_regressor(self.estimator_)))
        levels = GeneralizationLevels(records, schema, promise, target, seed)
        self._set_results(*self._search(X, rows[test], truth[test], levels, rows[train]))
        self.learned_rows_ = train
        return self

    def transform(self, X: ArrayLike) -> ColumnArray:  # noqa: N803
        """Return rows with representatives in place of the generalized quasi-identifiers."""
        check_is_fitted(self)
        return self._generalized(rows_to_transform(self, X), self.level_, self.released_)

    def _promise(self) -> Promise:
        with as_value_errors():
            target_score = real_number("target_score", self.target_score, 0, 1)
            test_size = real_number("test_size", self.test_size, 0, 1)
            promise = Promise(k=whole_number("k", self.k, 1), l=whole_number("l", self.l, 1))
        if target_score == 0 or test_size in {0, 1}:
            raise ValueError("target_score must be above 0 and at most 1, test_size between them")
        check_cells_promise(promise)
        return promise

    def _fitted_model(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike | None,
        seed: int,
    ) -> Any:  # noqa: ANN401
        try:
            check_is_fitted(self.estimator)
        except NotFittedError:
            if y is None:
                raise
            model = clone(self.estimator)
            unset = [
                name
                for name, value in model.get_params().items()
                if name.split("__")[-1] == "random_state" and value is None
            ]
            return model.set_params(**dict.fromkeys(unset, seed)).fit(X, y)
        return self.estimator

    def _search(
        self,
        X: ArrayLike,  # noqa: N803
        rows: ColumnArray,
        truth: ColumnArray,
        levels: GeneralizationLevels,
        learned: ColumnArray,
    ) -> tuple[Choice, Level | ModelBorders]:
        """Return the choice of fewest distinct rows: of a level, or of the model's own borders."""
        scorer = check_scoring(self.estimator_, scoring=self.scoring)
        qis = self.columns_.qi_columns
        judged: dict[tuple[int, Released], tuple[float, int]] = {}

        def shown_as(way: Level | ModelBorders, released: Released) -> tuple[float, int]:
            shown = self._generalized(rows, way, released)
            score = float(scorer(self.estimator_, as_given(shown, X), truth))
            return score, len(set(map(tuple, shown[:, qis].tolist())))

        def judge(level: int, released: Released) -> tuple[float, int]:
            if (level, released) not in judged:
                judged[level, released] = shown_as(levels[level], released)
            return judged[level, released]

        everything = frozenset(range(len(qis)))
        self.original_score_ = judge(0, everything)[0]
        tolerated = (1 - self.target_score) * abs(self.original_score_)
        search = LevelSearch(
            judge=judge,
            losses=lambda level: levels[level].losses.tolist(),
            n_levels=len(levels),
            target=self.original_score_ - tolerated,
        )
        none: Released = frozenset()

        def reaches(borders: ModelBorders) -> bool:
            return shown_as(borders, none)[0] >= search.target and keeps(
                borders, levels.records, levels.schema, levels.promise
            )

        own = own_borders(self.estimator_, self.columns_)
        values = self.columns_.values(learned)
        borders = None if own is None else fewest_borders(own, values, reaches)
        if borders is not None:
            found = Choice(len(levels), none, *shown_as(borders, none), float(borders.losses.sum()))
            of_level = search.without_release() or (
                search.with_releases() if self.release else None
            )
            if of_level is None or found.rank() < of_level.rank():
                return found, borders
            return of_level, levels[of_level.level]
        if not self.release and search.without_release() is None:
            best = max(search.score(level, frozenset()) for level in range(len(levels)))
            raise ValueError(
                f"no level of generalization keeps a score of {search.target:.3g}, the best has "
                f"{best:.3g}: lower target_score, or let columns keep their values (release=True)"
            )
        choice = search.coarsest()
        return choice, levels[choice.level]

    def _set_results(self, choice: Choice, level: Level | ModelBorders) -> None:
        self.level_, self.released_ = level, choice.released
        self.score_ = choice.score
        self.distinct_rows_ = choice.n_distinct
        self.n_cells_ = level.n_cells
        self.deletion_ratio_ = (
            0.0 if isinstance(level, ModelBorders) else level.cells.deletion_ratio
        )
        qis = self.columns_.schema.qis
        self.ncp_ = choice.loss / max(len(qis), 1)
        columns = enumerate(self.columns_.qi_columns)
        names = [self.columns_.names[j] for at, j in columns if at not in self.released_]
        told = (
            [tuple(cut.tolist()) for cut in level.cuts]
            if isinstance(level, ModelBorders)
            else distinctions(level.cells)
        )
        distinction = dict(zip((qi.name for qi in qis), told, strict=True))
        generalized = [qi for qi in qis if qi.name in names]
        self.generalizations_: dict[str, Any] = {
            "ranges": {qi.name: distinction[qi.name] for qi in generalized if qi.numeric},
            "categories": {qi.name: distinction[qi.name] for qi in generalized if not qi.numeric},
            "untouched": [name for name in self.columns_.names if name not in names],
        }

    def _generalized(
        self, rows: ColumnArray, level: Level | ModelBorders, released: Released
    ) -> ColumnArray:
        class_of, representative = level.places(self.columns_.values(rows))
        generalized = self.columns_.published(rows, class_of, representative)
        original = [self.columns_.qi_columns[at] for at in sorted(released)]
        generalized[:, original] = rows[:, original]
        return generalized


def _split(n: int, test_size: float, seed: int) -> tuple[IntArray, IntArray]:
    """Return the training rows and the test rows; of fewer than ten rows, all are both."""
    order = np.random.default_rng(seed).permutation(n)
    if n < 10:
        return order, order
    n_test = min(max(round(n * test_size), 1), n - 1)
    return order[n_test:], order[:n_test]
