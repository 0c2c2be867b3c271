from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.domain.records import Records, Schema
from experiments.rivals import (
    full_domain,
    full_domain_classes,
    full_domain_labels,
    level_codes,
    top_down,
)
from tests.algorithms.records.made import SCHEMA, categories, numbers, records

Levels = tuple[int, ...]


@given(records(max_n=60), st.integers(2, 5), st.integers(0, 3))
def test_top_down_gives_every_record_a_class_of_k(table: Records, k: int, seed: int) -> None:
    class_of = top_down(table, SCHEMA, k, seed=seed)
    if table.n < k:
        assert set(class_of.tolist()) == {SUPPRESSED}
        return
    sizes = np.bincount(class_of)
    assert sizes.min() >= k
    assert sizes.sum() == table.n


def test_top_down_cuts_between_two_groups_that_lie_apart() -> None:
    schema = Schema((numbers("x", *range(100)),), (), ((0,),))
    x = np.array([0, 1, 2, 3, 97, 98, 99], np.int32)[:, None]
    table = Records(x, np.zeros((7, 0), np.int32), np.arange(7, dtype=np.int32))
    class_of = top_down(table, schema, 3, seed=1)
    assert len(set(class_of[:4].tolist())) == len(set(class_of[4:].tolist())) == 1
    assert class_of[0] != class_of[-1]


def test_equal_records_are_cut_into_classes_of_k_as_well() -> None:
    same = Records(
        np.zeros((9, 3), np.int32), np.zeros((9, 1), np.int32), np.arange(9, dtype=np.int32)
    )
    assert np.bincount(top_down(same, SCHEMA, 3, seed=1)).tolist() == [3, 3, 3]


def naive_keeps(table: Records, levels: Levels, k: int, l: int) -> bool:  # noqa: E741
    classes: dict[tuple[int, ...], list[int]] = {}
    for i, row in enumerate(table.qi.tolist()):
        key = tuple(
            int(level_codes(a)[code, at])
            for a, code, at in zip(SCHEMA.qis, row, levels, strict=True)
        )
        classes.setdefault(key, []).append(i)
    return all(
        len(member) >= k and len({int(table.sensitive[i, 0]) for i in member}) >= l
        for member in classes.values()
    )


@given(records(max_n=30), st.integers(1, 4), st.integers(1, 2))
def test_the_minimal_generalizations_are_those_of_a_search_of_the_whole_lattice(
    table: Records,
    k: int,
    l: int,  # noqa: E741  the field's name for it
) -> None:
    heights = [level_codes(a).shape[1] for a in SCHEMA.qis]
    safe = {levels for levels in product(*map(range, heights)) if naive_keeps(table, levels, k, l)}
    minimal = {
        levels
        for levels in safe
        if not any(
            (*levels[:a], at - 1, *levels[a + 1 :]) in safe for a, at in enumerate(levels) if at
        )
    }
    found = full_domain(table, SCHEMA, k, l=l)
    assert {each.levels for each in found} == minimal
    assert [each.height for each in found] == sorted(each.height for each in found)
    assert all(0 <= each.loss <= 1 for each in found)


@given(records(max_n=30))
def test_the_labels_of_a_full_domain_release_cover_its_records(table: Records) -> None:
    for found in full_domain(table, SCHEMA, 2):
        class_of = full_domain_classes(table, SCHEMA, found)
        published = full_domain_labels(table, SCHEMA, found, class_of)
        for labels, column in zip(published.qi, table.qi.T, strict=True):
            assert labels.covers(class_of, np.ascontiguousarray(column)).all()


def bands(*values: float) -> list[list[int]]:
    levels: list[list[int]] = level_codes(numbers("age", *values)).T.tolist()
    return levels


def test_numbers_without_a_hierarchy_have_bands_that_double() -> None:
    assert bands(0, 4, 5, 9, 10, 19) == [
        [0, 1, 2, 3, 4, 5],
        [0, 0, 1, 1, 2, 3],
        [0, 0, 0, 0, 1, 1],
        [0, 0, 0, 0, 0, 0],
    ]
    assert bands(1, 2, 3) == [[0, 1, 2], [0, 0, 0]]


def test_categories_have_the_levels_of_their_hierarchy() -> None:
    flat = level_codes(categories("home", "xyz")).T.tolist()
    assert flat == [[0, 1, 2], [0, 0, 0]]
    assert level_codes(SCHEMA.qis[1]).shape == (6, 3)
