"""Division of a table into ranges that can be anonymized one by one, learned from a sample.

Methods that fill classes along the Hilbert order get stretches of that order. Methods that cut the
table from the top, which are all others, get the boxes that their own first cuts make: across
stretches of a curve their classes would lose more, see notes/laboratory.md.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.cells.nodes import LEAF
from anonymizer.algorithms.cells.tree import bare, divided, grow, leaves
from anonymizer.algorithms.cells.tree_features import (
    FeatureArray,
    coded_features,
    features_by_value,
)
from anonymizer.algorithms.kaca.features import features
from anonymizer.algorithms.models.model import MadeOf
from anonymizer.algorithms.records.boxes import first_cuts
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.hilbert import hilbert_key
from anonymizer.algorithms.records.methods import cuts as cuts_from_the_top
from anonymizer.algorithms.records.problem import Problem, make_problem
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.arrays import Int32Array, IntArray, RecordArray
from anonymizer.domain.partial_promises import promise_about
from anonymizer.domain.records import Records


class Division(Protocol):
    """Tells the range of any record of the table. Ranges with adjacent numbers are similar."""

    @property
    def n_ranges(self) -> int:
        """Number of ranges."""

    def ranges_of(self, qi: Int32Array, turn: IntArray) -> Int32Array:
        """Return the range of each record, 0 and up, shape (n,).

        `qi`: codes, shape (n, qis). `turn`: any number >= 0; where so many records are equal that
        they need several ranges, those of equal numbers stay together.
        """


def divide(
    qi: Int32Array, former: Former, *, n_ranges: int, target: ModelTarget | None = None
) -> Division:
    """Return a division into about `n_ranges`, none much larger than the table over `n_ranges`.

    Parameters
    ----------
    qi, target
        Codes and target of all records, or of an even sample; at least one record.
    """
    in_stretches = former.model.formed is MadeOf.STRETCHES
    if n_ranges == 1 or (in_stretches and not cuts_from_the_top(former.method)):
        sizes = [attribute.size for attribute in former.schema.qis]
        return Stretches(cuts(hilbert_key(qi, sizes), n_ranges), sizes)
    min_leaf = max(len(qi) // (2 * n_ranges), 1)
    if in_stretches:
        node = first_cuts(_cut_problem(qi, former, min_leaf))
    elif former.model.formed is MadeOf.CELLS:
        node = grow(
            _records(qi),
            former.schema,
            target,
            min_leaf=min_leaf,
            seed=former.seed,
            usual_qi=former.usual_qi,
        ).tree.node
    else:
        seen = features_by_value(_features(qi, former))
        node = divided(bare(len(qi)), seen, np.ones(len(seen.start)), min_leaf=min_leaf).node
    leaf = np.flatnonzero(node["left"] == LEAF)
    leaf = leaf[np.argsort(node["start"][leaf], kind="stable")]
    n_parts = np.maximum(node["size"][leaf] // (2 * min_leaf), 1)
    first, parts = np.zeros((2, len(node)), np.int64)
    first[leaf], parts[leaf] = np.cumsum(n_parts) - n_parts, n_parts
    return Boxes(node, first, parts, former)


def _cut_problem(qi: Int32Array, former: Former, min_leaf: int) -> Problem:
    """Return the problem of parts of `min_leaf` records that keep the promise about these codes."""
    names = {attribute.name for attribute in former.schema.qis}
    promise = promise_about(former.promise, names, sensitive=False)
    return make_problem(
        _records(qi),
        replace(former.schema, sensitive=()),
        replace(promise, k=min_leaf, l=1, margin=0),
        cost=former.cost,
        weights=former.weights,
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stretches:
    """Stretches of the Hilbert order."""

    cut: NDArray[np.uint64]
    sizes: list[int]

    @property
    def n_ranges(self) -> int:
        """Number of ranges."""
        return len(self.cut) + 1

    def ranges_of(self, qi: Int32Array, turn: IntArray) -> Int32Array:
        """Return the range of each record, see `Division`."""
        key = hilbert_key(qi, self.sizes)
        last = np.searchsorted(self.cut, key, side="right")
        n_choices = np.maximum(last - np.searchsorted(self.cut, key, side="left"), 1)
        found: Int32Array = (last - turn % n_choices).astype(np.int32)
        return found


def cuts(key: NDArray[np.uint64], n_ranges: int) -> NDArray[np.uint64]:
    """Return the keys at which ranges of about equal size begin, rising, shape (n_ranges - 1,).

    Parameters
    ----------
    key
        See `hilbert_key`, shape (n,), in any order, n > 0.
    """
    return np.sort(key)[np.arange(1, n_ranges) * len(key) // n_ranges]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Boxes:
    """The leaves of a tree over the features of a model.

    `node`: see `cells.tree`; `first`, `parts`: first range and number of ranges of each leaf, shape
    (nodes,).
    """

    node: RecordArray
    first: IntArray
    parts: IntArray
    former: Former

    @property
    def n_ranges(self) -> int:
        """Number of ranges."""
        return int(self.parts.sum())

    def ranges_of(self, qi: Int32Array, turn: IntArray) -> Int32Array:
        """Return the range of each record, see `Division`."""
        leaf = leaves(_features(qi, self.former), self.node)
        found: Int32Array = (self.first[leaf] + turn % self.parts[leaf]).astype(np.int32)
        return found


def _features(qi: Int32Array, former: Former) -> FeatureArray:
    """Return the features by which the model divides records, shape (n, features)."""
    if former.model.formed is MadeOf.STRETCHES:
        return qi.astype(np.float32)
    if former.model.formed is MadeOf.CELLS:
        return coded_features(qi, former.schema.qis).of()
    return features(_records(qi), former.schema, former.features).of().astype(np.float32)


def _records(qi: Int32Array) -> Records:
    """Return records of quasi-identifiers alone."""
    return Records(qi, np.zeros((len(qi), 0), np.int32), np.arange(len(qi), dtype=np.int32))
