"""Safe counts of an interval: from tallies by cell to the message."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from anonymizer.algorithms.positions.safe_counts import CellTally, SafeFigures, figures
from anonymizer.algorithms.positions.secret_thresholds import SecretThresholds
from anonymizer.domain.arrays import FloatArray
from anonymizer.pipeline.ports import Outgoing

if TYPE_CHECKING:
    from anonymizer.settings import CountSettings

FORM_VERSION = 1
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


def _rounded(values: FloatArray, step: float) -> "list[float | msgspec.UnsetType]":
    """Return values on their steps; NaN is left out of a message."""
    steps = np.rint(values / step) * step
    return [msgspec.UNSET if math.isnan(value) else round(value, 3) for value in steps.tolist()]
