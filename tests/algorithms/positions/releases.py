"""Releases for tests: conversion to and from groups of plain lists; devices at nodes."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from anonymizer.algorithms.positions.cloaks.protocol import MemorylessCloak
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Cloaked, Release
from tests.naive import Group


def devices_at(network: RoadNetwork, nodes: Sequence[int]) -> DensityMap:
    """Return the density map of devices 0, 1, ... at these nodes."""
    density = DensityMap.empty(network)
    slot = np.arange(len(nodes), dtype=np.int32)
    density.advance(slot, np.zeros(len(nodes)), np.array(nodes, np.int32))
    return density


def release_of(groups: Sequence[Group]) -> Release:
    return Release(
        k=np.array([group.k for group in groups], np.int32),
        first_node_of=_starts([len(group.region) for group in groups]),
        node=np.array([v for group in groups for v in group.region], np.int32),
        first_member_of=_starts([len(group.members) for group in groups]),
        member=np.array([m for group in groups for m in group.members], np.int32),
        version=np.zeros(sum(len(group.members) for group in groups), np.int64),
    )


def groups_of(release: Release) -> list[Group]:
    regions = _parts(release.node.tolist(), release.first_node_of)
    members = _parts(release.member.tolist(), release.first_member_of)
    return [Group(*row) for row in zip(release.k.tolist(), regions, members, strict=True)]


class FixedCloak(MemorylessCloak):
    """Releases the same groups whichever devices report, with one outcome for all of them."""

    reciprocal = False

    def __init__(self, groups: Sequence[Group], outcome: Outcome = Outcome.PUBLISHED) -> None:
        self._groups = groups
        self._outcome = outcome

    def cloak(self, density: DensityMap, slot: Int32Array, *, now: float) -> Cloaked:  # noqa: ARG002
        return Cloaked(release_of(self._groups), np.full(len(slot), self._outcome, np.uint8))


def _starts(sizes: list[int]) -> IntArray:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _parts(items: list[int], starts: IntArray) -> list[list[int]]:
    return [items[start:end] for start, end in pairwise(starts.tolist())]
