"""Counts with differential privacy, as tests set them."""

from collections.abc import Sequence

import msgspec
import numpy as np

from anonymizer.algorithms.positions.device_keys import KeyArray
from anonymizer.domain.arrays import IntArray
from anonymizer.outputs.counts.private_counts import (
    BoundedCounts,
    Budget,
    Noise,
    PrivateCounts,
    PrivateCountsMessage,
)
from anonymizer.settings import CountSettings


class NoNoise:
    """Stands in for the noise, so that a test sees what it hides."""

    scale = 0.0

    def epsilon_of(self, n_releases: int) -> float:
        return n_releases / 100

    def added_to(self, numbers: Sequence[int]) -> list[int]:
        return list(numbers)


class Counts:
    """One source and the publisher."""

    def __init__(
        self, settings: CountSettings, budget: Budget, noise: Noise, *, most_devices: int
    ) -> None:
        self._bounded = BoundedCounts(settings, most_devices=most_devices)
        self._made = PrivateCounts(settings, budget, noise, version="abc")

    def message(
        self, cell: IntArray, before: IntArray, key: KeyArray, *, end_s: float
    ) -> PrivateCountsMessage:
        numbers = self._bounded.of(cell, before, key, end_s=end_s)
        return self._made.of_numbers(numbers, end_s=end_s, ahead_s=0.0)


def numbers(message: PrivateCountsMessage) -> IntArray:
    """Return all numbers of a message."""
    if isinstance(message.devices, msgspec.UnsetType):
        return np.zeros(0, np.int64)
    assert not isinstance(message.trips, msgspec.UnsetType)
    return np.concatenate([message.devices, np.ravel(message.trips)])
