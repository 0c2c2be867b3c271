"""Each cut separates the target best, among all that leave enough records on both sides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.cells.learning import learned
from anonymizer.algorithms.cells.nodes import LEAF
from anonymizer.algorithms.cells.tree import Tree
from anonymizer.algorithms.cells.tree_features import FeatureArray, encode, values_of
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.records import Attribute, Records
from tests.algorithms.cells import naive
from tests.algorithms.records.made import SCHEMA, numbers, records


def _separation(target: FloatArray, left: list[int], right: list[int], *, numeric: bool) -> float:
    """Return how much is left of the impurity, times the records: less is better."""
    columns = [target] if numeric else [(target == label).astype(float) for label in set(target)]
    return sum(
        len(part) * naive.variance(column[part].tolist())
        for part in (left, right)
        for column in columns
    )


def _cuts(
    x: FeatureArray, member: list[int], min_leaf: int
) -> dict[tuple[int, float], tuple[list[int], list[int]]]:
    found = {}
    for feature in range(x.shape[1]):
        for value in sorted(set(x[member, feature].tolist())):
            left = [i for i in member if x[i, feature] <= value]
            right = [i for i in member if x[i, feature] > value]
            if min(len(left), len(right)) >= min_leaf:
                found[feature, value] = left, right
    return found


def _members(tree: Tree, at: int) -> list[int]:
    start, size = tree.node[at]["start"], tree.node[at]["size"]
    return sorted(tree.order[start : start + size].tolist())


@pytest.mark.parametrize("numeric", [False, True], ids=["classes", "numbers"])
@given(table=records(), data=st.data())
def test_no_cut_separates_the_target_better(
    *, numeric: bool, table: Records, data: st.DataObject
) -> None:
    labels = st.integers(0, 3).map(float)
    target = np.array(data.draw(st.lists(labels, min_size=table.n, max_size=table.n)))
    min_leaf = data.draw(st.integers(1, 3))
    if not table.n:
        return
    x = encode(values_of(table.qi, SCHEMA.qis), SCHEMA.qis)
    wanted = ModelTarget(target, is_numeric=numeric)
    tree = Tree(*learned(table.qi, SCHEMA.qis, wanted, min_leaf=min_leaf))
    assert sorted(tree.order.tolist()) == list(range(table.n))
    for at, node in enumerate(tree.node):
        member = _members(tree, at)
        cuts = _cuts(x, member, min_leaf) if len(set(target[member])) > 1 else {}
        if node["left"] == LEAF:
            assert not cuts
            continue
        left, right = _members(tree, int(node["left"])), _members(tree, int(node["right"]))
        assert left == [i for i in member if x[i, node["feature"]] <= node["threshold"]]
        assert sorted(left + right) == member
        assert min(len(left), len(right)) >= min_leaf
        best = min(_separation(target, *parts, numeric=numeric) for parts in cuts.values())
        assert _separation(target, left, right, numeric=numeric) == pytest.approx(best, abs=1e-9)


def test_of_equal_cuts_the_more_even_one_is_made() -> None:
    """Where no single cut tells anything of the target, its parts still can."""
    codes = np.array([[a, b] for a in (0, 1) for b in (0, 1)] * 4, np.int32)
    qis = (numbers("a", 0, 1), numbers("b", 0, 1))
    node, _ = learned(codes, qis, ModelTarget(codes[:, 0] ^ codes[:, 1]), min_leaf=1)
    assert node["size"].tolist() == [16, 8, 8, 4, 4, 4, 4]


def test_values_that_are_counted_and_those_that_are_sorted_give_one_tree() -> None:
    """A domain of many more values than records is sorted, a small one is counted."""
    rng = np.random.default_rng(1)
    code = rng.integers(0, 60, (400, 2)).astype(np.int32)
    target = (code[:, 0] // 10 + rng.integers(0, 3, 400)) % 4
    few, many = (
        tuple(Attribute(name, np.arange(size)) for name in "ab") for size in (60.0, 9_000.0)
    )
    counted, by_count = learned(code, few, ModelTarget(target), min_leaf=5)
    ordered, by_order = learned(code, many, ModelTarget(target), min_leaf=5)
    assert len(counted) > 1
    np.testing.assert_array_equal(counted["size"], ordered["size"])
    np.testing.assert_array_equal(by_count, by_order)
