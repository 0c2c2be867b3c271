"""Numbers with a unit: read as numbers where they have one, and told where that is doubtful."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonymizer
from anonymizer.algorithms.records.published_values import ValueReader
from anonymizer.domain.records import Unit
from anonymizer.files.coded_table import Declared, code_table
from anonymizer.files.quantities import Quantities, quantities
from anonymizer.files.tables import TextTable

READ = [
    (["17%", "18 %", "3.5%"], [17, 18, 3.5], ("", "%")),
    (["34 years", "1 year", "35 Years", "36"], [34, 1, 35, 36], ("", " years")),
    (["$26,122", "$1,234.50"], [26122, 1234.5], ("$", "")),
    (["1.200 EUR", "950,50 EUR"], [1200, 950.5], ("", " EUR")),
    (["5 m", "12 m"], [5, 12], ("", " m")),  # minutes, metres or months
    (["12 km/h", "13.5 km/h"], [12, 13.5], ("", " km/h")),
    (["\u20ac5", "\u20ac6", "7 EUR"], [5, 6, 7], ("\u20ac", "")),
    (["34\u5c81", "35\u5c81"], [34, 35], ("", "\u5c81")),
    (["-2 \u00b0C", "21 \u00b0C"], [-2, 21], ("", " \u00b0C")),
    (["12 m\u00b2", "13 m\u00b2"], [12, 13], ("", " m\u00b2")),
    (["\u20b91,12,406", "\u20b995,000"], [112406, 95000], ("\u20b9", "")),
]
TOLD = [
    (["5 mg", "1 g", "7 mg"], "different units"),
    (["5'11\"", "6'1\""], "two units"),
    (["5 ft 11 in", "6 ft 1 in"], "two units"),
    (["$26,122", "$1,234"], "a comma could be of decimals or of thousands"),
    (["1.200 EUR", "950 EUR"], "a point could be of decimals or of thousands"),
    ([*(f"{n} years" for n in range(20, 40)), "90 or older"], "write all so"),
]
NEITHER = [
    ["1A", "2B", "3A"],
    ["001A", "002A"],
    ["1st", "2nd", "3rd", "4th"],
    ["1012 AB", "1013 CD", "1014 XE", "1015 ZZ", "1016 QQ", "1017 WW"],
    ["A01", "B02"],
    ["x"],
    [],
]
"""Codes, ordinals and words."""


def column(cells: list[str]) -> pl.Series:
    return pl.Series("x", cells, dtype=pl.String)


@pytest.mark.parametrize(("cells", "numbers", "unit"), READ)
def test_numbers_with_one_unit_are_numbers(
    cells: list[str], numbers: list[float], unit: tuple[str, str]
) -> None:
    found = quantities(column(cells))
    assert isinstance(found, Quantities)
    assert found.numbers.cast(pl.Float64).to_list() == numbers
    assert found.unit == unit


@pytest.mark.parametrize(("cells", "why"), TOLD)
def test_what_could_be_two_numbers_is_none_and_it_is_said_what_to_write(
    cells: list[str], why: str
) -> None:
    found = quantities(column(cells))
    assert isinstance(found, str)
    assert found.startswith("categories, although")
    assert why in found
    assert not any(cell in found for cell in cells)


@pytest.mark.parametrize("cells", NEITHER)
def test_codes_stay_codes_without_a_word(cells: list[str]) -> None:
    assert quantities(column(cells)) == "categories"
    assert quantities(column(cells), as_written=True) == "categories"


def test_what_is_published_as_it_is_needs_one_writing_of_the_unit() -> None:
    same = quantities(column(["17%", "18%"]), as_written=True)
    assert isinstance(same, Quantities)
    for cells in (["17%", "18 %"], ["17%", "18"], ["1,000 EUR", "1,000.50 EUR"]):
        found = quantities(column(cells), as_written=True)
        assert isinstance(found, str)
        assert "write them plainly" in found


numbers = st.decimals(-9999, 9999, places=2) | st.integers(-9999, 9999)
units = st.sampled_from(["%", " %", " years", "kg", " km/h", " \u20ac", "\u00b0C"])


@given(st.lists(numbers, min_size=1, max_size=9, unique=True), units)
def test_a_unit_changes_no_code_and_its_labels_are_read_back(
    values: list[object], unit: str
) -> None:
    plain, united = [str(value) for value in values], [f"{value}{unit}" for value in values]
    declared = Declared(qis=["x"])
    made = code_table(TextTable(Path("t"), column(plain).to_frame()), declared)
    with_unit = code_table(TextTable(Path("t"), column(united).to_frame()), declared)
    assert with_unit.records.qi.tolist() == made.records.qi.tolist()
    [qi] = with_unit.schema.qis
    assert qi.unit == Unit("", unit)
    ends = sorted(float(x) for x in plain)
    every = ValueReader(qi).runs(f"[{ends[0]:.2f}-{ends[-1]:.2f}]{unit}")
    assert every == [(0, qi.size - 1)] or made.schema.qis[0].size == 1


@pytest.mark.parametrize("cells", [each for each, _, _ in READ])
def test_a_release_keeps_the_unit_and_the_audit_reads_it(cells: list[str]) -> None:
    rows = pl.DataFrame({"x": cells * 4, "ill": ["a", "b", "c", "d"] * len(cells)})
    found = anonymizer.anonymize(rows, qi=["x"], sa=["ill"], k=4, l=2, time_budget_s=0.2)
    assert any("with a unit" in each for each in found.report.warnings)
    made = quantities(column(cells))
    assert isinstance(made, Quantities)
    before, after = made.unit
    labels = found.frame["x"].to_list()
    assert all(each.startswith(f"{before}[") and each.endswith(f"]{after}") for each in labels)
    audit = anonymizer.audit_table(found, rows, qi=["x"], sa=["ill"], k=4, l=2)
    [covers] = [each for each in audit.findings if each.attack == "labels"]
    assert covers.figures["n_rows_outside"] == 0


def test_a_sensitive_number_with_a_unit_is_ordered() -> None:
    rows = pl.DataFrame({"x": [1, 2] * 10, "pay": [f"{n} EUR" for n in range(20)]})
    found = anonymizer.anonymize(rows, qi=["x"], sa=["pay"], k=4, t=0.5, time_budget_s=0.2)
    assert found.report.sensitive[0].kind == "number"
    assert set(found.frame["pay"]) == set(rows["pay"])
