"""How one device drives, stops and waits: compiled kernels over the records of a fleet.

A device's life is a chain of legs: an arc driven at one speed profile, or a wait at a place.
A leg is fixed when it begins, by the device's own random numbers and the routes of that moment,
so where a device is at time t does not depend on when anybody looked.
"""

from math import sqrt
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray

ACCELERATION_MPS2 = 1.5
JUNCTION_MPS = 5.5
"""Crossing or turning without having to stop, 20 km/h."""
STOP_SHARE = 0.2
"""Of the junctions passed: a red light, a queue, someone crossing."""
STOP_S = (3.0, 40.0)
DWELL_S = (30.0, 240.0)
"""At a destination."""
_MODULUS, _FACTOR = 2147483647, 48271


NODE = np.dtype([("lat", np.float64), ("lon", np.float64), ("degree", np.int32)], align=True)
"""A node as a driver needs it."""

ARC = np.dtype(
    [("tail", np.int32), ("head", np.int32), ("length_m", np.float64), ("speed_mps", np.float64)],
    align=True,
)
"""An arc as a driver needs it; no device is ever faster than its speed, that of free flow."""

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
"""Where a device is on its way; changed in place.

arc, node
    The arc it drives along, or -1: it waits; where the leg ends.
start_s, end_s
    Of the leg; infinite when parked.
entry_mps, exit_mps
    Speed at both ends of the arc.
rest_lat, rest_lon
    Where it waits.
slot, first_slot, last_slot
    Its destination, a row of the routes; those that it may choose from, all in its strongly
    connected component.
pace
    Its share of the free-flow speed, in (0, 1].
random
    State of its own random numbers (Lehmer), in 1..2**31-2.
"""


@inner_kernel
def uniform(device: np.void) -> float:
    """Draw the device's next number in (0, 1) (Lehmer's generator, no overflow in 64 bits)."""
    device["random"] = device["random"] * _FACTOR % _MODULUS
    return float(device["random"]) / _MODULUS


@inner_kernel
def profile(
    length_m: float, cruise_mps: float, entry_mps: float, exit_mps: float
) -> tuple[float, float, float, float]:
    """Return (peak speed, acceleration, s of speeding up, s at the peak) along an arc.

    Both end speeds are at most `cruise_mps`, which is never exceeded. Where the arc is too short
    for the change of speed asked, the acceleration is whatever it takes.
    """
    change = abs(exit_mps * exit_mps - entry_mps * entry_mps)
    acceleration = max(ACCELERATION_MPS2, change / (2 * length_m))
    squares = entry_mps * entry_mps + exit_mps * exit_mps
    peak = min(cruise_mps, sqrt(acceleration * length_m + squares / 2))
    flat_m = max(0.0, length_m - (2 * peak * peak - squares) / (2 * acceleration))
    return peak, acceleration, (peak - entry_mps) / acceleration, flat_m / peak


@inner_kernel
def covered_m(device: np.void, at_s: float, roads: Roads) -> float:
    """Return how far a driving device has come along its arc."""
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
    """Enter the arc of this number; `next_arc_of` says at which nodes the way goes on."""
    nodes, arcs = roads
    arc = arcs[number]
    cruise = arc["speed_mps"] * device["pace"]
    entry = min(device["exit_mps"], cruise) if device["arc"] >= 0 else 0.0
    leave = cruise
    if next_arc_of[arc["head"]] < 0:
        leave = 0.0
    elif nodes[arc["head"]]["degree"] > 2:  # a bend is no junction
        leave = 0.0 if uniform(device) < STOP_SHARE else min(cruise, JUNCTION_MPS)
    peak, acceleration, up_s, flat_s = profile(arc["length_m"], cruise, entry, leave)
    device["arc"] = number
    device["node"] = arc["head"]
    device["entry_mps"] = entry
    device["exit_mps"] = leave
    device["end_s"] = device["start_s"] + up_s + flat_s + (peak - leave) / acceleration


@inner_kernel
def _begin_leg(device: np.void, roads: Roads, routes: Int32Array) -> None:
    """End the leg of a device and begin the next."""
    device["start_s"] = device["end_s"]
    next_arc_of = routes[device["slot"]]
    arc = next_arc_of[device["node"]]
    if arc < 0:  # it is there
        first = device["first_slot"]
        choice = int((device["last_slot"] - first + 1) * uniform(device))
        device["slot"] = first + choice
        _wait(device, DWELL_S, roads)
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
    east = (head["lon"] - tail["lon"] + 180.0) % 360.0 - 180.0  # the short way round
    lat = tail["lat"] + share * (head["lat"] - tail["lat"])
    return lat, (tail["lon"] + share * east + 180.0) % 360.0 - 180.0


@kernel
def drive(
    device: IntArray, at_s: FloatArray, fleet: RecordArray, roads: Roads, routes: Int32Array
) -> tuple[FloatArray, FloatArray]:
    """Carry each device on to its time; return where it is then, in degrees, shape (m,) each.

    Parameters
    ----------
    device, at_s
        Shape (m,); the times of one device must not fall.
    fleet
        Of `DEVICE`, changed in place, shape (devices,).
    routes
        The arc to take towards destination `slot` from each node, -1 there, shape (slots, n).
    """
    lat, lon = np.empty(len(device)), np.empty(len(device))
    for i in range(len(device)):
        one = fleet[device[i]]
        while one["end_s"] <= at_s[i]:
            _begin_leg(one, roads, routes)
        lat[i], lon[i] = _locate(one, at_s[i], roads)
    return lat, lon
