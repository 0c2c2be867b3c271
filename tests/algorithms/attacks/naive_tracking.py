"""Naive twin of the tracking attack: one dictionary for each life, and plain sums."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from anonymizer.algorithms.attacks.lives import Lives
from anonymizer.algorithms.attacks.motion import Motion

Place: TypeAlias = int
"""A state of the motion model."""
Masses: TypeAlias = dict[Place, float]
FREE = -1


@dataclass(frozen=True, slots=True)
class NaiveLife:
    """The regions that so many devices publish, by tick: nodes and their odds."""

    n_devices: float
    regions: dict[int, dict[int, float]]


def naive_lives(lives: Lives) -> list[NaiveLife]:
    found = [NaiveLife(float(n), {}) for n in lives.size]
    for t in range(lives.n_ticks):
        for r in range(lives.first_record_of[t], lives.first_record_of[t + 1]):
            region = lives.region_of[r]
            slots = slice(lives.first_node_of[region], lives.first_node_of[region + 1])
            odds = dict(zip(lives.node[slots].tolist(), lives.odds[slots].tolist(), strict=True))
            found[lives.life_of[r]].regions[t] = odds
    return found


def moved_on(motion: Motion, masses: Masses) -> Masses:
    after: defaultdict[Place, float] = defaultdict(float)
    for start, mass in masses.items():
        leave = motion.leave[motion.node_of[start]]
        after[start] += mass * (1 - leave)
        on_the_way = {start: mass * leave}
        for stop in motion.stop:
            arrived: defaultdict[Place, float] = defaultdict(float)
            for s, m in on_the_way.items():
                arcs = range(*motion.first_arc_of[motion.node_of[s] : motion.node_of[s] + 2])
                turn = motion.turn[motion.first_turn_of[s] : motion.first_turn_of[s + 1]]
                for arc, share in zip(arcs, turn, strict=True):
                    arrived[int(motion.next_state_of[arc])] += m * share
            for s, m in arrived.items():
                after[s] += m * stop
            on_the_way = {s: m * (1 - stop) for s, m in arrived.items()}
    return {s: m for s, m in after.items() if m > 0}


def naive_track(  # noqa: C901  the whole filter at a glance
    lives: Sequence[NaiveLife],
    motion: Motion,
    *,
    n_present: Sequence[int],
    start: int,
) -> list[dict[int, float]]:
    """Return the belief by node at each tick; `AssertionError` if the target is lost."""
    n_nodes = len(motion.leave)
    node_of = motion.node_of.tolist()
    origin = [int(s) for s in motion.first_state_of[:-1]]
    crowd: dict[int, Masses] = {FREE: {}}
    target: dict[int, Masses] = {FREE: {origin[start]: 1.0}}
    beliefs = []
    for t, present in enumerate(n_present):
        if t > 0:
            crowd = {c: moved_on(motion, m) for c, m in crowd.items()}
            target = {c: moved_on(motion, m) for c, m in target.items()}
        alive = [c for c, life in enumerate(lives) if min(life.regions) <= t <= max(life.regions)]
        begun = [c for c in alive if min(lives[c].regions) == t]
        remaining = max(0.0, present - sum(lives[c].n_devices for c in alive))
        births = sum(lives[c].n_devices for c in begun) + remaining - sum(crowd[FREE].values())
        for s in origin:
            crowd[FREE][s] = crowd[FREE].get(s, 0.0) + max(births, 0.0) / n_nodes
        after: list[dict[int, Masses]] = [{FREE: {}}, {FREE: {}}]
        n_free = sum(crowd[FREE].values())
        for before, then in zip((crowd, target), after, strict=True):
            share = remaining / n_free if n_free else 0.0
            then[FREE] = {s: m * share for s, m in before[FREE].items()}
        for c in alive:
            source = FREE if c in begun else c
            region = lives[c].regions.get(t)
            if region is None:
                weight, region = 1.0, dict.fromkeys(range(n_nodes), 1.0)
            else:
                expected = mass_in(crowd[source].items(), region, node_of)
                weight = lives[c].n_devices / expected if expected else 0.0
            for i, (before, then) in enumerate(zip((crowd, target), after, strict=True)):
                inside = {
                    s: m * weight * region[node_of[s]]
                    for s, m in before.get(source, {}).items()
                    if node_of[s] in region
                }
                if i == 0 and not weight:
                    inside = {origin[v]: lives[c].n_devices / len(region) for v in region}
                into = FREE if max(lives[c].regions) == t else c
                masses = then.setdefault(into, {})
                for s, m in inside.items():
                    masses[s] = masses.get(s, 0.0) + m
        crowd, target = after
        total = sum(sum(m.values()) for m in target.values())
        assert total > 0
        target = {c: {s: m / total for s, m in masses.items()} for c, masses in target.items()}
        belief: defaultdict[int, float] = defaultdict(float)
        for masses in target.values():
            for s, m in masses.items():
                belief[node_of[s]] += m
        beliefs.append(dict(belief))
    return beliefs


def mass_in(
    masses: Iterable[tuple[Place, float]], region: dict[int, float], node_of: list[int]
) -> float:
    return sum(m * region.get(node_of[s], 0.0) for s, m in masses)
