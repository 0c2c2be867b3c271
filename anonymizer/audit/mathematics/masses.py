"""Masses of the tracking attack: how probabilities move over a network, forwards and backwards.

A mass is the probability of a target, or the expected number of devices of the crowd, in one life
and one state of the motion model. Few of the possible states have any, so masses are listed.
"""

from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.audit.mathematics.motion import Motion
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

FREE = -1
"""In no life: whoever is free may begin one at the next step."""
NEGLECTED = 1e-6
"""States of a target with less probability are dropped, and those of the crowd with fewer expected
devices."""
_Values = TypeVar("_Values", Int32Array, FloatArray)
_FLOW = NEGLECTED / 100
"""A smaller mass does not move on."""


class Masses(NamedTuple):
    """Masses by rising owner and life; a state may be listed several times."""

    owner: Int32Array
    """Number of the target; 0 for all masses of the crowd."""
    life: Int32Array
    state: Int32Array
    mass: FloatArray
    """`life`, `state`, `mass`: life or `FREE`, state of the motion model, and probability or number
    of devices."""


MassArrays: TypeAlias = tuple[Int32Array, Int32Array, Int32Array, FloatArray]
"""`Masses` as kernels return them."""


def sorted_by_life(masses: Masses, source: IntArray) -> tuple[Masses, IntArray]:
    """Return the masses, and a number that belongs to each, by rising owner and life."""
    key = masses.owner.astype(np.int64) << 32 | (masses.life + 1)
    order = np.argsort(key, kind="stable")
    return only(masses, order), source[order]


def only(masses: Masses, chosen: BoolArray | IntArray) -> Masses:
    """Return the chosen masses."""
    owner, life, state, mass = masses
    return Masses(owner[chosen], life[chosen], state[chosen], mass[chosen])


class _Work(NamedTuple):
    """Masses by state, all zero between two uses, and the states that have any."""

    now: FloatArray
    now_listed: Int32Array
    moved: FloatArray
    moved_listed: Int32Array
    after: FloatArray
    after_listed: Int32Array


@kernel
def moved_on(motion: Motion, masses: Masses, moves: BoolArray) -> MassArrays:
    """Return the masses a step later, each state once; `moves` says whose do, shape (owners,)."""
    n_states = len(motion.node_of)
    work = _Work(
        np.zeros(n_states),
        np.empty(n_states, np.int32),
        np.zeros(n_states),
        np.empty(n_states, np.int32),
        np.zeros(n_states),
        np.empty(n_states, np.int32),
    )
    owner, life = np.empty(n_states, np.int32), np.empty(n_states, np.int32)
    state, mass = np.empty(n_states, np.int32), np.empty(n_states)
    n, i = 0, 0
    while i < len(masses.mass):
        a, c, first = masses.owner[i], masses.life[i], i
        while i < len(masses.mass) and masses.owner[i] == a and masses.life[i] == c:
            i += 1
        n_after = _move(motion, work, masses, first, i, 1.0 if moves[a] else 0.0)
        if n + n_after > len(mass):
            # A run has at most as many states as there are, so that doubling suffices.
            owner, life = _roomier(owner, n), _roomier(life, n)
            state, mass = _roomier(state, n), _roomier(mass, n)
        for j in range(n_after):
            s = work.after_listed[j]
            owner[n], life[n], state[n], mass[n] = a, c, s, work.after[s]
            work.after[s] = 0.0
            n += 1
    return owner[:n], life[:n], state[:n], mass[:n]


@kernel
def _roomier(values: _Values, n: int) -> _Values:
    """Return the first `n` values with room for twice as many: memory that is not used is free."""
    roomier = np.empty(2 * len(values), values.dtype)
    roomier[:n] = values[:n]
    return roomier


@inner_kernel
def _add(by_state: FloatArray, listed: Int32Array, n: int, state: int, mass: float) -> int:
    """Add a mass to a state, and the state to the list if it is new; return the list's length."""
    if mass <= 0.0:
        return n
    if by_state[state] == 0.0:
        listed[n] = state
        n += 1
    by_state[state] += mass
    return n


@inner_kernel
def _leaves(motion: Motion, s: int) -> float:
    """Return the probability that a device in a state leaves its node."""
    v = motion.node_of[s]
    return motion.sets_off if s == motion.first_state_of[v + 1] - 1 else motion.leave[v]


@inner_kernel
def _move(motion: Motion, work: _Work, masses: Masses, first: int, end: int, share: float) -> int:
    """Move a share of some masses; put all into `work.after`, return how many states it has."""
    n_now, n_after = 0, 0
    for i in range(first, end):
        s = masses.state[i]
        v = motion.node_of[s]
        goes = share * masses.mass[i] * _leaves(motion, s)
        stand = motion.first_state_of[v + 1] - 1
        settles = 0.0 if s == stand else share * motion.settles[v] * (masses.mass[i] - goes)
        n_after = _add(work.after, work.after_listed, n_after, s, masses.mass[i] - goes - settles)
        n_after = _add(work.after, work.after_listed, n_after, stand, settles)
        n_now = _add(work.now, work.now_listed, n_now, s, goes)
    for stop in motion.stop:
        n_moved = _spread(motion, work.now, work.now_listed, n_now, work.moved, work.moved_listed)
        for i in range(n_now):
            work.now[work.now_listed[i]] = 0.0
        n_now = 0
        for i in range(n_moved):
            s = work.moved_listed[i]
            stays = work.moved[s] * stop
            n_after = _add(work.after, work.after_listed, n_after, s, stays)
            n_now = _add(work.now, work.now_listed, n_now, s, work.moved[s] - stays)
            work.moved[s] = 0.0
    return n_after


@inner_kernel
def _spread(
    motion: Motion,
    flow: FloatArray,
    listed: Int32Array,
    n: int,
    moved: FloatArray,
    moved_listed: Int32Array,
) -> int:
    """Move the `n` listed flows by one node; return how many states they reach."""
    n_moved = 0
    for i in range(n):
        s = listed[i]
        if flow[s] < _FLOW:
            continue
        v = motion.node_of[s]
        arc, turns = motion.first_arc_of[v], motion.first_turn_of[s]
        for j in range(motion.first_arc_of[v + 1] - arc):
            goes = flow[s] * motion.turn[turns + j]
            n_moved = _add(moved, moved_listed, n_moved, motion.next_state_of[arc + j], goes)
    return n_moved


class _BackWork(NamedTuple):
    """Flows by number of moves and state, all zero between two uses, and what each is worth."""

    flow: FloatArray
    listed: Int32Array
    n_listed: IntArray
    """`flow`, `listed`, `n_listed`: masses that make another move, shape (moves + 1, states), the
    states that have any, and how many these are, shape (moves + 1,)."""
    worth: FloatArray
    """How likely all that follows is for a device in such a flow, shape (moves + 1, states)."""
    goal: FloatArray
    """How likely all that follows is for a device that has stopped, shape (states,)."""


@kernel
def moved_back(motion: Motion, before: Masses, after: Masses, mass: FloatArray) -> FloatArray:
    """Return the masses before a step, given those after it that are known in hindsight.

    Parameters
    ----------
    before
        Masses before the step, given what was known then.
    after
        `moved_on(motion, before)`, with the same runs of owner and life.
    mass
        Masses after the step given what is known now, in the order of `after`.

    Returns
    -------
    mass
        In the order of `before`; those of an owner have the same sum as before.

    Notes
    -----
    The adjoint of `moved_on`, with the same small flows neglected: a mass is worth what the masses
    that come of it are worth, and these are worth `mass / after.mass`.
    """
    n_states, n_levels = len(motion.node_of), len(motion.stop) + 1
    work = _BackWork(
        np.zeros((n_levels, n_states)),
        np.zeros((n_levels, n_states), np.int32),
        np.zeros(n_levels, np.int64),
        np.zeros((n_levels, n_states)),
        np.zeros(n_states),
    )
    known = np.zeros(len(before.mass))
    i, j = 0, 0
    while i < len(before.mass):
        a, c, first, first_after = before.owner[i], before.life[i], i, j
        while i < len(before.mass) and before.owner[i] == a and before.life[i] == c:
            i += 1
        while j < len(after.mass) and after.owner[j] == a and after.life[j] == c:
            work.goal[after.state[j]] = mass[j] / after.mass[j]
            j += 1
        _move_back(motion, work, before, known, first, i)
        for other in range(first_after, j):
            work.goal[after.state[other]] = 0.0
    return known


@inner_kernel
def _move_back(
    motion: Motion, work: _BackWork, before: Masses, known: FloatArray, first: int, end: int
) -> None:
    """Fill in the masses `first` to `end`, exclusive, and clear the flows."""
    n = 0
    for i in range(first, end):
        s = before.state[i]
        goes = before.mass[i] * _leaves(motion, s)
        n = _add(work.flow[0], work.listed[0], n, s, goes)
    work.n_listed[0] = n
    last = len(motion.stop)
    for m in range(last):
        n = _spread(motion, work.flow[m], work.listed[m], n, work.flow[m + 1], work.listed[m + 1])
        work.n_listed[m + 1] = n
        for i in range(n):
            work.flow[m + 1, work.listed[m + 1, i]] *= 1.0 - motion.stop[m]
    for m in range(last - 1, -1, -1):
        for i in range(work.n_listed[m]):
            s = work.listed[m, i]
            work.worth[m, s] = _worth(motion, work, m, s)
    for i in range(first, end):
        s = before.state[i]
        leave, v = _leaves(motion, s), motion.node_of[s]
        stand = motion.first_state_of[v + 1] - 1
        settles = 0.0 if s == stand else motion.settles[v]
        stays = (1.0 - settles) * work.goal[s] + settles * work.goal[stand]
        known[i] = before.mass[i] * ((1.0 - leave) * stays + leave * work.worth[0, s])
    for m in range(last + 1):
        for i in range(work.n_listed[m]):
            work.flow[m, work.listed[m, i]] = 0.0
            work.worth[m, work.listed[m, i]] = 0.0


@inner_kernel
def _worth(motion: Motion, work: _BackWork, m: int, s: int) -> float:
    """Return what a flow in state `s` is worth that has made `m` moves and makes another one."""
    worth = 0.0
    if work.flow[m, s] < _FLOW:
        return worth
    v = motion.node_of[s]
    arc, turns = motion.first_arc_of[v], motion.first_turn_of[s]
    for j in range(motion.first_arc_of[v + 1] - arc):
        after = motion.next_state_of[arc + j]
        stop = motion.stop[m]
        worth += motion.turn[turns + j] * (
            stop * work.goal[after] + (1.0 - stop) * work.worth[m + 1, after]
        )
    return worth
