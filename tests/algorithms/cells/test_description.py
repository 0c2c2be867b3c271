from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.cells.description import distinctions, widths
from anonymizer.algorithms.cells.pruning import prune
from anonymizer.algorithms.cells.tree import grow
from anonymizer.algorithms.cells.tree_features import values_of
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.cells.made import cells
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, categories, numbers, records


@given(records(), st.integers(1, 4))
def test_what_is_not_told_apart_is_in_one_cell(table: Records, k: int) -> None:
    found = cells(table, SCHEMA, Promise(k=k), target=ModelTarget(table.qi[:, 0] % 2))
    if not found.n_classes:
        assert found.left_of_node[0] == 0
        return
    told: Any = distinctions(found)
    age, *others = told
    assert list(age) == sorted(age)
    values = values_of(table.qi, SCHEMA.qis)
    group_of = [np.searchsorted(np.array(age, float), values[:, 0])]
    for j, groups in enumerate(others, start=1):
        labels = [label for group in groups for label in group]
        assert sorted(labels) == sorted(SCHEMA.qis[j].label)
        group = {label: g for g, each in enumerate(groups) for label in each}
        group_of.append(np.array([group[SCHEMA.qis[j].label[c]] for c in table.qi[:, j]]))
    cell_of: dict[tuple[int, ...], int] = {}
    for key, cell in zip(zip(*group_of, strict=True), found.class_of.tolist(), strict=True):
        assert cell_of.setdefault(key, cell) == cell


def test_many_categories_are_told_apart_in_their_order() -> None:
    place = categories("place", [f"p{i:02}" for i in range(80)])
    schema = Schema((place, numbers("age", 1, 2)), (), ((0,), (1,)))
    codes = np.column_stack([np.arange(80), np.arange(80) % 2]).astype(np.int32)
    table = Records(codes, np.zeros((80, 0), np.int32), np.arange(80, dtype=np.int32))
    target = (codes[:, 0] >= 20).astype(int) + (codes[:, 0] >= 50)
    grown = grow(table, schema, ModelTarget(target), min_leaf=2, divide=False)
    groups, borders = distinctions(prune(grown, make_problem(table, schema, Promise(k=2))))
    assert borders == ()
    assert [group[0] for group in groups if isinstance(group, tuple)] == ["p00", "p20", "p50"]
    assert [len(each) for each in groups if isinstance(each, tuple)] == [20, 30, 30]


@given(records(), st.data())
def test_a_width_is_the_loss_of_the_attribute(table: Records, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.integers(0, 2), min_size=table.n, max_size=table.n))
    class_of = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    classes = classes_of(class_of)
    found = widths(table.qi, classes, SCHEMA)
    for c in range(len(classes)):
        one_by_one = [
            naive.loss(
                Records(table.qi[:, [j]], table.sensitive, table.person),
                Schema((qi,), (), ((0,),)),
                Cost.SET,
                classes[c].tolist(),
            )
            for j, qi in enumerate(SCHEMA.qis)
        ]
        assert found[c].tolist() == pytest.approx(one_by_one)
