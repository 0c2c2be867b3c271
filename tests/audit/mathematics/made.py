"""Releases and truths made by hand or at random, small enough to check by eye."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.truth import NOWHERE, Truth
from anonymizer.domain.arrays import starts_of
from anonymizer.networks import load_network

GRID = load_network("grid:4x5")
CITY = load_network("city:60:3")

Line: TypeAlias = tuple[int, int, tuple[int, ...], int]
"""Pseudonym, second, region and k."""


def observed_of(lines: Sequence[Line]) -> Observed:
    """Return the release with these lines, in any order; pseudonyms are 0 to n - 1."""
    lines = sorted(lines)
    time = sorted({second for _, second, _, _ in lines})
    regions = list(dict.fromkeys(region for _, _, region, _ in lines))
    return Observed(
        time=np.array(time, np.float64),
        first_record_of=starts_of(np.bincount([pseudonym for pseudonym, _, _, _ in lines])),
        tick_of=np.array([time.index(second) for _, second, _, _ in lines]),
        region_of=np.array([regions.index(region) for _, _, region, _ in lines]),
        k=np.array([k for _, _, _, k in lines]),
        first_node_of=starts_of(np.array([len(region) for region in regions])),
        node=np.array([node for region in regions for node in region], np.int32),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A release as lines and as arrays, with its truth."""

    lines: list[Line]
    observed: Observed
    truth: Truth


def random_release(seed: int, *, n_devices: int = 6, n_ticks: int = 5) -> Made:
    """Return a release with random regions on the grid, and an unrelated truth."""
    rng = np.random.default_rng(seed)
    lines: list[Line] = []
    for pseudonym in range(int(rng.integers(1, 5))):
        seconds = rng.choice(n_ticks, int(rng.integers(1, n_ticks + 1)), replace=False)
        lines += [
            (pseudonym, int(second), random_region(rng), int(rng.integers(1, 4)))
            for second in seconds
        ]
    observed = observed_of(lines)
    shape = (len(observed.time), n_devices)
    place = rng.integers(NOWHERE, GRID.n_nodes, shape).astype(np.int32)
    on_air = (place >= 0) & (rng.random(shape) < 0.7)
    device_of = rng.permutation(n_devices)[: observed.n_pseudonyms]
    return Made(lines, observed, Truth(place, on_air, device_of))


def random_region(rng: np.random.Generator) -> tuple[int, ...]:
    size = int(rng.integers(1, GRID.n_nodes))
    return tuple(rng.choice(GRID.n_nodes, size, replace=False).tolist())
