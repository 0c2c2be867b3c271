"""Verified classes of a configuration, formed as for a table or as in the gateway.

The classes of a stream are formed as the gateway forms them, window by window.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from anonymizer.algorithms.cells.pruning import prune
from anonymizer.algorithms.cells.tree import Grown, grow
from anonymizer.algorithms.models.model import Model
from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.class_methods import warm_up
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of, without_gaps
from anonymizer.algorithms.records.criteria import why_impossible
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.methods import AUTO, TIME_BUDGET_S, searches
from anonymizer.algorithms.records.problem import Problem, make_problem
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.algorithms.records.verification import check_classes
from anonymizer.app.anonymize.class_forming import work_in
from anonymizer.app.tuning.bench import Bench, Window
from anonymizer.app.tuning.model_score import score_of_release
from anonymizer.app.tuning.space import MINIMIZER
from anonymizer.app.tuning.time_shares import RowTime
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.criteria.registry import CRITERIA
from anonymizer.domain.promises import Promise
from anonymizer.pipeline.records.cells_model import target_of
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.window_models import WINDOW_MODELS


def has_search(bench: Bench, model: str) -> bool:
    """Return whether the configurations of a model search, and so can use more time."""
    n = min((window.records.n for window in bench.windows), default=0)
    return model != MINIMIZER and searches(method_of(bench, MODELS[model], n))


def prepare(bench: Bench, models: Iterable[str]) -> None:
    """Compile the kernels of searches, so that this is not counted as time of a configuration."""
    promise = bench.promise(k=2, d=2, l=1, qis=[])
    for model in models:
        if has_search(bench, model):
            warm_up(method_of(bench, MODELS[model], 0), bench.schema, promise)


def method_of(bench: Bench, model: Model, n: int) -> str:
    """Return the method for a window of n records."""
    if bench.stream is None:
        return model.method_name(AUTO, n=n, time_budget_s=TIME_BUDGET_S)
    settings = bench.stream.settings
    same = MODELS[settings.model].forms_classes_like(model)
    method = settings.method if same else AUTO
    return model.method_name(method, n=n, time_budget_s=settings.budget_s)


def verify(bench: Bench, promise: Promise, class_of: Int32Array, *, window: int = 0) -> None:
    """Raise `GuaranteeError` if the classes of a window do not keep the promise."""
    check_classes(bench.windows[window].records, bench.schema, promise, class_of)


def for_part(promise: Promise, share: float) -> Promise:
    """Return a promise for a part of the records whose classes are like those of all.

    k is a number of persons: in a part, so many would be a larger share of them, and classes would
    be coarser than those that are published. It is scaled, but never below 2, and never below the
    values that a class must have.
    """
    values = [getattr(promise, each.name) for each in CRITERIA if each.counts_values]
    return replace(promise, k=min(promise.k, max(2, round(promise.k * share), *map(ceil, values))))


def bytes_of(class_of: Sequence[Int32Array]) -> bytes:
    """Return bytes that are the same if the classes of all windows are."""
    return b"".join(of.tobytes() for of in class_of)


@dataclass(slots=True)
class FoldRecords:
    """All records, or those of one fold, and what the configurations of a row share of them."""

    bench: Bench
    grown: dict[tuple[int, str | None], list[Grown]] = field(default_factory=dict)
    """The tree of each window, by k and what it learned."""
    score_of: dict[bytes, float | None] = field(default_factory=dict)
    """Scores by classes: equal classes give equal ones."""

    def trees(self, promise: Promise, model: Model) -> Sequence[Grown]:
        """Return the tree of each window, with leaves of k records."""
        k, learned = promise.k, None
        if self.bench.stream is not None:
            learned = _served(self.bench, promise, model).settings.learned
        if (k, learned) not in self.grown:
            windows = self.bench.windows
            self.grown[k, learned] = [_grown(self.bench, each, k, learned) for each in windows]
        return self.grown[k, learned]


@dataclass(slots=True)
class WindowFormer:
    """Forms the classes of one configuration, window by window."""

    promise: Promise
    model: Model
    row_time: RowTime
    n_configurations: int
    """Number of them left in the row, this one included."""
    n_windows: int
    """Number of windows of a configuration, those of its folds included."""
    n_formed: int = 0
    """Number of windows that are done."""
    cut_short: bool = False

    def release(self, part: FoldRecords) -> tuple[list[Int32Array] | None, str | None]:
        """Return the verified class of each record by window, or why no window has any."""
        bench = part.bench
        trees: Sequence[Grown | None] = [None] * len(bench.windows)
        if self.model.learns:
            trees = part.trees(self.promise, self.model)
        found = [self._classes(bench, i, tree) for i, tree in enumerate(trees)]
        reasons = [why for _, why in found]
        return (None, reasons[0]) if None not in reasons else ([of for of, _ in found], None)

    def fold_score(self, part: FoldRecords, *, of: int) -> float | None:
        """Return the score of the release of a fold of n records, or None if it has none."""
        with self._promising(for_part(self.promise, part.bench.n / of)):
            class_of, _ = self.release(part)
        if class_of is None:
            return None
        same = bytes_of(class_of)
        if same not in part.score_of:
            part.score_of[same] = score_of_release(part.bench, class_of)
        return part.score_of[same]

    @contextmanager
    def _promising(self, promise: Promise) -> Iterator[None]:
        whole, self.promise = self.promise, promise
        try:
            yield
        finally:
            self.promise = whole

    def _classes(self, bench: Bench, i: int, tree: Grown | None) -> tuple[Int32Array, str | None]:
        """Return the verified class of each record of window i, or why there are none."""
        promise, records = self.promise, bench.windows[i].records
        problem = make_problem(records, bench.schema, promise)
        why = why_impossible(problem, bench.schema) or _why_not_served(bench, promise, self.model)
        if why is not None:
            return np.full(records.n, SUPPRESSED, np.int32), why
        class_of = prune(tree, problem).class_of if tree else self._formed(bench, i, problem)
        verify(bench, promise, class_of, window=i)
        return class_of, None

    def _formed(self, bench: Bench, i: int, problem: Problem) -> Int32Array:
        window, began_s = bench.windows[i], self.row_time.clock()
        method = method_of(bench, self.model, window.records.n)
        form = self._in_a_table if bench.stream is None else self._in_a_stream
        class_of = form(bench, window, problem, method)
        self.n_formed += 1
        if searches(method):
            self.row_time.searched_s += self.row_time.clock() - began_s
        return class_of

    def _in_a_table(
        self, bench: Bench, window: Window, problem: Problem, method: str
    ) -> Int32Array:
        work = None
        if searches(method):
            work = work_in(min(TIME_BUDGET_S, self.row_time.search_s), problem)

        def note(used: int) -> None:
            self.cut_short |= work is not None and used >= work

        former = Former(
            schema=bench.schema,
            promise=self.promise,
            model=self.model,
            method=method,
            seed=bench.seed,
        )
        return former.classes(window.records, problem, work=work, spent=note)

    def _in_a_stream(
        self, bench: Bench, window: Window, _problem: Problem, _method: str
    ) -> Int32Array:
        assert bench.stream is not None  # noqa: S101  the caller has seen to it
        time_left = self.row_time.search_budget(
            bench.stream.settings.budget_s,
            n_configurations=self.n_configurations,
            n_searches=self.n_configurations * self.n_windows - self.n_formed,
        )
        served = _served(bench, self.promise, self.model)
        class_of = _as_the_gateway(served, window, time_left, bench.seed)
        self.cut_short |= time_left.ended_search
        return class_of


def _why_not_served(bench: Bench, promise: Promise, model: Model) -> str | None:
    """Return why no stream can have a promise, or None if one can; see `StreamSettings`."""
    try:
        model.check(promise)
    except ValueError as error:
        return str(error)
    if bench.stream is None or not model.learns:
        return None
    settings = _served(bench, promise, model).settings
    sensitive = {attribute.name for attribute in bench.schema.sensitive}
    if settings.learned in sensitive and not settings.promise.bounds_sensitive:
        return f"{settings.learned} is sensitive and the target of the tree: l must be 2 or more"
    return None


def _served(bench: Bench, promise: Promise, model: Model) -> Stream:
    """Return the stream of a bench with another promise and model."""
    stream = bench.stream
    assert stream is not None  # noqa: S101  the caller has seen to it
    names = {attribute.name for attribute in (*bench.schema.qis, *bench.schema.sensitive)}
    same = MODELS[stream.settings.model].forms_classes_like(model)
    asked = {"k": promise.k, "d": promise.d, "l": promise.l}
    changes = {
        "model": model.name,
        "method": stream.settings.method if same else AUTO,
        "attributes": tuple(a for a in stream.settings.attributes if a.name in names),
        "promise": stream.settings.promise.model_copy(update=asked),
    }
    settings = stream.settings.model_copy(update=changes)
    return replace(stream, settings=settings, schema=bench.schema, promise=promise)


def _as_the_gateway(
    stream: Stream, window: Window, time_left: Callable[[], float], seed: int
) -> Int32Array:
    """Return the class of each record as the gateway would publish them."""
    model, records = WINDOW_MODELS[stream.settings.model](stream), window.records
    measures = _codes(stream, window)[:, len(stream.schema.sensitive) :]
    class_of = model.joined(
        records, model.classes(records, measures, time_left=time_left, seed=seed)
    )
    values = model.generalized(records, classes_of(class_of))
    rejected = [*model.rejected(records, class_of, values)]
    return without_gaps(np.where(np.isin(class_of, rejected), np.int32(SUPPRESSED), class_of))


def _grown(bench: Bench, window: Window, k: int, learned: str | None) -> Grown:
    target = None
    if bench.stream is not None:
        attributes = (*bench.stream.schema.sensitive, *bench.stream.measures)
        target = target_of(attributes, learned, _codes(bench.stream, window))
    elif bench.is_regression:
        target = ModelTarget(bench.labels[window.target], is_numeric=True)
    elif bench.has_target:
        target = ModelTarget(window.target)
    return grow(window.records, bench.schema, target, min_leaf=k, seed=bench.seed)


def _codes(stream: Stream, window: Window) -> Int32Array:
    """Return the codes of sensitive attributes and measures, 0 in measures but the target."""
    measures = [
        window.target if measure.name == stream.settings.target else np.zeros_like(window.target)
        for measure in stream.measures
    ]
    return np.column_stack([window.records.sensitive, *measures])
