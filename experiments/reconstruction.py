"""Reconstruction: the paths of devices from one known position each and a release.

The tracker of the audit gives the probability of each node at each step, by what was published
until then (filter) or afterwards as well (smoothing). From these follows the share of a path that
is found: of the nodes that a device visits within five minutes, how many are among the equally many
that are likeliest to be visited. A model that was trained on other fleets, and ranked the nodes by
all of that together, found no more.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.releases.observed import tangent_plane
from anonymizer.audit import Case
from anonymizer.audit.attacks.tracking import (
    HINDSIGHT_S,
    HeardRelease,
    believe,
    cells_shown,
    steps_of,
)
from anonymizer.audit.mathematics.following import follow
from anonymizer.audit.mathematics.motion import Motion
from anonymizer.audit.publications import counting_times
from anonymizer.audit.stretches import Stretch, motion_of_others, stretches
from anonymizer.domain.arrays import BoolArray, FloatArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings
from experiments.baselines import SafeCounts
from experiments.broken_releases import raw_release
from experiments.frontier_attacks import counted_lives, steps_at
from experiments.frontier_experiment import counted_runs
from experiments.scores import Score
from experiments.tracking_experiment import drive, released

MINUTES = 5
SECONDS = 600
N_STARTS, N_TARGETS = 3, 12
N_FLEETS = 2
"""Fleets whose targets are pooled."""
MODES = ("session", "snapshot")


class Fleet(NamedTuple):
    """A fleet in one way to publish, and who is followed."""

    case: Case
    heard: HeardRelease
    chosen: list[Stretch]
    motion: Motion


class Paths(NamedTuple):
    """What is known of the paths of some targets."""

    visited: BoolArray
    """Which nodes each target visits after the known position, shape (targets, nodes)."""
    likely: dict[str, FloatArray]
    """Of each reading, how likely each node is to be visited, likewise."""
    far_m: FloatArray
    """Distance of each node from the known position, likewise."""


def run_reconstruction(
    network: RoadNetwork,
    *,
    n_devices: int,
    seed: int,
    progress: Callable[[str], None] = lambda _what: None,
) -> Iterator[Score]:
    """Reconstruct paths from sessions, snapshots, safe counts, and raw places without names."""
    seeds = [seed + i for i in range(N_FLEETS)]
    for mode in MODES:
        progress(f"paths: {mode}")
        fleets = [_fleet(network, n_devices, mode, each) for each in seeds]
        yield from _scores(fleets, paths_of, mode)
        if mode == "session":
            progress("paths: safe counts")
            yield from _scores(fleets, paths_from_counts, "safe counts")
    progress("paths: raw positions")
    raw = [_raw_fleet(network, n_devices, each) for each in seeds]
    yield from _scores(raw, paths_of, "raw, a name")


def _raw_fleet(network: RoadNetwork, n_devices: int, seed: int) -> Fleet:
    trace = drive(network, n_devices, seconds=SECONDS, seed=seed)
    case, release = raw_release(trace, network, tick_s=1.0, name_s=SECONDS, seed=seed)
    return followed(case, HeardRelease(case.observed, case.class_of, release.until))


def _fleet(network: RoadNetwork, n_devices: int, mode: str, seed: int) -> Fleet:
    trace = drive(network, n_devices, seconds=SECONDS, seed=seed)
    settings = Settings.model_validate({"region": {"mode": mode}})
    case, release = released(trace, network, settings, seed=seed)
    return followed(case, HeardRelease(case.observed, case.class_of, release.until))


def followed(case: Case, heard: HeardRelease) -> Fleet:
    """Return a release with targets to follow at every step, and how others move."""
    fine_s, step_s = steps_of(case.reports.interval_s)
    chosen = stretches(
        case.observed,
        case.truth,
        (MINUTES,),
        step_s=step_s,
        n_starts=N_STARTS,
        n_targets=N_TARGETS,
        rng=np.random.default_rng(case.seed),
        ahead_s=HINDSIGHT_S,
    )
    motion = motion_of_others(
        case.observed, case.truth, case.network, chosen, step_s=fine_s, every=round(step_s / fine_s)
    )
    every_step = [each._replace(at=np.arange(1, int(each.at[-1]) + 1)) for each in chosen]
    return Fleet(case, heard, every_step, motion)


def paths_of(fleet: Fleet) -> Paths:
    """Return what the audit's tracker believes of the paths: filter, smoothing, and no release."""
    case = fleet.case
    believed = believe(
        fleet.heard,
        case.truth,
        case.network,
        case.piece_of,
        chosen=fleet.chosen,
        motion=fleet.motion,
        adversaries=("none", "followed", "hindsight"),
    )
    return _paths(case.network, believed)


def paths_from_counts(fleet: Fleet) -> Paths:
    """Return the same from the safe counts of each minute, with the same filter."""
    case, motion = fleet.case, fleet.motion
    times = counting_times(case.observed.time)
    counts = list(counted_runs(SafeCounts(case.reports, case.network, times)))
    alone = believe(
        fleet.heard, case.truth, case.network, case.piece_of, chosen=fleet.chosen, motion=motion,
        adversaries=("none",),
    )  # fmt: skip

    def believed() -> Iterator[tuple[Stretch, dict[str, FloatArray]]]:
        for stretch, belief_of in alone:
            lives = counted_lives(steps_at(stretch, times), counts, len(stretch.steps_s))
            now, later = follow(
                lives,
                motion,
                n_present=(stretch.place >= 0).sum(axis=1),
                start=stretch.place[0, stretch.targets].astype(np.int64),
                enter=0,
                at=stretch.at,
                cell_of=cells_shown(case.network),
                look_back=True,
            )
            assert later is not None  # noqa: S101  it looks back
            yield stretch, belief_of | {"followed": now, "hindsight": later}

    return _paths(case.network, believed())


def _paths(
    network: RoadNetwork, believed: Iterator[tuple[Stretch, dict[str, FloatArray]]]
) -> Paths:
    x_m, y_m = tangent_plane(network)
    visited, far_m = [], []
    likely: dict[str, list[FloatArray]] = {}
    for stretch, belief_of in believed:
        place = stretch.place[1 : stretch.at[-1] + 1, stretch.targets].T
        start = stretch.place[0, stretch.targets]
        there = np.zeros((len(start), network.n_nodes), bool)
        row, step = np.nonzero(place >= 0)
        there[row, place[row, step]] = True
        there[np.arange(len(start)), start] = False
        visited.append(there)
        far_m.append(np.hypot(x_m - x_m[start, None], y_m - y_m[start, None]))
        for name, belief in belief_of.items():
            # A device that stays is there at many steps, and visits the node once.
            ever = 1.0 - np.prod(1.0 - np.minimum(belief, 1.0), axis=1)
            ever[np.arange(len(start)), start] = 0.0
            likely.setdefault(name, []).append(ever)
    joined = {name: np.concatenate(each) for name, each in likely.items()}
    return Paths(np.concatenate(visited), joined, np.concatenate(far_m))


def found_share(paths: Paths, likely: FloatArray) -> FloatArray:
    """Return how much of each path is found, NaN for a target that does not move.

    As many nodes are guessed as it visits, the likeliest ones.
    """
    n = paths.visited.sum(axis=1)
    order = np.argsort(-likely, axis=1, kind="stable")
    hit = np.take_along_axis(paths.visited, order, axis=1)
    guessed = np.arange(hit.shape[1]) < n[:, None]
    with np.errstate(invalid="ignore"):
        shares: FloatArray = (hit & guessed).sum(axis=1) / n
    return shares


def _scores(
    fleets: Sequence[Fleet], read: Callable[[Fleet], Paths], release: str
) -> Iterator[Score]:
    """Yield what is found in some fleets, beside what is found without a release."""
    begun = time.process_time()
    found = [read(each) for each in fleets]
    cpu_s = time.process_time() - begun

    def shares(name: str) -> FloatArray:
        return np.concatenate([found_share(each, each.likely[name]) for each in found])

    for name, what in (("followed", "filter"), ("hindsight", "smoothing")):
        yield Score(f"paths: {what}", release, shares(name), shares("none"), cpu_s)
