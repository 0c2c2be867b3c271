"""The auditor's own reading of labels, form by form."""

import numpy as np
import pytest

from anonymizer.algorithms.records.label_text import LabelText, equal_cells
from anonymizer.algorithms.records.time_text import TimeText

NUMBERS = LabelText(numeric=True)
WORDS = LabelText(numeric=False, branches=[("bus", "large", "*"), ("van", "small", "*")])
BANDS = LabelText(numeric=True, branches=[("18", "young", "*"), ("x", "nothing")])
HOURS = LabelText(numeric=True, by_hour=True)
DATES = LabelText(numeric=False, times=TimeText(["31.1.2023", "1.2.2023"]))
CALENDAR = LabelText(
    numeric=False, times=TimeText(["2023-01-31T12:00"]), levels=("year", "month", "day", "hour")
)
CLOCK = LabelText(numeric=False, times=TimeText(["9:05"]), levels=("hour",))


@pytest.mark.parametrize(
    ("labels", "label", "cell", "fits"),
    [
        (DATES, "[31.1.2023..1.2.2023]", "31.1.2023", True),
        (DATES, "[31.1.2023..1.2.2023]", "2.2.2023", False),
        (DATES, "[31.1.2023..never]", "31.1.2023", False),
        (DATES, "[31.1.2023]", "31.1.2023", False),
        (DATES, "31.1.2023", "31.1.2023", False),  # a value alone is a range, too
        (DATES, "[31.1.2023..1.2.2023]", "soon", False),
        (DATES, "{[31.1.2023..1.2.2023]|?}", None, True),
        (CALENDAR, "*", "2023-01-31T12:00", True),
        (CALENDAR, "2023", "2023-01-31T12:00", True),
        (CALENDAR, "2023-01-31", "2023-01-31T12:00", True),
        (CALENDAR, "2023-01-31T12", "2023-01-31T12:00", True),
        (CALENDAR, "2023-01-31T13", "2023-01-31T12:00", False),
        (CALENDAR, "2023-01-31T12:00", "2023-01-31T12:00", True),
        (CALENDAR, "PT1H", "PT2H", False),
        (CLOCK, "T09", "9:59", True),
        (CLOCK, "T10", "9:59", False),
    ],
)
def test_a_range_or_node_of_a_calendar_covers_its_times(
    labels: LabelText,
    label: str,
    cell: str | None,
    fits: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    assert labels.covers(label, cell) is fits


def test_pairs_of_labels_and_cells_that_do_not_fit_are_found() -> None:
    pairs = np.array([[0, 0], [1, 0], [0, 0], [2, 1]])
    assert NUMBERS.uncovered(["[1-2]", "3", None], ["2", "4"], pairs).tolist() == [
        False, True, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("label", "cell", "fits"),
    [
        ("[1-5]", "5", True),
        ("[1-5]", "5.0000000000000001", False),
        ("[-5--1]", "-5", True),
        ("[1700000007010-1700000008970]", "1700000008972", False),
        ("7", "7.0", True),
        ("{[1-2]|?}", None, True),
        ("[1-2]", None, False),
        ("[1-2]", "two", False),
        ("[1-x]", "1", False),
        ("[12]", "1", False),
        ("NaN", "1", False),
    ],
)
def test_a_range_covers_its_numbers_to_the_last_digit(
    label: str,
    cell: str | None,
    fits: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    assert NUMBERS.covers(label, cell) is fits


@pytest.mark.parametrize(
    ("label", "cell", "fits"),
    [
        ("van", "van", True),
        ("large", "bus", True),
        ("large", "van", False),
        ("*", "van", True),
        ("{van|bus}", "bus", True),
        ("{van|bus", "bus", False),
        ("{van|bus} ", "bus", False),
        (r"{a\|b|c\}}", "a|b", True),
        (r"{a\|b|c\}}", "c}", True),
        ("G5615 area", "G5615530120", True),
        ("G5615区域", "G5611530120", False),
        ("all areas", "G5611530120", True),
        ("unknown area", None, True),
    ],
)
def test_a_word_is_covered_by_itself_its_branch_its_set_and_its_area(
    label: str,
    cell: str | None,
    fits: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    assert WORDS.covers(label, cell) is fits


def test_a_node_covers_what_it_holds_whatever_its_name_says() -> None:
    lies = LabelText(
        numeric=True, branches=[("25", "[20-29]", "*"), ("26", "[20-39]", "*"), ("34", "g", "*")]
    )
    assert lies.covers("[20-29]", "25")
    assert not lies.covers("[20-29]", "26")
    assert lies.covers("[26-34]", "34")  # no node, but a range of present values
    areas = LabelText(numeric=False, branches=[("G5a", "G5 area", "*"), ("G5b", "h", "*")])
    assert areas.covers("G5 area", "G5a")
    assert not areas.covers("G5 area", "G5b")


def test_a_unit_around_a_label_is_not_read() -> None:
    money = LabelText(numeric=True, unit=("$", " a year"))
    assert money.covers("$[1-5] a year", "5")
    assert not money.covers("$[1-5] a year", "6")
    assert money.covers("{$7 a year|?}", "7")


def test_numbers_have_branches_too() -> None:
    assert BANDS.covers("young", "18.0")
    assert not BANDS.covers("young", "19")


@pytest.mark.parametrize(
    ("label", "minute", "fits"),
    [
        ("morning (06-09)", "360", True),
        ("morning (06-09)", "540", False),
        ("night (22-05)", "1439", True),
        ("night (22-05)", "299", True),
        ("night (22-05)", "600", False),
        ("night", "600", False),
    ],
)
def test_hours_cover_minutes_also_over_midnight(
    label: str,
    minute: str,
    fits: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    assert HOURS.covers(label, minute) is fits


def test_pairs_that_do_not_fit_are_found_and_a_label_that_is_missing_covers_nothing() -> None:
    pairs = np.array([[0, 0], [0, 1], [1, 0], [0, 0]])
    assert NUMBERS.uncovered(["[1-2]", None], ["1", "3"], pairs).tolist() == [
        False, True, True, False
    ]  # fmt: skip


def test_cells_are_equal_as_texts_or_as_numbers() -> None:
    assert equal_cells("1.50", "1.5")
    assert equal_cells(None, None)
    assert not equal_cells(None, "1")
    assert not equal_cells("a", "b")
    assert not equal_cells("inf", "Infinity")


@pytest.mark.parametrize("reader", [NUMBERS, WORDS, BANDS, HOURS, DATES, CALENDAR])
def test_the_labels_that_cover_cells_are_those_found_one_by_one(reader: LabelText) -> None:
    labels = [
        "[1-3]",
        "[-5--1]",
        "3",
        "{[2-4]|?}",
        "?",
        "*",
        "bus",
        "large",
        "young",
        "[1",
        "2023",
        None,
    ]
    cells = ["1", "3.0", "-2", "18", None, "bus", "van", "large", "31.1.2023", "2023-01-31T12:00"]
    found = reader.cover(labels, cells)
    assert found.tolist() == [[reader.covers(one or "", cell) for cell in cells] for one in labels]
