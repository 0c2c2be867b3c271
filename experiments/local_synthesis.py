"""Trajectories made up from reports with local differential privacy: RetraSyn and its rivals.

Each device reports in each step where it moves, enters or leaves, through a randomizer; a server
that nobody need trust estimates how devices move and lets made-up ones move so. This is a
reproduction from the papers, checked against the program that the authors of [1]_ publish.

References
----------
.. [1] Y. Hu et al., "Real-Time Trajectory Synthesis with Local Differential Privacy", ICDE 2024.
.. [2] X. Ren et al., "LDP-IDS: Local Differential Privacy for Infinite Data Streams", SIGMOD 2022.
.. [3] T. Wang et al., "Locally Differentially Private Protocols for Frequency Estimation", USENIX
   Security 2017 (optimized unary encoding).
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from experiments.stream_errors import Stream, beginnings
from experiments.window_counts import gaussian_scale, smoothed

LocalMethod = Literal["RetraSyn_b", "RetraSyn_p", "LBD", "LBA", "LPD", "LPA"]
"""`_b` and LB divide the budget among the steps of a window, `_p` and LP the devices."""
LOCAL_METHODS: tuple[LocalMethod, ...] = ("RetraSyn_b", "RetraSyn_p", "LBD", "LBA", "LPD", "LPA")
_MOVES, _ENTER, _LEAVE, _STATES = 9, 9, 10, 11
"""States of a cell: moves to it and its neighbours, row by row; then entering and leaving."""
_RECENT = 5
"""Steps that the allocation of [1]_ looks back on (kappa)."""
_ALPHA, _MOST_SHARE = 8.0, 0.6
_WARM_UP = 2
_NOTHING = 1e-5


class Events(NamedTuple):
    """What devices have to report in a step: state and device of each, shape (n,)."""

    state: IntArray
    device: IntArray


def events_of(stream: Stream) -> list[Events]:
    """Return the events of each step: a device has at most one in a step.

    Notes
    -----
    A device that jumps farther than to an adjacent cell leaves, and enters in the next step, if it
    is still there. In the program of [1]_ it has two events in that step.
    """
    cell, side = stream.cell, stream.side
    begins = beginnings(cell, side)
    found, waits = [], np.zeros(cell.shape[1], np.bool_)
    for t, here in enumerate(cell):
        before = cell[t - 1] if t else np.full_like(here, -1)
        was, is_here = before >= 0, here >= 0
        moves = is_here & was & ~begins[t] & ~waits
        leaves = was & (begins[t] | ~is_here) & ~waits
        enters = is_here & ~moves & ~leaves
        offset = (here // side - before // side + 1) * 3 + here % side - before % side + 1
        state = np.where(moves, before * _STATES + offset, before * _STATES + _LEAVE)
        state = np.where(enters, here * _STATES + _ENTER, state)
        waits = leaves & is_here
        device = np.flatnonzero(moves | leaves | enters)
        found.append(Events(state[device], device))
    return found


def local_tracks(
    stream: Stream, method: LocalMethod, *, epsilon: float, w: int, rng: np.random.Generator
) -> IntArray:
    """Return the tracks of made-up devices, shape (steps, tracks).

    Parameters
    ----------
    epsilon, w
        w-event local differential privacy: all that a device reports in any `w` steps in a row is
        at most e to the `epsilon` times as likely as if it had done anything else in them.

    Notes
    -----
    As the published program does, the server is told how many devices there are in each step and
    how long a track lasts on average; neither is in the promise. In place of single users, all that
    report in a step are randomized at once, by binomial draws of the same distribution.
    """
    events = events_of(stream)
    if method in {"RetraSyn_b", "RetraSyn_p"}:
        estimates = _retrasyn(stream, events, epsilon, w, rng, by_device=method == "RetraSyn_p")
        return _made_up(stream, events, estimates, rng)
    divide = _absorbed if method in {"LBA", "LPA"} else _distributed
    reports = _Reports(stream, events, epsilon, w, rng, by_device=method in {"LPD", "LPA"})
    return _made_up(stream, events, divide(reports, w), rng, is_rival=True)


def central_tracks(stream: Stream, *, epsilon: float, w: int, rng: np.random.Generator) -> IntArray:
    """Return the tracks of made-up devices that a trusted server makes of noisy counts of moves.

    A device has one event in a step, so that the noise is that of counts by cells. The counts are
    smoothed over past steps; the rest is as in [1]_.
    """
    events = events_of(stream)
    n_states = stream.n_cells * _STATES
    true = np.stack([np.bincount(each.state, minlength=n_states) for each in events])
    scale = gaussian_scale(epsilon, w)
    read = smoothed(true + rng.normal(0.0, scale, true.shape), scale**2)
    none = np.full(n_states, 1 / n_states)
    return _made_up(stream, events, (_whole(row, none) for row in read), rng)


def _variance(epsilon: float, n: float) -> float:
    """Return the variance of a share estimated from n reports."""
    if epsilon <= 0 or n < 1:
        return math.inf
    return 4 * math.exp(epsilon) / (n * (math.exp(epsilon) - 1) ** 2)


def estimated(
    state: IntArray, n_states: int, epsilon: float, rng: np.random.Generator
) -> FloatArray:
    """Return the share of each state from randomized reports [3]_, without bias."""
    n, q = len(state), 1 / (math.exp(epsilon) + 1)
    true = np.bincount(state, minlength=n_states)
    said = rng.binomial(true, 0.5) + rng.binomial(n - true, q)
    found: FloatArray = (said - n * q) / (0.5 - q) / max(n, 1)
    return found


class _Reports:
    """Asks devices, and remembers what each has said in the last w steps.

    With `by_device` a device is asked at most once in w steps, with the whole budget; otherwise all
    are asked, with a part of it.
    """

    def __init__(
        self,
        stream: Stream,
        events: list[Events],
        epsilon: float,
        w: int,
        rng: np.random.Generator,
        *,
        by_device: bool,
    ) -> None:
        self.events = events
        self.by_device = by_device
        self.n_states = stream.n_cells * _STATES
        self._epsilon, self._w, self._rng = epsilon, w, rng
        self._asked = np.full(stream.cell.shape[1], -w)

    def free(self, t: int) -> BoolArray:
        """Return which events are of devices that may be asked."""
        found: BoolArray = self._asked[self.events[t].device] <= t - self._w
        return found

    def ask(self, t: int, part: float) -> tuple[FloatArray, float]:
        """Ask in a step; return the shares of the states and their variance.

        `part` is of the budget, or of the devices that have something to report.
        """
        state, device = self.events[t]
        if not self.by_device:
            budget = part * self._epsilon
            share = estimated(state, self.n_states, budget, self._rng)
            return share, _variance(budget, len(state))
        free = np.flatnonzero(self.free(t))
        n = min(round(part * len(device)), len(free))
        chosen = self._rng.choice(free, n, replace=False)
        self._asked[device[chosen]] = t
        share = estimated(state[chosen], self.n_states, self._epsilon, self._rng)
        return share, _variance(self._epsilon, n)

    def variance(self, t: int, part: float) -> float:
        """Return the variance that `ask` would have."""
        n = len(self.events[t].state)
        if not self.by_device:
            return _variance(part * self._epsilon, n)
        return _variance(self._epsilon, min(round(part * n), int(self.free(t).sum())))


def _whole(share: FloatArray, before: FloatArray) -> FloatArray:
    """Return shares of at least 0 that add up to 1; of nothing, those before."""
    share = np.maximum(share, 0.0)
    total = float(share.sum())
    return share / total if total > 0 else before


def _distributed(reports: _Reports, w: int) -> Iterator[FloatArray]:
    """LBD and LPD [2]_: half of what is left of the publications' half goes to each."""
    last = np.full(reports.n_states, 1 / reports.n_states)
    used: list[float] = []
    for t in range(len(reports.events)):
        part = (0.5 - sum(used[-(w - 1) :])) / 2 if w > 1 else 0.25
        used.append(part if _is_worth_it(reports, t, w, last, part) else 0.0)
        if used[-1]:
            last = _whole(reports.ask(t, part)[0], last)
        yield last


def _absorbed(reports: _Reports, w: int) -> Iterator[FloatArray]:
    """LBA and LPA [2]_: a publication takes the parts of the steps that were skipped before it."""
    last = np.full(reports.n_states, 1 / reports.n_states)
    last_t, n_taken = -1, 0
    for t in range(len(reports.events)):
        # Steps after a publication pay back what it has taken beyond its own.
        spared = t - (last_t + max(n_taken - 1, 0))
        part = min(spared, w) / (2 * w)
        if _is_worth_it(reports, t, w, last, part if spared > 0 else 0.0):
            last = _whole(reports.ask(t, part)[0], last)
            last_t, n_taken = t, min(spared, w)
        yield last


def _is_worth_it(reports: _Reports, t: int, w: int, last: FloatArray, part: float) -> bool:
    """Ask how much has changed; return whether that is more than the error of a publication.

    The first step is always published.
    """
    now, variance = reports.ask(t, 1 / (2 * w))
    if not t:
        return True
    changed = float(((now - last) ** 2).mean()) - variance
    return part > 0 and changed > reports.variance(t, part)


def _retrasyn(
    stream: Stream,
    events: list[Events],
    epsilon: float,
    w: int,
    rng: np.random.Generator,
    *,
    by_device: bool,
) -> Iterator[FloatArray]:
    """RetraSyn [1]_: what has changed significantly is taken over, and more is asked then."""
    reports = _Reports(stream, events, epsilon, w, rng, by_device=by_device)
    released: list[FloatArray] = []
    n_changed: list[int] = []
    used: list[float] = []
    for t in range(len(events)):
        if by_device:
            n = max(len(events[t].device), 1)
            left = float(reports.free(t).sum()) / n
        else:
            left = 1.0 - sum(used[-(w - 1) :]) if w > 1 else 1.0
        if t < _WARM_UP:
            part = min(1 / w, left)
            share, _ = reports.ask(t, part)
            changed = 0
        else:
            recent = np.mean(released[-_RECENT:], axis=0)
            moved = float(np.abs(released[-1] - recent).sum())
            calm = max(0.5, 1 - float(np.mean(n_changed[-_RECENT:])) / reports.n_states)
            part = min(_ALPHA / w * math.log(moved + 1) * calm, _MOST_SHARE) * left
            last = released[-1]
            if part <= 0:
                share, changed = last, 0
            else:
                now, variance = reports.ask(t, part)
                now = np.maximum(now, 0.0)
                is_new = (now - last) ** 2 > variance
                share = np.where(is_new, now, last * now.sum())
                changed = int(is_new.sum())
        used.append(part)
        n_changed.append(changed)
        released.append(_whole(share, released[-1] if released else share))
        yield released[-1]


def _made_up(
    stream: Stream,
    events: list[Events],
    estimates: Iterator[FloatArray],
    rng: np.random.Generator,
    *,
    is_rival: bool = False,
) -> IntArray:
    """Let made-up devices move as estimated; those of the rivals neither enter nor leave [1]_."""
    side, n_cells = stream.side, stream.n_cells
    n_true = (stream.cell >= 0).sum(axis=1)
    begins = beginnings(stream.cell, side)
    usual_steps = max(float(n_true.sum()) / max(int(begins.sum()), 1), 1.0)
    cell = np.zeros(0, np.int64)
    if is_rival:
        cell = rng.integers(0, n_cells, int(n_true[0]))
    column = np.arange(len(cell))
    since = np.zeros(len(cell), np.int64)
    n_columns = len(cell)
    rows: list[tuple[IntArray, IntArray]] = []
    enters_before = np.full(n_cells, 1 / n_cells)
    for t, share in enumerate(estimates):
        table = share.reshape(n_cells, _STATES)
        moves = _only_inside(table[:, :_MOVES], side)
        if is_rival:
            cell = _moved(cell, moves, np.zeros(n_cells), np.zeros(len(cell)), rng)[0]
        else:
            enters = _whole(table[:, _ENTER], enters_before)
            enters_before, leaves = enters, table[:, _LEAVE]
            before = cell
            age = np.minimum(1.0, (t - since) / usual_steps)
            cell, left = _moved(cell, moves, leaves, age, rng)
            keep = ~left
            n_more = int(n_true[t]) - int(keep.sum())
            if n_more < 0:  # those leave whose cell is left most often
                stay = np.flatnonzero(keep)
                weight = leaves[before[stay]] + 1e-8
                gone = rng.choice(stay, -n_more, replace=False, p=weight / weight.sum())
                keep[gone] = False
            cell, column, since = cell[keep], column[keep], since[keep]
            if n_more > 0:
                new = rng.choice(n_cells, n_more, p=enters)
                cell = np.concatenate([cell, new])
                column = np.concatenate([column, n_columns + np.arange(n_more)])
                since = np.concatenate([since, np.full(n_more, t)])
                n_columns += n_more
        rows.append((column, cell))
    tracks = np.full((len(events), n_columns), -1, np.int64)
    for t, (of, at) in enumerate(rows):
        tracks[t, of] = at
    return tracks


def _only_inside(moves: FloatArray, side: int) -> FloatArray:
    """Return moves without those that lead out of the grid."""
    cell, move = np.divmod(np.arange(moves.size), _MOVES)
    row, column = cell // side + move // 3 - 1, cell % side + move % 3 - 1
    inside = (row >= 0) & (row < side) & (column >= 0) & (column < side)
    return np.where(inside.reshape(moves.shape), moves, 0.0)


def _moved(
    cell: IntArray, moves: FloatArray, leaves: FloatArray, age: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, BoolArray]:
    """Return the next cell of each device, and which ones leave."""
    side = math.isqrt(len(moves))
    rows = moves.sum(axis=1) + leaves
    weight = np.concatenate([moves, leaves[:, None]], axis=1) / np.maximum(rows, 1e-300)[:, None]
    weight = weight[cell]
    weight[:, -1] *= age
    total = weight.sum(axis=1)
    drawn = rng.random(len(cell)) * total
    choice = (np.cumsum(weight, axis=1) <= drawn[:, None]).sum(axis=1)
    choice = np.minimum(choice, _MOVES)
    stays = (total < _NOTHING) | (rows[cell] < 1e-12)  # rounding
    left = (choice == _MOVES) & ~stays
    to = cell + (choice // 3 - 1) * side + choice % 3 - 1
    return np.where(stays | left, cell, to), left
