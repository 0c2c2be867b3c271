"""Published trips: where they begin and end, by any partition of a city and any hours."""

from collections.abc import Iterator
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array

from anonymizer.algorithms.uncertain_counts import count_distribution, interval_of
from anonymizer.algorithms.uneven_density import USUAL, factors_of
from anonymizer.client.cells import Cells
from anonymizer.client.network import Network, read_network
from anonymizer.client.tables import Table, middle, times
from anonymizer.domain.arrays import FloatArray, IntArray, starts_of
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.extras import extra

_COLUMNS = ("start", "from_lat", "from_lon", "to_lat", "to_lon")
_SURE = 1e-9


class PublishedTrips:
    """Trips of a table that `anonymizer anonymize` published; get them from `read_trips`.

    Each trip begins in a box and within some minutes, and ends in a box, as at least k - 1 others
    do. A box is as small as its trips allow, so one is at each of its sides; the others are
    expected at all of its nodes alike. (Not where all boxes show more trips: where there are many,
    boxes are small.) That traffic is uneven makes error bars wider, as for regions. Beginning, end
    and time of a trip are taken to be independent within its class.

    Raises
    ------
    InputError
        If the network has no road in any of the boxes.
    """

    def __init__(
        self, boxes: FloatArray, n: IntArray, span_s: FloatArray, network: Network
    ) -> None:
        self.network = network
        self._n, self._span_s = n, span_s
        self._ends = [_tight_shares(network, each, n) for each in (boxes[:, :4], boxes[:, 4:])]

    def __len__(self) -> int:
        """Return the number of published trips."""
        return int(self._n.sum())

    def __repr__(self) -> str:
        """Return the size."""
        return f"PublishedTrips({len(self):,} in {len(self._n):,} classes)"

    @property
    def first(self) -> float:
        """When the first of them may have begun, in unix seconds."""
        return float(self._span_s[:, 0].min())

    @property
    def last(self) -> float:
        """When the last of them may have begun, in unix seconds."""
        return float(self._span_s[:, 1].max())

    def starts(self, cells: Cells, *, every_s: float = 3600.0, level: float = 0.95) -> Table:
        """Return how many trips begin in each cell in each hour.

        Returns
        -------
        table
            `time` (of the beginning of the hour), `cell`, `trips`, `low` and `high`.
        """
        origin = _Cells(self._ends[0], cells, self.network)
        first, last = (int(at // every_s) for at in (self.first, self.last))
        starts = np.arange(first, last + 1) * every_s
        found = []
        for at in starts.tolist():
            within = self._within(at, at + every_s)
            lost = origin.variance((within * self._n)[:, None])[:, 0]
            found += [
                self._estimate(within * p, v, level) for p, v in zip(origin, lost, strict=True)
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
            `origin`, `destination`, `trips`, `low` and `high`, for each pair of cells. Trips that
            were suppressed, cut by the recording or in a privacy zone are in no number; those with
            an end outside of all cells are not in this table. Geometries are lines between the
            middles of the cells.
        """
        origin, destination = (_Cells(each, cells, self.network) for each in self._ends)
        within = self._within(start, end)
        n = (self._n * within)[:, None]
        lost = origin.variance(n * destination.share) + destination.variance(n * origin.share).T
        found = [
            self._estimate(within * p * q, lost[a, b], level)
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

    def _within(self, start: float, end: float) -> FloatArray:
        """Return the probability that a trip of each class begins in a span of time.

        The first and the last of a class begin when its time does and ends, the others in between.
        """
        first, last = self._span_s.T
        shared = np.minimum(last, end) - np.maximum(first, start)
        between = np.clip(shared / np.maximum(last - first, 1e-9), 0.0, 1.0)
        at_ends = [((at >= start) & (at < end)).astype(np.float64) for at in (first, last)]
        n = np.maximum(self._n, 2)
        found: FloatArray = np.where(
            last > first, ((n - 2) * between + at_ends[0] + at_ends[1]) / n, at_ends[0]
        )
        return found

    def _estimate(self, p: FloatArray, lost: float, level: float) -> tuple[float, float, float]:
        """Return the expected number of trips and its interval.

        Parameters
        ----------
        p
            Probability of a trip of each class to count.
        lost
            Variance of the number by what is not known of the density.
        """
        there = np.flatnonzero(p)
        p, n = np.minimum(p[there], 1.0), self._n[there]
        if not len(n):
            return 0.0, 0.0, 0.0
        chance = float(n @ (p * (1 - p)))
        sd = float(np.sqrt(lost)) / chance if chance > _SURE else 0.0
        low, high = interval_of(*count_distribution(p, n, shared_sd=sd), level=level)
        return float(n @ p), low, high


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


def _nodes_in(network: Network, boxes: FloatArray) -> list[IntArray]:
    """Return the nodes in each box; the nearest node where there is none."""
    east_m = np.cos(np.radians(network.lat.mean()))
    lat, lon = network.lat, network.lon
    found = []
    for south, north, west, east in boxes.tolist():
        inside = np.flatnonzero((south <= lat) & (lat <= north) & (west <= lon) & (lon <= east))
        if not len(inside):
            far = (lat - (south + north) / 2) ** 2 + (east_m * (lon - (west + east) / 2)) ** 2
            inside = np.array([far.argmin()])
        found.append(inside.astype(np.int64))
    return found


def _tight_shares(network: Network, boxes: FloatArray, n: IntArray) -> csr_array:
    """Return the probability that an end of a class is at each node, shape (classes, nodes).

    The box of a class ends where its members do: one of them is at each of its four sides. The
    others are anywhere in it, at all nodes alike. Of n members, those at a side are within the nth
    part of the box, by expectation.
    """
    inside, parts = _nodes_in(network, boxes), []
    for (south, north, west, east), size, node in zip(
        boxes.tolist(), n.tolist(), inside, strict=True
    ):
        lat, lon, here = network.lat[node], network.lon[node], np.ones(len(node))
        at_side = min(4.0 / size, 1.0)
        share = (1.0 - at_side) * here / here.sum()
        high, wide = (north - south) / size, (east - west) / size
        for gap, reach in (
            (lat - south, high),
            (north - lat, high),
            (lon - west, wide),
            (east - lon, wide),
        ):
            near = np.where(gap <= max(reach, float(gap.min())), here, 0.0)
            share += at_side / 4 * near / near.sum()
        parts.append(share)
    first = starts_of(np.array([len(each) for each in inside], np.int64))
    entries = np.concatenate(parts), np.concatenate(inside), first
    return csr_array(entries, shape=(len(boxes), network.n_nodes))


def read_trips(
    path: str | PathLike[str], *, network: str | PathLike[str] | RoadNetwork | Network
) -> PublishedTrips:
    """Read published trips.

    Parameters
    ----------
    path
        csv or parquet, as `anonymizer anonymize` writes it of a table of `anonymizer trips`: with
        `class_id`, and ranges in `start`, `from_lat`, `from_lon`, `to_lat` and `to_lon`.
    network
        Of the city; see `read_network`.

    Raises
    ------
    InputError
        If the file cannot be read, or a value is no range.
    """
    with extra("tables"):
        import polars as pl  # noqa: PLC0415  an extra

    path = Path(path)
    try:
        if path.suffix == ".parquet":
            frame = pl.read_parquet(path)
        else:
            frame = pl.read_csv(path, infer_schema=False)
        rows = frame.group_by("class_id", *_COLUMNS).len().sort("class_id").rows()
    except (OSError, pl.exceptions.PolarsError):
        raise InputError(
            f"{path}: is no table of published trips: see `anonymizer trips`"
        ) from None
    try:
        spans = np.array([_span(row[1]) for row in rows]).reshape(-1, 2)
        boxes = [[end for value in row[2:6] for end in _range(value)] for row in rows]
    except ValueError:
        raise InputError(
            f"{path}: a value is no range; the columns {', '.join(_COLUMNS)} must be numbers and "
            "times that were generalized to ranges"
        ) from None
    if not rows:
        raise InputError(f"{path}: has no trips")
    n = np.array([row[6] for row in rows], np.int64)
    return PublishedTrips(np.array(boxes).reshape(-1, 8), n, spans, read_network(network))


def _range(value: Any) -> tuple[float, float]:  # noqa: ANN401  text or a number
    """Return the bounds of `[low-high]` or of a single number."""
    text = str(value)
    if not text.startswith("["):
        return float(text), float(text)
    inner = text[1:-1]
    cut = inner.index("-", 1)
    return float(inner[:cut]), float(inner[cut + 1 :])


def _span(value: Any) -> tuple[float, float]:  # noqa: ANN401  text or a number
    """Return the bounds of `[time..time]` or of a single time, in unix seconds."""
    first, _, last = str(value).removeprefix("[").removesuffix("]").partition("..")
    return _unix(first), _unix(last or first)


def _unix(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
