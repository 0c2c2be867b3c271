"""Times written as ISO 8601 text."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.codecs._fields import is_no_value
from anonymizer.codecs.degrees import numeral
from anonymizer.codecs.mending import NO_VALUE
from anonymizer.codecs.times import HYPHENS, PADDING, unix_s

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))


@pytest.fixture
def _far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as environment:
        environment.setenv("TZ", "Pacific/Auckland")
        time.tzset()
        yield
    time.tzset()


@given(st.datetimes(timezones=ZONES | st.just(UTC)))
def test_the_whole_calendar_is_read_back_in_any_zone(moment: datetime) -> None:
    assert unix_s(moment.isoformat()) == (moment - EPOCH).total_seconds()


@given(st.text())
def test_no_text_makes_the_reader_of_times_raise(text: str) -> None:
    found = unix_s(text)
    assert found is None or isinstance(found, float)


@given(st.text(PADDING).flatmap(lambda pad: st.sampled_from([pad + word for word in NO_VALUE])))
def test_a_word_for_none_has_no_hyphens_where_a_date_has_them(text: str) -> None:
    assert is_no_value(text)
    assert text[HYPHENS] != "--"


@given(st.from_regex(r"[ ]*[+-]?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True))
def test_a_number_as_text_has_no_hyphens_where_a_date_has_them(text: str) -> None:
    assert numeral(text.strip()) == float(text)
    assert text[HYPHENS] != "--"


@pytest.mark.parametrize(
    "zone", ["UTC", " UTC", " utc", "GMT", " gmt", "Z UTC", "+00 GMT", "Z[UTC]"]
)
def test_a_zone_by_name_after_a_time_is_read(zone: str) -> None:
    assert unix_s(f"2017-01-03 18:28:29{zone}") == 1483468109.0


@pytest.mark.parametrize(
    "text",
    [
        "2017-01-03T18:28:29Z",
        "2017-01-03T18:28:29",
        "2017-01-03 18:28:29",
        "2017-01-03T18:28:29.000+0000",
        "2017-01-03T18:28:29.000000000Z",
        "2017-01-03T23:58:29+05:30",
    ],
)
def test_all_spellings_in_use_are_the_same_instant(text: str) -> None:
    assert unix_s(text) == 1483468109.0


def test_nanoseconds_are_cut_to_microseconds() -> None:
    assert unix_s("1970-01-01T00:00:01.587539999Z") == 1.587539


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2017-13-01T00:00:00Z",
        "2017-01-01T24:00:01Z",
        "2017-01-01T00:00:61Z",
        "\ud800",
        "01/15/2027 08:00:00 AM",
        "15.01.2027 08:00",
        "Fri, 15 Jan 27 08:00:00 GMT",
        "46402.33",
    ],
)
def test_text_that_is_not_a_time_gives_none(text: str) -> None:
    assert unix_s(text) is None


@pytest.mark.usefixtures("_far_from_utc")
def test_a_time_without_an_offset_is_utc_in_whatever_zone_the_gateway_runs() -> None:
    assert unix_s("1970-01-01T00:00:09") == 9.0
