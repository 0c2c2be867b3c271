"""Naive twins of following devices one by one: all assignments, and dictionaries of masses."""

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.attacks.association import associate
from anonymizer.algorithms.attacks.evidence import SLIP
from anonymizer.algorithms.attacks.motion import Motion
from anonymizer.domain.arrays import FloatArray
from tests.algorithms.attacks.naive_tracking import FREE, Masses, NaiveLife, begun, moved_on

LEAST = 1e-5
LEAST_EXISTENCE = 0.02


def naive_association(inside: FloatArray, outside: FloatArray, size: int) -> FloatArray:
    """Return the probability of each place of each device, the last one outside, by enumeration.

    Exactly `size` devices are inside, and each piece has one or more.
    """
    n, m = inside.shape
    weights = np.column_stack([inside, outside])
    found = np.zeros((n, m + 1))
    for places in product(range(m + 1), repeat=n):
        members = [place for place in places if place < m]
        if len(members) == size and set(members) == set(range(m)):
            weight = math.prod(weights[j, place] for j, place in enumerate(places))
            for j, place in enumerate(places):
                found[j, place] += weight
    shares: FloatArray = found / found.sum(axis=1, keepdims=True)
    return shares


def naive_follow(
    lives: Sequence[NaiveLife],
    last_step_of: Sequence[int],
    motion: Motion,
    *,
    n_present: int,
    start: int,
    enter: int,
    n_steps: int,
) -> list[dict[int, float]]:
    """Return the belief about one target at each step from `enter` on."""
    node_of, tracks = motion.node_of.tolist(), [Masses() for _ in range(0)]
    target: dict[int, Masses] = {}
    beliefs = []
    for t in range(n_steps):
        if t > 0:
            tracks = [moved_on(motion, freed(track, last_step_of, t)) for track in tracks]
            target = {j: moved_on(motion, freed(m, last_step_of, t)) for j, m in target.items()}
        for c, life in enumerate(lives):
            if t not in life.regions:
                continue
            begins, pieces = min(life.regions) == t, life.regions[t]
            source = FREE if begins else c
            inside = np.array(
                [
                    [
                        sum(m for (b, s), m in track.items() if b == source and node_of[s] in piece)
                        for piece in pieces
                    ]
                    for track in tracks
                ]
            ).reshape(-1, len(pieces))
            near = np.flatnonzero(inside.sum(axis=1) > 1e-6).tolist()
            alive = [sum(m for (b, _), m in track.items() if b == c) for track in tracks]
            outside = [
                1.0 if begins else max(1 - alive[j] + SLIP * (alive[j] - inside[j].sum()), SLIP)
                for j in near
            ]
            unknown = max(n_present - sum(sum(m.values()) for m in tracks), SLIP * n_present)
            density = [sum(motion.density[v] for v in piece) for piece in pieces]
            factor, total, new = associate(
                inside[near],
                np.array(outside, np.float64),
                np.array(density) * (unknown if begins else SLIP),
                life.n_devices,
            )
            said = Said(c, begins, pieces, node_of, near, factor, total)
            tracks = [told(track, j, said, slip=0.0) for j, track in enumerate(tracks)]
            target = {j: told(m, j, said, slip=SLIP) for j, m in target.items()}
            tracks += born(motion, c, pieces, new.tolist())
        tracks = [
            {key: m for key, m in track.items() if m > LEAST}
            if sum(track.values()) > LEAST_EXISTENCE
            else {}
            for track in tracks
        ]
        if t == enter:
            here = {
                -1: scaled_by(
                    begun(motion, start), unknown_of(tracks, n_present) * motion.density[start]
                )
            }
            for j, track in enumerate(tracks):
                here[j] = {key: m for key, m in track.items() if node_of[key[1]] == start}
            target = here
        if t >= enter:
            whole = sum(sum(m.values()) for m in target.values())
            target = {
                j: {key: m / whole for key, m in masses.items() if m / whole > LEAST}
                for j, masses in target.items()
            }
            belief: defaultdict[int, float] = defaultdict(float)
            for masses in target.values():
                for (_, s), m in masses.items():
                    belief[node_of[s]] += m
            beliefs.append(dict(belief))
    return beliefs


def unknown_of(tracks: Sequence[Masses], n_present: int) -> float:
    return max(n_present - sum(sum(m.values()) for m in tracks), SLIP * n_present)


def scaled_by(masses: Masses, scale: float) -> Masses:
    return {key: mass * scale for key, mass in masses.items()}


def freed(masses: Masses, last_step_of: Sequence[int], t: int) -> Masses:
    found: defaultdict[tuple[int, int], float] = defaultdict(float)
    for (life, s), mass in masses.items():
        over = life != FREE and last_step_of[life] < t
        found[FREE if over else life, s] += mass
    return dict(found)


class Said(NamedTuple):
    """What a region says; `near` are the tracks of the rows of `factor` and `total`."""

    life: int
    begins: bool
    pieces: Sequence[frozenset[int]]
    node_of: Sequence[int]
    near: Sequence[int]
    factor: FloatArray
    total: FloatArray


def told(masses: Masses, track: int, said: Said, *, slip: float) -> Masses:
    row = said.near.index(track) if track in said.near else -1
    found: defaultdict[tuple[int, int], float] = defaultdict(float)
    for (before, s), mass in masses.items():
        held = [p for p, piece in enumerate(said.pieces) if said.node_of[s] in piece]
        times = said.factor[row][held[0]] if held else slip
        if said.begins and before == FREE and held:
            found[said.life, s] += mass / said.total[row] * times
        stays = not said.begins and before == said.life
        found[before, s] += mass / said.total[row] * (times if stays else 1.0)
    return dict(found)


def born(
    motion: Motion, life: int, pieces: Sequence[frozenset[int]], new: Sequence[float]
) -> list[Masses]:
    found = []
    for piece, n in zip(pieces, new, strict=True):
        if n > LEAST_EXISTENCE:
            whole = sum(motion.density[v] for v in piece)
            n_new = math.ceil(n - LEAST_EXISTENCE)
            track = {
                (life, s): share * motion.density[v] / whole * n / n_new
                for v in piece
                for (_, s), share in begun(motion, v).items()
            }
            found += [dict(track) for _ in range(n_new)]
    return found
