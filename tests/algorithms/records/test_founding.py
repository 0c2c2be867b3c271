"""Which vehicles get the values of others as their cover."""

from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np
import pytest

from anonymizer.algorithms.records.cohort_labels import Labels
from anonymizer.algorithms.records.founding import WAITING, Founding
from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Schema
from tests.algorithms.records.made import categories, numbers

KIND = categories("kind", "abcdefg", missing=True)


def _founded(
    covers: Sequence[Sequence[int]], values: Sequence[int]
) -> list[tuple[list[int], list[int]]]:
    """Return who gets which cover, of vehicles with these old covers and present values."""
    labels = Labels.of([KIND], [[np.array(codes, np.int32)] for codes in covers], Cost.SET)
    founding = Founding(
        Schema((KIND,), (), ((0,),)),
        Promise(k=len(values), d=2),
        Cost.SET,
        labels,
        np.array(values, np.int32)[:, None],
        np.arange(len(values), dtype=np.int32),
    )
    found = founding.of_column(0, np.flatnonzero(founding.outside()[:, 0]))
    return [(joined.tolist(), cover.tolist()) for joined, cover in found]


@pytest.mark.parametrize(
    ("covers", "expected"),
    [
        # The labels of the others held "a" and no longer hold their values: they did not give it.
        ([[0, 1], [0, 1], [5, 6]], []),
        ([[0, 1], [1, 4], [5, 6]], [([0, 1, 2], [0, 2, 3])]),
        ([[], [], []], [([0, 1, 2], [0, 2, 3])]),
    ],
)
def test_no_vehicle_can_have_changed_to_a_value_that_its_old_label_holds(
    covers: Sequence[Sequence[int]], expected: list[tuple[list[int], list[int]]]
) -> None:
    assert _founded(covers, [2, 3, 0]) == expected


def test_no_cover_of_a_changed_value_reveals_the_value_of_a_vehicle_that_stays() -> None:
    # The two that change have left a label with "a". Another that stays can have it, or none can.
    stay = [[0, 1], [0, 1], [0, 1], [0, 5], [0, 5]]
    assert _founded(stay, [0, 2, 3, 5, 5]) == [([1, 2], [0, 2, 3, 5])]
    assert _founded([[0, 1], [0, 1], [0, 1], [5, 6], [5, 6]], [0, 2, 3, 5, 5]) == []
    # Of four values of four vehicles the first can have "a" alone, whoever has the others.
    assert _founded(stay[:4], [0, 2, 3, 5]) == []


def _joined(
    covers: Sequence[Sequence[int]], of: Sequence[int], values: Sequence[int], *, d: int
) -> list[int]:
    """Return the newcomers that are hidden among those of these cohorts, in one class."""
    labels = Labels.of([KIND], [[np.array(codes, np.int32)] for codes in covers], Cost.SET)
    founding = Founding(
        Schema((KIND,), (), ((0,),)),
        Promise(k=len(values), d=d),
        Cost.SET,
        labels,
        np.array(values, np.int32)[:, None],
        np.array(of, np.int32),
    )
    one_class = np.zeros(len(values), np.int32)
    found = founding.founded(one_class, founding.of == WAITING, [0])
    return [each for _, joined in found for each in joined.tolist()]


def test_vehicles_that_stay_are_hidden_if_they_can_take_over_values_in_a_circle() -> None:
    # "a" can be the second value of the third, whose own can be that of the second, and so on.
    covers = [[0, 1], [1, 2], [0, 2]]
    assert _joined(covers, [0, 1, 2, WAITING, WAITING], [0, 1, 2, 3, 4], d=2) == [3, 4]
    covers[1] = [1, 5]
    assert _joined(covers, [0, 1, 2, WAITING, WAITING], [0, 1, 2, 3, 4], d=2) == []


def test_who_can_have_a_value_that_shows_has_d_values() -> None:
    # Only the newcomer has "a". Of the others those with "b" can have it, or those with "c" too.
    of, values = [WAITING, 0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert _joined([[0, 1, 2], [1, 2, 3], [1, 2, 3]], of, values, d=3) == []
    assert _joined([[0, 1, 2], [0, 1, 2], [1, 2, 3]], of, values, d=3) == [0]


def test_a_value_within_a_range_is_not_read_where_the_range_has_no_more_than_d_values() -> None:
    # At least d = 3 values from 2 to 4 were given: somebody has 3, and only the newcomer can.
    attribute = numbers("built", *range(7))
    old = [np.array([0, 1, 2], np.int32), np.array([4, 5, 6], np.int32)]
    founding = Founding(
        Schema((attribute,), (), ((0,),)),
        Promise(k=3, d=3),
        Cost.RANGE,
        Labels.of([attribute], [[cover] for cover in old], Cost.RANGE),
        np.array([[2], [2], [3], [4], [4]], np.int32),
        np.array([0, 0, WAITING, 1, 1], np.int32),
    )
    assert not list(founding.founded(np.zeros(5, np.int32), founding.of == WAITING, [0]))


SET, RANGE, TAXONOMY = Cost.SET, Cost.RANGE, Cost.TAXONOMY
COLUMNS = {
    SET: categories("kind", "abcde", missing=True),
    RANGE: numbers("built", *range(6)),
    TAXONOMY: categories("kind", "abcd", missing=True, halves=True),
}


@cache
def _label(cost: Cost, codes: frozenset[int]) -> frozenset[int]:
    """Return what the label of some codes holds."""
    if cost is SET or not codes:
        return codes
    if cost is RANGE:
        return frozenset(range(min(codes), max(codes) + 1))
    tree = COLUMNS[cost].hierarchy
    assert tree is not None
    common = next(
        node for node in tree.ancestor[min(codes)] if all(node in tree.ancestor[c] for c in codes)
    )
    return frozenset(c for c in range(4) if common in tree.ancestor[c])


def _possible(
    cost: Cost, label: frozenset[int], can: Sequence[frozenset[int]], d: int
) -> list[set[int]]:
    """Return the values that each vehicle has in any assignment whose label is this one.

    At least d different values are in the label, as the promise says.
    """
    possible: list[set[int]] = [set() for _ in can]
    for values in product(*can):
        given = label.intersection(values)
        if len(given) >= d and _label(cost, given) == label:
            for of, value in zip(possible, values, strict=True):
                of.add(value)
    return possible


@pytest.mark.parametrize("cost", [SET, RANGE, TAXONOMY])
@pytest.mark.parametrize("joins", ["newcomers", "changed"])
def test_who_tries_all_assignments_finds_d_values_of_each_founder(cost: Cost, joins: str) -> None:
    rng, attribute, n_founded = np.random.default_rng(17), COLUMNS[cost], 0
    n_values = attribute.size if attribute.missing < 0 else attribute.missing
    for _ in range(200):
        n, d = rng.integers(4, 7), int(rng.integers(2, 4))
        covers = [np.sort(rng.permutation(n_values)[: rng.integers(d, d + 2)]) for _ in range(3)]
        old = [_label(cost, frozenset(cover.tolist())) for cover in covers]
        of, values = rng.integers(-1, 3, n), rng.integers(0, n_values, n)
        for i in np.flatnonzero((of != WAITING) & (rng.random(n) < 0.6)):
            values[i] = rng.choice(sorted(old[of[i]]))
        founding = Founding(
            Schema((attribute,), (), ((0,),)),
            Promise(k=3, d=d),
            cost,
            Labels.of([attribute], [[cover.astype(np.int32)] for cover in covers], cost),
            values.astype(np.int32)[:, None],
            of.astype(np.int32),
        )
        outside = founding.outside()[:, 0]
        joining, classes = outside if joins == "changed" else of == WAITING, np.zeros(n, np.int32)
        for founders, joined in founding.founded(classes, joining, [0]):
            label, can = _label(cost, frozenset(values[founders].tolist())), []
            for i in founders.tolist():
                before: frozenset[int] = old[of[i]] if of[i] != WAITING else frozenset()
                stays = of[i] != WAITING and not outside[i]
                fixed = before if stays else frozenset({int(values[i])})
                can.append(label - before if i in joined else fixed)
            for i, possible in zip(founders, _possible(cost, label, can, d), strict=True):
                others = of[i] == WAITING or outside[i]  # what they can have is not known yet
                assert len(possible) >= d or (others and i not in joined)
            n_founded += 1
    assert n_founded > 3


def test_in_a_large_fleet_whoever_has_an_extreme_value_waits_and_holds_up_nobody() -> None:
    n = 4_000
    weight, rng = numbers("weight", *range(n)), np.random.default_rng(1)
    value = np.sort(rng.integers(10, n - 10, n)).astype(np.int32)
    cohort = (np.arange(n) // 10).astype(np.int32)
    covers = [[np.unique(value[first : first + 10])] for first in range(0, n, 10)]
    newcomers = np.array([5, 1_003, 2_507, n - 1])
    value[n - 1], of = n - 1, cohort.copy()
    of[newcomers] = WAITING
    founding = Founding(
        Schema((weight,), (), ((0,),)),
        Promise(k=5, d=2),
        Cost.RANGE,
        Labels.of([weight], covers, Cost.RANGE),
        value[:, None],
        of,
    )
    founded = list(founding.founded(cohort, of == WAITING, [0]))
    assert np.concatenate([joined for _, joined in founded]).tolist() == newcomers[:3].tolist()
    assert max(len(founders) for founders, _ in founded) <= 512
