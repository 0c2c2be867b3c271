"""Streets over hours: how many passed and how fast, from what `anonymizer traffic` wrote."""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from anonymizer.client.network import Network, read_network
from anonymizer.client.tables import Column, Table
from anonymizer.client.time_parts import parts_of_time
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.extras import extra
from anonymizer.unfolding import UnfoldingError, parquet_source

_FIGURES = (
    "passages",
    "passages_low",
    "passages_high",
    "speed_mps",
    "speed_low",
    "speed_high",
)
_HARDLY = 1e-6
"""No hour has no weight at all in a mean: then there would be none."""


class StreetHours:
    """Traffic of roads by hour; get one from `anonymizer.client.read_street_hours`.

    A *passage* is one device that was seen on a road in an hour. Roads on which too few devices
    pass are published together, as a stretch. There each device counts once, though
    it may have passed all of the roads. Of such a road, the number is an equal part of that of the
    stretch, and may be anything from none to all; its speed is that of the stretch, and the
    error bar says how much the passages of the stretch differ.

    Parameters
    ----------
    frame
        A `polars.DataFrame` of the published columns.
    network
        The network of the roads.

    Raises
    ------
    InputError
        If the columns are others, or the network lacks a road.
    """

    def __init__(self, frame: Any, network: Network) -> None:  # noqa: ANN401  polars is an extra
        missing = {"time", "every_s", "roads", "devices_high", *_FIGURES} - set(frame.columns)
        if missing:
            raise InputError(f"no traffic by street and hour: lacks {', '.join(sorted(missing))}")
        self.network = network
        self.every_s = float(frame["every_s"].max()) if len(frame) else np.nan
        """Length of an hour."""
        names = [f"{u}-{v}" for u, v in zip(*_ends(network), strict=True)]
        self._number = {name: i for i, name in enumerate(names)}
        self._names = names
        rows = frame["roads"].to_list()
        try:
            self._road = np.array([self._number[name] for row in rows for name in row], np.int64)
        except KeyError:
            raise InputError(
                "the network lacks a road of the traffic: take that of the export"
            ) from None
        self._n_roads = np.array([len(row) for row in rows], np.int64)
        self._row = np.repeat(np.arange(len(rows)), self._n_roads)
        self._start_s = frame["time"].dt.epoch("ms").to_numpy() / 1000
        self._values = np.array([frame[name].to_numpy() for name in _FIGURES], np.float64)
        self._values = self._values.reshape(len(_FIGURES), -1)
        self._most = frame["devices_high"].to_numpy().astype(np.float64)

    def __repr__(self) -> str:
        """Return the size."""
        return f"StreetHours({len(self.hours):,} hours, {self.network.n_roads:,} roads)"

    @property
    def hours(self) -> list[float]:
        """Beginnings of the hours about which something is published, in unix seconds."""
        found: list[float] = np.unique(self._start_s).tolist()
        return found

    def roads(self, *, start: float, end: float) -> Table:
        """Return the traffic of each road over some hours together.

        Parameters
        ----------
        start, end
            Unix seconds: all hours that begin from `start` on, and before `end`.

        Returns
        -------
        table
            `u`, `v`, `passages` (devices by hour, added up) and `speed_mps`, each with `_low` and
            `_high` (95 %), and `hours`: in how many hours something is known of the road. NaN where
            no speed is known. Geometries are the roads.
        """
        there = ((self._start_s >= start) & (self._start_s < end))[self._row]
        road_of, row = self._road[there], self._row[there]
        figures = self._parts(row, np.ones(len(row)))
        found = _together(road_of, figures, self.network.n_roads)
        n_hours = np.bincount(road_of, minlength=self.network.n_roads)
        road = np.flatnonzero(n_hours)
        lines = self.network.roads()
        u, v = _ends(self.network)
        return Table(
            {
                "u": [u[r] for r in road.tolist()],
                "v": [v[r] for r in road.tolist()],
                **dict(zip(_FIGURES, found[:, road], strict=True)),
                "hours": n_hours[road],
            },
            [lines[r] for r in road.tolist()],
        )

    def pattern(
        self,
        roads: Iterable[tuple[Any, Any]] | None = None,
        *,
        by: str = "hour",
        tz: str = "UTC",
    ) -> Table:
        """Return how traffic changes by hour of the day, by weekday, by month, or by day.

        Parameters
        ----------
        roads
            Ends of each road of a street; None: all roads.
        by
            `hour`, `weekday` (1 is Monday), `month` or `day`.
        tz
            Time zone of the city, such as `Europe/Helsinki`.

        Returns
        -------
        table
            `by`, `passages` (mean of an hour) and `speed_mps` (mean of the passages), each with
            `_low` and `_high`, and `hours`: how many are known.
        """
        chosen = self._n_roads
        if roads is not None:
            inside = self._row[np.isin(self._road, self._numbers(roads))]
            chosen = np.bincount(inside, minlength=len(self._n_roads))
        row = np.flatnonzero(chosen)
        start_s, hour_of = np.unique(self._start_s[row], return_inverse=True)
        names, part = parts_of_time(start_s, by, tz)
        n_hours = np.bincount(part, minlength=len(names))
        figures = self._parts(row, chosen[row].astype(np.float64))
        found = _together(part[hour_of.ravel()], figures, len(names))
        found[:3] /= n_hours
        columns: dict[str, Column] = {
            by: names,
            **dict(zip(_FIGURES, found, strict=True)),
            "hours": n_hours,
        }
        return Table(columns)

    def _numbers(self, roads: Iterable[tuple[Any, Any]]) -> IntArray:
        either = [(f"{u}-{v}", f"{v}-{u}") for u, v in roads]
        found = [self._number.get(a, self._number.get(b, -1)) for a, b in either]
        if -1 in found:
            raise InputError("pattern: the network lacks a road between two of these nodes")
        return np.array(found, np.int64)

    def _parts(self, row: IntArray, n_roads: FloatArray) -> FloatArray:
        """Return the figures of so many roads of each stretch, shape (6, rows)."""
        found = self._values[:, row].copy()
        share = n_roads / self._n_roads[row]
        whole = share == 1
        found[0] *= share
        found[1] = np.where(whole, found[1], 0.0)
        found[2] = np.where(whole, found[2], np.minimum(found[2], n_roads * self._most[row]))
        return found


def _together(group: IntArray, figures: FloatArray, n: int) -> FloatArray:
    """Return the figures of each group, shape (6, n): sums of passages, and means of speeds.

    Errors of the hours of a road are alike, since it differs from its stretch in all of them: error
    bars do not shrink with the number of hours. They hold for all passages that an hour may have.
    """
    found = np.full((len(figures), n), np.nan)
    found[:3] = [np.bincount(group, each, n) for each in figures[:3]]
    known = ~np.isnan(figures[3]) & (figures[0] > 0)
    group, (expected, fewest, most, *speeds) = group[known], figures[:, known]

    def mean(speed: FloatArray, weight: FloatArray) -> FloatArray:
        total = np.bincount(group, weight, n)
        weighed = np.bincount(group, weight * speed, n)
        mean: FloatArray = weighed / np.where(total > 0, total, np.nan)
        return mean

    found[3] = mean(speeds[0], expected)
    fewest = np.maximum(fewest, _HARDLY * most)
    for row, speed, sign in ((4, speeds[1], -1), (5, speeds[2], 1)):
        # The least mean has most passages where it is slow, and fewest elsewhere.
        bound = mean(speed, expected)
        for _ in range(3):
            weight = np.where(sign * (speed - bound[group]) >= 0, most, fewest)
            bound = mean(speed, weight)
        found[row] = bound
    return found


def read_street_hours(
    path: str | PathLike[str], *, network: str | PathLike[str] | RoadNetwork | Network
) -> StreetHours:
    """Read traffic by street and hour.

    Parameters
    ----------
    path
        A file, or a folder of days, as `anonymizer traffic` writes them.
    network
        See `read_network`.

    Raises
    ------
    InputError
        If a file cannot be read, or the network is another one.
    """
    with extra("tables"):
        import polars as pl  # noqa: PLC0415  an extra

    path = Path(path)
    try:
        files = sorted(path.glob("**/*.parquet")) if path.is_dir() else [path]
        frame = pl.concat(
            pl.read_parquet(parquet_source(each), hive_partitioning=False) for each in files
        )
    except (OSError, ValueError, UnfoldingError, pl.exceptions.PolarsError):
        raise InputError(f"{path}: is no traffic by street and hour") from None
    try:
        return StreetHours(frame, read_network(network))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _ends(network: Network) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the names of the nodes at both ends of each road."""
    return network.node_id[network.u].tolist(), network.node_id[network.v].tolist()
