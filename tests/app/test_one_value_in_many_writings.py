"""One value in several writings counts once, and two values stay two, for whoever counts."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import anonymizer
from anonymizer.audit.lone_release import judge_release
from anonymizer.files.tables import TextTable
from tests.app.test_one_folding import (
    Cells,
    Classes,
    of_a_csv,
    of_a_window,
    of_an_estimator,
    of_spark,
)

ONE = [
    ("SW1A 1AA", "SW1A1AA"),
    ("113 46", "11346"),
    ("A01.1", "A011"),
    ("50 pct", "50%", "50 percent"),
    ("1,000", "1000", "1000.00", "$1,000", "USD 1000", "1000 USD", "$1000"),
    ("<5", "< 5"),
    (">=5", "\u22655", ">= 5"),
    ("10-20", "10 - 20", "[10-20]", "10 -20"),
    ("a;b", "a; b", "a ; b"),
    ("2024-03-01", "20240301", "2024-061"),
    ("COVID-19", "Covid 19", "covid19"),
    ("HIV -", "HIV-"),
    ("True", "1.0", "yes", ".T."),
    ("tak", "1", "true"),
    ("\u306f\u3044", "1", "true"),
    ("\u0434\u0430", "\u0438\u0441\u0442\u0438\u043d\u0430", "1"),
]
TWO = [
    ("A01", "A10"),
    ("5 mg", "50 mg"),
    ("1.5", "15"),
    ("O-", "O+"),
    ("C", "C++", "C#"),
    ("a-b", "b-a"),
    ("HIV-", "HIV+"),
    ("<5", ">5"),
    ("<=5", "<5"),
    ("-1", "1"),
    ("Type 1", "Type 11"),
    ("1-23", "12-3"),
    ("$100", "\u20ac100"),
    ("1 1/2", "11/2"),
    ("A1.11", "A11.1"),
    ("0,125", "125"),
    ("2024-03-01", "20240302"),
    ("tak", "nie"),
]
NOBODYS = ["#BEZUG!", "#WERT!", "#N/V", "#NOMBRE?", "#\u00a1REF!", "Err:502", "+inf",
           "not recorded", "UNK", "ohne Angabe", "\u4e0d\u660e", "??"]  # fmt: skip


def of_an_audit(cells: Cells) -> int:
    frame = pl.DataFrame({"x": pl.Series(cells, dtype=pl.String), "there": ["a"] * len(cells)})
    return judge_release(TextTable(Path("t"), frame), ["there"], ["x"]).sensitive["x"].distinct_l


READERS = [of_a_csv, of_an_estimator, of_spark, of_a_window]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize("cells", ONE, ids=str)
def test_writings_of_one_value_are_one(reader: Callable[[Cells], Classes], cells: Cells) -> None:
    assert len(reader(cells)[0]) == of_an_audit(cells) == 1


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize("cells", TWO, ids=str)
def test_values_that_look_alike_stay_apart(
    reader: Callable[[Cells], Classes], cells: Cells
) -> None:
    assert len(reader(cells)[0]) == of_an_audit(cells) == len(cells)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize("word", NOBODYS)
def test_no_value_is_none(reader: Callable[[Cells], Classes], word: str) -> None:
    assert reader(["flu", word, "flu"]) == (frozenset({frozenset({0, 2})}), frozenset({1}))
    assert of_an_audit(["flu", word, "flu"]) == 1


def test_a_vehicle_with_three_plates_is_one_and_its_number_is_told() -> None:
    plates = [form.format(100 + i) for i in range(20) for form in ("B-AB {}", "B AB {}", "BAB{}")]
    table = pl.DataFrame({"plate": plates, "speed": [50 + i // 6 for i in range(60)]})
    made = anonymizer.anonymize(
        table, qi=["speed"], id="plate", k=6, d=1, max_share=1, method="hilbert"
    )
    assert (made.frame.height, made.report.k) == (20, 6)
    assert any("40 identifiers differ" in each for each in made.report.warnings)
    assert "plate: 60 writings count as 20 values" in str(made.report.folds[0])


def test_a_word_that_may_be_no_value_is_told() -> None:
    table = pl.DataFrame({"age": range(40), "ill": ["flu", "refused"] * 20})
    made = anonymizer.anonymize(
        table, qi=["age"], sa="ill", k=5, l=2, model="kld", method="hilbert"
    )
    assert any(each.startswith("ill: 20 cells may say") for each in made.report.warnings)
