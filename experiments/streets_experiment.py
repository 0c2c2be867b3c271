"""Traffic by street played against other outputs: a second export, and positions and counts.

`python -m experiments.streets_experiment [TRACE NETWORK]` prints both tables for a recorded trace,
or for simulated commuters.

*Two exports*: who knows all passages but one looks for its road in what one export says, and in
what two with different k say together; and asks whether the export would be the same without it.

*Beside positions*: who knows of a pseudonym whose it is reads its region at the time of a passage,
and looks for the road with the traffic of the hour, and with the safe counts of the minute. The
control is the same reading of traffic to which the device adds nothing.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.positions.street_hours import Passages, PublishedStretches, stretches_of
from anonymizer.app.cloak import cloak_trace
from anonymizer.audit.publications import last_records, true_traffic
from anonymizer.audit.read_counts import runs_counted
from anonymizer.audit.stream_case import reports_of
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.trace import Trace
from anonymizer.files.release_lines import read_auditor_map, read_release
from anonymizer.networks.roads import roads_of
from anonymizer.outputs.streets.street_hours import (
    HourPassages,
    StreetFinder,
    hour_passages,
    streets_of,
)
from experiments.morning_experiment import HOUR_S, Morning, commuters, recorded

K = 10
N_TARGETS = 100
_AROUND = 64
"""Roads, in the public order, among which a passage is looked for."""
_TICK_S = 10.0
_EPS = 1e-9


class TwoExports(NamedTuple):
    """What is found in exports of one hour."""

    ks: tuple[int, ...]
    """Of the exports, all of which are read."""
    belief: float
    blind: float
    """`belief`, `blind`: in the true road of a passage, mean over the targets, and without any
    export."""
    noticed: float
    """Share of the passages without which an export would say something else."""


class Beside(NamedTuple):
    """Belief in the true road of a passage, mean over the targets, and of the worst tenth."""

    n: int
    region: float
    """From the region alone."""
    streets: float
    streets_control: float
    """`streets`, `streets_control`: with traffic by street, and with that of all other devices."""
    counts: float
    counts_control: float
    """`counts`, `counts_control`: with safe counts as well."""
    streets_tenth: float
    control_tenth: float


def two_exports(
    driven: HourPassages,
    ks: Sequence[tuple[int, ...]],
    *,
    n_targets: int = N_TARGETS,
    seed: int = 0,
) -> list[TwoExports]:
    """Attack one hour, the busiest, as it is exported with each of some sets of k."""
    hours, n_in = np.unique(driven.passages.interval, return_counts=True)
    passages = driven.passages.at(driven.passages.interval == hours[n_in.argmax()])
    n_roads = len(driven.is_road)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(passages.road))[:n_targets].tolist()
    found = []
    for each in ks:
        publish = [partial(stretches_of, n_roads=n_roads, k=k) for k in each]
        shown = [make(passages) for make in publish]
        beliefs, blind, noticed = [], [], []
        for row in rows:
            around = _candidates(driven, passages, row)
            fits = [
                all(
                    _says_the_same(said, make(_moved(passages, row, road)))
                    for said, make in zip(shown, publish, strict=True)
                )
                for road in around.tolist()
            ]
            beliefs.append(1 / sum(fits))
            blind.append(1 / len(around))
            left = passages.at(np.arange(len(passages.road)) != row)
            noticed.append(
                not all(
                    _says_the_same(said, make(left))
                    for said, make in zip(shown, publish, strict=True)
                )
            )
        found.append(
            TwoExports(each, *(float(np.mean(column)) for column in (beliefs, blind, noticed)))
        )
    return found


def _candidates(driven: HourPassages, passages: Passages, row: int) -> IntArray:
    """Return the roads around that of a passage, without others that its device passed."""
    road = int(passages.road[row])
    first = road - road % _AROUND
    around = np.flatnonzero(driven.is_road[first : first + _AROUND]) + first
    known = passages.road[passages.device == passages.device[row]]
    candidates: IntArray = around[~np.isin(around, known) | (around == road)]
    return candidates


def _moved(passages: Passages, row: int, road: int) -> Passages:
    moved = passages.road.copy()
    moved[row] = road
    order = np.lexsort((passages.device, moved))
    return passages._replace(road=moved).at(order)


def _says_the_same(shown: PublishedStretches, other: PublishedStretches) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(shown[:2], other[:2], strict=True))


class _Reader:
    """Reads regions together with traffic by street and safe counts."""

    def __init__(self, morning: Morning, *, seed: int) -> None:
        self.network, self.settings = morning.network, morning.settings
        self.driven = hour_passages(morning.trace, self.network, self.settings, every_s=HOUR_S)
        streets, roads = streets_of(self.network), roads_of(self.network)
        limit_m = self.settings.network.snap_limit_m
        trace = morning.trace
        finder = StreetFinder(self.network, streets, limit_m=limit_m)
        self.place = finder.find(trace.lat, trace.lon, None)
        ends = np.full((2, len(streets.road_at)), -1)
        there = streets.road_at >= 0
        ends[:, there] = np.stack([roads.u, roads.v])[:, streets.road_at[there]]
        self.ends = ends
        """Both nodes of the road at each place."""
        self._released(trace, seed)

    def _released(self, trace: Trace, seed: int) -> None:
        with TemporaryDirectory() as folder:
            out, named = Path(folder) / "PUB.jsonl", Path(folder) / "MAP.jsonl"
            cloak_trace(
                trace,
                self.network,
                self.settings,
                tick_s=_TICK_S,
                seed=seed,
                out=out,
                auditor_map=named,
            )
            released = read_release(out, self.network)
            self.device_of = read_auditor_map(
                named, pseudonym=released.pseudonym, device_id=trace.device_id
            )
        self.observed, self.until = released.observed, released.until

    def weights(self, shown: PublishedStretches) -> FloatArray:
        """Return the devices expected on the road at each place."""
        is_road = self.driven.is_road
        stretch = shown.stretch_of
        if not len(shown.n_devices):
            return np.ones(len(stretch))
        n = np.bincount(stretch[is_road], minlength=len(shown.n_devices))
        return (shown.n_devices / np.maximum(n, 1))[stretch] + _EPS

    def inside(self, nodes: Int32Array) -> IntArray:
        """Return the places of the roads that touch some nodes."""
        return np.flatnonzero(np.isin(self.ends, nodes).any(axis=0))


def beside(morning: Morning, *, n_targets: int = N_TARGETS, seed: int = 0) -> Beside:
    """Look for the roads of random passages in regions and in traffic of the same hour."""
    reader = _Reader(morning, seed=seed)
    trace, passages = morning.trace, reader.driven.passages
    k, n_roads = morning.settings.counts.k, len(reader.driven.is_road)
    rng = np.random.default_rng(seed)
    on = np.flatnonzero(reader.place >= 0)
    rows = np.sort(rng.choice(on, min(20 * n_targets, len(on)), replace=False))
    density = _counted(morning, trace.ts[rows])
    bounds, found = reader.observed.first_node_of, list[list[float]]()
    shown_of: dict[int, PublishedStretches] = {}
    cuts = {int(i): passages.interval == i for i in np.unique(passages.interval)}
    for i, records in enumerate(last_records(reader.observed, trace.ts[rows], reader.until)):
        row = int(rows[i])
        device, hour = int(trace.device_of[row]), int(trace.ts[row] // HOUR_S)
        own = np.flatnonzero((reader.device_of == device) & (records >= 0))
        if not len(own) or len(found) == n_targets:
            continue
        region = reader.observed.region_of[records[own[-1]]]
        nodes = reader.observed.node[bounds[region] : bounds[region + 1]]
        places, true = reader.inside(nodes), int(reader.place[row])
        if true not in places:
            continue
        if hour not in shown_of:
            shown_of[hour] = stretches_of(passages.at(cuts[hour]), n_roads, k)
        others = passages.at(cuts[hour] & (passages.device != device))
        at = places == true
        with_it = reader.weights(shown_of[hour])[places]
        without = reader.weights(stretches_of(others, n_roads, k))[places]
        counted = density[i][reader.ends[:, places]].mean(axis=0) + _EPS
        found.append(
            [
                float((each / each.sum())[at].sum())
                for each in (
                    np.ones(len(places)),
                    with_it,
                    without,
                    with_it * counted,
                    without * counted,
                )
            ]
        )
    beliefs = np.array(found)
    worst = np.sort(beliefs[:, 1:3], axis=0)[::-1][: max(len(beliefs) // 10, 1)].mean(axis=0)
    return Beside(len(beliefs), *beliefs.mean(axis=0).tolist(), *worst.tolist())


def _counted(morning: Morning, times: FloatArray) -> list[FloatArray]:
    """Return the devices that safe counts tell at each node, in the interval of each time."""
    network, settings = morning.network, morning.settings
    counts = settings.counts
    ends, of = np.unique(np.ceil(times / counts.every_s), return_inverse=True)
    traffic = true_traffic(
        reports_of(morning.trace, network, settings),
        network,
        ends * counts.every_s,
        present_s=counts.every_s,
    )
    cell_at, density = compact_parts(network, counts.cells), []
    for place in traffic.place:
        run_of, counted = runs_counted(np.where(place >= 0, cell_at[place], -1), counts)
        run_at = run_of[cell_at]
        density.append(counted[run_at] / np.bincount(run_at, minlength=len(counted))[run_at])
    return [density[i] for i in of.ravel().tolist()]


def main(arguments: Sequence[str]) -> None:
    """Print both tables."""
    morning = recorded(Path(arguments[0]), arguments[1]) if arguments else commuters()
    driven = hour_passages(morning.trace, morning.network, morning.settings, every_s=HOUR_S)
    for each in two_exports(driven, [(K,), (K, K + 1), (K, 2 * K), (K, K + 1, K + 2, K + 3)]):
        sys.stdout.write(f"{each}\n")
    sys.stdout.write(f"{beside(morning)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
