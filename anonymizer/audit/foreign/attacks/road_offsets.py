"""Offsets: the shift by which all positions of an id lie on roads again, and the home behind it."""

import numpy as np
from scipy.spatial import KDTree

from anonymizer.audit.foreign.attack import ForeignAttack, NotMounted, Trials
from anonymizer.audit.foreign.attacks.trip_ends import mounted
from anonymizer.audit.foreign.persons import Ends, most_visited
from anonymizer.audit.foreign.release import ForeignCase, PointRelease, plane_of
from anonymizer.domain.arrays import FloatArray

_MOST_PLACES = 200
_REACH_M, _STEPS_M = 1200.0, (60.0, 15.0, 5.0)
_ROAD_M = 60.0
"""Farther from a road, a position says nothing."""


def shift_onto(places: FloatArray, roads: KDTree) -> FloatArray:
    """Return the shift in metres, shape (2,), that brings some places nearest to roads.

    Notes
    -----
    The least mean distance, where nothing is farther than 60 m, over a grid that is refined twice.
    Of equal ones the shortest. O(shifts x places).
    """
    some = np.unique(places, axis=0)
    some = some[:: max(1, len(some) // _MOST_PLACES)]
    best, reach_m = np.zeros(2), _REACH_M
    for step_m in _STEPS_M:
        along = np.arange(-reach_m, reach_m + step_m / 2, step_m)
        shifts = best + np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)
        moved = (some[None] + shifts[:, None]).reshape(-1, 2)
        far_m = np.reshape(roads.query(moved, distance_upper_bound=_ROAD_M)[0], (len(shifts), -1))
        cost = np.minimum(far_m, _ROAD_M).mean(axis=1) + 1e-6 * np.hypot(*shifts.T)
        best, reach_m = shifts[cost.argmin()], step_m
    found: FloatArray = best
    return found


def _offsets(case: ForeignCase) -> Trials | NotMounted:
    if case.network is None or not case.network.has_coordinates:
        return NotMounted("needs the roads (--network)")
    if case.truth is None:
        return NotMounted("needs to know where somebody was (--truth)")
    network, plane = case.network, plane_of(case.points)
    roads = KDTree(plane.of(network.lat, network.lon))
    known: dict[int, FloatArray] = {}

    def guess(ends: Ends, places: FloatArray) -> FloatArray:
        number = int(ends.id_of[0])
        if number not in known:
            known[number] = shift_onto(places, roads)
        return most_visited(ends.xy_m) + known[number]

    return mounted(case, guess)


ATTACK = ForeignAttack(
    "offsets",
    PointRelease,
    _offsets,
    found="live where the ends of their trips lie once all is shifted onto roads",
    against="if the guess is made about somebody else",
    asks="Does one shift bring all positions of an id onto roads, and its home to its place?",
)
