"""Figures of a report: measures of a release, attacks on it, settings and warnings.

Measured on the published classes, independently of the method that formed them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Literal

import numpy as np

from anonymizer import __version__
from anonymizer.algorithms.records.boxes import near_together
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.least_loss import is_compiled, least_loss
from anonymizer.algorithms.records.measures import Measures, ModalShares, measure, modal_shares
from anonymizer.algorithms.records.methods import searches
from anonymizer.algorithms.records.outlook import saved_by_twice_the_work
from anonymizer.algorithms.records.problem import Cost, Problem
from anonymizer.algorithms.releases.released_classes import publish as as_seen
from anonymizer.app.anonymize.class_forming import FormedClasses, form_classes
from anonymizer.app.anonymize.plan import ReleasePlan
from anonymizer.app.anonymize.publication import Publication
from anonymizer.app.anonymize.release_report import (
    AnonymizeReport,
    ClassSizes,
    LeakFound,
    Losses,
    QuasiIdentifier,
    ReleaseSettings,
    RequestedCriteria,
    Sensitive,
    Source,
)
from anonymizer.audit.mathematics.linkability import Homogeneity, Leak, homogeneity, link
from anonymizer.audit.repeating_columns import repeated_columns
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.criteria.criterion import Of
from anonymizer.domain.criteria.registry import CRITERIA, criteria_of
from anonymizer.domain.promises import Promise, bounds_sensitive
from anonymizer.domain.records import NO_CODE, Attribute, Records, Schema
from anonymizer.files.coded_table import CodedTable, Declared
from anonymizer.files.identifiers import identifying_columns
from anonymizer.files.person_keys import n_alike
from anonymizer.files.tables import TextTable
from anonymizer.files.words_in_doubt import in_doubt

HALF = 0.5
"""Share above which a value is counted as a majority, if no other share is preferred."""


def report_of(
    table: TextTable,
    coded: CodedTable,
    declared: Declared,
    plan: ReleasePlan,
    publication: Publication,
    *,
    former: Former,
    formed: FormedClasses,
    n_withheld: int,
    n_repeated: int,
) -> AnonymizeReport:
    """Measure and attack the release of a table.

    `n_withheld` means were left out, and `n_repeated` rows of persons who have another one.
    """
    class_of = publication.class_of
    share = plan.prefer_share if plan.prefer_share < 1 else HALF
    records, schema = coded.records, coded.schema
    modal = modal_shares(records, class_of, share)
    found = measure(records, schema, class_of)
    leaks, alike = _attacked(
        records, schema, class_of, by_hierarchy=plan.cost == Cost.TAXONOMY.name.lower()
    )
    saved = _saved(coded.records, former, formed)
    suppressed = {
        **{str(reason): len(rows) for reason, rows in coded.left_out.items()},
        "repeated": n_repeated,
        "limit": formed.n_chosen,
        "promise": found.n_suppressed - formed.n_chosen,
    }
    return AnonymizeReport(
        asked=_asked(plan.promise),
        settings=settings_of(table, declared, plan),
        n=coded.n_rows,
        n_published=found.n - found.n_suppressed,
        suppressed={reason: n for reason, n in suppressed.items() if n},
        n_classes=found.n_classes,
        class_size=ClassSizes(min=found.size_min, median=found.size_median, max=found.size_max),
        k=found.k,
        qis=_qis(coded, found, modal),
        sources=tuple(
            Source(qis=_names(schema, s), **_figures(found, Of.SOURCE, s))
            for s in range(len(schema.sources))
        ),
        sensitive=_sensitive(coded, found, alike, modal),
        gcp=_losses(found.gcp),
        gcp_published=_losses(found.gcp_published),
        least_gcp=_least_gcp(coded.records, former, class_of),
        saved_by_twice_the_time=saved,
        dm=found.dm,
        dm_published=found.dm_published,
        share=modal.share,
        n_above=modal.n_above_any,
        leaks=tuple(_leak(schema, leak) for leak in leaks),
        folds=tuple(coded.folds),
        warnings=warnings_of(
            coded,
            declared,
            plan,
            identifying=(
                *_identifying(table, declared, publication),
                *_repeated(coded, declared, plan, class_of),
            ),
            encoding=table.encoding,
            in_time=formed.in_time,
            saved=saved,
            n_withheld=n_withheld,
            times_hilbert=_times_hilbert(table, coded, plan, former, formed.class_of),
            n_alike=n_alike(coded.folds),
            in_doubt=tuple(in_doubt(table, declared)),
        ),
    )


def _attacked(
    records: Records, schema: Schema, class_of: Int32Array, *, by_hierarchy: bool
) -> tuple[tuple[Leak, ...], tuple[Homogeneity, ...]]:
    """Return what attacks learn from the labels, which are as large as the table."""
    published = as_seen(records, schema, class_of, by_hierarchy=by_hierarchy)
    return (
        link(published, schema, records, class_of),
        homogeneity(published, schema, records, class_of),
    )


def _bare(records: Records, former: Former) -> Problem:
    """Return a problem of the quasi-identifiers alone, and of nobody's several records."""
    one = former.problem(records.only(np.arange(1)), table=records)
    return replace(one, cells=records.qi)


def _least_gcp(records: Records, former: Former, class_of: Int32Array) -> float | None:
    """Return a loss that no release with this promise is below, whatever the method.

    None where a quick method would wait for it: in a million rows it takes longer than `tree`, and
    while its kernels run as Python, ten times as long as all the rest.
    """
    if not searches(former.method) and records.n > _MOST_BOUNDED:
        return None
    even = _bare(records, replace(former, weights={}))
    if not searches(former.method):  # its classes may be wide, and then tell little
        if not is_compiled(even):
            return None
        class_of, _ = near_together(even, even.cells, at_least=_NEAR)
    return least_loss(even, class_of, seed=former.seed)


def _saved(records: Records, former: Former, formed: FormedClasses) -> float | None:
    """Return the share of its loss that a search would save with twice its time."""
    if formed.in_time or not formed.work or former.dm_weight or former.prefer_share < 1:
        return None
    if (np.bincount(records.person) > 1).any():
        return None
    return saved_by_twice_the_work(
        _bare(records, former),
        lambda part: former.problem(records.only(part), table=records),
        work=formed.work,
        seed=former.seed,
    )


def _times_hilbert(
    table: TextTable, coded: CodedTable, plan: ReleasePlan, former: Former, class_of: Int32Array
) -> float:
    """Return how many times the loss of `hilbert` the classes of `mondrian` lose; else 1."""
    if former.method != "mondrian" or "hilbert" not in former.model.methods:
        return 1.0
    beside = form_classes(
        table,
        coded,
        plan,
        replace(former, method="hilbert", weights={}, features=()),
        clock=lambda: 0.0,
        progress=lambda *_: None,
    )
    own, its = (
        measure(coded.records, coded.schema, each).gcp[former.cost]
        for each in (class_of, beside.class_of)
    )
    return own / its if its else 1.0


def _asked(promise: Promise) -> RequestedCriteria:
    bounds = {each.name: getattr(promise, each.name) for each in CRITERIA}
    asked: dict[str, Any] = {name: None if x == inf else x for name, x in bounds.items()}
    return RequestedCriteria(**asked)


def _figures(found: Measures, of: Of, j: int) -> dict[str, Any]:
    return {each.key: getattr(found, each.name)[j] for each in criteria_of(of)}


def _qis(coded: CodedTable, found: Measures, modal: ModalShares) -> tuple[QuasiIdentifier, ...]:
    return tuple(
        QuasiIdentifier(
            name=qi.name,
            kind=_kind(qi),
            read_as=coded.read_as[qi.name],
            domain=coded.origin[qi.name],
            size=qi.size,
            n_missing=_n_missing(qi, coded.records.qi[:, j]),
            table_share=modal.table[j],
            n_above=modal.n_above[j],
            **_figures(found, Of.QI, j),
            ncp=_losses({form: of[j] for form, of in found.ncp.items()}),
        )
        for j, qi in enumerate(coded.schema.qis)
    )


def _sensitive(
    coded: CodedTable, found: Measures, alike: tuple[Homogeneity, ...], modal: ModalShares
) -> tuple[Sensitive, ...]:
    n_qis = len(coded.schema.qis)
    return tuple(
        Sensitive(
            name=attribute.name,
            kind=_kind(attribute),
            domain=coded.origin[attribute.name],
            size=attribute.size,
            n_missing=_n_missing(attribute, coded.records.sensitive[:, j]),
            **_figures(found, Of.SENSITIVE, j),
            n_homogeneous_classes=alike[j].n_classes,
            n_homogeneous_people=alike[j].n_people,
            table_share=modal.table[n_qis + j],
            n_above=modal.n_above[n_qis + j],
        )
        for j, attribute in enumerate(coded.schema.sensitive)
    )


def _leak(schema: Schema, leak: Leak) -> LeakFound:
    sensitive = tuple(attribute.name for attribute in schema.sensitive)
    return LeakFound(
        knows=leak.knows.value,
        known=_names(schema, leak.known),
        learned=sensitive if leak.learned is None else _names(schema, leak.learned),
        n_cells=leak.n_cells,
        n_people=leak.n_people,
    )


def _names(schema: Schema, source: int) -> tuple[str, ...]:
    return tuple(schema.qis[j].name for j in schema.sources[source])


def _losses(of: Mapping[Cost, float]) -> Losses:
    return Losses(range=of[Cost.RANGE], set=of[Cost.SET], taxonomy=of[Cost.TAXONOMY])


def _kind(attribute: Attribute) -> Literal["number", "category"]:
    return "number" if attribute.numeric else "category"


def _n_missing(attribute: Attribute, code: Int32Array) -> int:
    return 0 if attribute.missing == NO_CODE else int((code == attribute.missing).sum())


def settings_of(table: TextTable, declared: Declared, plan: ReleasePlan) -> ReleaseSettings:
    """Return the settings with which a release was made."""
    return ReleaseSettings(
        version=__version__,
        table=table.path.name,
        model=plan.model,
        method=plan.method,
        cost=plan.cost,
        dm_weight=plan.dm_weight,
        prefer_share=plan.prefer_share,
        share_price=plan.share_price if plan.prefer_share < 1 else 0.0,
        weights=dict(plan.weights),
        suppress=plan.suppress,
        time_budget_s=plan.time_budget_s,
        seed=plan.seed,
        target=plan.target,
        missing_is_a_value=declared.markers_are_values,
        markers=tuple(declared.markers),
        id=declared.id,
        kept=tuple(declared.keep),
        labels=dict(plan.labels),
        measures=tuple(plan.measures),
        bands={name: tuple(edges) for name, edges in plan.bands.items()},
    )


def _identifying(table: TextTable, declared: Declared, publication: Publication) -> tuple[str, ...]:
    """Say which published columns hold direct identifiers."""
    release = TextTable(table.path, publication.frame)
    found = identifying_columns(
        table,
        release,
        qis=declared.qis,
        sensitive=declared.sensitive,
        keep=declared.keep,
        markers=declared.markers,
    )
    return tuple(
        f"{name} holds {held.kind}, which tell people apart: k says nothing to whoever knows them,"
        " and the audit fails unless --keep-anyway names a reason"
        for name, held in found
    )


def _repeated(
    coded: CodedTable, declared: Declared, plan: ReleasePlan, class_of: Int32Array
) -> tuple[str, ...]:
    """Say which columns that are published as they are tell what a label hides."""
    return tuple(
        f"{told.name} says nearly what {told.qi} says: whoever knows {told.qi} picks their row with"
        f" {told.found.success:.0%} on average, and not {told.found.blind:.0%}, so that k hides"
        " nobody; the audit fails unless --keep-anyway names a reason"
        for told in repeated_columns(
            coded.records,
            coded.schema,
            class_of,
            np.arange(coded.records.n),
            coded.open,
            names=coded.open.columns,
            markers=declared.markers,
            k=plan.promise.k,
            seed=plan.seed,
            by_order=False,
        )
        if told.found.repeats
    )


def _alone_by(code: Int32Array) -> str:
    """Say how many rows are found by one kept column, if they are many."""
    n_alone = int((np.bincount(code) == 1).sum()) if len(code) else 0
    told = f" ({n_alone:,} of {len(code):,} rows have a value of their own)"
    return told if n_alone > _MANY_ALONE * len(code) else ""


_MANY_ALONE = 0.05
_MOST_BOUNDED = 100_000
"""Rows of a quick method for which the least possible loss is computed: below a second."""
_NEAR = 16
"""Rows of a group of near ones, by which that loss is computed."""
_MUCH = 3.0
"""Times the loss of `hilbert` that are worth a warning."""


def warnings_of(
    coded: CodedTable,
    declared: Declared,
    plan: ReleasePlan,
    *,
    identifying: Sequence[str],
    encoding: str,
    in_time: bool,
    saved: float | None,
    n_withheld: int,
    times_hilbert: float,
    n_alike: int,
    in_doubt: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the warnings that a reader of the figures needs."""
    names = [qi.name for qi in coded.schema.qis if coded.origin[qi.name] == "data"]
    from_data = ", ".join(names)
    n_before = len(declared.sensitive)
    open_ = ", ".join(
        f"{name}{_alone_by(coded.open_code[:, n_before + j])}"
        for j, name in enumerate(declared.keep)
    )
    warnings = {
        f"the table is no UTF-8 text, and was read as {encoding}": bool(encoding),
        "no identifier is declared: k counts rows, and a person with several rows is counted "
        "several times": declared.id is None,
        f"the domain is taken from the data and not declared: {from_data}": bool(from_data),
        "a missing value counts as a value, as in the paper": declared.markers_are_values,
        f"model {plan.model} promises nothing about the sensitive attributes": bool(
            coded.schema.sensitive
        )
        and not bounds_sensitive(plan.promise),
        f"published as it is, outside of every promise: {open_}": bool(open_),
        "losses and leaks are those of the ranges and sets beneath the labels, which tell no "
        "more": any(form != "plain" for form in plan.labels.values()),
        f"means that are left out, as fewer than k persons have a value: {n_withheld}": bool(
            n_withheld
        ),
        "the time budget (--time-budget) ended the search: "
        + (
            "a longer one may lose less"
            if saved is None
            else f"twice as long would lose about {max(saved, 0):.1%} less"
        ): not in_time,
        f"{plan.method} loses {times_hilbert:.1f} times as much as hilbert would: choose another "
        "method": times_hilbert >= _MUCH,
    }
    return (
        *identifying,
        *words_of_reading(coded.read_as),
        *words_of_persons(n_alike),
        *in_doubt,
        *(warning for warning, holds in warnings.items() if holds),
    )


def words_of_reading(read_as: Mapping[str, str]) -> list[str]:
    """Return a sentence for each column of which it is not plain what its cells were taken for."""
    return [
        f"{name}: the cells were taken for {how}"
        for name, how in read_as.items()
        if how not in {"numbers", "categories"}
    ]


def words_of_persons(n_alike: int) -> list[str]:
    """Return a sentence on identifiers that count as one person; none if there are none."""
    told = (
        f"{n_alike:,} identifiers differ from others in their writing alone: they count as one "
        "person, and --exact tells them apart"
    )
    return [told] * (n_alike > 0)
