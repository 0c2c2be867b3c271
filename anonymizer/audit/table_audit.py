"""Audit of a published table against its original: all promises, and the linkability attack."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.table_options import AT_RISK, LabelForm
from anonymizer.audit.attack import Subject
from anonymizer.audit.findings import LossFigures, TableAuditReport
from anonymizer.audit.registry import mounted
from anonymizer.audit.table_case import Day, TableDemands, table_case
from anonymizer.audit.table_utility import model_utility, utility_of
from anonymizer.domain.promises import Promise, check_numbers
from anonymizer.files.coded_table import Declared, code_table, in_meaning
from anonymizer.files.meanings import in_spelling
from anonymizer.files.published_tables import read_published, read_row_map
from anonymizer.files.tables import TextTable, read_table, without_escapes
from anonymizer.files.words_in_doubt import in_doubt


def audit_table(
    table: TextTable,
    release: Path | TextTable,
    declared: Declared,
    promise: Promise,
    *,
    auditor_map: Path | TextTable,
    bands: Mapping[str, Sequence[float]],
    labels: Mapping[str, LabelForm] | None = None,
    measures: Sequence[str] = (),
    n_own: int = 0,
    seed: int = 0,
    population: TextTable | int | None = None,
    at_risk: float = AT_RISK,
    target: str | None = None,
    reasons: Mapping[str, str] | None = None,
    days: tuple[Day, Day] | None = None,
) -> TableAuditReport:
    """Audit a published table from the files alone.

    `bands`: rising edges of sensitive numbers, by name; a band counts as one value. `labels`,
    `measures`: the forms of labels, by quasi-identifier, and the columns whose means were
    published. Parts of `promise` with their neutral value (k below 2, d and l below 1, the others
    at their default) are only reported. `n_own`: number of people whose rows are the adversary's
    own, drawn by `seed`, and in the class of each victim. `population`: a table with its
    quasi-identifiers, one row a person, or their number. Records whose risk is above `at_risk` are
    counted. `target`: sensitive attribute that a model learns to predict. `reasons`: why columns
    are published although they hold direct identifiers, by name. `days`: the
    files of this table and of one about the same people later, to attack both releases together.
    InputError if a file cannot be read, or its content does not fit; SettingsError if the promise
    bounds a column that is no number of the criterion's kind, or bands are invalid.

    Notes
    -----
    Values are compared by what they mean, see `meanings`, however they were published.
    The auditor's map is used to compare values with the original; the attack uses only the
    release itself. Labels are compared with the cells of the original as text, not as codes. A
    column of the release that is not declared fails.
    """
    table, spelling, folds = in_meaning(table, declared)
    coded = code_table(table, declared)
    unbanded = [a for a in coded.schema.sensitive if a.name not in bands]
    check_numbers(promise, coded.schema.qis, unbanded)
    release = release if isinstance(release, TextTable) else without_escapes(read_table(release))
    read = read_published(
        in_spelling(release, {name: spelling.get(name, {}) for name in declared.sensitive}),
        coded.schema,
        markers_of=declared.markers_of,
    )
    row_map = read_row_map(auditor_map, n_rows=coded.n_rows, n_published=read.n)
    asked = TableDemands(
        promise=promise,
        bands=bands,
        labels=labels or {},
        measures=measures,
        n_own=n_own,
        seed=seed,
        population=population,
        at_risk=at_risk,
        reasons=reasons or {},
        days=days,
    )
    case = table_case(table, declared, coded, read, row_map, asked=asked)
    reached, findings = case.reached, mounted(Subject.TABLE, case)
    return TableAuditReport(
        folds=folds,
        in_doubt=tuple(in_doubt(table, declared)),
        kept_anyway=dict(reasons or {}),
        holds=not any(finding.fails for finding in findings),
        n_rows=coded.n_rows,
        n_published=read.n,
        suppressed_share=1 - read.n / coded.n_rows,
        n_persons=int(coded.records.person.max()) + 1,
        n_classes=reached.n_classes,
        size_min=reached.size_min,
        size_median=reached.size_median,
        size_max=reached.size_max,
        gcp=LossFigures(**{form.name.lower(): reached.gcp[form] for form in Cost}),
        dm=reached.dm,
        findings=findings,
        columns=utility_of(case.records, case.schema, case.seen, case.class_of),
        model=None
        if target is None
        else model_utility(case.records, case.schema, case.seen, case.class_of, target, seed=seed),
    )
