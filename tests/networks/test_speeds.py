import pytest

from anonymizer.networks.speeds import (
    CLASS_SPEED_KMH,
    DEFAULT_SPEED_KMH,
    KMH,
    directions,
    free_flow_mps,
    limit_kmh,
)


@pytest.mark.parametrize(
    ("tag", "kmh"),
    [
        ("50", 50),
        ("50.0", 50),
        ("50 km/h", 50),
        ("30 mph", 30 * 1.609344),
        ("30mph", 30 * 1.609344),
        ("10 knots", 18.52),
        ("walk", 5),
        ("DE:walk", 5),
        ("DE:urban", 50),
        ("RO:rural", 90),
        ("IT:motorway", 120),
        ("DE:zone:30", 30),
        ("DE:zone30", 30),
        ("90;30;90;30", 30),
        ("50|none", 50),
        ("none", None),
        ("signals", None),
        ("fast", None),
        ("50 furlongs", None),
        ("0", None),
        ("999", None),
        ("-50", None),
        ("", None),
    ],
)
def test_a_speed_limit_is_read_in_kmh(tag: str, kmh: float | None) -> None:
    assert limit_kmh(tag) == (kmh if kmh is None else pytest.approx(kmh))


def test_the_limit_goes_before_the_class_and_the_class_before_the_default() -> None:
    assert free_flow_mps("motorway", "80") == pytest.approx(80 * KMH)
    assert free_flow_mps("motorway", "none") == pytest.approx(CLASS_SPEED_KMH["motorway"] * KMH)
    assert free_flow_mps("motorway", None) == pytest.approx(CLASS_SPEED_KMH["motorway"] * KMH)
    assert free_flow_mps("cart track", None) == pytest.approx(DEFAULT_SPEED_KMH * KMH)
    assert free_flow_mps(None, None) == pytest.approx(DEFAULT_SPEED_KMH * KMH)


@pytest.mark.parametrize(
    ("oneway", "expected"),
    [
        ("yes", (True, False)),
        ("True", (True, False)),
        ("1", (True, False)),
        ("-1", (False, True)),
        ("reverse", (False, True)),
        ("no", (True, True)),
        ("reversible", (True, True)),
        (None, (True, True)),
    ],
)
def test_a_one_way_tag_closes_one_direction(
    oneway: str | None, expected: tuple[bool, bool]
) -> None:
    assert directions(oneway) == expected


@pytest.mark.parametrize("tags", [{"highway": "motorway"}, {"junction": "roundabout"}])
def test_motorways_and_roundabouts_are_one_way_unless_they_say_otherwise(
    tags: dict[str, str],
) -> None:
    assert directions(None, **tags) == (True, False)
    assert directions("-1", **tags) == (False, True)
    assert directions("no", **tags) == (True, True)
