"""Counting in the flow: from the positions of a tick to the message about an interval."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from anonymizer.algorithms.positions.district_operator import Keys, slots_as_keys
from anonymizer.algorithms.positions.district_routing import KeyArray
from anonymizer.algorithms.positions.safe_counts import CellTally, SafeFigures, figures
from anonymizer.algorithms.positions.secret_thresholds import SecretThresholds
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.pipeline.ports import PART_BYTES, Outgoing
from anonymizer.pipeline.positions.counts.counted_devices import CountedDevices
from anonymizer.pipeline.positions.counts.private_counts import PrivateCounts

if TYPE_CHECKING:
    from anonymizer.settings import CountSettings

FORM_VERSION = 1
_DIGITS = 6
_SPEED_STEP_MPS = 1.0
_DWELL_STEP_S = 10.0
"""Means are rounded to these."""


class Run(msgspec.Struct, frozen=True):
    """Neighbouring cells that are counted together."""

    first: int
    last: int
    """First and last cell; those between belong to it too."""
    devices: int
    """A multiple of k: there were so many devices, or up to k - 1 more."""


class Flow(Run, frozen=True):
    """Devices that were in some cells when the interval began, and are here at its end."""


class CellCounts(Run, frozen=True):
    """The figures of some cells in an interval."""

    origins: Sequence[Flow] = ()
    """Where the devices were at the end of the interval before; at least k each. The others were
    elsewhere, or not seen: they are none, or at least k."""
    speed_mps: float | msgspec.UnsetType = msgspec.UNSET
    """Mean speed of the devices, if at least k have one."""
    dwell_s: float | msgspec.UnsetType = msgspec.UNSET
    """Mean time for which the devices have been in their cells."""


class CountsMessage(msgspec.Struct, frozen=True):
    """Safe counts of one interval. Each device that was seen is counted in one run of cells."""

    v: int
    """Version of the form of the message."""
    time: float
    """End of the interval, unix seconds."""
    interval_s: float
    network: str
    """Version of the network."""
    k: int
    """Numbers of devices are multiples of this."""
    n_cells: int
    """Number of cells of the network; they are retained on the topic behind this one, `/cells`."""
    counts: Sequence[CellCounts]
    """Empty if fewer than k devices were seen, or up to `more`."""
    more: int | msgspec.UnsetType = msgspec.UNSET
    """There may be so many devices more than a figure says; unset: k - 1. See `region.k_extra`."""


class CountingFlow:
    """Counts the devices of a positions flow.

    Parameters
    ----------
    private
        Makes counts with differential privacy. None: safe counts.
    k_extra, secret
        Devices in each figure beyond the k of the settings, and the key of the thresholds; of safe
        counts.
    keys, kept_s, slack_s
        See `CountedDevices`.

    Attributes
    ----------
    n_intervals
        Intervals that have ended: by why they were suppressed, empty if they were published.
    """

    def __init__(
        self,
        settings: "CountSettings",
        network: RoadNetwork,
        *,
        version: str,
        topic: str = "cloaked/counts",
        private: PrivateCounts | None = None,
        k_extra: int = 0,
        secret: bytes = b"",
        keys: Keys = slots_as_keys,
        kept_s: float = math.inf,
        slack_s: float = 0.0,
    ) -> None:
        self.n_intervals: Counter[str] = Counter()
        self._devices = CountedDevices(settings, network, keys=keys, kept_s=kept_s, slack_s=slack_s)
        self._topic = topic
        self._private = private
        self._safe = SafeMessages(
            settings, topic=topic, version=version, k_extra=k_extra, secret=secret
        )
        self._encode = msgspec.json.Encoder().encode

    def set_k_extra(self, k_extra: int) -> None:
        """Ask for so many devices beyond k in the figures from now on."""
        self._safe.k_extra = k_extra

    def withdraw(self, keys: KeyArray) -> None:
        """Forget devices that take no part any more, see `CountedDevices`."""
        self._devices.withdraw(keys)

    def tick(
        self,
        slot: Int32Array,
        ts: FloatArray,
        node: Int32Array,
        *,
        now: float,
        freed: Int32Array,
        since: FloatArray | None = None,
        wall_ahead_s: float = 0.0,
    ) -> list[Outgoing]:
        """Take in the positions of a tick; return the message of an interval that has ended.

        `freed`: slots that may pass to other devices after this tick; the rest as in
        `CountedDevices.tick`.
        """
        ended = self._devices.tick(slot, ts, node, now=now, since=since)
        self._devices.free(freed)
        if ended is None or not ended.is_whole:
            return []
        if self._private is None:
            self.n_intervals[""] += 1
            return [self._safe.message(ended.tally(), ended.end_s, wall_ahead_s=wall_ahead_s)]
        body = self._private.message(
            ended.cell, ended.before, ended.key, end_s=ended.end_s, ahead_s=wall_ahead_s
        )
        self.n_intervals[body.suppressed or ""] += 1
        return [Outgoing(self._topic, self._encode(body))]

    def close(self) -> None:
        """Leave the budget to others; after the last tick."""
        if self._private is not None:
            self._private.close()


class SafeMessages:
    """Makes the messages of safe counts.

    `k_extra`: devices in each figure beyond the k of the settings; `secret`: of the thresholds.
    """

    def __init__(
        self,
        settings: "CountSettings",
        *,
        topic: str,
        version: str,
        k_extra: int = 0,
        secret: bytes = b"",
    ) -> None:
        self.k_extra = k_extra
        self._secret = secret
        self._topic = topic
        self._settings = settings
        self._version = version
        self._encode = msgspec.json.Encoder().encode

    def message(self, counted: CellTally, end_s: float, *, wall_ahead_s: float = 0.0) -> Outgoing:
        """Return the message about an interval that ends at `end_s`, unix seconds.

        `wall_ahead_s` is added to published times.
        """
        settings = self._settings
        # So many in each figure, and in each difference of two.
        k = settings.k + self.k_extra
        number = round(end_s / settings.every_s)
        secret = self._secret if self.k_extra else None
        thresholds = SecretThresholds(secret, interval=number)
        body = CountsMessage(
            v=FORM_VERSION,
            time=round(end_s + wall_ahead_s, 3),
            interval_s=settings.every_s,
            network=self._version,
            k=k,
            n_cells=settings.cells,
            counts=self._counts(figures(counted, k, thresholds)),
            more=thresholds.most_more(k) if self.k_extra else msgspec.UNSET,
        )
        return Outgoing(self._topic, self._encode(body))

    def _counts(self, safe: SafeFigures) -> list[CellCounts]:
        first = safe.first_cell_of.tolist()
        speed = _rounded(safe.speed_mps, _SPEED_STEP_MPS)
        dwell = _rounded(safe.dwell_s, _DWELL_STEP_S)
        origins: list[list[Flow]] = [[] for _ in first[1:]]
        flows = (safe.flow_from, safe.flow_to, safe.n_flow)
        for origin, here, n in zip(*(column.tolist() for column in flows), strict=True):
            origins[here].append(Flow(first[origin], first[origin + 1] - 1, n))
        return [
            CellCounts(first[r], first[r + 1] - 1, n, origins[r], speed[r], dwell[r])
            for r, n in enumerate(safe.n_devices.tolist())
        ]


def cells_messages(
    topic: str, n_cells: int, network: RoadNetwork, *, version: str, part_bytes: int = PART_BYTES
) -> list[Outgoing]:
    """Return the retained messages that say where the cells are: GeoJSON, a box for each.

    They are behind `topic`, that of the figures about the cells; `n_cells` is a power of two. The
    first is on `/cells`; of what needs more than `part_bytes`, the rest is on `/cells/1` and so on.

    Notes
    -----
    A box surrounds the nodes of its cell; a cell without nodes is left out.
    """
    cell = compact_parts(network, n_cells)
    order = np.argsort(cell, kind="stable")
    numbers, start = np.unique(cell[order], return_index=True)
    corners = [
        edge.reduceat(degrees[order], start).round(_DIGITS).tolist()
        for degrees in (network.lon, network.lat)
        for edge in (np.minimum, np.maximum)
    ]
    features = [
        {
            "type": "Feature",
            "id": number,
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[w, s], [e, s], [e, n], [w, n], [w, s]]],
            },
            "properties": {"cell": number, "nodes": n_nodes},
        }
        for number, w, e, s, n, n_nodes in zip(
            numbers.tolist(),
            *corners,
            np.diff(np.append(start, len(cell))).tolist(),
            strict=True,
        )
    ]
    room = part_bytes - len(_cells_body(version, [], n_cells, n_cells))
    each = max(1, room // max(len(msgspec.json.encode(feature)) + 1 for feature in features))
    parts = [features[first : first + each] for first in range(0, len(features), each)]
    return [
        Outgoing(
            f"{topic}/cells/{i}" if i else f"{topic}/cells",
            _cells_body(version, part, i, len(parts)),
            retain=True,
        )
        for i, part in enumerate(parts)
    ]


def _cells_body(version: str, features: Sequence[dict[str, Any]], part: int, n_parts: int) -> bytes:
    head = {"type": "FeatureCollection", "network": version}
    several = {"part": part, "of": n_parts} if n_parts > 1 else {}
    return msgspec.json.encode({**head, **several, "features": features})


def _rounded(values: FloatArray, step: float) -> "list[float | msgspec.UnsetType]":
    """Return values on their steps; NaN is left out of a message."""
    steps = np.rint(values / step) * step
    return [msgspec.UNSET if math.isnan(value) else round(value, 3) for value in steps.tolist()]
