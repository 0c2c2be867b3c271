"""Membership: whether somebody was counted at all, by where they usually are at which hour.

The attacker knows when somebody would be where, and how many are usual there at that hour by the
release itself. The control are the same counts without that person.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from anonymizer.audit.foreign.attack import FEWEST, ForeignAttack, NotMounted, Trials
from anonymizer.audit.foreign.persons import DAY_S, rows_by_id
from anonymizer.audit.foreign.release import CountRelease, ForeignCase, Plane, plane_of
from anonymizer.domain.arrays import FloatArray, IntArray

_MOST_PERSONS = 300
_LEAST_VARIANCE = 0.25


class _Usual(NamedTuple):
    """Sums and numbers of the counts of each area and hour of the day, (areas, hours)."""

    hour_of: IntArray
    n: FloatArray
    total: FloatArray
    squares: FloatArray


def _presence(case: ForeignCase) -> Trials | NotMounted:
    release = case.counts
    if case.truth is None:
        return NotMounted("needs to know where somebody was (--truth)")
    table = release.table()
    if table is None or release.place is None or release.start_s is None or release.n_times < 2:
        return NotMounted("needs areas with a place, and times with a date")
    middle = float(np.mean(release.struck))
    shown = np.where(np.isnan(table), middle, table)
    usual = _usual(shown, release.start_s)
    visits = _visits(case, release.place, release.start_s)
    rng = np.random.default_rng(case.seed)
    persons = np.sort(rng.permutation([i for i, each in enumerate(visits) if len(each[0])]))
    persons = persons[:_MOST_PERSONS]
    if len(persons) < FEWEST:
        return NotMounted(f"fewer than {FEWEST} people were where it counts")
    scores = np.zeros((2, len(persons)))
    for i, person in enumerate(persons.tolist()):
        area, time = visits[person]
        there = shown[area, time]
        without = np.where(np.isnan(table[area, time]), there, there - 1)
        least = release.struck[1] + 1
        if not release.is_noisy and np.isnan(table).any():
            without = np.where((there == least) & (without < least), middle, without)
        for side, counts in enumerate((there, without)):
            scores[side, i] = _score(counts, there, usual, area, time)
    # What others score tells from which score on somebody is taken to be in it.
    bar = np.array([np.delete(scores, i, axis=1).mean() for i in range(len(persons))])
    found = (scores > bar).astype(np.float64)
    return Trials(found[0][:, None], found[1][:, None])


def _usual(shown: FloatArray, start_s: FloatArray) -> _Usual:
    hour_of = np.unique(start_s % DAY_S, return_inverse=True)[1].ravel()
    n_hours = int(hour_of.max()) + 1
    total, squares = np.zeros((2, len(shown), n_hours))
    np.add.at(total.T, hour_of, shown.T)
    np.add.at(squares.T, hour_of, shown.T**2)
    n = np.bincount(hour_of, minlength=n_hours).astype(np.float64)
    return _Usual(hour_of, np.broadcast_to(n, total.shape), total, squares)


def _score(
    counts: FloatArray, there: FloatArray, usual: _Usual, area: IntArray, time: IntArray
) -> float:
    """Return the log-likelihood of one person more, given the same hour of the other days."""
    hour = usual.hour_of[time]
    n = np.maximum(usual.n[area, hour] - 1, 1)
    mean = (usual.total[area, hour] - there) / n
    variance = np.maximum((usual.squares[area, hour] - there**2) / n - mean**2, _LEAST_VARIANCE)
    return float(((counts - mean - 0.5) / variance).sum())


def _visits(
    case: ForeignCase, place: FloatArray, start_s: FloatArray
) -> list[tuple[IntArray, IntArray]]:
    """Return of each person the areas and times in which they were, each once."""
    truth = case.people
    step_s = float(np.median(np.diff(start_s)))
    plane: Plane = plane_of(truth)
    middles = KDTree(plane.of(place[:, 0], place[:, 1]))
    area = np.asarray(middles.query(plane.of(truth.lat, truth.lon))[1])
    time = np.searchsorted(start_s, truth.ts, side="right") - 1
    inside = (time >= 0) & (truth.ts < start_s[np.maximum(time, 0)] + step_s)
    first, rows = rows_by_id(truth)
    found = []
    for person in range(truth.n_devices):
        mine = rows[first[person] : first[person + 1]]
        mine = mine[inside[mine]]
        pairs = np.unique(np.stack([area[mine], time[mine]]), axis=1)
        found.append((pairs[0], pairs[1]))
    return found


ATTACK = ForeignAttack(
    "membership",
    CountRelease,
    _presence,
    found="are told to be in these counts, by where they usually are at which hour",
    against="if they were not counted",
    asks="Do counts tell whether somebody is in them at all?",
)
