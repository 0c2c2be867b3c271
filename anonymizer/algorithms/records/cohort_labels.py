"""Labels of cohorts: the least that the label of a class holds if it holds a cohort's cover.

How much that is depends on how values are generalized. For the cover {car, bus}, where the order is
car, van, truck, bus: as a range all four, as a set the two, by a taxonomy all that lie below their
lowest common node.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anonymizer.algorithms.records.measures import losses
from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute


def values_in(attributes: Sequence[Attribute], cells: Int32Array) -> tuple[Int32Array, ...]:
    """Return the values in each column, rising, without the missing marker."""
    columns = zip(attributes, cells.T, strict=True)
    return tuple(_real(attribute, np.unique(column)) for attribute, column in columns)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Labels:
    """What the labels of cohorts hold in the lasting quasi-identifiers.

    `forms`: how the loss of each attribute is measured. `lo`, `hi`: first and last code of each
    label, shape (cohorts, columns); of an empty one the last is below the first. `held`: for each
    column that is published as a set, which codes are in it, shape (cohorts, size).
    """

    attributes: Sequence[Attribute]
    forms: Sequence[Cost]
    lo: Int32Array
    hi: Int32Array
    held: tuple[BoolArray | None, ...]

    @classmethod
    def of(
        cls, attributes: Sequence[Attribute], cover: Sequence[Sequence[Int32Array]], cost: Cost
    ) -> "Labels":
        """Return the labels of covers."""
        shape = (len(cover), len(attributes))
        lo, hi = np.full(shape, 2**30, np.int32), np.full(shape, -1, np.int32)
        forms, held = [], []
        for a, attribute in enumerate(attributes):
            by_node = cost is Cost.TAXONOMY and attribute.hierarchy is not None
            is_set = not attribute.numeric and not by_node
            mask = np.zeros((len(cover), attribute.size), bool) if is_set else None
            forms.append(
                Cost.TAXONOMY if by_node else cost if is_set and cost is Cost.SET else Cost.RANGE
            )
            for c, codes in enumerate(cover):
                if len(codes[a]):
                    lo[c, a], hi[c, a] = _ends(attribute, codes[a], by_node=by_node)
                    if mask is not None:
                        mask[c, codes[a]] = True
            held.append(mask)
        return cls(attributes, forms, lo, hi, tuple(held))

    def holds(self, a: int, code: Int32Array, of: IntArray | Int32Array) -> BoolArray:
        """Return whether label `of[i]` holds the value `code[i]` of column a, or it is missing."""
        inside = (self.lo[of, a] <= code) & (code <= self.hi[of, a])
        mask = self.held[a]
        if mask is not None:
            inside &= mask[of, code]
        held: BoolArray = inside | (code == self.attributes[a].missing)
        return held

    def nearest(self, c: int) -> IntArray:
        """Return all labels, first c, then by what a label loses that holds c as well."""
        lo, hi = np.minimum(self.lo, self.lo[c]), np.maximum(self.hi, self.hi[c])
        held = tuple(None if mask is None else mask | mask[c] for mask in self.held)
        loss = replace(self, lo=lo, hi=hi, held=held).loss()
        loss[c] = -1.0
        return np.argsort(loss, kind="stable")

    def loss(self) -> FloatArray:
        """Return the loss of each label, summed over the columns, shape (cohorts,)."""
        lo, hi, held = self.lo, self.hi, self.held
        total = np.zeros(len(lo))
        for a, (attribute, form) in enumerate(zip(self.attributes, self.forms, strict=True)):
            last = np.maximum(hi[:, a], 0)
            first = np.minimum(lo[:, a], last)
            mask = held[a]
            n_codes = last - first + 1 if mask is None else mask.sum(axis=1)
            total += losses(attribute, form, n_codes, first, last)
        return total


def _ends(attribute: Attribute, codes: Int32Array, *, by_node: bool) -> tuple[int, int]:
    """Return the first and the last code that the label of some codes holds."""
    tree = attribute.hierarchy
    lo, hi = int(codes[0]), int(codes[-1])
    if not by_node or tree is None:
        return lo, hi
    level = int(np.argmax(tree.ancestor[lo] == tree.ancestor[hi]))
    below = np.flatnonzero((tree.ancestor == tree.ancestor[lo, level]).any(axis=1))
    real = below[below != attribute.missing]
    return int(real[0]), int(real[-1])


def _real(attribute: Attribute, codes: Int32Array) -> Int32Array:
    real: Int32Array = codes[codes != attribute.missing].astype(np.int32)
    return real
