from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from anonymizer.algorithms.positions.protection import TripRule
from anonymizer.settings.protection import TripSettings, ZoneSettings, zones_of

SQUARE = [[60.0, 24.0], [60.0, 25.0], [61.0, 25.0], [61.0, 24.0]]
HOME = {"lat": 60.17345, "lon": 24.94567, "radius_m": 300}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "either circle or polygon"),
        ({"circle": HOME, "polygon": SQUARE}, "either circle or polygon"),
        ({"circle": {**HOME, "radius_m": 0}}, "greater than 0"),
        ({"circle": {**HOME, "radius_m": float("inf")}}, "finite number"),
        ({"circle": {**HOME, "lat": 90.1}}, "less than or equal to 90"),
        ({"circle": {**HOME, "lon": float("nan")}}, "finite number"),
        ({"circle": {"lat": 60.0, "lon": 24.0}}, "Field required"),
        ({"polygon": SQUARE[:2]}, "three different corners"),
        ({"polygon": [*SQUARE[:2], *SQUARE[:2]]}, "three different corners"),
        ({"polygon": [[0, 179], [1, 179], [1, -179]]}, "more than 180 degrees"),
        ({"polygon": [[60, 24, 3], *SQUARE]}, "at most 2 items"),
        ({"polygon": [[24, 60], [25, 181], [25, 60]]}, "less than or equal to 180"),
        ({"square": SQUARE}, "Extra inputs are not permitted"),
    ],
)
def test_a_zone_that_is_no_one_shape_is_refused_without_telling_where(
    table: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        ZoneSettings.model_validate(table)
    errors = caught.value.errors(include_url=False, include_input=False, include_context=False)
    assert any(said in error["msg"] for error in errors)
    assert not any("60.17345" in str(error) for error in errors)


def test_zones_of_both_shapes_are_one() -> None:
    tables = [{"circle": HOME}, {"polygon": [[0, 0], [0, 2], [2, 0]]}]
    zones = zones_of([ZoneSettings.model_validate(table) for table in tables])
    lat, lon = np.array([[60.1735, 24.9457], [0.5, 0.5], [1.5, 1.5], [60.18, 24.9457]]).T
    assert zones.contains(lat, lon).tolist() == [True, True, False, False]
    assert len(zones) == 2


def test_no_zones_contain_nothing() -> None:
    assert zones_of([]).contains(np.array([60.0, np.nan]), np.zeros(2)).tolist() == [False, False]


@pytest.mark.parametrize("table", [{"circle": HOME}, {"polygon": SQUARE}])
def test_a_zone_does_not_show_in_a_repr_and_survives_a_dump(table: dict[str, Any]) -> None:
    zone = ZoneSettings.model_validate(table)
    assert not any(text in repr(zone) + repr(zone.shape) for text in ("60.", "24.", "300.0"))
    assert ZoneSettings.model_validate(zone.model_dump()) == zone


def test_trips_are_not_protected_unless_asked_for_and_then_by_the_rule_s_own_defaults() -> None:
    trips = TripSettings()
    assert not trips.enabled
    assert trips.rule == TripRule(max_held=1200)


def test_all_reports_of_a_delay_can_wait() -> None:
    assert TripSettings(delay_s=600).rule.max_held == 6000
    assert TripSettings(ends_s=1, delay_s=1).rule.max_held == 600


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"delay_s": 59.9}, "delay_s must be 0, or at least ends_s"),
        ({"ends_s": 120.1}, "delay_s must be 0, or at least ends_s"),
        ({"ends_m": -1}, "greater than or equal to 0"),
        ({"gap_s": 0}, "greater than 0"),
        ({"dwell_s": float("inf")}, "finite number"),
    ],
)
def test_trip_settings_that_could_not_protect_are_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        TripSettings.model_validate(table)


def test_a_delay_of_just_the_protected_time_is_taken() -> None:
    trips = TripSettings.model_validate({"enabled": True, "ends_s": 30, "delay_s": 30})
    assert (trips.rule.end_s, trips.rule.delay_s, trips.rule.end_m) == (30, 30, 200)


def test_without_a_delay_the_starts_of_trips_alone_are_protected() -> None:
    rule = TripSettings(enabled=True, delay_s=0).rule
    assert (rule.start_m, rule.start_s, rule.end_m, rule.end_s) == (200, 60, 0, 0)
