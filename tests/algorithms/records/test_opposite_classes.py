"""Broken classes joined with opposite ones, beside the same done plainly."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.cells.nodes import LEAF
from anonymizer.algorithms.records.blind_classes import merged
from anonymizer.algorithms.records.class_tree import ClassTree, tree_of
from anonymizer.algorithms.records.classes import without_gaps
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.opposite_classes import with_opposites
from anonymizer.algorithms.records.problem import Problem, make_problem
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records.made import SCHEMA, categories, numbers, promises, records


def joined_plainly(problem: Problem, tree: ClassTree) -> set[tuple[int, ...]]:
    """The records of each class after broken classes were joined."""
    first, member = tree.of.first, tree.of.member
    rows = [member[first[c] : first[c + 1]].tolist() for c in range(len(tree.keeps))]
    done: list[list[int]] = [[c] for c in np.flatnonzero(tree.keeps).tolist()]

    def keep(group: list[int]) -> bool:
        own = np.array(sorted(row for c in group for row in rows[c]))
        return bool(class_keeps(problem.arrays, problem.k, own))

    def meet(low: list[int], high: list[int]) -> list[int]:
        """The classes that are left broken when two sides meet."""
        few, many = (high, low) if len(low) > len(high) else (low, high)
        left = [] if few else many
        for i, one in enumerate(few):
            group = [one, *many[i * len(many) // len(few) : (i + 1) * len(many) // len(few)]]
            if keep(group):
                done.append(group)
            else:
                left += group
        return sorted(left)

    def halves(broken: list[list[int]]) -> list[int]:
        while len(broken) > 1:
            pairs = [broken[i : i + 2] for i in range(0, len(broken), 2)]
            broken = [meet(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return broken[0]

    def left_of(at: int) -> list[int]:
        one = tree.node[at]
        if one["left"] != LEAF:
            return meet(left_of(one["left"]), left_of(one["right"]))
        own = range(one["start"], one["start"] + one["size"])
        return halves([[] if tree.keeps[c] else [c] for c in own])

    done += [[c] for c in left_of(0)]
    return {tuple(sorted(row for c in group for row in rows[c])) for group in done}


@settings(max_examples=60)
@given(
    table=st.booleans().flatmap(lambda repeats: records(repeats=repeats)),
    promise=promises(),
    n=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_broken_classes_are_joined_as_plainly(
    table: Records, promise: Promise, n: int, seed: int
) -> None:
    problem = make_problem(table, SCHEMA, promise)
    given_ = np.random.default_rng(seed).integers(-1, n, table.n).astype(np.int32)
    tree = tree_of(problem, without_gaps(given_))
    if tree is None:
        return
    found = with_opposites(tree)
    assert ((found < 0) == (given_ < 0)).all()
    classes = {tuple(np.flatnonzero(found == c).tolist()) for c in range(found.max() + 1)}
    assert classes == joined_plainly(problem, tree)


def two_places() -> tuple[Problem, Int32Array]:
    """Classes of ten near people: of those in one place most are ill, of others hardly anybody."""
    number = np.arange(400, dtype=np.int32)
    place, age = np.divmod(number, 200)
    ill = np.where(place == 0, age % 10 < 6, age % 100 == 0).astype(np.int32)
    schema = Schema(
        (numbers("place", 0, 1), numbers("age", *range(200))), (categories("ill", "ny"),), ((0, 1),)
    )
    qi = np.ascontiguousarray(np.column_stack([place, age]), np.int32)
    table = Records(qi, ill[:, None], number)
    return make_problem(table, schema, Promise(k=10, t=0.2)), number // 10


def test_places_that_differ_in_what_is_asked_for_do_not_end_in_one_class() -> None:
    problem, near = two_places()
    found = merged(problem, near)
    sizes = np.bincount(found)
    assert sizes.max() <= 40
    for c in range(len(sizes)):
        assert class_keeps(problem.arrays, problem.k, np.flatnonzero(found == c))
