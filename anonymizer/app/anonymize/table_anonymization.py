"""Anonymization of a table: coding, classes, verification, generalization, report."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kaca.features import Feature
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import above_their_bound, why_impossible
from anonymizer.algorithms.records.methods import (
    AUTO,
    MODELS,
    Model,
    Task,
    TimeBudget,
    searches,
    warm_up,
)
from anonymizer.algorithms.records.ordering import arranged
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.app.anonymize.class_labels import Labelling, joined, labelling_of, n_faulty
from anonymizer.app.anonymize.plan import Plan, with_bands
from anonymizer.app.anonymize.publication import CLASS_COLUMN, Publication, publish
from anonymizer.app.anonymize.release_report import AnonymizeReport, CostName
from anonymizer.app.anonymize.report_figures import HALF, report_of, settings_of, warnings_of
from anonymizer.app.anonymize.statistics import measured, with_summaries
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import check_cells_promise
from anonymizer.domain.records import Schema
from anonymizer.errors import GuaranteeError, InputError, SettingsError
from anonymizer.files.coded_table import CodedTable, Declared, code_table
from anonymizer.files.tables import Table

Progress: TypeAlias = Callable[[str, float, float | None], None]
"""Called with the step, the seconds it has taken so far, and the information loss so far."""
MOST_CLASSES = 100
"""Largest number of values of a target."""
COSTS: dict[CostName, Cost] = {"range": Cost.RANGE, "set": Cost.SET, "taxonomy": Cost.TAXONOMY}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Anonymized:
    """A verified release, and the report on it."""

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
        Models by name.
    clock
        Returns seconds that never go back.
    progress
        Called regularly; the information loss is None in steps that have none.

    Raises
    ------
    InputError
        If the table does not match its declaration, or cannot meet the criteria.
    SettingsError
        If the plan does not match the declaration.
    GuaranteeError
        If independent verification finds that a class does not meet the criteria.
    """
    steps = _Steps(clock, progress)
    with steps.timed("code"):
        coded = with_bands(code_table(table, declared), plan.bands)
        model = model_of(plan, coded.schema, models)
        if plan.target is not None:
            check_target(plan.target, coded.open.columns, lambda name: coded.open[name].n_unique())
        plan = _with_method(plan, model, coded.records.n)
        labelling = labelling_of(coded.schema, declared, plan.labels, plan.language)
        measure = measured(table, declared, plan.measures)[coded.row]
    with steps.timed("compile"):
        warm_up(plan.method, coded.schema, plan.promise)
    with steps.timed("partition"):
        class_of, in_time = _partition(
            table, coded, plan, model, steps, features=labelling.features
        )
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
            share=plan.prefer_share if plan.prefer_share < 1 else HALF,
            warnings=warnings_of(coded, declared, plan, in_time=in_time, n_withheld=n_withheld),
        )
    return Anonymized(publication, report.model_copy(update={"seconds": dict(steps.seconds)}))


class _Steps:
    """Times the steps and reports progress."""

    def __init__(
        self,
        clock: Callable[[], float],
        progress: Progress,
    ) -> None:
        self.seconds: dict[str, float] = {}
        self.clock, self._progress = clock, progress
        self._name, self._began = "", 0.0
        self._loss: float | None = None

    def timed(self, name: str) -> "_Steps":
        self._name, self._loss = name, None
        return self

    def __enter__(self) -> None:
        self._began = self.clock()
        self.report()

    def __exit__(self, *exc_info: object) -> None:
        self.seconds[self._name] = round(self.used_s(), 3)

    def used_s(self) -> float:
        return self.clock() - self._began

    def report(self, loss: float | None = None) -> None:
        self._loss = self._loss if loss is None else loss
        self._progress(self._name, self.used_s(), self._loss)


def model_of(plan: Plan, schema: Schema, models: Mapping[str, Model] = MODELS) -> Model:
    """Return the model of a plan, after checking that plan, model and table go together.

    Raises
    ------
    SettingsError
        If they do not.
    """
    if plan.model not in models:
        raise SettingsError(f"model: must be one of {', '.join(models)}")
    model = models[plan.model]
    if plan.method not in {AUTO, *model.methods}:
        raise SettingsError(f"model {plan.model}: method must be one of {', '.join(model.methods)}")
    if model.needs_sensitive and not schema.sensitive:
        raise SettingsError(f"model {plan.model} needs a sensitive attribute")
    promise = plan.promise
    if not schema.sensitive and (promise.l > 1 or promise.entropy_l > 1 or isfinite(promise.t)):
        raise SettingsError("l, entropy-l and t need a sensitive attribute: name one with --sa")
    numeric = [qi.name for qi in schema.qis if qi.numeric]
    if astray := [name for name in plan.promise.min_spread if name not in numeric]:
        raise SettingsError(f"min-spread: {astray[0]} is not a numeric quasi-identifier")
    if not model.has_labels and (plan.labels or plan.measures):
        option = "label" if plan.labels else "measure"
        raise SettingsError(f"{option}: not available for model {plan.model}")
    if plan.model == "cells":
        _check_cells(plan)
    elif plan.target is not None:
        raise SettingsError(f"target: not available for model {plan.model}")
    return model


def _check_cells(plan: Plan) -> None:
    try:
        check_cells_promise(plan.promise)
    except ValueError as error:
        raise SettingsError(f"model cells: {error}") from error


def check_target(target: str, open_: Sequence[str], n_values: Callable[[str], int]) -> None:
    """Check the target of `cells`.

    Parameters
    ----------
    open_
        Sensitive attributes and kept columns.
    n_values
        Returns the number of values of one of them.

    Raises
    ------
    SettingsError
        If it is none of these, or has too many values.
    """
    if target not in open_:
        raise SettingsError("target: must be a sensitive attribute or a kept column")
    if n_values(target) > MOST_CLASSES:
        raise SettingsError(f"target: has more than {MOST_CLASSES} values")


def _with_method(plan: Plan, model: Model, n: int) -> Plan:
    """Return the plan with the name of the method that `auto` stands for."""
    name = model.method_name(plan.method, n=n, time_budget_s=plan.time_budget_s)
    if plan.prefer_share < 1 and not searches(name):
        raise SettingsError(f"prefer-share: method {name} knows no soft goal; best does")
    return replace(plan, method=name)


def _partition(
    table: Table,
    coded: CodedTable,
    plan: Plan,
    model: Model,
    steps: _Steps,
    *,
    features: Sequence[Feature],
) -> tuple[Int32Array, bool]:
    """Return the class of each record, and whether the method ended within its time budget."""
    time_left = TimeBudget(plan.time_budget_s, steps.clock)
    order = arranged(coded.records, coded.open_code)
    records = coded.records.only(order)
    problem = make_problem(records, coded.schema, plan.promise, cost=COSTS[plan.cost])
    reason = why_impossible(problem, coded.schema)
    if reason is not None:
        raise InputError(f"{table.path}: the promise cannot be kept: {reason}")

    def reported_time_left() -> float:
        steps.report()
        return time_left()

    task = Task(
        records=records,
        schema=coded.schema,
        promise=plan.promise,
        problem=problem,
        dm_weight=plan.dm_weight,
        prefer_share=plan.prefer_share,
        share_price=plan.share_price,
        time_left=reported_time_left,
        progress=steps.report,
        seed=plan.seed,
        target=None
        if plan.target is None
        else coded.open_code[order, coded.open.columns.index(plan.target)],
        features=features,
    )
    found = model.methods[plan.method](task)
    if not (found != SUPPRESSED).any():
        above = ", ".join(above_their_bound(problem, coded.schema))
        why = f": {above}" if above else ""
        raise InputError(f"{table.path}: no class that keeps the promise was found{why}")
    class_of = np.empty(coded.records.n, np.int32)
    class_of[order] = found
    return class_of, not time_left.ended_search


def _check_labels(
    table: Table, coded: CodedTable, publication: Publication, plan: Plan, labelling: Labelling
) -> None:
    """Read the labels of each class back from the rows to be published, and verify them."""
    first = np.unique(publication.frame[CLASS_COLUMN].to_numpy(), return_index=True)[1]
    columns = [publication.frame[qi.name].gather(first).to_list() for qi in coded.schema.qis]
    faults = n_faulty(coded, publication.class_of, columns, plan.promise.k, labelling)
    if faults:
        raise GuaranteeError(
            f"{table.path}: {faults} labels do not cover their class, or it is below k: "
            "nothing is published"
        )
