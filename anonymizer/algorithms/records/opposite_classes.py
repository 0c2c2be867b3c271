"""Broken classes that are joined with opposite ones, where a distribution is asked for.

In a place where most have a value, near classes break t-closeness alike, and so does any of them
together: a merger with all that is near ends at the whole table. Here a class that breaks it waits,
up the tree of cuts, for one that breaks it as well, and with which it keeps it. The broken ones of
the one side are dealt out, in the order of the tree, to those of the other, of which there are
fewer. Of values it only counts which classes, formed without them, keep the promise.
"""

import numpy as np

from anonymizer.algorithms.cells.nodes import LEAF
from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.class_tree import (
    ClassTree,
    Members,
    begin_count,
    count_in,
    keep_as_one,
)
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.domain.arrays import Int32Array, IntArray, RecordArray


def with_opposites(tree: ClassTree) -> Int32Array:
    """Return the class of each record where broken classes that keep the promise together are one.

    All others stay. About O(records of broken classes, columns) at each level of the tree.
    """
    group = tree.group
    _match(tree.node, tree.k, tree.of, group)
    number = np.arange(len(group), dtype=np.int32)
    return tree.class_of(np.where(group == SUPPRESSED, number, group))


@kernel
def _match(node: RecordArray, k: int, of: Members, group: Int32Array) -> None:
    """Match broken classes of both sides of each node, whose children are behind it.

    `group`: of each class, one of those with which it is joined, `SUPPRESSED` while it is broken;
    changed in place.
    """
    broken = np.empty(len(group), np.int64)
    for at in range(len(node) - 1, -1, -1):
        begin, left = node[at]["start"], node[at]["left"]
        end, width = begin + node[at]["size"], 1
        if left != LEAF:
            _meet(begin, begin + node[left]["size"], end, k, of, group, broken)
            continue
        while width < end - begin:
            for c in range(begin, end - width, 2 * width):
                _meet(c, c + width, min(c + 2 * width, end), k, of, group, broken)
            width *= 2


@inner_kernel
def _meet(
    begin: int, middle: int, end: int, k: int, of: Members, group: Int32Array, broken: IntArray
) -> None:
    """Deal the broken classes of one side out to those of the other."""
    n_low = _list_broken(begin, middle, group, broken, 0)
    n_both = _list_broken(middle, end, group, broken, n_low)
    few, many = broken[:n_low], broken[n_low:n_both]
    if len(few) > len(many):
        few, many = many, few
    for i in range(len(few)):
        dealt = many[i * len(many) // len(few) : (i + 1) * len(many) // len(few)]
        begin_count(of)
        n_persons = count_in(few[i], of)
        for c in dealt:
            n_persons += count_in(c, of)
        if keep_as_one(n_persons, k, of):
            group[few[i]] = few[i]
            for c in dealt:
                group[c] = few[i]


@inner_kernel
def _list_broken(begin: int, end: int, group: Int32Array, broken: IntArray, n: int) -> int:
    """Put the broken classes of a stretch behind `n` others; return how many there are then."""
    for c in range(begin, end):
        if group[c] == SUPPRESSED:
            broken[n] = c
            n += 1
    return n
