"""Tracking: where somebody is five minutes after a known place, with the release and without."""

from dataclasses import replace

import numpy as np

from anonymizer.audit.foreign.attack import FEWEST, ForeignAttack, NotMounted, Trials
from anonymizer.audit.foreign.persons import Moments, nearest_in_time, rows_by_id, slack_of
from anonymizer.audit.foreign.release import BareRelease, ForeignCase, PointRelease, plane_of
from anonymizer.domain.arrays import BoolArray, FloatArray

_LATER_S = 300.0
_N_TRIALS, _MOST_PERSONS = 8, 300


def _following(case: ForeignCase) -> Trials | NotMounted:
    if case.truth is None:
        return NotMounted("needs to know where somebody was (--truth)")
    trace, truth = case.points, case.people
    plane, rng = plane_of(trace), np.random.default_rng(case.seed)
    slack_s = slack_of(trace)
    moments, slack_truth_s = Moments(trace, plane, slack_s), slack_of(truth)
    first, rows = rows_by_id(truth)
    xy_m = plane.of(truth.lat, truth.lon)
    with_it, without, reckoned = [], [], []
    for person in rng.permutation(truth.n_devices)[:_MOST_PERSONS].tolist():
        mine = rows[first[person] : first[person + 1]]
        ts, at = truth.ts[mine], xy_m[mine]
        later = nearest_in_time(ts, ts + _LATER_S)
        usable = np.flatnonzero(np.abs(ts[later] - ts - _LATER_S) <= slack_truth_s)
        usable = usable[
            (usable > 0) & (np.hypot(*(at[later[usable]] - at[usable]).T) > case.near_m)
        ]
        if not len(usable):
            continue
        drawn = rng.choice(usable, _N_TRIALS)
        goal = at[later[drawn]]
        guess = [_guess(moments, float(ts[i]), at[i]) for i in drawn.tolist()]
        with_it.append(_near(np.stack(guess), goal, case.near_m))
        speed = (at[drawn] - at[drawn - 1]) / np.maximum(ts[drawn] - ts[drawn - 1], 1.0)[:, None]
        without.append(_near(at[drawn], goal, case.near_m))
        reckoned.append(_near(at[drawn] + speed * _LATER_S, goal, case.near_m))
    if len(with_it) < FEWEST:
        return NotMounted(f"fewer than {FEWEST} people are seen five minutes later elsewhere")
    control = max(np.array(without), np.array(reckoned), key=lambda each: float(each.mean()))
    note = f"within {case.near_m:g} m of people who went farther than that"
    return Trials(np.array(with_it, np.float64), control.astype(np.float64), note)


def _guess(moments: Moments, at_s: float, place: FloatArray) -> FloatArray:
    """Return where those ids are later that are nearest now; if there are none, the place itself.

    Ids in one place, as those of a group, cannot be told apart: the middle of them.
    """
    ids, xy_m = moments.at(at_s)
    if not len(ids):
        return place
    far_m = np.hypot(*(xy_m - place).T)
    nearest = ids[far_m <= far_m.min() + 1e-6]
    then, there = moments.at(at_s + _LATER_S)
    kept = np.isin(then, nearest)
    return there[kept].mean(axis=0) if kept.any() else place


def _near(guess: FloatArray, goal: FloatArray, near_m: float) -> BoolArray:
    near: BoolArray = np.hypot(*(guess - goal).T) <= near_m
    return near


ATTACK = ForeignAttack(
    "tracking",
    PointRelease,
    _following,
    found="are found five minutes after one of their places was known",
    against="without the release",
    asks="Does the release tell where somebody is, five minutes after a known place?",
)
OF_RUNS = replace(ATTACK, needs=BareRelease)
