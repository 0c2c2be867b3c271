"""Evidence of the tracking attack: what each step of a release says about where devices are.

The masses of the crowd are expected numbers of devices in place of probabilities (a probability
hypothesis density [1]_). They give the likelihood. The devices in a piece are taken to be Poisson
with the mean that the crowd predicts, given that each piece of a region holds at least one and the
whole region as many as the life has. If the mean becomes E where it was mu, the target is E / mu
times as likely to be there, under that life. So a region that the crowd predicted says nothing new,
and successive regions do not count the same evidence twice, as multiplying the densities of
successive regions would.

References
----------
.. [1] R. Mahler, "Multitarget Bayes filtering via first-order multitarget moments", IEEE
   Transactions on Aerospace and Electronic Systems 39(4), 2003.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.releases.pieces import PieceRegions
from anonymizer.audit.mathematics.lives import Lives
from anonymizer.audit.mathematics.masses import (
    FREE,
    NEGLECTED,
    Masses,
    moved_on,
    only,
    sorted_by_life,
)
from anonymizer.audit.mathematics.motion import Motion
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

SLIP = 1e-3
"""Probability that a region lacks a device of its life, and share of devices that appear anywhere
in a step: no published region can contradict the whole belief."""
TINY = 1e-9
"""Devices in a piece that the crowd does not expect at all."""
_HALVINGS = 30


class Evidence(NamedTuple):
    """What a step says about masses, as factors to multiply them by."""

    hidden: float
    """Factor of a free mass that is not published."""
    free: FloatArray
    """Factor of a free mass that is published by a life of this step alone, shape (nodes,)."""
    first_at: IntArray
    life: Int32Array
    factor: FloatArray
    """`first_at`, `life`, `factor`: factors of masses in longer lives, in compressed sparse rows by
    node."""
    begins: BoolArray
    ends: BoolArray
    publishes: BoolArray
    """`begins`, `ends`, `publishes`: which lives begin or end in this step or have a record in it,
    shape (lives,)."""


def evidence_of(lives: Lives, motion: Motion, n_present: IntArray) -> Iterator[Evidence | None]:
    """Yield what each step says, in order; None if nothing is released at all.

    Parameters
    ----------
    n_present
        Number of devices present at each step, published or not, shape (steps,).
    """
    crowd = Masses(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))
    unpublished = np.maximum(n_present - lives.n_alive, 0.0)
    for t in range(lives.n_steps):
        if not len(lives.size):
            yield None
            continue
        if t > 0:
            crowd = Masses(*moved_on(motion, crowd, np.ones(1, bool)))
        crowd = _with_births(crowd, motion, float(n_present[t]))
        free = float(crowd.mass[crowd.life == FREE].sum())
        hidden = min(max(SLIP, float(unpublished[t]) / free), 1.0)
        evidence = Evidence(hidden, *_read(lives, t, crowd, motion.node_of, len(motion.leave)))
        crowd, _ = weighed(crowd, evidence, motion.node_of, np.ones(1))
        crowd = only(crowd, crowd.mass > NEGLECTED)
        yield evidence


def weighed(
    masses: Masses, evidence: Evidence, node_of: Int32Array, silence: FloatArray
) -> tuple[Masses, IntArray]:
    """Return the masses given a step, by owner and life, and the mass from which each one comes.

    Parameters
    ----------
    masses
        Masses before the step. Each becomes one or more: who is free may begin a life.
    silence
        Of each owner, as in `Schedule`, shape (owners,).
    """
    owner, life, state, mass, source = _weigh(masses, evidence, node_of, silence)
    return sorted_by_life(Masses(owner, life, state, mass), source)


def _with_births(crowd: Masses, motion: Motion, n_present: float) -> Masses:
    """Add the devices that the crowd lacks, wherever devices usually are."""
    births = max(n_present - float(crowd.mass.sum()), SLIP * n_present)
    row, state, share = motion.states_at(np.arange(len(motion.leave)))
    n = len(row)
    return Masses(
        np.concatenate([np.zeros(n, np.int32), crowd.owner]),
        np.concatenate([np.full(n, FREE, np.int32), crowd.life]),
        np.concatenate([state, crowd.state]),
        np.concatenate([births * motion.density[row] * share, crowd.mass]),
    )


@kernel
def _read(
    lives: Lives, t: int, crowd: Masses, node_of: Int32Array, n_nodes: int
) -> tuple[FloatArray, IntArray, Int32Array, FloatArray, BoolArray, BoolArray, BoolArray]:
    """Return the fields of `Evidence` after `hidden`, given what the crowd predicts."""
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
def _nodes(regions: PieceRegions, region: int) -> tuple[int, int]:
    """Return the first entry of a region in `PieceRegions.node`, and the one after the last."""
    first = regions.first_piece_of[region]
    end = regions.first_piece_of[region + 1]
    return regions.first_node_of[first], regions.first_node_of[end]


@kernel
def _count(
    by_node: FloatArray, crowd: Masses, node_of: Int32Array, life: int, scale: float
) -> None:
    """Add the masses of a life to those of their nodes; with scale 0, set them to 0."""
    first = np.searchsorted(crowd.life, life)
    end = np.searchsorted(crowd.life, life, "right")
    for i in range(first, end):
        v = node_of[crowd.state[i]]
        by_node[v] = scale * (by_node[v] + crowd.mass[i])


@kernel
def _ratios(regions: PieceRegions, region: int, expected: FloatArray, size: float) -> FloatArray:
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
        In the order of `PieceRegions.node`.

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
def _weigh(
    masses: Masses, evidence: Evidence, node_of: Int32Array, silence: FloatArray
) -> tuple[Int32Array, Int32Array, Int32Array, FloatArray, IntArray]:
    """Return what `weighed` returns, by life before the step."""
    room = 0
    for i in range(len(masses.mass)):
        v = node_of[masses.state[i]]
        is_free = masses.life[i] == FREE
        room += 1 + (evidence.first_at[v + 1] - evidence.first_at[v] if is_free else 0)
    owner, life = np.empty(room, np.int32), np.empty(room, np.int32)
    state, mass = np.empty(room, np.int32), np.empty(room)
    source, n = np.empty(room, np.int64), 0
    for i in range(len(masses.mass)):
        c, v = masses.life[i], node_of[masses.state[i]]
        here = range(evidence.first_at[v], evidence.first_at[v + 1])
        silent = silence[masses.owner[i]]
        if c == FREE:
            for e in here:
                if evidence.begins[evidence.life[e]]:
                    owner[n], life[n] = masses.owner[i], evidence.life[e]
                    state[n], mass[n] = masses.state[i], masses.mass[i] * evidence.factor[e]
                    source[n] = i
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
        source[n] = i
        n += 1
    return owner[:n].copy(), life[:n].copy(), state[:n].copy(), mass[:n].copy(), source[:n].copy()
