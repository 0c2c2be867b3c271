from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.cells.nodes import LEAF
from anonymizer.algorithms.cells.pruning import TreeCells, prune
from anonymizer.algorithms.cells.tree import Grown, grow, plant
from anonymizer.algorithms.cells.tree_features import coded_features, values_of
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.cells import naive
from tests.algorithms.cells.made import cells
from tests.algorithms.records import naive as judge
from tests.algorithms.records.made import SCHEMA, promises, records


def _target(table: Records) -> ModelTarget:
    """Something that the quasi-identifiers tell in part."""
    return ModelTarget((table.qi[:, 0] + table.qi[:, 1]) % 2 + (table.qi[:, 2] == 2))


def _grown(table: Records, *, min_leaf: int = 1, seed: int = 0) -> Grown:
    return grow(table, SCHEMA, _target(table), min_leaf=min_leaf, seed=seed)


def _partition(found: TreeCells) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(found.class_of == c).tolist()) for c in range(found.n_classes)}


monotone = st.builds(Promise, k=st.integers(1, 6), d=st.integers(1, 3), l=st.integers(1, 3))


@given(st.booleans().flatmap(lambda r: records(repeats=r)), promises(), st.integers(1, 3))
def test_a_pruned_tree_has_the_cells_that_the_plain_words_say(
    table: Records, promise: Promise, min_leaf: int
) -> None:
    grown = _grown(table, min_leaf=min_leaf)
    found = prune(grown, make_problem(table, SCHEMA, promise))

    def keeps(member: Sequence[int]) -> bool:
        return judge.keeps(table, SCHEMA, promise, member)

    expected = naive.prune(grown.tree, grown.features.of(), keeps)
    cells_of = {frozenset(cell) for cell in expected.cells()}
    if not expected.without:
        assert _partition(found) == cells_of
    # Who has no cell joins unions of whole cells.
    housed = set(expected.without) - {*np.flatnonzero(found.class_of == SUPPRESSED).tolist()}
    for union in _partition(found):
        inside = [cell for cell in cells_of if cell <= union]
        assert inside
        assert union - frozenset().union(*inside) <= housed
        assert len(inside) == 1 or union & housed
    if expected.cells() and keeps(range(table.n)):
        assert housed == set(expected.without)


@given(st.booleans().flatmap(lambda r: records(repeats=r)), promises())
def test_every_cell_keeps_the_whole_promise(table: Records, promise: Promise) -> None:
    found = prune(_grown(table), make_problem(table, SCHEMA, promise))
    for cell in _partition(found):
        assert cell
        assert judge.keeps(table, SCHEMA, promise, sorted(cell))


@given(st.booleans().flatmap(lambda r: records(repeats=r)), monotone)
def test_nothing_is_suppressed_where_the_whole_table_keeps_k_d_and_l(
    table: Records, promise: Promise
) -> None:
    found = prune(_grown(table), make_problem(table, SCHEMA, promise))
    possible = judge.keeps(table, SCHEMA, promise, range(table.n))
    assert found.deletion_ratio == (0.0 if possible else 1.0)
    assert (found.class_of >= 0).sum() == (table.n if possible else 0)


@given(records(), st.integers(1, 4), st.data())
def test_a_tree_that_is_pruned_has_the_cells_of_one_that_is_grown_for_the_promise(
    table: Records, k: int, data: st.DataObject
) -> None:
    promise = Promise(k=k, l=data.draw(st.integers(1, k)))
    grown = _grown(table, min_leaf=k)
    prune(
        grown, make_problem(table, SCHEMA, Promise(k=k))
    )  # an earlier configuration leaves no trace
    pruned = prune(grown, make_problem(table, SCHEMA, promise))
    direct = cells(table, SCHEMA, promise, target=_target(table))
    np.testing.assert_array_equal(pruned.class_of, direct.class_of)


@given(records(), monotone)
def test_a_record_is_assigned_to_the_cell_that_it_lies_in(table: Records, promise: Promise) -> None:
    found = prune(_grown(table), make_problem(table, SCHEMA, promise))
    assigned = found.assign(values_of(table.qi, SCHEMA.qis))
    np.testing.assert_array_equal(assigned, found.class_of)


@given(records(), promises())
def test_a_record_of_another_table_always_lies_in_a_cell_if_there_is_one(
    table: Records, promise: Promise
) -> None:
    found = prune(_grown(table), make_problem(table, SCHEMA, promise))
    strangers = np.array([[-1e300, -1.0, 7.0], [1e300, 99.0, 0.5]])
    assigned = found.assign(strangers)
    assert ((assigned == SUPPRESSED) == (found.n_classes == 0)).all()
    assert (assigned < found.n_classes).all()


@given(st.booleans().flatmap(lambda r: records(repeats=r)), promises())
def test_no_more_is_suppressed_than_if_the_table_were_one_class(
    table: Records, promise: Promise
) -> None:
    found = prune(_grown(table), make_problem(table, SCHEMA, promise))
    if judge.keeps(table, SCHEMA, promise, range(table.n)):
        assert found.deletion_ratio == 0.0


@pytest.mark.parametrize("n_alike", [1, 4, 5])
def test_records_that_fit_no_cell_join_two_of_them(n_alike: int) -> None:
    """Two cells of two values each stand beside records of a single value, which fit neither."""
    codes = [[0, 0, 0], [0, 0, 0], [3, 0, 0], [3, 0, 0], *([[0, 0, 1]] * n_alike)]
    table = Records(
        qi=np.array(codes, np.int32),
        sensitive=np.array([0, 1, 0, 2, *([0] * n_alike)], np.int32)[:, None],
        person=np.arange(4 + n_alike, dtype=np.int32),
    )
    at_home, age = 8, 0  # features: the second home, the age
    tree = plant(
        feature=np.array([at_home, age, -2, -2, -2]),
        threshold=np.full(5, 0.5),
        left=np.array([1, 3, LEAF, LEAF, LEAF]),
        right=np.array([2, 4, LEAF, LEAF, LEAF]),
        leaf_of=np.array([3, 3, 4, 4] + [2] * n_alike),
    )
    features = coded_features(table.qi, SCHEMA.qis)
    found = prune(
        Grown(SCHEMA.qis, features, tree), make_problem(table, SCHEMA, Promise(k=1, entropy_l=1.95))
    )
    assert found.class_of.tolist() == [0] * (4 + n_alike)
    assert found.n_classes == 1
    assert set(found.assign(values_of(table.qi, SCHEMA.qis)).tolist()) == {0}


def test_a_persons_records_count_once_however_many_fill_a_leaf() -> None:
    table = Records(
        qi=np.array([[0, 0, 0]] * 4 + [[3, 1, 1]] * 3, np.int32),
        sensitive=np.zeros((7, 1), np.int32),
        person=np.array([0, 0, 0, 0, 1, 2, 3], np.int32),
    )
    found = cells(table, SCHEMA, Promise(k=2), target=ModelTarget(np.array([0, 0, 0, 0, 1, 1, 1])))
    assert found.n_classes == 1
    assert found.deletion_ratio == 0.0


@pytest.mark.parametrize("promise", [Promise(k=2, l=3), Promise(k=2, entropy_l=2.5)])
def test_more_values_than_persons_are_refused_by_name(promise: Promise) -> None:
    table = Records(np.zeros((5, 3), np.int32), np.zeros((5, 1), np.int32), np.arange(5, dtype="i"))
    with pytest.raises(ValueError, match=r"^(l|entropy-l) = .* is more than k = 2"):
        cells(table, SCHEMA, promise, target=None)
    with pytest.raises(ValueError, match="at least 1"):
        cells(table, SCHEMA, Promise(k=0), target=None)


def test_a_table_of_nothing_has_no_cells() -> None:
    table = Records(np.zeros((0, 3), np.int32), np.zeros((0, 1), np.int32), np.zeros(0, np.int32))
    found = cells(table, SCHEMA, Promise(k=2), target=ModelTarget(np.zeros(0)))
    assert (found.n_classes, found.deletion_ratio, (found.class_of >= 0).sum()) == (0, 0.0, 0)
