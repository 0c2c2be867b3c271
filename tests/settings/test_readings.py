from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from anonymizer.domain.readings import ReadingAttribute
from anonymizer.settings.readings import DeclaredReadings, ReadingSettings

SPEED = {"name": "speed_mps", "lo": 0, "hi": 50}


def said(table: Any) -> str:  # noqa: ANN401  any table
    with pytest.raises(ValidationError) as caught:
        ReadingSettings.model_validate(table)
    # A bad item counts as missing too, which comes second.
    return str(caught.value.errors()[0]["msg"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hi": 0}, "lo must be below hi"),
        ({"lo": 60}, "lo must be below hi"),
        ({"hi": float("inf")}, "finite number"),
        ({"lo": float("nan")}, "finite number"),
        ({"hi": 1e13}, "less than or equal to"),
        ({"step": -1}, "greater than or equal to 0"),
        ({"step": 51}, "step must not exceed hi - lo"),
        ({"name": ""}, "at least 1 character"),
        ({"statistics": ["median"]}, "should match pattern"),
        ({"statistics": ["p0"]}, "should match pattern"),
        ({"statistics": ["p100"]}, "should match pattern"),
        ({"statistics": ["p50", "p50"]}, "must name each statistic once"),
        ({"statistics": []}, "at least 1 item"),
        ({"per_pseudonyms": True}, "not permitted"),
    ],
)
def test_a_reading_that_does_not_fit_is_refused(changed: dict[str, Any], message: str) -> None:
    assert message in said(SPEED | changed)


def test_extremes_and_own_values_are_off_unless_asked_for() -> None:
    attribute = ReadingSettings.model_validate(SPEED).attribute
    assert attribute == ReadingAttribute("speed_mps", 0.0, 50.0, 0.5)
    assert not {"min", "max"} & set(attribute.statistics)
    assert not attribute.per_pseudonym


@pytest.mark.parametrize(("step", "rounding"), [(None, 0.5), (0, None), (2, 2.0)])
def test_values_are_rounded_unless_the_settings_say_otherwise(
    step: float | None, rounding: float | None
) -> None:
    assert ReadingSettings.model_validate(SPEED | {"step": step}).attribute.step == rounding


def test_everything_that_may_be_asked_for_reaches_the_algorithms() -> None:
    asked = ("count", "mean", "min", "max", "p1", "p50", "p99")
    table = SPEED | {"step": 0.5, "statistics": [*asked, "each"]}
    assert ReadingSettings.model_validate(table).attribute == ReadingAttribute(
        "speed_mps", 0.0, 50.0, 0.5, asked, per_pseudonym=True
    )


def test_no_name_is_declared_twice() -> None:
    adapter = TypeAdapter(DeclaredReadings)
    assert len(adapter.validate_python([SPEED, SPEED | {"name": "battery_percent"}])) == 2
    with pytest.raises(ValidationError, match="must declare each name once"):
        adapter.validate_python([SPEED, SPEED])
