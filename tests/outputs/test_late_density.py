"""The public's copy says what its messages say, a quarter of an hour late, and nothing more."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.cluster.limits import check_cluster
from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.outputs.late_density import EVERY_S, LateDensity
from anonymizer.pipeline.ports import PART_BYTES, Outgoing
from anonymizer.settings import Settings
from tests.app.contracts import Contract
from tests.end_to_end import Seen
from tests.pipeline.positions.support import Rig, delivery

NETWORK = load_network("grid:12x12")
TABLE: dict[str, Any] = {
    "output": {"forms": ["density"]},
    "counts": {"cells": 16},
    "inputs": [{"topic": "positions/{device}"}],
}
SETTINGS = Settings.model_validate(TABLE)
CELL_OF = compact_parts(NETWORK, 16)
_GROUPS = ("ab", "cd", "ef", "gh", "ij", "kl")
BEGIN = 1_800_000_000.0
assert BEGIN % EVERY_S == 0


def group(
    names: str, region: list[int], *, at_s: float, lasts_s: float = 30.0, topic: str | None = None
) -> Outgoing:
    """Return the message about a group whose pseudonyms are single letters."""
    body = {"group": names[0], "time": BEGIN + at_s, "until": BEGIN + at_s + lasts_s, "k": 2}
    body |= {"pseudonyms": [*names], "region": [int(NETWORK.node_id[v]) for v in region]}
    return Outgoing(topic or SETTINGS.output.topic, json.dumps(body).encode())


def density() -> LateDensity:
    return LateDensity(SETTINGS, NETWORK)


def bodies(messages: list[Outgoing]) -> list[Mapping[str, Any]]:
    assert {each.topic for each in messages} <= {"public/density"}
    return [json.loads(each.payload) for each in messages]


def expected(*groups: tuple[int, list[int]]) -> list[float]:
    """Return the devices in each cell, group by group and node by node."""
    found = np.zeros(16)
    for n_devices, region in groups:
        for node in region:
            found[CELL_OF[node]] += n_devices / len(region)
    return found.round(1).tolist()


def test_what_holds_at_a_quarter_is_published_a_quarter_later() -> None:
    copies = density()
    assert not copies.of([group("ab", [0, 1, 2, 50], at_s=880)])
    assert not copies.of([group("cde", [7, 90], at_s=895), group("xy", [3], at_s=850)])
    assert not copies.of([group("ab", [100, 101], at_s=901)]), "it is not late yet"
    assert not copies.of([group("cde", [8], at_s=EVERY_S + 899)])
    [body] = bodies(copies.of([group("ab", [5], at_s=2 * EVERY_S)]))
    assert body["time"] == BEGIN + EVERY_S
    assert body["devices"] == expected((2, [0, 1, 2, 50]), (3, [7, 90])), "the group xy had ended"
    [body] = bodies(copies.of([group("ab", [5], at_s=3 * EVERY_S)]))
    assert body["devices"] == expected((3, [8]))


def test_fixed_devices_are_not_in_it() -> None:
    copies = density()
    fixed = group("xy", [3], at_s=890, topic=SETTINGS.topics.fixed)
    copies.of([fixed, group("ab", [9], at_s=890)])
    copies.of([group("ab", [9], at_s=EVERY_S)])
    [body] = bodies(copies.of([group("ab", [9], at_s=2 * EVERY_S)]))
    assert body["devices"] == expected((2, [9]))


def test_a_clock_that_is_put_back_publishes_nothing_early() -> None:
    copies = density()
    copies.of([group("ab", [9], at_s=890), group("ab", [9], at_s=EVERY_S)])
    assert not copies.of([group("ab", [9], at_s=500)])
    assert not copies.of([group("ab", [9], at_s=EVERY_S + 5)])
    assert copies.of([group("ab", [9], at_s=2 * EVERY_S + 5)])


@given(st.lists(st.integers(-3, 4), min_size=1, max_size=30))
def test_a_density_is_published_once_whatever_the_clock(steps: list[int]) -> None:
    copies, at_s, times = density(), 0.0, []
    for step in steps:
        at_s += step * EVERY_S / 2
        times += [each["time"] for each in bodies(copies.of([group("ab", [9], at_s=at_s)]))]
    assert times == sorted(set(times))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.lists(st.integers(0, NETWORK.n_nodes - 1), min_size=1, max_size=9, unique=True),
            st.floats(0, 400),
            st.floats(1, 900),
        ),
        max_size=40,
    ),
    st.data(),
)
def test_whoever_reads_the_messages_can_write_it(
    steps: list[tuple[int, list[int], float, float]], data: st.DataObject
) -> None:
    """It depends on the published bytes and their order alone, however they come in ticks."""
    times = np.cumsum([wait for _, _, wait, _ in steps])
    messages = [
        group(_GROUPS[who], region, at_s=float(at_s), lasts_s=lasts_s)
        for (who, region, _, lasts_s), at_s in zip(steps, times, strict=True)
    ]
    one, two = density(), density()
    at_once, by_ticks, first = one.of(messages), list[Outgoing](), 0
    while first < len(messages):
        n = data.draw(st.integers(1, 5))
        by_ticks += two.of(messages[first : first + n])
        first += n
    assert at_once == by_ticks
    for body in bodies(at_once):
        newest = {
            each["group"]: each
            for each in (json.loads(message.payload) for message in messages)
            if each["time"] < body["time"]
        }
        holds = [each for each in newest.values() if each["until"] + 0.2 >= body["time"]]
        node_of = {name: i for i, name in enumerate(NETWORK.node_id.tolist())}
        told = [(2, [node_of[name] for name in each["region"]]) for each in holds]
        assert body["devices"] == expected(*told)
        assert sum(body["devices"]) == pytest.approx(2 * len(holds), abs=0.1 * 16)


def test_a_gateway_publishes_it_and_its_cells_as_the_contract_says() -> None:
    rig = Rig(output=TABLE["output"], counts=TABLE["counts"])
    told = []
    for second in range(0, 3 * EVERY_S, 60):
        rig.put(*(delivery(f"d{i}", (7 * i + second // 60) % 25) for i in range(30)))
        told += rig.tick(now=BEGIN + second).messages
    found = [each for each in told if each.topic == "public/density"]
    assert [json.loads(each.payload)["time"] for each in found] == [BEGIN + EVERY_S]
    [body] = bodies(found)
    assert sum(body["devices"]) == pytest.approx(30, abs=0.1 * 16)
    cells = LateDensity.retained(SETTINGS, NETWORK, lambda _: PART_BYTES)
    assert [each.topic for each in cells] == ["public/density/cells"]
    contract = Contract(SETTINGS)
    for each in (*found, *cells):
        contract.check(Seen(each.topic, each.payload, each.retain))


def test_a_cluster_refuses_it_by_name() -> None:
    with pytest.raises(SettingsError, match=r'output\.forms = "density"'):
        check_cluster(SETTINGS)
