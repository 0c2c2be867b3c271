"""Naive twins of following devices one by one: all assignments, and dictionaries of masses."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np

from anonymizer.audit.mathematics.association import associate
from anonymizer.audit.mathematics.evidence import SLIP
from anonymizer.audit.mathematics.motion import Motion
from anonymizer.domain.arrays import FloatArray
from tests.audit.mathematics.naive_tracking import (
    FREE,
    Masses,
    NaiveLife,
    begun,
    moved_on,
    moves_of,
)

LEAST, LEAST_OF_TARGET = 1e-4, 1e-6
LEAST_EXISTENCE = 0.02
USUAL = 0.1


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


class Said(NamedTuple):
    """What a region says; `near` are the tracks of the rows of `factor` and `total`."""

    life: int
    begins: bool
    pieces: Sequence[frozenset[int]]
    node_of: Sequence[int]
    near: Sequence[int]
    factor: FloatArray
    total: FloatArray


@dataclass(slots=True)
class NaiveChase:
    """One target in a release, followed step by step; `filtered` are its states by track."""

    lives: Sequence[NaiveLife]
    last_step_of: Sequence[int]
    motion: Motion
    n_present: int
    start: int
    enter: int
    n_steps: int
    cell_of: Sequence[int]
    tracks: list[Masses] = field(default_factory=list)
    new: FloatArray = field(default_factory=lambda: np.zeros(0))
    said: list[list[Said]] = field(default_factory=list)
    filtered: list[dict[int, Masses]] = field(default_factory=list)
    weights: list[list[float]] = field(default_factory=list)
    moves: list[dict[int, float]] = field(init=False)

    def __post_init__(self) -> None:
        self.moves = moves_of(self.motion)

    def follow(self) -> list[dict[int, float]]:
        """Return the belief about the target at each step from `enter` on."""
        for t in range(self.n_steps):
            if t > 0:
                self.tracks = [self.moved(track, t) for track in self.tracks]
            self.said.append([])
            for c, life in enumerate(self.lives):
                if t in life.regions:
                    self.said[-1].append(self.read(c, life, t))
                    self.learn(self.said[-1][-1])
            self.tracks = [
                {key: m for key, m in track.items() if m > LEAST}
                if sum(track.values()) > LEAST_EXISTENCE
                else {}
                for track in self.tracks
            ]
            if t >= self.enter:
                self.weights.append(self.over_usual())
            if t == self.enter:
                self.filtered.append(scaled(self.entered()))
            elif t > self.enter:
                before = self.filtered[-1].items()
                self.filtered.append(scaled({j: self.advanced(m, j, t) for j, m in before}))
        return [
            by_node(each, self.motion, weight)
            for each, weight in zip(self.filtered, self.weights, strict=True)
        ]

    def look_back(self) -> list[dict[int, float]]:
        """Return the same with hindsight: how likely the future of each state is, one by one."""
        worth = {j: dict.fromkeys(masses, 1.0) for j, masses in self.filtered[-1].items()}
        beliefs = []
        for i in range(len(self.filtered) - 1, -1, -1):
            if i < len(self.filtered) - 1:
                later, worth = worth, {}
                for j, masses in self.filtered[i].items():
                    worth[j] = {
                        key: sum(
                            m * later[j].get(after, 0.0)
                            for after, m in self.advanced({key: 1.0}, j, self.enter + i + 1).items()
                        )
                        for key in masses
                    }
            now = {
                j: {key: m * worth[j][key] for key, m in masses.items()}
                for j, masses in self.filtered[i].items()
            }
            beliefs.append(by_node(scaled(now, least=0.0), self.motion, self.weights[i]))
        return beliefs[::-1]

    def over_usual(self) -> list[float]:
        """Return how many times the usual devices are in the cell of each node."""
        motion, unknown = self.motion, unknown_of(self.tracks, self.n_present)
        n_nodes = len(motion.density)
        at = [unknown * motion.density[v] for v in range(n_nodes)]
        for track in self.tracks:
            for (_, s), m in track.items():
                at[motion.node_of[s]] += m
        found = []
        for v in range(n_nodes):
            cell = [u for u in range(n_nodes) if self.cell_of[u] == self.cell_of[v]]
            usual = sum(self.n_present * motion.density[u] for u in cell)
            found.append((sum(at[u] for u in cell) + USUAL) / (usual + USUAL))
        return found

    def moved(self, masses: Masses, t: int) -> Masses:
        return moved_on(self.moves, freed(masses, self.last_step_of, t))

    def advanced(self, masses: Masses, track: int, t: int) -> Masses:
        masses = self.moved(masses, t)
        for said in self.said[t]:
            masses = told(masses, track, said, slip=SLIP)
        return masses

    def read(self, c: int, life: NaiveLife, t: int) -> Said:
        begins, pieces, node_of = min(life.regions) == t, life.regions[t], self.motion.node_of
        source = FREE if begins else c
        inside = np.array(
            [
                [
                    sum(m for (b, s), m in track.items() if b == source and node_of[s] in piece)
                    for piece in pieces
                ]
                for track in self.tracks
            ],
            np.float64,  # as the fast code has it, or associate is compiled twice
        ).reshape(-1, len(pieces))
        near = np.flatnonzero(inside.sum(axis=1) > 1e-6).tolist()
        alive = [sum(m for (b, _), m in track.items() if b == c) for track in self.tracks]
        whole = [max(1.0, sum(track.values())) for track in self.tracks]
        outside = [
            whole[j]
            if begins
            else max(whole[j] - alive[j] + SLIP * (alive[j] - inside[j].sum()), SLIP)
            for j in near
        ]
        density = [sum(self.motion.density[v] for v in piece) for piece in pieces]
        factor, total, self.new = associate(
            inside[near],
            np.array(outside, np.float64),
            np.array(density) * (unknown_of(self.tracks, self.n_present) if begins else SLIP),
            life.n_devices,
        )
        return Said(c, begins, pieces, node_of.tolist(), near, factor, total)

    def learn(self, said: Said) -> None:
        self.tracks = [told(track, j, said, slip=0.0) for j, track in enumerate(self.tracks)]
        self.tracks += born(self.motion, said.life, said.pieces, self.new.tolist())

    def entered(self) -> dict[int, Masses]:
        node_of = self.motion.node_of
        other = unknown_of(self.tracks, self.n_present) * self.motion.density[self.start]
        here = {-1: {key: m * other for key, m in begun(self.motion, self.start).items()}}
        for j, track in enumerate(self.tracks):
            here[j] = {key: m for key, m in track.items() if node_of[key[1]] == self.start}
        return here


def scaled(target: dict[int, Masses], *, least: float = LEAST_OF_TARGET) -> dict[int, Masses]:
    whole = sum(sum(m.values()) for m in target.values())
    return {
        j: {key: m / whole for key, m in masses.items() if m / whole > least}
        for j, masses in target.items()
    }


def by_node(target: dict[int, Masses], motion: Motion, weight: Sequence[float]) -> dict[int, float]:
    belief: defaultdict[int, float] = defaultdict(float)
    for masses in target.values():
        for (_, s), m in masses.items():
            belief[int(motion.node_of[s])] += m * weight[motion.node_of[s]]
    whole = sum(belief.values())
    return {v: m / whole for v, m in belief.items()}


def unknown_of(tracks: Sequence[Masses], n_present: int) -> float:
    return max(n_present - sum(sum(m.values()) for m in tracks), SLIP * n_present)


def freed(masses: Masses, last_step_of: Sequence[int], t: int) -> Masses:
    found: defaultdict[tuple[int, int], float] = defaultdict(float)
    for (life, s), mass in masses.items():
        over = life != FREE and last_step_of[life] < t
        found[FREE if over else life, s] += mass
    return dict(found)


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
