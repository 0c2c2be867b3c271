"""Tables in codes."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.records.attributes import Branch, Interval
from anonymizer.domain.records import NO_CODE, Attribute
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_table import CodedTable, Declared, code_table
from anonymizer.files.tables import TextTable

JOBS: tuple[Branch, ...] = (
    ("nurse", "care", "*"),
    ("pilot", "air", "*"),
    ("doctor", "care", "*"),
)


def table(**columns: list[Any]) -> TextTable:
    return TextTable(Path("people.csv"), pl.DataFrame(columns, strict=False))


def coded(rows: TextTable, **declared: Any) -> CodedTable:  # noqa: ANN401  as `Declared` takes them
    """The columns coded beside one that is always stated, so that every row is a record."""
    names = rows.frame.columns
    if "sources" in declared:
        return code_table(rows, Declared(qis=names, **declared))
    beside = TextTable(rows.path, rows.frame.with_columns(stated=pl.lit(1)))
    made = code_table(beside, Declared(qis=[*names, "stated"], **declared))
    return replace(
        made,
        records=replace(made.records, qi=made.records.qi[:, :-1]),
        schema=replace(made.schema, qis=made.schema.qis[:-1]),
        read_as={name: made.read_as[name] for name in names},
        origin={name: made.origin[name] for name in names},
    )


def meant(qi: Attribute, code: int) -> str | float | None:
    """What a code stands for."""
    if code == qi.missing:
        return None
    return qi.label[code] if qi.label else float(qi.position[code])


@given(st.lists(st.sampled_from(["a", "b ", "c|d", "?", "", None, "NA", "7"]), min_size=1))
def test_every_category_can_be_told_from_its_code_and_a_marker_is_the_last(
    cells: list[str | None],
) -> None:
    made = coded(
        TextTable(Path("t"), pl.DataFrame({"x": pl.Series(cells, dtype=pl.String)})),
        markers=["NA"],
        categories=["x"],
    )
    (qi,) = made.schema.qis
    expected = [None if cell in {None, "", "?", "NA"} else str(cell).strip() for cell in cells]
    assert [meant(qi, code) for code in made.records.qi[:, 0].tolist()] == expected
    if None in expected:
        assert (qi.missing, qi.label[-1]) == (qi.size - 1, "?")
    else:
        assert qi.missing == NO_CODE


@given(st.lists(st.none() | st.integers(-5, 5) | st.sampled_from([0.1, 0.25, 1e9]), min_size=1))
def test_every_number_can_be_told_from_its_code_in_csv_and_in_parquet(
    cells: list[float | None],
) -> None:
    columns = {
        "csv": pl.Series([None if x is None else str(x) for x in cells], dtype=pl.String),
        "parquet": pl.Series(cells, dtype=pl.Float64, strict=False),
    }
    made = coded(TextTable(Path("t"), pl.DataFrame(columns)))
    for j, qi in enumerate(made.schema.qis):
        codes = made.records.qi[:, j].tolist()
        assert [meant(qi, code) for code in codes] == cells
        assert (np.diff(qi.position) > 0).all()
        assert qi.missing == (qi.size - 1 if None in cells else NO_CODE)


def test_the_order_declared_is_the_order_of_the_codes() -> None:
    rows = table(job=["pilot", "?", "nurse"], age=[30, 31, 33])
    made = coded(
        rows, orders={"job": ["pilot", "doctor", "nurse"]}, ranges={"age": Interval(30, 34)}
    )
    job, age = made.schema.qis
    assert job.label == ("pilot", "doctor", "nurse", "?")
    assert age.position.tolist() == [30, 31, 32, 33, 34]
    assert made.records.qi.tolist() == [[0, 0], [3, 1], [2, 3]]
    assert made.origin == {"job": "order", "age": "range"}


def test_a_marker_that_the_order_names_is_of_the_domain_even_where_nothing_is_missing() -> None:
    made = coded(table(job=["a"]), orders={"job": ["NA", "a", "b"]}, markers=["NA"])
    assert made.schema.qis[0].label == ("a", "b", "?")
    assert made.schema.qis[0].missing == 2


def test_a_hierarchy_orders_its_leaves_and_takes_in_a_marker_that_it_lacks() -> None:
    made = coded(table(job=["pilot", None]), hierarchies={"job": JOBS})
    (job,) = made.schema.qis
    assert job.label == ("nurse", "doctor", "pilot", "?")
    assert job.hierarchy is not None
    assert [job.hierarchy.label[n] for n in job.hierarchy.ancestor[3]] == ["?", "*", "*"]
    assert made.origin == {"job": "hierarchy"}


def test_as_in_the_paper_a_missing_value_is_one_more_value() -> None:
    made = coded(table(job=["pilot", None]), hierarchies={"job": JOBS}, markers_are_values=True)
    (job,) = made.schema.qis
    assert (job.missing, job.label[-1]) == (NO_CODE, "?")
    with pytest.raises(InputError, match="column age, row 2: is missing"):
        coded(table(age=["30", "?"]), ranges={"age": Interval(0, 99)}, markers_are_values=True)


def test_a_hierarchy_of_numbers_gives_their_places_and_a_range_cuts_it() -> None:
    ages = [(str(n), "young" if n < 30 else "old", "*") for n in range(28, 33)] + [("?", "*")]
    made = coded(table(age=["29", "?", "30"]), hierarchies={"age": ages})
    assert made.schema.qis[0].position.tolist() == [28, 29, 30, 31, 32, 33]
    assert made.records.qi[:, 0].tolist() == [1, 5, 2]
    made = coded(table(age=[29, 30]), hierarchies={"age": ages}, ranges={"age": Interval(29, 31)})
    assert made.schema.qis[0].position.tolist() == [29, 30, 31]


@pytest.mark.parametrize(
    ("cells", "declared", "fault"),
    [
        (["a", "secret"], {"orders": {"x": ["a"]}}, "column x, row 2: lies outside its domain"),
        (["a", "secret"], {"orders": {"x": ["a"]}}, "row 2: lies outside"),
        (["1", "", "77"], {"ranges": {"x": Interval(1, 5)}}, "column x, row 3: lies outside"),
        ([1.0, 1.5], {"ranges": {"x": Interval(1, 5, 1)}}, "column x, row 2: lies outside"),
        (["1", "secret"], {"ranges": {"x": Interval(1, 5)}}, "column x, row 2: is not a number"),
        ([1.0, math.inf], {}, "column x, row 2: is not finite"),
        ([[1], [2]], {}, "column x: must hold text or numbers"),
        (["a"], {"orders": {"x": ["a", "z"]}, "hierarchies": {"x": (("a", "*"),)}}, "lacks a cat"),
        (["a"], {"orders": {"x": ["a"]}, "ranges": {"x": Interval(0, 1)}}, "has categories, and"),
        (["1"], {"hierarchies": {"x": (("1", "*"),)}, "ranges": {"x": Interval(2, 3)}}, "outside"),
    ],
)
def test_what_does_not_fit_is_named_by_column_and_row_and_never_quoted(
    cells: list[Any], declared: dict[str, Any], fault: str
) -> None:
    with pytest.raises(InputError, match=fault) as error:
        coded(table(x=cells), **declared)
    assert not any(word in str(error.value) for word in ("secret", "77", "1.5"))


@pytest.mark.parametrize("kind", [pl.Date, pl.Datetime("us"), pl.Datetime("us", "Europe/Berlin")])
def test_a_time_that_no_calendar_has_is_refused(kind: pl.DataType) -> None:
    number = pl.Series([None, 0, 2**31 - 1 if kind == pl.Date else 2**63 - 1])
    cells = number.cast(pl.Int32 if kind == pl.Date else pl.Int64).cast(kind)
    with pytest.raises(InputError, match="column x, row 3: is no date of the calendar"):
        coded(TextTable(Path("people.csv"), pl.DataFrame({"x": cells})))


@pytest.mark.parametrize(
    "cells", [["007", "8"], ["1", "x"], ["1-2", "1"], [True, False], [None, None], ["?", ""]]
)
def test_what_does_not_read_as_a_number_throughout_is_categories(cells: list[Any]) -> None:
    assert not coded(table(x=cells)).schema.qis[0].numeric


@pytest.mark.parametrize(
    ("cells", "numbers", "read_as"),
    [
        (["1,5", "2,25", "-3"], [1.5, 2.25, -3.0], "numbers with decimal commas"),
        (["1.000,5", "2,5"], [1000.5, 2.5], "numbers with decimal commas"),
        (["1,000.5", "12"], [1000.5, 12.0], "numbers with thousands separators"),
        (["1,234,567", "12"], [1234567.0, 12.0], "numbers with thousands separators"),
        (["1 234", "12"], [1234.0, 12.0], "numbers with thousands spaces"),
        (["1'234,5", "12"], [1234.5, 12.0], "numbers with thousands spaces and decimal commas"),
        (["30", "NA", "nan", "null", "-", "inf", "31"], [30.0, 31.0], "numbers"),
    ],
)
def test_numbers_are_read_as_people_write_them(
    cells: list[str], numbers: list[float], read_as: str
) -> None:
    made = coded(table(x=cells))
    (qi,) = made.schema.qis
    codes = [code for code in made.records.qi[:, 0].tolist() if code != qi.missing]
    assert [float(qi.position[code]) for code in codes] == numbers
    assert made.read_as == {"x": read_as}


def test_a_comma_of_two_meanings_is_refused_unless_the_column_is_of_categories() -> None:
    rows = table(x=["1,234", "5,678"])
    with pytest.raises(InputError, match="column x: a comma could be of decimals or of thousands"):
        coded(rows)
    assert coded(rows, categories=["x"]).schema.qis[0].label == ("1,234", "5,678")


def test_categories_of_which_most_are_numbers_are_said_to_be_so() -> None:
    made = coded(table(x=["1", "2", "3", "four"]))
    assert made.read_as == {"x": "categories, although most cells are numbers"}


@pytest.mark.parametrize("cells", [["1,5", "2,50"], ["2023-01-31", "2023-02-01"]])
def test_text_that_is_published_unchanged_is_neither_a_number_nor_a_time(cells: list[str]) -> None:
    rows = table(age=[1, 2], x=cells)
    made = code_table(rows, Declared(qis=["age"], sensitive=["x"])).schema.sensitive[0]
    assert (made.label, made.written) == (tuple(cells), ())
    assert code_table(rows, Declared(qis=["x"])).schema.qis[0].numeric


@pytest.mark.parametrize("cells", [["00501", "10115"], ["007", "1,5"], ["0100", "2.000,5"]])
def test_numbers_with_padding_zeros_are_said_to_be_categories(cells: list[str]) -> None:
    assert coded(table(x=cells)).read_as == {"x": "categories, because of padding zeros"}


def test_numbers_of_32_bits_are_those_that_were_written() -> None:
    column = pl.Series("x", [0.1, 0.2, None, 16777216.0], dtype=pl.Float32)
    made = coded(TextTable(Path("people.parquet"), pl.DataFrame([column])))
    qi = made.schema.qis[0]
    assert [meant(qi, code) for code in made.records.qi[:, 0].tolist()] == [0.1, 0.2, None, 2**24]


def test_a_marker_can_be_a_number() -> None:
    made = coded(table(x=[3, -1, 5], y=["3", "-1", "5"]), markers=["-1", "none"])
    for j, qi in enumerate(made.schema.qis):
        assert [meant(qi, code) for code in made.records.qi[:, j].tolist()] == [3, None, 5]


def test_rows_without_an_identifier_are_no_records_and_equal_identifiers_one_person() -> None:
    rows = table(
        name=["eve", "?", "adam", None, " eve"], age=[1, 2, 3, 4, 5], illness=list("abcde")
    )
    made = code_table(rows, Declared(qis=["age"], sensitive=["illness"], id="name"))
    assert made.row.tolist() == [0, 2, 4]
    assert made.records.person.tolist() == [1, 0, 1]
    assert made.open["illness"].to_list() == ["a", "c", "e"]
    assert (made.n_rows, made.records.n) == (5, 3)
    with pytest.raises(InputError, match="column name: has no identifier"):
        code_table(table(name=["?"], age=[1]), Declared(qis=["age"], id="name"))


def test_the_codes_of_what_is_published_as_it_is_are_equal_where_that_is() -> None:
    rows = table(age=[1, 2, 3, 4], illness=["b", "a", None, "b"], shift=[2.5, 2.5, 1.0, None])
    made = code_table(rows, Declared(qis=["age"], sensitive=["illness"], keep=["shift"]))
    assert made.open_code.tolist() == [[2, 2], [1, 2], [0, 1], [2, 0]]
    with pytest.raises(InputError, match="column shift: holds List: make columns of it"):
        code_table(table(age=[1], shift=[[1]]), Declared(qis=["age"], keep=["shift"]))


def test_what_no_source_names_is_told_by_one_more() -> None:
    rows = table(a=[1], b=[1], c=[1], d=[1])
    assert coded(rows, sources=[]).schema.sources == ((0, 1, 2, 3),)
    assert coded(rows, sources=[["c", "a"]]).schema.sources == ((2, 0), (1, 3))
    assert coded(rows, sources=[["a", "b"], ["c", "d"]]).schema.sources == ((0, 1), (2, 3))


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        ({"qis": []}, "at least one"),
        ({"qis": ["a"], "id": "a"}, "column a is declared twice"),
        ({"qis": ["a"], "keep": ["a"]}, "column a is declared twice"),
        ({"qis": ["a"], "sources": [["b"]]}, "b is not a quasi-identifier"),
        ({"qis": ["a"], "sources": [["a"], ["a"]]}, "a is in two sources"),
        ({"qis": ["a"], "ranges": {"b": Interval(0, 1)}}, "b is neither"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(
    declared: dict[str, Any], fault: str
) -> None:
    with pytest.raises(SettingsError, match=fault):
        Declared(**declared)


_CELLS = ["a", "b ", "?", "", None, "NA", "7", "07", "1,5", "1.234,5", "2024-01-31", "true", "-0"]


@given(
    st.lists(st.sampled_from(_CELLS), min_size=2, max_size=12)
    | st.lists(st.integers(-3, 3) | st.none(), min_size=2, max_size=12)
    | st.lists(st.sampled_from([True, False, None]), min_size=2, max_size=12)
    | st.lists(st.sampled_from([0.5, -0.0, 0.0, math.nan, None]), min_size=2, max_size=12)
)
@settings(max_examples=60)
def test_a_large_table_is_read_as_a_small_one_with_the_same_cells(cells: list[Any]) -> None:
    few, many = table(x=cells), table(x=cells * (12_000 // len(cells) + 1))
    try:
        small = coded(few, markers=["NA"])
    except InputError as error:
        with pytest.raises(InputError, match=re.escape(str(error))):
            coded(many, markers=["NA"])
        return
    large = coded(many, markers=["NA"])
    assert large.read_as == small.read_as
    qi, same = large.schema.qis[0], small.schema.qis[0]
    assert (qi.label, qi.missing, qi.written) == (same.label, same.missing, same.written)
    np.testing.assert_array_equal(qi.position, same.position)
    assert (large.records.qi == np.resize(small.records.qi, large.records.qi.shape)).all()


def test_a_column_that_was_not_read_is_refused_and_nothing_is_shown_of_a_table() -> None:
    with pytest.raises(InputError, match="no column b"):
        code_table(table(a=[1]), Declared(qis=["a", "b"]))
    assert "secret" not in repr(coded(table(a=["secret"])))
