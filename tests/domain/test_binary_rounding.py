"""A number that binary floats have rounded is the number that it was."""

from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonymizer
from anonymizer.domain.binary_rounding import without_rounding
from anonymizer.files.meanings import meant
from tests.examples import many

N = 60


@many(3)
@given(st.integers(-(10**9), 10**9).filter(bool), st.integers(1, 6), st.sampled_from([-1, 0, 1]))
def test_a_neighbour_of_a_short_number_is_that_number(n: int, places: int, beside: int) -> None:
    number = n / 10**places
    near = float(np.nextafter(number, beside * np.inf)) if beside else number
    assert n % 10**places == 0 or without_rounding(Decimal(repr(near))) == Decimal(repr(number))
    column = pl.Series("a", [near, number, number, 0.5])
    assert meant(column, markers=()).of(column).n_unique() == len({number, 0.5})


@pytest.mark.parametrize("kept", ["12345.875", "1234567890123456789", "0.1", "1E-30", "1.25E+20"])
def test_a_number_that_was_not_rounded_is_as_it_is(kept: str) -> None:
    assert without_rounding(Decimal(kept)) == Decimal(kept)


def test_floats_that_differ_in_fifteen_digits_are_different_numbers() -> None:
    column = pl.Series(
        "a", [1.23456789012345, 1.23456789012346, 1e15 + 1, 1e15, None, float("nan")]
    )
    assert meant(column, markers=()).spelling is None


PAIRS = [(37.2, 37.199999999999996), (0.3, 0.1 + 0.2)]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("kind", [pl.Float64, pl.String])
def test_l_counts_a_number_once_however_a_program_has_rounded_it(
    pair: tuple[float, float], kind: type[pl.DataType]
) -> None:
    ill = pl.Series([pair[i % 2] for i in range(N)])
    frame = pl.DataFrame({"age": [20 + i % 40 for i in range(N)], "ill": ill.cast(kind)})
    asked: dict[str, Any] = {"qi": ["age"], "sa": ["ill"], "k": 5}
    with pytest.raises(anonymizer.AnonymizerError, match="1 value"):
        anonymizer.anonymize(frame, model="kld", l=2, **asked)
    release = frame.select("ill", class_id=pl.lit(0), age=pl.lit("[20-59]"))
    rows = pl.DataFrame({"in_row": range(N), "out_row": range(N)})
    assert not anonymizer.audit_table(release, frame, auditor_map=rows, l=2, **asked).holds
