import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anonymizer.algorithms.cells.nodes import LEAF
from anonymizer.algorithms.cells.tree import Tree, divided, grow, plant
from anonymizer.algorithms.cells.tree_features import (
    FeatureArray,
    coded_features,
    encode,
    features_at,
    features_by_value,
    values_of,
)
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.records import Records
from tests.algorithms.cells import naive
from tests.algorithms.records.made import SCHEMA, categories, numbers, records

some_features = st.integers(1, 30).flatmap(
    lambda n: arrays(np.float32, (n, 3), elements=st.integers(-3, 3).map(float))
)


def _members(tree: Tree, at: int) -> list[int]:
    start, size = tree.node[at]["start"], tree.node[at]["size"]
    return sorted(tree.order[start : start + size].tolist())


def _check_that_records_lie_where_the_thresholds_say(tree: Tree, x: FeatureArray) -> None:
    assert _members(tree, 0) == list(range(len(x)))
    for at, node in enumerate(tree.node):
        if node["left"] == LEAF:
            continue
        assert at < min(node["left"], node["right"])
        goes_left = [i for i in _members(tree, at) if x[i, node["feature"]] <= node["threshold"]]
        assert _members(tree, node["left"]) == goes_left
        assert len(_members(tree, node["right"])) == node["size"] - len(goes_left)


def _root(n: int) -> Tree:
    no_child = np.array([LEAF])
    return plant(no_child, np.zeros(1), no_child, no_child, np.zeros(n, np.int64))


def _cuts(x: FeatureArray, member: list[int], feature: int, min_leaf: int) -> list[int]:
    value = sorted(x[member, feature].tolist())
    possible = range(min_leaf, len(value) - min_leaf + 1)
    return [n for n in possible if value[n - 1] < value[n]]


@given(some_features, st.integers(1, 4))
def test_leaves_are_divided_until_no_part_would_be_large_enough(
    x: FeatureArray, min_leaf: int
) -> None:
    weight = np.array([1.0, 2.0, 0.5])
    tree = divided(_root(len(x)), features_by_value(x), weight, min_leaf=min_leaf)
    _check_that_records_lie_where_the_thresholds_say(tree, x)
    for at, node in enumerate(tree.node):
        member = _members(tree, at)
        cuts = {f: c for f in range(3) if (c := _cuts(x, member, f, min_leaf))}
        if node["left"] == LEAF:
            assert not cuts
            continue
        n_left = int(tree.node[node["left"]]["size"])
        spread = {f: weight[f] * naive.variance(x[member, f].tolist()) for f in cuts}
        assert spread[node["feature"]] == pytest.approx(max(spread.values()))
        off = [abs(2 * n - len(member)) // 2 for n in cuts[node["feature"]]]
        assert abs(2 * n_left - len(member)) // 2 == min(off)


@given(records(), st.integers(1, 4), st.integers(0, 3))
def test_every_leaf_has_as_many_records_as_is_asked_for(
    table: Records, min_leaf: int, seed: int
) -> None:
    target = table.qi[:, 0] + table.qi[:, 1]
    for what in (ModelTarget(target, is_numeric=True), ModelTarget(target), None):
        grown = grow(table, SCHEMA, what, min_leaf=min_leaf, seed=seed)
        _check_that_records_lie_where_the_thresholds_say(grown.tree, grown.features.of())
        leaves = grown.tree.node[grown.tree.node["left"] == LEAF]
        assert len(leaves) == 1 or leaves["size"].min() >= min_leaf


@given(records(), st.data())
def test_the_sensitive_attributes_do_not_move_a_border(table: Records, data: st.DataObject) -> None:
    other = data.draw(st.permutations(table.sensitive[:, 0].tolist()))
    swapped = Records(table.qi, np.array(other, np.int32)[:, None], table.person)
    trees = [grow(t, SCHEMA, ModelTarget(t.qi[:, 0]), min_leaf=1).tree for t in (table, swapped)]
    np.testing.assert_array_equal(trees[0].node, trees[1].node)
    np.testing.assert_array_equal(trees[0].order, trees[1].order)


def test_a_number_is_one_feature_and_a_category_one_for_each_value() -> None:
    table = Records(np.array([[1, 5, 2]], np.int32), np.zeros((1, 1), np.int32), np.zeros(1, "i4"))
    x = encode(values_of(table.qi, SCHEMA.qis), SCHEMA.qis)
    np.testing.assert_allclose(x, [[1 / 9, 0, 0, 0, 0, 0, 1, 0, 0, 1]])


def test_many_categories_are_one_feature_in_the_order_of_the_taxonomy() -> None:
    many = categories("place", [f"p{i}" for i in range(101)])
    np.testing.assert_allclose(encode(np.array([[25.0], [100.0]]), [many]), [[0.25], [1.0]])


def test_features_fit_32_bits_whatever_the_values() -> None:
    wide = numbers("metres", -1e300, 1e300)
    x = encode(np.array([[-1e300], [1e300], [1.7e308]]), [wide])
    np.testing.assert_allclose(x, [[0], [1], [2]], atol=1.2)
    assert encode(np.zeros((2, 0)), []).shape == (2, 0)


@given(records(), st.lists(st.lists(st.floats(-20, 20), min_size=3, max_size=3), min_size=1))
def test_features_by_code_are_the_features(table: Records, values: list[list[float]]) -> None:
    positions = values_of(table.qi, SCHEMA.qis)
    x = encode(positions, SCHEMA.qis)
    np.testing.assert_array_equal(coded_features(table.qi, SCHEMA.qis).of(), x)
    np.testing.assert_array_equal(features_by_value(x).of(), x)
    some = np.concatenate([positions, np.array(values)])
    np.testing.assert_array_equal(features_at(some, SCHEMA.qis).of(), encode(some, SCHEMA.qis))
