"""Fixed devices: company for each other alone, cloaked or public as the operator decides."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.readings import ReadingsState
from anonymizer.domain.readings import ReadingAttribute
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.out.public_devices import published
from tests.pipeline.positions.support import NETWORK, NOW, Rig, a_position, delivery, flow_settings

REGISTRY = Path("sensors.csv")
PLACES = {name: (float(NETWORK.lat[12]), float(NETWORK.lon[12])) for name in "abcde"}
MOBILE: dict[str, object] = {"topic": "positions/{device}"}
CLOAKED: dict[str, object] = {"topic": "sensors/{device}", "kind": "fixed"}
PUBLIC: dict[str, object] = {"topic": "stations/{device}", "kind": "public"}
NO2 = {"name": "no2", "lo": 0.0, "hi": 400.0, "step": 0.5}


def rig_of(*inputs: dict[str, object], **tables: Any) -> Rig:  # noqa: ANN401  tables of any kind
    """Return a flow in which fixed inputs have a registry that places all devices at node 12."""
    listed = [i | ({"registry": REGISTRY} if i is not MOBILE else {}) for i in inputs]
    return Rig(inputs=listed, registries={REGISTRY: PLACES}, readings=[NO2], **tables)


def sensed(topic: str, **body: object) -> Delivery:
    return Delivery(topic, json.dumps(body).encode(), 0)


def sent(rig: Rig, *deliveries: Delivery, now: float = NOW) -> list[tuple[str, dict[str, Any]]]:
    """Carry deliveries through a tick and out; return topics and bodies."""
    rig.put(*deliveries)
    output = rig.tick(now=now)
    rig.settle(output, [True] * len(output.messages))
    return [(message.topic, json.loads(message.payload)) for message in output.messages]


def test_fixed_devices_do_not_count_towards_k_of_a_mobile_one() -> None:
    rig = rig_of(MOBILE, CLOAKED)
    [(topic, body)] = sent(
        rig, delivery("m", 12, NOW), *(sensed(f"sensors/{name}", no2=1) for name in "abcde")
    )
    assert topic == "cloaked/fixed"
    assert len(body["pseudonyms"]) == 5
    assert rig.outcomes() == {"PUBLISHED": 5, "SUPPRESSED__TOO_FEW_DEVICES": 1}
    view = rig.flow.view
    assert (view.n_devices, view.n_devices_on_graph, view.n_fixed_devices) == (1, 1, 5)


def test_mobile_devices_do_not_count_towards_k_of_a_fixed_one() -> None:
    rig = rig_of(MOBILE, CLOAKED)
    mobile = [delivery(name, 12, NOW) for name in "mno"]
    [(topic, body)] = sent(rig, *mobile, sensed("sensors/a", no2=1))
    assert (topic, len(body["pseudonyms"])) == ("cloaked/positions", 3)
    assert rig.outcomes() == {"PUBLISHED": 3, "SUPPRESSED__TOO_FEW_DEVICES": 1}


def test_public_devices_are_no_company_for_cloaked_ones() -> None:
    rig = rig_of(CLOAKED, PUBLIC)
    found = sent(rig, sensed("sensors/a", no2=1), *(sensed(f"stations/{n}", no2=1) for n in "bc"))
    assert [topic for topic, _ in found] == ["public/fixed"] * 2
    assert rig.outcomes() == {"PUBLISHED": 2, "SUPPRESSED__TOO_FEW_DEVICES": 1}


def test_readings_of_registered_devices_are_published_by_the_place_of_their_group() -> None:
    rig = rig_of(CLOAKED)
    values = dict(zip("abcd", (10, 20, 30, 40), strict=True))
    [(_, body)] = sent(
        rig, *(sensed(f"sensors/{name}", no2=value) for name, value in values.items())
    )
    assert body["region"] == [12]
    assert body["readings"]["no2"]["count"] == 4
    assert body["readings"]["no2"]["mean"] == 25.0
    assert "values" not in body


def test_a_cloaked_device_is_neither_named_nor_placed() -> None:
    rig = rig_of(CLOAKED)
    rig.put(*(sensed(f"sensors/{name}", no2=1) for name in "abcde"))
    [message] = rig.tick().messages
    body = json.loads(message.payload)
    assert set(body) == {
        *("time", "k", "region", "pseudonyms", "readings"),
        *("v", "network", "group", "until"),
    }
    assert not set(body["pseudonyms"]) & set(PLACES)


def test_a_public_device_is_published_with_its_id_its_place_and_its_declared_readings() -> None:
    rig = rig_of(PUBLIC)
    found = sent(
        rig,
        sensed("stations/a", no2=12.3, battery=7),
        sensed("stations/b", ts=NOW - 1.5, no2=1000),
        sensed("stations/c", battery=7),
    )
    lat, lon = PLACES["a"]
    place = {"lat": lat, "lon": lon}
    times = [body.pop("time") for _, body in found]
    assert [topic for topic, _ in found] == ["public/fixed"] * 3
    assert [body for _, body in found] == [
        {"device": "a", **place, "readings": {"no2": 12.5}},
        {"device": "b", **place, "readings": {"no2": 400.0}},
        {"device": "c", **place},
    ]
    assert times[1] == NOW - 1.5
    assert rig.flow.view.n_clamped.tolist() == [1]
    assert rig.outcomes() == {"PUBLISHED": 3}


def test_the_registry_decides_where_a_device_stands_and_the_payload_only_where_it_does_not() -> (
    None
):
    rig = rig_of(PUBLIC)
    far = a_position(24, NOW)
    found = sent(rig, sensed("stations/a", **far), sensed("stations/unlisted", **far))
    assert [(body["lat"], body["lon"]) for _, body in found] == [
        PLACES["a"],
        (far["lat"], far["lon"]),
    ]


def test_a_device_without_a_place_is_refused() -> None:
    rig = rig_of(CLOAKED)
    assert sent(rig, sensed("sensors/unlisted", no2=12)) == []
    assert rig.outcomes() == {"INVALID__NO_FIX": 1}


def test_without_a_registry_a_payload_must_state_a_position() -> None:
    rig = Rig(inputs=[CLOAKED])
    assert sent(rig, sensed("sensors/a", no2=12)) == []
    assert rig.outcomes() == {"INVALID__SCHEMA": 1}
    [(_, body)] = sent(rig, *(sensed(f"sensors/{n}", **a_position(7, NOW)) for n in "ab"))
    assert body["region"] == [7]


def test_a_privacy_zone_hides_public_devices_too() -> None:
    lat, lon = PLACES["a"]
    circle = {"lat": lat, "lon": lon, "radius_m": 20.0}
    rig = rig_of(PUBLIC, zones=[{"circle": circle}])
    assert sent(rig, sensed("stations/a", no2=1)) == []
    assert rig.outcomes() == {"SUPPRESSED__PRIVACY_ZONE": 1}


@pytest.mark.parametrize("topic", ["sensors/a", "stations/a"])
def test_fixed_devices_must_state_a_plausible_time(topic: str) -> None:
    rig = rig_of(CLOAKED, PUBLIC)
    assert sent(rig, sensed(topic, ts=NOW - 61, no2=1), sensed(topic, ts=NOW + 6, no2=1)) == []
    assert rig.outcomes() == {"INVALID__ANCIENT_TIME": 1, "INVALID__FUTURE_TIME": 1}


def test_fixed_devices_stay_company_for_as_long_as_their_own_settings_say() -> None:
    rig = rig_of(
        CLOAKED,
        region={"mode": "snapshot", "min_nodes": 1},
        fixed={"ttl_s": 1000.0},
    )
    sent(rig, sensed("sensors/a", no2=10), sensed("sensors/b", no2=20))
    later = NOW + 900
    [(_, body)] = sent(rig, sensed("sensors/a", no2=30), now=later)
    assert len(body["pseudonyms"]) == 2
    assert body["readings"]["no2"]["mean"] == 25.0
    assert sent(rig, sensed("sensors/a", no2=30), now=NOW + 1901) == []
    assert rig.flow.view.n_fixed_devices == 1


def test_in_a_session_a_group_of_fixed_devices_lasts_for_its_own_epoch() -> None:
    start = NOW - NOW % 600
    rig = rig_of(
        CLOAKED,
        region={"mode": "session", "min_nodes": 1},
        session={"epoch_s": 60},
    )
    everyone = [sensed(f"sensors/{name}", no2=1) for name in "abc"]
    [(_, born)] = sent(rig, *everyone, now=start)
    [(_, last)] = sent(rig, *everyone, now=start + 599)
    [(_, new)] = sent(rig, *everyone, now=start + 600)
    assert born["pseudonyms"] == last["pseudonyms"]
    assert not set(new["pseudonyms"]) & set(born["pseudonyms"])


def test_one_id_has_different_pseudonyms_as_a_mobile_and_as_a_fixed_device() -> None:
    rig = rig_of(MOBILE, CLOAKED)
    mobile = [delivery(name, 12, NOW) for name in "ab"]
    found = sent(rig, *mobile, *(sensed(f"sensors/{name}", no2=1) for name in "ab"))
    one, other = (set(body["pseudonyms"]) for _, body in found)
    assert not one & other


def test_a_newcomer_that_waits_for_a_group_is_held_and_settled_at_the_end() -> None:
    rig = rig_of(CLOAKED, region={"mode": "session", "min_nodes": 1})
    assert sent(rig, sensed("sensors/a", no2=1)) == []
    assert rig.flow.n_held == 1
    rig.flow.close()
    rig.check()
    assert rig.outcomes() == {"SUPPRESSED__NEVER_GROUPED": 1}


def test_a_change_of_k_reaches_fixed_devices() -> None:
    rig = rig_of(CLOAKED)
    rig.flow.adopt(flow_settings(adka={"density_steps": [], "k_values": [3]}))
    assert sent(rig, *(sensed(f"sensors/{name}", no2=1) for name in "ab")) == []
    [(_, body)] = sent(rig, sensed("sensors/c", no2=1), now=NOW + 1)
    assert body["k"] == 3


def test_a_message_that_the_broker_does_not_take_counts_against_its_own_devices() -> None:
    rig = rig_of(MOBILE, CLOAKED, PUBLIC)
    rig.put(
        *(delivery(name, 12, NOW) for name in "mn"),
        *(sensed(f"sensors/{name}", no2=1) for name in "abc"),
        sensed("stations/d", no2=1),
    )
    output = rig.tick()
    rig.settle(output, [message.topic != "cloaked/fixed" for message in output.messages])
    assert rig.outcomes() == {"PUBLISHED": 3, "SUPPRESSED__UNDELIVERED": 3}


topics = st.builds("{}/{}".format, st.sampled_from(["positions", "sensors", "public"]),
                   st.sampled_from(["a", "b", "c", "m", "", "x" * 300]))  # fmt: skip
bodies = (
    st.builds(a_position, st.integers(0, 24), st.sampled_from([None, NOW, NOW - 500])).map(
        json.dumps
    )
    | st.sampled_from(['{"no2": 12}', '{"ts": 7, "no2": 12}', '{"no2": "x"}', "{", "[]", ""])
).map(str.encode)
steps = st.lists(st.builds(Delivery, topics, bodies, st.integers(0, 3), st.booleans()), max_size=8)


@given(st.sampled_from(["adka", "snapshot", "session"]), st.lists(steps, max_size=8))
def test_the_accounting_adds_up_whatever_fixed_and_mobile_devices_say(
    mode: str, sequence: list[list[Delivery]]
) -> None:
    rig = rig_of(
        MOBILE,
        CLOAKED,
        PUBLIC,
        region={"mode": mode, "min_nodes": 2},
        fixed={"ttl_s": 60.0},
    )
    for step, arrivals in enumerate(sequence):
        now = NOW + 5 * step
        rig.put(*arrivals)
        output = rig.tick(now=now)
        topics = [output.messages[m].topic for m in output.message_of.tolist()]
        assert set(topics) <= {"cloaked/positions", "cloaked/fixed", "public/fixed"}
        rig.settle(output, [step % 2 == 0] * len(output.messages))
    rig.flow.close()
    rig.check()
    assert rig.flow.n_held == 0
    assert rig.ledger.n_received == rig.ledger.n_settled


@given(
    st.floats(-1e4, 1e4),
    st.sampled_from([None, 0.5, 3.0]),
    st.sampled_from([(0.0, 400.0), (-5.5, 7.0)]),
)
def test_a_public_reading_is_rounded_like_a_cloaked_one(
    value: float, step: float | None, range_of: tuple[float, float]
) -> None:
    attribute = ReadingAttribute("no2", *range_of, step=step)
    state = ReadingsState([attribute])
    one = np.zeros(1, np.int64)
    state.advance(one.astype(np.int32), one, np.array([value]), np.zeros(1))
    [[kept]] = state.current(one.astype(np.int32), since=-10.0)
    assert published(value, attribute) == round(float(kept), attribute.decimals)
