"""The tracking attack: the place of a device some minutes after one known position.

The adversary knows the node of a device at step 0, the release from that step on, the network, and
a motion model learned from other devices. A forward filter keeps the probability of each state of
the target: the life that it is in, or none, and a state of the motion model (Hoh and Gruteser
follow paths through unnamed positions in this way [1]_, Wiedersheim et al. through pseudonyms that
change [2]_; Shokri et al. measure location privacy as the error of such an inference [3]_). What is
a life, and what its regions say, is in `lives`.

The same filter runs for the crowd, whose masses are expected numbers of devices in place of
probabilities (a probability hypothesis density [4]_). They give the likelihood. The devices in a
piece are taken to be Poisson with the mean that the crowd predicts, given that each piece of a
region holds at least one and the whole region as many as the life has. If the mean becomes E where
it was mu, the target is E / mu times as likely to be there, under that life. So a region that the
crowd predicted says nothing new, and successive regions do not count the same evidence twice, as
multiplying the densities of successive regions would.

References
----------
.. [1] B. Hoh, M. Gruteser, "Protecting location privacy through path confusion", SecureComm 2005.
.. [2] B. Wiedersheim, Z. Ma, F. Kargl, P. Papadimitratos, "Privacy in inter-vehicular networks: why
   simple pseudonym change is not enough", WONS 2010.
.. [3] R. Shokri, G. Theodorakopoulos, J.-Y. Le Boudec, J.-P. Hubaux, "Quantifying location
   privacy", IEEE Symposium on Security and Privacy, 2011.
.. [4] R. Mahler, "Multitarget Bayes filtering via first-order multitarget moments", IEEE
   Transactions on Aerospace and Electronic Systems 39(4), 2003.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from anonymizer.algorithms.attacks.lives import Lives, Regions
from anonymizer.algorithms.attacks.motion import Motion
from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

FREE = -1
"""In no life: whoever is free may begin one at the next step."""
NEGLECTED = 1e-6
"""States of a target with less probability are dropped, and those of the crowd with fewer expected
devices."""
SLIP = 1e-3
"""Probability that a region lacks a device of its life, and share of devices that appear anywhere
in a step: no published region can contradict the whole belief."""
TINY = 1e-9
"""Devices in a piece that the crowd does not expect at all."""
_HALVINGS = 30


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tracks:
    """What the adversary believes about each target.

    Attributes
    ----------
    belief
        Probability of each node at each of the steps asked for, shape (targets, steps, nodes).
    neglected
        Probability of the states that were dropped, summed over all steps, shape (targets,).
    """

    belief: FloatArray
    neglected: FloatArray


class Schedule(NamedTuple):
    """When the targets report, for an adversary who knows their phases.

    Attributes
    ----------
    reports
        Whether a target reports in a step, shape (steps, targets). Its place changes only then.
    motion
        Motion from one report of a device to its next one.
    silence
        How many times as often nothing is published about a device in a step in which it reports
        as in any step: 0 if groups publish when a member reports, 1 if when they publish is
        independent of it.
    """

    reports: BoolArray
    motion: Motion
    silence: float = 0.0


class _Masses(NamedTuple):
    """Masses by rising owner and life; a state may be listed several times.

    Attributes
    ----------
    owner
        Number of the target; 0 for all masses of the crowd.
    life, state, mass
        Life or `FREE`, state of the motion model, and probability or number of devices.
    """

    owner: Int32Array
    life: Int32Array
    state: Int32Array
    mass: FloatArray


_MassArrays: TypeAlias = tuple[Int32Array, Int32Array, Int32Array, FloatArray]
"""`_Masses` as kernels return them."""


class _Evidence(NamedTuple):
    """What a step says about masses, as factors of them.

    Attributes
    ----------
    hidden
        Factor of a free mass that is not published.
    free
        Factor of a free mass that is published by a life of this step alone, shape (nodes,).
    first_at, life, factor
        Factors of masses in longer lives, in compressed sparse rows by node.
    begins, ends, publishes
        Which lives begin or end in this step or have a record in it, shape (lives,).
    """

    hidden: float
    free: FloatArray
    first_at: IntArray
    life: Int32Array
    factor: FloatArray
    begins: BoolArray
    ends: BoolArray
    publishes: BoolArray


def track(
    lives: Lives,
    motion: Motion,
    *,
    n_present: IntArray,
    start: IntArray,
    at: IntArray,
    schedule: Schedule | None = None,
) -> Tracks:
    """Track devices from their known positions at step 0.

    Parameters
    ----------
    n_present
        Number of devices present at each step, published or not, shape (steps,).
    start
        Known node of each target at step 0, shape (targets,).
    at
        Steps at which to return the belief, shape (n,).
    schedule
        When the targets report. None: the adversary does not know.

    Notes
    -----
    For each step O(states with a mass * degree * moves in a step + nodes of the regions), for all
    targets and the crowd.
    """
    n_targets = len(start)
    belief = np.zeros((n_targets, len(at), len(motion.leave)))
    neglected = np.zeros(n_targets)
    crowd = _Masses(
        np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0)
    )
    targets = _Masses(
        np.arange(n_targets, dtype=np.int32),
        np.full(n_targets, FREE, np.int32),
        motion.first_state_of[start].astype(np.int32),
        np.ones(n_targets),
    )
    silence = np.ones(n_targets)
    unpublished = np.maximum(n_present - lives.n_alive, 0.0)
    for t in range(lives.n_steps):
        if schedule is None:
            moves, model = np.ones(n_targets, bool), motion
        else:
            # A copy, because numba compiles once more for rows that are not contiguous.
            moves, model = np.ascontiguousarray(schedule.reports[t]), schedule.motion
            silence = np.where(schedule.reports[t], max(schedule.silence, SLIP), 1.0)
        if t > 0:
            targets = _Masses(*_moved(model, targets, moves))
        if len(lives.size):
            if t > 0:
                crowd = _Masses(*_moved(motion, crowd, np.ones(1, bool)))
            crowd = _with_births(crowd, motion, float(n_present[t]))
            free = float(crowd.mass[crowd.life == FREE].sum())
            hidden = min(max(SLIP, float(unpublished[t]) / free), 1.0)
            evidence = _Evidence(hidden, *_read(lives, t, crowd, motion.node_of, len(motion.leave)))
            crowd = _sorted(_Masses(*_weighed(crowd, evidence, motion.node_of, np.ones(1))))
            crowd = _only(crowd, crowd.mass > NEGLECTED)
            targets = _sorted(_Masses(*_weighed(targets, evidence, motion.node_of, silence)))
        total = np.bincount(targets.owner, targets.mass, n_targets)
        share = targets.mass / total[targets.owner]
        kept = share > NEGLECTED
        neglected += np.bincount(targets.owner, np.where(kept, 0.0, share), n_targets)
        targets = _only(targets._replace(mass=share), kept)
        for k in np.flatnonzero(at == t).tolist():
            np.add.at(belief[:, k], (targets.owner, motion.node_of[targets.state]), targets.mass)
    return Tracks(belief / belief.sum(axis=2, keepdims=True), neglected)


def _with_births(crowd: _Masses, motion: Motion, n_present: float) -> _Masses:
    """Add the devices that the crowd lacks, wherever devices usually are."""
    births = max(n_present - float(crowd.mass.sum()), SLIP * n_present)
    n = len(motion.leave)
    return _Masses(
        np.concatenate([np.zeros(n, np.int32), crowd.owner]),
        np.concatenate([np.full(n, FREE, np.int32), crowd.life]),
        np.concatenate([motion.first_state_of[:-1].astype(np.int32), crowd.state]),
        np.concatenate([births * motion.density, crowd.mass]),
    )


def _sorted(masses: _Masses) -> _Masses:
    key = masses.owner.astype(np.int64) << 32 | (masses.life + 1)
    return _only(masses, np.argsort(key, kind="stable"))


def _only(masses: _Masses, chosen: BoolArray | IntArray) -> _Masses:
    owner, life, state, mass = masses
    return _Masses(owner[chosen], life[chosen], state[chosen], mass[chosen])


class _Work(NamedTuple):
    """Masses by state, all zero between two uses, and the states that have any."""

    now: FloatArray
    now_listed: Int32Array
    moved: FloatArray
    moved_listed: Int32Array
    after: FloatArray
    after_listed: Int32Array


@kernel
def _moved(motion: Motion, masses: _Masses, moves: BoolArray) -> _MassArrays:
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
            owner, life = np.concatenate((owner, owner)), np.concatenate((life, life))
            state, mass = np.concatenate((state, state)), np.concatenate((mass, mass))
        for j in range(n_after):
            s = work.after_listed[j]
            owner[n], life[n], state[n], mass[n] = a, c, s, work.after[s]
            work.after[s] = 0.0
            n += 1
    return owner[:n].copy(), life[:n].copy(), state[:n].copy(), mass[:n].copy()


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
def _move(motion: Motion, work: _Work, masses: _Masses, first: int, end: int, share: float) -> int:
    """Move a share of some masses; put all into `work.after`, return how many states it has."""
    n_now, n_after = 0, 0
    for i in range(first, end):
        s = masses.state[i]
        goes = share * masses.mass[i] * motion.leave[motion.node_of[s]]
        n_after = _add(work.after, work.after_listed, n_after, s, masses.mass[i] - goes)
        n_now = _add(work.now, work.now_listed, n_now, s, goes)
    for stop in motion.stop:
        n_moved = 0
        for i in range(n_now):
            s = work.now_listed[i]
            goes = work.now[s]
            work.now[s] = 0.0
            if goes < NEGLECTED / 100:
                continue
            v = motion.node_of[s]
            arc, turns = motion.first_arc_of[v], motion.first_turn_of[s]
            for j in range(motion.first_arc_of[v + 1] - arc):
                n_moved = _add(
                    work.moved,
                    work.moved_listed,
                    n_moved,
                    motion.next_state_of[arc + j],
                    goes * motion.turn[turns + j],
                )
        n_now = 0
        for i in range(n_moved):
            s = work.moved_listed[i]
            stays = work.moved[s] * stop
            n_after = _add(work.after, work.after_listed, n_after, s, stays)
            n_now = _add(work.now, work.now_listed, n_now, s, work.moved[s] - stays)
            work.moved[s] = 0.0
    return n_after


@kernel
def _read(
    lives: Lives, t: int, crowd: _Masses, node_of: Int32Array, n_nodes: int
) -> tuple[FloatArray, IntArray, Int32Array, FloatArray, BoolArray, BoolArray, BoolArray]:
    """Return the fields of `_Evidence` after `hidden`, given what the crowd predicts."""
    regions = lives.regions
    begins, ends = lives.first_step_of == t, lives.last_step_of == t
    publishes = np.zeros(len(begins), np.bool_)
    expected, own, alone = np.zeros(n_nodes), np.zeros(n_nodes), np.zeros(n_nodes)
    _count(expected, crowd, node_of, FREE, 1.0)
    records = range(lives.first_record_of[t], lives.first_record_of[t + 1])
    n_entries = 0
    for r in records:
        nodes = _nodes(regions, lives.region_of[r])
        n_entries += nodes[1] - nodes[0]
    node, life = np.empty(n_entries, np.int32), np.empty(n_entries, np.int32)
    factor, n = np.empty(n_entries), 0
    for r in records:
        c, region = lives.life_of[r], lives.region_of[r]
        publishes[c] = True
        if begins[c]:
            ratio = _ratios(regions, region, expected, lives.size[c])
        else:
            _count(own, crowd, node_of, c, 1.0)
            ratio = _ratios(regions, region, own, lives.size[c])
            _count(own, crowd, node_of, c, 0.0)
        first, end = _nodes(regions, region)
        if begins[c] and ends[c]:
            for j in range(first, end):
                alone[regions.node[j]] += ratio[j - first]
        else:
            node[n : n + end - first] = regions.node[first:end]
            life[n : n + end - first] = c
            factor[n : n + end - first] = ratio
            n += end - first
    first_at = np.zeros(n_nodes + 1, np.int64)
    for i in range(n):
        first_at[node[i] + 1] += 1
    order = np.argsort(node[:n], kind="mergesort")
    return alone, np.cumsum(first_at), life[:n][order], factor[:n][order], begins, ends, publishes


@inner_kernel
def _nodes(regions: Regions, region: int) -> tuple[int, int]:
    """Return the first entry of a region in `Regions.node`, and the one after the last."""
    first = regions.first_piece_of[region]
    end = regions.first_piece_of[region + 1]
    return regions.first_node_of[first], regions.first_node_of[end]


@kernel
def _count(
    by_node: FloatArray, crowd: _Masses, node_of: Int32Array, life: int, scale: float
) -> None:
    """Add the masses of a life to those of their nodes; with scale 0, set them to 0."""
    first = np.searchsorted(crowd.life, life)
    end = np.searchsorted(crowd.life, life, "right")
    for i in range(first, end):
        v = node_of[crowd.state[i]]
        by_node[v] = scale * (by_node[v] + crowd.mass[i])


@kernel
def _ratios(regions: Regions, region: int, expected: FloatArray, size: float) -> FloatArray:
    """Return how many times the expected devices at each node of a region there are, given it.

    Parameters
    ----------
    expected
        Devices expected at each node without it, shape (nodes,).
    size
        Devices in the region. Each piece holds at least one if there are enough; otherwise all
        pieces have an equal share.

    Returns
    -------
    ratio
        In the order of `Regions.node`.

    Notes
    -----
    With the expectations scaled by x and at least one device in each piece, piece p holds
    x mean[p] / (1 - exp(-x mean[p])): x is such that these add up to `size`. O(nodes).
    """
    piece = regions.first_piece_of[region]
    n_pieces = regions.first_piece_of[region + 1] - piece
    mean = np.full(n_pieces, TINY)
    for p in range(n_pieces):
        for j in range(regions.first_node_of[piece + p], regions.first_node_of[piece + p + 1]):
            mean[p] += expected[regions.node[j]]
    if size <= n_pieces:
        ratio = size / n_pieces / mean
    elif n_pieces == 1:
        ratio = size / mean
    else:
        low, high = 0.0, size / mean.sum()
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if (middle * mean / -np.expm1(-middle * mean)).sum() < size:
                low = middle
            else:
                high = middle
        ratio = high / -np.expm1(-high * mean)
    return np.repeat(ratio, np.diff(regions.first_node_of[piece : piece + n_pieces + 1]))


@kernel
def _weighed(
    masses: _Masses, evidence: _Evidence, node_of: Int32Array, silence: FloatArray
) -> _MassArrays:
    """Return the masses after a step, by life before it; `silence`: of each owner, see above."""
    room = 0
    for i in range(len(masses.mass)):
        v = node_of[masses.state[i]]
        is_free = masses.life[i] == FREE
        room += 1 + (evidence.first_at[v + 1] - evidence.first_at[v] if is_free else 0)
    owner, life = np.empty(room, np.int32), np.empty(room, np.int32)
    state, mass = np.empty(room, np.int32), np.empty(room)
    n = 0
    for i in range(len(masses.mass)):
        c, v = masses.life[i], node_of[masses.state[i]]
        here = range(evidence.first_at[v], evidence.first_at[v + 1])
        silent = silence[masses.owner[i]]
        if c == FREE:
            for e in here:
                if evidence.begins[evidence.life[e]]:
                    owner[n], life[n] = masses.owner[i], evidence.life[e]
                    state[n], mass[n] = masses.state[i], masses.mass[i] * evidence.factor[e]
                    n += 1
            factor = max(SLIP, silent * evidence.hidden) + evidence.free[v]
        elif evidence.publishes[c]:
            factor = SLIP
            for e in here:
                if evidence.life[e] == c:
                    factor = evidence.factor[e]
            if evidence.ends[c]:
                c = FREE
        else:
            factor = silent
        owner[n], life[n] = masses.owner[i], c
        state[n], mass[n] = masses.state[i], masses.mass[i] * factor
        n += 1
    return owner[:n].copy(), life[:n].copy(), state[:n].copy(), mass[:n].copy()
