"""Published counts over hours: devices by area, for any partition of a city.

Both forms of counts are read: safe counts, in multiples of k, and counts with differential privacy.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.positions.spanning_forest import parts_of
from anonymizer.client.cells import Cells
from anonymizer.client.median_duration import MedianDuration, fitted_median
from anonymizer.client.network import Network, read_network
from anonymizer.client.tables import Table
from anonymizer.client.time_parts import parts_of_time
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError

_SIGMAS = 2.118310
"""Standard deviations of Laplace noise in an interval of 95 %; of a sum, or of normal noise, fewer
are enough."""
_WHOLE = 0.5
"""What is added to them, as noise is in whole numbers."""


class _Run(msgspec.Struct, frozen=True):
    first: int
    last: int
    devices: int


class _Privacy(msgspec.Struct, frozen=True):
    noise_sd: float


class _Durations(msgspec.Struct, frozen=True):
    up_to_s: tuple[float, ...] = ()
    devices: tuple[int, ...] = ()


class _Message(msgspec.Struct, frozen=True):
    time: float
    interval_s: float
    network: str
    n_cells: int
    k: int = 1
    more: int | None = None
    counts: list[_Run] = []
    privacy: _Privacy | None = None
    devices: list[int] = []
    durations: _Durations = _Durations()
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
    noise_variance
        Of each noisy number.
    durations
        How long trips took.
    """

    end_s: float
    first_cell_of: IntArray
    n: FloatArray
    low: FloatArray
    high: FloatArray
    noise_variance: float = 0.0
    durations: _Durations = _Durations()


class Counts:
    """Published counts of some time; get them from `anonymizer.client.read_counts`.

    Raises
    ------
    InputError
        If they belong to another network, or their intervals have different lengths.

    Warns
    -----
    UserWarning
        If several messages tell differently of one interval.
    """

    def __init__(self, messages: Sequence[_Message], network: Network) -> None:
        first = messages[0]
        if {(each.interval_s, each.n_cells) for each in messages} != {
            (first.interval_s, first.n_cells)
        }:
            raise InputError("the counts have different intervals or cells; read them separately")
        if {each.network for each in messages} != {network.version}:
            raise InputError(
                f"the counts are not all about network {network.version}: take the one that the "
                "gateway publishes on `anonymizer/network/#`"
            )
        self.network, self.every_s = network, first.interval_s
        kept: dict[float, _Message] = {}
        others = [
            each
            for each in messages
            if each.suppressed is None and kept.setdefault(each.time, each) != each
        ]
        self.n_repeated = len(others)
        """Messages with other counts of an interval than the first one about it: left out."""
        self.n_suppressed = len({each.time for each in messages} - kept.keys())
        """Intervals of which the gateway published no counts."""
        if others:
            warnings.warn(
                f"counts: {len(others)} messages tell otherwise of an interval than the first about"
                " it, which is kept: the gateway's clock was put back, or two publish here",
                stacklevel=3,
            )
        self._intervals = [_interval(kept[at]) for at in sorted(kept)]
        self._n_cells = first.n_cells
        self._cell_of = counted_cells(network, first.n_cells)

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
            noise += n_noisy * each.noise_variance
        mean = sums / len(chosen)
        reach = _reach(noise) / len(chosen)
        return Table(
            {
                "cell": list(cells.name),
                "devices": mean[0],
                "low": np.maximum(mean[1] - reach, 0.0),
                "high": np.maximum(mean[2] + reach, 0.0),
            },
            list(cells.geometry),
        )

    def pattern(self, *, by: str = "hour", tz: str = "UTC") -> Table:
        """Return how many devices were out, by hour of the day, by weekday, by month, or by day.

        Parameters
        ----------
        by, tz
            See `parts_of_time`. An interval is in the part in which it begins.

        Returns
        -------
        table
            `by`, `devices` (mean of an interval, all cells together), `low`, `high`, and
            `intervals`: how many are known.
        """
        start_s = np.array([each.end_s - self.every_s for each in self._intervals])
        names, part = parts_of_time(start_s, by, tz)
        n = np.bincount(part, minlength=len(names))
        found = [(each.n.sum(), each.low.sum(), each.high.sum()) for each in self._intervals]
        devices, low, high = (
            np.bincount(part, each, len(names)) / n for each in np.transpose(found)
        )
        variance = [self._n_cells * each.noise_variance for each in self._intervals]
        reach = _reach(np.bincount(part, variance, len(names)).astype(np.float64)) / n
        return Table(
            {
                by: names,
                "devices": devices,
                "low": np.maximum(low - reach, 0.0),
                "high": np.maximum(high + reach, 0.0),
                "intervals": n,
            }
        )

    def durations(self, *, start: float, end: float) -> Table:
        """Return how long the trips took that began and ended in an interval.

        Parameters
        ----------
        start, end
            See `devices`.

        Returns
        -------
        table
            `up_to_s` (the longest of a duration; infinite for the last), `devices`, `low` and
            `high`: in all these intervals together, a device in an interval by the median of its
            trips. Numbers may be below 0: do not set them to 0 before you add.
        """
        n, up_to_s, variance = self._timed(start, end)
        reach = _reach(np.full(len(n), variance))
        bounds = [*up_to_s, np.inf]
        return Table({"up_to_s": bounds, "devices": n, "low": n - reach, "high": n + reach})

    def median_duration(self, *, start: float, end: float) -> MedianDuration:
        """Return the median of these durations, by `fitted_median`, with its interval."""
        n, up_to_s, variance = self._timed(start, end)
        return fitted_median(n, up_to_s, noise_sd=variance**0.5)

    def _timed(self, start: float, end: float) -> tuple[FloatArray, tuple[float, ...], float]:
        """Return devices by duration, the bounds, and the variance of the noise of each number."""
        chosen = self._between(start, end)
        told = [each.durations for each in chosen]
        kinds = {(each.up_to_s, len(each.devices)) for each in told}
        if len(kinds) != 1 or not told[0].devices:
            raise InputError(
                "these counts do not all say alike how long trips take: the gateway needs"
                " counts.trip_durations; with a start and end between which it had it, they do"
            )
        n = np.array([each.devices for each in told], np.float64).sum(axis=0)
        return n, told[0].up_to_s, sum(each.noise_variance for each in chosen)

    def _between(self, start: float, end: float) -> list[_Interval]:
        chosen = [each for each in self._intervals if start < each.end_s <= end]
        if not chosen:
            raise InputError("there are no counts of intervals that end between start and end")
        return chosen

    def _shares(self, cells: Cells) -> csr_array:
        """Return the part of the roads of each counted cell that is in each of `cells`."""
        if cells.network.version != self.network.version:
            raise InputError("the cells belong to another network; use `counts.network`")
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


def counted_cells(network: Network, n: int) -> IntArray:
    """Return in which of the `n` cells of counts or trips each node is, shape (nodes,)."""
    lon = network.lon * np.cos(np.radians(network.lat.mean()))
    return parts_of(lon, network.lat, n).astype(np.int64)


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
        If the file cannot be read or has no counts, or they belong to another network.
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
            with suppress(msgspec.MsgspecError, RecursionError):
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
    low = np.array([run.devices for run in runs], np.float64)
    bounds = np.array([*first, message.n_cells], np.int64)
    rest = message.k - 1 if message.more is None else message.more
    return _Interval(
        end_s=message.time,
        first_cell_of=bounds,
        n=low + rest / 2,
        low=low,
        high=low + rest,
    )


def _noisy_interval(message: _Message) -> _Interval:
    n = np.array(message.devices, np.float64)
    cells = np.arange(message.n_cells + 1)
    variance = 0.0 if message.privacy is None else message.privacy.noise_sd**2
    return _Interval(message.time, cells, n, n, n, variance, message.durations)


def _reach(variance: FloatArray) -> FloatArray:
    """Return how far sums of noise reach, 95 % or more of them, given their variances."""
    return np.where(variance > 0, _SIGMAS * np.sqrt(variance) + _WHOLE, 0.0)


def _by_cell(each: _Interval) -> FloatArray:
    """Return the expected devices in each cell: evenly over the cells of a run.

    Noise below 0 stays: without it, means would be too large.
    """
    size = np.diff(each.first_cell_of)
    return np.repeat(each.n / np.maximum(size, 1), size)
