"""Counting in the flow: the devices of an interval, each once, where it was seen last."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from anonymizer.outputs.cells import cells_messages
from anonymizer.outputs.counts.counted_devices import CountedDevices
from anonymizer.outputs.counts.safe_messages import SafeMessages
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.tick.id_lives import IdLives
from anonymizer.settings import CountSettings

NETWORK = load_network("grid:8x8")
CELL = compact_parts(NETWORK, 16)


class Seen(NamedTuple):
    slot: int
    ts: float
    node: int


def counting_settings(**keys: Any) -> CountSettings:  # noqa: ANN401  settings of any kind
    return CountSettings.model_validate({"cells": 16, "k": 2, "every_s": 10.0} | keys)


class Counting:
    """Counts devices, and makes the messages."""

    def __init__(
        self,
        settings: CountSettings,
        network: RoadNetwork = NETWORK,
        *,
        k_extra: int = 0,
        **keys: Any,  # noqa: ANN401  see `CountedDevices`
    ) -> None:
        self.devices = CountedDevices(settings, network, **keys)
        self.safe = SafeMessages(settings, topic="", version="abc", k_extra=k_extra)

    def tick(
        self, slot: Int32Array, ts: FloatArray, node: Int32Array, *, now: float, freed: Int32Array
    ) -> list[Outgoing]:
        ended = self.devices.tick(slot, ts, node, now=now)
        self.devices.free(freed)
        if ended is None or not ended.is_whole:
            return []
        return [self.safe.message(ended.tally(), ended.end_s)]


def counting(**keys: Any) -> Counting:  # noqa: ANN401  likewise
    return Counting(counting_settings(**keys))


def feed(
    flow: Counting, seen: list[Seen], *, now: float, freed: tuple[int, ...] = ()
) -> list[dict[str, Any]]:
    messages = flow.tick(
        np.array([each.slot for each in seen], np.int32),
        np.array([each.ts for each in seen], np.float64),
        np.array([each.node for each in seen], np.int32),
        now=now,
        freed=np.array(freed, np.int32),
    )
    return [json.loads(message.payload) for message in messages]


def test_an_interval_that_was_not_watched_whole_is_left_out() -> None:
    flow = counting()
    assert feed(flow, [Seen(0, 5, 0), Seen(1, 5, 0)], now=5) == []
    assert feed(flow, [Seen(0, 11, 0), Seen(1, 11, 0)], now=11) == []
    [body] = feed(flow, [], now=20)
    assert (body["time"], body["interval_s"], body["k"], body["network"]) == (20, 10, 2, "abc")
    assert [each["devices"] for each in body["counts"]] == [2]


def test_devices_are_counted_with_where_they_came_from() -> None:
    flow = counting()
    left, right = 0, 63
    feed(flow, [], now=5)
    feed(flow, [Seen(slot, 12, left) for slot in range(4)], now=12)
    [before] = feed(flow, [Seen(slot, 22, left) for slot in range(4)], now=22)
    assert [(each["devices"], each["origins"]) for each in before["counts"]] == [(4, [])]
    feed(flow, [Seen(slot, 26, right) for slot in (0, 1)], now=26)
    [body] = feed(flow, [], now=30)
    assert [each["devices"] for each in body["counts"]] == [2, 2]
    for each in body["counts"]:
        [origin] = each["origins"]
        assert origin["devices"] == 2
        assert origin["first"] <= CELL[left] <= origin["last"]
    assert sorted(each["dwell_s"] for each in body["counts"]) == [0.0, 20.0]  # 4 s and 18 s


def haversine(a: int, b: int) -> float:
    lat, lon = NETWORK.lat, NETWORK.lon
    return float(haversine_m(lat[a : a + 1], lon[a : a + 1], lat[b : b + 1], lon[b : b + 1])[0])


def test_a_device_is_counted_once_when_its_slot_is_freed() -> None:
    """Whether it is freed depends on the others of its group, so it must make no difference."""
    devices = DeviceTable(secret=bytes(32), max_devices=9)
    flow = Counting(counting_settings(), keys=devices.keys)
    left, right = 0, 63

    def see(names: str, ts: float, node: int, *, freed: str = "") -> list[dict[str, Any]]:
        seen = [Seen(devices.slot(name), ts, node) for name in names]
        gone = tuple(devices.slot(name) for name in freed)
        bodies = feed(flow, seen, now=ts, freed=gone)
        devices.free(np.array(gone, np.int32))
        return bodies

    see("", 5, left)
    see("abcd", 12, left)
    see("", 13, left, freed="abcd")
    [first] = see("dcba", 22, right)
    assert [each["devices"] for each in first["counts"]] == [4]
    see("", 23, right, freed="abcd")
    see("ef", 24, left)  # in slots of the others
    [second] = see("", 30, left)
    assert sorted(
        (each["devices"], [origin["devices"] for origin in each["origins"]])
        for each in second["counts"]
    ) == [(2, []), (4, [4])]


def test_a_device_that_was_not_seen_for_long_is_forgotten() -> None:
    flow = Counting(counting_settings(), kept_s=15.0)
    feed(flow, [], now=5)
    feed(flow, [Seen(slot, 12, 0) for slot in range(3)], now=12)
    for now in (20, 30, 40):
        feed(flow, [], now=now)
    assert len(flow.devices._rows) == 0
    feed(flow, [Seen(slot, 43, 63) for slot in range(4)], now=43)
    [body] = feed(flow, [], now=50)
    [run] = body["counts"]
    assert (run["devices"], run["origins"], run["dwell_s"]) == (4, [], 10.0)  # 7 s, in steps
    assert "speed_mps" not in run


def test_a_position_in_no_place_is_not_counted() -> None:
    flow = counting()
    feed(flow, [], now=5)
    feed(flow, [Seen(slot, 11, -1) for slot in range(3)], now=11)
    [body] = feed(flow, [], now=20)
    assert body["counts"] == []


seen = st.builds(
    Seen, st.integers(0, 5), st.integers(0, 39).map(float), st.integers(0, NETWORK.n_nodes - 1)
)


@hypothesis_settings(max_examples=30)
@given(st.lists(seen, max_size=40), st.randoms(use_true_random=False))
def test_counts_equal_those_of_the_naive_twin(said: list[Seen], shuffle: Any) -> None:  # noqa: ANN401  hypothesis's
    """Each device once, at its newest place of the interval, whatever the order in a tick."""
    flow = counting()
    said = list({(each.slot, each.ts): each for each in said}.values())
    feed(flow, [], now=0.0)
    bodies = []
    for second in range(41):
        batch = [each for each in said if each.ts == second]
        shuffle.shuffle(batch)
        # A second's positions come with the tick of that second.
        bodies += feed(flow, batch, now=float(second))
    assert [body["time"] for body in bodies] == [20.0, 30.0, 40.0]
    for body in bodies:
        newest: dict[int, Seen] = {}
        for each in sorted(said, key=lambda each: each.ts):
            if body["time"] - 10 <= each.ts < body["time"]:
                newest[each.slot] = each
        n_in = Counter(int(CELL[each.node]) for each in newest.values())
        for run in body["counts"]:
            true = sum(n_in[cell] for cell in range(run["first"], run["last"] + 1))
            assert run["devices"] == true // 2 * 2
        total = sum(n_in.values())
        covered = [cell for run in body["counts"] for cell in range(run["first"], run["last"] + 1)]
        assert covered == (list(range(16)) if total >= 2 else [])


def test_the_cells_are_boxes_around_their_nodes() -> None:
    [message] = cells_messages("cloaked/counts", 16, NETWORK, version="abc")
    assert (message.topic, message.retain) == ("cloaked/counts/cells", True)
    body = json.loads(message.payload)
    assert body["network"] == "abc"
    assert [each["id"] for each in body["features"]] == list(range(16))
    for each in body["features"]:
        ring = each["geometry"]["coordinates"][0]
        nodes = np.flatnonzero(each["id"] == CELL)
        assert each["properties"]["nodes"] == len(nodes)
        for node in nodes:
            lon, lat = float(NETWORK.lon[node]), float(NETWORK.lat[node])
            assert min(p[0] for p in ring) - 1e-6 <= lon <= max(p[0] for p in ring) + 1e-6
            assert min(p[1] for p in ring) - 1e-6 <= lat <= max(p[1] for p in ring) + 1e-6


@pytest.mark.parametrize("part_bytes", [1, 700, 3000])
def test_cells_are_cut_to_what_the_broker_takes(part_bytes: int) -> None:
    [whole] = cells_messages("t", 16, NETWORK, version="abc")
    parts = cells_messages("t", 16, NETWORK, version="abc", part_bytes=part_bytes)
    bodies = [json.loads(each.payload) for each in parts]
    assert [each for body in bodies for each in body["features"]] == json.loads(whole.payload)[
        "features"
    ]
    assert [each.topic for each in parts] == ["t/cells", *(f"t/cells/{i}" for i in range(1, 16))][
        : len(parts)
    ]
    assert all((body["part"], body["of"]) == (i, len(parts)) for i, body in enumerate(bodies))
    assert part_bytes == 1 or max(len(each.payload) for each in parts) <= part_bytes


@pytest.mark.data
@pytest.mark.soak
def test_one_taxi_changes_about_half_of_the_messages() -> None:
    """What an adversary learns who knows all other devices, as the manual says."""
    data = Path(os.environ["ANONYMIZER_DATA"])
    days = pl.scan_parquet(data / "traces" / "cabspotting_sf_2008-05-19_20.parquet")
    start = days.select(pl.col("ts").min()).collect().item() + 18 * 3600
    hour = days.filter((pl.col("ts") >= start) & (pl.col("ts") < start + 3600)).collect()
    hour = hour.sort("ts", maintain_order=True)
    network = load_network(str(data / "networks" / "san_francisco"))
    node = NodeLocator(network, limit_m=100.0).locate(
        hour["lat"].to_numpy(), hour["lon"].to_numpy()
    )
    taxis, slot = np.unique(hour["device_id"].to_numpy(), return_inverse=True)
    ts = hour["ts"].to_numpy().astype(np.float64)

    def said(without: int | None) -> list[bytes]:
        flow = Counting(CountSettings(), network)
        kept = slot != without
        found = []
        for now in np.arange(start, start + 3611.0, 10.0):
            rows = kept & (ts > now - 10) & (ts <= now)
            columns = (slot[rows].astype(np.int32), ts[rows], node[rows])
            messages = flow.tick(*columns, now=float(now), freed=np.zeros(0, np.int32))
            found += [message.payload for message in messages]
        return found

    everybody = said(None)
    left_out = np.random.default_rng(0).choice(len(taxis), 20, replace=False)
    changed = [
        np.mean([a != b for a, b in zip(everybody, said(int(taxi)), strict=True)])
        for taxi in left_out
    ]
    assert 0.35 < np.mean(changed) < 0.65


def test_speeds_are_those_between_positions() -> None:
    flow = counting()
    feed(flow, [], now=5)
    feed(flow, [Seen(slot, 11, 0) for slot in range(2)], now=11)
    feed(flow, [Seen(slot, 19, 1) for slot in range(2)], now=19)
    [body] = feed(flow, [], now=20)
    [run] = body["counts"]
    assert run["speed_mps"] == round(haversine(0, 1) / 8)


@given(st.data())
def test_a_vehicle_is_counted_once_however_often_it_changes_its_id(data: st.DataObject) -> None:
    """The oracle: in the middle of an interval, each vehicle has one id; that one is counted."""
    slack_s = 0.25
    flow = CountedDevices(counting_settings(), NETWORK, slack_s=slack_s)
    ids = IdLives()
    heard: dict[int, list[float]] = {}
    number = dict.fromkeys(range(5), 0)
    for now in range(1, 41):
        reporting = data.draw(st.sets(st.sampled_from(range(5))))
        for vehicle in data.draw(st.sets(st.sampled_from(range(5)), max_size=2)):
            number[vehicle] += 1
        slot = np.array([100 * v + number[v] for v in reporting], np.int32)
        for each in slot.tolist():
            heard.setdefault(each, []).append(float(now))
        ids.mark(slot)
        ts = np.full(len(slot), float(now))
        node = np.full(len(slot), now, np.int32)
        ended = flow.tick(slot, ts, node, now=float(now), since=ids.since(slot, ts, now=now))
        if ended is None:
            continue
        middle_s = ended.end_s - 5
        counted = sorted((ended.key // 100).tolist())
        before = {each: [t for t in at if t < now] for each, at in heard.items()}
        assert counted == sorted(
            each // 100
            for each, at in before.items()
            if at and at[0] + slack_s < middle_s <= at[-1]
        )
        assert len(counted) == len(set(counted))


def test_undeclared_a_vehicle_counts_by_each_of_its_ids() -> None:
    flow = counting()
    for now in range(1, 30):
        feed(flow, [Seen(now // 4, now, 0), Seen(50, now, 0)], now=now)
    [body] = feed(flow, [], now=30)
    assert sum(each["devices"] for each in body["counts"]) == 4  # one vehicle and its three ids


def test_figures_hold_k_and_the_devices_that_may_be_the_adversary_s() -> None:
    """Two devices, and two that the adversary may bring along: three make no figure, seven do.

    Between k and 2 k - 1 the secret threshold decides.
    """
    shown: dict[int, list[list[int]]] = {
        3: [[]], 4: [[], [4]], 6: [[], [4]], 7: [[4]], 8: [[4], [8]], 11: [[8]],
    }  # fmt: skip
    for n, devices in shown.items():
        flow = Counting(counting_settings(), k_extra=2)
        feed(flow, [], now=5)
        feed(flow, [Seen(slot, 12, 0) for slot in range(n)], now=12)
        [body] = feed(flow, [], now=20)
        assert (body["k"], body["more"]) == (4, 6)
        assert [each["devices"] for each in body["counts"]] in devices


def test_the_devices_beyond_k_may_change_while_it_runs() -> None:
    flow = counting()
    feed(flow, [], now=5)
    feed(flow, [Seen(slot, 12, 0) for slot in range(9)], now=12)  # 2 k - 1: above any threshold
    flow.safe.k_extra = 3
    [body] = feed(flow, [], now=20)
    assert (body["k"], [each["devices"] for each in body["counts"]]) == (5, [5])


@given(
    st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), max_size=30),
    st.integers(0, 4),
)
def test_whoever_knows_its_own_devices_finds_no_figure_about_fewer_than_k_others(
    moves: list[tuple[int, int]], n_own: int
) -> None:
    """The adversary brings `k_extra` devices, and subtracts them from any figure and difference."""
    k = 2
    flow = Counting(counting_settings(k=k), k_extra=n_own)
    feed(flow, [], now=5)
    feed(flow, [Seen(slot, 12, then) for slot, (then, _) in enumerate(moves)], now=12)
    [earlier] = feed(flow, [], now=20)
    feed(flow, [Seen(slot, 22, now) for slot, (_, now) in enumerate(moves)], now=22)
    [later] = feed(flow, [], now=30)
    figures = [each["devices"] for body in (earlier, later) for each in body["counts"]]
    figures += [origin["devices"] for each in later["counts"] for origin in each.get("origins", [])]
    figures += [
        each["devices"] - sum(origin["devices"] for origin in each["origins"])
        for each in later["counts"]
        if each.get("origins")
    ]
    for figure in figures:
        assert figure == 0 or figure - n_own >= k
    for one in figures:
        for other in figures:
            assert one == other or abs(one - other) - n_own >= k
