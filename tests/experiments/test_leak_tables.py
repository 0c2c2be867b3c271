import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from anonymizer.domain.records import Records
from experiments.leak_tables import leak_rows, uniform_classes
from experiments.multisource_tables import made_census, made_study
from experiments.printed_figures import (
    ADULT,
    CENSUS,
    K_ANONYMITY,
    L_DIVERSITY,
    RANGES,
    SECONDS,
    TABLES,
    PrintedRow,
)
from tests.algorithms.records.made import records


@given(records(max_n=40))
def test_a_class_is_uniform_if_it_holds_one_value(table: Records) -> None:
    class_of = (np.arange(table.n) // 3 - 1).astype(np.int32)  # the first three are suppressed
    expected = [
        sum(
            len({int(v) for v in column[class_of == c]}) == 1
            for c in range(int(class_of.max(initial=-1)) + 1)
        )
        for column in table.qi.T
    ]
    assert uniform_classes(table, class_of).tolist() == expected


def test_plain_anonymity_leaks_and_k_d_does_not_as_in_the_paper() -> None:
    study = made_study(2000, seed=1)
    rows = list(leak_rows(study, ADULT, best_s=0.05, seed=1))
    assert not any(row.by_the_paper for row in rows)
    of = {(row.table, row.algorithm): row for row in rows}
    assert of.keys() == {
        (4, "Top-down"), (4, "Mondrian"), (4, "Incognito"), (4, "Flash"),
        (4, "(k,d)-anonymity, hilbert"), (4, "(k,d)-anonymity, best"),
        (5, "Incognito"), (5, "Flash"), (5, "(k,l,d)-diversity, hilbert"),
        (5, "(k,l,d)-diversity, printed"), (5, "(k,l,d)-diversity, best"),
    }  # fmt: skip
    for (table, algorithm), row in of.items():
        assert row.promise == (K_ANONYMITY if table == 4 else L_DIVERSITY)
        assert sum(row.leaks) == sum(row.uniform)
        assert row.n_suppressed == 0
        if algorithm.startswith("(k,"):
            assert (sum(row.leaks), row.n_inferred) == (0, 0)
    for algorithm in ("Top-down", "Mondrian"):
        row = of[4, algorithm]
        assert min(sum(row.leaks), row.n_inferred or 0) > 0


def test_what_is_inferred_is_of_the_other_source() -> None:
    for row in leak_rows(made_study(600, seed=1), ADULT, best_s=0, seed=1):
        for inferred in row.inferred:
            assert set(inferred.qi) <= set(((3, 4, 5), (0, 1, 2))[inferred.known])
            assert len(inferred.record) == len(inferred.qi)


def test_the_printed_rows_stand_beside_their_own_table_alone() -> None:
    made = made_census(3000, seed=1)
    assert not any(row.by_the_paper for row in leak_rows(made, CENSUS, best_s=0, seed=1))
    census = replace(made, is_made=False, is_census=True)
    rows = list(leak_rows(census, CENSUS, best_s=0, seed=1))
    printed = [row for row in rows if row.by_the_paper]
    assert [row.table for row in printed] == [6, 6, 6, 7]
    assert {row.data for row in printed} == {CENSUS}
    assert all(row.data != CENSUS for row in rows if not row.by_the_paper)
    assert {row.n_inferred for row in printed} == {None}


@pytest.mark.parametrize("row", TABLES, ids=lambda row: f"{row.place}, {row.algorithm}")
def test_the_leaks_of_a_printed_row_are_the_sums_of_its_attributes(row: PrintedRow) -> None:
    assert row.leaks == (sum(row.uniform[:3]), sum(row.uniform[3:]))


PAGE = Path(__file__).parents[2] / "notes" / "reproduction.md"


def test_the_rows_that_the_manual_calls_the_papers_are_those_of_its_tables() -> None:
    told = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
        if len(cells) > 2 and cells[1] == "the paper":
            told.append((int(cells[0]), [int(cell) for cell in cells[3:] if cell]))
    assert told == [
        (row.table, [*row.uniform, row.n_classes, *row.leaks, sum(row.leaks)])
        for row in TABLES
        if row.data == ADULT
    ]


@pytest.mark.data
def test_every_number_in_a_sentence_on_the_paper_is_one_that_it_prints() -> None:
    notes = Path(os.environ["ANONYMIZER_DATA"], "adult", "paper.md").read_text()
    printed = set(re.findall(r"[\d.]*\d", notes.replace(",", "")))
    sentences = re.findall(
        r"^- \*\*The paper.*?(?=^- |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert len(sentences) >= 8
    for sentence in sentences:
        assert set(re.findall(r"[\d.]*\d", sentence.replace(",", ""))) <= printed, sentence


@pytest.mark.data
def test_every_figure_that_bears_the_papers_name_is_in_the_notes_of_what_it_prints() -> None:
    notes = Path(os.environ["ANONYMIZER_DATA"], "adult", "paper.md").read_text()
    table, told = 0, {}
    for line in notes.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 12 and cells[1] not in {"algorithm", "---"}:
            table = int(cells[0][0]) if cells[0] else table
            if cells[2].isdigit():
                told[table, cells[1]] = [int(cell) for cell in cells[2:]]
    ours = {
        (row.table, row.algorithm): [*row.uniform, row.n_classes, *row.leaks, sum(row.leaks)]
        for row in TABLES
    }
    assert ours == told
    for seconds in SECONDS.values():
        assert f" {1000 * seconds:,.0f} " in notes
    for stated in RANGES:
        assert f"{stated.low}" in notes
        assert f"{stated.high}" in notes
