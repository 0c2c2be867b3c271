"""Driving: compiled kernels that move the devices of a fleet along their routes.

The movement of a device is a sequence of legs: an arc driven with one speed profile, or a wait at
a place. A leg is fixed when it begins, by the device's own random numbers and the routes at that
moment. So the position of a device at time t does not depend on when it was computed before.
"""

from math import sqrt
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray

ACCELERATION_MPS2 = 1.5
JUNCTION_MPS = 5.5
"""Speed at which a junction is crossed without a stop, 20 km/h."""
STOP_SHARE = 0.2
"""Share of junctions with a stop: a red light, a queue, a pedestrian."""
STOP_S = (3.0, 40.0)
"""Shortest and longest stop at a junction."""
DWELL_S = (30.0, 240.0)
"""Shortest and longest wait at a destination in the rush hour, divided by the demand else."""
HOUR_S = 3600.0
_MODULUS, _FACTOR = 2147483647, 48271
"""Constants of Lehmer's generator."""

NODE = np.dtype([("lat", np.float64), ("lon", np.float64), ("degree", np.int32)], align=True)
"""A node, with what the driving kernels need."""

ARC = np.dtype(
    [("tail", np.int32), ("head", np.int32), ("length_m", np.float64), ("speed_mps", np.float64)],
    align=True,
)
"""An arc, with its free-flow speed, which no device ever exceeds."""

Roads: TypeAlias = tuple[RecordArray, RecordArray]
"""The network: `NODE` of shape (n,), `ARC` of shape (arcs,)."""

DEVICE = np.dtype(
    [
        ("arc", np.int32),
        ("node", np.int32),
        ("start_s", np.float64),
        ("end_s", np.float64),
        ("entry_mps", np.float64),
        ("exit_mps", np.float64),
        ("rest_lat", np.float64),
        ("rest_lon", np.float64),
        ("slot", np.int64),
        ("first_slot", np.int64),
        ("last_slot", np.int64),
        ("pace", np.float64),
        ("random", np.int64),
    ],
    align=True,
)
"""State of a device, changed in place.

arc, node
    The arc along which it drives, -1 if it waits; the node at which the leg ends.
start_s, end_s
    Start and end of the leg; the end is infinite if it is parked.
entry_mps, exit_mps
    Speed at the two ends of the arc.
rest_lat, rest_lon
    Where it waits.
slot, first_slot, last_slot
    Its destination, a row of the routes; and the range of destinations to choose from, all in
    its strongly connected component.
pace
    Its share of the free-flow speed, in (0, 1].
random
    State of its own random number generator (Lehmer), in 1..2**31-2.
"""


@inner_kernel
def uniform(device: np.void) -> float:
    """Draw the device's next number in (0, 1) with Lehmer's generator; 64 bits do not overflow."""
    device["random"] = device["random"] * _FACTOR % _MODULUS
    return float(device["random"]) / _MODULUS


@inner_kernel
def profile(
    length_m: float, cruise_mps: float, entry_mps: float, exit_mps: float
) -> tuple[float, float, float, float]:
    """Return (peak speed, acceleration, seconds of speeding up, seconds at the peak) on an arc.

    Both end speeds are at most `cruise_mps`, which is never exceeded. If the arc is too short
    for the required change of speed, the acceleration is as large as necessary.
    """
    change = abs(exit_mps * exit_mps - entry_mps * entry_mps)
    acceleration = max(ACCELERATION_MPS2, change / (2 * length_m))
    squares = entry_mps * entry_mps + exit_mps * exit_mps
    peak = min(cruise_mps, sqrt(acceleration * length_m + squares / 2))
    flat_m = max(0.0, length_m - (2 * peak * peak - squares) / (2 * acceleration))
    return peak, acceleration, (peak - entry_mps) / acceleration, flat_m / peak


@inner_kernel
def covered_m(device: np.void, at_s: float, roads: Roads) -> float:
    """Return the metres that a driving device has covered on its arc."""
    _, arcs = roads
    arc = arcs[device["arc"]]
    length_m, entry = arc["length_m"], device["entry_mps"]
    cruise = arc["speed_mps"] * device["pace"]
    peak, acceleration, up_s, flat_s = profile(length_m, cruise, entry, device["exit_mps"])
    elapsed_s = at_s - device["start_s"]
    rising_s = min(elapsed_s, up_s)
    falling_s = max(0.0, elapsed_s - up_s - flat_s)
    level_s = elapsed_s - rising_s - falling_s
    metres = entry * rising_s + acceleration * rising_s * rising_s / 2
    metres += peak * level_s
    metres += peak * falling_s - acceleration * falling_s * falling_s / 2
    return float(min(max(metres, 0.0), length_m))


@inner_kernel
def _wait(device: np.void, bounds_s: tuple[float, float], roads: Roads) -> None:
    nodes, _ = roads
    node = nodes[device["node"]]
    device["arc"] = -1
    device["rest_lat"] = node["lat"]
    device["rest_lon"] = node["lon"]
    wait_s = bounds_s[0] + (bounds_s[1] - bounds_s[0]) * uniform(device)
    device["end_s"] = device["start_s"] + wait_s


@inner_kernel
def _take(device: np.void, number: int, roads: Roads, next_arc_of: Int32Array) -> None:
    """Enter an arc; `next_arc_of` is -1 at nodes where the route ends."""
    nodes, arcs = roads
    arc = arcs[number]
    cruise = arc["speed_mps"] * device["pace"]
    entry = min(device["exit_mps"], cruise) if device["arc"] >= 0 else 0.0
    leave = cruise
    if next_arc_of[arc["head"]] < 0:
        leave = 0.0
    elif nodes[arc["head"]]["degree"] > 2:  # a junction, not a bend
        leave = 0.0 if uniform(device) < STOP_SHARE else min(cruise, JUNCTION_MPS)
    peak, acceleration, up_s, flat_s = profile(arc["length_m"], cruise, entry, leave)
    device["arc"] = number
    device["node"] = arc["head"]
    device["entry_mps"] = entry
    device["exit_mps"] = leave
    device["end_s"] = device["start_s"] + up_s + flat_s + (peak - leave) / acceleration


@inner_kernel
def demand_at(at_s: float, day: FloatArray) -> float:
    """Return the demand at a time; `day` has the seconds since midnight at time 0, and 24 hours."""
    return float(day[1 + int((day[0] + at_s) // HOUR_S) % 24])


@inner_kernel
def _arrive(device: np.void, roads: Roads, day: FloatArray) -> None:
    """Choose the next destination, and rest at the present one."""
    first = device["first_slot"]
    choice = int((device["last_slot"] - first + 1) * uniform(device))
    device["slot"] = first + choice
    demand = demand_at(device["start_s"], day)
    _wait(device, (DWELL_S[0] / demand, DWELL_S[1] / demand), roads)


@inner_kernel
def _begin_leg(device: np.void, roads: Roads, routes: Int32Array, day: FloatArray) -> None:
    """End the current leg of a device and begin the next one."""
    device["start_s"] = device["end_s"]
    next_arc_of = routes[device["slot"]]
    arc = next_arc_of[device["node"]]
    if arc < 0:
        _arrive(device, roads, day)
    elif device["arc"] >= 0 and device["exit_mps"] == 0:
        _wait(device, STOP_S, roads)
    else:
        _take(device, arc, roads, next_arc_of)


@inner_kernel
def _locate(device: np.void, at_s: float, roads: Roads) -> tuple[float, float]:
    if device["arc"] < 0:
        return device["rest_lat"], device["rest_lon"]
    nodes, arcs = roads
    arc = arcs[device["arc"]]
    share = covered_m(device, at_s, roads) / arc["length_m"]
    tail, head = nodes[arc["tail"]], nodes[arc["head"]]
    east = (head["lon"] - tail["lon"] + 180.0) % 360.0 - 180.0  # the shorter way around the earth
    lat = tail["lat"] + share * (head["lat"] - tail["lat"])
    return lat, (tail["lon"] + share * east + 180.0) % 360.0 - 180.0


@kernel
def drive(  # noqa: PLR0917  kernels take no keywords
    device: IntArray,
    at_s: FloatArray,
    fleet: RecordArray,
    roads: Roads,
    routes: Int32Array,
    day: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Move each device to its time; return its latitude and longitude then, shape (m,) each.

    Parameters
    ----------
    device, at_s
        Index of the device and its time, shape (m,); the times of a device must not decrease.
    fleet
        Records of type `DEVICE`, changed in place, shape (devices,).
    roads
        The network.
    routes
        The arc to take from each node towards destination `slot`, -1 at the destination, shape
        (slots, n).
    day
        Demand by time of day, see `demand_at`, shape (25,).
    """
    lat, lon = np.empty(len(device)), np.empty(len(device))
    for i in range(len(device)):
        one = fleet[device[i]]
        while one["end_s"] <= at_s[i]:
            _begin_leg(one, roads, routes, day)
        lat[i], lon[i] = _locate(one, at_s[i], roads)
    return lat, lon
