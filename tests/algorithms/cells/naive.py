"""Cells, said as plainly as they can be."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from anonymizer.algorithms.cells.nodes import LEAF
from anonymizer.algorithms.cells.tree import Tree
from anonymizer.algorithms.cells.tree_features import FeatureArray
from anonymizer.domain.records import Attribute, Records

Keeps = Callable[[Sequence[int]], bool]


@dataclass
class Branch:
    """What is left of a node: a cell, or two branches, or nothing; and records without a cell."""

    cell: list[int] | None = None
    fork: "tuple[int, float, Branch, Branch] | None" = None
    """Feature, threshold, left and right."""
    without: list[int] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        return self.cell is None and self.fork is None

    def cells(self) -> list[list[int]]:
        if self.fork:
            return self.fork[2].cells() + self.fork[3].cells()
        return [] if self.cell is None else [self.cell]

    def cell_for(self, x: Sequence[float]) -> list[int]:
        if self.fork:
            feature, threshold, left, right = self.fork
            return (left if x[feature] <= threshold else right).cell_for(x)
        assert self.cell is not None
        return self.cell


def prune(tree: Tree, x: FeatureArray, keeps: Keeps, at: int = 0) -> Branch:
    left, right = int(tree.node[at]["left"]), int(tree.node[at]["right"])
    if left == LEAF:
        return _whole(tree, at, keeps)
    branches = [prune(tree, x, keeps, child) for child in (left, right)]
    standing = [branch for branch in branches if not branch.nothing]
    without = branches[0].without + branches[1].without
    if not standing:
        return _whole(tree, at, keeps)
    if len(standing) == 1:
        branch = standing[0]
        branch.without = _refused(branch, x, without, keeps)
    else:
        feature, threshold = int(tree.node[at]["feature"]), float(tree.node[at]["threshold"])
        branch = Branch(fork=(feature, threshold, standing[0], standing[1]), without=without)
    n_housed = sum(len(cell) for cell in branch.cells())
    if len(branch.without) > n_housed and keeps(_records_below(tree, at)):
        return _whole(tree, at, keeps)
    return branch


def _whole(tree: Tree, at: int, keeps: Keeps) -> Branch:
    below = _records_below(tree, at)
    return Branch(cell=below) if keeps(below) else Branch(without=below)


def _records_below(tree: Tree, at: int) -> list[int]:
    left, right = int(tree.node[at]["left"]), int(tree.node[at]["right"])
    if left != LEAF:
        return _records_below(tree, left) + _records_below(tree, right)
    start, size = int(tree.node[at]["start"]), int(tree.node[at]["size"])
    return [int(i) for i in tree.order[start : start + size]]


def _refused(branch: Branch, x: FeatureArray, astray: list[int], keeps: Keeps) -> list[int]:
    """Let records into the cells they lie in; return those that may not."""
    refused = []
    for cell in branch.cells():
        arrivals = [i for i in astray if branch.cell_for(x[i].tolist()) is cell]
        if keeps(cell + arrivals):
            cell.extend(arrivals)
        else:
            refused += arrivals
    return refused


def representative(records: Records, j: int, qi: Attribute, member: Sequence[int]) -> float:
    codes = [int(records.qi[i, j]) for i in member]
    if not qi.numeric:
        times = Counter(codes)
        return float(qi.position[min(c for c in codes if times[c] == max(times.values()))])
    real = [float(qi.position[c]) for c in codes if c != qi.missing]
    if 2 * len(real) < len(codes):
        return float(qi.position[qi.missing])
    return float(median(real))


def variance(values: Sequence[float]) -> float:
    return float(np.var(values))
