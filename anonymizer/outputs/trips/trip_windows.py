"""Trips in the flow: from the positions of a tick to the message about a window."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from anonymizer.algorithms.positions.device_keys import KeyArray, Keys, slots_as_keys
from anonymizer.algorithms.positions.live_trips import EndedTrip, LiveTrips
from anonymizer.algorithms.positions.secret_thresholds import SecretThresholds
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.positions.trip_classes import (
    N_STARTS,
    TripClass,
    WindowTrips,
    n_cells_of,
    trip_classes,
    unkept,
)
from anonymizer.algorithms.positions.trip_routes import route_arcs
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.outputs.output import PUBLISHED, UNVERIFIED
from anonymizer.outputs.windows import EndedWindows, promised_k
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.tick.device_rows import DeviceRows
from anonymizer.pipeline.positions.tick.trip_guard import Positions

if TYPE_CHECKING:
    from anonymizer.settings import Settings

FORM_VERSION = 1


class TripEnd(msgspec.Struct, frozen=True):
    """Neighbouring cells of the network, in one of which each trip began, or ended."""

    first: int
    last: int
    """First and last cell; those between belong to it too."""


class TripsOfClass(msgspec.Struct, frozen=True):
    """Trips from one place to another."""

    origin: TripEnd
    destination: TripEnd
    start: tuple[float, float]
    """Between which times they began, unix seconds."""
    devices: int
    """A multiple of k: so many devices made these trips, or up to k - 1 more."""
    roads: Sequence[tuple[int | str, int | str]]
    """Roads that at least k of these devices took, by the nodes at both ends, in the direction of
    travel. Those in the cell where a device began or ended are left out."""


class TripsMessage(msgspec.Struct, frozen=True):
    """The trips that ended in a window. Each is in one class, or there are none."""

    v: int
    """Version of the form of the message."""
    time: float
    """End of the window, unix seconds."""
    window_s: float
    network: str
    """Version of the network."""
    k: int
    """Numbers of devices are multiples of this."""
    n_cells: int
    """Number of cells of the network; they are retained on the topic behind this one, `/cells`."""
    trips: Sequence[TripsOfClass]
    """Empty if fewer than k devices made trips, or up to `more`."""
    more: int | msgspec.UnsetType = msgspec.UNSET
    """There may be so many devices more than a class says; unset: k - 1. See `region.k_extra`."""


class EndedTrips(NamedTuple):
    """The trips of a window, all of which have ended; `k`: the largest promised meanwhile."""

    window: int
    k: int
    trips: WindowTrips


class TripWindows:
    """Follows the trips of devices, window by window.

    Notes
    -----
    A window ends once, when all its trips are known to have ended: `trips.gap_s` or `trips.dwell_s`
    and the time by which positions may be late after its end. So the moment tells of no trip. Trips
    that began before the window before it are left out, as are those with an end off the graph or
    in a privacy zone, of the settings or of the device's own.
    """

    def __init__(
        self, settings: "Settings", network: RoadNetwork, *, keys: Keys = slots_as_keys
    ) -> None:
        self._every_s = settings.trips_out.every_s
        self._network, self._rule = network, settings.trips.published_rule
        self._late_s = settings.oldest_s
        known_after_s = max(self._rule.gap_s, self._rule.dwell_s) + self._late_s
        # A trip of now ends in this window or in the next one, or it is left out.
        self._windows = EndedWindows(self._every_s, known_after_s, n_ahead=1)
        self.n_cells = n_cells_of(network, settings.counts.k)
        """Into how many cells the network is divided."""
        self._cell_at = compact_parts(network, self.n_cells)
        self._rows = DeviceRows(keys)
        self._trips: LiveTrips | None = None
        self._ended: dict[int, list[tuple[int, EndedTrip]]] = {}
        """Key of the device, and trip, by window."""
        self.adopt(settings)

    def adopt(self, settings: "Settings") -> None:
        """Promise the k of these settings from now on; of no window less than before."""
        self._k = promised_k(settings)

    def withdraw(self, keys: KeyArray, *, everybody: bool = False) -> None:
        """Forget the trips of devices that take no part any more, given their keys.

        `everybody`: nothing is told of the windows under way, whoever made the trips.
        """
        if everybody:
            self._forget_all()
            self._windows.restart()
            return
        if not len(keys):
            return
        row, gone = self._rows.with_keys(keys), set(keys.tolist())
        self._ended = {
            window: [each for each in ended if each[0] not in gone]
            for window, ended in self._ended.items()
        }
        if self._trips is not None:
            self._trips.forget(row)
        self._rows.drop(row)

    def _forget_all(self) -> None:
        self._rows.drop(self._rows.used())
        self._trips, self._ended = None, {}

    def free(self, slots: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._rows.free(slots)

    def tick(
        self,
        positions: Positions,
        node: Int32Array,
        *,
        now: float,
        refused: Collection[int] = (),
    ) -> list[EndedTrips]:
        """Take in the positions of a tick; return the windows that are complete.

        `node` is negative off the graph and in zones; `now`: unix seconds up to which positions
        were passed on; `refused`: keys of devices of which no trip is told, also none that has
        ended already.
        """
        if self._windows.begins(now):
            self._forget_all()
        if self._trips is None:
            # Trips of the window before the first that is published may have begun unseen.
            self._trips = LiveTrips(self._rule, begins_s=now)
        row = self._rows.of(positions.slot)
        self._keep(self._trips.tick(row, positions.ts, positions.lat, positions.lon, node))
        if self._windows.is_due(now):
            silent, gone = self._trips.silent(now - self._rule.gap_s - self._late_s)
            self._keep(silent)
            self._rows.drop(gone)
        return [
            EndedTrips(each, k, self._trips_of(each, refused))
            for each, k in self._windows.ended(now, k=self._k)
        ]

    def _keep(self, ended: Sequence[EndedTrip]) -> None:
        for trip in ended:
            window = self._windows.of(trip.end_s)
            if self._windows.next is not None and window >= self._windows.next:
                self._ended.setdefault(window, []).append((int(self._rows.key[trip.row]), trip))

    def _trips_of(self, window: int, refused: Collection[int]) -> WindowTrips:
        """Return the trips of a window, and forget them."""
        return trips_of_window(
            [each for each in self._ended.pop(window, []) if each[0] not in refused],
            self._network,
            self._cell_at,
            begins_s=(window - 1) * self._every_s,
            ends_s=(window + 1) * self._every_s,
        )

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick. It holds where devices are."""
        return {
            "rows": self._rows.state(),
            "trips": None if self._trips is None else self._trips.state(),
            "windows": self._windows.state(),
            "ended": [
                [window, [[key, *trip] for key, trip in ended]]
                for window, ended in self._ended.items()
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._rows.restore(state["rows"])
        if state["trips"] is not None:
            self._trips = LiveTrips.restored(self._rule, state["trips"])
        self._windows.restore(state["windows"])
        self._ended = {
            window: [(key, EndedTrip(*trip)) for key, *trip in ended]
            for window, ended in state["ended"]
        }


class TripMessages:
    """Makes the message about the trips of a window.

    Parameters
    ----------
    settings
        The window, and into how many cells trips divide the network.
    network, version
        With coordinates, and its version.
    secret
        Of the thresholds.
    """

    def __init__(
        self, settings: "Settings", network: RoadNetwork, *, version: str, secret: bytes = b""
    ) -> None:
        self.n_classes: Counter[str] = Counter()
        """Classes of trips, by why they were suppressed, empty if they were published."""
        self._every_s, self._network, self._version = settings.trips_out.every_s, network, version
        self._topic = settings.topics.trips
        self._n_cells = n_cells_of(network, settings.counts.k)
        self._tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
        self._secret = secret
        self.adopt(settings)
        self._encode = msgspec.json.Encoder().encode

    def adopt(self, settings: "Settings") -> None:
        """Use the thresholds of these settings from now on."""
        self._k_extra = settings.region.k_extra

    def of(self, ended: EndedTrips, *, wall_ahead_s: float) -> Outgoing:
        """Return the message about a window; `wall_ahead_s` is added to the published times."""
        window, k, trips = ended
        thresholds = SecretThresholds(self._secret if self._k_extra else None, interval=window)
        classes = trip_classes(trips, k, n_cells=self._n_cells, thresholds=thresholds)
        broken = set(unkept(trips, classes, k))
        self.n_classes[UNVERIFIED] += len(broken)
        self.n_classes[PUBLISHED] += len(classes) - len(broken)
        begins_s = (window - 1) * self._every_s + wall_ahead_s
        body = TripsMessage(
            v=FORM_VERSION,
            time=round(begins_s + 2 * self._every_s, 3),
            window_s=self._every_s,
            network=self._version,
            k=k,
            n_cells=self._n_cells,
            trips=[self._told(each, begins_s) for i, each in enumerate(classes) if i not in broken],
            more=thresholds.most_more(k) if self._k_extra else msgspec.UNSET,
        )
        return Outgoing(self._topic, self._encode(body))

    def _told(self, each: TripClass, begins_s: float) -> TripsOfClass:
        step_s = 2 * self._every_s / N_STARTS
        first, last = each.start
        name = self._network.node_id
        tail, head = name[self._tail[each.roads]], name[self._network.neighbour_of[each.roads]]
        return TripsOfClass(
            origin=TripEnd(*each.origin),
            destination=TripEnd(*each.destination),
            start=(round(begins_s + first * step_s, 3), round(begins_s + (last + 1) * step_s, 3)),
            devices=each.n_devices,
            roads=list(zip(tail.tolist(), head.tolist(), strict=True)),
        )


def trips_of_window(
    ended: Sequence[tuple[int, EndedTrip]],
    network: RoadNetwork,
    cell_at: Int32Array,
    *,
    begins_s: float,
    ends_s: float,
) -> WindowTrips:
    """Return trips as classes are made of them.

    `ended`: number of the device of each, and trip; left out are those with an end without a node,
    and those that began before `begins_s` (unix seconds).
    """
    kept = [
        (device, trip)
        for device, trip in ended
        if trip.origin >= 0 and trip.destination >= 0 and trip.start_s >= begins_s
    ]
    start = np.array([trip.start_s for _, trip in kept], np.float64)
    step = np.floor((start - begins_s) / (ends_s - begins_s) * N_STARTS).astype(np.int64)
    return WindowTrips(
        np.array([device for device, _ in kept], np.uint64).view(np.int64),
        cell_at[[trip.origin for _, trip in kept]].astype(np.int64),
        cell_at[[trip.destination for _, trip in kept]].astype(np.int64),
        np.clip(step, 0, N_STARTS - 1),
        [_between_ends(trip, network, cell_at) for _, trip in kept],
    )


def _between_ends(trip: EndedTrip, network: RoadNetwork, cell_at: Int32Array) -> IntArray:
    """Return the arcs of a trip outside the cells of its ends."""
    arcs = route_arcs(network, trip.route)
    tail = np.searchsorted(network.first_arc_of, arcs, "right") - 1
    ends = cell_at[[trip.origin, trip.destination]]
    outside = ~np.isin(cell_at[tail], ends) & ~np.isin(cell_at[network.neighbour_of[arcs]], ends)
    return arcs[outside]
