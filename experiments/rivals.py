"""Rivals of the multi-source paper: Top-down and full-domain generalization, of plain k-anonymity.

The paper compares with Top-down [1]_, Mondrian (in `anonymizer`), Incognito [2]_ and Flash [3]_
without saying how they were set up. Here each is what its own paper describes.

References
----------
.. [1] J. Xu et al., "Utility-based anonymization using local recoding", KDD 2006, section 4.2.
.. [2] K. LeFevre, D. DeWitt, R. Ramakrishnan, "Incognito: efficient full-domain k-anonymity", 2005.
.. [3] F. Kohlmayer et al., "Flash: efficient, stable and optimal k-anonymity", 2012.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.releases.released_classes import Published, ReleasedLabels, publish
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute, Records, Schema

_ROUNDS = 3
"""Searches for the two distant records of a class, each from the other one."""


def top_down(records: Records, schema: Schema, k: int, *, seed: int) -> Int32Array:
    """Return the class of each record of a greedy top-down partition.

    Parameters
    ----------
    records, schema
        The table. Each record counts as a person.
    k
        Least size of a class.
    seed
        Seed of the record from which the search for two distant ones starts.

    Notes
    -----
    A class is cut in two around two records that lie far apart: each other record joins the side
    whose NCP grows less. A side of fewer than k records takes the cheapest ones of the other, if
    that can spare them; otherwise the class stays whole. A class of fewer than 2 k is not cut.
    Loss is measured by the ranges of positions, and each quasi-identifier weighs the same.
    O(n columns) for each level of cuts.
    """
    scaled = np.stack(
        [
            attribute.position[column] / (attribute.span or 1.0)
            for column, attribute in zip(records.qi.T, schema.qis, strict=True)
        ],
        axis=1,
    )
    if records.n < k:
        return np.full(records.n, SUPPRESSED, np.int32)
    return _top_down(scaled, k, seed)


@kernel
def _top_down(scaled: FloatArray, k: int, seed: int) -> Int32Array:
    np.random.seed(seed)  # noqa: NPY002  numba's own generator
    n = len(scaled)
    member = np.arange(n)
    class_of = np.empty(n, np.int32)
    n_classes = 0
    pending = [(0, n)]
    while len(pending) > 0:
        start, end = pending.pop()
        part = member[start:end].copy()
        n_low = 0
        if len(part) >= 2 * k:
            side = _cut(scaled, part)
            if _balance(scaled, part, side, k):
                n_low = int(np.sum(side == 0))
                member[start : start + n_low] = part[side == 0]
                member[start + n_low : end] = part[side == 1]
        if n_low == 0:
            class_of[part] = n_classes
            n_classes += 1
        else:
            pending.append((start + n_low, end))
            pending.append((start, start + n_low))
    return class_of


@kernel
def _cut(scaled: FloatArray, part: IntArray) -> IntArray:
    """Return the side of each member, 0 or 1: that whose loss grows less."""
    seeds = [np.random.randint(len(part)), 0]  # noqa: NPY002
    for _ in range(_ROUNDS):
        seeds[1] = _farthest(scaled, part, seeds[0])
        seeds[0] = _farthest(scaled, part, seeds[1])
    low, high = np.empty((2, scaled.shape[1])), np.empty((2, scaled.shape[1]))
    for s in range(2):
        low[s], high[s] = scaled[part[seeds[s]]], scaled[part[seeds[s]]]
    side = np.empty(len(part), np.int64)
    size = np.ones(2)
    for i in np.random.permutation(len(part)):  # noqa: NPY002
        if i in (seeds[0], seeds[1]):
            side[i] = 0 if i == seeds[0] else 1
            continue
        row = scaled[part[i]]
        growth = np.zeros(2)
        for s in range(2):
            for c in range(len(row)):
                before = high[s, c] - low[s, c]
                after = max(high[s, c], row[c]) - min(low[s, c], row[c])
                growth[s] += after * (size[s] + 1) - before * size[s]
        s = 0 if growth[0] <= growth[1] else 1
        side[i] = s
        size[s] += 1
        low[s], high[s] = np.minimum(low[s], row), np.maximum(high[s], row)
    return side


@kernel
def _farthest(scaled: FloatArray, part: IntArray, origin: int) -> int:
    """Return the member farthest from another one, by the sum of the ranges of both."""
    best, farthest = -1.0, origin
    for i in range(len(part)):
        distance = np.sum(np.abs(scaled[part[i]] - scaled[part[origin]]))
        if i != origin and distance > best:
            best, farthest = distance, i
    return farthest


@kernel
def _balance(scaled: FloatArray, part: IntArray, side: IntArray, k: int) -> bool:
    """Move the cheapest records to a side that is too small; return whether both have k."""
    small = 0 if np.sum(side == 0) <= np.sum(side == 1) else 1
    wanting = k - int(np.sum(side == small))
    if wanting <= 0:
        return True
    inside = scaled[part[side == small]]
    low, high = np.empty(scaled.shape[1]), np.empty(scaled.shape[1])
    for c in range(scaled.shape[1]):
        low[c], high[c] = inside[:, c].min(), inside[:, c].max()
    others = np.flatnonzero(side != small)
    cost = np.empty(len(others))
    for j in range(len(others)):
        row = scaled[part[others[j]]]
        cost[j] = np.sum(np.maximum(high, row) - np.minimum(low, row))
    for j in np.argsort(cost, kind="mergesort")[:wanting]:
        side[others[j]] = small
    return bool(np.sum(side != small) >= k)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FullDomain:
    """A generalization of all values of each attribute to one level."""

    levels: tuple[int, ...]
    """Level of each attribute, from 0, shape (attributes,)."""
    loss: float
    """Share of the domain that a cell of the release allows, over all cells, 0 to 1."""

    @property
    def height(self) -> int:
        """Number of generalization steps."""
        return sum(self.levels)


def level_codes(attribute: Attribute) -> Int32Array:
    """Return the group of each code at each level, the last one holding all, shape (size, levels).

    The levels are those of the hierarchy. Numbers have bands of 5, 10, 20 units and so on, until
    one holds all; categories without a hierarchy are kept or left out.
    """
    if attribute.hierarchy is not None:
        return np.asarray(attribute.hierarchy.ancestor)
    codes = np.arange(attribute.size, dtype=np.int32)
    levels = [codes]
    if attribute.numeric:
        offset, width = attribute.position - attribute.position[0], 5.0
        while width <= attribute.span:
            levels.append((offset // width).astype(np.int32))
            width *= 2
    return np.stack([*levels, np.zeros_like(codes)], axis=1)


def full_domain(records: Records, schema: Schema, k: int, *, l: int = 1) -> list[FullDomain]:  # noqa: E741
    """Return all minimal full-domain generalizations that keep k and l, by height and loss.

    Minimal: with one attribute one level lower, the promise no longer holds. This is the result of
    Incognito [2]_; Flash [3]_ returns the one of least loss among the same. l is required of each
    sensitive attribute. Nobody is suppressed, and each record counts as a person.

    Notes
    -----
    A node of the lattice holds if one below it holds; otherwise its classes are counted. O(lattice
    x distinct rows x log(distinct rows)).
    """
    rows, count = np.unique(
        np.concatenate([records.qi, records.sensitive], axis=1), axis=0, return_counts=True
    )
    n_qis = len(schema.qis)
    group_of = [level_codes(attribute) for attribute in schema.qis]
    loss_at = [
        _loss_by_level(groups, column)
        for groups, column in zip(group_of, records.qi.T, strict=True)
    ]
    holds: set[tuple[int, ...]] = set()
    minimal = []
    nodes = product(*(range(groups.shape[1]) for groups in group_of))
    for levels in sorted(nodes, key=sum):
        below = {(*levels[:a], at - 1, *levels[a + 1 :]) for a, at in enumerate(levels) if at}
        if below & holds:
            holds.add(levels)
            continue
        key = _number(rows[:, :n_qis], group_of, levels)
        if _is_safe(key, rows[:, n_qis:], count, k, l):
            holds.add(levels)
            loss = float(np.mean([loss_at[a][at] for a, at in enumerate(levels)]))
            minimal.append(FullDomain(levels, loss))
    return sorted(minimal, key=lambda found: (found.height, found.loss))


def full_domain_classes(records: Records, schema: Schema, found: FullDomain) -> Int32Array:
    """Return the class of each record of a full-domain generalization."""
    group_of = [level_codes(attribute) for attribute in schema.qis]
    return _number(records.qi, group_of, found.levels).astype(np.int32)


def full_domain_labels(
    records: Records, schema: Schema, found: FullDomain, class_of: Int32Array
) -> Published:
    """Return the labels of a full-domain release: whole groups, whichever values occur.

    The codes of a group must be consecutive, as those below a node of a hierarchy are.
    """
    n_classes = int(class_of.max(initial=-1)) + 1
    member = np.zeros(n_classes, np.int64)
    member[class_of] = np.arange(records.n)
    labels = []
    for column, attribute, at in zip(records.qi.T, schema.qis, found.levels, strict=True):
        group_of = level_codes(attribute)[:, at]
        n_groups, codes = int(group_of.max()) + 1, np.arange(attribute.size)
        low, high = np.full(n_groups, attribute.size), np.full(n_groups, -1)
        np.minimum.at(low, group_of, codes)
        np.maximum.at(high, group_of, codes)
        group = group_of[column[member]]
        labels.append(ReleasedLabels(np.arange(n_classes + 1), low[group], high[group]))
    return Published(n_classes, tuple(labels), publish(records, schema, class_of).sensitive)


def _number(qi: Int32Array, group_of: Sequence[Int32Array], levels: Sequence[int]) -> IntArray:
    """Return the number of each row's generalized values, without gaps."""
    key = np.zeros(len(qi), np.int64)
    for column, groups, at in zip(qi.T, group_of, levels, strict=True):
        key = key * (int(groups.max()) + 1) + groups[column, at]
    return np.asarray(np.unique(key, return_inverse=True)[1])


def _is_safe(
    class_of: IntArray,
    sensitive: Int32Array,
    count: IntArray,
    k: int,
    l: int,  # noqa: E741  the field's name for it
) -> bool:
    """Return whether each class has k records and l values of each sensitive attribute."""
    if np.bincount(class_of, weights=count).min() < k:
        return False
    for column in sensitive.T if l > 1 else ():
        pair = np.unique(np.stack([class_of, column]), axis=1)[0]
        if np.bincount(pair).min() < l:
            return False
    return True


def _loss_by_level(groups: Int32Array, column: Int32Array) -> FloatArray:
    """Return the mean share of the domain beside the value itself that a cell allows."""
    size = len(groups)
    wide = np.stack([np.bincount(level)[level] for level in groups.T], axis=1)
    return np.asarray(((wide - 1) / max(size - 1, 1))[column].mean(axis=0))
