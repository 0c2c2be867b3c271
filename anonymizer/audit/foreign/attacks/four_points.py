"""Uniqueness: whose id it is, by four places of somebody that are known [1]_.

References
----------
.. [1] Y.-A. de Montjoye et al., "Unique in the crowd", Scientific Reports 3, 2013.
"""

import numpy as np

from anonymizer.audit.foreign.attack import FEWEST, ForeignAttack, NotMounted, Trials
from anonymizer.audit.foreign.persons import Moments, owners, rows_by_id, slack_of
from anonymizer.audit.foreign.release import ForeignCase, PointRelease, plane_of
from anonymizer.domain.arrays import FloatArray, IntArray

_N_KNOWN, _WITHIN_S = 4, 3600.0
_N_TRIALS, _MOST_PERSONS = 8, 300
_FAR_M = 3000.0
"""How far an id is taken to be that is not there."""
_OF_OFFSET = 0.3
"""Weight of a common offset of all four beside how they differ from it."""


def _four_points(case: ForeignCase) -> Trials | NotMounted:
    if case.truth is None:
        return NotMounted("needs to know where somebody was (--truth)")
    trace, truth = case.points, case.people
    plane, rng = plane_of(trace), np.random.default_rng(case.seed)
    owner, moments = owners(case), Moments(trace, plane, slack_of(trace))
    first, rows = rows_by_id(truth)
    there = np.flatnonzero(np.isin(np.arange(truth.n_devices), owner))
    persons = np.sort(rng.permutation(there[np.diff(first)[there] >= _N_KNOWN])[:_MOST_PERSONS])
    if len(persons) < FEWEST:
        return NotMounted(f"fewer than {FEWEST} people of the truth are in it")
    success, control = np.zeros((2, len(persons), _N_TRIALS))
    for i, person in enumerate(persons.tolist()):
        mine = rows[first[person] : first[person + 1]]
        for trial in range(_N_TRIALS):
            known = mine[_known(truth.ts[mine], rng)]
            places = plane.of(truth.lat[known], truth.lon[known])
            ids, score = _scores(moments, truth.ts[known], places)
            if len(ids):
                best = np.flatnonzero(score <= score.min() + 1e-6)
                success[i, trial] = len(best) == 1 and owner[ids[best[0]]] == person
                control[i, trial] = 1 / len(ids)
    return Trials(success, control)


def _known(ts: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return four reports of an hour, if it has so many."""
    begin = int(rng.integers(len(ts)))
    end = max(int(np.searchsorted(ts, ts[begin] + _WITHIN_S, side="right")), begin + 1)
    known: IntArray = np.sort(rng.permutation(np.arange(begin, end))[:_N_KNOWN])
    return known


def _scores(moments: Moments, at_s: FloatArray, places: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the ids that are there at any of the moments, and how ill each of them fits."""
    found = [moments.at(float(at)) for at in at_s]
    ids: IntArray = np.unique(np.concatenate([each for each, _ in found]))
    away = np.full((len(ids), len(at_s), 2), np.nan)
    for i, (each, xy_m) in enumerate(found):
        away[np.searchsorted(ids, each), i] = xy_m - places[i]
    is_there = np.isfinite(away[:, :, 0])
    n = np.maximum(is_there.sum(axis=1), 1)
    offset = np.nansum(away, axis=1) / n[:, None]
    differs = np.hypot(*(away - offset[:, None]).transpose(2, 0, 1))
    differs = np.where(is_there, np.minimum(differs, _FAR_M), _FAR_M).mean(axis=1)
    return ids, differs + _OF_OFFSET * np.hypot(*offset.T)


ATTACK = ForeignAttack(
    "four known places",
    PointRelease,
    _four_points,
    found="are told apart from all others by four of their places within an hour",
    against="by drawing one of the ids of that hour",
    asks="Does somebody who knows four places of a person know which id is theirs?",
)
