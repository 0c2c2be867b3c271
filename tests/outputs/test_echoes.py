"""Echoes: a function of what is published and of the public network, and of nothing else."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.codecs import CODECS, encoders
from anonymizer.domain.fixes import Fix
from anonymizer.domain.network import RoadNetwork
from anonymizer.outputs.echoes import Echoes
from anonymizer.outputs.echoes.region_circles import RegionCircles
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.tick.flow import TickOutput
from tests.pipeline.positions.support import NETWORK, NOW, Rig, a_position, flow_settings

SESSION: dict[str, Any] = {
    "region": {"mode": "session", "min_nodes": 1},
    "session": {"beat_s": 0, "epoch_s": 30},
    "output": {"qos": 1},
}
INPUTS = [
    {"topic": "phones/{device}", "codec": "owntracks", "echo": "cloaked/own/{pseudonym}"},
    {"topic": "buses/{device}", "echo": "cloaked/plain"},
]


def heard(device: str, node: int, ts: float) -> Delivery:
    """Return what a phone or a bus says."""
    place = a_position(node)
    if device.startswith("phones/"):
        body = {"_type": "location", "lat": place["lat"], "lon": place["lon"], "tst": ts}
    else:
        body = place | {"ts": ts}
    return Delivery(device, json.dumps(body).encode(), 0)


def on(output: TickOutput, *topics: str) -> list[Outgoing]:
    return [m for m in output.messages if m.topic.startswith(topics)]


def naive_circle(region: Sequence[int], network: RoadNetwork) -> tuple[float, float, int]:
    """Return the circle around a region, node by node."""
    lat = [float(network.lat[v]) for v in region]
    lon = [float(network.lon[v]) for v in region]
    centre = (
        round((min(lat) + max(lat)) / 2, 5),
        round((min(lon) + max(lon)) / 2, 5),
    )
    radius = 0.0
    for v, v_lat, v_lon in zip(region, lat, lon, strict=True):
        arcs = slice(*network.first_arc_of[v : v + 2].tolist())
        reach = max(network.length_m[arcs].tolist(), default=0.0) / 2
        radius = max(radius, float(haversine_m(*centre, v_lat, v_lon)) + reach)
    return *centre, max(1, ceil(radius))


def expected(messages: Iterable[Outgoing]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield topic and payload of each echo, from what a subscriber of the regions has."""
    for message in messages:
        said = json.loads(message.payload)
        lat, lon, radius = naive_circle(said["region"], NETWORK)
        for name in said.get("pseudonyms") or [said["pseudonym"]]:
            topic = f"cloaked/own/{name}"
            own = {"_type": "location", "acc": radius, "tst": int(said["time"]), "topic": topic}
            yield topic, own | {"tid": name[-2:], "lat": lat, "lon": lon}
            plain = {"lat": lat, "lon": lon, "ts": said["time"], "device": name}
            yield "cloaked/plain", plain | {"accuracy_m": radius}


def as_text(pairs: Iterable[tuple[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(pair, sort_keys=True) for pair in pairs)


places = st.lists(st.integers(0, 24), min_size=12, max_size=12)


@pytest.mark.parametrize("forms", [[], ["device"]])
@settings(max_examples=15, deadline=None)
@given(ticks=st.lists(places, min_size=2, max_size=4), n_phones=st.integers(0, 12))
def test_an_echo_is_what_a_subscriber_of_the_regions_could_write(
    forms: list[str], ticks: list[list[int]], n_phones: int
) -> None:
    rig = Rig(**SESSION | {"output": {"qos": 1, "forms": forms}}, inputs=INPUTS)
    kinds = ["phones" if i < n_phones else "buses" for i in range(12)]
    n_echoes = 0
    for second, nodes in enumerate(ticks):
        now = NOW + 31 * second
        rig.put(
            *(
                heard(f"{kind}/{i}", v, now)
                for i, (kind, v) in enumerate(zip(kinds, nodes, strict=True))
            )
        )
        output = rig.tick(now=now)
        echoes = on(output, "cloaked/own", "cloaked/plain")
        assert as_text((m.topic, json.loads(m.payload)) for m in echoes) == as_text(
            expected(on(output, "cloaked/positions"))
        )
        assert not any(m.retain for m in echoes)
        assert output.messages[-len(echoes) :] == echoes or not echoes
        rig.settle(output, [True] * len(output.messages))
        n_echoes += len(echoes)
    assert n_echoes > 0


def test_every_echo_tells_of_all_devices_so_none_tells_by_which_input_they_came() -> None:
    rig = Rig(**SESSION, adka={"k_values": [4]}, inputs=INPUTS)
    rig.put(heard("phones/0", 7, NOW))
    rig.put(*(heard(f"buses/b{i}", 7, NOW) for i in range(3)))
    output = rig.tick()
    [region] = on(output, "cloaked/positions")
    names = set(json.loads(region.payload)["pseudonyms"])
    assert len(names) == 4
    assert {m.topic.rpartition("/")[2] for m in on(output, "cloaked/own")} == names
    assert {json.loads(m.payload)["device"] for m in on(output, "cloaked/plain")} == names
    # All members have one place.
    assert len({json.loads(m.payload)["lat"] for m in on(output, "cloaked/plain")}) == 1


def test_echoes_of_fixed_devices_are_made_of_their_own_regions() -> None:
    fixed = {"topic": "air/{device}", "kind": "fixed", "echo": "cloaked/air"}
    rig = Rig(**SESSION, fixed={"ttl_s": 600}, inputs=[fixed])
    rig.put(*(Delivery(f"air/{i}", json.dumps(a_position(7)).encode(), 0) for i in range(3)))
    output = rig.tick()
    [region] = on(output, "cloaked/fixed")
    echoes = on(output, "cloaked/air")
    found = [json.loads(m.payload) for m in echoes]
    assert [each["device"] for each in found] == json.loads(region.payload)["pseudonyms"]


def test_an_echo_that_the_broker_refuses_changes_no_account() -> None:
    rig = Rig(**SESSION, adka={"k_values": [4]}, inputs=INPUTS)
    rig.put(*(heard(f"buses/{i}", 7, NOW) for i in range(4)))
    output = rig.tick()
    assert output.n_positions == 4
    assert set(output.message_of.tolist()) == {0}
    rig.settle(output, [m.topic == "cloaked/positions" for m in output.messages])
    assert rig.outcomes()["PUBLISHED"] == 4


@pytest.mark.parametrize("codec", sorted(encoders()))
def test_each_codec_reads_the_centre_back_from_the_echo_of_its_input(codec: str) -> None:
    echo = {"topic": "in/{device}", "codec": codec, "echo": "cloaked/echo/{pseudonym}"}
    given_settings = flow_settings(**SESSION, inputs=[echo])
    message = {"time": NOW, "k": 2, "region": [7, 12, 13], "pseudonyms": ["a" * 12, "b" * 12]}
    echoes = Echoes(given_settings, NETWORK).of(
        [Outgoing("cloaked/positions", json.dumps(message).encode())]
    )
    assert [m.topic for m in echoes] == ["cloaked/echo/" + "a" * 12, "cloaked/echo/" + "b" * 12]
    lat, lon, _ = naive_circle([7, 12, 13], NETWORK)
    for each in echoes:
        [fix] = CODECS[codec](each.payload)
        assert isinstance(fix, Fix)
        assert (fix.lat, fix.lon) == pytest.approx((lat, lon), abs=2e-5)


@pytest.mark.parametrize("codec", ["native", "owntracks"])
def test_an_echo_in_kafka_has_one_topic_and_the_pseudonym_as_key(codec: str) -> None:
    echo = {"topic": "kafka:raw", "codec": codec, "echo": "echoed"}
    output = {"topic": "kafka:cloaked"}
    message = {"time": NOW, "k": 2, "region": [7, 12, 13], "pseudonyms": ["a" * 12, "b" * 12]}
    echoes = Echoes(flow_settings(**SESSION | {"output": output}, inputs=[echo]), NETWORK).of(
        [Outgoing("kafka:cloaked", json.dumps(message).encode())]
    )
    assert [(m.topic, m.key) for m in echoes] == [("echoed", "a" * 12), ("echoed", "b" * 12)]
    assert all(m.key in m.payload.decode() for m in echoes)


@given(st.lists(st.integers(0, 24), min_size=1, max_size=6, unique=True), st.randoms())
def test_the_order_in_which_a_region_names_its_nodes_does_not_move_its_circle(
    region: list[int], random: Any,  # noqa: ANN401  of hypothesis
) -> None:  # fmt: skip
    circles = RegionCircles(NETWORK)
    circle = circles.of(region)
    assert circle == naive_circle(region, NETWORK)
    random.shuffle(region)
    assert circles.of(region) == circle


def test_a_region_across_the_date_line_has_its_centre_in_the_middle() -> None:
    east = replace(NETWORK, lon=(NETWORK.lon - NETWORK.lon[12] + 180.0 + 180.0) % 360.0 - 180.0)
    everywhere = list(range(25))
    assert len(np.unique(np.sign(east.lon))) == 2
    circle, plain = RegionCircles(east).of(everywhere), RegionCircles(NETWORK).of(everywhere)
    assert abs(circle.lon) == pytest.approx(180.0, abs=1e-4)
    assert circle.radius_m == pytest.approx(plain.radius_m, abs=2)
