"""Units that are exact multiples of each other are one kind, and no others are."""

from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonymizer
from anonymizer.domain.exact_units import in_base_units
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.errors import InputError
from anonymizer.files.meanings import meant

SAME = [
    ["90 mg", "90mg", "0.09 g", "0.00009 kg", "90000 \u00b5g", "90000 mcg", "90.0 MG"],
    ["5 km", "5000 m", "500000cm"],
    ["90 mg/dl", "0.9 g/l", "900 mg/L"],
    ["0.5 l", "500 ml", "5 dl"],
    ["90 Wh", "0.09 kWh"],
]
APART = [
    ["90 mg", "90 g"],
    ["5 km", "5 mi"],
    ["5 USD", "5 EUR"],
    ["90 mg", "1 tablet"],
    ["36.6 \u00b0C", "97.88 \u00b0F"],
    ["90 mg/dl", "90 mg/l"],
]


def n_values(cells: list[str]) -> int:
    column = pl.Series("x", cells)
    return meant(column, markers=NO_VALUE).of(column).n_unique()


@pytest.mark.parametrize("cells", SAME)
def test_an_amount_in_two_units_is_one_value(cells: list[str]) -> None:
    assert n_values(cells) == 1
    rows = pl.DataFrame({"age": range(len(cells) * 4), "dose": cells * 4})
    with pytest.raises(InputError):
        anonymizer.anonymize(rows, qi=["age"], sa=["dose"], k=2, l=2)


@pytest.mark.parametrize("cells", APART)
def test_amounts_that_are_not_exactly_the_same_stay_apart_and_mixed_units_are_told(
    cells: list[str],
) -> None:
    assert n_values(cells) == len(cells)
    column = [f"{1 + i % 9}{cell}" for i, cell in enumerate(cells * 10)]
    rows = pl.DataFrame({"age": range(len(column)), "dose": column})
    found = anonymizer.anonymize(rows, qi=["age"], sa=["dose"], k=4, l=2, time_budget_s=0.1)
    assert any("dose" in each and "different units" in each for each in found.report.warnings)


@given(st.decimals(-1000, 1000, places=4), st.sampled_from(["kg", "mg", "ng", "cm", "nmol/ml"]))
def test_a_unit_of_one_kind_changes_no_order(number: Decimal, unit: str) -> None:
    more, base = in_base_units(number + 1, unit)
    less, same = in_base_units(number, unit)
    assert base == same
    assert more - less == in_base_units(Decimal(1), unit)[0]
