"""Published counts over hours: devices by area, and where those of an area are hours later.

Both forms of counts are read: safe counts, in multiples of k, and counts with differential privacy.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.positions.spanning_forest import parts_of
from anonymizer.client.cells import Cells
from anonymizer.client.network import Network, read_network
from anonymizer.client.tables import Table, middle
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError

_SIGMAS = 1.959964
"""Standard errors of an interval of 95 %."""


class _Flow(msgspec.Struct, frozen=True):
    first: int
    last: int
    devices: int


class _Run(_Flow, frozen=True):
    origins: list[_Flow] = []


class _Privacy(msgspec.Struct, frozen=True):
    noise_sd: float


class _Message(msgspec.Struct, frozen=True):
    time: float
    interval_s: float
    network: str
    n_cells: int
    k: int = 1
    counts: list[_Run] = []
    privacy: _Privacy | None = None
    devices: list[int] = []
    trips: list[list[int]] = []
    suppressed: str | None = None


class _Interval(NamedTuple):
    """What is known of an interval.

    Attributes
    ----------
    end_s
        Unix seconds.
    first_cell_of
        First cell of each run, and the number of cells, shape (runs + 1,).
    n, low, high
        Devices of each run: expected, and bounds of 95 % or more.
    first_cell_of_area
        First cell of each area between which moves are counted, and the number of cells.
    came_from, went_to, n_moved
        Areas where devices were at the end of the interval before, and are now, shape (flows,).
    """

    end_s: float
    first_cell_of: IntArray
    n: FloatArray
    low: FloatArray
    high: FloatArray
    first_cell_of_area: IntArray
    came_from: IntArray
    went_to: IntArray
    n_moved: FloatArray


class Counts:
    """Published counts of some time; get them from `anonymizer.client.read_counts`.

    Raises
    ------
    InputError
        If they are of another network, or of intervals of several lengths.
    """

    def __init__(self, messages: Sequence[_Message], network: Network) -> None:
        first = messages[0]
        if {(each.interval_s, each.n_cells) for each in messages} != {
            (first.interval_s, first.n_cells)
        }:
            raise InputError("the counts are of several intervals or cells; read them separately")
        if {each.network for each in messages} != {network.version}:
            raise InputError(
                f"the counts are not all about network {network.version}: take the one that the "
                "gateway publishes on `anonymizer/network/#`"
            )
        self.network, self.every_s = network, first.interval_s
        self.n_suppressed = sum(each.suppressed is not None for each in messages)
        """Intervals of which the gateway published no counts."""
        kept = {each.time: each for each in messages if each.suppressed is None}
        self._intervals = [_interval(kept[at]) for at in sorted(kept)]
        self._n_cells = first.n_cells
        self._noise = 0.0 if first.privacy is None else first.privacy.noise_sd
        self._has_moves = first.privacy is None or any(each.trips for each in messages)
        lon = network.lon * np.cos(np.radians(network.lat.mean()))
        self._cell_of = parts_of(lon, network.lat, first.n_cells).astype(np.int64)

    def __repr__(self) -> str:
        """Return the size."""
        return f"Counts({len(self._intervals):,} intervals of {self.every_s:g} s)"

    @property
    def ends(self) -> list[float]:
        """Ends of the intervals that have counts, in unix seconds."""
        return [each.end_s for each in self._intervals]

    def devices(self, cells: Cells, *, start: float, end: float) -> Table:
        """Return how many devices were in each cell, in the mean over some hours.

        Parameters
        ----------
        cells
            Any partition: `counts.network.grid(1000)`, `.h3(8)` or `.zones(...)`.
        start, end
            Unix seconds: the intervals that end after `start`, up to `end`.

        Returns
        -------
        table
            `cell`, `devices`, `low` and `high`. Where cells are counted together, devices are
            expected in all of them alike, and within a cell by length of road; the interval holds
            wherever they are.
        """
        chosen = self._between(start, end)
        sums = np.zeros((3, len(cells)))
        noise = np.zeros(len(cells))
        shares = self._shares(cells)
        for each in chosen:
            expected, low, high, n_noisy = self._in_cells(each, shares)
            sums += expected, low, high
            noise += n_noisy
        mean = sums / len(chosen)
        reach = _SIGMAS * self._noise * np.sqrt(noise) / len(chosen)
        return Table(
            {
                "cell": list(cells.name),
                "devices": mean[0],
                "low": np.maximum(mean[1] - reach, 0.0),
                "high": np.maximum(mean[2] + reach, 0.0),
            },
            list(cells.geometry),
        )

    def moves(self, cells: Cells, *, start: float, end: float) -> Table:
        """Return where the devices that were in each cell at `start` are at `end`.

        Counts say where devices were at the end of the interval before. Over several intervals
        these moves are chained: where a device goes is expected to depend on where it is, and not
        on where it was. Devices whose moves are not published are not guessed.

        Parameters
        ----------
        start, end
            Unix seconds; the ends of intervals nearest to them are taken.

        Returns
        -------
        table
            `origin`, `destination`, `devices`, `low` and `high`. `devices` are those whose moves
            were published in each interval. A row of each origin has no destination: of so many
            devices nothing is known at the end; they left, or moved where too few did. The interval
            relies on none of this, and holds however devices moved, so it is wide. Geometries are
            lines between the middles of the cells.

        Raises
        ------
        InputError
            If moves are not counted: differential privacy counts them with `counts.trip_areas`.
        """
        if not self._has_moves:
            raise InputError("moves: the counts have no trips (counts.trip_areas of the gateway)")
        ends = np.array(self.ends)
        if not len(ends) or not start < end:
            raise InputError("moves: there are no counts, or end is not after start")
        a, b = (int(np.abs(ends - at).argmin()) for at in (start, end))
        if a == b or (np.diff(ends[a : b + 1]) > 1.5 * self.every_s).any():
            raise InputError("moves: intervals between start and end have no counts")
        shares = self._shares(cells)
        before, after = self._intervals[a], self._intervals[b]
        known: FloatArray = shares.T.multiply(_by_cell(before)[None, :]).toarray()[:-1]
        n_origin = known.sum(axis=1)
        for last, now in pairwise(self._intervals[a : b + 1]):
            known = _moved(known, _by_cell(last), now)
        found = (known @ shares)[:, :-1]
        rest = n_origin - known.sum(axis=1)
        low_a, high_a = self._bounds(before, shares)
        low_b, high_b = self._bounds(after, shares)
        # At most so many were somewhere at all.
        everybody = max(each.high.sum() for each in (before, after))
        everybody += _SIGMAS * self._noise * np.sqrt(self._n_cells)
        low = np.maximum(np.add.outer(low_a, low_b) - everybody, 0.0)
        high = np.minimum.outer(high_a, high_b)
        middles = [list(middle(each)) for each in cells.geometry]
        n = len(cells)
        return Table(
            {
                "origin": [name for name in cells.name for _ in range(n + 1)],
                "destination": [*cells.name, None] * n,
                "devices": np.column_stack([found, rest]).ravel(),
                "low": np.column_stack([np.minimum(low, high), np.zeros(n)]).ravel(),
                "high": np.column_stack([high, high_a]).ravel(),
            },
            [
                {"type": "LineString", "coordinates": [origin, destination]}
                for origin in middles
                for destination in [*middles, origin]
            ],
        )

    def _bounds(self, each: _Interval, shares: csr_array) -> tuple[FloatArray, FloatArray]:
        _, low, high, n_noisy = self._in_cells(each, shares)
        reach = _SIGMAS * self._noise * np.sqrt(n_noisy)
        return np.maximum(low - reach, 0.0), np.maximum(high + reach, 0.0)

    def _between(self, start: float, end: float) -> list[_Interval]:
        chosen = [each for each in self._intervals if start < each.end_s <= end]
        if not chosen:
            raise InputError("there are no counts of intervals that end between start and end")
        return chosen

    def _shares(self, cells: Cells) -> csr_array:
        """Return the part of the roads of each counted cell that is in each of `cells`."""
        if cells.network.version != self.network.version:
            raise InputError("the cells are of another network; take `counts.network`")
        weight = np.maximum(self.network.node_weights("roads"), 1e-9)
        place = np.where(cells.cell_of < 0, len(cells), cells.cell_of)
        shape = (self._n_cells, len(cells) + 1)
        found = csr_array((weight, (self._cell_of, place)), shape=shape)
        found.sum_duplicates()
        total = np.maximum(np.bincount(self._cell_of, weight, self._n_cells), 1e-9)
        return csr_array(found.multiply(1.0 / total[:, None]))

    def _in_cells(
        self, each: _Interval, shares: csr_array
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return expected number, bounds, and how many noisy numbers these add up, by cell."""
        expected: FloatArray = (_by_cell(each) @ shares)[:-1]
        size = np.diff(each.first_cell_of)
        of_run = np.repeat(np.arange(len(size)), size)
        run = csr_array((np.ones(len(of_run)), (of_run, np.arange(len(of_run)))))
        part = csr_array(run @ shares)
        touched = (part > 0).astype(np.float64)
        # A cell of the network without nodes is nowhere.
        whole = np.maximum(np.asarray(part.sum(axis=1)).ravel(), 1e-9)
        inside = (part.multiply(1.0 / whole[:, None]) > 1 - 1e-9).astype(np.float64)
        low, high = (each.low @ inside)[:-1], (each.high @ touched)[:-1]
        return expected, low, high, (size @ touched)[:-1]


def read_counts(
    path: str | PathLike[str], *, network: str | PathLike[str] | RoadNetwork | Network
) -> Counts:
    """Read recorded counts.

    Parameters
    ----------
    path
        Lines of JSON as on the topic of the counts, for example from `mosquitto_sub -t
        cloaked/counts`. Other messages are left out.
    network
        See `read_network`.

    Raises
    ------
    InputError
        If the file cannot be read or has no counts, or they are of another network.
    """
    path = Path(path)
    try:
        messages = list(_messages(path.read_bytes().splitlines()))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if not messages:
        raise InputError(f"{path}: has no counts")
    try:
        return Counts(messages, read_network(network))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _messages(lines: Sequence[bytes]) -> Iterator[_Message]:
    for line in lines:
        start = line.find(b"{")  # behind a topic, if `mosquitto_sub -v` printed it
        if b'"n_cells"' in line and start >= 0:
            with suppress(msgspec.MsgspecError):
                yield decoded(line[start:])


def decoded(payload: bytes) -> _Message:
    """Return a message about an interval.

    Raises
    ------
    MsgspecError
        If it is none.
    """
    return msgspec.json.decode(payload, type=_Message)


def _interval(message: _Message) -> _Interval:
    if message.privacy is not None:
        return _noisy_interval(message)
    # Too few for any figure are fewer than k.
    runs = message.counts or [_Run(0, message.n_cells - 1, 0)]
    first = [run.first for run in runs]
    run_at = {cell: run for run, cell in enumerate(first)}
    flows = [
        (run_at[origin.first], run, origin.devices + (message.k - 1) / 2)
        for run, each in enumerate(runs)
        for origin in each.origins
    ]
    low = np.array([run.devices for run in runs], np.float64)
    bounds = np.array([*first, message.n_cells], np.int64)
    came, went, n = np.array(flows, np.float64).reshape(-1, 3).T
    rest = message.k - 1
    return _Interval(
        end_s=message.time,
        first_cell_of=bounds,
        n=low + rest / 2,
        low=low,
        high=low + rest,
        first_cell_of_area=bounds,
        came_from=came.astype(np.int64),
        went_to=went.astype(np.int64),
        n_moved=n,
    )


def _noisy_interval(message: _Message) -> _Interval:
    n = np.array(message.devices, np.float64)
    trips = np.array(message.trips, np.float64).reshape((len(message.trips),) * 2)
    came, went = (each.ravel() for each in np.indices(trips.shape))
    return _Interval(
        end_s=message.time,
        first_cell_of=np.arange(message.n_cells + 1),
        n=n,
        low=n,
        high=n,
        first_cell_of_area=np.arange(0, message.n_cells + 1, message.n_cells // max(len(trips), 1)),
        came_from=came,
        went_to=went,
        n_moved=np.maximum(trips.ravel(), 0.0),
    )


def _by_cell(each: _Interval) -> FloatArray:
    """Return the expected devices in each cell: evenly over the cells of a run."""
    size = np.diff(each.first_cell_of)
    return np.repeat(np.maximum(each.n, 0.0) / np.maximum(size, 1), size)


def _moved(known: FloatArray, was: FloatArray, now: _Interval) -> FloatArray:
    """Return where the devices that are followed are an interval later, shape (origins, cells).

    Parameters
    ----------
    known
        Devices of each origin that are followed, by cell.
    was
        All devices by cell at the end of the interval before.
    """
    first = now.first_cell_of_area
    n_areas, size = len(first) - 1, np.diff(first)
    area_of = np.repeat(np.arange(n_areas), size)
    add = np.eye(n_areas)[area_of]
    flows = np.zeros((n_areas, n_areas))
    np.add.at(flows, (now.came_from, now.went_to), now.n_moved)
    # More than were there cannot have moved.
    share = flows / np.maximum(np.maximum(was @ add, flows.sum(axis=1)), 1e-9)[:, None]
    here = _by_cell(now)
    sums = (here @ add)[area_of]
    within = np.where(sums > 0, here / np.maximum(sums, 1e-9), 1.0 / size[area_of])
    moved: FloatArray = ((known @ add) @ share)[:, area_of] * within
    return moved
