from datetime import datetime, time
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_columns import with_minutes
from anonymizer.files.coded_table import Declared, code_table
from anonymizer.files.tables import TextTable


def minutes(cells: object, markers: tuple[str, ...] = ()) -> list[float | None]:
    table = TextTable(Path("t.csv"), pl.DataFrame({"at": cells}))
    return with_minutes(table, ["at"], markers).frame["at"].to_list()


@pytest.mark.parametrize(
    ("text", "minute"),
    [
        ("2023-01-03 00:33:06", 33),
        ("2023-01-03T14:39:32.000000", 879),
        ("2023/1/3 9:05", 545),
        ("2023-01-03T23:59:59+08:00", 1439),
        ("2023-01-03 00:00:00Z", 0),
        ("7:30", 450),
    ],
)
def test_a_local_time_is_the_minute_of_the_day_as_it_is_written(text: str, minute: int) -> None:
    assert minutes([text, None, "?", "none"], ("none",)) == [minute, None, None, None]


@given(st.lists(st.times(), min_size=1, max_size=5))
def test_times_of_a_parquet_file_and_as_text_are_the_same_minutes(times: list[time]) -> None:
    expected = [each.hour * 60 + each.minute for each in times]
    assert minutes(times) == expected
    assert minutes([each.isoformat() for each in times]) == expected
    assert minutes([datetime(2023, 1, 3, t.hour, t.minute) for t in times]) == expected  # noqa: DTZ001  local


def test_numbers_are_minutes_already() -> None:
    assert minutes([0, 1439, None]) == minutes(["0", "1439", None]) == [0, 1439, None]


@pytest.mark.parametrize("text", ["24:00", "12:60", "noon", "2023-01-03", "12:00 pm", "30"])
def test_what_is_no_time_is_refused_by_its_row_and_not_shown(text: str) -> None:
    with pytest.raises(InputError, match=r"column at, row 3: is no time of day") as refused:
        minutes(["12:00", None, text])
    assert text not in str(refused.value)


def test_a_time_has_the_minutes_of_a_day_for_a_domain_and_midnight_is_no_marker() -> None:
    table = TextTable(Path("t.csv"), pl.DataFrame({"at": ["00:00", "0:01", "-", None]}))
    table = TextTable(table.path, table.frame.with_columns(stated=pl.lit(1)))
    coded = code_table(table, Declared(qis=["at", "stated"], times=["at"], markers=["-", "0"]))
    at, _ = coded.schema.qis
    assert (at.position[0], at.position[1439], at.missing) == (0, 1439, 1440)
    assert coded.records.qi[:, 0].tolist() == [0, 1, 1440, 1440]
    assert coded.origin["at"] == "range"


@pytest.mark.parametrize("minute", [1440, -1, 0.5])
def test_a_number_that_is_no_minute_of_the_day_is_refused(minute: float) -> None:
    table = TextTable(Path("t.csv"), pl.DataFrame({"at": [3, minute]}, strict=False))
    with pytest.raises(InputError, match=r"row 2: lies outside its domain"):
        code_table(table, Declared(qis=["at"], times=["at"]))


def test_a_time_has_no_other_domain() -> None:
    with pytest.raises(SettingsError, match=r"at: the domain of a time is the minutes of a day"):
        Declared(qis=["at"], times=["at"], orders={"at": ["1", "2"]})
    with pytest.raises(SettingsError, match=r"to is neither"):
        Declared(qis=["at"], times=["to"])
