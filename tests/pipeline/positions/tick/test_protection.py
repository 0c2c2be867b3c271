"""Zones, trip ends, rounded times and readings, wired into the flow."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.readings import SAFE_STATISTICS
from anonymizer.pipeline.ports import Delivery
from tests.pipeline.positions.support import NETWORK, NOW, Rig, a_position, delivery

AROUND_12 = {"circle": {"lat": NETWORK.lat[12], "lon": NETWORK.lon[12], "radius_m": 30}}
SNAPSHOT = {"mode": "snapshot", "min_nodes": 2}
EACH = {"statistics": [*SAFE_STATISTICS, "each"]}
TRIPS = {"enabled": True, "ends_m": 50, "ends_s": 1, "delay_s": 10}


def test_nothing_is_published_of_a_privacy_zone() -> None:
    rig = Rig(zones=[AROUND_12])
    messages = rig.publish(*(delivery(*row, NOW) for row in [("a", 12), ("b", 12), ("c", 12)]))
    assert messages == []
    assert rig.outcomes() == {"SUPPRESSED__PRIVACY_ZONE": 3}


def test_a_device_that_passes_through_a_zone_counts_there_and_one_that_stays_does_not() -> None:
    rig = Rig(zones=[AROUND_12], presence={"ttl_s": 100})
    assert rig.publish(delivery("a", 7, NOW), delivery("b", 7, NOW))
    rig.publish(delivery("a", 12, NOW + 1), now=NOW + 1)
    [message] = rig.publish(delivery("b", 7, NOW + 2), now=NOW + 2)
    assert 12 in message["region"], "the traffic through a zone is published as on any road"
    assert rig.flow.view.n_devices_on_graph == 2
    still = NOW + 101
    assert rig.publish(delivery("a", 12, still), delivery("b", 7, still), now=still) == []
    assert rig.flow.view.n_devices_on_graph == 1
    assert rig.outcomes()["SUPPRESSED__PRIVACY_ZONE"] == 2, "whatever is published in between"


def test_a_device_that_begins_in_a_zone_does_not_pass_through_it() -> None:
    rig = Rig(zones=[AROUND_12])
    assert rig.publish(delivery("a", 12, NOW), delivery("b", 7, NOW)) == []
    assert rig.flow.view.n_devices_on_graph == 1


@pytest.mark.parametrize("late", [3, 1])
def test_a_late_message_from_outside_a_zone_draws_no_other_stand_in(late: int) -> None:
    everywhere = {"circle": AROUND_12["circle"] | {"radius_m": 500}}
    outside = {"lat": NETWORK.lat[0] - 0.01, "lon": NETWORK.lon[0], "ts": NOW + 2}
    published = []
    for second in (False, True):
        rig = Rig(zones=[everywhere], network={"snap_limit_m": 5000})
        told = [Delivery(f"positions/{d}", json.dumps(outside).encode(), 0) for d in "ab"]
        rig.publish(*told, now=NOW + 2)
        rig.publish(delivery("a", 12, NOW + 4), now=NOW + 4)
        if second:
            late_one = json.dumps(outside | {"ts": NOW + late}).encode()
            rig.publish(Delivery("positions/a", late_one, 0), now=NOW + 5)
        rig.publish(delivery("a", 7, NOW + 6), now=NOW + 6)
        published.append(rig.flow.devices_at().tolist())
    assert published[0] == published[1]


def test_readings_from_inside_a_zone_are_not_published() -> None:
    rig = Rig(readings=[SPEED | {"statistics": ["mean"]}], zones=[AROUND_12], region=SNAPSHOT)
    [message] = rig.publish(reading("a", 7, 10), reading("b", 7, 20))
    outside = message["readings"]
    later = NOW + 1
    [message] = rig.publish(reading("a", 12, 30, later), reading("b", 7, 20, later), now=later)
    assert 12 in message["region"]
    assert message["readings"] == outside  # as if the device had fallen silent


def test_the_ends_of_a_trip_are_not_published_and_the_middle_is_later() -> None:
    rig = Rig(trips=TRIPS)
    published: list[tuple[float, list[int]]] = []
    for second in range(60):
        # Two devices along one street together, a node every ten seconds, then they are gone.
        node = min(second // 10, 4)
        said = [delivery(d, node, NOW + second) for d in "ab"] if second < 50 else []
        messages = rig.publish(*said, now=NOW + second)
        published += [(message["time"], message["region"]) for message in messages]
    assert {node for _, region in published for node in region} == {1, 2, 3}
    assert min(time for time, _ in published) >= NOW + 10
    assert rig.flow.n_held == 0 or rig.outcomes()["SUPPRESSED__TRIP_END"] > 0
    rig.flow.close()
    rig.check()
    assert rig.flow.n_held == 0
    assert rig.outcomes().keys() == {"PUBLISHED", "SUPPRESSED__TRIP_END"}


def test_a_device_whose_trip_is_over_is_forgotten() -> None:
    rig = Rig(trips={**TRIPS, "gap_s": 20})
    rig.publish(delivery("a", 0, NOW), now=NOW)
    assert rig.flow.view.n_devices == 1
    rig.publish(now=NOW + 15)
    assert (rig.flow.view.n_devices, rig.outcomes()) == (1, {"SUPPRESSED__TRIP_END": 1})
    rig.publish(now=NOW + 500)
    assert rig.flow.view.n_devices == 0


steps = st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 24)), max_size=4))


@given(steps, st.booleans(), st.sampled_from(["adka", "snapshot", "session"]))
def test_the_accounting_adds_up_with_everything_switched_on(
    sequence: list[list[tuple[str, int]]],
    trips: bool,  # noqa: FBT001  hypothesis passes by position
    mode: str,
) -> None:
    rig = Rig(
        trips={**TRIPS, "enabled": trips}, zones=[AROUND_12], region={"mode": mode, "min_nodes": 2}
    )
    for step, said in enumerate(sequence):
        now = NOW + 4 * step
        rig.publish(*(delivery(device, node, now) for device, node in said), now=now)
    rig.flow.close()
    rig.check()
    assert rig.flow.n_held == 0


def test_times_are_rounded_down() -> None:
    rig = Rig(output={"time_step_s": 5})
    [message] = rig.publish(*(delivery(d, 12, NOW + 3) for d in "ab"), now=NOW + 3)
    assert message["time"] == NOW


SPEED: dict[str, Any] = {"name": "speed_mps", "lo": 0, "hi": 40, "step": 1}


def reading(device: str, node: int, speed: float, ts: float = NOW) -> Delivery:
    said = a_position(node, ts, readings={"speed_mps": speed, "undeclared": 1.0})
    return Delivery(f"positions/{device}", json.dumps(said).encode(), 0)


@pytest.mark.parametrize("forms", [[], ["device"]])
def test_readings_are_told_of_at_least_k_together_and_clamped(forms: list[str]) -> None:
    rig = Rig(
        output={"forms": forms, "qos": 1},
        readings=[SPEED | {"statistics": ["count", "mean", "max"]}],
    )
    messages = rig.publish(reading("a", 12, 10), reading("b", 12, 20), reading("c", 12, 500))
    for message in messages:
        assert message["readings"] == {"speed_mps": {"count": 3, "mean": 23, "max": 40}}
        assert "values" not in message
    assert rig.flow.view.n_clamped.tolist() == [1]


def test_of_fewer_than_k_readings_nothing_is_told() -> None:
    rig = Rig(readings=[SPEED])
    [message] = rig.publish(reading("a", 12, 10), delivery("b", 12, NOW))
    assert "readings" not in message
    assert rig.flow.view.n_left_out.tolist() == [1]


def test_own_values_stand_beside_their_pseudonyms_only_where_declared() -> None:
    rig = Rig(
        readings=[SPEED | EACH],
        output={"forms": ["device"], "qos": 1},
    )
    said = {"a": 10.0, "b": 20.0}
    messages = rig.publish(*(reading(device, 12, speed) for device, speed in said.items()))
    names = rig.flow.mobile.devices.pseudonyms([0, 1], [int(NOW // 300)] * 2)
    own = {message["pseudonym"]: message["values"]["speed_mps"] for message in messages}
    assert own == dict(zip(names, said.values(), strict=True))
    grouped = Rig(readings=[SPEED | EACH])
    [message] = grouped.publish(*(reading(device, 12, speed) for device, speed in said.items()))
    assert dict(zip(message["pseudonyms"], message["values"]["speed_mps"], strict=True)) == own


def test_the_messages_of_a_group_are_equally_long_whatever_the_values() -> None:
    """A broker that limits packets then takes all of them, or none."""
    speed = SPEED | EACH | {"step": 0}
    rig = Rig(readings=[speed], output={"forms": ["device"], "qos": 1})
    rig.put(reading("a", 12, 10), reading("b", 12, 0.123456), reading("c", 12, 20))
    output = rig.tick()
    assert len({len(message.payload) for message in output.messages}) == 1
    rig.settle(output, [True] * 3)


def test_no_readings_travel_with_held_positions() -> None:
    with pytest.raises(ValueError, match=r"readings cannot be published where trips\.enabled"):
        Rig(readings=[SPEED], trips=TRIPS)
