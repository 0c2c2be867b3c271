"""What the cells of a column mean: nothing counts as two values that are one, and codes stay."""

from collections.abc import Sequence

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.meanings import meanings
from anonymizer.domain.plain_forms import plain_form
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.files.meanings import meant


def shown(*cells: str | None, known: Sequence[str] = ()) -> list[str | None]:
    column = pl.Series("x", cells, dtype=pl.String)
    return meant(column, markers=NO_VALUE, known=known).of(column).to_list()


def test_the_most_frequent_writing_is_published_unless_one_is_declared() -> None:
    assert shown("HIV", "hiv", "hiv") == ["hiv"] * 3
    assert shown("HIV", "hiv", "hiv", known=["HIV", "flu"]) == ["HIV"] * 3


def test_a_code_keeps_its_zeros_and_its_case() -> None:
    assert shown("01067", "1067", "01067", "E11a", "E11A", "E11a")[:3] == ["01067"] * 3
    assert shown("E11a", "e11a", "E11a") == ["E11a"] * 3


def test_every_word_for_no_value_is_none() -> None:
    words = [*NO_VALUE, "", " ", "\u200b", "\u00a0", "\ufeff ", "?"]
    assert [w for w in words if set(shown(w, "flu", None, "")) != {None, "flu"}] == []


def test_what_was_folded_is_listed_without_a_value_of_anybody() -> None:
    column = pl.Series("ill", ["Secret", "secret", "SECRET", "\\N", "NaT", "flu"])
    told = [str(fold) for fold in meant(column, markers=NO_VALUE).folds]
    assert told == [
        "ill: 3 writings count as 1 value (letter case; 2 cells)",
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
