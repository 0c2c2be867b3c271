"""The case of an audit: the release, the truth and the network; and helpers for figures."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.positions.protection import Circle
from anonymizer.algorithms.releases.observed import Observed, n_distinct_in
from anonymizer.algorithms.releases.pieces import PieceRegions, read_pieces
from anonymizer.audit.findings import Figure
from anonymizer.audit.mathematics.truth import Truth
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.discreet import discreet
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.protection import TripRule
from anonymizer.domain.readings import ReadingAttribute
from anonymizer.settings import CountSettings


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RevealedValues:
    """Published and true values of one attribute with `per_pseudonym`.

    `published`: value published with each record, `sensed`: newest true value of its device at that
    time; NaN for none, shape (records,).
    """

    attribute: ReadingAttribute
    published: FloatArray
    sensed: FloatArray


@discreet
class Reports(NamedTuple):
    """Device, unix seconds and node (negative off the graph) of each report, shape (n,) each."""

    device: IntArray
    ts: FloatArray
    node: Int32Array

    def only(self, rows: BoolArray) -> "Reports":
        """Return some of the reports."""
        return Reports(self.device[rows], self.ts[rows], self.node[rows])

    @property
    def interval_s(self) -> float:
        """Median time between two reports of a device, 0 if none reports twice."""
        order = np.lexsort((self.ts, self.device))
        gap_s = np.diff(self.ts[order])[np.diff(self.device[order]) == 0]
        return float(np.median(gap_s)) if len(gap_s) else 0.0


class TripsCase(NamedTuple):
    """How trips are published beside a release.

    `reports`: those that are passed on, which are not near protected ends of trips.
    """

    rule: TripRule
    every_s: float
    k: int
    n_cells: int
    reports: Reports


class Placebo(NamedTuple):
    """A release of other devices at the same times: `until` is as in `Case`."""

    observed: Observed
    until: FloatArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Case:
    """What was published, what was true, and the network."""

    observed: Observed
    truth: Truth
    local: Truth
    """The truth as districts know it, see `follow_in_districts`, of which a device that claims to
    be where it cannot be is no part: it is where it was, as if it were silent. It is what regions
    promise, and what an adversary assumes who knows the rule."""
    counted: Truth
    """The truth as k counts devices: without such claims, and one that leaves the roads, or its
    district, is where it was."""
    network: RoadNetwork
    """`observed`, `truth`, `network`: the whole release, the true positions, and the road
    network."""
    class_of: IntArray
    """Class of each pseudonym among those that cannot be distinguished by their regions."""
    sampled: IntArray
    """The pseudonyms that the expensive attacks use."""
    piece_of: IntArray | None
    """Public piece of each node of which regions are made, negative if it is in none, shape
    (levels, nodes), the smallest pieces first; None: they are not made of such pieces."""
    density_steps: tuple[int, ...]
    """Lower ends of ADKA's density bands."""
    tick_s: float
    """Length of a tick."""
    reports: Reports
    """The reports of the devices with valid coordinates."""
    seed: int
    """Seed of all random guesses."""
    values: tuple[RevealedValues, ...] = ()
    """Values published with pseudonyms, if the true values are known."""
    zones: tuple[Circle, ...] = ()
    """A circle around each privacy zone, if they are known."""
    earlier: Observed | None = None
    """A release from before the zones were declared, if there is one."""
    until: FloatArray | None = None
    """Unix seconds until which each record of `observed` holds, shape (records,); None: unknown."""
    placebo: "Placebo | None" = None
    """A release of other devices on the same network, if there is one."""
    counts: CountSettings | None = None
    """The safe counts that are published beside the release; None: there are none."""
    trips: TripsCase | None = None
    """The trips that are published beside the release; None: there are none."""

    def pieces(self) -> PieceRegions:
        """Return the published regions as sets of pieces."""
        return read_pieces(self.observed, self.class_of, self.piece_of)

    @property
    def has_map(self) -> bool:
        """Whether the devices of the pseudonyms are known."""
        return self.truth.device_of is not None

    @property
    def device_of(self) -> IntArray:
        """Device of each pseudonym, shape (pseudonyms,)."""
        if self.truth.device_of is None:
            raise ValueError("the devices of the pseudonyms are not known")
        return self.truth.device_of

    @property
    def identity_of(self) -> IntArray:
        """Device of each pseudonym if known, else the pseudonym itself."""
        return self.device_of if self.has_map else np.arange(self.observed.n_pseudonyms)

    @property
    def group_of(self) -> IntArray:
        """Group of each record: pseudonyms that share their regions are no cases alone."""
        return self.class_of[self.observed.pseudonym_of]

    def true_node_of(self, records: IntArray) -> Int32Array:
        """Return the true nodes of the devices of some records, same shape."""
        device = self.device_of[self.observed.pseudonym_of[records]]
        return self.truth.place[self.observed.tick_of[records], device]

    def local_node_of(self, records: IntArray) -> Int32Array:
        """Return where the districts of some records have their devices, same shape."""
        device = self.local.devices_of_records(self.observed)[records]
        return self.local.place[self.observed.tick_of[records], device]

    def n_twins(self) -> IntArray:
        """Return the number of devices with the same regions for life, shape (pseudonyms,)."""
        n_classes = int(self.class_of.max()) + 1
        return n_distinct_in(self.class_of, self.identity_of, n_classes)[self.class_of]


def mean(values: NDArray[Any]) -> float:
    """Return the mean of at least one value."""
    return float(np.mean(values))


def of_any(statistic: Callable[[NDArray[Any]], Any], values: NDArray[Any]) -> Figure:
    """Return a statistic of values, None if there are none."""
    return float(statistic(values)) if len(values) else None
