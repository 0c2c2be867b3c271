"""Nights: places without ids where night after night one position is alone, as at a home.

Nights are halved: what one half of them lists, the other half says again. The control makes the
same list of the same places, with the hours of each day mixed.
"""

import numpy as np

from anonymizer.audit.foreign.attack import FEWEST, ForeignAttack, NotMounted, Trials
from anonymizer.audit.foreign.persons import DAY_S
from anonymizer.audit.foreign.release import BareRelease, ForeignCase, plane_of
from anonymizer.audit.foreign.runs import step_m
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.trace import Trace

_FROM_H, _TO_H = 0.0, 5.0
"""Of the local time of the sun."""
_DEGREES_PER_H = 15.0
_FEWEST_NIGHTS = 4
_OFTEN, _FEWEST_TIMES = 0.5, 2
_N_SPLITS, _MOST_PLACES = 4, 300


def _nights(case: ForeignCase) -> Trials | NotMounted:
    trace, rng = case.points, np.random.default_rng(case.seed)
    xy_m = plane_of(trace).of(trace.lat, trace.lon)
    places, place_of = np.unique(np.round(xy_m / step_m(trace)), axis=0, return_inverse=True)
    local_s = trace.ts + np.median(trace.lon) / _DEGREES_PER_H * 3600
    table = _alone_at_night(trace, place_of.ravel(), local_s, len(places))
    mixed = _alone_at_night(trace, place_of.ravel(), _mixed(local_s, rng), len(places))
    if table.shape[1] < _FEWEST_NIGHTS:
        return NotMounted(f"has fewer than {_FEWEST_NIGHTS} nights")
    success, control = (
        _judged([_again(each, rng) for _ in range(_N_SPLITS)]) for each in (table, mixed)
    )
    if len(success) < FEWEST:
        return NotMounted(f"fewer than {FEWEST} places have one alone, night after night")
    success = rng.permutation(success)[:_MOST_PLACES, None]
    chance = np.full_like(success, control.mean() if len(control) else 0.0)
    return Trials(success, chance, f"{table.shape[1]} nights")


def _judged(found: list[FloatArray]) -> FloatArray:
    """Return the mean of each place over the halvings that list it; others are left out."""
    every = np.stack(found)
    listed = np.isfinite(every)
    kept = listed.any(axis=0)
    mean: FloatArray = np.nansum(every, axis=0)[kept] / listed.sum(axis=0)[kept]
    return mean


def _mixed(local_s: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the times of a day, mixed among its rows."""
    day = np.floor(local_s / DAY_S)
    by_day, mixed = np.lexsort((local_s, day)), np.lexsort((rng.random(len(day)), day))
    found = np.empty_like(local_s)
    found[mixed] = local_s[by_day]
    return found


def _alone_at_night(
    trace: Trace, place_of: IntArray, local_s: FloatArray, n_places: int
) -> BoolArray:
    """Return in which nights there was one at a place and never more, shape (places, nights)."""
    hour = local_s % DAY_S / 3600
    rows = np.flatnonzero((hour >= _FROM_H) & (hour < _TO_H))
    nights, night_of = np.unique(np.floor(local_s[rows] / DAY_S), return_inverse=True)
    time_of = np.unique(trace.ts, return_inverse=True)[1]
    each, n = np.unique(
        np.stack([place_of[rows], night_of, time_of[rows]]), axis=1, return_counts=True
    )
    most = np.zeros((n_places, len(nights)))
    np.maximum.at(most, (each[0], each[1]), n)
    found: BoolArray = most == 1
    return found


def _again(table: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return of each place that half of the nights lists how often the others say so, too.

    NaN of places that are not listed.
    """
    drawn = rng.permutation(table.shape[1])
    half, other = np.array_split(drawn, 2)
    n = table[:, half].sum(axis=1)
    listed = (n >= _FEWEST_TIMES) & (n >= _OFTEN * len(half))
    found: FloatArray = np.where(listed, table[:, other].mean(axis=1), np.nan)
    return found


ATTACK = ForeignAttack(
    "nights",
    BareRelease,
    _nights,
    found="have one person alone on other nights again, who may live there",
    against="if the hours of each day are mixed",
    asks="Do places without ids tell where somebody sleeps?",
    who="places with one person alone at night",
)
