"""Utility of a release beside that of other ways to publish the same traffic.

Every minute, devices are counted in the cells of a grid: the true ones at their last position, and
the published ones spread evenly over the nodes of their regions. The same measures are taken for
safe counts, raw positions, positions with noise (geo-indistinguishability), counts with a
threshold, and counts with central differential privacy.
"""

from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
from pydantic import BaseModel, ConfigDict
from scipy.sparse import csr_array

from anonymizer.algorithms.attacks.observed import Observed, tangent_plane
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.utility import (
    density_error,
    divergence,
    hotspot_gain,
    popularity_tau,
    query_error,
)
from anonymizer.app.audit.case import Reports
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.pipeline.positions.counting import CountingFlow, CountsMessage
from anonymizer.settings import CountSettings

SIDES = (6, 18)
"""Rows and columns of the grids."""
EVERY_S = 60.0
"""Time between two counts."""
N_QUERIES = 1000
LAPLACE_EPSILON, LAPLACE_M = np.log(4.0), 200.0
"""Planar Laplace noise: e to the epsilon is how many times as likely a report may be from a place
that is this many metres away."""
LEAST_IN_CELL = 10
"""Cells with fewer devices are left out by the threshold."""
CENTRAL_EPSILON = 1.0
"""Budget of a device for an hour of counts with central differential privacy."""
_HOUR_S = 3600.0
_COUNT_TICK_S = 1.0
_GRACE_TICKS = 2
"""A region holds for so many ticks beyond its time: the next one may be on its way."""


class UtilityFigures(BaseModel):
    """How close the counts made from one kind of publication are to the true ones.

    Attributes
    ----------
    what
        The release, or what it is compared with.
    side
        Rows and columns of the grid.
    density
        Jensen-Shannon divergence of the distributions over the cells, mean over time; 0 is best.
    query
        Mean relative error of the number of devices in random boxes; 0 is best.
    hotspots
        NDCG of the ten cells with the most devices; 1 is best.
    popularity
        Kendall's tau of the cells by their devices over all times; 1 is best.
    flow
        Jensen-Shannon divergence of the moves from cell to cell within a minute, all times
        together; None: it has no moves.
    crossing, crossing_true
        Share of devices that are in another cell a minute later, as published and true.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str
    side: int
    density: float
    query: float
    hotspots: float
    popularity: float
    flow: float | None
    crossing: float | None
    crossing_true: float


class _Seen(NamedTuple):
    """Devices as some publication shows them, at the times of counting.

    Attributes
    ----------
    n_at
        Number of devices by time and cell, shape (times, cells).
    moves
        Number of moves from cell to cell, shape (cells, cells); None: it shows none.
    """

    n_at: FloatArray
    moves: FloatArray | None


def utility(
    observed: Observed,
    reports: Reports,
    network: RoadNetwork,
    *,
    present_s: float,
    until: FloatArray,
    tick_s: float,
    seed: int,
) -> tuple[UtilityFigures, ...]:
    """Return the utility of a release and of what it is compared with, for each grid.

    Parameters
    ----------
    observed
        The release.
    reports
        The true positions; those off the network are left out.
    network
        With coordinates.
    present_s
        How long a device counts as present at its last position.
    until
        Unix seconds until which each record holds, if its pseudonym publishes no other, shape
        (records,).
    tick_s
        Length of a tick: the next record may be so much later.
    seed
        Of the noise and the queries.

    Raises
    ------
    InputError
        If the network has no coordinates, or the release is shorter than two counts.
    """
    if not network.has_coordinates:
        raise InputError("utility: the network has no coordinates")
    times = _times(observed)
    device, place = _true_places(reports, times, present_s)
    published = _last_records(observed, times, until + _GRACE_TICKS * tick_s)
    counts, count_cell = _safe_counts(reports, network, times)
    found: list[UtilityFigures] = []
    for side in SIDES:
        cell_of = grid_cells(network, side)
        truth = _of_devices(device, cell_of, place, side)
        rng = np.random.default_rng(seed)
        seen = {
            "release": _of_release(observed, published, cell_of, side),
            "safe counts": _of_counts(counts, cell_of, count_cell, side),
            "raw": truth,
            "planar Laplace": _of_devices(device, cell_of, _noisy(network, place, rng), side),
            "threshold": _with_threshold(truth),
            "central DP": _with_central_noise(truth, rng),
        }
        found += [
            _figures(what, side, truth, each, np.random.default_rng(seed))
            for what, each in seen.items()
        ]
    return tuple(found)


def grid_cells(network: RoadNetwork, side: int) -> IntArray:
    """Return the cell of each node in a grid of `side` rows and columns over the network."""
    x_m, y_m = tangent_plane(network)

    def slot(at: FloatArray) -> IntArray:
        width = max(float(np.ptp(at)), 1.0) / side
        found: IntArray = np.minimum((at - at.min()) / width, side - 1).astype(np.int64)
        return found

    return slot(y_m) * side + slot(x_m)


def _times(observed: Observed) -> FloatArray:
    first, last = float(observed.time[0]), float(observed.time[-1])
    times = np.arange(np.ceil(first / EVERY_S) + 1, np.floor(last / EVERY_S) + 1) * EVERY_S
    if len(times) < 2:
        raise InputError("utility: the release is shorter than two minutes")
    return times


def _true_places(
    reports: Reports, times: FloatArray, present_s: float
) -> tuple[IntArray, list[Int32Array]]:
    """Return the number of devices, and the node of each at each time, negative for none."""
    order = np.argsort(reports.ts, kind="stable")
    device, ts, node = reports.device[order], reports.ts[order], reports.node[order]
    n_devices = int(device.max(initial=-1)) + 1
    at = np.full(n_devices, -1, np.int32)
    since = np.full(n_devices, -np.inf)
    places, done = [], 0
    for time, end in zip(times.tolist(), np.searchsorted(ts, times, side="right"), strict=True):
        at[device[done:end]] = node[done:end]  # of several, the last one stays
        since[device[done:end]] = ts[done:end]
        done = end
        places.append(np.where(since >= time - present_s, at, -1).astype(np.int32))
    return np.arange(n_devices), places


def _last_records(observed: Observed, times: FloatArray, until: FloatArray) -> list[IntArray]:
    """Return the record of each pseudonym that holds at each time, negative for none."""
    time_of = observed.time[observed.tick_of]
    order = np.argsort(time_of, kind="stable")
    pseudonym, ts = observed.pseudonym_of[order], time_of[order]
    newest = np.full(observed.n_pseudonyms, -1, np.int64)
    found, done = [], 0
    for time, end in zip(times.tolist(), np.searchsorted(ts, times, side="right"), strict=True):
        newest[pseudonym[done:end]] = order[done:end]
        done = end
        holds = (newest >= 0) & (until[newest] > time)
        found.append(np.where(holds, newest, -1))
    return found


def _of_devices(device: IntArray, cell_of: IntArray, places: list[Int32Array], side: int) -> _Seen:
    n_cells = side * side
    cells = [np.where(place >= 0, cell_of[place], -1) for place in places]
    n_at = np.stack([np.bincount(cell[cell >= 0], minlength=n_cells) for cell in cells])
    moves = np.zeros((n_cells, n_cells))
    for before, after in pairwise(cells):
        both = device[(before >= 0) & (after >= 0)]
        np.add.at(moves, (before[both], after[both]), 1.0)
    return _Seen(n_at.astype(np.float64), moves)


def _of_release(observed: Observed, records: list[IntArray], cell_of: IntArray, side: int) -> _Seen:
    """Spread each pseudonym evenly over the nodes of its region.

    A pseudonym whose region changes moves no more than it must: a device that may have stayed in a
    cell is taken to have stayed. Otherwise large regions would seem to be full of movement.
    """
    n_cells = side * side
    region = np.repeat(np.arange(observed.n_regions), observed.region_size)
    share = 1.0 / observed.region_size[region]
    table = csr_array(
        (share, (region, cell_of[observed.node])), shape=(observed.n_regions, n_cells)
    )
    n_at = np.zeros((len(records), n_cells))
    moves = np.zeros((n_cells, n_cells))
    before = np.zeros(0, np.int64)
    for t, newest in enumerate(records):
        known = newest >= 0
        of_region = np.bincount(observed.region_of[newest[known]], minlength=observed.n_regions)
        n_at[t] = of_region @ table
        if t:
            both = np.flatnonzero(known & (before >= 0))
            pairs = np.stack(
                [observed.region_of[before[both]], observed.region_of[newest[both]]], axis=1
            )
            for (start, end), n in zip(*np.unique(pairs, axis=0, return_counts=True), strict=True):
                p = table[[start]].toarray()[0]
                q = table[[end]].toarray()[0]
                stayed = np.minimum(p, q)
                moves[np.diag_indices(n_cells)] += n * stayed
                gone, came = p - stayed, q - stayed
                if came.sum() > 0:
                    moves += n * np.outer(gone, came) / came.sum()
        before = newest
    return _Seen(n_at, moves)


def _safe_counts(
    reports: Reports, network: RoadNetwork, times: FloatArray
) -> tuple[list[CountsMessage | None], Int32Array]:
    """Return what `[counts]` publishes by default at each time, and the cell of each node."""
    settings = CountSettings(enabled=True, every_s=EVERY_S)
    flow = CountingFlow(settings, network, version="")
    order = np.argsort(reports.ts, kind="stable")
    slot, ts = reports.device[order].astype(np.int32), reports.ts[order]
    node = reports.node[order]
    ends = np.arange(ts[0] // _COUNT_TICK_S, times[-1] // _COUNT_TICK_S + 1) * _COUNT_TICK_S
    published: dict[float, CountsMessage] = {}
    done = 0
    for now, end in zip(ends.tolist(), np.searchsorted(ts, ends).tolist(), strict=True):
        rows = slice(done, end)
        messages = flow.tick(slot[rows], ts[rows], node[rows], now=now, freed=np.zeros(0, np.int32))
        done = end
        for message in messages:
            body = msgspec.json.decode(message.payload, type=CountsMessage)
            published[body.time] = body
    return [published.get(time) for time in times.tolist()], compact_parts(network, settings.cells)


def _of_counts(
    counts: list[CountsMessage | None], cell_of: IntArray, count_cell: Int32Array, side: int
) -> _Seen:
    """Spread the devices of each run of cells evenly over its nodes."""
    n_at = np.zeros((len(counts), side * side))
    for t, message in enumerate(counts):
        if message is None:
            continue
        for each in message.counts:
            inside = (count_cell >= each.first) & (count_cell <= each.last)
            share = np.bincount(cell_of[inside], minlength=side * side) / inside.sum()
            # Numbers are rounded down to multiples of k.
            n_at[t] += share * (each.devices + (message.k - 1) / 2)
    return _Seen(n_at, None)


def _noisy(
    network: RoadNetwork, places: list[Int32Array], rng: np.random.Generator
) -> list[Int32Array]:
    """Return the node nearest to each position after planar Laplace noise."""
    from scipy.spatial import cKDTree  # noqa: PLC0415  only here

    point = np.stack(tangent_plane(network), axis=1)
    tree = cKDTree(point)
    found = []
    for place in places:
        there = np.flatnonzero(place >= 0)
        radius = rng.gamma(2.0, LAPLACE_M / LAPLACE_EPSILON, len(there))
        angle = rng.uniform(0.0, 2 * np.pi, len(there))
        shift = np.stack([np.cos(angle), np.sin(angle)], axis=1) * radius[:, None]
        noisy = np.full(len(place), -1, np.int32)
        noisy[there] = tree.query(point[place[there]] + shift)[1]
        found.append(noisy)
    return found


def _with_threshold(truth: _Seen) -> _Seen:
    kept = np.where(truth.n_at >= LEAST_IN_CELL, truth.n_at, 0.0)
    return _Seen(kept, None)


def _with_central_noise(truth: _Seen, rng: np.random.Generator) -> _Seen:
    """Add Laplace noise to every count: a device is in one cell at each time."""
    counts_per_hour = _HOUR_S / EVERY_S
    noise = rng.laplace(0.0, counts_per_hour / CENTRAL_EPSILON, truth.n_at.shape)
    return _Seen(np.maximum(truth.n_at + noise, 0.0), None)


def _figures(
    what: str, side: int, truth: _Seen, seen: _Seen, rng: np.random.Generator
) -> UtilityFigures:
    flow = crossing = None
    if seen.moves is not None and truth.moves is not None:
        flow = float(divergence(truth.moves.reshape(1, -1), seen.moves.reshape(1, -1))[0])
        crossing = _crossing(seen.moves)
    return UtilityFigures(
        what=what,
        side=side,
        density=density_error(truth.n_at, seen.n_at),
        query=query_error(truth.n_at, seen.n_at, sides=(side, side), n_queries=N_QUERIES, rng=rng),
        hotspots=hotspot_gain(truth.n_at, seen.n_at),
        popularity=popularity_tau(truth.n_at, seen.n_at),
        flow=flow,
        crossing=crossing,
        crossing_true=_crossing(truth.moves if truth.moves is not None else np.zeros((1, 1))),
    )


def _crossing(moves: FloatArray) -> float:
    total = float(moves.sum())
    return 1.0 - float(np.trace(moves)) / total if total else 0.0
