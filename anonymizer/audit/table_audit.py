"""Audit of a published table against its original: all promises, and the linkability attack."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from anonymizer.algorithms.kaca.class_statistics import summarize
from anonymizer.algorithms.records.label_text import LabelText, equal_cells
from anonymizer.algorithms.records.measures import GroupedRecords, Measures, measure
from anonymizer.algorithms.records.problem import Cost
from anonymizer.algorithms.records.time_text import TimeText
from anonymizer.algorithms.records.verification import PromisePart, verify_classes
from anonymizer.algorithms.releases.released_classes import Published
from anonymizer.app.anonymize.plan import with_bands
from anonymizer.app.anonymize.statistics import COUNT_COLUMN, MEAN_PREFIX, measured
from anonymizer.app.table_options import AT_RISK, LabelForm
from anonymizer.audit.findings import Figure, Finding, LossFigures, TableAuditReport
from anonymizer.audit.mathematics.linkability import Leak, homogeneity, link
from anonymizer.audit.published_columns import direct_identifiers, known_columns
from anonymizer.audit.table_people import heavy_persons, owned_rows
from anonymizer.audit.table_risks import company_of, risk_findings
from anonymizer.audit.table_utility import model_utility, utility_of
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.errors import SettingsError
from anonymizer.files.coded_columns import plain_numbers, texts
from anonymizer.files.coded_table import (
    CodedTable,
    Declared,
    cells_of,
    code_table,
    in_meaning,
    meant_like,
)
from anonymizer.files.meanings import in_spelling
from anonymizer.files.published_tables import (
    CLASS_COLUMN,
    PublishedTable,
    numbered,
    read_published,
    read_row_map,
)
from anonymizer.files.tables import TextTable, read_table, without_escapes

_LAST_DIGIT = 0.0051
"""Means are rounded to two digits."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Case:
    """The original, the release, and which row became which.

    `row`: of the original, of each record; `class_of`, `row_of`: published class, and row of the
    release, negative if it was suppressed; `n_nobodys`: published rows whose original is nobody's,
    as it has no identifier or states nothing; `beside_few`: classes of the release with somebody
    who states no quasi-identifier, beside how many persons who do, rising.
    """

    original: TextTable
    declared: Declared
    records: Records
    schema: Schema
    row: IntArray
    release: PublishedTable
    seen: Published
    class_of: Int32Array
    row_of: IntArray
    n_nobodys: int
    beside_few: IntArray


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
) -> TableAuditReport:
    """Audit a published table from the files alone.

    `bands`: rising edges of sensitive numbers, by name; a band counts as one value. `labels`,
    `measures`: the forms of labels, by quasi-identifier, and the columns whose means were
    published. Parts of `promise` with their neutral value (k below 2, d and l below 1, the others
    at their default) are only reported. `n_own`: number of people whose rows are the adversary's
    own, drawn by `seed`, and in the class of each victim. `population`: a table with its
    quasi-identifiers, one row a person, or their number. Records whose risk is above `at_risk` are
    counted. `target`: sensitive attribute that a model learns to predict. `reasons`: why columns
    are published although they hold direct identifiers, by name. InputError if a file
    cannot be read, or its content does not fit; SettingsError if the promise names a column that is
    no numeric quasi-identifier, or bands are invalid.

    Notes
    -----
    Values are compared by what they mean, see `meanings`, however they were published.
    The auditor's map is used to compare values with the original; the attack uses only the
    release itself. Labels are compared with the cells of the original as text, not as codes. A
    column of the release that is not declared fails.
    """
    table, spelling, folds = in_meaning(table, declared)
    coded = code_table(table, declared)
    numeric = {qi.name for qi in coded.schema.qis if qi.numeric}
    if unknown := sorted(set(promise.min_spread) - numeric):
        raise SettingsError(f"min-spread: {unknown[0]} is no numeric quasi-identifier")
    release = release if isinstance(release, TextTable) else without_escapes(read_table(release))
    read = read_published(
        in_spelling(release, {name: spelling.get(name, {}) for name in declared.sensitive}),
        coded.schema,
        markers_of=declared.markers_of,
    )
    row_map = read_row_map(auditor_map, n_rows=coded.n_rows, n_published=read.n)
    case = _case(table, declared, coded, read, row_map)
    banded = with_bands(coded, bands)
    reached = measure(banded.records, banded.schema, case.class_of)
    findings = (
        *_identifiers(case, promise.k),
        *_columns(case, measured(table, declared, measures)[coded.row], measures, promise.k),
        *_soundness(case, labels or {}),
        *_promised(banded, case.class_of, reached, promise),
        *_attacks(case, promise),
        *_published_columns(case, reasons or {}),
        *heavy_persons(banded.records, case.class_of, banded.schema),
        *owned_rows(banded.records, case.class_of, banded.schema, promise, n_own=n_own, seed=seed),
        *_risks(case, labels or {}, population, at_risk),
    )
    return TableAuditReport(
        folds=folds,
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


def _case(
    original: TextTable,
    declared: Declared,
    coded: CodedTable,
    release: PublishedTable,
    out_row: IntArray,
) -> _Case:
    row_of = out_row[coded.row]
    class_of = np.where(row_of >= 0, release.class_of[row_of], -1).astype(np.int32)
    # A class may consist of rows without an identifier only; the other classes are renumbered.
    there, dense = np.unique(class_of[class_of >= 0], return_inverse=True)
    seen = release.seen()
    if len(there) < seen.n_classes:
        seen = seen.only(there)
    class_of[class_of >= 0] = dense
    return _Case(
        original=original,
        declared=declared,
        records=coded.records,
        schema=coded.schema,
        row=coded.row,
        release=release,
        seen=seen,
        class_of=class_of,
        row_of=row_of,
        n_nobodys=sum(
            int((out_row[coded.left_out[why]] >= 0).sum())
            for why in ("no_identifier", "states_nothing")
        ),
        beside_few=_company_of_silent(coded, release, out_row),
    )


def _company_of_silent(coded: CodedTable, release: PublishedTable, out_row: IntArray) -> IntArray:
    """Return how many persons who state a QI each class has in which somebody states none."""
    silent = out_row[coded.left_out["states_no_qi"]]
    row_of = out_row[coded.row]
    of_person = np.column_stack([release.class_of[row_of], coded.records.person])[row_of >= 0]
    n_persons = np.bincount(np.unique(of_person, axis=0)[:, 0], minlength=release.n)
    return np.sort(n_persons[np.unique(release.class_of[silent[silent >= 0]])])


def _identifiers(case: _Case, k: int) -> Iterator[Finding]:
    """Look for identifiers, as a column and as class numbers, and for rows that are no persons."""
    direct = case.declared.id
    n_columns = int(direct is not None and direct in case.release.columns)
    yield _required("identifiers", {"n_columns": n_columns}, "none", holds=not n_columns)
    n_short = int((case.beside_few < max(k, 1)).sum())
    figures: dict[str, Figure] = {"n_rows": case.n_nobodys, "n_classes": n_short}
    bar = "none; who states no quasi-identifier is beside k others"
    yield _required("rows of nobody", figures, bar, holds=not any(figures.values()))
    given = texts(case.release.table, CLASS_COLUMN).to_list()
    wrong = sum(str(of) != cell for of, cell in zip(case.release.class_of, given, strict=True))
    yield _required("class numbers", {"n_rows": wrong}, "0, 1, 2... in this order", holds=not wrong)


def _columns(
    case: _Case, measure: FloatArray, measures: Sequence[str], k: int
) -> Iterator[Finding]:
    """Check that every column is declared, and the statistics of classes."""
    declared = case.declared
    known = {CLASS_COLUMN, *declared.columns}
    wrong = 0
    if COUNT_COLUMN in case.release.columns and COUNT_COLUMN not in known:
        known |= {COUNT_COLUMN, *(f"{MEAN_PREFIX}{name}" for name in measures)}
        wrong = _wrong_statistics(case, measure, measures, k)
    unknown = [name for name in case.release.columns if name not in known]
    figures: dict[str, Figure] = {"n_undeclared": len(unknown), "n_rows_wrong": wrong}
    yield _required(
        "columns", figures, "declared; statistics true", holds=not any(figures.values())
    )


def _wrong_statistics(case: _Case, measure: FloatArray, measures: Sequence[str], k: int) -> int:
    """Return how many rows have a count or a mean that is not that of their class."""
    kept = case.row_of >= 0
    of = case.release.class_of[case.row_of[kept]]
    true = summarize(of, case.records.person[kept], measure[kept], k=max(k, 1))
    shown = case.release.table.frame
    wrong = np.zeros(case.release.n, bool)
    columns = [(COUNT_COLUMN, true.n_persons.astype(np.float64))]
    columns += [(f"{MEAN_PREFIX}{name}", true.mean[:, m]) for m, name in enumerate(measures)]
    for name, value in columns:
        if name not in shown.columns:
            return case.release.n
        cell = shown[name].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        expected = value[case.release.class_of]
        near = np.isclose(cell, expected, rtol=0, atol=_LAST_DIGIT, equal_nan=True)
        # A statistic of fewer than k persons may be left out even where k was not asked for here.
        wrong |= ~(near | (np.isnan(cell) & shown[name].is_null().to_numpy()))
    return int(wrong.sum())


def _soundness(case: _Case, forms: Mapping[str, LabelForm]) -> Iterator[Finding]:
    """Check that labels cover the cells of the original, and that the rest is unchanged."""
    kept = case.row_of >= 0
    row = case.row_of[kept]
    uneven = case.release.uneven().sum(axis=0)
    declared, release = case.declared, case.release
    for j, qi in enumerate(case.schema.qis):
        cells_as_read, times = _cells(case.original, declared, qi)
        reader = _reader(declared, qi, forms, times)
        cells, cell_of = numbered(cells_as_read[case.row[kept]])
        pairs = np.column_stack([release.label_of[row, j], cell_of])
        outside = reader.uncovered(release.label_texts[j], cells, pairs.astype(np.int64))
        figures: dict[str, Figure] = {
            "n_rows_outside": int(outside.sum()),
            "n_classes_uneven": int(uneven[j]),
        }
        bar = "cover every member, one a class"
        yield _required("labels", figures, bar, holds=not any(figures.values()), of=qi.name)
    for name in (*declared.sensitive, *(n for n in declared.keep if n in release.columns)):
        before = texts(case.original, name)[case.row[kept]]
        after = texts(release.table, name)[row]
        pairs_of_cells = zip(before, after, strict=True)
        differs = sum(not equal_cells(one, other) for one, other in pairs_of_cells)
        yield _required(
            "truth", {"n_rows_changed": differs}, "as in the original", holds=not differs, of=name
        )


def _cells(
    table: TextTable, declared: Declared, qi: Attribute
) -> tuple[pl.Series, TimeText | None]:
    """Return a column as text, and the reader of its times, if it has any."""
    cells = cells_of(table, declared, qi.name)
    times = TimeText(cells.drop_nulls().unique()) if qi.written else None
    return (plain_numbers(cells)[0] if qi.numeric and times is None else cells), times


def _reader(
    declared: Declared, qi: Attribute, forms: Mapping[str, LabelForm], times: TimeText | None
) -> LabelText:
    return LabelText(
        numeric=qi.numeric,
        branches=declared.hierarchies.get(qi.name, ()),
        by_hour=forms.get(qi.name) == "hours",
        times=times,
        levels=declared.calendars.get(qi.name, ()),
    )


def _risks(
    case: _Case,
    forms: Mapping[str, LabelForm],
    population: TextTable | int | None,
    threshold: float,
) -> Iterator[Finding]:
    """Measure the risks of prosecutor and journalist."""
    alike = np.unique(case.records.qi, axis=0, return_inverse=True)[1].ravel().astype(np.int32)
    person = case.records.person
    yield from risk_findings(
        GroupedRecords(case.class_of, person).n_persons,
        GroupedRecords(alike, person).n_persons,
        n_persons=int(person.max(initial=-1)) + 1,
        threshold=threshold,
        population=len(population) if isinstance(population, TextTable) else population,
        company=_company(case, forms, population) if isinstance(population, TextTable) else None,
    )


def _company(
    case: _Case, forms: Mapping[str, LabelForm], population: TextTable
) -> tuple[IntArray, IntArray]:
    """Return how many people of a population, and of the original, each class fits."""
    kept = np.flatnonzero(case.row_of >= 0)
    first = kept[np.unique(case.class_of[kept], return_index=True)[1]]
    label_of = case.release.label_of[case.row_of[first]]
    row_of_person = case.row[np.unique(case.records.person, return_index=True)[1]]
    found = []
    population = meant_like(population, case.original, case.declared)
    for table, rows in ((population, None), (case.original, row_of_person)):
        readers, cells, cell_of = [], [], []
        for qi in case.schema.qis:
            column, times = _cells(table, case.declared, qi)
            known, of = numbered(column if rows is None else column[rows])
            readers.append(_reader(case.declared, qi, forms, times))
            cells.append(known)
            cell_of.append(of)
        texts_of = case.release.label_texts
        found.append(company_of(readers, texts_of, label_of, cells, np.column_stack(cell_of)))
    return found[0], found[1]


def _required(
    attack: str, figures: dict[str, Figure], bar: str, *, holds: bool, of: str | None = None
) -> Finding:
    return Finding(
        attack=attack, attribute=of, figures=figures, bar=bar, holds=bool(holds), required=True
    )


def _promised(
    coded: CodedTable, class_of: Int32Array, measures: Measures, promise: Promise
) -> Iterator[Finding]:
    """Check every part of the promise, class by class."""
    broken = verify_classes(coded.records, coded.schema, promise, class_of)
    for part, attribute, name, reached, bar in _reached(coded.schema, measures, promise):
        mine = [v for v in broken if (v.part, v.attribute) == (part, attribute or "")]
        figures: dict[str, Figure] = {name: reached, "n_classes_broken": len(mine)}
        if bar is None:
            yield Finding(attack=_words(part), attribute=attribute, figures={name: reached})
        else:
            yield _required(_words(part), figures, bar, holds=not mine, of=attribute)


def _reached(
    schema: Schema, measures: Measures, promise: Promise
) -> Iterator[tuple[PromisePart, str | None, str, Figure, str | None]]:
    """Yield each part and attribute with the figure of the worst class, and the bar if required."""

    def least(required: float, neutral: float) -> str | None:
        return f">= {required:g}" if required > neutral else None

    def most(required: float) -> str | None:
        return f"<= {required:g}" if required < 1 else None

    yield PromisePart.K, None, "persons_min", measures.k, least(promise.k, 1)
    for j, qi in enumerate(schema.qis):
        yield PromisePart.D, qi.name, "values_min", measures.d[j], least(promise.d, 0)
    for j, qi in enumerate(schema.qis):
        yield (
            PromisePart.MAX_SHARE,
            qi.name,
            "share_max",
            measures.max_share[j],
            most(promise.max_share),
        )
    for s, source in enumerate(schema.sources):
        if len(source) > 1:
            name, share = _names(schema, source), measures.max_source_share[s]
            yield (
                PromisePart.MAX_SOURCE_SHARE,
                name,
                "share_max",
                share,
                most(promise.max_source_share),
            )
    for j, qi in enumerate(schema.qis):
        if qi.numeric:
            bar = least(promise.min_spread.get(qi.name, 0), 0)
            yield PromisePart.MIN_SPREAD, qi.name, "spread_min", measures.spread[j], bar
    for j, attribute in enumerate(schema.sensitive):
        name = attribute.name
        yield PromisePart.L, name, "values_min", measures.l[j], least(promise.l, 0)
        bar = least(promise.entropy_l, 1)
        yield PromisePart.ENTROPY_L, name, "entropy_l_min", measures.entropy_l[j], bar
        bar = f"<= {promise.t:g}" if np.isfinite(promise.t) else None
        yield PromisePart.T, name, "distance_max", measures.t[j], bar


def _words(part: PromisePart) -> str:
    return part.value.replace("max_", "").replace("min_", "").replace("_", " ")


def _attacks(case: _Case, promise: Promise) -> Iterator[Finding]:
    """Run the linkability attack from every source; under (k,d) and (k,l,d) it finds nothing."""
    leaks = link(case.seen, case.schema, case.records, case.class_of)
    for leak in leaks:
        required = promise.l >= 2 if leak.learned is None else promise.d >= 2
        yield Finding(
            attack=f"linkability ({leak.knows})",
            attribute=_direction(case.schema, leak),
            figures={"n_cells": leak.n_cells, "n_people": leak.n_people},
            bar="nothing" if required else None,
            holds=leak.n_cells == 0 if required else None,
            required=required,
        )
    found = homogeneity(case.seen, case.schema, case.records, case.class_of)
    for attribute, alike in zip(case.schema.sensitive, found, strict=True):
        yield Finding(
            attack="homogeneity",
            attribute=attribute.name,
            figures={"n_classes": alike.n_classes, "n_people": alike.n_people},
            bar="none" if promise.l >= 2 else None,
            holds=alike.n_classes == 0 if promise.l >= 2 else None,
            required=promise.l >= 2,
        )


def _published_columns(case: _Case, reasons: Mapping[str, str]) -> Iterator[Finding]:
    """Look for direct identifiers, and attack as somebody who knows more than QIs."""
    declared, release = case.declared, case.release
    open_ = [*declared.sensitive, *(n for n in declared.keep if n in release.columns)]
    if unknown := [name for name in reasons if name not in (*open_, *declared.qis)]:
        raise SettingsError(f"keep-anyway: {unknown[0]} is no published column")
    yield from direct_identifiers(
        case.original,
        release.table,
        qis=declared.qis,
        sensitive=declared.sensitive,
        keep=declared.keep,
        markers=declared.markers,
        reasons=reasons,
    )
    kept = case.row_of >= 0
    cells = {name: numbered(texts(release.table, name))[1] for name in open_}
    yield from known_columns(
        case.class_of[kept],
        {name: code[case.row_of[kept]] for name, code in cells.items()},
        case.records.person[kept],
        declared.sensitive,
    )


def _direction(schema: Schema, leak: Leak) -> str:
    if leak.learned is None:
        learned = " + ".join(attribute.name for attribute in schema.sensitive)
    else:
        learned = _names(schema, schema.sources[leak.learned])
    return f"{_names(schema, schema.sources[leak.known])} -> {learned}"


def _names(schema: Schema, source: tuple[int, ...]) -> str:
    return " + ".join(schema.qis[j].name for j in source)
