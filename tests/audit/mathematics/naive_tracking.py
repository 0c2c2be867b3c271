"""Naive twins of the tracking attack: dictionaries of masses, and plain sums."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from anonymizer.audit.mathematics.evidence import SLIP, TINY
from anonymizer.audit.mathematics.lives import Lives
from anonymizer.audit.mathematics.motion import Motion

Piece: TypeAlias = frozenset[int]
Masses: TypeAlias = dict[tuple[int, int], float]
"""By life and state of the motion model."""
FREE = -1


@dataclass(frozen=True, slots=True)
class NaiveLife:
    """The regions that so many devices publish, by step: the pieces of each."""

    n_devices: float
    regions: dict[int, list[Piece]]


def naive_lives(lives: Lives) -> list[NaiveLife]:
    found = [NaiveLife(float(n), {}) for n in lives.size]
    first_piece_of, first_node_of, node = lives.regions
    for t in range(lives.n_steps):
        for r in range(lives.first_record_of[t], lives.first_record_of[t + 1]):
            region = lives.region_of[r]
            found[lives.life_of[r]].regions[t] = [
                frozenset(node[first_node_of[p] : first_node_of[p + 1]].tolist())
                for p in range(first_piece_of[region], first_piece_of[region + 1])
            ]
    return found


def moves_of(motion: Motion) -> list[dict[int, float]]:
    """Return where a device in each state is a tick later: the share of each state."""
    return [_moves(motion, start) for start in range(motion.n_states)]


def _moves(motion: Motion, start: int) -> dict[int, float]:
    after: defaultdict[int, float] = defaultdict(float)
    v = motion.node_of[start]
    stand = int(motion.first_state_of[v + 1]) - 1
    leave = motion.sets_off if start == stand else float(motion.leave[v])
    settles = 0.0 if start == stand else float(motion.settles[v])
    after[start] += (1 - leave) * (1 - settles)
    after[stand] += (1 - leave) * settles
    on_the_way = {start: leave}
    for stop in motion.stop.tolist():
        arrived: defaultdict[int, float] = defaultdict(float)
        for s, m in on_the_way.items():
            arcs = range(*motion.first_arc_of[motion.node_of[s] : motion.node_of[s] + 2])
            turn = motion.turn[motion.first_turn_of[s] : motion.first_turn_of[s + 1]]
            for arc, share in zip(arcs, turn.tolist(), strict=True):
                arrived[int(motion.next_state_of[arc])] += m * share
        for s, m in arrived.items():
            after[s] += m * stop
        on_the_way = {s: m * (1 - stop) for s, m in arrived.items()}
    return dict(after)


def moved_on(moves: Sequence[dict[int, float]], masses: Masses) -> Masses:
    after: defaultdict[tuple[int, int], float] = defaultdict(float)
    for (life, start), mass in masses.items():
        for s, share in moves[start].items():
            after[life, s] += mass * share
    return {key: m for key, m in after.items() if m > 0}


def begun(motion: Motion, node: int) -> Masses:
    """Return the free states of a device at a node."""
    first, end = (int(s) for s in motion.first_state_of[node : node + 2])
    stands = float(motion.stands[node])
    return {(FREE, first): 1 - stands, (FREE, end - 1): stands}


def devices_in(means: Sequence[float], n_devices: float) -> list[float]:
    """Return how many devices are in each piece, if there is at least one."""
    if n_devices <= len(means):
        return [n_devices / len(means)] * len(means)

    def expected(scale: float) -> list[float]:
        return [scale * mean / (1 - math.exp(-scale * mean)) for mean in means]

    low, high = 1e-9, n_devices / min(means)
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if sum(expected(middle)) < n_devices else (low, middle)
    return expected(high)


def naive_track(
    lives: Sequence[NaiveLife], motion: Motion, *, n_present: Sequence[int], start: int
) -> list[dict[int, float]]:
    """Return the belief by node at each step."""
    node_of = motion.node_of.tolist()
    moves, target = moves_of(motion), begun(motion, start)
    beliefs = []
    for t, factor in enumerate(naive_evidence(lives, motion, moves, n_present)):
        if t > 0:
            target = moved_on(moves, target)
        target = scaled(weighed(target, lives, factor, node_of, t))
        beliefs.append(by_node(target, node_of))
    return beliefs


def scaled(masses: Masses) -> Masses:
    total = sum(masses.values())
    return {key: mass / total for key, mass in masses.items()}


def by_node(masses: Masses, node_of: list[int]) -> dict[int, float]:
    belief: defaultdict[int, float] = defaultdict(float)
    for (_, s), mass in masses.items():
        belief[node_of[s]] += mass
    return dict(belief)


def naive_evidence(
    lives: Sequence[NaiveLife],
    motion: Motion,
    moves: Sequence[dict[int, float]],
    n_present: Sequence[int],
) -> list[dict[tuple[int, int], float]]:
    """Return the factors of each step, given the crowd."""
    node_of = motion.node_of.tolist()
    crowd: Masses = {}
    found = []
    for t, present in enumerate(n_present):
        if t > 0:
            crowd = moved_on(moves, crowd)
        births = max(present - sum(crowd.values()), SLIP * present)
        for v, density in enumerate(motion.density):
            for key, share in begun(motion, v).items():
                crowd[key] = crowd.get(key, 0.0) + births * density * share
        found.append(factors(lives, crowd, node_of, t, present))
        crowd = weighed(crowd, lives, found[-1], node_of, t)
    return found


def factors(
    lives: Sequence[NaiveLife], crowd: Masses, node_of: list[int], t: int, present: int
) -> dict[tuple[int, int], float]:
    """Return the factor of a mass in each life and node; at node -1 that of staying free."""
    alive = [life for life in lives if min(life.regions) <= t <= max(life.regions)]
    unpublished = present - sum(life.n_devices for life in alive)
    free = sum(mass for (life, _), mass in crowd.items() if life == FREE)
    found = {(FREE, -1): min(max(SLIP, unpublished / free), 1.0) if lives else 1.0}
    for c, life in enumerate(lives):
        if t not in life.regions:
            continue
        source = FREE if min(life.regions) == t else c
        pieces = life.regions[t]
        means = [
            TINY + sum(m for (b, s), m in crowd.items() if b == source and node_of[s] in piece)
            for piece in pieces
        ]
        for piece, mean, n in zip(pieces, means, devices_in(means, life.n_devices), strict=True):
            found |= {(c, v): n / mean for v in piece}
    return found


def weighed(
    masses: Masses,
    lives: Sequence[NaiveLife],
    factor: dict[tuple[int, int], float],
    node_of: list[int],
    t: int,
) -> Masses:
    after: defaultdict[tuple[int, int], float] = defaultdict(float)
    for (before, s), mass in masses.items():
        if before == FREE:
            after[FREE, s] += mass * factor[FREE, -1]
        for c, life in enumerate(lives):
            if before != (FREE if min(life.regions) == t else c):
                continue
            into = FREE if max(life.regions) == t else c
            if t not in life.regions:
                after[c, s] += mass
            elif before == c or (c, node_of[s]) in factor:
                after[into, s] += mass * factor.get((c, node_of[s]), SLIP)
    return after
