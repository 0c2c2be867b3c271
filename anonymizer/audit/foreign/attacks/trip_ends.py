"""Homes: where the trips of an id begin and end, and the middle of the hole that hides it.

With the truth, the guess is compared with the place where most trips of the person begin or end.
Without it, guesses from two halves of the days are compared: what every half says again is no
noise. The control is the guess about somebody else.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.spatial import KDTree

from anonymizer.audit.foreign.attack import FEWEST, ForeignAttack, NotMounted, Trials
from anonymizer.audit.foreign.persons import (
    Ends,
    by_person,
    ends_of,
    homes_of,
    most_visited,
    owners,
    rows_by_id,
)
from anonymizer.audit.foreign.release import ForeignCase, PointRelease, plane_of
from anonymizer.domain.arrays import FloatArray

N_TRIALS, _N_SPLITS, _N_TRIALS_OF_HOLES = 8, 4, 2
MOST_IDS = 300
_HOLE_STEP_M, _LEAST_HOLE_M, _MOST_HOLE_M = 75.0, 90.0, 1000.0
_RADII_M = 100.0 * 1.2 ** np.arange(13)
_RADIUS_TOLERANCE = 0.2
"""Holes are of one radius, give or take this share: reports come now and then."""
_NEARLY = 0.95
_RIM_M = (30.0, 300.0)
"""Least and greatest width of a rim; within these it is how far ids usually go between reports."""
_MOST_JUDGED = 60
"""Ids by which the radius is found."""
_AS_GOOD = 0.9
"""Of the best score: the middles of holes that are as good are averaged."""
_FEWEST_SIDES, _N_SIDES = 2, 8

_BY_HALVES = "have a place that each half of their days gives away again, which may be their home"

Guess: TypeAlias = Callable[[Ends, FloatArray], FloatArray]
"""From the ends of an id and all its places, in metres: where its home is."""


def mounted(case: ForeignCase, guess: Guess, *, n_trials: int = N_TRIALS) -> Trials | NotMounted:
    """Return how often a guess is near the home, or is made again from other days."""
    trace = case.points
    plane, rng = plane_of(trace), np.random.default_rng(case.seed)
    ends, places = ends_of(trace, plane), plane.of(trace.lat, trace.lon)
    of_id = np.argsort(trace.device_of, kind="stable")
    first = np.searchsorted(trace.device_of[of_id], np.arange(trace.n_devices + 1))

    def guesses(mine: Ends) -> FloatArray:
        number = int(mine.id_of[0])
        return guess(mine, places[of_id[first[number] : first[number + 1]]])

    if case.truth is None:
        return _halves(ends, guesses, case.near_m, rng)
    homes = homes_of(case.people, plane)
    owner = owners(case)
    known = (owner >= 0) & np.isfinite(homes[owner, 0])
    numbers = _some(
        np.flatnonzero(known & (np.bincount(ends.id_of, minlength=len(owner)) > 1)), rng
    )
    if len(np.unique(owner[numbers])) < FEWEST:
        return NotMounted(f"fewer than {FEWEST} people have a home that is known")
    lived = np.unique(owner[numbers])
    success, control = np.zeros((2, len(numbers), n_trials))
    for i, number in enumerate(numbers.tolist()):
        for trial in range(n_trials):
            found = guesses(_resampled(ends.of(number), rng))
            near = np.hypot(*(homes[lived] - found).T) <= case.near_m
            mine = lived == owner[number]
            success[i, trial], control[i, trial] = near[mine][0], near[~mine].mean()
    who = owner[numbers]
    return Trials(by_person(success, who), by_person(control, who), f"within {case.near_m:g} m")


def _halves(
    ends: Ends, guesses: Callable[[Ends], FloatArray], near_m: float, rng: np.random.Generator
) -> Trials | NotMounted:
    """Compare the guesses from two halves of the days of each id."""
    days = [np.unique(ends.of(number).day) for number in range(int(ends.id_of.max(initial=-1)) + 1)]
    numbers = _some(np.array([i for i, each in enumerate(days) if len(each) > 1], np.int64), rng)
    if len(numbers) < FEWEST:
        return NotMounted(f"fewer than {FEWEST} ids last for two days")
    success, control = np.zeros((2, len(numbers), _N_SPLITS))
    for trial in range(_N_SPLITS):
        one, other = np.zeros((2, len(numbers), 2))
        for i, number in enumerate(numbers.tolist()):
            mine, drawn = ends.of(number), rng.permutation(days[number])
            half = np.isin(mine.day, drawn[: len(drawn) // 2])
            one[i], other[i] = guesses(mine.kept(half)), guesses(mine.kept(~half))
        near = np.hypot(*(one[:, None] - other[None]).transpose(2, 0, 1)) <= near_m
        success[:, trial] = near.diagonal()
        control[:, trial] = (near.sum(axis=1) - near.diagonal()) / (len(numbers) - 1)
    return Trials(success, control, f"within {near_m:g} m; nobody has confirmed it", _BY_HALVES)


def _some(numbers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.sort(rng.permutation(numbers)[:MOST_IDS])


def _resampled(ends: Ends, rng: np.random.Generator) -> Ends:
    """Return the ends of as many days, drawn with replacement."""
    days = np.unique(ends.day)
    drawn = rng.choice(days, len(days))
    return ends.kept(np.concatenate([np.flatnonzero(ends.day == day) for day in drawn]))


def _home(ends: Ends, _places: FloatArray) -> FloatArray:
    return most_visited(ends.xy_m)


class HoleRims(NamedTuple):
    """Discs without any place of an id, by what lies on their rims.

    `middle` in metres, shape (n, 2), `radius` (n,), and `score` (n,): how many ends of trips lie on
    the rim, the nearer the more, as a share of all.
    """

    middle: FloatArray
    radius: FloatArray
    score: FloatArray


def hole_rims(ends: Ends, places: FloatArray, rim_m: float) -> HoleRims:
    """Return the discs around the ends of trips; see `HoleRims`. O(discs x ends)."""
    xy_m = np.unique(ends.xy_m, axis=0)
    around = np.arange(-_MOST_HOLE_M, _MOST_HOLE_M + 1, _HOLE_STEP_M)
    grid = np.stack(np.meshgrid(around, around), axis=-1).reshape(-1, 2)
    grid = grid[np.hypot(*grid.T) <= _MOST_HOLE_M]
    anchors = np.unique(np.round(xy_m / (4 * _HOLE_STEP_M)), axis=0) * 4 * _HOLE_STEP_M
    where = np.unique(np.round((anchors[:, None] + grid[None]) / _HOLE_STEP_M) @ [1, 1j])
    middle = np.stack([where.real, where.imag], axis=-1) * _HOLE_STEP_M
    radius = np.asarray(KDTree(places).query(middle)[0])
    empty = (radius >= _LEAST_HOLE_M) & (radius <= _MOST_HOLE_M)
    middle, radius = middle[empty], radius[empty]
    score, sides = np.zeros(len(middle)), np.zeros((len(middle), _N_SIDES), bool)
    for end in ends.xy_m:
        away = end - middle
        beyond = (np.hypot(*away.T) - radius) / rim_m
        near = beyond <= 1
        score += np.where(near, 1 - beyond / 2, 0.0)
        side = (np.arctan2(away[:, 1], away[:, 0]) / (2 * np.pi) * _N_SIDES) % _N_SIDES
        sides[np.flatnonzero(near), side[near].astype(np.int64) % _N_SIDES] = True
    score[sides.sum(axis=1) < _FEWEST_SIDES] = 0.0
    return HoleRims(middle, radius, score / len(ends.xy_m))


def common_radius(rims: Sequence[HoleRims]) -> float:
    """Return the least radius that explains nearly the most ends of all ids: a setting of all.

    Larger discs explain as many, because far away a rim is nearly straight.
    """
    found = np.zeros(len(_RADII_M))
    for each in rims:
        best = np.zeros(len(_RADII_M))
        nearest = np.abs(np.log(each.radius[:, None] / _RADII_M)).argmin(axis=1)
        np.maximum.at(best, nearest, each.score)
        found += best
    return float(_RADII_M[(found >= _NEARLY * found.max()).argmax()])


def middle_of_hole(rims: HoleRims, radius_m: float) -> FloatArray | None:
    """Return the middle of the hole of about that radius on whose rim the most ends lie."""
    score = np.where(np.abs(np.log(rims.radius / radius_m)) <= _RADIUS_TOLERANCE, rims.score, 0.0)
    if not score.any():
        return None
    best = score >= _AS_GOOD * score.max()
    found: FloatArray = np.average(rims.middle[best], axis=0, weights=score[best])
    return found


def _holes(case: ForeignCase) -> Trials | NotMounted:
    trace = case.points
    plane = plane_of(trace)
    ends, xy_m = ends_of(trace, plane), plane.of(trace.lat, trace.lon)
    starts, rows = rows_by_id(trace)
    step_m = np.hypot(*np.diff(xy_m[rows], axis=0).T)[np.diff(trace.device_of[rows]) == 0]
    rim_m = float(np.clip(np.median(step_m[step_m > 0]), *_RIM_M)) if step_m.any() else _RIM_M[0]
    some = np.random.default_rng(case.seed).permutation(np.unique(ends.id_of))[:_MOST_JUDGED]
    rims = [
        hole_rims(ends.of(i), xy_m[rows[starts[i] : starts[i + 1]]], rim_m) for i in some.tolist()
    ]
    radius_m = common_radius(rims)

    def guess(mine: Ends, places: FloatArray) -> FloatArray:
        found = middle_of_hole(hole_rims(mine, places, rim_m), radius_m)
        return most_visited(mine.xy_m) if found is None else found

    return mounted(case, guess, n_trials=_N_TRIALS_OF_HOLES)


HOMES = ForeignAttack(
    "homes",
    PointRelease,
    lambda case: mounted(case, _home),
    found="live where this release says that they do",
    against="if the guess is made about somebody else",
    asks="Do the ends of many trips, averaged, lie where somebody lives?",
)
HOLES = ForeignAttack(
    "holes",
    PointRelease,
    _holes,
    found="live in the middle of a hole in their positions",
    against="if the hole is somebody else's",
    asks="Does the middle of an empty disc on whose rim trips end give away what it hides?",
)
