"""Public functions for records: anonymize a table, audit a release of one.

They call what `anonymizer anonymize` and `anonymizer audit table` call, with the same defaults.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, TypeAlias

from anonymizer.algorithms.records.methods import SHARE_PRICE, TIME_BUDGET_S
from anonymizer.app import anonymize as app
from anonymizer.app.anonymize import AnonymizeReport, make_plan, make_promise
from anonymizer.app.anonymize.class_labels import LabelForm, LanguageName
from anonymizer.app.anonymize.release_report import CostName
from anonymizer.app.audit import table_audit
from anonymizer.app.audit.findings import TableAuditReport
from anonymizer.errors import InputError
from anonymizer.files.coded_columns import DEFAULT_MARKERS
from anonymizer.files.coded_table import Declared, intervals_of
from anonymizer.files.frame_kinds import DataFrame, FilePath, as_table, in_kind_of
from anonymizer.files.hierarchies import hierarchies_of, read_hierarchy
from anonymizer.files.time_columns import calendar_levels

__all__ = ["AnonymizeReport", "AnonymizedTable", "TableAuditReport", "anonymize", "audit_table"]

Names: TypeAlias = str | Sequence[str]
"""Column names; a text is one name."""
Hierarchy: TypeAlias = FilePath | Mapping[str, Any]
"""A file of lines `leaf;...;root`, or `{group: [leaves] or groups}`; or levels of a calendar."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AnonymizedTable:
    """An anonymized table.

    Attributes
    ----------
    frame
        The release, sorted by `class_id`.
    auditor_map
        The row of the release, `out_row`, of each row of the table, `in_row`; both from 0, missing
        where the row was suppressed. For the auditor alone.
    report
        The criteria that were reached, and the information loss.
    """

    frame: DataFrame
    auditor_map: DataFrame
    report: AnonymizeReport

    def __repr__(self) -> str:
        """Return counts alone."""
        report = self.report
        return (
            f"AnonymizedTable({report.n_published} of {report.n} rows published in "
            f"{report.n_classes} classes of {report.k} or more)"
        )


def anonymize(
    table: DataFrame | FilePath,
    *,
    qi: Names,
    k: int,
    model: str = "kd",
    method: str | None = None,
    d: int | None = None,
    l: int | None = None,  # noqa: E741  the field's name for it
    sa: Names = (),
    id: str | None = None,  # noqa: A002  as on the command line
    sources: Sequence[Sequence[str]] = (),
    hierarchies: Mapping[str, Hierarchy] | None = None,
    orders: Mapping[str, Sequence[str]] | None = None,
    domains: Mapping[str, Sequence[float]] | None = None,
    categories: Names = (),
    missing: Names = (),
    as_published: bool = False,
    cost: CostName = "range",
    dm_weight: float = 0.0,
    prefer_share: float | None = None,
    share_price: float = SHARE_PRICE,
    time_budget_s: float = TIME_BUDGET_S,
    max_share: float | None = None,
    max_source_share: float | None = None,
    min_spread: Mapping[str, float] | None = None,
    entropy_l: float = 1.0,
    t: float | None = None,
    bands: Mapping[str, Sequence[float]] | None = None,
    keep: Names = (),
    target: str | None = None,
    labels: Mapping[str, LabelForm] | None = None,
    language: LanguageName = "zh",
    measures: Names = (),
    seed: int = 0,
) -> AnonymizedTable:
    """Anonymize a table: every person is one of at least k.

    Parameters
    ----------
    table
        The records. Columns that are not named are left out of the release.
    qi, sa, id
        Quasi-identifiers, which are generalized; sensitive attributes, which are published as
        they are; and whose row it is (None: each row is a person of its own).
    k, d, l
        Fewest persons in a class, and fewest distinct values of every quasi-identifier and of
        every sensitive attribute. None: 2 where the model asks for it, else 1.
    model, method
        `kd`, `kld`, `kaca` or `cells`, and one of its methods; see `anonymizer anonymize --help`.
    sources
        Quasi-identifiers that each source knows.
    hierarchies
        By attribute: a file of lines `leaf;...;root`, or `{group: [leaves] or groups}`; or, for
        dates and times, `year-month-day-hour` or some of these.
    orders, domains
        By attribute: categories in their order; ends of a number and, where it has one, its step.
    categories, missing
        Columns that hold no numbers although they look like it, and texts that mean "no value".
    as_published
        Whether a missing value is a value and shares have no bound, as in the paper.
    cost, dm_weight
        The information loss to minimize, and the weight of the discernibility metric.
    prefer_share, share_price
        A soft goal: as many rows as possible in classes where no value has more than this share,
        of columns where none has more in the whole table; and what that may cost: GCP of a row
        for each column with such a value.
    time_budget_s
        Longest search.
    max_share, max_source_share, min_spread, entropy_l, t, bands
        Further criteria of a class.
    keep
        Columns that are published unchanged, outside every promise.
    target
        For `cells`: the column of the classes that a model will learn from the release.
    labels, language, measures
        For `kaca`: the form of labels, their language, and columns whose mean is published.
    seed
        Equal input, options and seed give equal releases, unless a search runs out of time.

    Raises
    ------
    InputError
        If the table or a file cannot be used, or cannot meet the criteria.
    SettingsError
        If an option is out of its range or does not fit the others, or an extra is not installed.
    GuaranteeError
        If independent verification finds a class that does not meet the criteria.

    Warns
    -----
    UserWarning
        If more than half of the rows are suppressed.

    Examples
    --------
    >>> import anonymizer, polars
    >>> people = polars.DataFrame({"age": [34, 36, 51, 58], "zip": ["1a", "1b", "2a", "2b"]})
    >>> release = anonymizer.anonymize(
    ...     people, qi=["age", "zip"], k=2, max_share=1, max_source_share=1
    ... )
    >>> release
    AnonymizedTable(4 of 4 rows published in 2 classes of 2 or more)
    >>> release.frame["age"].to_list()
    ['[34-36]', '[34-36]', '[51-58]', '[51-58]']
    """
    declared = declared_of(
        qi=qi,
        sa=sa,
        id_=id,
        sources=sources,
        hierarchies=hierarchies,
        orders=orders,
        domains=domains,
        categories=categories,
        labels=labels,
        missing=missing,
        as_published=as_published,
        keep=keep,
    )
    plan = make_plan(
        model=model,
        method=method,
        k=k,
        d=d,
        l=l,
        max_share=max_share,
        max_source_share=max_source_share,
        min_spread=min_spread,
        entropy_l=entropy_l,
        t=t,
        as_published=as_published,
        cost=cost,
        dm_weight=dm_weight,
        prefer_share=prefer_share,
        share_price=share_price,
        time_budget_s=time_budget_s,
        seed=seed,
        target=target,
        labels=labels,
        language=language,
        measures=names_of(measures),
        bands=bands,
    )
    read = as_table(table, [*declared.columns, *plan.measures], name="table")
    made = app.anonymize(read, declared, plan)
    n, n_all = made.report.n - made.report.n_published, made.report.n
    if 2 * n > n_all:
        warnings.warn(
            f"{n:,} of {n_all:,} rows are suppressed: no class with them meets all criteria; ask"
            f" for a smaller k than {k}, for fewer quasi-identifiers, or raise max_share",
            stacklevel=2,
        )
    return AnonymizedTable(
        in_kind_of(table, made.publication.frame),
        in_kind_of(table, made.publication.row_map()),
        made.report,
    )


def audit_table(
    release: AnonymizedTable | DataFrame | FilePath,
    original: DataFrame | FilePath,
    *,
    qi: Names,
    auditor_map: DataFrame | FilePath | None = None,
    k: int = 1,
    d: int = 0,
    l: int = 0,  # noqa: E741  the field's name for it
    sa: Names = (),
    id: str | None = None,  # noqa: A002  as on the command line
    sources: Sequence[Sequence[str]] = (),
    hierarchies: Mapping[str, Hierarchy] | None = None,
    orders: Mapping[str, Sequence[str]] | None = None,
    domains: Mapping[str, Sequence[float]] | None = None,
    categories: Names = (),
    labels: Mapping[str, LabelForm] | None = None,
    missing: Names = (),
    as_published: bool = False,
    max_share: float = 1.0,
    max_source_share: float = 1.0,
    min_spread: Mapping[str, float] | None = None,
    entropy_l: float = 1.0,
    t: float | None = None,
    bands: Mapping[str, Sequence[float]] | None = None,
    keep: Names = (),
    measures: Names = (),
) -> TableAuditReport:
    """Check a release of a table against its original, and attack it.

    Parameters
    ----------
    release
        What `anonymize` returned, its frame, or a file of it.
    original
        The table that was anonymized.
    auditor_map
        The row of the release of each row of the table. May be left out where `release` is what
        `anonymize` returned.
    k, d, l, max_share, max_source_share, min_spread, entropy_l, t, bands
        The criteria that are required; the rest is reported. With d of 2 or more the linkability
        attack must find nothing between sources, with l of 2 or more nothing sensitive.
    qi, sa, id, sources, hierarchies, orders, domains, categories, labels, missing, as_published
        As for `anonymize`.
    keep, measures
        Likewise; a column of the release that is named nowhere fails the audit.

    Returns
    -------
    report
        `report.holds` says whether all that is required holds; `report.findings` has each attack.

    Raises
    ------
    InputError
        If the release, the original or a file cannot be used.
    SettingsError
        If an option is out of its range, or the extra `tables` is not installed.

    Examples
    --------
    >>> import anonymizer, polars
    >>> people = polars.DataFrame({"age": [34, 36, 51, 58], "zip": ["1a", "1b", "2a", "2b"]})
    >>> release = anonymizer.anonymize(
    ...     people, qi=["age", "zip"], k=2, max_share=1, max_source_share=1
    ... )
    >>> anonymizer.audit_table(release, people, qi=["age", "zip"], k=2, d=2).holds
    True
    """
    declared = declared_of(
        qi=qi,
        sa=sa,
        id_=id,
        sources=sources,
        hierarchies=hierarchies,
        orders=orders,
        domains=domains,
        categories=categories,
        labels=labels,
        missing=missing,
        as_published=as_published,
        keep=keep,
    )
    promise = make_promise(
        k=k,
        d=d,
        l=l,
        max_share=max_share,
        max_source_share=max_source_share,
        min_spread=min_spread,
        entropy_l=entropy_l,
        t=t,
    )
    if isinstance(release, AnonymizedTable):
        auditor_map = release.auditor_map if auditor_map is None else auditor_map
        release = release.frame
    if auditor_map is None:
        raise InputError("auditor_map: is needed to audit a table")
    return table_audit.audit_table(
        as_table(original, [*declared.columns, *names_of(measures)], name="original"),
        as_table(release, name="release"),
        declared,
        promise,
        auditor_map=as_table(auditor_map, ["in_row", "out_row"], name="auditor_map"),
        bands=bands or {},
        labels=labels,
        measures=names_of(measures),
    )


def declared_of(
    *,
    qi: Names,
    sa: Names,
    id_: str | None,
    sources: Sequence[Sequence[str]],
    hierarchies: Mapping[str, Hierarchy] | None,
    orders: Mapping[str, Sequence[str]] | None,
    domains: Mapping[str, Sequence[float]] | None,
    categories: Names,
    labels: Mapping[str, str] | None,
    missing: Names,
    as_published: bool,
    keep: Names = (),
) -> Declared:
    """Return the declaration that the options of `anonymize` make.

    Raises
    ------
    InputError
        If a file of a hierarchy cannot be used.
    SettingsError
        If options do not fit each other.
    """
    given = hierarchies or {}
    named = {n: calendar_levels(h) for n, h in given.items() if isinstance(h, str)}
    calendars = {n: levels for n, levels in named.items() if levels is not None}
    files = {n: h for n, h in given.items() if isinstance(h, str | PathLike) and n not in calendars}
    trees = {n: h for n, h in given.items() if n not in files and n not in calendars}
    return Declared(
        qis=names_of(qi),
        sensitive=names_of(sa),
        id=id_,
        sources=[names_of(each) for each in sources],
        hierarchies={name: read_hierarchy(fspath(file)) for name, file in files.items()}
        | hierarchies_of(trees),
        calendars=calendars,
        orders=orders or {},
        ranges=intervals_of(domains or {}),
        categories=names_of(categories),
        times=[name for name, form in (labels or {}).items() if form == "hours"],
        markers=names_of(missing) or DEFAULT_MARKERS,
        markers_are_values=as_published,
        keep=names_of(keep),
    )


def names_of(names: Names) -> Sequence[str]:
    """Return names as a sequence."""
    return (names,) if isinstance(names, str) else tuple(names)
