"""How one device drives, stops and waits: compiled kernels over the arrays of a fleet.

A device's life is a chain of legs: an arc driven at one speed profile, or a wait at a place.
A leg is fixed when it begins, by the device's own random numbers and the routes of that moment,
so where a device is at time t does not depend on when anybody looked.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

ACCELERATION_MPS2 = 1.5
JUNCTION_MPS = 5.5
"""Crossing or turning without having to stop, 20 km/h."""
STOP_SHARE = 0.2
"""Of the junctions passed: a red light, a queue, someone crossing."""
STOP_S = (3.0, 40.0)
DWELL_S = (30.0, 240.0)
"""At a destination."""
_MODULUS, _FACTOR = 2147483647, 48271


class Roads(NamedTuple):
    """The network as a driver needs it: nodes by (n,), arcs by (arcs,)."""

    lat: FloatArray
    lon: FloatArray
    degree: Int32Array
    tail_of: Int32Array
    head_of: Int32Array
    length_m: FloatArray
    speed_mps: FloatArray
    """Free flow; no device is ever faster."""


class Fleet(NamedTuple):
    """Where each device is on its way, all of shape (devices,), changed in place."""

    arc: Int32Array
    """The arc it drives along, or -1: it waits."""
    node: Int32Array
    """Where the leg ends."""
    start_s: FloatArray
    end_s: FloatArray
    """Of the leg; infinite when parked."""
    entry_mps: FloatArray
    exit_mps: FloatArray
    """Speed at both ends of the arc."""
    rest_lat: FloatArray
    rest_lon: FloatArray
    """Where it waits."""
    slot: IntArray
    """Its destination, a row of the routes."""
    first_slot: IntArray
    last_slot: IntArray
    """The destinations it may choose from, all in its strongly connected component."""
    pace: FloatArray
    """Its share of the free-flow speed, in (0, 1]."""
    random: IntArray
    """State of its own random numbers (Lehmer), in 1..2**31-2."""


@kernel
def uniform(fleet: Fleet, device: int) -> float:
    """Draw the device's next number in (0, 1) (Lehmer's generator, no overflow in 64 bits)."""
    fleet.random[device] = fleet.random[device] * _FACTOR % _MODULUS
    return float(fleet.random[device]) / _MODULUS


@kernel
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


@kernel
def covered_m(device: int, at_s: float, fleet: Fleet, roads: Roads) -> float:
    """Return how far a driving device has come along its arc."""
    arc = fleet.arc[device]
    length_m = roads.length_m[arc]
    entry = fleet.entry_mps[device]
    cruise = roads.speed_mps[arc] * fleet.pace[device]
    peak, acceleration, up_s, flat_s = profile(length_m, cruise, entry, fleet.exit_mps[device])
    elapsed_s = at_s - fleet.start_s[device]
    rising_s = min(elapsed_s, up_s)
    falling_s = max(0.0, elapsed_s - up_s - flat_s)
    level_s = elapsed_s - rising_s - falling_s
    metres = entry * rising_s + acceleration * rising_s * rising_s / 2
    metres += peak * level_s
    metres += peak * falling_s - acceleration * falling_s * falling_s / 2
    return float(min(max(metres, 0.0), length_m))


@kernel
def _wait(device: int, bounds_s: tuple[float, float], fleet: Fleet, roads: Roads) -> None:
    node = fleet.node[device]
    fleet.arc[device] = -1
    fleet.rest_lat[device] = roads.lat[node]
    fleet.rest_lon[device] = roads.lon[node]
    wait_s = bounds_s[0] + (bounds_s[1] - bounds_s[0]) * uniform(fleet, device)
    fleet.end_s[device] = fleet.start_s[device] + wait_s


@kernel
def _take(device: int, arc: int, fleet: Fleet, roads: Roads, next_arc_of: Int32Array) -> None:
    """Enter an arc; `next_arc_of` says at which nodes the way goes on."""
    cruise = roads.speed_mps[arc] * fleet.pace[device]
    entry = min(fleet.exit_mps[device], cruise) if fleet.arc[device] >= 0 else 0.0
    head = roads.head_of[arc]
    leave = cruise
    if next_arc_of[head] < 0:
        leave = 0.0
    elif roads.degree[head] > 2:  # a bend is no junction
        leave = 0.0 if uniform(fleet, device) < STOP_SHARE else min(cruise, JUNCTION_MPS)
    peak, acceleration, up_s, flat_s = profile(roads.length_m[arc], cruise, entry, leave)
    fleet.arc[device] = arc
    fleet.node[device] = head
    fleet.entry_mps[device] = entry
    fleet.exit_mps[device] = leave
    fleet.end_s[device] = fleet.start_s[device] + up_s + flat_s + (peak - leave) / acceleration


@kernel
def _begin_leg(device: int, fleet: Fleet, roads: Roads, routes: Int32Array) -> None:
    """End the leg of a device and begin the next."""
    fleet.start_s[device] = fleet.end_s[device]
    next_arc_of = routes[fleet.slot[device]]
    arc = next_arc_of[fleet.node[device]]
    if arc < 0:  # it is there
        first = fleet.first_slot[device]
        choice = int((fleet.last_slot[device] - first + 1) * uniform(fleet, device))
        fleet.slot[device] = first + choice
        _wait(device, DWELL_S, fleet, roads)
    elif fleet.arc[device] >= 0 and fleet.exit_mps[device] == 0:
        _wait(device, STOP_S, fleet, roads)
    else:
        _take(device, arc, fleet, roads, next_arc_of)


@kernel
def _locate(device: int, at_s: float, fleet: Fleet, roads: Roads) -> tuple[float, float]:
    arc = fleet.arc[device]
    if arc < 0:
        return fleet.rest_lat[device], fleet.rest_lon[device]
    share = covered_m(device, at_s, fleet, roads) / roads.length_m[arc]
    tail, head = roads.tail_of[arc], roads.head_of[arc]
    east = (roads.lon[head] - roads.lon[tail] + 180.0) % 360.0 - 180.0  # the short way round
    lat = roads.lat[tail] + share * (roads.lat[head] - roads.lat[tail])
    return lat, (roads.lon[tail] + share * east + 180.0) % 360.0 - 180.0


@kernel
def drive(
    device: IntArray, at_s: FloatArray, fleet: Fleet, roads: Roads, routes: Int32Array
) -> tuple[FloatArray, FloatArray]:
    """Carry each device on to its time; return where it is then, in degrees, shape (m,) each.

    Parameters
    ----------
    device, at_s
        Shape (m,); the times of one device must not fall.
    routes
        The arc to take towards destination `slot` from each node, -1 there, shape (slots, n).
    """
    lat, lon = np.empty(len(device)), np.empty(len(device))
    for i in range(len(device)):
        while fleet.end_s[device[i]] <= at_s[i]:
            _begin_leg(device[i], fleet, roads, routes)
        lat[i], lon[i] = _locate(device[i], at_s[i], fleet, roads)
    return lat, lon
