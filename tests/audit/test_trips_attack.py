"""Attacks on trips: what is published holds, and what tells more is found by the same attacks."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymizer.algorithms.positions.trip_classes import (
    CellSpan,
    TripClass,
    n_cells_of,
    trip_classes,
)
from anonymizer.app.cloak import cloak_trace
from anonymizer.audit import case_of
from anonymizer.audit.attacks import trips as trips_attack
from anonymizer.audit.attacks.trips import (
    TrueWindow,
    attack_trips,
    belief_finding,
    trips,
    true_windows,
)
from anonymizer.audit.case import Reports, TripsCase
from anonymizer.audit.findings import Finding
from anonymizer.audit.stream_case import reports_of
from anonymizer.files.release_lines import read_auditor_map, read_release
from anonymizer.networks import load_network
from anonymizer.outputs.trips.trip_windows import TripMessages, TripWindows
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.settings import Settings
from tests.app.commuters import commuting

NETWORK = load_network("city:1000")
K = 5
EVERY_S = 1800.0
SETTINGS = Settings.model_validate(
    {
        "trips_out": {"every_s": EVERY_S},
        "counts": {"privacy": "k", "k": K, "cells": 16, "every_s": 300.0},
    }
)
N_CELLS = n_cells_of(NETWORK, K)
COMMUTERS = commuting(NETWORK, n_devices=150, n_days=2, rush_s=1800, every_s=10.0, seed=1)
TRACE = COMMUTERS.trace


@pytest.fixture(scope="module")
def windows() -> list[TrueWindow]:
    reports = reports_of(TRACE, NETWORK, SETTINGS)
    rule = SETTINGS.trips.published_rule
    return true_windows(TripsCase(rule, EVERY_S, K, N_CELLS, reports), NETWORK)


def attacked(windows: list[TrueWindow], told: list[list[TripClass]]) -> dict[str, Finding]:
    found = attack_trips(windows, told, NETWORK, k=K, n_cells=N_CELLS, seed=0)
    return {each.attack: each for each in found}


@pytest.fixture
def owners_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack a single device where only the makers of trips are asked for: those of all are."""
    monkeypatch.setattr(trips_attack, "MOST_TARGETS", 1)
    monkeypatch.setattr(trips_attack, "MOST_KNOWN", 1)


def told_with(windows: list[TrueWindow], k: int) -> list[list[TripClass]]:
    return [trip_classes(each.trips, k, n_cells=N_CELLS) for each in windows]


def test_trips_of_two_days_tell_of_nobody(windows: list[TrueWindow]) -> None:
    found = attacked(windows, told_with(windows, K))
    assert set(found) == {
        "trip owner", "trip destination", "trips of two days", "all trips but one"
    }  # fmt: skip
    assert [each.attack for each in found.values() if not each.holds] == []
    assert float(found["trip owner"].figures["worst"] or 1) <= 1 / K
    assert found["trips of two days"].figures["n_victims"]


@pytest.mark.usefixtures("owners_alone")
@pytest.mark.parametrize("k", [2, K - 1])
def test_a_release_with_a_lower_k_is_found(windows: list[TrueWindow], k: int) -> None:
    owner = attacked(windows, told_with(windows, k))["trip owner"]
    assert owner.figures["worst"] == 1 / k
    assert owner.holds is False


@pytest.mark.parametrize(("nodes", "holds"), [(2.0, False), (5.0, True)])
def test_who_believes_in_a_small_cell_believes_in_one_of_its_nodes(
    nodes: float, *, holds: bool
) -> None:
    # With or without the release: nine times in ten the adversary knows the cell.
    pairs = np.full((20, 2), 0.9)
    found = belief_finding("trip destination", pairs, np.arange(20), K, nodes)
    assert found.figures["tenth_node"] == pytest.approx(0.9 / nodes)
    assert found.holds is holds


def test_trips_as_they_are_are_found(windows: list[TrueWindow]) -> None:
    """Each trip is a class of its own: from one cell to one cell."""
    nothing = np.zeros(0, np.int64)
    told = [
        sorted(
            TripClass(CellSpan(o, o), CellSpan(d, d), CellSpan(t, t), 1, nothing)
            for o, d, t in zip(*(each.tolist() for each in window.trips[1:4]), strict=True)
        )
        for window in windows
    ]
    found = attacked(windows, told)
    destination = found["trip destination"].figures
    assert float(destination["belief"] or 0) > 0.5
    assert float(destination["belief_control"] or 1) < 0.2
    failed = {each.attack for each in found.values() if each.holds is False}
    assert failed == {"trip owner", "trip destination", "trips of two days"}


@pytest.mark.usefixtures("owners_alone")
def test_a_road_of_fewer_than_k_is_found(windows: list[TrueWindow]) -> None:
    broken = [
        [
            each._replace(
                roads=np.unique(
                    np.concatenate([w.trips.roads[i] for i in each.holds(w.trips).tolist()])
                )
            )
            for each in classes
        ]
        for w, classes in zip(windows, told_with(windows, K), strict=True)
    ]
    owner = attacked(windows, broken)["trip owner"]
    assert owner.figures["worst"] == pytest.approx(1 / K)
    assert float(owner.figures["worst_road"] or 0) == 1
    assert owner.holds is False


def test_positions_and_counts_beside_trips_tell_no_more(tmp_path: Path) -> None:
    release, auditor = tmp_path / "release.jsonl", tmp_path / "map.jsonl"
    cloak_trace(TRACE, NETWORK, SETTINGS, tick_s=5.0, seed=1, out=release, auditor_map=auditor)
    released = read_release(release, NETWORK)
    device_of = read_auditor_map(auditor, pseudonym=released.pseudonym, device_id=TRACE.device_id)
    case = case_of(TRACE, released, NETWORK, SETTINGS, device_of=device_of, tick_s=5.0)
    found = {each.attack: each for each in trips(case)}
    assert found["trips with positions"].figures["n_victims"]
    assert [each.attack for each in found.values() if not each.holds] == []


def test_what_is_attacked_is_what_the_gateway_publishes() -> None:
    """The auditor makes classes of the whole trace, the gateway as positions come."""
    seen = reports_of(TRACE, NETWORK, SETTINGS)
    # Somebody is heard long before the others and long after them: the recording cuts no trip.
    seen = Reports(
        np.concatenate([[TRACE.n_devices], seen.device, [TRACE.n_devices]]),
        np.concatenate([[TRACE.ts[0] - 7200], seen.ts, [TRACE.ts[-1] + 7200]]),
        np.concatenate([[0], seen.node, [0]]).astype(np.int32),
    )
    windows = true_windows(
        TripsCase(SETTINGS.trips.published_rule, EVERY_S, K, N_CELLS, seen), NETWORK
    )
    out, made = TripWindows(SETTINGS, NETWORK), TripMessages(SETTINGS, NETWORK, version="abc")
    node = np.searchsorted(NETWORK.node_id, np.asarray(TRACE.node)).astype(np.int32)
    messages: list[dict[str, Any]] = []
    times = np.arange(TRACE.ts[0] - 7200, TRACE.ts[-1] + 7200, 60.0).tolist()
    for since, now in pairwise(times):
        first, end = np.searchsorted(TRACE.ts, [since, now], side="right")
        rows = slice(first, end)
        positions = Positions(
            TRACE.device_of[rows].astype(np.int32),
            *(TRACE.ts[rows], TRACE.lat[rows], TRACE.lon[rows], np.zeros(end - first)),
        )
        found = out.tick(positions, node[rows], now=now)
        messages += [json.loads(made.of(each, wall_ahead_s=0.0).payload) for each in found]
    published = [
        [
            (each["origin"], each["destination"], each["devices"], len(each["roads"]))
            for each in body["trips"]
        ]
        for body in messages
        if body["trips"]
    ]
    expected = [
        [
            (each.origin._asdict(), each.destination._asdict(), each.n_devices, len(each.roads))
            for each in classes
        ]
        for classes in told_with(windows, K)
        if classes
    ]
    assert published == expected
