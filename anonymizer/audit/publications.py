"""What an analyst reads in a release, and the truth.

Devices are counted every minute. A reading of a publication is a table of numbers of devices by
time and place, where places are the cells of a grid or the roads. It also has moves from place to
place and speeds, if the publication shows them.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.region_density import estimate_density, nodes_in, shares
from anonymizer.algorithms.releases.observed import Observed, tangent_plane
from anonymizer.algorithms.releases.pieces import PieceRegions, read_pieces
from anonymizer.algorithms.uncertain_counts import least_moves
from anonymizer.audit.case import Reports
from anonymizer.audit.mathematics.indistinguishability import indistinguishable_classes
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError

EVERY_S = 60.0
"""Time between two counts."""


class NodeDivision(NamedTuple):
    """Places that the nodes of a network are divided into.

    `name`: such as `18x18`, or `roads`; `side`: rows and columns of the grid, 0 for roads; `share`:
    of each node in each place, shape (nodes, places), rows add up to 1; `cell_of`: place of each
    node, None for roads.
    """

    name: str
    side: int
    share: csr_array
    cell_of: IntArray | None


class Traffic(NamedTuple):
    """The truth: where each device is at each time of counting.

    `times`: unix seconds, `EVERY_S` apart, shape (times,); `place`: node of each device, negative
    if it is not present, shape (times, devices); `speed_mps`: NaN for none, same shape.
    """

    times: FloatArray
    place: Int32Array
    speed_mps: FloatArray


class PlaceReading(NamedTuple):
    """What an analyst reads in a publication about the places of a division."""

    n_at: FloatArray
    """Devices by time and place, shape (times, places); for roads all times are added up, because
    few devices are on one road at a time, shape (1, roads)."""
    moves: FloatArray | None = None
    """Moves within a minute from cell to cell, shape (cells, cells), those that stay included; for
    roads those that arrive at each from another place, shape (1, roads). None: it shows none."""
    crossing: float | None = None
    """Share of the devices that are in another place a minute later; None likewise."""
    speed_mps: FloatArray | None = None
    """Mean speed at each place, NaN where it shows none, shape (places,); None if nowhere."""


def grid(network: RoadNetwork, side: int) -> NodeDivision:
    """Return the cells of a grid over the network; cell = row x columns + column."""
    cell_of = grid_cells(network, side)
    n = network.n_nodes
    share = csr_array((np.ones(n), (np.arange(n), cell_of)), shape=(n, side * side))
    return NodeDivision(f"{side}x{side}", side, share, cell_of)


def roads(network: RoadNetwork) -> NodeDivision:
    """Return the roads; a device at a node is on each of its roads in equal shares."""
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    head = network.neighbour_of.astype(np.int64)
    ends = np.stack([np.minimum(tail, head), np.maximum(tail, head)])
    road = np.unique(ends, axis=1, return_inverse=True)[1].ravel()
    degree = np.diff(network.first_arc_of)
    share = csr_array((1.0 / degree[tail], (tail, road)), shape=(network.n_nodes, network.n_roads))
    return NodeDivision("roads", 0, share, None)


def grid_cells(network: RoadNetwork, side: int) -> IntArray:
    """Return the cell of each node in a grid of `side` rows and columns over the network."""
    x_m, y_m = tangent_plane(network)

    def slot(at: FloatArray) -> IntArray:
        width = max(float(np.ptp(at)), 1.0) / side
        found: IntArray = np.minimum((at - at.min()) / width, side - 1).astype(np.int64)
        return found

    return slot(y_m) * side + slot(x_m)


def counting_times(ts: FloatArray, *, every_s: float = EVERY_S) -> FloatArray:
    """Return the ends of the whole intervals between the first of some moments and the last.

    `ts`: unix seconds, in any order, shape (n,). InputError if there are fewer than two.
    """
    if len(ts):
        first, last = np.ceil(ts.min() / every_s), np.floor(ts.max() / every_s)
        if last - first >= 2:
            return np.arange(first + 1, last + 1) * every_s
    raise InputError(f"counts: there are fewer than two whole intervals of {every_s:g} s")


def true_traffic(
    reports: Reports,
    network: RoadNetwork,
    times: FloatArray,
    *,
    present_s: float,
    speed_mps: FloatArray | None = None,
) -> Traffic:
    """Return where devices are at some times, and how fast.

    A device counts as present for `present_s` at its last position. `speed_mps`: what each report
    states, NaN for none, shape (reports,): a device has that of its newest one. None: the distance
    between its reports of the last minute on the network, straight from one to the next, divided by
    the time between them.
    """
    order = np.argsort(reports.ts, kind="stable")
    device, ts, node = reports.device[order], reports.ts[order], reports.node[order]
    n_devices = int(device.max(initial=-1)) + 1
    stated = np.full(len(ts), np.nan) if speed_mps is None else speed_mps[order]
    at = np.full(n_devices, -1, np.int32)
    since = np.full(n_devices, -np.inf)
    last_speed = np.full(n_devices, np.nan)
    place = np.empty((len(times), n_devices), np.int32)
    speed = _driven(Reports(device, ts, node), network, times, n_devices)
    done = 0
    ends = np.searchsorted(ts, times, side="right")
    for t, (time, end) in enumerate(zip(times.tolist(), ends.tolist(), strict=True)):
        new = device[done:end]
        at[new], since[new] = node[done:end], ts[done:end]  # of several, the last one stays
        last_speed[new] = stated[done:end]
        done = end
        place[t] = np.where(since >= time - present_s, at, -1)
        if speed_mps is not None:
            speed[t] = last_speed
    return Traffic(times, place, speed)


def _driven(
    reports: Reports, network: RoadNetwork, times: FloatArray, n_devices: int
) -> FloatArray:
    """Return the mean speed of each device between its reports of each minute."""
    order = np.lexsort((reports.ts, reports.device))
    device, ts, node = reports.device[order], reports.ts[order], reports.node[order]
    step = np.flatnonzero((np.diff(device) == 0) & (node[1:] >= 0) & (node[:-1] >= 0))
    start, end = node[step], node[step + 1]
    metres = haversine_m(network.lat[start], network.lon[start], network.lat[end], network.lon[end])
    minute = np.searchsorted(times, ts[step + 1])
    known = (minute < len(times)) & (ts[step + 1] > times[0] - EVERY_S)
    at = minute[known], device[step + 1][known]
    way, seconds = np.zeros((2, len(times), n_devices))
    np.add.at(way, at, metres[known])
    np.add.at(seconds, at, np.diff(ts)[step][known])
    return np.divide(way, seconds, out=np.full_like(way, np.nan), where=seconds > 0)


def read_devices(traffic: Traffic, division: NodeDivision, *, least: int = 0) -> PlaceReading:
    """Return what is read if each device has a name and its place is published.

    Numbers of devices below `least` are left out; if it is above 0, devices have no names, so moves
    are not shown.
    """
    n_at, total, n_with = _counted(traffic, division, least)
    speed = np.divide(total, n_with, out=np.full(len(total), np.nan), where=n_with > 0)
    if least:
        return PlaceReading(n_at, speed_mps=speed)
    return PlaceReading(n_at, *_moved(traffic.place, division), speed)


def _counted(
    traffic: Traffic, division: NodeDivision, least: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return devices by time and place; and by place, sums of speeds, and devices with one."""
    share, n_nodes = division.share, division.share.shape[0]
    n_at = np.zeros((len(traffic.place) if division.side else 1, share.shape[1]))
    total, n_with = np.zeros((2, share.shape[1]))
    for t, (place, speed) in enumerate(zip(traffic.place, traffic.speed_mps, strict=True)):
        there = place >= 0
        n = np.bincount(place[there], minlength=n_nodes) @ share
        shown = n >= least
        n_at[t if division.side else 0] += np.where(shown, n, 0.0)
        there &= ~np.isnan(speed)
        total += np.where(shown, np.bincount(place[there], speed[there], n_nodes) @ share, 0.0)
        n_with += np.where(shown, np.bincount(place[there], minlength=n_nodes) @ share, 0.0)
    return n_at, total, n_with


def _moved(places: Int32Array, division: NodeDivision) -> tuple[FloatArray, float]:
    n_nodes, n_places = division.share.shape
    cell_of = division.cell_of
    moves = np.zeros((n_places if cell_of is not None else 1, n_places))
    n_crossed, n_all = 0, 0
    for before, after in pairwise(places):
        both = (before >= 0) & (after >= 0)
        start, end = before[both], after[both]
        if cell_of is not None:
            np.add.at(moves, (cell_of[start], cell_of[end]), 1.0)
            n_crossed += int((cell_of[start] != cell_of[end]).sum())
        else:
            crossed = start != end
            moves[0] += np.bincount(end[crossed], minlength=n_nodes) @ division.share
            n_crossed += int(crossed.sum())
        n_all += len(start)
    return moves, n_crossed / max(n_all, 1)


class RegionReader:
    """Reads a release: how many devices are at each node of each region.

    `until`: unix seconds until which each record holds, if its pseudonym publishes no other, shape
    (records,); `piece_of`: public pieces that regions are made of, as in `Case`. Devices are then
    spread by the density that all regions have in common (`region_density`), else evenly over the
    nodes. `speed_mps`: published speed of each record, NaN for none.
    """

    def __init__(
        self,
        observed: Observed,
        *,
        until: FloatArray,
        times: FloatArray,
        n_nodes: int,
        piece_of: IntArray | None,
        speed_mps: FloatArray | None = None,
    ) -> None:
        self._records = last_records(observed, times, until)
        self._region_of = observed.region_of
        self._speed_mps = speed_mps
        self._n_of = np.stack(
            [
                np.bincount(observed.region_of[newest[newest >= 0]], minlength=observed.n_regions)
                for newest in self._records
            ]
        ).astype(np.float64)
        regions = read_pieces(observed, indistinguishable_classes(observed), piece_of)
        self._share = self._shares(regions, n_nodes, piece_of is not None)

    def _shares(self, regions: PieceRegions, n_nodes: int, has_pieces: bool) -> csr_array:  # noqa: FBT001
        """Return the share of each region's devices at each node, shape (regions, nodes)."""
        weight, seen = self._n_of.sum(axis=0), (self._n_of > 0).sum(axis=0)
        n_devices = np.maximum(weight / np.maximum(seen, 1), 1.0)
        size = nodes_in(regions)
        if has_pieces:
            density = estimate_density(regions, n_devices, weight, n_nodes=n_nodes)
            share = shares(regions, n_devices, density)
        else:
            share = np.repeat(1.0 / size, size)
        region = np.repeat(np.arange(len(size)), size)
        return csr_array((share, (region, regions.node)), shape=(len(size), n_nodes))

    def read(self, division: NodeDivision) -> PlaceReading:
        """Return what the release says about the places of a division.

        A pseudonym whose region changes moves no more than it must: a device that may have stayed
        is taken to have stayed. Otherwise large regions would seem to be full of movement.
        """
        at_places = self._share @ division.share
        n_of = self._n_of if division.side else self._n_of.sum(axis=0, keepdims=True)
        start, end, n = self._pairs()
        if division.side:
            moves, crossing = _cell_moves(at_places, start, end, n)
        else:
            moves, crossing = self._arrivals(division, start, end, n)
        return PlaceReading(n_of @ at_places, moves, crossing, self._speeds(at_places))

    def _pairs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return pairs of regions, one a minute after the other, and how many made each."""
        found = [np.zeros((2, 0), np.int64)]
        for before, after in pairwise(self._records):
            both = (before >= 0) & (after >= 0)
            found.append(np.stack([self._region_of[before[both]], self._region_of[after[both]]]))
        (start, end), n = np.unique(np.concatenate(found, axis=1), axis=1, return_counts=True)
        return start, end, n

    def _arrivals(
        self, division: NodeDivision, start: IntArray, end: IntArray, n: IntArray
    ) -> tuple[FloatArray, float]:
        p, q = self._share[start], self._share[end]
        came = n @ (q - p.minimum(q))
        return (came @ division.share)[None, :], float(came.sum()) / max(int(n.sum()), 1)

    def _speeds(self, at_places: csr_array) -> FloatArray | None:
        if self._speed_mps is None:
            return None
        total, weight = np.zeros((2, at_places.shape[1]))
        for newest in self._records:
            record = newest[newest >= 0]
            record = record[~np.isnan(self._speed_mps[record])]
            n_regions = at_places.shape[0]
            of = self._region_of[record]
            total += np.bincount(of, self._speed_mps[record], n_regions) @ at_places
            weight += np.bincount(of, minlength=n_regions) @ at_places
        return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)


def _cell_moves(
    table: csr_array, start: IntArray, end: IntArray, n: IntArray
) -> tuple[FloatArray, float]:
    n_cells = table.shape[1]
    moves = np.zeros((n_cells, n_cells))
    for first, last, pairs in zip(start.tolist(), end.tolist(), n.tolist(), strict=True):
        p, q = table[[first]].toarray()[0], table[[last]].toarray()[0]
        moves += pairs * least_moves(p, q)
    total = float(moves.sum())
    return moves, 1.0 - float(np.trace(moves)) / total if total else 0.0


def last_records(observed: Observed, times: FloatArray, until: FloatArray) -> list[IntArray]:
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
