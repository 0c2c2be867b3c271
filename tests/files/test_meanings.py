"""What the cells of a column mean: nothing counts as two values that are one, and codes stay."""

from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.meanings import meanings
from anonymizer.domain.plain_forms import plain_form
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.files.meanings import meant

ONE_VALUE = {
    "case": ["HIV", "hiv", "Hiv"],
    "unicode": ["\u00c9", "E\u0301", "\u00e9"],
    "width": ["\uff21\uff22", "AB", "ab"],
    "blanks": ["a b", "a  b", "a\u00a0b", "a\u200b b", "\ufeffa b", "a\tb"],
    "truth": ["true", "Yes", "1", "y", "TRUE"],
    "numbers": ["1", "01", "1.0", "+1", "1.", "\u0661", "\uff11"],
    "decimals": ["1.5", "1,5", "1.50"],
    "thousands": ["1234", "1 234", "1\u00a0234", "1'234"],
    "dates": ["2023-01-03", "2023/1/3", "03.01.2023"],
    "dashes": ["a-b", "a\u2013b", "A\u2010B"],
    "fillers": ["flu", "fl\u034fu", "flu\u3164", "\u2800flu"],
    "Greek accents": ["\u0393\u03a1\u0399\u03a0\u0397", "\u0393\u03c1\u03af\u03c0\u03b7"],
    "Russian yo": ["\u0442\u0451\u043c\u043d\u044b\u0439", "\u0442\u0435\u043c\u043d\u044b\u0439"],
    "Hebrew points": ["\u05e1\u05e8\u05d8\u05df", "\u05e1\u05b7\u05e8\u05b0\u05d8\u05b8\u05df"],
    "Arabic vowels, strokes, keyboards": [
        "\u0633\u0643\u0631\u064a",
        "\u0633\u0640\u0640\u0643\u0631\u064a",
        "\u0633\u064f\u0643\u0651\u064e\u0631\u064a",
        "\u0633\u06a9\u0631\u06cc",
    ],
    "sharp s": ["Stra\u00dfe", "STRASSE"],
}
MANY_VALUES = {
    "postcodes": ["01067", "98765", "10670"],
    "plates": ["B-A 1", "B-A 10", "B-A 100"],
    "letters": ["E", "E\u0301", "\u00c8"],
    "Russian letters": ["\u0434\u043e\u0439\u043a\u0430", "\u0434\u043e\u0438\u043a\u0430"],
    "versions": ["v2", "1.1", "1.10", "1.2.3"],
    "codes with an e": ["1E5", "100000", "12A4"],
    "names like words": ["May", "No", "On", "Ny"],
    "ids of programs": ["aB3x", "AB3X", "xY9z", "zQ1a"],
    "truth": ["yes", "no"],
    "none and no value": ["none", "flu"],
    "long numbers": ["12345678901234567", "12345678901234568"],
}


def shown(*cells: str | None, known: Sequence[str] = ()) -> list[str | None]:
    column = pl.Series("x", cells, dtype=pl.String)
    return meant(column, markers=NO_VALUE, known=known).of(column).to_list()


@pytest.mark.parametrize("cells", ONE_VALUE.values(), ids=ONE_VALUE)
def test_writings_of_one_value_are_one(cells: list[str]) -> None:
    assert len(set(shown(*cells))) == 1


@pytest.mark.parametrize("cells", MANY_VALUES.values(), ids=MANY_VALUES)
def test_values_that_only_look_alike_stay_as_they_are_written(cells: list[str]) -> None:
    assert shown(*cells) == cells


def test_the_most_frequent_writing_is_published_unless_one_is_declared() -> None:
    assert shown("HIV", "hiv", "hiv") == ["hiv"] * 3
    assert shown("HIV", "hiv", "hiv", known=["HIV", "flu"]) == ["HIV"] * 3


def test_a_code_keeps_its_zeros_and_its_case() -> None:
    assert shown("01067", "1067", "01067", "E11a", "E11A", "E11a")[:3] == ["01067"] * 3
    assert shown("E11a", "e11a", "E11a") == ["E11a"] * 3


@pytest.mark.parametrize("word", [*NO_VALUE, "", " ", "\u200b", "\u00a0", "\ufeff ", "?"])
def test_every_word_for_no_value_is_none(word: str) -> None:
    assert set(shown(word, "flu", None, "")) == {None, "flu"}


def test_what_was_folded_is_listed_without_a_value_of_anybody() -> None:
    column = pl.Series("ill", ["Secret", "secret", "SECRET", "\\N", "NaT", "flu"])
    told = [str(fold) for fold in meant(column, markers=NO_VALUE).folds]
    assert told == [
        "ill: 3 writings count as 1 values (letter case; 2 cells)",
        "ill: 2 cells say that there is no value: NaT, \\N",
    ]


@given(st.lists(st.text("aAbB01 .-,\u00e9e\u0301\u00a0", max_size=4), min_size=1, max_size=8))
def test_what_is_published_means_what_was_written_and_is_folded_once(cells: list[str]) -> None:
    column = pl.Series("x", cells, dtype=pl.String)
    once = meant(column, markers=NO_VALUE)
    again = meant(once.of(column), markers=NO_VALUE)
    assert again.of(once.of(column)).to_list() == once.of(column).to_list()
    for cell, out in zip(cells, once.of(column).to_list(), strict=True):
        assert out is None or not out.strip() or plain_form(out) != "" or out == cell


@given(st.lists(st.text("abAB12 -./", min_size=1, max_size=5), min_size=1, max_size=12))
def test_the_quick_look_finds_every_column_that_needs_a_long_one(cells: list[str]) -> None:
    values = sorted(set(cells))
    found = meanings(values, [cells.count(each) for each in values])
    expected = dict(zip(values, found.spelling, strict=True))
    column = pl.Series("x", cells, dtype=pl.String)
    got = meant(column, markers=NO_VALUE).of(column).to_list()
    n_missing = list(expected.values()).count(None)
    for cell, out in zip(cells, got, strict=True):
        assert out == expected[cell] or (n_missing == 1 and expected[cell] is None and out == cell)


def test_a_declared_value_is_published_of_cells_that_are_each_written_once() -> None:
    assert shown("low", "high", known=["Low", "High"]) == ["Low", "High"]
