"""Classes by quasi-identifiers alone, merged whole where sensitive values do not suffice.

Who knows a table but for who of one class has which sensitive value, and the method, can run it for
each possibility: what does not give the release is ruled out, the minimality attack [1]_. So
classes are formed as if there were no sensitive attributes, and a tree of cuts tells which of them
are near. Where a class breaks the promise, it and the other side of its cut are one class, and so
up the tree: whichever of the two sides broke it, the release is the same. Where a distribution is
asked for, near classes break it alike, so mergers with opposite ones are tried too. An exchange of
values within a class that was formed never changes the release; where no distribution is asked for,
one between two that were merged does only if it makes both keep the promise.

References
----------
.. [1] R. C.-W. Wong et al., "Minimality attack in privacy preserving data publishing", VLDB 2007.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from anonymizer.algorithms.cells.nodes import LEAF
from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records import class_methods
from anonymizer.algorithms.records.class_tree import (
    ClassTree,
    Members,
    begin_count,
    count_in,
    keep_as_one,
    tree_of,
)
from anonymizer.algorithms.records.classes import SUPPRESSED, without_gaps
from anonymizer.algorithms.records.criteria import total_loss
from anonymizer.algorithms.records.methods import Method
from anonymizer.algorithms.records.opposite_classes import with_opposites
from anonymizer.algorithms.records.ordering import numbered, stable_order
from anonymizer.algorithms.records.problem import Problem
from anonymizer.algorithms.records.sweep import bounded
from anonymizer.algorithms.records.task import Task
from anonymizer.domain.arrays import Int32Array, IntArray, RecordArray
from anonymizer.domain.records import Records


def formed_blindly(method: Method, task: Task) -> Int32Array:
    """Return the classes of a method that sees no sensitive values, merged; see the module.

    Where nothing is promised of sensitive values, those of the method as it is. Among records with
    equal quasi-identifiers the seed decides: neither their values, nor the order of rows or of
    identifiers, which may go with values.
    """
    problem, records = task.problem, task.records
    n_seen = len(problem.rule) - records.sensitive.shape[1]
    asked = problem.rule[n_seen:]
    if not (bounded(asked) | (asked["distinct"] > 1)).any():
        return method(task)
    return merged(problem, _formed(method, task, n_seen))


def _formed(method: Method, task: Task, n_seen: int) -> Int32Array:
    problem, records = task.problem, task.records
    order, lie_so = _drawn_order(task)
    cells = problem.cells[:, :n_seen]
    seen = replace(
        problem,
        cells=np.ascontiguousarray(cells) if lie_so else cells.take(order, axis=0),
        rule=problem.rule[:n_seen],
        plain=problem.plain[:n_seen],
        person=problem.person[order] if len(problem.person) else problem.person,
    )
    qi = seen.cells[:, : problem.n_qis]  # no copy, which many records have no room for
    unread = Records(qi, records.sensitive[order, :0], records.person[order])
    formed = np.empty(records.n, np.int32)
    formed[order] = method(replace(task, records=unread, problem=seen, target=None))
    return formed


def _drawn_order(task: Task) -> tuple[IntArray, bool]:
    """Return the records by their quasi-identifiers, equal ones in an order that the seed draws.

    And whether they lie in that order but for their persons, so that only these change places.
    """
    records = task.records
    qi_of = numbered(records.qi)
    drawn = np.random.default_rng(task.former.seed).permutation(task.problem.n_persons)
    order = stable_order(drawn[records.person].astype(np.uint64), np.arange(records.n))
    order = stable_order(qi_of[order].astype(np.uint64), order)
    return order, bool((qi_of[1:] >= qi_of[:-1]).all())


def merged(problem: Problem, class_of: Int32Array) -> Int32Array:
    """Return classes that keep the promise, each some whole ones of those that are given.

    `SUPPRESSED` where none does, however many are merged. O(n columns), and where a class breaks it
    at most log(classes) times as much; with t-closeness for each merger O(size of the domain), and
    twice: of all mergers that are near, and of those by which broken classes are first joined with
    opposite ones, the cheaper.
    """
    class_of = without_gaps(class_of)
    tree = tree_of(problem, class_of)
    if tree is None:
        return class_of
    found = _with_siblings(tree)
    if not (problem.rule["closeness"] < np.inf).any():
        return found
    joined = with_opposites(tree)
    tree = tree_of(problem, joined)
    other = joined if tree is None else _with_siblings(tree)
    return min((found, other), key=lambda each: total_loss(problem, each))


def _with_siblings(tree: ClassTree) -> Int32Array:
    """Return the classes, where one breaks the promise merged with all of the other side."""
    group = tree.group
    _merge(tree.node, tree.k, tree.of, group)
    return tree.class_of(group)


@kernel
def _merge(node: RecordArray, k: int, of: Members, group: Int32Array) -> None:
    """Merge the classes of each node, whose children are behind it.

    `group`: of each class, the first of those with which it is merged, `SUPPRESSED` while they
    break the promise; changed in place.
    """
    whole = np.zeros(len(node), np.bool_)
    for at in range(len(node) - 1, -1, -1):
        begin, left, right = node[at]["start"], node[at]["left"], node[at]["right"]
        end = begin + node[at]["size"]
        if left == LEAF:
            whole[at] = _merge_halves(begin, end, k, of, group)
        else:
            whole[at] = (whole[left] and whole[right]) or _joins(begin, end, k, of, group)


@kernel
def _merge_halves(begin: int, end: int, k: int, of: Members, group: Int32Array) -> bool:
    """Merge classes with equal boxes two by two; return whether all of them keep the promise."""
    n, width = end - begin, 1
    keeps = group[begin:end] != SUPPRESSED
    while width < n:
        for c in range(0, n - width, 2 * width):
            if not (keeps[c] and keeps[c + width]):
                keeps[c] = _joins(begin + c, begin + min(c + 2 * width, n), k, of, group)
        width *= 2
    return bool(keeps[0])


@inner_kernel
def _joins(begin: int, end: int, k: int, of: Members, group: Int32Array) -> bool:
    """Make some classes one if that keeps the promise; return whether."""
    begin_count(of)
    n_persons = 0
    for c in range(begin, end):
        n_persons += count_in(c, of)
    if not keep_as_one(n_persons, k, of):
        return False
    for c in range(begin, end):
        group[c] = begin
    return True


METHODS: Mapping[str, Method] = {
    name: partial(formed_blindly, class_methods.METHODS[name])
    for name in ("best", "hilbert", "mondrian")
}
"""By name."""
