"""Indistinguishability: how many others publish the same region, or share the same whole life.

The first bounds an adversary who inverts the cloaking algorithm for one record, the second one who
follows a pseudonym from beginning to end.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from anonymizer.algorithms.releases.observed import Observed, n_distinct_in
from anonymizer.domain.arrays import IntArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Instants:
    """Distinct pairs of tick and region, by rising tick."""

    tick: IntArray
    region: IntArray
    """`tick`, `region`: tick and region of each instant, shape (instants,)."""
    k: IntArray
    """Largest k stated by a record of the instant, shape (instants,)."""
    instant_of: IntArray
    """Instant of each record, shape (records,)."""

    def n_sharing(self, identity_of: IntArray) -> IntArray:
        """Return how many distinct identities publish each record's region at its time.

        Parameters
        ----------
        identity_of
            Device of each record if known, else its pseudonym, shape (records,).

        Returns
        -------
        n
            Shape (records,). An adversary who inverts the cloaking algorithm is left with at
            least this many: he computes the same result from the record of each of them.
        """
        return n_distinct_in(self.instant_of, identity_of, len(self.tick))[self.instant_of]


def instants_of(observed: Observed) -> Instants:
    """Return the distinct pairs of tick and region. O(records log records)."""
    pair = observed.tick_of.astype(np.int64) * observed.n_regions + observed.region_of
    distinct, instant_of = np.unique(pair, return_inverse=True)
    tick, region = np.divmod(distinct, observed.n_regions)
    k = np.zeros(len(distinct), np.int64)
    np.maximum.at(k, instant_of, observed.k)
    return Instants(tick, region, k, instant_of)


def indistinguishable_classes(observed: Observed) -> IntArray:
    """Return the class of each pseudonym, shape (pseudonyms,).

    Pseudonyms of a class share their whole lives: every time, region and k from first to last.
    Classes are numbered in the order of their first pseudonym.

    Notes
    -----
    It compares the sequences themselves, not hashes of them. O(records).
    """
    life = np.stack((observed.tick_of, observed.region_of, observed.k), axis=1)
    edges = observed.first_record_of.tolist()
    class_of_life: dict[bytes, int] = {}
    return np.array(
        [
            class_of_life.setdefault(life[start:end].tobytes(), len(class_of_life))
            for start, end in pairwise(edges)
        ],
        np.int64,
    )
