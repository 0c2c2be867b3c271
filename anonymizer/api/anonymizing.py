"""Public functions for records: profile a table, anonymize it, audit a release of it.

They call what the commands `anonymize`, `audit table` and `profile` call, with the same defaults.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from anonymizer.api.keywords import AuditKeywords, TableKeywords, takes_keywords
from anonymizer.app import anonymize as app
from anonymizer.app.anonymize import AnonymizeReport, declared_of, make_plan, make_promise
from anonymizer.app.audit.findings import TableAuditReport
from anonymizer.app.table_options import (
    AT_RISK,
    AuditOptions,
    Names,
    TableOptions,
    names_of,
    real_number,
    whole_number,
)
from anonymizer.errors import InputError
from anonymizer.files.coded_columns import DEFAULT_MARKERS
from anonymizer.files.coded_table import Declared
from anonymizer.files.frame_kinds import DataFrame, FilePath, as_table, in_kind_of

if TYPE_CHECKING:
    from anonymizer.app.table_profile import ProfileReport

__all__ = [
    "AnonymizeReport",
    "AnonymizedTable",
    "TableAuditReport",
    "anonymize",
    "audit_table",
    "profile",
]


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


@takes_keywords(TableOptions)
def anonymize(
    table: DataFrame | FilePath,
    **options: Unpack[TableKeywords],
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
    weights
        By quasi-identifier: how much its loss counts in the search; of others, 1.
    suppress
        Largest share of the rows with an identifier that may be left out, 0.05 for example. Rows
        are chosen so that the others lose less; a row that is left out counts as lost. None: no row
        is chosen, and those that fit in no class are left out without a limit.
    time_budget_s
        Longest search.
    max_share, max_source_share, min_spread, entropy_l, t, bands
        Further criteria of a class.
    keep
        Columns that are published unchanged, outside every promise.
    target
        For `cells`: the column of the classes that a model will learn from the release.
    labels, language
        For `kaca`: the form of labels, and their language.
    measures
        Columns whose mean over each class is published, with the `count` of its persons; that of a
        quasi-identifier in place of its range.
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
    asked = TableOptions(**options)
    declared, plan = declared_of(asked), make_plan(asked)
    read = as_table(table, _columns_of(declared, plan.measures), name="table")
    made = app.anonymize(read, declared, plan)
    n, n_all = made.report.n - made.report.n_published, made.report.n
    if 2 * n > n_all:
        warnings.warn(
            f"{n:,} of {n_all:,} rows are suppressed: no class with them meets all criteria; ask"
            f" for a smaller k than {asked.k}, for fewer quasi-identifiers, or raise max_share",
            stacklevel=3,  # past `takes_keywords`
        )
    return AnonymizedTable(
        in_kind_of(table, made.publication.frame),
        in_kind_of(table, made.publication.row_map()),
        made.report,
    )


@takes_keywords(AuditOptions)
def audit_table(
    release: AnonymizedTable | DataFrame | FilePath,
    original: DataFrame | FilePath,
    *,
    auditor_map: DataFrame | FilePath | None = None,
    population: DataFrame | FilePath | int | None = None,
    **options: Unpack[AuditKeywords],
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
    own, seed
        Also attack as somebody to whom the rows of so many people belong, some drawn by the seed.
    population
        The people of whom those of the table are a part, one row a person, or their number: for the
        journalist's risk, k-map and presence.
    at_risk
        Count the records whose person is named with a larger probability.
    target
        Sensitive attribute that a decision tree learns to predict, from the release and from the
        original.

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
    required = AuditOptions(**options)
    declared, promise = declared_of(required), make_promise(required)
    measures = names_of(required.measures)
    if isinstance(release, AnonymizedTable):
        auditor_map = release.auditor_map if auditor_map is None else auditor_map
        release = release.frame
    if auditor_map is None:
        raise InputError("auditor_map: is needed to audit a table")
    from anonymizer.app.audit import table_audit  # noqa: PLC0415  who anonymizes needs no attacks

    return table_audit.audit_table(
        as_table(original, _columns_of(declared, measures), name="original"),
        as_table(release, name="release"),
        declared,
        promise,
        auditor_map=as_table(auditor_map, ["in_row", "out_row"], name="auditor_map"),
        bands=required.bands or {},
        labels=required.labels,
        measures=measures,
        n_own=required.own,
        seed=required.seed,
        population=population
        if population is None or isinstance(population, int)
        else as_table(population, declared.qis, name="population"),
        at_risk=required.at_risk,
        target=required.target,
    )


def profile(
    table: DataFrame | FilePath,
    *,
    qi: Names = (),
    sa: Names = (),
    id: str | None = None,  # noqa: A002  as in the other functions
    k: int | None = None,
    sampled: float = 0.1,
    at_risk: float = AT_RISK,
    missing: Sequence[str] = DEFAULT_MARKERS,
) -> "ProfileReport":
    """Say which columns of a table name people, before it is anonymized.

    Parameters
    ----------
    table
        The table; every row is a record.
    qi
        The columns to look at. Empty: all that are neither sensitive nor the identifier.
    sa, id, missing
        As for `anonymize`.
    k
        Also say what a release with classes of k persons would lose, and what d, l, t, rows left
        out and weights would change.
    sampled
        Share of the population that the table is, for DIS-SUDA.
    at_risk
        Count the rows whose person is named with a larger probability.

    Raises
    ------
    InputError
        If the table cannot be used, or has no column to look at.
    SettingsError
        If an option is out of its range, or the extra `tables` is not installed.

    Examples
    --------
    >>> import anonymizer, polars
    >>> people = polars.DataFrame({"age": [34, 34, 51, 58], "zip": ["1a", "1a", "2a", "2a"]})
    >>> anonymizer.profile(people).share_unique
    0.5
    """
    from anonymizer.app import table_profile  # noqa: PLC0415  who anonymizes needs no profile

    read, sensitive = as_table(table, name="table"), names_of(sa)
    others = [name for name in read.frame.columns if name not in {*sensitive, id}]
    asked = names_of(qi) or others
    if not asked:
        raise InputError(f"{read.path}: has no column to look at")
    return table_profile.profile(
        read,
        Declared(qis=asked, sensitive=sensitive, id=id, markers=missing),
        sampled=real_number("sampled", sampled, 0.0001, 0.9999),
        at_risk=real_number("at_risk", at_risk, 0.0, 1.0),
        k=None if k is None else whole_number("k", k, 2),
        chosen=bool(qi),
    )


def _columns_of(declared: Declared, measures: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*declared.columns, *measures]))
