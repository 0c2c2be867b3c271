"""Equivalence classes as a scikit-learn transformer."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree
from sklearn.utils.validation import check_is_fitted

from anonymizer.algorithms.cells.pruning import Cells, cells
from anonymizer.algorithms.cells.representatives import representatives
from anonymizer.algorithms.cells.tree_features import encode
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.criteria import why_impossible
from anonymizer.algorithms.records.measures import measure
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.promises import Promise, bounded_shares, check_cells_promise
from anonymizer.domain.records import Records
from anonymizer.errors import GuaranteeError
from anonymizer.estimators.data_frames import (
    Column,
    ColumnArray,
    RowTransformer,
    learn_columns,
    names_of,
    rows_to_learn_from,
    rows_to_transform,
    seed_of,
    target_of,
)
from anonymizer.estimators.models import MODELS, Task


class Anonymizer(RowTransformer):
    """Replaces the quasi-identifiers of rows by representatives of their equivalence classes.

    Every column is a quasi-identifier unless it is said to be something else.

    Parameters
    ----------
    model
        `kd`, `kld`, `kaca` or `cells`. Cells follow the target: they keep what a model learns.
    k
        Distinct persons of a class.
    d, l
        Distinct values of every quasi-identifier and every sensitive attribute in a class; None:
        2 and 1 for `kd`, 2 and 2 for `kld`, else 1 and 1.
    entropy_l, t
        See `anonymizer.domain.promises.Promise`.
    max_share
        Share of a class that may have one value of a quasi-identifier; None: 0.995 where d is 2 or
        more. No two columns are of one source here, so that there is no tuple to be bounded.
    method
        `hilbert`, `mondrian` or `best` for `kd` and `kld`, `fast` or `kmeans` for `kaca`; None:
        the first. Cells have but one.
    time_budget
        Seconds that `best` may search for classes that lose less.
    categorical
        Columns of categories, by index or name; all others are numbers.
    sensitive
        Columns that are to be diverse within a class. They are left as they are.
    bands
        By sensitive column, the rising edges of bands: numbers of one band are one value. Without,
        14.1 and 14.2 are two values, which is seldom what is meant.
    untouched
        Columns that are neither.
    missing
        The category that means "missing" and is no value where values are counted.
    random_state
        Of the tree of `cells` and the search of `best`; the other methods leave nothing to
        chance. A search that its time ends is no longer the same at each run.

    Attributes
    ----------
    class_of_
        Class of each row that was fitted, -1 where it is suppressed, shape (n,).
    n_classes_
        Number of classes.
    valid_rows_
        Indices of the rows that are published.
    deletion_ratio_
        Share of the rows that are suppressed.
    measures_
        Utility and privacy, see `anonymizer.algorithms.records.measures.Measures`.

    Notes
    -----
    `fit_transform` publishes the table: every row by the class it was put in, one that is
    suppressed as nothing but NaN. The promise holds for its result, and was verified by
    independent code. `transform` answers for rows one by one, whatever the table: by the cell they
    lie in, else as the first equal row that was fitted, else by the nearest representative. It
    serves to ask a model that has learned from what was published.

    But for `cells`, a fitted one remembers the quasi-identifiers of its rows, to know them again:
    it is as confidential as the table.
    """

    def __init__(
        self,
        model: str = "cells",
        *,
        k: int = 5,
        d: int | None = None,
        l: int | None = None,  # noqa: E741  the field's name for it
        entropy_l: float = 1.0,
        t: float = inf,
        max_share: float | None = None,
        method: str | None = None,
        time_budget: float = 20.0,
        categorical: Sequence[Column] = (),
        sensitive: Sequence[Column] = (),
        bands: Mapping[Column, Sequence[float]] | None = None,
        untouched: Sequence[Column] = (),
        missing: str | None = "?",
        random_state: Any = 0,  # noqa: ANN401  scikit-learn's own
    ) -> None:
        self.model = model
        self.k = k
        self.d = d
        self.l = l
        self.entropy_l = entropy_l
        self.t = t
        self.max_share = max_share
        self.method = method
        self.time_budget = time_budget
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
        """Form the classes of rows.

        Parameters
        ----------
        X
            Rows, shape (n, columns).
        y
            What a model is to learn from them, for `cells`: labels, numbers, or predictions. None:
            cells are only to be small.
        person
            Whose row each is: k counts persons. None: each is a person's only one.

        Raises
        ------
        ValueError
            If a parameter or column is not as it should be, or the table as a whole cannot keep
            the promise: the message says why.
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
        """Form the classes of rows and return what is published of them; see `fit`."""
        rows = self._form(X, y, person)
        return self.columns_.published(rows, self.class_of_, self.representatives_)

    def transform(self, X: ArrayLike) -> ColumnArray:  # noqa: N803
        """Return rows, of any table, with representatives for quasi-identifiers."""
        check_is_fitted(self)
        rows = rows_to_transform(self, X)
        class_of = self._class_of(self.columns_.values(rows))
        return self.columns_.published(rows, class_of, self.representatives_)

    def _form(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike | None,
        person: ArrayLike | None,
    ) -> ColumnArray:
        promise = self._promise()
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
        schema = self.columns_.schema
        if promise.l > 1 and not schema.sensitive:
            raise ValueError(f"l = {promise.l}, but no column is sensitive")
        records = self.columns_.records(rows, person)
        if reason := why_impossible(make_problem(records, schema, promise), schema):
            raise ValueError(f"the promise cannot be kept: {reason}")
        self.class_of_ = self._classes(records, promise, y, rows)
        if verify_classes(records, schema, promise, self.class_of_):
            raise GuaranteeError("the classes do not keep the promise")
        self.n_classes_ = int(self.class_of_.max()) + 1
        self.representatives_ = representatives(records.qi, classes_of(self.class_of_), schema)
        self.valid_rows_ = np.flatnonzero(self.class_of_ != SUPPRESSED)
        self.deletion_ratio_ = 1 - len(self.valid_rows_) / len(rows)
        self.measures_ = measure(records, schema, self.class_of_)
        return rows

    def _promise(self) -> Promise:
        if self.model == "cells":
            d, l, methods = 1, 1, ["tree"]  # noqa: E741
        elif self.model in MODELS:
            model = MODELS[self.model]
            d, l, methods = model.d, model.l, list(model.methods)  # noqa: E741
        else:
            raise ValueError(f"model must be one of cells, {', '.join(MODELS)}")
        if self.method not in (None, *methods):
            raise ValueError(f"method of {self.model} must be one of {', '.join(methods)}")
        if not 0 <= self.time_budget < inf:
            raise ValueError("time_budget must be a number of seconds, 0 or more")
        d = d if self.d is None else self.d
        promise = Promise(
            k=self.k,
            d=d,
            l=l if self.l is None else self.l,
            max_share=bounded_shares(d, self.max_share)[0],
            entropy_l=self.entropy_l,
            t=self.t,
        )
        check_cells_promise(promise)
        return promise

    def _classes(
        self, records: Records, promise: Promise, y: ArrayLike | None, rows: ColumnArray
    ) -> Int32Array:
        schema = self.columns_.schema
        self.cells_: Cells | None = None
        self.known_: dict[bytes, int] = {}
        seed = seed_of(self.random_state)
        if self.model == "cells":
            target, numeric = (None, False) if y is None else target_of(y, rows)
            self.cells_ = cells(records, schema, promise, target=target, numeric=numeric, seed=seed)
            return self.cells_.class_of
        methods = MODELS[self.model].methods
        class_of = methods[self.method or next(iter(methods))](
            Task(records, schema, promise, seed, self.time_budget)
        )
        for value, c in zip(self.columns_.values(rows), class_of.tolist(), strict=True):
            self.known_.setdefault(value.tobytes(), c)
        return class_of

    def _class_of(self, values: FloatArray) -> Int32Array:
        if self.cells_ is not None:
            return self.cells_.assign(values)
        if not self.n_classes_:
            return np.full(len(values), SUPPRESSED, np.int32)
        qis = self.columns_.schema.qis
        tree = KDTree(encode(self.representatives_, qis))
        _, nearest = tree.query(encode(values, qis))
        class_of = np.asarray(nearest, np.int32)
        for i, value in enumerate(values):
            class_of[i] = self.known_.get(value.tobytes(), class_of[i])
        return class_of
