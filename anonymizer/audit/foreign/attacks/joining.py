"""Joining: positions without ids become runs, if each is nearest to one of the next moment."""

from typing import NamedTuple

import numpy as np

from anonymizer.audit.foreign.attack import FEWEST, ForeignAttack, NotMounted, Trials
from anonymizer.audit.foreign.release import BareRelease, ForeignCase, plane_of
from anonymizer.audit.foreign.runs import window_s
from anonymizer.domain.arrays import FloatArray, IntArray

_N_TRIALS, _MOST_ROWS = 2, 300
_ALIKE = 0.05
"""Share by which the other moment may have more or fewer positions."""
_N_TRIED = 200
_SLOW_M_S = 1.0
"""Of equally near positions it is the one that is sooner."""


class _Places(NamedTuple):
    """Positions that rise in time, in metres and seconds, and within how many one goes on."""

    xy_m: FloatArray
    ts: FloatArray
    window_s: float

    def within(self, from_s: float) -> IntArray:
        """Return the rows of the window that begins after a time."""
        begin, end = np.searchsorted(self.ts, [from_s, from_s + self.window_s], side="right")
        return np.arange(begin, end)

    def nearest(self, row: int, rows: IntArray, late_s: float) -> int:
        """Return which of some rows is nearest to one, if they were so many seconds earlier."""
        far_m = np.hypot(*(self.xy_m[rows] - self.xy_m[row]).T)
        cost = far_m + np.abs(self.ts[rows] - late_s - self.ts[row]) * _SLOW_M_S
        return int(rows[cost.argmin()])


def _joining(case: ForeignCase) -> Trials | NotMounted:
    trace = case.points
    rng = np.random.default_rng(case.seed)
    places = _Places(plane_of(trace).of(trace.lat, trace.lon), trace.ts, window_s(trace))
    success: list[float] = []
    control: list[list[float]] = []
    alone = []
    for row in rng.permutation(trace.n_rows)[:_MOST_ROWS].tolist():
        later = places.within(trace.ts[row])
        others = [_another(places, row, len(later), rng) for _ in range(_N_TRIALS)]
        shifts = [each for each in others if each is not None]
        if len(later) > 1 and len(shifts) == _N_TRIALS:
            success.append(_both_ways(places, row, 0.0))
            control.append([_both_ways(places, row, each) for each in shifts])
            now = places.ts == places.ts[row]
            alone.append(int((np.hypot(*(places.xy_m[now] - places.xy_m[row]).T) < 1).sum()) == 1)
    if len(success) < FEWEST:
        return NotMounted(f"fewer than {FEWEST} positions have others at the next moment")
    note = f"{np.mean(alone):.0%} of them are alone in their place at their time"
    return Trials(np.tile(np.array(success)[:, None], _N_TRIALS), np.array(control), note)


def _another(places: _Places, row: int, n: int, rng: np.random.Generator) -> float | None:
    """Return how much later another window with about as many positions is; None: there is none."""
    for other in rng.integers(len(places.ts), size=_N_TRIED).tolist():
        late_s = float(places.ts[other] - places.ts[row])
        if abs(late_s) > 2 * places.window_s:
            n_there = len(places.within(places.ts[other]))
            if n_there and abs(n_there - n) <= _ALIKE * n:
                return late_s
    return None


def _both_ways(places: _Places, row: int, late_s: float) -> float:
    """Return whether the nearest position of the next window has this one as its nearest before."""
    goal = places.nearest(row, places.within(places.ts[row] + late_s), late_s)
    from_s = places.ts[goal] - late_s - places.window_s
    before = places.within(from_s)
    before = before[places.ts[before] < places.ts[goal] - late_s]
    back = places.nearest(goal, before, -late_s) if len(before) else -1
    return float(back == row)


ATTACK = ForeignAttack(
    "joining",
    BareRelease,
    _joining,
    found="are joined to one position of the next moment, and it to them, so that they are runs",
    against="with another moment instead of the next",
    asks="Do positions without ids become runs of somebody?",
    who="positions",
)
