"""Anonymizer: equivalence classes as a scikit-learn transformer."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, Signature, signature
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree
from sklearn.utils.validation import check_is_fitted

from anonymizer.algorithms.cells.pruning import TreeCells, prune
from anonymizer.algorithms.cells.representatives import representatives
from anonymizer.algorithms.cells.tree import grow
from anonymizer.algorithms.cells.tree_features import encode
from anonymizer.algorithms.models.cells import MODEL as CELLS
from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.class_methods import warm_up
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.measures import measure
from anonymizer.algorithms.records.methods import AUTO, SHARE_PRICE, TIME_BUDGET_S, Method, searches
from anonymizer.algorithms.records.task import Task
from anonymizer.algorithms.records.verification import check_classes
from anonymizer.app.anonymize.class_forming import form_classes, former_of
from anonymizer.app.anonymize.plan import ReleasePlan, make_plan
from anonymizer.app.table_options import TableOptions, real_number
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.criteria.criterion import ClassCriterion, Of
from anonymizer.domain.criteria.registry import BY_NAME, FURTHER, criteria_of
from anonymizer.domain.promises import bounds_sensitive, check_cells_promise, check_numbers
from anonymizer.estimators.data_frames import (
    Column,
    ColumnArray,
    RowTransformer,
    Selected,
    by_place,
    names_of,
    rows_to_learn_from,
    rows_to_transform,
    seed_of,
    target_of,
)
from anonymizer.estimators.frame_columns import TABLE, as_value_errors, code_rows
from anonymizer.files.coded_table import CodedTable
from anonymizer.files.tables import TextTable

_CRITERIA = [each for each in FURTHER if each.of is not Of.SOURCE]


def _unstated(criterion: ClassCriterion) -> float | None:
    return None if criterion.unstated or criterion.per_attribute else criterion.default


class Anonymizer(RowTransformer):
    """Replaces quasi-identifiers with representatives of their equivalence classes.

    Every column is a quasi-identifier unless it is declared otherwise.

    Parameters
    ----------
    model
        `kd`, `kld`, `kaca` or `cells`. Cells follow the target: they keep what a model learns.
    k
        Fewest distinct persons in a class.
    d, l
        Fewest distinct values of every quasi-identifier and of every sensitive attribute in a
        class. None: 2 and 1 for `kd`, 2 and 2 for `kld`, otherwise 1 and 1.
    criteria
        Bounds of further criteria by their names: `entropy_l`, `max_share`, `t`, and `min_spread`
        by column; see `anonymizer anonymize --help`. Every column is a source of its own here, so
        there is no bound on tuples.
    prefer_share, share_price
        Soft goal of `best`: as many rows as possible in classes where no value has more than this
        share, at this much more information loss for each column in which a class is above. 1: no
        goal.
    method
        `best`, `hilbert` or `mondrian` for `kd` and `kld`, `fast` or `kmeans` for `kaca`, `tree`
        for `cells`. None: the first of these; `hilbert` where the time budget is too short for
        `best` to gain anything.
    time_budget
        Longest time in seconds that `best` may search for classes with less information loss.
    categorical
        Columns of categories, by index or name, as a mask with a truth value for each column, or
        as a function of the table, such as `make_column_selector`. All others are numbers, dates
        or times. The other parameters that choose columns take the same.
    sensitive
        Columns that must be diverse within a class. They are left unchanged.
    bands
        Increasing edges of bands, by sensitive column. Numbers in the same band count as one
        value; without bands, 14.1 and 14.2 are two values, which is rarely intended.
    untouched
        Columns that are neither quasi-identifiers nor sensitive.
    missing
        One more category that marks a missing value, which is not counted as a value: None, NaN,
        the missing values of pandas and the words of usual programs are in any case.
    random_state
        Seed of the tree of `cells`, of K-Means, of the search of `best`, and of the row of each
        person. From 2,000 rows on,
        `best` searches until its time ends: results then differ between runs. Choose `hilbert`
        where they must not.

    Attributes
    ----------
    class_of_
        Class of each fitted row, -1 where it is suppressed, shape (n,).
    n_classes_
        Number of classes.
    valid_rows_
        Indices of the published rows.
    deletion_ratio_
        Share of the rows that are suppressed.
    measures_
        Utility and privacy, see `anonymizer.algorithms.records.measures.Measures`.

    Notes
    -----
    `fit_transform` publishes the table: each row becomes the representative of its class, and a
    suppressed row becomes NaN. Rows mean what those of any table do: writings of one value are one
    value, a row without any quasi-identifier is no person and suppressed, and of the rows of a
    person one is drawn. The promise holds for its result, and is verified independently.
    `transform` maps single rows of any table: to the cell that contains them, otherwise to the
    class of the first equal row that was fitted, otherwise to the nearest representative. Use it
    to query a model that was trained on the published table.

    A fitted estimator, also in a pipeline that is stored, is as confidential as the table: it holds
    the values of every quasi-identifier and, except for `cells`, those of each row.
    """

    def __init__(
        self,
        model: str = CELLS.name,
        *,
        k: int = 5,
        d: int | None = None,
        l: int | None = None,  # noqa: E741  the field's name for it
        prefer_share: float = 1.0,
        share_price: float = SHARE_PRICE,
        method: str | None = None,
        time_budget: float = TIME_BUDGET_S,
        categorical: Selected = (),
        sensitive: Selected = (),
        bands: Mapping[Column, Sequence[float]] | None = None,
        untouched: Selected = (),
        missing: str | None = "?",
        random_state: Any = 0,  # noqa: ANN401  scikit-learn's own
        **criteria: Any,  # noqa: ANN401  see `_CRITERIA`
    ) -> None:
        self.model = model
        self.k = k
        self.d = d
        self.l = l
        self.prefer_share = prefer_share
        self.share_price = share_price
        self.method = method
        self.time_budget = time_budget
        self.categorical = categorical
        self.sensitive = sensitive
        self.bands = bands
        self.untouched = untouched
        self.missing = missing
        self.random_state = random_state
        if unknown := criteria.keys() - {each.name for each in _CRITERIA}:
            raise TypeError(f"Anonymizer() got an unexpected keyword argument {min(unknown)!r}")
        for each in _CRITERIA:
            setattr(self, each.name, criteria.get(each.name, _unstated(each)))

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  scikit-learn has no types
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(
        self,
        X: ArrayLike,  # noqa: N803  as everywhere in scikit-learn
        y: ArrayLike | None = None,
        person: ArrayLike | None = None,
    ) -> Self:
        """Form the classes of rows.

        Parameters
        ----------
        X
            Rows, shape (n, columns).
        y
            For `cells`: labels, numbers or predictions that a model will learn; rows may lack one.
            None: there is no target, and cells are only made small.
        person
            Person of each row: k counts persons. None: every row is of a different person.

        Raises
        ------
        ValueError
            If a parameter or column is invalid, or no partition of the table meets the criteria;
            the message says why.
        GuaranteeError
            If independent verification finds the promise broken.
        """
        self._form(X, y, person)
        return self

    def fit_transform(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike | None = None,
        person: ArrayLike | None = None,
    ) -> ColumnArray:
        """Form the classes of rows and return the published rows; see `fit`."""
        rows = self._form(X, y, person)
        return self.columns_.published(rows, self.class_of_, self.representatives_)

    def transform(self, X: ArrayLike) -> ColumnArray:  # noqa: N803
        """Return rows of any table with representatives in place of quasi-identifiers."""
        check_is_fitted(self)
        rows = rows_to_transform(self, X, may_lack=True)
        class_of = self._class_of(self.columns_.values(rows))
        return self.columns_.published(rows, class_of, self.representatives_)

    def _form(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike | None,
        person: ArrayLike | None,
    ) -> ColumnArray:
        rows = rows_to_learn_from(self, X, may_lack=True)
        seed = seed_of(self.random_state)
        plan = self._plan(seed)
        promise = plan.promise
        self.columns_, coded = code_rows(
            rows,
            names_of(self),
            categorical=self.categorical,
            sensitive=self.sensitive,
            untouched=self.untouched,
            bands=self.bands,
            marker=self.missing,
            table=X,
            person=person,
            seed=seed,
        )
        records, schema = coded.records, coded.schema
        if bounds_sensitive(promise) and not schema.sensitive:
            names = ", ".join(each.name for each in criteria_of(Of.SENSITIVE))
            raise ValueError(f"no column is sensitive, and bounds of {names} need one")
        with as_value_errors():
            unbanded = [a for a in schema.sensitive if a.name not in self._by_name(self.bands)]
            check_numbers(promise, schema.qis, unbanded)
            class_of = self._classes(coded, plan, y, rows)
        check_classes(records, schema, promise, class_of)
        self.class_of_ = np.full(len(rows), SUPPRESSED, np.int32)
        self.class_of_[coded.row] = class_of
        self.n_classes_ = int(class_of.max()) + 1
        self.representatives_ = representatives(records.qi, classes_of(class_of), schema)
        self.valid_rows_ = np.flatnonzero(self.class_of_ != SUPPRESSED)
        self.deletion_ratio_ = 1 - len(self.valid_rows_) / len(rows)
        self.measures_ = measure(records, schema, class_of)
        self.known_: dict[bytes, int] = {}
        if self.cells_ is None:
            values = self.columns_.values(rows[coded.row])
            for value, c in zip(values, class_of.tolist(), strict=True):
                self.known_.setdefault(value.tobytes(), c)
        return rows

    def _plan(self, seed: int) -> ReleasePlan:
        """Return the plan that the parameters ask for, checked as the options of a table are."""
        with as_value_errors():
            time_budget_s = real_number("time_budget", self.time_budget, 0)
            asked = TableOptions(
                qi=(),
                model=self.model,
                k=self.k,
                d=self.d,
                l=self.l,
                prefer_share=self.prefer_share,
                share_price=self.share_price,
                time_budget_s=time_budget_s,
                **{each.name: each.neutral for each in FURTHER if each.of is Of.SOURCE}
                | {each.name: getattr(self, each.name) for each in _CRITERIA}
                | {each.name: self._by_name(getattr(self, each.name)) for each in BY_NAME},
            )
            plan = replace(make_plan(asked), method=self.method or AUTO, seed=seed)
        model = MODELS[plan.model]
        if plan.method not in {AUTO, *model.methods}:
            raise ValueError(f"method of {self.model} must be one of {', '.join(model.methods)}")
        if plan.prefer_share == 0 or inf in {plan.time_budget_s, plan.share_price}:
            raise ValueError("prefer_share must be above 0, time_budget and share_price finite")
        check_cells_promise(plan.promise)
        model.check(plan.promise)
        return plan

    def _by_name(self, of: Mapping[Column, Any] | None) -> dict[str, Any]:
        names = names_of(self)
        return {names[j]: each for j, each in by_place(of, names).items()}

    def _classes(
        self,
        coded: CodedTable,
        plan: ReleasePlan,
        y: ArrayLike | None,
        rows: ColumnArray,
    ) -> Int32Array:
        model, n = MODELS[plan.model], coded.records.n
        self.cells_: TreeCells | None = None
        method = model.method_name(plan.method, n=n, time_budget_s=plan.time_budget_s)
        plan = replace(plan, method=method)
        if plan.prefer_share < 1 and not searches(plan.method):
            raise ValueError(f"method {plan.method} knows no prefer_share; best does")
        warm_up(plan.method, coded.schema, plan.promise)
        if model.learns:
            model = replace(model, methods={plan.method: self._tree(coded, y, rows)})
        formed = form_classes(
            TextTable(TABLE, coded.open),
            coded,
            plan,
            former_of(plan, coded.schema, model),
            clock=time.monotonic,
            progress=lambda *_: None,
        )
        return formed.class_of

    def _tree(self, coded: CodedTable, y: ArrayLike | None, rows: ColumnArray) -> Method:
        """Return the method of `cells` for a target, which remembers the cells of its tree."""
        target = None if y is None else target_of(y, rows)
        record_of = np.argsort(coded.records.person)  # each is a person of its own

        def tree(task: Task) -> Int32Array:
            own = None
            if target is not None:
                own = target.only(coded.row[record_of[task.records.person]])
            schema, k, seed = task.former.schema, task.former.promise.k, task.former.seed
            grown = grow(task.records, schema, own, min_leaf=k, seed=seed)
            self.cells_ = prune(grown, task.problem)
            return self.cells_.class_of

        return tree

    def _class_of(self, values: FloatArray) -> Int32Array:
        if self.cells_ is not None:
            return self.cells_.assign(values)
        qis = self.columns_.schema.qis
        tree = KDTree(encode(self.representatives_, qis))
        _, nearest = tree.query(encode(values, qis))
        class_of = np.asarray(nearest, np.int32)
        for i, value in enumerate(values):
            class_of[i] = self.known_.get(value.tobytes(), class_of[i])
        return class_of


def _signature() -> Signature:
    """Return the parameters of an estimator, as scikit-learn reads them: criteria are some."""
    *given, _ = signature(Anonymizer.__init__).parameters.values()
    further = [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=_unstated(each)) for each in _CRITERIA
    ]
    return Signature([*given, *further])


Anonymizer.__init__.__dict__["__signature__"] = _signature()
