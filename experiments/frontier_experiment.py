"""Frontier of privacy and utility: the modes of the gateway beside other ways to publish.

One trace is published in every way. One attack tracks a device from one known position; another
finds the name of a device by four. Utility is the error of what an analyst reads, with the best
estimator that is known for each publication. Of the schemes of `experiment blur`, that which counts
people by the hour is left out: here all is read by the minute, as are the counts beside it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from anonymizer.audit import Case
from anonymizer.audit.attacks.tracking import HeardRelease, beliefs
from anonymizer.audit.publications import (
    NodeDivision,
    PlaceReading,
    RegionReader,
    Traffic,
    counting_times,
    grid,
    grid_cells,
    read_devices,
    true_traffic,
)
from anonymizer.audit.utility import GRACE_TICKS, figures
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.files.release_lines import Released
from anonymizer.settings import Settings
from experiments.baselines import PlanarLaplace, SafeCounts, central_noise, read_shrunk
from experiments.blur_schemes import SCHEMES, BlurScheme
from experiments.frontier_attacks import (
    Counts,
    Known,
    Tracker,
    known_positions,
    link_noisy,
    link_regions,
)
from experiments.frontier_schemes import LEAST_NOISE_M, SchemePlaces, published
from experiments.kept_steps import KeptSteps
from experiments.tracking_experiment import released
from experiments.weak_readers import WITH_RELEASE, weak_readings

SIDES = (6, 18)
SESSIONS = (1, 3, 4)
"""`place_devices` of the sessions; the last is the default."""
LAPLACE_EPSILON = float(np.log(4.0))
"""e to the epsilon is how many times as likely a report may be from a place so many metres away."""
LAPLACE_AT_M = (50, 100, 200, 500, 1000, 2000)
"""Metres within which a place is at most 4 times as likely from one position as from another."""
THRESHOLDS = (2, 5, 10, 20)
CENTRAL_EPSILONS = (1, 10, 100, 1000)
"""Budget of a device for an hour of counts."""
OWN, PUBLIC = "own settings", "public scheme"


@dataclass(frozen=True, slots=True)
class Point:
    """What one way to publish reveals, and its errors."""

    kind: str
    setting: str
    """`kind`, `setting`: mode or baseline, and its parameter in words."""
    belief: dict[int, float]
    """Of the strongest tracker in the nodes near the true place, by minutes after the known
    position; at least that without any publication."""
    none: dict[int, float]
    """The same without a publication."""
    published: float
    """Devices that are read, as a share of those that are there, all minutes together, at most
    1."""
    linked: float | None
    """Share of devices whose name is found by four known positions; None: there are no names."""
    density: dict[int, float]
    query: dict[int, float]
    """`density`, `query`: errors by rows of the grid, as in `UtilityFigures`."""


class _Scene(NamedTuple):
    """What all publications have in common."""

    network: RoadNetwork
    traffic: Traffic
    divisions: tuple[NodeDivision, ...]
    truth: tuple[PlaceReading, ...]
    tracker: Tracker
    known: Known
    seed: int

    def point(
        self,
        kind: str,
        setting: str,
        readings: Sequence[PlaceReading],
        belief: dict[int, float],
        none: dict[int, float] | None = None,
        *,
        link: float | None,
    ) -> Point:
        read = [
            figures(kind, division, truth, each, seed=self.seed)
            for division, truth, each in zip(self.divisions, self.truth, readings, strict=True)
        ]
        return Point(
            kind,
            setting,
            belief,
            self.tracker.none if none is None else none,
            min(float(readings[-1].n_at.sum() / self.truth[-1].n_at.sum()), 1.0),
            link,
            {each.side: each.density for each in read},
            {each.side: each.query for each in read if each.query is not None},
        )


def run_frontier(
    trace: Trace,
    network: RoadNetwork,
    *,
    tick_s: float = 1.0,
    seed: int = 1,
    own: Mapping[str, Settings] = MappingProxyType({}),
    kept: KeptSteps | None = None,
    progress: Callable[[float, str], None] = lambda _done, _what: None,
    partial_results: Callable[[list[Point]], None] = lambda _points: None,
) -> list[Point]:
    """Publish a trace in every way; attack and measure each.

    Parameters
    ----------
    trace, network
        Longer than five minutes; the network needs coordinates.
    tick_s
        Length of a tick of the gateway.
    seed
        Equal arguments and seed give equal points.
    own
        Further settings of a gateway to compare, by a name; their `region.cloak` may be a method
        of the user's.
    kept
        Points of an earlier run; None: there was none.
    progress
        Called with the share that is done, and with what comes next.
    partial_results
        Called with the points so far after each.

    Raises
    ------
    InputError
        If the release is shorter than two minutes, or the network has no coordinates.
    """
    choices = [
        *(("session", f"{p}", _settings("session", place_devices=p)) for p in SESSIONS),
        ("snapshot", "", _settings("snapshot")),
        ("adka", "", _settings("adka")),
        *((OWN, name, settings) for name, settings in own.items()),
    ]
    kept = KeptSteps(None, {}) if kept is None else kept

    usual = _settings("session", place_devices=SESSIONS[1])

    def release(settings: Settings) -> tuple[Case, Released]:
        return released(trace, network, settings, tick_s=tick_s, seed=seed)

    @cache
    def common() -> tuple[_Scene, Case, Released]:
        case, heard = release(usual)
        return _scene(case, seed), case, heard

    def point(kind: str, name: str, settings: Settings) -> Point:
        scene, *_ = common()
        case, heard = common()[1:] if settings == usual else release(settings)
        return _release_point(scene, case, heard, kind, name, tick_s=tick_s)

    n_all = len(choices) + 2 + len(LAPLACE_AT_M) + len(THRESHOLDS) + len(CENTRAL_EPSILONS)
    n_all += len(SCHEMES)
    points: list[Point] = []
    for kind, name, settings in choices:
        progress(len(points) / n_all, f"{kind} {name}".strip())
        step = f"{kind} {name} {settings.model_dump_json()}"
        points.append(kept.result(Point, step, partial(point, kind, name, settings)))
        partial_results(points)

    def baselines() -> list[Point]:
        found: list[Point] = []
        for each in _baselines(*common()[:2]):
            found.append(each)
            progress((len(points) + len(found)) / n_all, each.kind)
        return found

    def of_scheme(number: int, scheme: BlurScheme) -> list[Point]:
        return list(_scheme_points(common()[0], scheme, number))

    points += kept.result(list[Point], "baselines", baselines)
    partial_results(points)
    for number, scheme in enumerate(SCHEMES):
        progress(len(points) / n_all, scheme.name)
        step = f"{PUBLIC} {scheme.name}"
        points += kept.result(list[Point], step, partial(of_scheme, number, scheme))
        partial_results(points)
    return points


def _settings(mode: str, **region: int) -> Settings:
    return Settings.model_validate({"region": {"mode": mode, **region}})


def _scene(case: Case, seed: int) -> _Scene:
    times = counting_times(case.observed.time)
    ttl_s = Settings().presence.ttl_s
    traffic = true_traffic(case.reports, case.network, times, present_s=ttl_s)
    divisions = tuple(grid(case.network, side) for side in SIDES)
    return _Scene(
        network=case.network,
        traffic=traffic,
        divisions=divisions,
        truth=tuple(read_devices(traffic, division) for division in divisions),
        tracker=Tracker(case, times, seed=seed),
        known=known_positions(traffic, seed=seed),
        seed=seed,
    )


def _release_point(
    scene: _Scene, case: Case, release: Released, kind: str, name: str, *, tick_s: float
) -> Point:
    times, until = scene.traffic.times, release.until + GRACE_TICKS * tick_s
    n_nodes = scene.network.n_nodes
    reader = RegionReader(
        case.observed, until=until, times=times, n_nodes=n_nodes, piece_of=case.piece_of
    )
    found = beliefs(
        HeardRelease(case.observed, case.class_of, release.until),
        case.truth,
        case.network,
        case.piece_of,
        interval_s=case.reports.interval_s,
        adversaries=("none", *WITH_RELEASE),
        further=weak_readings(case),
        seed=scene.seed,
    )

    def believed(names: Sequence[str]) -> dict[int, float]:
        return {
            minute: max(float(found.at(name, minute).mean()) for name in names)
            for minute in found.minutes
            if len(found.moves)
        }

    return scene.point(
        kind,
        name,
        [reader.read(division) for division in scene.divisions],
        believed(tuple(found.near)),
        believed(("none",)),
        link=link_regions(
            case.observed, case.device_of, scene.known, times, until, n_nodes=n_nodes
        ),
    )


def _baselines(scene: _Scene, case: Case) -> Iterator[Point]:
    tracker, traffic, network = scene.tracker, scene.traffic, scene.network
    rng = np.random.default_rng(scene.seed)
    devices = np.arange(traffic.place.shape[1])
    exact = PlanarLaplace(traffic, network, scale_m=LEAST_NOISE_M, rng=rng)
    yield scene.point(
        "raw",
        "",
        scene.truth,
        tracker.with_noise(exact, traffic.times),
        link=link_noisy(exact, scene.known, devices),
    )
    counts = SafeCounts(case.reports, network, traffic.times)
    yield scene.point(
        "safe counts",
        "",
        [counts.read(division) for division in scene.divisions],
        tracker.with_counts(traffic.times, list(counted_runs(counts))),
        link=None,
    )
    for metres in LAPLACE_AT_M:
        noise = PlanarLaplace(traffic, network, scale_m=metres / LAPLACE_EPSILON, rng=rng)
        yield scene.point(
            "planar Laplace",
            f"{metres} m",
            noise.deconvolved(scene.divisions),
            tracker.with_noise(noise, traffic.times),
            link=link_noisy(noise, scene.known, devices),
        )
    for least in THRESHOLDS:
        readings = [read_devices(traffic, each, least=least) for each in scene.divisions]
        yield _counted(scene, "threshold", f"{least}", readings)
    for epsilon in CENTRAL_EPSILONS:
        noisy = (
            (central_noise(traffic, each, epsilon=epsilon, rng=rng), each)
            for each in scene.divisions
        )
        readings = [read_shrunk(*each, division) for each, division in noisy]
        yield _counted(scene, "central DP", f"{epsilon}", readings)


def _scheme_points(scene: _Scene, scheme: BlurScheme, number: int) -> Iterator[Point]:
    """Yield the point of a scheme; none of one that counts people by the hour."""
    rng = np.random.default_rng([scene.seed, number])
    found = published(scheme, scene.traffic, scene.network, rng)
    if found is None:
        return
    yield scene.point(
        PUBLIC,
        scheme.name,
        found.read(scene.divisions),
        _followed(scene, found),
        link=None if found.owner is None else _found_names(scene, found, found.owner),
    )


def _followed(scene: _Scene, found: SchemePlaces) -> dict[int, float]:
    """Return the belief of the stronger of two trackers; the second one reckons with shifts."""
    times = scene.traffic.times
    belief = scene.tracker.with_noise(found.places, times)
    if not found.is_steady:
        return belief
    shifts = scene.tracker.with_shifts(found.places, times, change_m=found.change_m)
    return {minute: max(each, shifts[minute]) for minute, each in belief.items()}


def _found_names(scene: _Scene, found: SchemePlaces, owner: IntArray) -> float:
    link = link_noisy(found.places, scene.known, owner)
    if not found.is_steady:
        return link
    return max(link, link_noisy(found.places, scene.known, owner, change_m=found.change_m))


def _counted(scene: _Scene, kind: str, setting: str, readings: Sequence[PlaceReading]) -> Point:
    """Return the point of a publication of counts; the tracker reads those of the finest grid."""
    cell_of = grid_cells(scene.network, scene.divisions[-1].side)
    order = np.argsort(cell_of, kind="stable")
    cells, first = np.unique(cell_of[order], return_index=True)
    nodes = dict(zip(cells.tolist(), np.split(order, first[1:]), strict=True))
    present = (scene.traffic.place >= 0).sum(axis=1)
    counts = [
        [
            # Noise can make more devices than there are.
            (nodes[cell], float(row[cell]) * min(1.0, n / row.sum()))
            for cell in np.flatnonzero(row > 0).tolist()
            if cell in nodes
        ]
        for row, n in zip(readings[-1].n_at, present.tolist(), strict=True)
    ]
    belief = scene.tracker.with_counts(scene.traffic.times, counts)
    return scene.point(kind, setting, readings, belief, link=None)


def counted_runs(counts: SafeCounts) -> Iterator[Counts]:
    """Yield the runs of cells of each message, as the tracker reads them."""
    for message in counts.messages:
        yield [
            (
                np.flatnonzero(
                    (counts.cell_of_node >= each.first) & (counts.cell_of_node <= each.last)
                ),
                each.devices + (message.k - 1) / 2,
            )
            for each in (message.counts if message else ())
            if message
        ]
