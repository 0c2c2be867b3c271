"""Releases: what was published about devices, counted by the rules of the contract."""

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.uneven_density import count_variance, fit_density, shares_of
from anonymizer.client import measures
from anonymizer.client.cells import Cells
from anonymizer.client.network import region_nodes
from anonymizer.client.published_records import PublishedRecords, moments_of, number_of
from anonymizer.client.quality import (
    NORMAL,
    Quality,
    density_error,
    flow_error,
    mean_error,
)
from anonymizer.client.tables import Table
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.errors import InputError

_NEVER_NEGATIVE = ("speed_mps",)
_FLOW_S = 30.0
"""Flows are judged by what moves within so many seconds: half of an epoch, by default."""
_MOMENTS, _NEAR_S = 6, 1800.0
"""Of so many moments, at most so many seconds away, the density is much the same."""


class Releases(PublishedRecords):
    """Published regions of groups of devices.

    Get one from `anonymizer.client.read`, `listen` or `subscribe`. A *record* is one pseudonym in
    one message. It holds from the `time` of the message to its `end`: the next message about the
    pseudonym, or else the message's `until`, or the snapshot of current groups that no longer names
    it. So the records that hold at a moment are about as many devices: nobody is counted twice.

    Parameters
    ----------
    columns
        The messages.
    network
        The network of their regions; None: it is not known, and nothing can be placed.
    left_out
        How many messages were left out, by reason.

    Raises
    ------
    InputError
        If the messages name another network.
    """

    def heat_map(
        self,
        cells: Cells,
        *,
        at: float | Sequence[float] | None = None,
        spread: str | FloatArray = "nodes",
        level: float = 0.95,
    ) -> Table:
        """Return the expected number of devices in each cell.

        Parameters
        ----------
        cells
            `releases.network.grid(500)`, `.h3(9)` or `.zones(...)`.
        at
            Moments, in unix seconds; None: the newest.
        spread
            Where in its region a device is expected: equally likely at all `nodes`, by length of
            `roads`, or in proportion to a weight of each node, shape (nodes,).
        level
            Probability of the interval.

        Returns
        -------
        table
            `time`, `cell`, `devices`, `se` (standard error), `low` and `high` (the interval), for
            each moment and cell where a device may be. Geometries are the cells.

        Notes
        -----
        `spread` is where to begin: devices are then moved to where regions show more of them than
        it would, as far as that is no chance. How unevenly devices are spread is read off the
        release, too, and widens the error bars (`anonymizer.algorithms.uneven_density`). Given the
        density, devices are taken to be independent. Only published devices count.
        """
        moments = moments_of(self.now if at is None else at)
        return measures.heat_map(cells, self._placed(cells, moments, spread), level=level)

    def flows(
        self,
        cells: Cells,
        *,
        start: float,
        end: float,
        spread: str | FloatArray = "nodes",
        level: float = 0.95,
    ) -> Table:
        """Return how many devices moved from cell to cell between two moments.

        Only devices that kept their pseudonym are followed, so the moments must be closer to each
        other than pseudonyms live. A device that may have stayed counts as having stayed: regions
        are large, and would seem to be full of movement.

        Parameters
        ----------
        start, end
            Unix seconds.
        cells, spread, level
            As for `heat_map`.

        Returns
        -------
        table
            `origin`, `destination`, `devices`, `se`, `low` and `high`. The interval holds however
            devices move within their regions, so it is wide where regions are larger than cells.
            Geometries are lines between the middles of the cells.

        Raises
        ------
        InputError
            If devices are published at both moments, and no pseudonym is: nobody can be followed.

        Warns
        -----
        UserWarning
            If fewer than half of the devices of the first moment are followed.
        """
        if not end > start:
            raise InputError("flows: end must be after start")
        self._check_followed(start, end)
        (placed,) = self._placed(cells, [start], spread)
        return measures.flows(cells, placed.shares, *self._pairs(start, end), level=level)

    def speeds(self, reading: str = "speed_mps", *, level: float = 0.95) -> Table:
        """Return the mean of a published reading by road, for example the speed.

        Each group's mean is spread over the roads inside its region, by their length.

        Parameters
        ----------
        reading
            Its name; groups must publish `mean`, and `p25` and `p75` (or `min` and `max`) for the
            error bar.
        level
            Probability of the interval.

        Returns
        -------
        table
            `u`, `v`, `mean`, `se`, `low`, `high` and `devices` (expected number of reports) for
            each road that a group covers. The error bar is the spread of the reading among all
            devices that may have been on the road, within groups and between them, as if it were
            normal, and never below 0 for `speed_mps`. It does not shrink with time.

        Raises
        ------
        InputError
            If no group publishes the reading.
        """
        found = [(each or {}).get(reading, {}) for each in self._readings]
        mean = np.array([number_of(each.get("mean")) for each in found])
        if np.isnan(mean).all():
            names = sorted({name for each in self._readings for name in each or {}})
            raise InputError(
                f"no group publishes a mean of {reading!r}; published are: "
                f"{', '.join(names) or 'none'}"
            )
        spread = np.array([measures.spread_of(each) for each in found])
        n = np.bincount(self._message, minlength=len(self._time))
        known = ~np.isnan(mean)
        if np.isnan(spread[known]).all():
            warnings.warn(
                f"{reading}: no error bars, because no group publishes quartiles: add p25 and p75 "
                "to statistics of [[readings]]",
                stacklevel=2,
            )
        return measures.by_road(
            self.network,
            self.network.roads_inside(*self._nodes)[self._region[known]],
            mean=mean[known],
            spread=spread[known],
            n=n[known].astype(np.float64),
            level=level,
            least=0.0 if reading in _NEVER_NEGATIVE else -np.inf,
        )

    def quality(
        self,
        cells: Cells,
        *,
        at: float | Sequence[float] | None = None,
        spread: str | FloatArray = "nodes",
        reading: str = "speed_mps",
    ) -> Quality:
        """Return how good the release is for counting in these cells; no truth is needed.

        Parameters
        ----------
        cells
            As fine as the counts that are wanted.
        at
            Moments, in unix seconds; None: four, evenly over the release.
        spread
            As for `heat_map`.
        reading
            As for `speeds`.

        Notes
        -----
        Errors are those that the error bars of `heat_map`, `flows` and `speeds` expect. Those of
        flows are simulated from the regions (the seed is fixed): a device may be anywhere in its
        region, and drives about half as far as roads allow, because it stops and
        turns.
        """
        if at is None:
            at = np.linspace(self.first, self.now, 6)[1:-1].tolist()
        moments, rng = moments_of(at), np.random.default_rng(0)
        placed = list(self._placed(cells, moments, spread))
        flow = [
            flow_error(
                cells,
                each,
                self._pairs(each.moment, each.moment + _FLOW_S),
                self._nodes,
                seconds=_FLOW_S,
                rng=rng,
            )
            for each in placed
        ]
        try:
            speeds = self.speeds(reading)
        except InputError:
            speed = np.nan
        else:
            speed = NORMAL * mean_error(speeds["se"], speeds["devices"])
        ages = self.ages(moments)
        known = ages["devices"] > 0
        n, shown, error = np.array([density_error(each, len(cells)) for each in placed]).T
        counted = max(float(n.sum()), 1.0)
        return Quality(
            devices=float(n.mean()),
            coverage=float(shown.mean() / max(len(cells), 1)),
            age_mean_s=float(ages["mean_s"][known].mean()) if known.any() else np.nan,
            age_p95_s=float(ages["p95_s"][known].mean()) if known.any() else np.nan,
            density_error=float(error.sum() / counted / 2) if n.any() else np.nan,
            flow_error=mean_error(*np.array(flow).T),
            speed_error=speed,
        )

    def _pairs(self, start: float, end: float) -> tuple[IntArray, IntArray]:
        """Return the regions before and after, shape (2, pairs), and how many devices have them."""
        before, after = self._region_at(start), self._region_at(end)
        both = (before >= 0) & (after >= 0)
        pairs, n = np.unique(np.stack([before[both], after[both]]), axis=1, return_counts=True)
        return pairs, n.astype(np.int64)

    @cached_property
    def _nodes(self) -> tuple[IntArray, IntArray]:
        return region_nodes(self.network, self._regions)

    def _check_followed(self, start: float, end: float) -> None:
        """Say so where flows would seem to be small, and are only unknown."""
        before, after = self._region_at(start) >= 0, self._region_at(end) >= 0
        n, followed = int(before.sum()), int((before & after).sum())
        if 2 * followed >= n or not after.any():
            return
        if followed:
            warnings.warn(
                f"flows: only {followed:,} of {n:,} devices kept their pseudonym; the others are "
                "in no flow",
                stacklevel=3,
            )
            return
        first = np.full(self.n_pseudonyms, np.inf)
        np.minimum.at(first, self._pseudonym, self._time[self._message])
        last = np.full(self.n_pseudonyms, -np.inf)
        np.maximum.at(last, self._pseudonym, self._end)
        longest = (last - first).max()
        raise InputError(
            f"flows: no pseudonym is published at both moments, {end - start:,.0f} s apart, so "
            f"nobody can be followed; pseudonyms live for {longest:,.0f} s at most here. Take "
            "moments that are closer to each other. For hours, read published trips (`read_trips`)"
        )

    def _per_region(self, moment: float) -> IntArray:
        """Return the number of devices in each region at a moment."""
        region = self._region[self._message[self._holding(moment)]]
        return np.bincount(region, minlength=len(self._regions))

    def _placed(
        self, cells: Cells, moments: Sequence[float], spread: str | FloatArray
    ) -> Iterator[measures.Placed]:
        """Yield where devices may be at some moments."""
        weight, of_nodes = self._weight(cells, spread), cells.of_nodes
        first, node = self._nodes
        size = (len(first) - 1, self.network.n_nodes)
        regions = csr_array((np.ones(len(node)), node, first), shape=size)
        shares, halves = shares_of(regions, weight), self.network.halves
        for at in moments:
            n = self._per_region(at).astype(np.float64)
            around = [self._per_region(each) for each in self._around(at)]
            fit = fit_density(halves, shares, [each.astype(np.float64) for each in around], weight)
            by_node = shares_of(regions, fit.weight)
            in_cells = csr_array(by_node @ of_nodes)
            in_cells.data = np.minimum(in_cells.data, 1.0)  # a sum of shares may be 1 + 1e-16
            lost = count_variance(halves, by_node, n, of_nodes, fit)
            yield measures.Placed(at, in_cells, n.astype(np.int64), lost, fit)

    def _around(self, at: float) -> FloatArray:
        """Return moments near one at which the density is much the same."""
        if not len(self._time):
            return np.array([at])
        first, last = max(self.first, at - _NEAR_S), min(self.now, at + _NEAR_S)
        return np.append(np.linspace(first, last, _MOMENTS + 1)[1:], at)

    def _weight(self, cells: Cells, spread: str | FloatArray) -> FloatArray:
        network = self.network
        if cells.network.version != network.version:
            raise InputError("the cells belong to another network; use `releases.network`")
        if isinstance(spread, str):
            return network.node_weights(spread)
        weight = np.asarray(spread, np.float64)
        if weight.shape != (network.n_nodes,) or not (weight >= 0).all():
            raise InputError("spread: weights must be one for each node of the network, and >= 0")
        return weight
