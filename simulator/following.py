"""Car following and queues at signals: all devices of a network move together, step by step.

Each device follows the one ahead by the Intelligent Driver Model [1]_, on its road and on the next
ones of its route. Every crossing has a signal with a fixed cycle: roads that run rather north and
south have green in one half of it, the others in the other half. Who has red, or no room on the
next road, stands at the stop line, and whoever comes next stands behind.

References
----------
.. [1] M. Treiber, A. Hennecke, D. Helbing, "Congested traffic states in empirical observations and
   microscopic simulations", Physical Review E 62, 2000.
"""

from math import inf, sqrt
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, RecordArray
from simulator.driving import ACCELERATION_MPS2, Roads, arrive, place_on

STEP_S = 0.5
VEHICLE_M = 5.0
CYCLE_S = 60.0
JAM_S = 300.0
"""Who stands first on a road for so long gives up: the trip ends there. It frees a locked ring."""
HARDEST_MPS2 = 4.0
"""Who could stop only harder than this passes a signal that turns red."""
_HEADWAY_S, _GAP_M, _BRAKE_MPS2 = 1.5, 2.0, 2.0
"""Of the model: the time to the device ahead, the gap when both stand, comfortable braking."""
_STANDS_MPS = 0.1
_LOOK_M = 150.0
_LEAST_GAP_M = 0.1

MOTION = np.dtype([("along_m", np.float64), ("speed_mps", np.float64)], align=True)
"""Metres from the beginning of its road to the front of a device, and its speed."""

World: TypeAlias = tuple[Roads, BoolArray, Int32Array, FloatArray]
"""The network, which roads run rather north, and routes and day as for `driving.drive`."""


class Following:
    """Devices on a network that make way for each other.

    Parameters
    ----------
    fleet
        Records of type `driving.DEVICE`, all at rest, changed in place, shape (devices,). While one
        is on a road, `start_s` is when it last moved.
    roads, routes, day
        As for `driving.drive`.
    began_s
        When the first device may start.

    Notes
    -----
    O(n log n) a step, for all devices on the way. Between two steps a device is on the line between
    both places, so at a corner it may be some metres off the road.
    """

    def __init__(
        self,
        fleet: RecordArray,
        roads: Roads,
        routes: Int32Array,
        day: FloatArray,
        *,
        began_s: float,
    ) -> None:
        nodes, arcs = roads
        tail, head = nodes[arcs["tail"]], nodes[arcs["head"]]
        north = np.abs(head["lat"] - tail["lat"])
        east = np.abs((head["lon"] - tail["lon"] + 180.0) % 360.0 - 180.0)
        is_north = north > east * np.cos(np.radians(tail["lat"]))
        self._fleet = fleet
        self._world: World = (roads, is_north, routes, day)
        self.motion: RecordArray = np.zeros(len(fleet), MOTION)
        self._rear: RecordArray = np.zeros(len(arcs), MOTION)
        self.now_s = began_s
        self._now = self._before = locate(fleet, self.motion, roads)

    def move(self, device: IntArray, at_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return latitude and longitude of each device at its time; no time may decrease."""
        lat, lon = np.empty(len(device)), np.empty(len(device))
        done = 0
        while done < len(device):
            while self.now_s < at_s[done]:
                self._step()
            stop = max(done + 1, int(np.searchsorted(at_s, self.now_s, side="right")))
            some = slice(done, stop)
            share = 1.0 - (self.now_s - at_s[some]) / STEP_S
            for out, before, now in zip((lat, lon), self._before, self._now, strict=True):
                was = before[device[some]]
                way = (now[device[some]] - was + 180.0) % 360.0 - 180.0
                out[some] = was + share * way
            done = stop
        return lat, (lon + 180.0) % 360.0 - 180.0

    def _step(self) -> None:
        arc, along_m = self._fleet["arc"], self.motion["along_m"]
        on_road = np.flatnonzero(arc >= 0)
        order = on_road[np.lexsort((-along_m[on_road], arc[on_road]))]
        step(order, self._fleet, self.motion, self._rear, self._world, self.now_s)
        self.now_s += STEP_S
        self._before, self._now = self._now, locate(self._fleet, self.motion, self._world[0])


@kernel
def locate(fleet: RecordArray, motion: RecordArray, roads: Roads) -> tuple[FloatArray, FloatArray]:
    """Return latitude and longitude of each device, shape (devices,) each."""
    lat, lon = np.empty(len(fleet)), np.empty(len(fleet))
    for i in range(len(fleet)):
        if fleet[i]["arc"] < 0:
            lat[i], lon[i] = fleet[i]["rest_lat"], fleet[i]["rest_lon"]
        else:
            lat[i], lon[i] = place_on(fleet[i]["arc"], motion[i]["along_m"], roads)
    return lat, lon


@inner_kernel
def has_green(arc: int, at_s: float, world: World) -> bool:
    """Return whether a road may be left over its end; crossings alone have signals."""
    (nodes, arcs), is_north, _, _ = world
    node = arcs[arc]["head"]
    if nodes[node]["degree"] <= 2:
        return True
    begins_s = CYCLE_S * (node * 0.6180339887498949 % 1.0)  # spread evenly over the nodes
    return bool(((at_s + begins_s) % CYCLE_S < CYCLE_S / 2) == is_north[arc])


@inner_kernel
def acceleration(speed_mps: float, wanted_mps: float, gap_m: float, ahead_mps: float) -> float:
    """Return the acceleration of the model; a way that is free has an infinite gap."""
    closing_m = speed_mps * (speed_mps - ahead_mps) / (2 * sqrt(ACCELERATION_MPS2 * _BRAKE_MPS2))
    needed_m = _GAP_M + max(0.0, speed_mps * _HEADWAY_S + closing_m)
    free = 1.0 - (speed_mps / wanted_mps) ** 4
    return float(ACCELERATION_MPS2 * (free - (needed_m / max(gap_m, _LEAST_GAP_M)) ** 2))


@inner_kernel
def _find_ends(
    order: IntArray,
    fleet: RecordArray,
    motion: RecordArray,
    rear: RecordArray,
    is_first: BoolArray,
) -> None:
    """Fill in the last device of each road, and which devices are the first of theirs."""
    for arc in range(len(rear)):
        rear[arc]["along_m"] = inf
    for at in range(len(order)):
        i = order[at]
        arc = fleet[i]["arc"]
        is_first[at] = rear[arc]["along_m"] == inf
        rear[arc] = motion[i]


@inner_kernel
def _ahead(
    device: np.void, motion: np.void, rear: RecordArray, world: World, now_s: float
) -> tuple[float, float]:
    """Return gap and speed of what is ahead of the first device of a road: a signal or device."""
    (_, arcs), _, routes, _ = world
    speed_mps, arc = motion["speed_mps"], device["arc"]
    gap_m = arcs[arc]["length_m"] - motion["along_m"]
    while gap_m < _LOOK_M:
        on = routes[device["slot"], arcs[arc]["head"]]
        if on < 0:
            break
        can_stop = speed_mps * speed_mps <= 2 * HARDEST_MPS2 * max(gap_m, _LEAST_GAP_M)
        if can_stop and not has_green(arc, now_s, world):
            return gap_m, 0.0
        if rear[on]["along_m"] < inf:
            return gap_m + rear[on]["along_m"] - VEHICLE_M, rear[on]["speed_mps"]
        gap_m += arcs[on]["length_m"]
        arc = on
    return inf, 0.0


@inner_kernel
def _leave(device: np.void, motion: np.void, world: World, now_s: float) -> None:
    """Let a device rest off the road, at the end of it."""
    roads, _, _, day = world
    device["start_s"] = now_s
    arrive(device, roads, day)
    motion["along_m"] = motion["speed_mps"] = 0.0


@inner_kernel
def _enter(device: np.void, motion: np.void, rear: RecordArray, world: World, now_s: float) -> None:
    """Take a device over the end of its road, as far as there is room; or let its trip end."""
    (_, arcs), _, routes, _ = world
    while device["arc"] >= 0 and motion["along_m"] >= arcs[device["arc"]]["length_m"]:
        length_m = arcs[device["arc"]]["length_m"]
        on = routes[device["slot"], device["node"]]
        if on < 0:
            _leave(device, motion, world, now_s)
        elif rear[on]["along_m"] < VEHICLE_M:
            motion["along_m"], motion["speed_mps"] = length_m, 0.0
            return
        else:
            room_m = rear[on]["along_m"] - VEHICLE_M
            motion["along_m"] = min(motion["along_m"] - length_m, room_m)
            device["arc"], device["node"] = on, arcs[on]["head"]
            rear[on]["along_m"] = min(motion["along_m"], arcs[on]["length_m"])
            rear[on]["speed_mps"] = motion["speed_mps"]


@inner_kernel
def _new_speed(
    device: np.void, motion: np.void, gap_m: float, ahead_mps: float, world: World
) -> float:
    (_, arcs), _, _, _ = world
    wanted_mps = arcs[device["arc"]]["speed_mps"] * device["pace"]
    speed_mps = motion["speed_mps"]
    change = acceleration(speed_mps, wanted_mps, gap_m, ahead_mps) * STEP_S
    return float(min(max(0.0, speed_mps + change), wanted_mps))


@inner_kernel
def _start(device: np.void, motion: np.void, rear: RecordArray, world: World, now_s: float) -> None:
    """Let a device that has rested drive off, if there is room on the first road of its route."""
    (_, arcs), _, routes, _ = world
    on = routes[device["slot"], device["node"]]
    if on < 0:
        _leave(device, motion, world, now_s)
    elif rear[on]["along_m"] > VEHICLE_M + _GAP_M:
        device["arc"], device["node"], device["start_s"] = on, arcs[on]["head"], now_s
        rear[on]["along_m"] = rear[on]["speed_mps"] = 0.0


@kernel
def step(  # noqa: PLR0917  kernels take no keywords
    order: IntArray,
    fleet: RecordArray,
    motion: RecordArray,
    rear: RecordArray,
    world: World,
    now_s: float,
) -> None:
    """Advance all devices by `STEP_S`, in place.

    Parameters
    ----------
    order
        The devices on roads, by road, and on each from the front to the rear, shape (m,).
    fleet, motion
        Records of types `driving.DEVICE` and `MOTION`, shape (devices,).
    rear
        The last device of each road, of type `MOTION`, shape (arcs,): a buffer.
    """
    is_first, speed_mps = np.empty(len(order), np.bool_), np.empty(len(order))
    _find_ends(order, fleet, motion, rear, is_first)
    for at in range(len(order)):
        i, front = order[at], order[at - 1]
        if is_first[at]:
            gap_m, ahead_mps = _ahead(fleet[i], motion[i], rear, world, now_s)
        else:
            gap_m = motion[front]["along_m"] - VEHICLE_M - motion[i]["along_m"]
            ahead_mps = motion[front]["speed_mps"]
        speed_mps[at] = _new_speed(fleet[i], motion[i], gap_m, ahead_mps, world)
    for at in range(len(order)):
        i, front = order[at], order[at - 1]
        one, most_m = motion[i], inf
        if is_first[at] and now_s - fleet[i]["start_s"] > JAM_S:
            _leave(fleet[i], one, world, now_s)
            continue
        if not is_first[at] and fleet[front]["arc"] == fleet[i]["arc"]:
            most_m = max(one["along_m"], motion[front]["along_m"] - VEHICLE_M)
        one["along_m"] += STEP_S * (one["speed_mps"] + speed_mps[at]) / 2
        one["speed_mps"] = speed_mps[at]
        if one["along_m"] > most_m:
            one["along_m"], one["speed_mps"] = most_m, 0.0
        if one["speed_mps"] > _STANDS_MPS:
            fleet[i]["start_s"] = now_s
        _enter(fleet[i], one, rear, world, now_s)
    for i in range(len(fleet)):
        if fleet[i]["arc"] < 0 and fleet[i]["end_s"] <= now_s:
            _start(fleet[i], motion[i], rear, world, now_s)
