"""Description of cells: what they distinguish in each quasi-identifier, and how wide they are."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.cells.pruning import ALL_LEFT, ALL_RIGHT, FORK, TreeCells
from anonymizer.algorithms.cells.tree_features import is_one_feature, owner_of
from anonymizer.algorithms.records.classes import Classes
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.algorithms.records.measures import losses
from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.records import Attribute, Schema

Borders: TypeAlias = tuple[float, ...]
"""For a number, rising: values up to a border are distinguished from those above it."""
Groups: TypeAlias = tuple[tuple[str, ...], ...]
"""For categories: those of different groups are distinguished, those of one group are not."""


def distinctions(cells: TreeCells) -> tuple[Borders | Groups, ...]:
    """Return what cells distinguish in each quasi-identifier, over all cells."""
    cuts: dict[int, list[float]] = {}
    for feature, threshold in _forks(cells):
        cuts.setdefault(feature, []).append(threshold)
    out: list[Borders | Groups] = []
    owner = owner_of(cells.qis)
    for j, qi in enumerate(cells.qis):
        by_code = [sorted(set(cuts.get(f, []))) for f in np.flatnonzero(owner == j).tolist()]
        out.append(_borders(qi, by_code[0]) if qi.numeric else _groups(qi, by_code))
    return tuple(out)


def _forks(cells: TreeCells) -> list[tuple[int, float]]:
    """Return the feature and threshold of each node that is still a test."""
    tests, stack = [], [0]
    while stack:
        at = stack.pop()
        state, node = cells.left_of_node[at], cells.node[at]
        if state == FORK:
            tests.append((int(node["feature"]), float(node["threshold"])))
        if state in (FORK, ALL_LEFT):
            stack.append(int(node["left"]))
        if state in (FORK, ALL_RIGHT):
            stack.append(int(node["right"]))
    return tests


def _borders(qi: Attribute, cuts: Sequence[float]) -> Borders:
    return tuple(float(qi.position[0] + cut * (qi.span or 1.0)) for cut in cuts)


def _groups(qi: Attribute, by_code: Sequence[Sequence[float]]) -> Groups:
    if is_one_feature(qi):
        group_of = np.searchsorted(_borders(qi, by_code[0]), qi.position)
    else:  # a category whose own feature is tested is a group by itself
        group_of = np.array([1 + code if cuts else 0 for code, cuts in enumerate(by_code)])
    groups = [np.flatnonzero(group_of == g) for g in np.unique(group_of)]
    return tuple(tuple(qi.label[code] for code in group) for group in groups)


def widths(codes: Int32Array, classes: Classes, schema: Schema) -> FloatArray:
    """Return the loss of each quasi-identifier in each class by `SET`, shape (classes, qis)."""
    found = generalize(codes, classes, schema)
    n_codes = np.diff(found.first_of).reshape(found.lo.shape)
    out = np.zeros(found.lo.shape)
    for j, qi in enumerate(schema.qis):
        out[:, j] = losses(qi, Cost.SET, n_codes[:, j], found.lo[:, j], found.hi[:, j])
    return out
