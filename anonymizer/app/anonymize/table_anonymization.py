"""Anonymization of a table: coding, classes, verification, generalization, report."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from anonymizer.algorithms.models.model import Model
from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.criteria import ROUNDING
from anonymizer.algorithms.records.methods import AUTO, searches, weighs
from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.anonymize.class_forming import form_classes, former_of
from anonymizer.app.anonymize.class_labels import joined, labelling_of
from anonymizer.app.anonymize.one_row_each import one_row_each
from anonymizer.app.anonymize.plan import ReleasePlan, with_bands
from anonymizer.app.anonymize.publication import Publication, publish
from anonymizer.app.anonymize.statistics import measured, with_summaries
from anonymizer.domain.criteria.criterion import Of
from anonymizer.domain.criteria.registry import criteria_of, named
from anonymizer.domain.promises import bounds_sensitive, check_numbers
from anonymizer.domain.records import Schema
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_table import Declared, code_table
from anonymizer.files.tables import TextTable

if TYPE_CHECKING:
    from anonymizer.algorithms.records.measures import Measures
    from anonymizer.app.anonymize.release_report import AnonymizeReport

Progress: TypeAlias = Callable[[str, float, float | None], None]
"""Called with the step, the seconds it has taken so far, and the information loss so far."""
MOST_CLASSES = 100
"""Largest number of values of a target."""


class Anonymized:
    """A verified release.

    Parameters
    ----------
    publication
        The published rows.
    measure
        Returns the report on it. It holds the records until it was called.
    measures
        Returns loss (range) and privacy of the classes, which nothing attacks for this.
    """

    def __init__(
        self,
        publication: Publication,
        measure: "Callable[[], AnonymizeReport]",
        measures: "Callable[[], Measures]",
    ) -> None:
        self.publication, self.measures, self._measure = publication, measures, measure

    @cached_property
    def report(self) -> "AnonymizeReport":
        """The report on the release: it is measured and attacked when this is first asked for."""
        report = self._measure()
        del self._measure, self.measures
        return report


def anonymize(
    table: TextTable,
    declared: Declared,
    plan: ReleasePlan,
    *,
    models: Mapping[str, Model] = MODELS,
    clock: Callable[[], float] = time.monotonic,
    progress: Progress = lambda _step, _used_s, _loss: None,
) -> Anonymized:
    """Anonymize a table.

    Parameters
    ----------
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
        labelling = labelling_of(coded.schema, declared, plan.labels, plan.language)
        measure = measured(table, declared, plan.measures)[coded.row]
        n_named = coded.records.n
        coded, measure = one_row_each(coded, measure, seed=plan.seed)
        plan = with_method(plan, model)
        former = former_of(plan, coded.schema, model, features=labelling.features)
    with steps.timed("compile"):
        from anonymizer.algorithms.records.class_methods import (  # noqa: PLC0415  few methods need it
            warm_up,
        )

        warm_up(plan.method, coded.schema, plan.promise)
    with steps.timed("partition"):
        formed = form_classes(
            table,
            coded,
            plan,
            former,
            clock=steps.clock,
            progress=steps.report,
            measure=measure,
        )
        class_of = formed.class_of
        if model.has_labels:
            class_of = joined(coded, class_of, former.cost, labelling)
    with steps.timed("verify"):
        former.verify(coded.records, class_of)
    with steps.timed("generalize"):
        publication, n_withheld = publish(coded, class_of, former.cost, labelling), 0
        _check_limit(table, plan, n=coded.records.n, n_published=len(publication.frame))
        if model.has_labels:
            from anonymizer.app.anonymize.label_verification import (  # noqa: PLC0415  few models have labels
                check_labels,
            )

            check_labels(table, coded, publication, plan.promise.k, labelling)
        if model.has_labels or plan.measures:
            frame, n_withheld = with_summaries(
                publication, coded, measure, plan.measures, k=plan.promise.k
            )
            means = [name for name in declared.qis if name in plan.measures]
            publication = replace(publication, frame=frame.drop(means))

    def measure_release() -> "AnonymizeReport":
        from anonymizer.app.anonymize.report_figures import (  # noqa: PLC0415  who asks for no report needs none
            report_of,
        )

        with steps.timed("measure"):
            report = report_of(
                *(table, coded, declared, plan, publication),
                former=former,
                formed=formed,
                n_withheld=n_withheld,
                n_repeated=n_named - coded.records.n,
            )
        return report.model_copy(update={"seconds": dict(steps.seconds)})

    def measure_classes() -> "Measures":
        from anonymizer.algorithms.records.measures import measure  # noqa: PLC0415  likewise

        return measure(coded.records, coded.schema, publication.class_of, costs=[Cost.RANGE])

    return Anonymized(publication, measure_release, measure_classes)


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


def model_of(plan: ReleasePlan, schema: Schema, models: Mapping[str, Model] = MODELS) -> Model:
    """Return the model of a plan, after checking that plan, model and table go together.

    Raises `SettingsError` if they do not.
    """
    if plan.model not in models:
        raise SettingsError(f"model: must be one of {', '.join(models)}")
    model = models[plan.model]
    if plan.method not in {AUTO, *model.methods}:
        raise SettingsError(f"model {plan.model}: method must be one of {', '.join(model.methods)}")
    if model.needs_sensitive and not schema.sensitive:
        raise SettingsError(f"model {plan.model} needs a sensitive attribute")
    promise = plan.promise
    if not schema.sensitive and bounds_sensitive(promise):
        names = named(criteria_of(Of.SENSITIVE), "and").replace("_", "-")
        raise SettingsError(f"{names} need a sensitive attribute: name one with --sa")
    _check_names(plan, schema)
    if not model.has_labels and plan.labels:
        raise SettingsError(f"label: not available for model {plan.model}")
    if plan.target is not None and not model.learns:
        raise SettingsError(f"target: not available for model {plan.model}")
    try:
        model.check(promise)
    except ValueError as error:
        raise SettingsError(f"model {plan.model}: {error}") from None
    return model


def _check_names(plan: ReleasePlan, schema: Schema) -> None:
    unbanded = [a for a in schema.sensitive if a.name not in plan.bands]
    check_numbers(plan.promise, schema.qis, unbanded)
    names = [qi.name for qi in schema.qis]
    if astray := [name for name in plan.weights if name not in names]:
        raise SettingsError(f"weight: {astray[0]} is not a quasi-identifier")
    if not any(plan.weights.get(name, 1.0) for name in names):
        raise SettingsError("weight: of one quasi-identifier at least it must be above 0")


def check_target(target: str, open_: Sequence[str], n_values: Callable[[str], int]) -> None:
    """Check the target of a model that learns.

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


def with_method(plan: ReleasePlan, model: Model) -> ReleasePlan:
    """Return the plan with the name of the method that `auto` stands for.

    A search is given work and no time, so it pays however many rows there are. SettingsError if an
    option needs another method.
    """
    from anonymizer.algorithms.records.class_methods import (  # noqa: PLC0415  likewise
        search_is_compiled,
    )

    # In the background (`kernel_background`), a search that is not asked for is not waited for.
    budget_s = plan.time_budget_s if plan.method != AUTO or search_is_compiled() else 0.0
    name = model.method_name(plan.method, n=0, time_budget_s=budget_s)
    if plan.prefer_share < 1 and not searches(name):
        raise SettingsError(f"prefer-share: method {name} knows no soft goal; best does")
    if plan.weights and not weighs(name):
        raise SettingsError(f"weight: method {name} knows no weights; best and mondrian do")
    return replace(plan, method=name)


def _check_limit(table: TextTable, plan: ReleasePlan, *, n: int, n_published: int) -> None:
    """Check that no more rows are left out than the limit allows, chosen ones or others."""
    if plan.suppress is not None and n - n_published > plan.suppress * n + ROUNDING:
        raise InputError(
            f"{table.path}: the promise cannot be kept: {n - n_published:,} of {n:,} rows fit in no"
            f" class, and {plan.suppress:.1%} may be left out"
        )
