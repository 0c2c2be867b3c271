"""Trips in the flow: published once a window, in classes of k devices, and nothing about others."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from anonymizer.algorithms.positions.protection import IN_ZONE
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.positions.trip_classes import WindowTrips, n_cells_of
from anonymizer.networks import load_network
from anonymizer.outputs.trips.trip_windows import (
    EndedTrips,
    TripMessages,
    TripWindows,
)
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.settings import Settings

NETWORK = load_network("grid:12x12")
K = 3
EVERY_S = 600.0
CELL = compact_parts(NETWORK, n_cells_of(NETWORK, K))
TICK_S = 20
ALONG = list(range(12))
"""The nodes of the first row."""


Out = tuple[TripWindows, TripMessages]


def asked(**tables: Any) -> Settings:  # noqa: ANN401  settings of any kind
    stated = {"trips_out": {"every_s": EVERY_S}, "counts": {"k": K}} | tables
    return Settings.model_validate(stated)


def flow(**tables: Any) -> Out:  # noqa: ANN401  settings of any kind
    settings = asked(**tables)
    return TripWindows(settings, NETWORK), TripMessages(settings, NETWORK, version="abc")


def run(
    out: Out,
    routes: dict[int, tuple[float, list[int]]],
    *,
    until: float,
    hidden: tuple[int, ...] = (),
    hidden_at: int = -1,
    withdrawn_at: Mapping[float, int] = MappingProxyType({}),
    k_extra_at: Mapping[float, int] = MappingProxyType({}),
    refused: tuple[int, ...] = (),
    shut_out_at: float | None = None,
    wall_ahead_s: float = 0.0,
) -> list[tuple[float, dict[str, Any]]]:
    """Return the time of each message, and what it says.

    `routes` has the start of each device and its nodes, one every 20 s; it then falls silent.
    Devices in `hidden` are in a zone of theirs at one of their nodes; `withdrawn_at` has who takes
    no part from a time on, and `refused` whose trips are not to be told; at `shut_out_at` all are
    forgotten.
    """
    said = []
    for now in np.arange(0.0, until, TICK_S):
        seen = [
            (d, now, nodes[i], d in hidden and i == hidden_at % len(nodes))
            for d, (start, nodes) in routes.items()
            if 0 <= (i := int((now - start) // TICK_S)) < len(nodes)
        ]
        node = np.array([each[2] for each in seen], np.int32)
        positions = Positions(
            np.array([each[0] for each in seen], np.int32),
            np.array([each[1] for each in seen], np.float64),
            *(NETWORK.lat[node], NETWORK.lon[node], np.zeros(len(node))),
        )
        absent = {device for at_s, device in withdrawn_at.items() if at_s <= now}
        is_hidden = [each[3] or each[0] in absent for each in seen]
        at = np.where(is_hidden, np.int32(IN_ZONE), node).astype(np.int32)
        gone = [withdrawn_at[now]] if now in withdrawn_at else []
        windows, messages = out
        if now in k_extra_at:
            windows.adopt(asked(region={"k_extra": k_extra_at[now]}))
        windows.withdraw(np.array(gone, np.uint64), everybody=now == shut_out_at)
        ended = windows.tick(positions, at, now=now, refused=refused)
        found = [messages.of(each, wall_ahead_s=wall_ahead_s) for each in ended]
        said += [(now, json.loads(each.payload)) for each in found]
    return said


def test_a_window_is_published_once_when_its_trips_are_known() -> None:
    out = flow()
    routes = {d: (700.0 + 20 * d, ALONG) for d in range(5)}
    said = run(out, routes, until=2200)
    # Its end, the silence that ends a trip, and the time by which positions may be late.
    assert [now for now, _ in said] == [1200 + 300 + 60, 1800 + 300 + 60]
    first, second = (body for _, body in said)
    assert (first["time"], first["window_s"], first["k"]) == (1200.0, 600.0, K)
    assert second["trips"] == []
    [told] = first["trips"]
    assert told["devices"] == 3  # of 5
    ends = [told["origin"], told["destination"]]
    for cell, place in zip((CELL[0], CELL[11]), ends, strict=True):
        assert place["first"] <= cell <= place["last"]
    assert told["start"][0] <= 700
    assert told["start"][1] >= 780
    # Roads in the cells of the ends are left out, and the others are on the row.
    outside = {n for n in ALONG if CELL[n] not in {CELL[0], CELL[11]}}
    assert told["roads"] == [[n, n + 1] for n in ALONG if {n, n + 1} <= outside]
    assert told["roads"]
    assert out[1].n_classes == {"": 1, "unverified": 0}


def test_nothing_is_told_of_fewer_than_k_devices_or_of_trips_that_are_not_whole() -> None:
    few = dict.fromkeys(range(K - 1), (700.0, ALONG))
    assert [body["trips"] for _, body in run(flow(), few, until=1600)] == [[]]
    # The gateway had just started when these were on the way.
    cut = few | dict.fromkeys((7, 8), (0.0, ALONG))
    assert [body["trips"] for _, body in run(flow(), cut, until=1600)] == [[]]
    # One passes from the window before the last into this one.
    company = dict.fromkeys(range(K - 1), (1700.0, ALONG))
    for start, is_told in ((700.0, False), (1200.0, True)):
        slow = company | {7: (start, [n for n in ALONG for _ in range(5)])}
        said = [body["trips"] for _, body in run(flow(), slow, until=2800)]
        assert any(said) is is_told


@pytest.mark.parametrize("at", [0, -1])
def test_nothing_is_told_of_a_device_that_begins_or_ends_in_a_zone(at: int) -> None:
    routes = dict.fromkeys(range(K), (700.0, ALONG))
    [(_, body)] = run(flow(), routes, until=1600)
    assert len(body["trips"]) == 1
    [(_, body)] = run(flow(), routes, until=1600, hidden=(1,), hidden_at=at)
    assert body["trips"] == []


@pytest.mark.parametrize("n_stays", [0, 20], ids=["falls silent", "stays"])
@pytest.mark.parametrize("at", [800.0, 1100.0, 1400.0])
def test_nothing_is_told_of_a_device_that_withdraws_while_it_drives_or_afterwards(
    at: float, n_stays: int
) -> None:
    """The trip of one that stays has ended long before its window is published."""
    routes = dict.fromkeys(range(K + 1), (700.0, ALONG + n_stays * ALONG[-1:]))
    [(_, all_of_them)] = run(flow(), routes, until=1600)
    [(_, body)] = run(flow(), routes, until=1600, withdrawn_at={at: 1})
    [(_, fewer)] = run(flow(), routes, until=1600, withdrawn_at={at: 1}, refused=(2,))
    assert [len(each["trips"]) for each in (all_of_them, body, fewer)] == [1, 1, 0]


@pytest.mark.parametrize("at", [800.0, 1200.0])
def test_nothing_is_told_or_held_of_anybody_when_all_are_shut_out(at: float) -> None:
    out = flow()
    routes = dict.fromkeys(range(K), (700.0, ALONG + 15 * ALONG[-1:]))
    said = run(out, routes, until=3000, shut_out_at=at)
    assert not any(body["trips"] for _, body in said)
    assert out[0].state()["ended"] == []


def test_a_trip_under_way_when_all_are_shut_out_is_not_told_in_a_later_window() -> None:
    routes = dict.fromkeys(range(K), (1100.0, ALONG))
    told = [body["trips"] for _, body in run(flow(), routes, until=3000)]
    assert [len(each) for each in told] == [0, 1, 0], "it ends in the second window"
    said = run(flow(), routes, until=3000, shut_out_at=1140.0)
    assert not any(body["trips"] for _, body in said)


def test_nothing_is_held_of_devices_that_have_fallen_silent_or_withdrawn() -> None:
    out = flow()
    routes = dict.fromkeys(range(K + 1), (320.0, ALONG))
    [(_, body)] = run(out, routes, until=1600, withdrawn_at={600.0: 1})
    assert body["trips"] == [], "they ended before the first window that is published"
    state = out[0].state()
    assert state["ended"] == []
    assert not state["rows"]["is_used"].any()


def test_nothing_is_told_of_a_device_that_forbids_it_after_its_trip() -> None:
    routes = dict.fromkeys(range(K), (700.0, ALONG))
    assert [body["trips"] for _, body in run(flow(), routes, until=1600, refused=(1,))] == [[]]


def test_a_class_that_breaks_its_promise_is_counted_and_not_published() -> None:
    """One of k devices on a road began in a cell that no published place holds."""
    messages = TripMessages(asked(), NETWORK, version="abc")
    last = messages._n_cells - 1
    origin = np.array([*[0] * K, *[last] * K, last + 1])
    same, no_road, road = np.zeros(len(origin), np.int64), np.zeros(0, np.int64), np.array([5])
    roads = [*[no_road] * (K + 1), *[road] * K]
    trips = WindowTrips(np.arange(len(origin)), origin, same, same, roads)
    told = json.loads(messages.of(EndedTrips(1, K, trips), wall_ahead_s=0.0).payload)["trips"]
    assert [(each["origin"]["first"], each["devices"]) for each in told] == [(0, K)]
    assert messages.n_classes == {"": 1, "unverified": 1}


def test_k_extra_is_added_and_published_times_follow_the_clock() -> None:
    # From 2k - 1 devices on, whatever the secret threshold is.
    routes = dict.fromkeys(range(7), (700.0, ALONG))
    out = flow(region={"k_extra": 1})
    [(_, body)] = run(out, routes, until=1600, wall_ahead_s=5000.0)
    [told] = body["trips"]
    assert (body["k"], told["devices"], body["time"]) == (4, 4, 6200.0)
    assert told["start"][0] >= 5000


def test_a_window_has_the_largest_k_that_was_asked_for_since_its_trips_can_have_begun() -> None:
    """The trips of [600, 1200) may have begun from 0 on; they are published at 1560."""
    routes = dict.fromkeys(range(6), (700.0, ALONG))
    for at_s, k in (
        ({0.0: 2, 100.0: 0}, 5),
        ({1100.0: 2, 1180.0: 0}, 5),
        ({1200.0: 2, 1500.0: 0}, 3),
        ({1500.0: 2}, 5),
    ):
        (_, body), *_ = run(flow(), routes, until=1600, k_extra_at=at_s)
        assert (body["k"], [each["devices"] for each in body["trips"]]) == (k, [6 // k * k])


def test_where_trip_ends_are_protected_a_stop_is_a_silence() -> None:
    rule = Settings.model_validate({"trips": {"enabled": True}}).trips.published_rule
    assert rule.gap_s == rule.dwell_s == 120.0
    assert Settings().trips.published_rule.gap_s == 300.0


def test_ids_that_change_are_no_company_for_trips() -> None:
    with pytest.raises(ValidationError, match="trips_out"):
        Settings.model_validate({"trips_out": {"every_s": 60}, "inputs": [{"ids_change_s": 300}]})
