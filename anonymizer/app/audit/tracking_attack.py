"""The tracking attack on a release, next to what an adversary knows without it."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.attacks.lives import (
    linked_lives,
    no_lives,
    occupied_atom_lives,
    odds_of_whole_atoms,
    pieces_held,
    rounded_lives,
    unlinked_lives,
)
from anonymizer.algorithms.attacks.motion import Motion, learn_motion
from anonymizer.algorithms.attacks.observed import tangent_plane
from anonymizer.algorithms.attacks.reachability import Roads, new_spread, spread_from
from anonymizer.algorithms.attacks.tracking import Tracks, track
from anonymizer.algorithms.attacks.truth import NOWHERE, TIME_SLACK_S
from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.app.audit.case import Case, of_any
from anonymizer.app.audit.findings import Figure, Finding
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork

HORIZONS_MIN = (1, 3, 5)
NEAR_M = 300.0
N_STARTS = 4
N_TARGETS = 10
"""Targets for each start: the attack costs N_STARTS * N_TARGETS filters of five minutes."""
NODES_PER_CELL = 6
"""Nodes in a cell of the raw positions, on average: as in the smallest regions of the gateway."""
N_COUNTED_TICKS = 60
"""Ticks at which devices in pieces are counted."""


class _Stretch(NamedTuple):
    """Some targets, followed from one tick on.

    Attributes
    ----------
    ticks
        From that of the known positions to the last of `at`.
    at
        Ticks at which the belief is measured, counted from the first one.
    targets
        Devices that are present at the first tick and at all of `at`.
    """

    ticks: slice
    at: IntArray
    targets: IntArray


class _Knowledge(NamedTuple):
    """What the adversary knows apart from the release.

    Attributes
    ----------
    motion
        The motion model.
    cell_of
        Cell of each node, to which raw positions are rounded.
    odds
        Odds of the nodes of each region.
    others
        Node of each device that is not a target at each tick, shape (ticks, devices).
    """

    motion: Motion
    cell_of: IntArray
    odds: FloatArray
    others: Int32Array


def tracking(case: Case) -> list[Finding]:
    """Track devices from one known position; report the belief in the true place.

    Up to `N_STARTS` random ticks are known positions of up to `N_TARGETS` random devices each, at
    most half of the devices altogether; the motion model is learned from the others.
    """
    rng = np.random.default_rng(case.seed)
    horizons, stretches = _stretches(case, rng)
    others = np.ones(case.truth.n_devices, bool)
    for stretch in stretches:
        others[stretch.targets] = False
    motion = learn_motion(case.network, case.truth.place, learned_from=others, tick_s=case.tick_s)
    cell_of = _cells(case.network)
    known = np.where(others, case.truth.place, np.int32(NOWHERE))
    odds = odds_of_whole_atoms(case.observed, known, case.atom_of, ticks=_some_ticks(case))
    knowledge = _Knowledge(motion, cell_of, odds, known)
    near: dict[str, list[FloatArray]] = {}
    top: dict[str, list[FloatArray]] = {}
    lost: dict[str, list[BoolArray]] = {}
    for stretch in stretches:
        close = _close_to_truth(case, stretch)
        for name, belief, n_lost in _beliefs(case, stretch, knowledge):
            near.setdefault(name, []).append((belief * close).sum(axis=2))
            guess = belief.argmax(axis=2)[:, :, None]
            top.setdefault(name, []).append(
                np.take_along_axis(close, guess, axis=2)[:, :, 0].astype(np.float64)
            )
            lost.setdefault(name, []).append(n_lost > 0)
    figures: dict[str, Figure] = {}
    for what, found in (("belief", near), ("top", top)):
        figures |= _by_minute(what, found, horizons)
    for name in ("release", "atoms", "followed"):
        shares = np.concatenate([np.zeros(0, bool), *lost.get(name, [])])
        figures[f"{name}_lost_share"] = of_any(np.mean, shares)
    figures["n_tracks"] = sum(len(stretch.targets) for stretch in stretches)
    return [Finding(attack="tracking", figures=figures | _pieces(case))]


def _stretches(case: Case, rng: np.random.Generator) -> tuple[tuple[int, ...], list[_Stretch]]:
    """Return the minutes after which something can be measured, and random stretches."""
    time, place = case.observed.time, case.truth.place
    horizons = tuple(m for m in HORIZONS_MIN if time[0] + 60 * m <= time[-1] + TIME_SLACK_S)
    if not horizons:
        return (), []
    possible = np.flatnonzero(time + 60 * horizons[-1] <= time[-1] + TIME_SLACK_S)
    starts = np.sort(rng.choice(possible, min(N_STARTS, len(possible)), replace=False))
    n_targets = min(N_TARGETS, max(1, case.truth.n_devices // (2 * len(starts))))
    stretches = []
    for start in starts.tolist():
        at = np.searchsorted(time, time[start] + 60.0 * np.array(horizons) - TIME_SLACK_S)
        present = np.flatnonzero((place[[start, *at.tolist()]] >= 0).all(axis=0))
        targets = rng.permutation(present)[:n_targets]
        stretches.append(_Stretch(slice(start, int(at[-1]) + 1), at - start, targets))
    return horizons, stretches


def _beliefs(
    case: Case, stretch: _Stretch, knowledge: _Knowledge
) -> list[tuple[str, FloatArray, IntArray]]:
    """Return each adversary's name, belief, and number of ticks without a fit."""
    place = case.truth.place[stretch.ticks]
    start = place[0, stretch.targets].astype(np.int64)
    n_present = (place >= 0).sum(axis=1)
    motion, cell_of, odds, others = knowledge
    lives = {
        "none": no_lives(len(place)),
        "raw": rounded_lives(place, cell_of),
        "release": unlinked_lives(case.observed, ticks=stretch.ticks, odds=odds),
        "atoms": occupied_atom_lives(case.observed, case.atom_of, others, ticks=stretch.ticks),
        "followed": linked_lives(case.observed, case.class_of, ticks=stretch.ticks, odds=odds),
    }
    beliefs = []
    for name, each in lives.items():
        found: Tracks = track(
            each,
            motion,
            n_present=n_present,
            start=start,
            at=stretch.at,
            smooth=name == "release",
        )
        beliefs.append((name, found.belief, found.n_lost))
        if found.smoothed is not None:
            beliefs.append(("smoothed", found.smoothed, found.n_lost))
    return beliefs


def _by_minute(
    what: str, found: Mapping[str, list[FloatArray]], horizons: tuple[int, ...]
) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for name in ("release", "smoothed", "atoms", "followed", "raw", "none"):
        shares = np.concatenate([np.zeros((0, len(horizons))), *found.get(name, [])])
        for minute in HORIZONS_MIN:
            column = shares[:, horizons.index(minute)] if minute in horizons else np.zeros(0)
            figures[f"{what}_{name}_{minute}min"] = of_any(np.mean, column)
    return figures


def _pieces(case: Case) -> dict[str, Figure]:
    ticks = _some_ticks(case)
    n_covered, n_held = pieces_held(case.observed, case.truth.place, ticks=ticks)
    return {"pieces_held_share": n_held / n_covered, "n_pieces": n_covered}


def _some_ticks(case: Case) -> IntArray:
    """Return up to `N_COUNTED_TICKS` ticks at equal distances."""
    n_ticks = len(case.observed.time)
    ticks = np.linspace(0, n_ticks - 1, min(n_ticks, N_COUNTED_TICKS))
    return np.unique(ticks.round().astype(np.int64))


def _cells(network: RoadNetwork) -> IntArray:
    """Return the cell of each node in a square grid; without coordinates each is one of its own."""
    if not network.has_coordinates:
        return np.arange(network.n_nodes)
    x_m, y_m = tangent_plane(network)
    area = max(float(np.ptp(x_m)), 1.0) * max(float(np.ptp(y_m)), 1.0)
    side_m = float(np.sqrt(area * NODES_PER_CELL / network.n_nodes))
    column, row = np.floor(x_m / side_m), np.floor(y_m / side_m)
    cells = np.unique(np.stack((column, row)), axis=1, return_inverse=True)[1]
    return cells.astype(np.int64)


def _close_to_truth(case: Case, stretch: _Stretch) -> BoolArray:
    """Return which nodes are near the true place, shape (targets, ticks, nodes)."""
    place = case.truth.place[stretch.ticks][stretch.at][:, stretch.targets].T
    close = np.zeros((*place.shape, case.network.n_nodes), bool)
    for node in np.unique(place):
        close[place == node] = _near(case.network, node)
    return close


def _near(network: RoadNetwork, node: np.int32) -> BoolArray:
    """Return which nodes are within `NEAR_M`: straight, or along roads without coordinates."""
    if network.has_coordinates:
        at = (network.lat[node], network.lon[node])
        near: BoolArray = haversine_m(*at, network.lat, network.lon) <= NEAR_M
        return near
    search = new_spread(network.n_nodes)
    roads = Roads(network.first_arc_of, network.neighbour_of, network.length_m)
    source: Int32Array = np.array([node], np.int32)
    spread_from(roads, search, source, NEAR_M)
    by_road: BoolArray = search.pass_s <= NEAR_M
    by_road[node] = True
    return by_road
