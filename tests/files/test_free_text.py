"""A few sentences that tell of somebody are found among many that do not."""

from pathlib import Path

import polars as pl
import pytest

from anonymizer.files.free_text import told_columns, told_of
from anonymizer.files.tables import TextTable

TOLD = {
    "phone": "call back on +358 40 {:03} 4567 about the biopsy",
    "phone of 00": "reachable at 0049 170 12{:03}67 after five",
    "national phone": "her mobile is (555) 201-1{:03}, in the mornings",
    "e-mail": "wrote to p{}@example.org twice",
    "title": "told Mrs Meier, bed {}, about the biopsy",
    "German title": "mit Frau M\u00fcller in Zimmer {} gesprochen",
}
ORDINARY = (
    *("ok", "blood pressure 120/80, pulse 72", "took 400 mg at 12:30, again at 18:00"),
    *("room 1204, bed 3", "since 2024-03-01", "lot 2024-001-334 of 1.000.000", "Dr visit planned"),
    *("5 to 10 times a week", "Married-civ-spouse", "ICD-10: C50.9, G-BA 1", "call again tomorrow"),
    *("from 1990 to 2004 in Ward 7", "10 000 000 a year", "+10 % in 2024", "+2 to +3 points, 12 h"),
)


def counted(cells: list[str]) -> pl.DataFrame:
    return pl.Series("cell", cells).value_counts(name="n")


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5])
def test_a_person_in_a_few_sentences_is_found(told: str, share: float) -> None:
    n = int(100 * share)
    cells = [told.format(i) if i < n else ORDINARY[i % 3] for i in range(100)]
    found = told_of(counted(cells))
    assert found is not None
    assert found.direct
    assert found.n_cells == n


@pytest.mark.parametrize("cell", ORDINARY)
def test_an_ordinary_sentence_tells_of_nobody(cell: str) -> None:
    assert told_of(counted([cell, "ok"])) is None


def test_kept_and_sensitive_columns_are_looked_at_once_and_others_not() -> None:
    note = [f"told Mrs Meier of bed {i}" if i < 3 else "ok" for i in range(40)]
    mail = [f"p{i}@example.org" for i in range(40)]
    table = TextTable(Path("t"), pl.DataFrame({"a": note, "b": note, "c": note, "d": mail}))
    found = list(
        told_columns(table, table, qis=["c"], sensitive=["b"], keep=["a", "d"], markers=())
    )
    assert [(name, each.n_cells) for name, each in found] == [("d", 40), ("a", 3), ("b", 3)]
