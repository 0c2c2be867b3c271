"""Positions that say how long ago they were measured are as old as that."""

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from anonymizer.errors import SettingsError
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode.decoding import Decoder, on_clock
from anonymizer.pipeline.positions.decode.topics import TopicRouter, Treatment
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import InputSettings, LimitSettings, Settings
from tests.pipeline.positions.support import NETWORK, NOW, Rig

LAT, LON = float(NETWORK.lat[6]), float(NETWORK.lon[6])
PAYLOAD = {"lat": "lat", "lon": "lon", "time": "age", "time_unit": "s_ago"}
DECLARED: dict[str, Any] = {"inputs": [{"codec": "json", "payload": PAYLOAD}]}


def senml(age_s: float) -> Any:  # noqa: ANN401  any JSON
    return [{"n": "lat", "v": LAT, "t": -age_s}, {"n": "lon", "v": LON, "t": -age_s}]


def declared(age_s: float) -> Any:  # noqa: ANN401  any JSON
    return {"lat": LAT, "lon": LON, "age": age_s}


def ttn(age_s: float) -> Any:  # noqa: ANN401  any JSON
    return {"uplink_message": {"decoded_payload": declared(age_s)}}


FORMATS = [
    pytest.param(senml, {"inputs": [{"codec": "senml"}]}, id="senml"),
    pytest.param(ttn, {"inputs": [{"codec": "ttn"}]}, id="ttn"),
    pytest.param(declared, DECLARED, id="json"),
]


def heard(rig: Rig, said: Any, *, retained: bool = False, wall_ahead_s: float = 0.0) -> float:  # noqa: ANN401  any JSON
    """Return when the device is known to have been where it says, unix seconds."""
    rig.put(Delivery("positions/a", json.dumps(said).encode(), 0, retained))
    rig.settle(rig.tick(now=NOW, wall_ahead_s=wall_ahead_s), [])
    table = rig.flow.mobile.devices
    slot = table.find(table.key("a"))
    return float(rig.flow.mobile.engine.operator.density.version_of[slot]) if slot >= 0 else np.nan


@pytest.mark.parametrize(("message", "inputs"), FORMATS)
@pytest.mark.parametrize("wall_ahead_s", [0.0, 3600.0])
def test_a_position_is_as_old_as_it_says_whatever_the_clock(
    message: Any,  # noqa: ANN401  a function
    inputs: dict[str, Any],
    wall_ahead_s: float,
) -> None:
    for age_s in (0.0, 1.0, 40.0):
        assert heard(Rig(**inputs), message(age_s), wall_ahead_s=wall_ahead_s) == NOW - age_s


@pytest.mark.parametrize(("message", "inputs"), FORMATS)
def test_a_position_that_says_that_it_is_too_old_is_refused(
    message: Any,  # noqa: ANN401  a function
    inputs: dict[str, Any],
) -> None:
    for age_s in (100.0, 3600.0, 2.0**30):
        rig = Rig(**inputs)
        assert np.isnan(heard(rig, message(age_s)))
        [(why, n)] = rig.outcomes().items()
        assert why in {"LATE", "INVALID__ANCIENT_TIME"}
        assert n == 1


@pytest.mark.parametrize(("message", "inputs"), FORMATS)
def test_how_long_ago_means_nothing_in_a_retained_message(
    message: Any,  # noqa: ANN401  a function
    inputs: dict[str, Any],
) -> None:
    rig = Rig(**inputs)
    assert np.isnan(heard(rig, message(5.0), retained=True))
    assert rig.outcomes() == {"INVALID__RETAINED": 1}


def test_an_age_below_zero_is_in_the_future() -> None:
    rig = Rig(**DECLARED)
    heard(rig, declared(-1.0))
    assert rig.outcomes() == {"INVALID__FUTURE_TIME": 1}


def test_times_of_none_and_since_1970_stay_as_they_are() -> None:
    ts = np.array([np.nan, 5.0, -5.0])
    assert np.array_equal(on_clock(ts, now=90.0), [np.nan, 5.0, 85.0], equal_nan=True)
    later = on_clock(ts, now=90.0, wall_ahead_s=2.0)
    assert np.array_equal(later, [np.nan, 3.0, 85.0], equal_nan=True)


@pytest.mark.parametrize("more", [{"echo": "cloaked/echo"}, {"payload": PAYLOAD | {"join_s": 5}}])
def test_an_age_is_neither_written_nor_compared(more: dict[str, Any]) -> None:
    table = DECLARED["inputs"][0] | more
    with pytest.raises((SettingsError, ValueError), match="an age"):
        Settings.model_validate({"network": {"source": "grid:5x5"}, "inputs": [table]})


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        ("Europe/Helsinki", datetime(2026, 10, 25, 1, tzinfo=UTC)),
        ("Europe/Helsinki", datetime(2027, 3, 28, 1, tzinfo=UTC)),
        ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
        ("Australia/Lord_Howe", datetime(2027, 4, 3, 15, tzinfo=UTC)),
        ("+02:00", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("wall_ahead_s", [0.0, 100.0])
def test_clocks_without_a_zone_are_believed_all_through_the_night_in_which_they_change(
    zone: str, change: datetime, wall_ahead_s: float
) -> None:
    payload = {"lat": "lat", "lon": "lon", "time": "t", "time_unit": "iso8601", "time_zone": zone}
    declared = InputSettings.model_validate({"codec": "json", "payload": payload})
    router = TopicRouter([declared])
    decoder = Decoder(router, LimitSettings(), Ledger(), attribute_of={})
    local = router.zones[0]
    for minute in range(-150, 151, 10):
        measured_s = change.timestamp() + 60 * minute
        clock = f"{datetime.fromtimestamp(measured_s, local):%Y-%m-%d %H:%M:%S}"
        body = json.dumps({"lat": LAT, "lon": LON, "t": clock}).encode()
        found = decoder.decode([Arrivals(0.0, [Delivery("positions/a", body, 0)])])
        part = found.of[Treatment.MOBILE]
        decoder.date(part, now=measured_s + 30.0 - wall_ahead_s, wall_ahead_s=wall_ahead_s)
        assert part.ts.tolist() == [measured_s - wall_ahead_s]
