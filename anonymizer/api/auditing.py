"""Public function for records: audit a release of a table.

It calls what `anonymizer audit table` calls, with the same defaults.
"""

from typing import Unpack

from anonymizer.api.anonymizing import AnonymizedTable, columns_of
from anonymizer.api.keywords import AuditKeywords, takes_keywords
from anonymizer.app.anonymize.plan import declared_of, make_promise
from anonymizer.app.table_options import AuditOptions, names_of
from anonymizer.audit import table_audit
from anonymizer.audit.findings import TableAuditReport
from anonymizer.errors import InputError
from anonymizer.files.frame_kinds import DataFrame, FilePath, as_table

__all__ = ["TableAuditReport", "audit_table"]


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
    k, d, l, k_extra, bands, further_criteria
        The criteria that are required; the rest is reported. With d of 2 or more the linkability
        attack must find nothing between sources, with l of 2 or more nothing sensitive.
    qi, sa, id, sources, hierarchies, orders, domains, categories, labels, missing, exact,
    as_published
        As for `anonymize`.
    keep, measures
        Likewise; a column of the release that is named nowhere fails the audit.
    keep_anyway
        Why columns are published although they hold direct identifiers: without a reason they fail.
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
    return table_audit.audit_table(
        as_table(original, columns_of(declared, measures), name="original"),
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
        reasons=required.keep_anyway,
    )
