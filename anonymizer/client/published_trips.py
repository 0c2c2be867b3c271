"""Published trips: where they begin and end, by any partition of a city and any hours."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array

from anonymizer.algorithms.uncertain_counts import count_distribution, interval_of
from anonymizer.algorithms.uneven_density import USUAL, factors_of
from anonymizer.client.cells import Cells
from anonymizer.client.messages import ToldWindow
from anonymizer.client.network import Geometry, Network
from anonymizer.client.tables import Table, middle, times
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.errors import InputError

_SURE = 1e-9
_LEAST_SHARE = 0.01
"""At no time of a class no trip can have begun."""
Route = Sequence[tuple[int | str, int | str]]


class TripsInClasses(NamedTuple):
    """Classes of trips.

    Attributes
    ----------
    least, rest
        Trips of each class: so many, and up to `rest` more, shape (classes,).
    span_s
        Between which times they began, unix seconds, shape (classes, 2).
    window_s
        End of the window of each class, unix seconds, shape (classes,); of a table, nothing.
    lasts_s
        How long trips last in the mean.
    ends
        Probability that the origin, and the destination, is at each node, shape (classes, nodes).
    names
        Of the origin and of the destination of each class.
    routes
        Roads of each class, by the nodes at both ends.
    """

    least: IntArray
    rest: IntArray
    span_s: FloatArray
    window_s: FloatArray
    lasts_s: float
    ends: tuple[csr_array, csr_array]
    names: tuple[Sequence[str], Sequence[str]]
    routes: Sequence[Route]


class PublishedTrips:
    """Trips in classes; get them from `read_trips`, or from a subscription.

    **Of a table**, each trip begins in a box and within some minutes, and ends in a box, as at
    least k - 1 others do. A box is as small as its trips allow, so one is at each of its sides; the
    others are expected at all of its nodes alike. (Not where all boxes show more trips: where there
    are many, boxes are small.)

    **Of a gateway**, places are cells of the network, and a trip may be at any of their nodes. A
    device that makes several trips of a class counts once, and a number of devices is told in steps
    of k. Intervals hold however numbers were rounded, and whenever in its time a trip began.

    That traffic is uneven makes error bars wider, as for regions. Beginning, end and time of a trip
    are taken to be independent within its class. Not known are trips that were suppressed, cut by
    the recording, with an end in a privacy zone, or of devices that forbid it.

    Attributes
    ----------
    network
        Of the city.
    windows
        Ends of the windows of a gateway, in unix seconds; none for a table.
    """

    def __init__(
        self,
        classes: TripsInClasses,
        network: Network,
        *,
        windows: Sequence[ToldWindow] = (),
    ) -> None:
        self.network = network
        self.windows = [each.time for each in windows]
        self._window_s = windows[0].window_s if windows else 0.0
        self._classes, self._ends = classes, classes.ends
        self._n, self._span_s = classes.least + classes.rest / 2, classes.span_s
        # In a window without classes, fewer than k devices made trips.
        self._silent = {each.time: each.most_more for each in windows if not each.trips}

    def __len__(self) -> int:
        """Return the number of published trips; of a gateway, at least so many."""
        return int(self._classes.least.sum())

    def __repr__(self) -> str:
        """Return the size."""
        return f"PublishedTrips({len(self):,} in {len(self._n):,} classes)"

    @property
    def first(self) -> float:
        """When the first of them may have begun, in unix seconds."""
        if self.windows:
            return min(self.windows) - 2 * self._window_s
        return float(self._span_s[:, 0].min())

    @property
    def last(self) -> float:
        """When the last of them may have begun, in unix seconds."""
        return max(self.windows) if self.windows else float(self._span_s[:, 1].max())

    def table(self) -> Table:
        """Return the classes.

        Returns
        -------
        table
            `origin` and `destination` (cells of the gateway, or the box: south, north, west and
            east), `time` and `until` (between which the trips began), `trips` with `low`
            and `high`, and `roads`: those that at least k of the devices took, `u-v` in the
            direction of travel. Geometries are these roads, or a straight line if there are none.
        """
        network, classes = self.network, self._classes
        lines = _lines_of(network)
        places = [
            np.column_stack([share @ network.lon, share @ network.lat]).tolist()
            for share in self._ends
        ]
        return Table(
            {
                "origin": list(classes.names[0]),
                "destination": list(classes.names[1]),
                "time": times(self._span_s[:, 0]),
                "until": times(self._span_s[:, 1]),
                "trips": self._n,
                "low": classes.least,
                "high": classes.least + classes.rest,
                "roads": [[f"{u}-{v}" for u, v in route] for route in classes.routes],
            },
            [
                _drawn(route, lines) or {"type": "LineString", "coordinates": list(line)}
                for route, *line in zip(classes.routes, *places, strict=True)
            ],
        )

    def starts(self, cells: Cells, *, every_s: float = 3600.0, level: float = 0.95) -> Table:
        """Return how many trips begin in each cell in each hour.

        Returns
        -------
        table
            `time` (of the beginning of the hour), `cell`, `trips`, `low` and `high`. Of a gateway,
            the hours of which all windows are there.

        Raises
        ------
        InputError
            If there is no such hour.
        """
        origin = _Cells(self._ends[0], cells, self.network)
        first, last = (int(at // every_s) for at in (self.first, self.last))
        starts = np.arange(first, last + 1) * every_s
        if self.windows:
            whole = [not self._missing(at, at + every_s) for at in starts.tolist()]
            starts = starts[np.array(whole, np.bool_)]
        if not len(starts):
            raise InputError("starts: of no hour are all windows there in which its trips ended")
        found = []
        for at in starts.tolist():
            within = self._within(at, at + every_s)
            lost = origin.variance((within[1] * self._n)[:, None])[:, 0]
            more = self._untold(at, at + every_s)
            found += [
                self._estimate(within, p, v, level, more) for p, v in zip(origin, lost, strict=True)
            ]
        n, low, high = np.array(found).T
        return Table(
            {
                "time": times(np.repeat(starts, len(cells))),
                "cell": list(cells.name) * len(starts),
                "trips": n,
                "low": low.astype(np.int64),
                "high": high.astype(np.int64),
            },
            list(cells.geometry) * len(starts),
        )

    def matrix(self, cells: Cells, *, start: float, end: float, level: float = 0.95) -> Table:
        """Return how many trips that begin from `start` to `end` lead from cell to cell.

        Returns
        -------
        table
            `origin`, `destination`, `trips`, `low` and `high`, for each pair of cells. Those with
            an end outside of all cells are not in this table. Geometries are lines between the
            middles of the cells.

        Warns
        -----
        UserWarning
            If windows of a gateway are not there in which such trips may have ended.
        """
        if missing := self._missing(start, end):
            warnings.warn(
                f"matrix: {missing} windows are not there in which trips that began from start to "
                "end may have ended; those are in no number",
                stacklevel=2,
            )
        origin, destination = (_Cells(each, cells, self.network) for each in self._ends)
        within, more = self._within(start, end), self._untold(start, end)
        n = (self._n * within[1])[:, None]
        lost = origin.variance(n * destination.share) + destination.variance(n * origin.share).T
        found = [
            self._estimate(within, p * q, lost[a, b], level, more)
            for a, p in enumerate(origin)
            for b, q in enumerate(destination)
        ]
        a, b = (each.ravel().tolist() for each in np.indices(lost.shape))
        middles = [list(middle(each)) for each in cells.geometry]
        trips, low, high = np.array(found).T
        return Table(
            {
                "origin": [cells.name[i] for i in a],
                "destination": [cells.name[i] for i in b],
                "trips": trips,
                "low": low.astype(np.int64),
                "high": high.astype(np.int64),
            },
            [
                {"type": "LineString", "coordinates": [middles[i], middles[j]]}
                for i, j in zip(a, b, strict=True)
            ],
        )

    def _ending(self, start: float, end: float) -> list[float]:
        """Return the ends of the windows in which trips may have ended that began in a span."""
        every_s = self._window_s
        first = np.floor(start / every_s) + 1
        return [float(at) for at in np.arange(first * every_s, end + 2 * every_s - _SURE, every_s)]

    def _missing(self, start: float, end: float) -> int:
        """Return how many windows are not there in which trips of a span may have ended."""
        if not self.windows:
            return 0
        # The clock of the published times may be moved: what counts is that none is left out.
        known = np.array(self.windows)
        return sum(abs(known - at).min() > self._window_s / 2 for at in self._ending(start, end))

    def _untold(self, start: float, end: float) -> int:
        """Return how many devices may have made trips of a span in windows without classes."""
        return sum(
            n for at, n in self._silent.items() if at - 2 * self._window_s < end and at > start
        )

    def _within(self, start: float, end: float) -> FloatArray:
        """Return the probability that a trip of each class begins in a span of time, shape (3, n).

        The least that is possible, the expected, and the most. Of a table, the first and the last
        of a class begin when its time does and ends, the others in between: these are all one.
        """
        first, last = self._span_s.T
        shared = self._begun(np.minimum(last, end)) - self._begun(np.maximum(first, start))
        begun = self._begun(last) - self._begun(first)
        between = np.clip(shared / np.maximum(begun, 1e-9), 0.0, 1.0)
        if self.windows:
            whole, outside = (start <= first) & (last <= end), (last <= start) | (end <= first)
            return np.stack([whole, between, ~outside]).astype(np.float64)
        at_ends = [((at >= start) & (at < end)).astype(np.float64) for at in (first, last)]
        n = np.maximum(self._n, 2)
        found: FloatArray = np.where(
            last > first, ((n - 2) * between + at_ends[0] + at_ends[1]) / n, at_ends[0]
        )
        return np.stack([found] * 3)

    def _begun(self, at: FloatArray) -> FloatArray:
        """Return how many trips of each class had begun by a time, up to a factor and a sum.

        Of a gateway, they ended at all times of the window alike, and began `lasts_s` before.
        """
        if not self.windows:
            return at
        since = at - self._classes.window_s + self._classes.lasts_s
        begun: FloatArray = np.clip(since, -self._window_s, 0.0) + _LEAST_SHARE * since
        return begun

    def _estimate(
        self, within: FloatArray, place: FloatArray, lost: float, level: float, more: int
    ) -> tuple[float, float, float]:
        """Return the expected number of trips and its interval.

        Parameters
        ----------
        within, place
            Probability of a trip of each class to be in time (`_within`), and where it counts.
        lost
            Variance of the number by what is not known of the density.
        more
            Trips that may be anywhere.
        """
        there = np.flatnonzero(place * within[2])
        least, expected, most = np.minimum(place[there] * within[:, there], 1.0)
        n, fewest, rest = self._n[there], self._classes.least[there], self._classes.rest[there]
        if not len(n):
            return 0.0, 0.0, float(more)
        chance = float(n @ (expected * (1 - expected)))
        sd = float(np.sqrt(lost)) / chance if chance > _SURE else 0.0
        low, high = interval_of(*count_distribution(least, fewest, shared_sd=sd), level=level)
        if self.windows:
            found = count_distribution(most, fewest + rest, shared_sd=sd)
            high = interval_of(*found, level=level)[1] + more
        return float(n @ expected), low, high


class _Cells:
    """How likely one end of the trips of each class is in each cell; iterates over the cells.

    Attributes
    ----------
    share
        Shape (classes, cells).
    """

    def __init__(self, shares: csr_array, cells: Cells, network: Network) -> None:
        if cells.network.version != network.version:
            raise InputError("the cells belong to another network; use `trips.network`")
        of_nodes = cells.of_nodes[:, : len(cells)]
        self.share: FloatArray = (shares @ of_nodes).toarray()
        factors = factors_of(network.halves, np.ones(network.n_nodes))
        whole = csr_array(factors @ shares.T)
        # By how much a share changes if the first half of each area gets denser.
        self._changes = [
            csr_array(
                factors @ (diags_array(inside) @ shares.T)
                - whole @ diags_array(self.share[:, cell])
            )
            for cell, inside in enumerate(of_nodes.toarray().T)
        ]

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield the share of each cell, shape (classes,)."""
        return iter(self.share.T)

    def variance(self, n: FloatArray) -> FloatArray:
        """Return the variances of numbers of trips, given those of each class by another end.

        Parameters
        ----------
        n
            Shape (classes, others).

        Returns
        -------
        variance
            Shape (cells, others); see `uneven_density.count_variance`. Trips of a class are denser
            here than there for reasons that all trips share, and for reasons of their own.
        """
        shared = [((change @ n) ** 2).sum(axis=0) for change in self._changes]
        own = [np.asarray((change**2).sum(axis=0)).ravel() @ n**2 for change in self._changes]
        return USUAL * (np.array(shared) + np.array(own))


def _lines_of(network: Network) -> dict[tuple[Any, Any], Any]:
    """Return the line of each road by the nodes at both ends, in both directions."""
    u, v = (network.node_id[each].tolist() for each in (network.u, network.v))
    backwards = [line[::-1] for line in network.line]
    return dict(zip(zip(v, u, strict=True), backwards, strict=True)) | dict(
        zip(zip(u, v, strict=True), network.line, strict=True)
    )


def _drawn(route: Route, lines: dict[tuple[Any, Any], Any]) -> Geometry | None:
    """Return the lines of the roads of a route; None if it has none."""
    if not route:
        return None
    try:
        return {"type": "MultiLineString", "coordinates": [lines[road] for road in route]}
    except KeyError:
        raise InputError("the network lacks a road of the trips") from None
