"""Histories: an id is recognized in one half of its days by where it was in the other.

It needs no truth. Whoever knows some weeks of a person, or renews ids too seldom, is told here.
"""

import numpy as np

from anonymizer.audit.foreign.attack import FEWEST, ForeignAttack, NotMounted, Trials
from anonymizer.audit.foreign.persons import DAY_S
from anonymizer.audit.foreign.release import ForeignCase, PointRelease, plane_of
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

_CELL_M = 300.0
_N_TRIALS, _MOST_IDS = 4, 300


def _histories(case: ForeignCase) -> Trials | NotMounted:
    trace, rng = case.points, np.random.default_rng(case.seed)
    day = np.floor(trace.ts / DAY_S).astype(np.int64)
    pairs = np.unique(np.stack([trace.device_of, day]), axis=1)
    lasting = np.flatnonzero(np.bincount(pairs[0], minlength=trace.n_devices) > 1)
    ids = np.sort(rng.permutation(lasting)[:_MOST_IDS])
    if len(ids) < FEWEST:
        return NotMounted(f"fewer than {FEWEST} ids last for two days")
    rows = np.flatnonzero(np.isin(trace.device_of, ids))
    of = np.searchsorted(ids, trace.device_of[rows])
    xy_m = plane_of(trace).of(trace.lat[rows], trace.lon[rows])
    cell = np.unique(np.floor(xy_m / _CELL_M), axis=0, return_inverse=True)[1].ravel()
    success = np.zeros((len(ids), _N_TRIALS))
    for trial in range(_N_TRIALS):
        half = _half(of, day[rows], len(ids), rng)
        likeness = _profiles(of, cell, half, len(ids)) @ _profiles(of, cell, ~half, len(ids)).T
        best = likeness.max(axis=1, keepdims=True)
        alone = (likeness >= best - 1e-12).sum(axis=1) == 1
        success[:, trial] = alone & (likeness.argmax(axis=1) == np.arange(len(ids)))
    return Trials(success, np.full_like(success, 1 / len(ids)))


def _half(of: IntArray, day: IntArray, n_ids: int, rng: np.random.Generator) -> BoolArray:
    """Return whether each row is of the first half of the days of its id, drawn at random."""
    half = np.zeros(len(of), bool)
    for number in range(n_ids):
        mine = np.flatnonzero(of == number)
        drawn = rng.permutation(np.unique(day[mine]))
        half[mine] = np.isin(day[mine], drawn[: len(drawn) // 2])
    return half


def _profiles(of: IntArray, cell: IntArray, which: BoolArray, n_ids: int) -> FloatArray:
    """Return how much each id is in each cell, rare cells weighing more; rows of length 1."""
    seen = np.zeros((n_ids, int(cell.max()) + 1))
    np.add.at(seen, (of[which], cell[which]), 1.0)
    rarity = np.log((n_ids + 1) / (1 + (seen > 0).sum(axis=0)))
    weighted = np.log1p(seen) * rarity
    profiles: FloatArray = weighted / np.maximum(np.linalg.norm(weighted, axis=1), 1e-12)[:, None]
    return profiles


ATTACK = ForeignAttack(
    "histories",
    PointRelease,
    _histories,
    found="are recognized among all by where they were on other days",
    against="by drawing one of them",
    asks="Does one half of the days of an id tell which id it is in the other half?",
    who="ids",
)
