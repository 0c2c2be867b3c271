"""Records of a release: which of them hold at a moment, and what they say."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anonymizer.client.messages import Columns
from anonymizer.client.network import Geometry, Network, region_nodes
from anonymizer.client.tables import Column, Table, times
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.errors import InputError

GRACE_S = 2.0
"""The next message about a pseudonym may be so much later than `until` announced."""


class PublishedRecords:
    """Records, and what holds at a moment; see `Releases`, which counts them by place."""

    def __init__(
        self, columns: Columns, network: Network | None, left_out: Mapping[str, int]
    ) -> None:
        self.left_out = dict(left_out)
        """How many messages were left out, by reason."""
        _check_versions(columns, network)
        self._network = network
        self._regions = tuple(columns.regions)
        self._readings = tuple(columns.readings)
        self._group = tuple(columns.group)
        self._time = np.array(columns.time, np.float64)
        self._k = np.array(columns.k, np.int64)
        self._region = np.array(columns.region, np.int64)
        self._message = np.array(columns.message, np.int64)
        self._values = tuple(columns.values)
        names, number = np.unique(np.array(columns.pseudonym, np.str_), return_inverse=True)
        self._name, self._pseudonym = names, number.astype(np.int64).ravel()
        self._end = self._ends(np.array(columns.end, np.float64))

    def __repr__(self) -> str:
        """Reveal neither device nor place."""
        return f"Releases({len(self):,} records, {self.n_pseudonyms:,} pseudonyms)"

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>{self.table()._repr_html_()}"

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self._message)

    @property
    def n_pseudonyms(self) -> int:
        """Number of pseudonyms; it is larger than that of devices, whose pseudonyms change."""
        return len(self._name)

    @property
    def first(self) -> float:
        """Time of the oldest message, in unix seconds."""
        return float(self._some_time().min())

    @property
    def now(self) -> float:
        """Time of the newest message, in unix seconds: the present, as far as is known."""
        return float(self._some_time().max())

    @property
    def network(self) -> Network:
        """The network of the regions.

        Raises
        ------
        InputError
            If it is not known.
        """
        if self._network is None:
            raise InputError(
                "the network of the regions is not known: pass `network=`, a file of `anonymizer "
                "network export`, or subscribe to `anonymizer/network/#` (the gateway's "
                "public_network.enabled must be true)"
            )
        return self._network

    def moments(self, every_s: float) -> list[float]:
        """Return moments at which to count, every so many seconds, as unix seconds.

        They are multiples of `every_s` after the first message and before the newest.
        """
        if not every_s > 0:
            raise InputError("moments: every_s must be above 0")
        start = (np.floor(self.first / every_s) + 1) * every_s
        return [float(at) for at in np.arange(start, self.now, every_s)]

    def devices(self, at: float | None = None) -> int:
        """Return how many devices are published at a moment; None: at the newest."""
        return int(self._holding(self.now if at is None else at).sum())

    def at(self, moment: float | None = None) -> Table:
        """Return the groups that hold at a moment (None: the newest), a row each, with regions.

        Columns: `time` of the message, `age_s` (seconds since then), `until` (the last end of its
        records), `group`, `k`, `devices` (those whose newest message it is), `nodes`, and
        `<reading>_<statistic>` for published readings.
        """
        moment = self.now if moment is None else moment
        message, n = np.unique(self._message[self._holding(moment)], return_counts=True)
        ends = np.full(len(self._time), -np.inf)
        np.maximum.at(ends, self._message, self._end)
        columns: dict[str, Column] = {
            "time": times(self._time[message]),
            "age_s": moment - self._time[message],
            "until": times(ends[message]),
            "group": [self._group[i] for i in message.tolist()],
            "k": self._k[message],
            "devices": n,
            "nodes": self._n_nodes[message],
        }
        return Table(columns | self._statistics(message), self._geometry(message))

    def ages(self, at: float | Sequence[float] | None = None) -> Table:
        """Return the age of information: how long ago what is known of each device was current.

        Parameters
        ----------
        at
            Moments, in unix seconds, such as `releases.moments(1)`; None: the newest.

        Returns
        -------
        table
            `time`, `devices` (those that are published), `mean_s`, `p95_s` and `oldest_s`, a row
            for each moment. Ages are NaN while nobody is published.

        Notes
        -----
        Counted from the `time` of messages, so it needs no clock of its own. Who is no longer
        published has no age: read it beside `devices`. It is the age that the gateway exports,
        except that the gateway still counts a group whose next message is late.
        """
        moments = moments_of(self.now if at is None else at)
        found = np.full((len(moments), 3), np.nan)
        n_devices = np.zeros(len(moments), np.int64)
        for row, moment in enumerate(moments):
            age_s = moment - self._time[self._message[self._holding(moment)]]
            n_devices[row] = len(age_s)
            if len(age_s):
                found[row] = age_s.mean(), np.quantile(age_s, 0.95), age_s.max()
        ages = dict(zip(("mean_s", "p95_s", "oldest_s"), found.T, strict=True))
        return Table(
            {"time": times(np.array(moments, np.float64)), "devices": n_devices, **ages}, None
        )

    def table(self) -> Table:
        """Return all records, a row each, by time.

        Columns: `pseudonym`, `group`, `time`, `until` (the end of the record), `k`, `region` (names
        of nodes), `<reading>` (own) and `<reading>_<statistic>` (of the group). A missing `until`
        is not known.
        """
        order = np.lexsort((self._pseudonym, self._time[self._message]))
        message = self._message[order]
        columns: dict[str, Column] = {
            "pseudonym": self._name[self._pseudonym[order]].astype(object),
            "group": [self._group[i] for i in message.tolist()],
            "time": times(self._time[message]),
            "until": times(self._end[order]),
            "k": self._k[message],
            "region": [list(self._regions[r]) for r in self._region[message].tolist()],
        }
        values = [self._values[j] or {} for j in order.tolist()]
        for name in dict.fromkeys(name for each in values for name in each):
            columns[name] = np.array([number_of(each.get(name)) for each in values])
        return Table(columns | self._statistics(message), self._geometry(message))

    def to_pandas(self) -> Any:  # noqa: ANN401  pandas has no types
        """Return the records as a `pandas.DataFrame`; see `table`."""
        return self.table().to_pandas()

    def to_polars(self) -> Any:  # noqa: ANN401  polars is an extra
        """Return the records as a `polars.DataFrame`; see `table`."""
        return self.table().to_polars()

    def to_geopandas(self) -> Any:  # noqa: ANN401  geopandas has no types
        """Return the records as a `geopandas.GeoDataFrame` with the roads of their regions."""
        _ = self.network  # which says what to do if it is not known
        return self.table().to_geopandas()

    @property
    def _n_nodes(self) -> IntArray:
        sizes = np.array([len(region) for region in self._regions], np.int64)
        return sizes[self._region]

    def _some_time(self) -> FloatArray:
        if not len(self._time):
            raise InputError("there are no releases: nothing has been published about a region")
        return self._time

    def _ends(self, end: FloatArray) -> FloatArray:
        """Return the end of each record, given its end if no message follows."""
        time = self._time[self._message]
        order = np.lexsort((time, self._pseudonym))
        following = np.full(len(order), np.inf)
        same = np.diff(self._pseudonym[order]) == 0
        following[order[:-1][same]] = time[order[1:][same]]
        return np.where(following <= end + GRACE_S, following, end)

    def _holding(self, moment: float) -> BoolArray:
        return (self._time[self._message] <= moment) & (moment < self._end)

    def _region_at(self, moment: float) -> IntArray:
        """Return the region of each pseudonym at a moment, -1 for none."""
        holding = self._holding(moment)
        found = np.full(self.n_pseudonyms, -1, np.int64)
        found[self._pseudonym[holding]] = self._region[self._message[holding]]
        return found

    def _geometry(self, message: IntArray) -> list[Geometry] | None:
        if self._network is None:
            return None
        region, row = np.unique(self._region[message], return_inverse=True)
        first, node = region_nodes(self.network, [self._regions[r] for r in region.tolist()])
        drawn = self.network.regions(first, node)
        return [drawn[i] for i in row.tolist()]

    def _statistics(self, message: IntArray) -> dict[str, Column]:
        readings = [self._readings[i] or {} for i in message.tolist()]
        known = dict.fromkeys(
            (name, statistic) for each in readings for name in each for statistic in each[name]
        )
        return {
            f"{name}_{statistic}": np.array(
                [number_of(each.get(name, {}).get(statistic)) for each in readings]
            )
            for name, statistic in known
        }


def number_of(value: float | None) -> float:
    """Return a number that may be missing; NaN if it is."""
    return np.nan if value is None else value


def moments_of(at: float | Sequence[float]) -> list[float]:
    """Return one moment or several as a list."""
    return [float(each) for each in np.atleast_1d(np.asarray(at, np.float64))]


def _check_versions(columns: Columns, network: Network | None) -> None:
    named = {version for version in columns.network if version}
    if len(named) > 1:
        raise InputError(
            f"the releases are about {len(named)} networks ({', '.join(sorted(named))}): the "
            "gateway got another one in between; read the time before and after separately"
        )
    if network is not None and named and network.version not in named:
        raise InputError(
            f"the releases are about network {named.pop()}, and network {network.version} is "
            "given: take the one that the gateway publishes on `anonymizer/network/#`, or "
            "`anonymizer network export` of the gateway's network"
        )
