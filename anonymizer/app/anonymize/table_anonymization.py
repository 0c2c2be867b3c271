"""A table through coding, classes, verification and generalization."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kaca.features import Feature
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import why_impossible
from anonymizer.algorithms.records.local_search import warm_up
from anonymizer.algorithms.records.ordering import arranged
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.app.anonymize.class_labels import Labelling, joined, labelling_of, n_faulty
from anonymizer.app.anonymize.models import MODELS, Method, Model, Task
from anonymizer.app.anonymize.plan import Plan, with_bands
from anonymizer.app.anonymize.publication import CLASS_COLUMN, Publication, publish
from anonymizer.app.anonymize.release_report import AnonymizeReport, CostName
from anonymizer.app.anonymize.report_figures import report_of, settings_of, warnings_of
from anonymizer.app.anonymize.statistics import measured, with_summaries
from anonymizer.domain.arrays import Int32Array
from anonymizer.errors import GuaranteeError, InputError, SettingsError
from anonymizer.files.coded_table import CodedTable, Declared, code_table
from anonymizer.files.tables import Table

Progress: TypeAlias = Callable[[str, float, float | None], None]
"""Told the step, the seconds that it has taken, and the information loss so far."""
MOST_CLASSES = 100
"""Values of a target: with more it is no class."""
COSTS: dict[CostName, Cost] = {"range": Cost.RANGE, "set": Cost.SET, "taxonomy": Cost.TAXONOMY}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Anonymized:
    """A release that has been verified, and the report on it."""

    publication: Publication
    report: AnonymizeReport


def anonymize(
    table: Table,
    declared: Declared,
    plan: Plan,
    *,
    models: Mapping[str, Model] = MODELS,
    clock: Callable[[], float] = time.monotonic,
    progress: Progress = lambda _step, _used_s, _loss: None,
) -> Anonymized:
    """Anonymize a table.

    Parameters
    ----------
    models
        What `plan.model` names.
    clock
        Tells seconds that never go back.
    progress
        Told now and then the step, the seconds that it has taken, and the information loss so
        far where there is one.

    Raises
    ------
    InputError
        If the table is not as declared, or cannot keep the promise.
    SettingsError
        If the plan and what is declared do not go together.
    GuaranteeError
        If a class does not keep the promise when independent code looks at it.
    """
    steps = _Steps(clock, progress)
    with steps.timed("code"):
        coded = with_bands(code_table(table, declared), plan.bands)
        model = _model(plan, coded, models)
        labelling = labelling_of(coded.schema, declared, plan.labels, plan.language)
        measure = measured(table, declared, plan.measures)[coded.row]
    if plan.method == "best":
        with steps.timed("compile"):
            warm_up(coded.schema, plan.promise)
    with steps.timed("partition"):
        method = model.methods[plan.method]
        class_of, in_time = _partition(table, coded, plan, method, steps, how=labelling.features)
        if model.has_labels:
            class_of = joined(coded, class_of, COSTS[plan.cost], labelling)
    with steps.timed("verify"):
        broken = verify_classes(coded.records, coded.schema, plan.promise, class_of)
        if broken:
            raise GuaranteeError(
                f"{table.path}: {len(broken)} breaches of the promise were found in the classes: "
                "nothing is published"
            )
    with steps.timed("generalize"):
        publication, n_withheld = publish(coded, class_of, COSTS[plan.cost], labelling), 0
        if model.has_labels:
            _check_labels(table, coded, publication, plan, labelling)
            frame, n_withheld = with_summaries(
                publication, coded, measure, plan.measures, k=plan.promise.k
            )
            publication = replace(publication, frame=frame)
    with steps.timed("measure"):
        report = report_of(
            coded,
            publication.class_of,
            promise=plan.promise,
            settings=settings_of(table, declared, plan),
            warnings=warnings_of(coded, declared, plan, in_time=in_time, n_withheld=n_withheld),
        )
    return Anonymized(publication, report.model_copy(update={"seconds": dict(steps.seconds)}))


class _Steps:
    """Times each step, and tells how it goes."""

    def __init__(
        self,
        clock: Callable[[], float],
        progress: Progress,
    ) -> None:
        self.seconds: dict[str, float] = {}
        self._clock, self._progress = clock, progress
        self._name, self._began = "", 0.0
        self._loss: float | None = None

    def timed(self, name: str) -> "_Steps":
        self._name, self._loss = name, None
        return self

    def __enter__(self) -> None:
        self._began = self._clock()
        self.tell()

    def __exit__(self, *exc_info: object) -> None:
        self.seconds[self._name] = round(self.used_s(), 3)

    def used_s(self) -> float:
        return self._clock() - self._began

    def tell(self, loss: float | None = None) -> None:
        self._loss = self._loss if loss is None else loss
        self._progress(self._name, self.used_s(), self._loss)


def _model(plan: Plan, coded: CodedTable, models: Mapping[str, Model]) -> Model:
    """Return the model of a plan that fits it and the table."""
    if plan.model not in models:
        raise SettingsError(f"model: must be one of {', '.join(models)}")
    model = models[plan.model]
    if plan.method not in model.methods:
        raise SettingsError(f"model {plan.model}: method must be one of {', '.join(model.methods)}")
    if model.needs_sensitive and not coded.schema.sensitive:
        raise SettingsError(f"model {plan.model} needs a sensitive attribute")
    numeric = [qi.name for qi in coded.schema.qis if qi.numeric]
    if astray := [name for name in plan.promise.min_spread if name not in numeric]:
        raise SettingsError(f"min-spread: {astray[0]} is no numeric quasi-identifier")
    if not model.has_labels and (plan.labels or plan.measures):
        option = "label" if plan.labels else "measure"
        raise SettingsError(f"{option}: model {plan.model} has none")
    if plan.target is not None:
        if plan.model != "cells":
            raise SettingsError(f"target: model {plan.model} does not look at one")
        if plan.target not in coded.open.columns:
            raise SettingsError("target: must be a sensitive attribute or a kept column")
        if coded.open[plan.target].n_unique() > MOST_CLASSES:
            raise SettingsError(f"target: has more than {MOST_CLASSES} values")
    return model


def _partition(
    table: Table,
    coded: CodedTable,
    plan: Plan,
    method: Method,
    steps: _Steps,
    *,
    how: Sequence[Feature],
) -> tuple[Int32Array, bool]:
    """Return the class of each record, and whether the method came to an end by itself."""
    order = arranged(coded.records, coded.open_code)
    records = coded.records.only(order)
    problem = make_problem(records, coded.schema, plan.promise, cost=COSTS[plan.cost])
    reason = why_impossible(problem, coded.schema)
    if reason is not None:
        raise InputError(f"{table.path}: the promise cannot be kept: {reason}")
    in_time, began_s = True, steps.used_s()

    def left() -> float:
        return max(plan.time_budget_s - steps.used_s(), 0) / max(plan.time_budget_s - began_s, 1e-9)

    def keep_going() -> bool:
        nonlocal in_time
        steps.tell()
        in_time &= steps.used_s() < plan.time_budget_s
        return in_time

    task = Task(
        records=records,
        schema=coded.schema,
        promise=plan.promise,
        problem=problem,
        dm_weight=plan.dm_weight,
        keep_going=keep_going,
        left=left,
        progress=steps.tell,
        seed=plan.seed,
        target=None
        if plan.target is None
        else coded.open_code[order, coded.open.columns.index(plan.target)],
        how=how,
    )
    found = method(task)
    if not (found != SUPPRESSED).any():
        raise InputError(f"{table.path}: no class that was found keeps the promise")
    class_of = np.empty(coded.records.n, np.int32)
    class_of[order] = found
    return class_of, in_time


def _check_labels(
    table: Table, coded: CodedTable, publication: Publication, plan: Plan, labelling: Labelling
) -> None:
    """Read the labels of each class back from the rows that are to leave."""
    first = np.unique(publication.frame[CLASS_COLUMN].to_numpy(), return_index=True)[1]
    columns = [publication.frame[qi.name].gather(first).to_list() for qi in coded.schema.qis]
    faults = n_faulty(coded, publication.class_of, columns, plan.promise.k, labelling)
    if faults:
        raise GuaranteeError(
            f"{table.path}: {faults} labels do not cover their class, or it is below k: "
            "nothing is published"
        )
