"""What an audit has before it, and how figures are made of many values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.attacks.observed import Observed, n_distinct_in
from anonymizer.algorithms.attacks.truth import Truth
from anonymizer.algorithms.positions.readings import ReadingAttribute
from anonymizer.app.audit.findings import Figure
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Values:
    """One attribute that was published per pseudonym.

    Attributes
    ----------
    attribute
        As declared: name and range.
    published
        Value beside the pseudonym of each record, NaN for none, shape (records,).
    sensed
        What the device behind it had sensed by then, likewise.
    """

    attribute: ReadingAttribute
    published: FloatArray
    sensed: FloatArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Case:
    """What was published, what was true, and where.

    Attributes
    ----------
    observed, truth, network
        All of it.
    class_of
        Twin class of each pseudonym.
    sampled
        The pseudonyms that the costly attacks look at.
    density_steps
        Where ADKA's bands of density begin.
    tick_s
        Length of a tick.
    seed
        Of every guess.
    values
        What was published beside pseudonyms, as far as the truth behind it is known.
    """

    observed: Observed
    truth: Truth
    network: RoadNetwork
    class_of: IntArray
    sampled: IntArray
    density_steps: tuple[int, ...]
    tick_s: float
    seed: int
    values: tuple[Values, ...] = ()

    @property
    def has_map(self) -> bool:
        """Whether it is known who the pseudonyms are."""
        return self.truth.device_of is not None

    @property
    def device_of(self) -> IntArray:
        """Device of each pseudonym, shape (pseudonyms,)."""
        if self.truth.device_of is None:
            raise ValueError("who the pseudonyms are is not known")
        return self.truth.device_of

    @property
    def identity_of(self) -> IntArray:
        """Device of each pseudonym where known, else the pseudonym itself."""
        return self.device_of if self.has_map else np.arange(self.observed.n_pseudonyms)

    def true_node_of(self, records: IntArray) -> Int32Array:
        """Return where the devices of some records were, same shape."""
        device = self.device_of[self.observed.pseudonym_of[records]]
        return self.truth.place[self.observed.tick_of[records], device]

    def n_twins(self) -> IntArray:
        """Return how many devices share the life of each pseudonym, shape (pseudonyms,)."""
        n_classes = int(self.class_of.max()) + 1
        return n_distinct_in(self.class_of, self.identity_of, n_classes)[self.class_of]


def mean(values: NDArray[Any]) -> float:
    """Return the mean of what is never nothing."""
    return float(np.mean(values))


def of_any(statistic: Callable[[NDArray[Any]], Any], values: NDArray[Any]) -> Figure:
    """Return a statistic of values, None when there are none."""
    return float(statistic(values)) if len(values) else None
