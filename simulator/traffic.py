"""Traffic: devices that move over a road network, as a pure function of network, seed and time."""

import numpy as np

from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from simulator.driving import ARC, DEVICE, NODE, Roads, demand_at, drive
from simulator.shortest_paths import Router

MAX_SLOTS = 64
"""Most destinations at one moment."""
MIN_SLOTS = 8
"""Fewest destinations at one moment."""
ROUTES_BUDGET = 2_000_000
"""Most routes (destination, node) to compute at the start, unless `MIN_SLOTS` needs more."""
REFRESH_S = 15.0
"""Interval at which one destination is replaced."""
WARM_UP_S = 300.0
"""Longest time for which devices have been driving when playing starts."""
PACE = (0.7, 1.0)
"""Slowest and fastest share of the free-flow speed."""
RUSH_HOUR = 1.0
HOURLY = (
    *(0.10, 0.06, 0.05, 0.05, 0.08, 0.20, 0.50, 0.90, 1.00, 0.75, 0.65, 0.70),
    *(0.72, 0.72, 0.75, 0.85, 0.95, 1.00, 0.85, 0.60, 0.45, 0.35, 0.25, 0.15),
)
"""Demand in each hour of the day, relative to the rush hours; fictitious, of a working day."""
_LEHMER_STATES = (1, 2**31 - 1)


class Traffic:
    """`n_devices` on a road network, parked or driving along fastest paths.

    Destinations are a pool of nodes, each with its tree of fastest paths. A device picks one,
    drives there, dwells, and picks the next. Every `REFRESH_S` the oldest destination is
    replaced, and devices on the way to it turn to the new one at the next node. Devices stay in
    strongly connected components with at least two destinations (always including the largest),
    so none is trapped by one-way streets. On a network without such components all are parked.

    Parameters
    ----------
    parked_share
        Share of devices that never move, 0 to 1; they are anywhere along the roads.
    begins_s
        Time of day at the start, in seconds since midnight: the less demand there is at an hour,
        see `HOURLY`, the longer devices rest at their destinations. None: it is always rush hour.

    Raises
    ------
    InputError
        If the network has no nodes or no coordinates.

    Notes
    -----
    Equal network, number, seed and share give bitwise equal positions at each time, whatever
    times were requested before. The start costs one Dijkstra run for each destination, a
    refresh one more. Moving a device costs less than 1 µs (if it is moved once a second). Each
    drives as if it were alone, and stops at some junctions by chance.
    """

    def __init__(
        self,
        network: RoadNetwork,
        n_devices: int,
        *,
        seed: int = 0,
        parked_share: float = 0.1,
        begins_s: float | None = None,
    ) -> None:
        if not network.n_nodes or not network.has_coordinates:
            raise InputError("the network has no nodes with coordinates: nothing can move on it")
        self.n_devices = n_devices
        self._seed = seed
        hours = (RUSH_HOUR,) * len(HOURLY) if begins_s is None else HOURLY
        self._day = np.array([begins_s or 0.0, *hours])
        self._router = Router(network)
        self._component_of_slot = _share_out(self._router.strong_of)
        self._by_component = np.argsort(self._router.strong_of, kind="stable")
        self._refreshes = 0
        nodes = np.zeros(network.n_nodes, NODE)
        nodes["lat"], nodes["lon"] = network.lat, network.lon
        nodes["degree"] = np.diff(network.first_arc_of)
        arcs = np.zeros(len(network.neighbour_of), ARC)
        arcs["tail"], arcs["head"] = self._router.tail_of, network.neighbour_of
        arcs["length_m"], arcs["speed_mps"] = self._router.length_m, self._router.speed_mps
        self.roads: Roads = (nodes, arcs)
        rng = np.random.default_rng([seed, 0])
        destination = self._draw_nodes(self._component_of_slot, rng)
        self.routes: Int32Array = np.stack(
            [self._router.next_arcs_to(node) for node in destination.tolist()]
        )
        can_drive = np.bincount(self._router.strong_of).max() > 1
        n_parked = round(parked_share * n_devices) if can_drive else n_devices
        self.fleet = self._place(rng, n_parked=n_parked)
        self.move(np.arange(n_devices), np.zeros(n_devices))

    def advance(self, to_s: float) -> tuple[FloatArray, FloatArray]:
        """Move every device to one time; return latitudes and longitudes, shape (devices,)."""
        return self.move(np.arange(self.n_devices), np.full(self.n_devices, to_s))

    def move(self, device: IntArray, at_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Move each device to its time; return its latitude and longitude then, shape (m,) each.

        Parameters
        ----------
        device, at_s
            Index of the device, and seconds since the start, shape (m,). Times must not
            decrease, within a call and from call to call.
        """
        parts = []
        done = 0
        while True:
            refresh_s = (self._refreshes + 1) * REFRESH_S
            stop = int(np.searchsorted(at_s, refresh_s, side="left"))
            parts.append(self._drive(device[done:stop], at_s[done:stop]))
            if stop == len(device):
                break
            self._refresh(refresh_s)
            done = stop
        return np.concatenate([lat for lat, _ in parts]), np.concatenate([lon for _, lon in parts])

    def _drive(self, device: IntArray, at_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        return drive(device, at_s, self.fleet, self.roads, self.routes, self._day)

    def _refresh(self, at_s: float) -> None:
        """Replace the oldest destination, after all devices have been moved to this moment."""
        before = np.full(self.n_devices, np.nextafter(at_s, 0.0))
        self._drive(np.arange(self.n_devices), before)
        self._refreshes += 1
        slot = (self._refreshes - 1) % len(self.routes)
        rng = np.random.default_rng([self._seed, self._refreshes])
        node = self._draw_nodes(self._component_of_slot[slot : slot + 1], rng)
        self.routes[slot] = self._router.next_arcs_to(int(node[0]))

    def _draw_nodes(self, component: Int32Array, rng: np.random.Generator) -> IntArray:
        """Draw one node from each of the given strongly connected components."""
        strong_of = self._router.strong_of[self._by_component]
        first = np.searchsorted(strong_of, component, side="left")
        last = np.searchsorted(strong_of, component, side="right")
        return self._by_component[rng.integers(first, last)]

    def _place(self, rng: np.random.Generator, *, n_parked: int) -> RecordArray:
        """Place all devices at rest; those that drive start during the warm-up, at night later."""
        n = self.n_devices
        slot = rng.integers(len(self.routes), size=n)
        component = self._component_of_slot[slot]
        node = self._draw_nodes(component, rng).astype(np.int32)
        end_s = rng.uniform(0.0, WARM_UP_S, n) / demand_at(0.0, self._day) - WARM_UP_S
        nodes, _ = self.roads
        lat, lon = nodes["lat"][node], nodes["lon"][node]
        parked = rng.permutation(n)[:n_parked]
        end_s[parked] = np.inf
        lat[parked], lon[parked] = self._draw_points(rng, n_parked)
        fleet = np.zeros(n, DEVICE)
        fleet["arc"], fleet["node"] = -1, node
        fleet["start_s"], fleet["end_s"] = -WARM_UP_S, end_s
        fleet["rest_lat"], fleet["rest_lon"] = lat, lon
        fleet["slot"] = slot
        fleet["first_slot"] = np.searchsorted(self._component_of_slot, component, side="left")
        fleet["last_slot"] = np.searchsorted(self._component_of_slot, component, side="right") - 1
        fleet["pace"] = rng.uniform(*PACE, n)
        fleet["random"] = rng.integers(*_LEHMER_STATES, size=n)
        return fleet

    def _draw_points(self, rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
        """Draw points along the roads, or at nodes if there are no roads."""
        nodes, arcs = self.roads
        if not len(arcs):
            node = rng.integers(len(nodes), size=n)
            return nodes["lat"][node], nodes["lon"][node]
        by_length = np.cumsum(arcs["length_m"])
        arc = arcs[np.searchsorted(by_length, rng.random(n) * by_length[-1])]
        tail, head, share = nodes[arc["tail"]], nodes[arc["head"]], rng.random(n)
        east = (head["lon"] - tail["lon"] + 180.0) % 360.0 - 180.0
        lat = tail["lat"] + share * (head["lat"] - tail["lat"])
        return lat, (tail["lon"] + share * east + 180.0) % 360.0 - 180.0


def _share_out(strong_of: Int32Array) -> Int32Array:
    """Return the component of each destination slot, rising, in proportion to their sizes."""
    n_slots = int(np.clip(ROUTES_BUDGET // len(strong_of), MIN_SLOTS, MAX_SLOTS))
    size = np.bincount(strong_of)
    n_slots_of = n_slots * size // len(strong_of)
    n_slots_of[n_slots_of < 2] = 0  # a single destination leaves nowhere to drive to
    n_slots_of[np.argmax(size)] += n_slots - n_slots_of.sum()
    return np.repeat(np.arange(len(size), dtype=np.int32), n_slots_of)
