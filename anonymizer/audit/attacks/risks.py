"""Re-identification risks of a published table, and how they change with what the population is.

Figures have the names and definitions of ARX. The average of the journalist is that of a record
drawn at random, which ARX calls the success of the marketer.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from anonymizer.algorithms.records.label_text import LabelText
from anonymizer.algorithms.records.measures import GroupedRecords
from anonymizer.algorithms.records.risks import Risk, expected_success, presence, risk
from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.table_case import TableCase, cells_of_column, reader_of
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.errors import SettingsError
from anonymizer.files.coded_table import meant_like
from anonymizer.files.published_tables import numbered
from anonymizer.files.tables import TextTable

Cells = Sequence[str | None]


def risks(case: TableCase) -> Iterator[Finding]:
    """Measure the risks of prosecutor and journalist."""
    alike = np.unique(case.records.qi, axis=0, return_inverse=True)[1].ravel().astype(np.int32)
    person, population = case.records.person, case.asked.population
    yield from _risk_findings(
        GroupedRecords(case.class_of, person).n_persons,
        GroupedRecords(alike, person).n_persons,
        n_persons=int(person.max(initial=-1)) + 1,
        threshold=case.asked.at_risk,
        population=len(population) if isinstance(population, TextTable) else population,
        company=_company(case, population) if isinstance(population, TextTable) else None,
    )


def _company(case: TableCase, population: TextTable) -> tuple[IntArray, IntArray]:
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
            column, times = cells_of_column(table, case.declared, qi)
            known, of = numbered(column if rows is None else column[rows])
            readers.append(reader_of(case.declared, qi, case.asked.labels, times))
            cells.append(known)
            cell_of.append(of)
        texts_of = case.release.label_texts
        found.append(_company_of(readers, texts_of, label_of, cells, np.column_stack(cell_of)))
    return found[0], found[1]


def _risk_findings(
    size: IntArray,
    size_original: IntArray,
    *,
    n_persons: int,
    threshold: float,
    population: int | None,
    company: tuple[IntArray, IntArray] | None,
) -> Iterator[Finding]:
    """Yield the risks of prosecutor and journalist, and what the population hides.

    `size`: persons of each published class, all above 0; `size_original`: persons alike in all
    quasi-identifiers of the original, for each combination; `n_persons`: of the original; records
    with a risk above `threshold` are counted; `population`: its persons, None for unknown;
    `company`: persons of the population, and of the original, whom each class fits, None for
    estimated; shape (classes,). SettingsError if the population is smaller than the table.
    """
    n = int(size.sum())
    before = risk(size_original, 1 / size_original, threshold=threshold)
    mine = _figures(risk(size, 1 / size, threshold=threshold), n, guess=1 / max(n_persons, 1))
    mine |= {"average_original": before.average, "share_above_original": before.share_above}
    yield Finding(attack="prosecutor", figures=mine)
    if population is None:
        return
    if population < n_persons:
        raise SettingsError("population: has fewer people than the table")
    drawn, guess = n_persons / population, 1 / population
    if company is None:
        found = risk(size, expected_success(size, drawn), threshold=threshold)
        yield Finding(attack="journalist (estimated)", figures=_figures(found, n, guess=guess))
        return
    fitting, inside = company
    # Who is in the table is in the population, whatever its register says.
    short = fitting < inside
    hidden_in = np.maximum(fitting, inside)
    found = risk(size, 1 / hidden_in, threshold=threshold)
    yield Finding(attack="journalist", figures=_figures(found, n, guess=guess))
    least: dict[str, Figure] = {"persons_min": int(hidden_in.min(initial=population))}
    yield Finding(attack="k-map", figures=least | {"n_classes_short": int(short.sum())})
    present = presence(inside, hidden_in)
    yield Finding(
        attack="presence",
        figures={
            "highest": float(present.max(initial=0.0)),
            "average": float(size @ present) / max(n, 1),
            "lowest": float(present.min(initial=1.0)),
            "drawn": drawn,
            "n": n,
        },
    )


def _figures(found: Risk, n: int, *, guess: float) -> dict[str, Figure]:
    return {
        "highest": found.highest,
        "average": found.average,
        "share_above": found.share_above,
        "guess": guess,
        "n": n,
    }


def _company_of(
    readers: Sequence[LabelText],
    labels: Sequence[Cells],
    label_of: Int32Array,
    cells: Sequence[Cells],
    cell_of: Int32Array,
) -> IntArray:
    """Return how many rows of a population each class fits, shape (classes,).

    `readers`, `labels`, `cells`: for each quasi-identifier, the reader of its labels, its different
    labels, and its different cells in the population; `label_of`, `cell_of`: index of the label of
    each class, shape (classes, quasi-identifiers), and of the cell of each row of the population,
    shape (rows, quasi-identifiers).

    Notes
    -----
    O(different labels x different cells) for each quasi-identifier that is no number, and
    O(different classes x different rows).
    """
    rows, n_alike = np.unique(cell_of, axis=0, return_counts=True)
    classes, of = np.unique(label_of, axis=0, return_inverse=True)
    fits: list[BoolArray] = [
        reader.cover(label, cell)
        for reader, label, cell in zip(readers, labels, cells, strict=True)
    ]
    found = np.empty(len(classes), np.int64)
    for c, wanted in enumerate(classes.tolist()):
        there = np.arange(len(rows))
        for j, label in enumerate(wanted):
            there = there[fits[j][label, rows[there, j]]]
        found[c] = n_alike[there].sum()
    return found[of.ravel()]


_AMONG_ALL = "a guess among all of the table"
ATTACK = Attack(
    "risks",
    Subject.TABLE,
    risks,
    (
        Question(
            "prosecutor",
            Criterion.SINGLING_OUT,
            "Does somebody who knows that a person is in the table, and their quasi-identifiers, "
            "find their row?",
            ("average",),
            ("guess",),
            against=_AMONG_ALL,
        ),
        Question(
            "journalist",
            Criterion.SINGLING_OUT,
            "Does somebody who knows the population find the person of a row?",
            ("average",),
            ("guess",),
            against="a guess among the population",
        ),
        Question(
            "k-map",
            Criterion.SINGLING_OUT,
            "How many people of the population look like a row, at least?",
        ),
        Question(
            "presence",
            Criterion.INFERENCE,
            "Does the table tell that somebody is in it?",
            ("average",),
            ("drawn",),
            against="the share of the population that is in it",
        ),
    ),
)
