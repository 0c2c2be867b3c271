"""The auditor's own reading of dates, times and durations, against the standard library."""

from datetime import date, datetime, timedelta, timezone
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.time_text import TimeText

DAY_S = 86_400
ISO = TimeText(["2023-01-31"])
MONTH_FIRST = TimeText(["1/31/2023", "2/1/2023"])


@given(st.dates(), st.dates())
def test_days_are_counted_as_the_calendar_counts_them(one: date, other: date) -> None:
    a, b = ISO.number(one.isoformat()), ISO.number(other.isoformat())
    assert a is not None
    assert b is not None
    assert b - a == (other - one).days
    assert ISO.node(one.isoformat()) == one.isoformat()
    assert TimeText(["31.1.2023"]).number(one.strftime("%d.%m.") + f"{one.year:04}") == a


@given(st.datetimes(), st.integers(-14, 14))
def test_times_with_a_zone_are_counted_in_utc(at: datetime, ahead_h: int) -> None:
    zoned = at.replace(tzinfo=timezone(timedelta(hours=ahead_h)))
    here, there = ISO.number(zoned.isoformat()), ISO.number(f"{at.isoformat()}Z")
    assert here is not None
    assert there is not None
    assert there - here == ahead_h * 3_600
    assert ISO.node(f"{at.isoformat()}Z") == at.isoformat()[:13]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("13:05", 13 * 3_600 + 300),
        ("1:05 pm", 13 * 3_600 + 300),
        ("12:00 AM", 0),
        ("26:30:15,5", Fraction(26 * 3_600 + 30 * 60) + Fraction(31, 2)),
        ("PT1H30M", 5_400),
        ("P1DT2H", DAY_S + 7_200),
        ("1 days 02:00:00", DAY_S + 7_200),
        ("1 day, 2 h", DAY_S + 7_200),
        ("-26:30", -(26 * 3_600 + 30 * 60)),
        ("+0:30", 1_800),
        ("-5 min", -300),
        ("1 h 30 min", 5_400),
        ("250 ms", Fraction(1, 4)),
        ("1,5 s", Fraction(3, 2)),
    ],
)
def test_clock_times_and_durations_are_seconds(text: str, seconds: Fraction | int) -> None:
    assert ISO.number(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "", "noon", "2023-02-30", "2023-13-01", "2023-02-29", "0000-01-01", "1900-02-29",
        "2023-01-31 noon", "2023-01-31 1:5", "5", "5 parsecs", "1:2:3:4", "1 days x",
        "1,2,3 h", ". h", "1 h and 5 min",
        "+", "-", "-x",
    ],
)  # fmt: skip
def test_other_texts_are_no_times(text: str) -> None:
    assert ISO.number(text) is None
    assert ISO.node(text) is None


def test_a_leap_day_is_the_day_before_march() -> None:
    leap, after = ISO.number("2024-02-29"), ISO.number("2024-03-01")
    assert leap is not None
    assert after == leap + 1
    assert ISO.number("2000-02-29") is not None


def test_months_are_numbers_of_months() -> None:
    assert ISO.number("2023-03") == 2023 * 12 + 3
    assert ISO.node("2023-03") == "2023-03"


def test_the_cells_decide_whether_the_month_comes_first() -> None:
    assert MONTH_FIRST.number("3/4/2023") == ISO.number("2023-03-04")
    assert TimeText(["31/1/2023"]).number("3/4/2023") == ISO.number("2023-04-03")
    assert MONTH_FIRST.number("4.3.2023") == ISO.number("2023-03-04")


def test_a_time_of_day_has_its_hour_and_a_duration_no_place_in_the_calendar() -> None:
    assert ISO.node("9:05") == "T09"
    assert ISO.node("PT1H") is None
    assert ISO.node("x") is None
