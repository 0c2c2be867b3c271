"""Measurements of a positions flow: durations, regions, densities, and the privacy achieved."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.density import ABSENT, DensityMap
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.release import Release
from anonymizer.pipeline.histograms import BatchHistogram

_GOLDEN = (5**0.5 - 1) / 2
_MOST_SAMPLES = 32
"""Of ages of information in a tick."""
_LOOKS_EVERY_S = 5.0
"""Between two looks at the bands of density."""
TICK, GROUP = "tick", "group"
"""What a published position waited for: the next tick alone, or the beat of its group."""
N_PARTS = 16
"""Compact parts of a network whose densities are counted."""
STAGES = ("decode", "locate", "cloak", "encode", "publish")

_LATENCY_EDGES_S = tuple(1e-4 * 10 ** (i / 8) for i in range(49))  # 0.1 ms to 100 s
_AGE_EDGES_S = (
    *(0.1, 0.2, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120),
    *(180, 240, 300, 450, 600),
)
_METRE_EDGES = tuple(50.0 * 2 ** (i / 2) for i in range(21))  # 50 m to 51 km
_SIZE_EDGES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 50, 75, 100, 200, 500, 1000)
_K_EDGES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100, 200, 500, 1000)


def _histogram_of_seconds() -> BatchHistogram:
    return BatchHistogram(_LATENCY_EDGES_S, interpolate=True)


def histogram_of_ages() -> BatchHistogram:
    """Return an empty histogram of ages of information."""
    return BatchHistogram(_AGE_EDGES_S, interpolate=True)


@dataclass(slots=True)
class FlowStats:
    """Measurements of the flow, in addition to its accounts."""

    stage_s: dict[str, BatchHistogram] = field(
        default_factory=lambda: {stage: _histogram_of_seconds() for stage in STAGES}
    )
    latency_s: dict[str, BatchHistogram] = field(
        default_factory=lambda: {each: _histogram_of_seconds() for each in (TICK, GROUP)}
    )
    """Arrival to the broker's acknowledgement (QoS 1) or to its socket (QoS 0) of every published
    position, by what it waited for."""
    age_s: BatchHistogram = field(default_factory=histogram_of_ages)
    """See `InformationAges`."""
    region_nodes: BatchHistogram = field(default_factory=lambda: BatchHistogram(_SIZE_EDGES))
    k_asked: BatchHistogram = field(default_factory=lambda: BatchHistogram(_K_EDGES))
    k_reached: BatchHistogram = field(default_factory=lambda: BatchHistogram(_K_EDGES))
    region_metres: BatchHistogram = field(
        default_factory=lambda: BatchHistogram(_METRE_EDGES, interpolate=True)
    )
    n_messages_out: int = 0
    n_ticks: int = 0
    n_late_ticks: int = 0
    """Ticks that began so late that messages had to yield to newer ones before."""
    last_tick_s: float = -np.inf
    _last_sizes: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

    def time(self, times: Sequence[float]) -> None:
        """Take in the monotonic times at which the stages of a tick began and ended."""
        self.last_tick_s = times[-1]
        for stage, (start, end) in zip(STAGES, pairwise(times), strict=False):
            self.stage_s[stage].observe(end - start)

    @property
    def k_reached_last(self) -> tuple[float, float, float]:
        """Minimum, 1st percentile and median over the groups of the last tick that published."""
        sizes = self._last_sizes
        if not len(sizes):
            return (np.nan, np.nan, np.nan)
        least, first, median = np.percentile(sizes, (0.0, 1.0, 50.0)).tolist()
        return (least, first, median)

    def measure(self, release: Release, set_size: IntArray, network: RoadNetwork) -> None:
        """Take in a release, and the size of each group's anonymity set."""
        if release.n_groups:
            self.region_nodes.observe(np.diff(release.first_node_of))
            self.region_metres.observe(_metres_across(release, network))
            self.k_asked.observe(release.k)
            self.k_reached.observe(set_size)
            self._last_sizes = set_size


@dataclass(slots=True, eq=False)
class _Watched:
    """A followed pseudonym, and the devices that it can still belong to."""

    version: int
    k: int
    candidates: BoolArray


class LightAudit:
    """The intersection attack on the pseudonyms of a few devices, up to the present moment.

    The adversary knows where all devices are and follows one pseudonym: which devices were inside
    every region published under it so far? The smaller that set compared with k, the less the
    pseudonym hides.

    Parameters
    ----------
    slots
        The devices whose pseudonyms are followed.

    Notes
    -----
    A tick costs O(slots) for each followed pseudonym that publishes. A new device in a reused
    slot stays a candidate until it is outside a region, so the figures are too high by at most
    the number of such devices.
    """

    def __init__(self, slots: IntArray) -> None:
        self._is_followed = np.zeros(int(slots.max(initial=-1)) + 1, bool)
        self._is_followed[slots] = True
        self._watched: dict[int, _Watched] = {}

    def see(self, release: Release, place_of: Int32Array, *, n_nodes: int) -> None:
        """Process a release.

        `place_of`: node at which each slot is counted, negative for none.
        """
        rows = np.flatnonzero(release.member < len(self._is_followed))
        rows = rows[self._is_followed[release.member[rows]]]
        groups = np.searchsorted(release.first_member_of, rows, "right") - 1
        for i, g in zip(rows.tolist(), groups.tolist(), strict=True):
            slot, version = int(release.member[i]), int(release.version[i])
            inside = np.zeros(n_nodes + 1, bool)  # the last entry stands for no node
            inside[release.node[release.first_node_of[g] : release.first_node_of[g + 1]]] = True
            candidates = inside[np.where(place_of < 0, n_nodes, place_of)]
            known = self._watched.get(slot)
            if known is not None and known.version == version:
                before = known.candidates
                candidates[: len(before)] &= before
                candidates[len(before) :] = False
                k = max(known.k, int(release.k[g]))
            else:
                k = int(release.k[g])
            self._watched[slot] = _Watched(version, k, candidates)

    def hidden_to_k(self) -> FloatArray:
        """Return the number of candidates left for each followed pseudonym, divided by its k."""
        watched = self._watched.values()
        return np.array([each.candidates.sum() / each.k for each in watched], np.float64)


def _metres_across(release: Release, network: RoadNetwork) -> FloatArray:
    """Return the diagonal of the box around each region, shape (groups,)."""
    starts = release.first_node_of[:-1]
    lat, lon = network.lat[release.node], network.lon[release.node]
    return haversine_m(
        np.minimum.reduceat(lat, starts),
        np.minimum.reduceat(lon, starts),
        np.maximum.reduceat(lat, starts),
        np.maximum.reduceat(lon, starts),
    )


class PseudonymAges:
    """Ages of published pseudonyms, measured from the releases alone.

    Notes
    -----
    Independent of the code that renews pseudonyms. If a slot passes to another device with an
    equal version, the older birth is kept, so ages are never understated. O(members) per tick.
    """

    def __init__(self) -> None:
        self._version_of = np.zeros(0, np.int64)
        self._born_s = np.zeros(0, np.float64)
        self.oldest_s = 0.0
        """Age of the oldest pseudonym in the last release that held any."""

    def see(self, release: Release, *, now: float) -> None:
        """Take in a release at unix seconds `now`."""
        member = release.member
        if not len(member):
            return
        self._make_room(int(member.max()) + 1)
        fresh = (self._version_of[member] != release.version) | np.isnan(self._born_s[member])
        self._born_s[member[fresh]] = now
        self._version_of[member] = release.version
        self.oldest_s = now - float(self._born_s[member].min())

    def _make_room(self, n_slots: int) -> None:
        n_new = max(n_slots, 2 * len(self._born_s)) - len(self._born_s)
        if n_slots > len(self._born_s):
            self._version_of = np.append(self._version_of, np.zeros(n_new, np.int64))
            self._born_s = np.append(self._born_s, np.full(n_new, np.nan))


class InformationAges:
    """Age of information: how old the newest published region about each pseudonym is.

    A region covers the positions of its members when it is published. Afterwards these drive on,
    and what a subscriber knows becomes older, until the group publishes again.

    Parameters
    ----------
    groups_last
        Whether groups publish on a beat. A pseudonym then still counts for one more beat after its
        region has ceased to hold: a beat that comes late, or a pause between two groups, is age.

    Notes
    -----
    Computed from releases alone, so it tells what any subscriber can compute, and nothing about
    devices that are not published. One sample in each second, at a place in it that differs by the
    golden ratio from that in the second before: ticks and beats are whole fractions or multiples of
    seconds, and samples in step with them would all be taken just after a release, or just before.
    O(pseudonyms) a sample, of which a tick of many seconds takes a few.
    """

    def __init__(self, *, groups_last: bool) -> None:
        self._groups_last = groups_last
        self._said_s = np.full(0, np.nan)
        self._counts_until_s = np.full(0, -np.inf)
        self._since_s: float | None = None

    def see(self, release: Release, until_s: FloatArray, *, event_s: float, now: float) -> None:
        """Take in a release.

        `until_s`: until when each region holds by `event_s`, shape (groups,); both and `now` in
        unix seconds.
        """
        member = release.member
        if not len(member):
            return
        more = int(member.max()) + 1 - len(self._said_s)
        if more > 0:
            more = max(more, len(self._said_s))
            self._said_s = np.append(self._said_s, np.full(more, np.nan))
            self._counts_until_s = np.append(self._counts_until_s, np.full(more, -np.inf))
        late_s = until_s - event_s if self._groups_last else 0.0
        counts_until_s = until_s + late_s + (now - event_s)
        self._said_s[member] = event_s
        self._counts_until_s[member] = np.repeat(counts_until_s, np.diff(release.first_member_of))

    def until(self, now: float) -> FloatArray:
        """Return the ages of pseudonyms that count, sampled since the previous call until `now`.

        Call it before `see` takes in what is released at `now`.
        """
        since_s, self._since_s = self._since_s, now
        until_s = min(now, float(self._counts_until_s.max(initial=-np.inf)))
        if since_s is None or not since_s < until_s:
            return np.zeros(0)
        seconds = range(math.floor(since_s), math.floor(until_s) + 1)
        seconds = seconds[:: 1 + len(seconds) // _MOST_SAMPLES]
        moments = (second + second * _GOLDEN % 1.0 for second in seconds)
        ages = [
            moment - self._said_s[self._counts_until_s >= moment]
            for moment in moments
            if since_s < moment <= until_s
        ]
        return np.concatenate(ages) if ages else np.zeros(0)


class DensityBands(NamedTuple):
    """Where devices are dense and where they are sparse, for the operator.

    A band is a range of densities for which ADKA asks for one k; a part is one of a fixed number of
    compact pieces of the network, so there are equally many figures in every city. No coordinate is
    among them: part p holds the cells of safe counts from p / 16 to (p + 1) / 16 of all, of which
    the gateway publishes the boxes.
    """

    bands: tuple[str, ...]
    """Densities of each band, as `0-3`; the last has no end, as `10+`."""
    n_nodes: IntArray
    n_devices: IntArray
    """`n_nodes`, `n_devices`: junctions, and devices that count there, shape (parts, bands)."""


class DensityWatch:
    """Counts the bands of a density map, at most once in five seconds. O(nodes) each time."""

    def __init__(self, network: RoadNetwork) -> None:
        self._part = compact_parts(network, N_PARTS).astype(np.int64)
        self._looked_s = -np.inf
        self.bands: DensityBands | None = None
        """As of the last look; None before the first."""

    def look(self, density: DensityMap, rule: DensityRule, *, now: float) -> None:
        """Count, if the last look is not of the same five seconds."""
        if 0 <= now - self._looked_s < _LOOKS_EVERY_S:
            return
        self._looked_s = now
        steps = rule.steps
        starts = (0, *steps)
        names = [f"{a}-{b - 1}" for a, b in zip(starts, steps, strict=False)] + [f"{starts[-1]}+"]
        near = density.n_near[density.hops.junction_of]
        key = self._part * len(starts) + np.searchsorted(steps, near, side="right")
        at = density.counted_at[density.counted_at != ABSENT]
        inner = density.network.inner
        n_nodes, n_devices = (
            np.bincount(each, minlength=N_PARTS * len(starts)).reshape(N_PARTS, -1)
            for each in (key if inner is None else key[~inner], key[at])
        )
        self.bands = DensityBands(tuple(names), n_nodes, n_devices)
