"""Pruning: cuts a grown tree back until every cell keeps the promise.

Subtree raising as in C4.5 [1]_: a cell need not give way to a coarser one.

References
----------
.. [1] J. R. Quinlan, "C4.5: Programs for Machine Learning", 1993, chapter 4.
"""

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.cells.leftovers import housed
from anonymizer.algorithms.cells.nodes import LEAF
from anonymizer.algorithms.cells.tree import Grown, grow
from anonymizer.algorithms.cells.tree_features import CodedFeatures, features_at
from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.problem import Problem, ProblemArrays
from anonymizer.algorithms.records.task import Task
from anonymizer.domain.arrays import (
    BoolArray,
    FloatArray,
    Int32Array,
    IntArray,
    RecordArray,
    UInt8Array,
)
from anonymizer.domain.records import NO_CODE, Attribute

NOTHING, CELL, FORK, ALL_LEFT, ALL_RIGHT = range(5)
"""State of a node: no cell below it keeps the promise; it is a cell; both its children remain; all
records go to the left or right child, since the other has no cell."""

_NO_RECORD = -1


class CellMembers(NamedTuple):
    """The members of each cell, as linked lists of records."""

    cell_of: IntArray
    """The node that is the cell of each record, -1 where it has none, shape (n,)."""
    first: IntArray
    """First record of each node, `_NO_RECORD` where it has none, shape (nodes,)."""
    after: IntArray
    """The record after each one, `_NO_RECORD` after the last one, shape (n,)."""
    size: IntArray
    """Number of records of each node, shape (nodes,)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeCells:
    """Equivalence classes: the cells of a pruned tree."""

    class_of: Int32Array
    """Class of each record, `SUPPRESSED` where no cell with it keeps the promise, shape (n,)."""
    n_classes: int
    """Number of classes: cells, or unions of them."""
    qis: tuple[Attribute, ...]
    node: RecordArray
    """`qis`, `node`: the quasi-identifiers, and the nodes of the tree."""
    left_of_node: UInt8Array
    """State of each node, `NOTHING` to `ALL_RIGHT`, shape (nodes,)."""
    class_of_node: Int32Array
    """Class of each node that is a `CELL`, shape (nodes,)."""

    @property
    def deletion_ratio(self) -> float:
        """Share of the records that are suppressed."""
        return float(np.mean(self.class_of == SUPPRESSED)) if len(self.class_of) else 0.0

    def assign(self, values: FloatArray) -> Int32Array:
        """Return the class of the cell that contains each record of another table.

        Parameters
        ----------
        values
            Positions of its quasi-identifiers, see `features_at`, shape (n, qis).

        Returns
        -------
        class_of
            `SUPPRESSED` only if no class is published at all, shape (n,).
        """
        features = features_at(values, self.qis)
        return _assign(features, self.node, self.left_of_node, self.class_of_node)


def prune(grown: Grown, problem: Problem) -> TreeCells:
    """Return the cells of a tree that keep the promise of `problem`, or unions of them.

    Parameters
    ----------
    grown
        Grown on the same records. A tree grown with the smallest k of several promises serves all
        of them; one grown with the k of the promise has better cells.
    problem
        The promise, and the records.

    Notes
    -----
    From the leaves to the root:

    - A leaf that keeps the promise is a cell.
    - If neither of two siblings has a cell, both together become one if that keeps the promise.
    - If one of them has none, its records go down the other one, as if their parent were no test:
      the cells that they reach grow, except those that would break the promise. (The subtree
      raising of C4.5 [1]_: no cell has to give way to a coarser one.)
    - Records without a cell are passed to the parent. If they are more than the records with a
      cell, the whole node becomes a cell if that keeps the promise.
    - Those that are left at the root join the cells nearest to them, see `housed`: nothing is
      suppressed if the whole table may be one class.

    With k, d, l and spread alone none are left at the root: a cell that keeps such a promise still
    does when it grows. O(n columns log n), repeated when cells are refilled.

    References
    ----------
    .. [1] J. R. Quinlan, "C4.5: Programs for Machine Learning", 1993, chapter 4.
    """
    asked = _has_criterion(problem.rule)
    person, codes = problem.arrays.person, problem.arrays.codes
    state, cell_of = _prune(
        grown.features,
        grown.tree.node,
        grown.tree.order,
        ProblemArrays(
            np.ascontiguousarray(problem.cells[:, asked]), problem.rule[asked], person, codes
        ),
        problem.k,
    )
    is_cell = state == CELL
    # A cell whose records were taken back by a cell above is no longer one.
    is_cell[is_cell] = np.isin(np.flatnonzero(is_cell), cell_of)
    number = np.cumsum(is_cell) - 1
    class_of_node = np.where(is_cell, number, SUPPRESSED).astype(np.int32)
    class_of = np.where(cell_of >= 0, class_of_node[cell_of], SUPPRESSED).astype(np.int32)
    n_classes = int(is_cell.sum())
    if n_classes and (class_of == SUPPRESSED).any():
        class_of, union_of = housed(grown, problem, class_of)
        class_of_node[is_cell] = union_of[class_of_node[is_cell]]
        n_classes = int(union_of.max()) + 1
    return TreeCells(class_of, n_classes, grown.qis, grown.tree.node, state, class_of_node)


def _has_criterion(rule: RecordArray) -> BoolArray:
    """Return which columns have a criterion: the others need not be checked."""
    always_there = (rule["distinct"] <= 1) & (rule["missing"] == NO_CODE)
    neutral = (
        ((rule["distinct"] <= 0) | always_there)
        & (rule["share"] >= 1)
        & (rule["spread"] <= 0)
        & (rule["entropy"] <= 0)
        & (rule["closeness"] == inf)
    )
    asks: BoolArray = ~neutral
    return asks


@kernel
def _prune(
    features: CodedFeatures,
    node: RecordArray,
    order: IntArray,
    problem: ProblemArrays,
    k: int,
) -> tuple[UInt8Array, IntArray]:
    """Return the state of each node, and the node that is the cell of each record, or -1."""
    state = np.zeros(len(node), np.uint8)
    n_without = np.zeros(len(node), np.int64)
    cell_of = np.full(len(order), -1, np.int64)
    members = CellMembers(
        cell_of,
        np.full(len(node), _NO_RECORD, np.int64),
        np.full(len(order), _NO_RECORD, np.int64),
        np.zeros(len(node), np.int64),
    )
    for at in range(len(node) - 1, -1, -1):
        start, size = node[at]["start"], node[at]["size"]
        left, right = node[at]["left"], node[at]["right"]
        n_without[at] = size
        no_cell_below = left == LEAF or (state[left] == NOTHING and state[right] == NOTHING)
        if not no_cell_below:
            state[at] = FORK
            n_without[at] = n_without[left] + n_without[right]
            if state[left] == NOTHING or state[right] == NOTHING:
                state[at] = ALL_RIGHT if state[left] == NOTHING else ALL_LEFT
                member = order[start : start + size]
                without_cell = member[cell_of[member] == -1]
                n_without[at] -= _move_to_sibling(
                    without_cell, at, features, node, state, problem, k, members
                )
        if no_cell_below or 2 * n_without[at] > size:
            member = order[start : start + size]
            if class_keeps(problem, k, member):
                state[at] = CELL
                n_without[at] = 0
                members.first[at] = _NO_RECORD
                members.size[at] = 0
                _add_members(member, at, members)
    return state, cell_of


@kernel
def _move_to_sibling(
    without_cell: IntArray,
    top: int,
    features: CodedFeatures,
    node: RecordArray,
    state: UInt8Array,
    problem: ProblemArrays,
    k: int,
    members: CellMembers,
) -> int:
    """Move records to the cells below `top` that can take them; return how many were moved."""
    to = np.empty(len(without_cell), np.int64)
    for i in range(len(without_cell)):
        to[i] = _cell(features, without_cell[i], node, state, top)
    by_cell = np.argsort(to, kind="mergesort")
    n_moved, begin = 0, 0
    while begin < len(to):
        cell, end = to[by_cell[begin]], begin
        while end < len(to) and to[by_cell[end]] == cell:
            end += 1
        arrivals = without_cell[by_cell[begin:end]]
        together = np.empty(members.size[cell] + len(arrivals), np.int64)
        together[: len(arrivals)] = arrivals
        record = members.first[cell]
        for i in range(len(arrivals), len(together)):
            together[i] = record
            record = members.after[record]
        if class_keeps(problem, k, together):
            _add_members(arrivals, cell, members)
            n_moved += len(arrivals)
        begin = end
    return n_moved


@kernel
def _add_members(arrivals: IntArray, cell: int, members: CellMembers) -> None:
    for record in arrivals:
        members.cell_of[record] = cell
        members.after[record] = members.first[cell]
        members.first[cell] = record
    members.size[cell] += len(arrivals)


@kernel
def _cell(
    features: CodedFeatures, record: int, node: RecordArray, state: UInt8Array, top: int
) -> int:
    """Return the cell below `top` that contains a record; there is one."""
    code, column, start, value = features.code, features.column, features.start, features.value
    at = top
    while state[at] != CELL:
        goes_left = state[at] == ALL_LEFT
        if state[at] == FORK:
            f = node[at]["feature"]
            goes_left = value[start[f] + code[record, column[f]]] <= node[at]["threshold"]
        at = node[at]["left"] if goes_left else node[at]["right"]
    return at


@kernel
def _assign(
    features: CodedFeatures, node: RecordArray, state: UInt8Array, class_of_node: Int32Array
) -> Int32Array:
    class_of = np.full(len(features.code), SUPPRESSED, np.int32)
    if state[0] != NOTHING:
        for record in range(len(class_of)):
            class_of[record] = class_of_node[_cell(features, record, node, state, 0)]
    return class_of


def _tree(task: Task) -> Int32Array:
    former = task.former
    grown = grow(
        task.records,
        former.schema,
        task.target,
        min_leaf=former.promise.k,
        seed=former.seed,
        usual_qi=former.usual_qi,
    )
    return prune(grown, task.problem).class_of


METHODS = {"tree": _tree}
"""By name, for the model."""
