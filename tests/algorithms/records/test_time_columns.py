"""Columns of dates, times and durations."""

import io
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.time_columns import (
    LEVELS,
    TimeCells,
    calendar_levels,
    read_times,
)
from anonymizer.algorithms.records.time_text import TimeText
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_table import CodedTable, Declared, code_table
from anonymizer.files.table_writing import write_table
from anonymizer.files.tables import TextTable

HOUR = 3600


def coded(cells: list[Any], **declared: Any) -> CodedTable:  # noqa: ANN401  as `Declared` has them
    rows = TextTable(Path("people.csv"), pl.DataFrame({"x": cells}, strict=False))
    # Beside a column that is always stated, so that every row is a record.
    beside = TextTable(rows.path, rows.frame.with_columns(stated=pl.lit(1)))
    made = code_table(beside, Declared(qis=["x", "stated"], **declared))
    records = replace(made.records, qi=made.records.qi[:, :1])
    return replace(
        made,
        records=records,
        schema=replace(made.schema, qis=made.schema.qis[:1]),
        read_as={"x": made.read_as["x"]},
        origin={"x": made.origin["x"]},
    )


def read(*cells: str) -> TimeCells:
    found = read_times(cells)
    assert isinstance(found, TimeCells), found
    return found


@pytest.mark.parametrize(
    ("cells", "read_as"),
    [
        (["2023-01-31", "2023/2/1"], "dates"),
        (["31.1.2023", "01.02.2023"], "dates"),
        (["31/1/2023", "1/2/2023"], "dates, day first"),
        (["1/31/2023", "2/1/2023"], "dates, month first"),
        (["2023-01", "2023-12"], "months"),
        (["2019-W52", "2020-W01", "2020-W53", "2021-W01"], "weeks"),
        (["2023-Q4", "2024-Q1"], "quarters"),
        (["2023-01-31T23:59", "2023-02-01 00:00:00,5"], "times"),
        (["31.1.2023 11:59 PM", "01.02.2023 12:00 am"], "times"),
        (["2023-01-31T23:59Z", "2023-02-01T05:00:00+05:00"], "times with a zone"),
        (["2023-01-31T20:30Z", "2023-01-31T18:00-05:00"], "times with a zone"),
        (["9:05", "23:59:59.5"], "times of day"),
        (["9:05 am", "9:05PM"], "times of day"),
        (["23:30", "24:30"], "durations"),
        (["PT90M", "P1W2DT3H4M5.25S"], "durations"),
        (["-1 days +23:00:00", "3 days, 1:00:00"], "durations"),
        (["-26:30", "1 h 30 min", "2 days", "1500 ms"], "durations"),
    ],
)
def test_times_are_read_as_people_write_them_and_in_their_order(
    cells: list[str], read_as: str
) -> None:
    made = coded([*reversed(cells), None, "NA"])
    (qi,) = made.schema.qis
    codes = made.records.qi[:, 0].tolist()
    assert made.read_as == {"x": read_as}
    if read_as != "durations":  # the others are listed as they follow each other
        assert [qi.written[code] for code in codes[: len(cells)]] == [*reversed(cells)]
        assert codes[: len(cells)] == [*reversed(range(len(cells)))]
    assert codes[len(cells) :] == [qi.missing] * 2
    # The audit's own parser has the same order and the same gaps.
    audit = TimeText(cells)
    mine, theirs = read(*cells).number_of, [audit.number(cell) for cell in cells]
    assert None not in theirs
    gaps = [mine[cell] - mine[cells[0]] for cell in cells]
    assert [n - theirs[0] for n in theirs if n is not None and theirs[0] is not None] == gaps


def test_of_several_writings_of_a_day_the_shortest_is_published() -> None:
    (qi,) = coded(["2024-01-02", "2024/1/2", "2024-1-03"]).schema.qis
    assert qi.written == ("2024/1/2", "2024-1-03")


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["2023-02-30", "2023-02-28"], "categories"),
        (["2023-01-31", "2023-01-31 noon", "2023-01-30"], "although most cells are dates"),
        (["12:00", "12:30", "noon"], "although most cells are times of day"),
        (["2023-01-31T12:00", "2023-01-31T12:00Z"], "categories"),
        (["24:00", "13:00 pm"], "categories"),
        (["P", "PT"], "categories"),
        (["a", "b"], "categories"),
        (["2023-W54", "2023-Q5"], "categories"),
        (["2023-W53", "2023-W01"], "categories"),
    ],
)
def test_what_is_no_time_throughout_is_categories(cells: list[str], said: str) -> None:
    made = coded(cells)
    assert said in made.read_as["x"]
    assert made.schema.qis[0].label
    for i in range(len(cells)):  # whatever comes first
        assert said in str(read_times(cells[i:] + cells[:i]))


def _forms(moment: datetime) -> dict[str, str]:
    """Forms of programs and people, and what is read and published of them."""
    d, day, iso = moment, moment.day, moment.date().isoformat()
    week = "{}-W{:02}".format(*moment.isocalendar())
    quarter = (d.month + 2) // 3
    months = ("\u044f\u043d\u0432\u0430\u0440\u044f", "\u0444\u0435\u0432\u0440\u0430\u043b\u044f")
    written = {
        f"{d:%d.%m.%y}": f"{d:%d.%m.%Y}",
        f"{d:%d/%m/%y}": f"{d:%d/%m/%Y}",
        f"{d:%m/%d/%y 10:11}": f"{d:%m/%d/%Y 10:11}",
        f"{day}. {d.month:02}. {d.year}": f"{day}.{d.month:02}.{d.year}",
        f"{day}.{d.month:02}.{d.year} \u0433.": f"{day}.{d.month:02}.{d.year}",
        f"{d:%m/%Y}": f"{d:%Y-%m}",
        f"{d:%Y/%m}": f"{d:%Y-%m}",
        f"{d:%b %Y}": f"{d:%Y-%m}",
        f"{d.year}\u5e74{d.month}\u6708": f"{d:%Y-%m}",
        f"{d.year}\ub144 {d.month}\uc6d4 {day}\uc77c": iso,
        week.replace("-", ""): week,
        f"Q{quarter} {d.year}": f"{d.year}-Q{quarter}",
        f"{d.year}Q{quarter}": f"{d.year}-Q{quarter}",
        f"{quarter}T{d.year}": f"{d.year}-Q{quarter}",
        f"{d:%d-%b-%y}".upper(): iso,
        f"{d:%A, %B} {day}, {d.year}": iso,
        f"{d:%a}, {day} {d:%b %Y} 10:11:12 +0100": f"{iso} 10:11:12 +0100",
        f"{d:%a %b %d} 10:11:12 {d.year}": f"{iso} 10:11:12",
        f"{d:%d-%b-%y}".upper() + " 10.11.12.000000 AM": f"{iso} 10:11:12.000000 AM",
        f"{d:%Y%m%d}T101112Z": f"{iso}T10:11:12Z",
        f"{iso} 10:11:12 UTC": f"{iso} 10:11:12Z",
        f"{iso}T10:11:12.123+02": f"{iso}T10:11:12.123+02:00",
        f"{iso}T10:11:12+02:00[Europe/Paris]": f"{iso}T10:11:12+02:00",
        f"{iso} 3:04 p.m.": f"{iso} 3:04 pm",
        f"{day} {d:%B %Y}": iso,
        "{}-W{:02}-{}".format(*moment.isocalendar()): iso,
        f"{day % 24}h{d.month:02}": f"{day % 24:02}:{d.month:02}",
        f"{day % 24:02}.{d.month:02} Uhr": f"{day % 24:02}:{d.month:02}",
    }
    if d.month <= len(months):
        written[f"{day} {months[d.month - 1]} {d.year}"] = iso
    return written


MOMENTS = [datetime(2024, 1, 31), datetime(2024, 2, 29), datetime(2023, 2, 13)]  # noqa: DTZ001


@pytest.mark.parametrize("at", range(len(_forms(MOMENTS[0]))))
def test_usual_forms_are_read_and_published_in_one(at: int) -> None:
    cells = [list(_forms(moment))[at] for moment in MOMENTS]
    read_as = [list(_forms(moment).values())[at] for moment in MOMENTS]
    made = coded(cells)
    assert not made.read_as["x"].startswith("categories")
    (qi,) = made.schema.qis
    assert {*qi.written} <= {*read_as}
    found, audit = read(*read_as), TimeText(read_as)
    for i, j in ((0, 1), (0, 2)):
        one, other = audit.number(read_as[i]), audit.number(read_as[j])
        assert one is not None
        assert other is not None
        mine = found.number_of
        assert mine[read_as[i]] - mine[read_as[j]] == one - other
        assert (made.records.qi[i, 0] > made.records.qi[j, 0]) == (one > other)


@pytest.mark.parametrize(
    "cells",
    [["Mar-24", "Apr-24"], ["31-03-24", "30-03-24"], ["2024-03-09 10:11 CET"], ["9 Mar", "8 Mar"],
     ["31 03 2024", "30 03 2024"], ["2024-063", "2024-366"], ["March", "may", "Sept."],
     ["Januar", "M\xe4rz", "Juli"]],
)  # fmt: skip
def test_dates_in_no_form_that_is_read_are_told(cells: list[str]) -> None:
    assert coded(cells).read_as["x"] == "categories, although most cells look like dates"


@pytest.mark.parametrize("cells", [["13/12/64", "14/01/45"], ["13-Dec-64", "14-Jan-71"]])
def test_a_year_of_two_digits_that_may_be_of_either_century_is_not_guessed(
    cells: list[str],
) -> None:
    told = "categories, although most cells look like dates (write their years with four digits)"
    assert coded(cells).read_as["x"] == told


@pytest.mark.parametrize(
    "cells", [["2024-W54-1", "2024-W10-1"], ["24h10", "9h60"], ["2024-367", "2024-500"]]
)
def test_what_no_calendar_has_is_no_date(cells: list[str]) -> None:
    assert coded(cells).read_as["x"] == "categories"


def test_a_day_or_month_that_may_be_either_is_asked_for_in_short_years_too() -> None:
    with pytest.raises(InputError, match="column x: dates could begin with the day or the month"):
        coded(["1/2/23", "3/4/23"])
    assert coded(["1/2/23", "31/4/23", "3/4/23"]).read_as["x"] != "dates"
    assert coded(["1.2.10", "1.2.3", "10.0.1"]).read_as["x"] == "categories"  # versions


@given(
    st.dates(date(1600, 1, 1), date(2199, 12, 31)), st.dates(date(1600, 1, 1), date(2199, 12, 31))
)
def test_weeks_are_counted_by_both_readers_as_the_calendar_has_them(one: date, other: date) -> None:
    cells = ["{}-W{:02}".format(*each.isocalendar()) for each in (one, other)]
    mine, audit = read(*cells).number_of, TimeText(cells)
    apart = (one - timedelta(one.weekday()) - other + timedelta(other.weekday())).days / 7
    numbers = [audit.number(cell) for cell in cells]
    assert mine[cells[0]] - mine[cells[1]] == apart
    assert numbers[0] is not None
    assert numbers[1] is not None
    assert numbers[0] - numbers[1] == apart


def test_a_date_among_times_is_its_midnight() -> None:
    made = coded(["2023-01-31", "2023-01-31 12:00", "2023-01-31 00:00"])
    assert "times" in made.read_as["x"]
    assert len(set(made.records.qi[:, 0].tolist())) == 2


def test_dates_of_two_meanings_are_refused_unless_they_are_categories() -> None:
    cells = ["1/2/2023", "3/4/2023"]
    with pytest.raises(InputError, match="column x: dates could begin with the day or the month"):
        coded(cells)
    assert coded(cells, categories=["x"]).schema.qis[0].label == tuple(cells)
    assert coded(["1/1/2023", "2/2/2023"]).schema.qis[0].written == ("1/1/2023", "2/2/2023")


def test_a_date_of_two_meanings_is_refused_behind_many_others() -> None:
    plain = [f"{year}-01-31" for year in range(1000, 3000)]
    with pytest.raises(InputError, match="could begin with the day or the month"):
        coded([*plain, "3/4/2023"])
    assert coded([*plain, "3/31/2023"]).read_as == {"x": "dates, month first"}


def test_fractions_of_seconds_are_exact_to_their_last_digit() -> None:
    digits = "0123456789012345678901234567890123456789"
    cells = [f"2023-01-31 12:00:00.{digits}{last}" for last in (1, 2, 3)]
    made = coded(cells)
    assert made.records.qi[:, 0].tolist() == [0, 1, 2]
    number = read(*cells).number_of
    assert number[cells[1]] - number[cells[0]] == Fraction(1, 10**41)


@given(st.datetimes(), st.datetimes(), st.sampled_from([" ", "T"]))
def test_both_parsers_have_the_distances_of_the_standard_library(
    one: datetime, other: datetime, sep: str
) -> None:
    cells = [each.isoformat(sep) for each in (one, other)]
    if one == other:
        return
    gap = Fraction((other - one) // timedelta(microseconds=1), 10**6)
    number, audit = read(*cells).number_of, TimeText(cells)
    mine = [audit.number(cell) for cell in cells]
    assert number[cells[1]] - number[cells[0]] == gap
    assert mine[0] is not None
    assert mine[1] is not None
    assert mine[1] - mine[0] == gap
    for each, cell in zip((one, other), cells, strict=True):
        assert audit.node(cell) == each.isoformat()[:13]
        nodes = (each.isoformat()[:n] for n in (13, 10, 7, 4))
        assert read(*cells).branch(cell, LEVELS) == (cell, *nodes, "*")


def test_a_calendar_has_the_levels_above_the_cells_alone() -> None:
    assert read("2023-01-31").branch("2023-01-31", LEVELS) == ("2023-01-31", "2023-01", "2023", "*")
    assert read("2023-01").branch("2023-01", LEVELS) == ("2023-01", "2023", "*")
    assert read("9:05").branch("9:05", LEVELS) == ("9:05", "T09", "*")
    with pytest.raises(ValueError, match="a duration is in no calendar"):
        read("PT1H").branch("PT1H", LEVELS)
    assert calendar_levels("year-day") == ("year", "day")
    assert calendar_levels("day-year") is None
    assert calendar_levels("job.csv") is None


@pytest.mark.parametrize("cells", [["PT1H", "PT2H"], ["a", "b"], ["1", "2"]])
def test_a_calendar_of_anything_else_is_refused(cells: list[str]) -> None:
    with pytest.raises(InputError, match=r"column x: (has a calendar|a duration)"):
        coded(cells, calendars={"x": LEVELS})


def test_a_calendar_with_another_declaration_is_refused() -> None:
    for declared in ({"categories": ["x"]}, {"orders": {"x": ["a"]}}, {"times": ["x"]}):
        with pytest.raises(SettingsError, match="x"):
            Declared(qis=["x"], calendars={"x": LEVELS}, **declared)
    with pytest.raises(SettingsError, match="is not a quasi-identifier"):
        Declared(qis=["y"], calendars={"x": LEVELS})


@pytest.mark.parametrize(
    ("cells", "read_as"),
    [
        ([date(2023, 1, 31), date(2023, 2, 1)], "dates"),
        ([datetime(2023, 1, 31, 5), datetime(2023, 2, 1)], "times"),  # noqa: DTZ001  no zone here
        ([datetime(2023, 1, 31, 5, tzinfo=UTC), datetime(2023, 2, 1, tzinfo=UTC)],
         "times with a zone"),
        ([time(5), time(6, 30)], "times of day"),
        ([timedelta(hours=-5), timedelta(days=2, microseconds=1)], "durations"),
    ],
)  # fmt: skip
def test_times_of_a_data_frame_are_times_and_a_csv_can_hold_them(
    cells: list[Any], read_as: str
) -> None:
    made = coded([*cells, None])
    assert made.read_as == {"x": read_as}
    assert made.records.qi[:, 0].tolist() == [0, 1, 2]
    file = io.BytesIO()
    write_table(file, pl.DataFrame({"x": cells}), ".csv")
    assert file.getvalue().decode().splitlines()[1:] == [*made.schema.qis[0].written]


def test_distances_are_days_months_or_seconds() -> None:
    for cells, gap in (
        (["2023-01-31", "2023-03-01"], 29),
        (["2022-12", "2024-01"], 13),
        (["9:05", "10:05"], HOUR),
        (["2023-01-31 23:00", "2023-02-01 00:00"], HOUR),
    ):
        assert coded(cells).schema.qis[0].span == gap
