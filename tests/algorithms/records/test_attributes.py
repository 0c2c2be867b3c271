from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.attributes import (
    Branch,
    Interval,
    ambiguous,
    categories,
    hierarchy_of,
    numbers,
    places_of,
    times,
)
from anonymizer.domain.records import NO_CODE


@st.composite
def trees(draw: st.DrawFn) -> list[Branch]:
    """Branches of uneven depth under one root, in any order; labels name one node each."""
    branches: list[Branch] = []

    def grow(above: Branch, depth: int) -> None:
        for i in range(draw(st.integers(1, 3))):
            below = (f"{above[0]}{i}", *above)
            if depth and draw(st.booleans()):
                grow(below, depth - 1)
            else:
                branches.append(below)

    grow(("*",), 3)
    return draw(st.permutations(branches))


def below(branches: Sequence[Branch], codes: Sequence[int]) -> Branch:
    """The lowest node above some leaves, plainly: what their ways down from the root share."""
    ways = [list(reversed(branches[code])) for code in codes]
    shared = []
    for steps in zip(*ways, strict=False):
        if len(set(steps)) > 1:
            break
        shared.append(steps[0])
    return tuple(reversed(shared))


@given(trees(), st.data())
def test_the_lowest_node_above_codes_is_found_from_the_first_and_the_last(
    branches: list[Branch], data: st.DataObject
) -> None:
    attribute = categories("x", [b[0] for b in branches], branches=branches)
    tree = attribute.hierarchy
    assert tree is not None
    branch_of = {b[0]: b for b in branches}
    ordered = [branch_of[label] for label in attribute.label]
    codes = sorted(data.draw(st.sets(st.integers(0, len(branches) - 1), min_size=1)))
    lo, hi = tree.ancestor[codes[0]], tree.ancestor[codes[-1]]
    node = int(lo[np.argmax(lo == hi)])
    expected = below(ordered, codes)
    assert tree.label[node] == expected[0]
    assert tree.n_leaves[node] == sum(b[-len(expected) :] == expected for b in ordered)
    assert tree.ancestor[:, 0].tolist() == list(range(len(branches)))
    assert {tree.label[node] for node in tree.ancestor[:, -1]} == {"*"}


@given(trees(), st.booleans())
def test_the_codes_below_a_node_follow_each_other_and_the_marker_is_last(
    branches: list[Branch],
    marked: bool,  # noqa: FBT001  hypothesis gives it
) -> None:
    order = [b[0] for b in branches]
    marker = "?" if marked else None
    attribute = categories(
        "x", [*(["?"] if marked else []), *order], branches=branches, marker=marker
    )
    assert attribute.hierarchy is not None
    assert sorted(attribute.label) == sorted([*order, *(["?"] if marked else [])])
    for node in np.unique(attribute.hierarchy.ancestor):
        codes = np.flatnonzero((attribute.hierarchy.ancestor == node).any(axis=1))
        assert codes[-1] - codes[0] == len(codes) - 1
    assert attribute.missing == (len(order) if marked else NO_CODE)
    assert not marked or attribute.label[-1] == "?"


def test_an_order_that_its_hierarchy_allows_is_kept() -> None:
    branches = [("b", "g", "*"), ("a", "g", "*"), ("d", "*"), ("c", "h", "*")]
    attribute = categories("x", ["d", "a", "b", "c"], branches=branches)
    assert attribute.label == ("d", "a", "b", "c")


def test_a_marker_below_a_group_takes_the_group_to_the_end() -> None:
    branches = [("?", "odd", "*"), ("a", "odd", "*"), ("b", "even", "*")]
    attribute = categories("x", ["?", "a", "b"], branches=branches, marker="?")
    assert attribute.label == ("b", "a", "?")


def test_a_category_without_a_branch_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks a category"):
        categories("x", ["a", "z"], branches=[("a", "*")])


AGES = [(str(n), "young" if n < 20 else "old", "*") for n in range(18, 23)]


def test_a_hierarchy_of_numbers_has_their_places_and_the_marker_lies_one_step_beyond() -> None:
    attribute = numbers("age", np.arange(18.0, 23.0), branches=AGES, missing=True)
    assert attribute.position.tolist() == [18, 19, 20, 21, 22, 23]
    assert attribute.missing == 5
    assert attribute.hierarchy is not None
    assert attribute.hierarchy.label[-3:] == ("young", "*", "old")
    assert attribute.hierarchy.n_leaves[-3:].tolist() == [2, 5, 3]


def test_a_domain_takes_from_a_hierarchy_of_numbers_only_what_it_has() -> None:
    attribute = numbers("age", np.array([19.0, 20.0]), branches=AGES)
    assert attribute.hierarchy is not None
    assert attribute.hierarchy.n_leaves.tolist() == [1, 1, 1, 2, 1]


def test_numbers_that_a_hierarchy_scatters_or_lacks_are_refused() -> None:
    odd = [(str(n), "odd" if n % 2 else "even", "*") for n in range(4)]
    with pytest.raises(ValueError, match="follow each other"):
        numbers("x", np.arange(4.0), branches=odd)
    with pytest.raises(ValueError, match="lacks a number"):
        numbers("x", np.arange(5.0), branches=odd)


def test_the_places_of_a_number_are_its_steps_or_whole_numbers_or_what_is_there() -> None:
    there = np.array([2.0, 3.0])
    assert places_of(Interval(0, 0.4, 0.1), there).tolist() == [0, 0.1, 0.2, 0.3, 0.4]
    assert places_of(Interval(1, 4), there).tolist() == [1, 2, 3, 4]
    assert places_of(Interval(1, 4), np.array([2.5, 3])).tolist() == [1, 2.5, 3, 4]
    assert places_of(Interval(0, 2.0**21), there).tolist() == [0, 2, 3, 2.0**21]
    assert places_of(Interval(7, 7), np.array([7.0])).tolist() == [7]


@pytest.mark.parametrize(
    "ends", [(2, 1, None), (0, float("inf"), None), (0, 1, 0), (0, 1, 0.3), (0, 9e9, 1)]
)
def test_a_domain_that_is_none_is_refused(ends: tuple[float, float, float | None]) -> None:
    with pytest.raises(ValueError, match=r"ends|step"):
        Interval(*ends)


def test_a_label_of_two_nodes_is_found() -> None:
    assert ambiguous([("a", "g", "*"), ("b", "g", "*")]) is None
    assert ambiguous([("a", "g", "*"), ("a", "h", "*")]) == 1
    assert ambiguous([("a", "g", "*"), ("b", "g", "h", "*")]) == 1
    assert ambiguous([("g", "*"), ("a", "g", "*")]) is not None
    assert ambiguous([("a", "g", "*"), ("g", "*")]) is not None


def test_a_hierarchy_without_groups_is_leaves_and_root() -> None:
    tree = hierarchy_of([("a", "*"), ("b", "*")])
    assert tree.ancestor.tolist() == [[0, 2], [1, 2]]


def test_a_hierarchy_of_numbers_has_numbers_as_leaves() -> None:
    with pytest.raises(ValueError, match="is no number"):
        numbers("age", np.array([1.0]), branches=[("young", "*")])


def test_times_are_positions_that_rise_however_near_they_are() -> None:
    # So far from the first that floats no longer tell them apart.
    apart = [Fraction(0), Fraction(2**60), Fraction(2**60) + Fraction(1, 10**9)]
    attribute = times("at", apart, ["a", "b", "c"])
    assert (np.diff(attribute.position) > 0).all()
    assert attribute.written == ("a", "b", "c")
    assert attribute.hierarchy is None


def test_times_have_the_hierarchy_of_their_calendar() -> None:
    branches = [("2023-01", "2023", "*"), ("2023-02", "2023", "*"), ("2024-01", "2024", "*")]
    value, written = [Fraction(1), Fraction(2), Fraction(13)], [branch[0] for branch in branches]
    attribute = times("month", value, written, branches=branches, missing=True)
    assert attribute.hierarchy is not None
    assert attribute.missing == 3
    with pytest.raises(ValueError, match="names two nodes"):
        times("month", value, written, branches=[("a", "b", "*"), ("a", "c", "*"), ("d", "b", "*")])
    apart = [branches[0], branches[2], branches[1]]
    with pytest.raises(ValueError, match="do not follow each other"):
        times("month", value, [branch[0] for branch in apart], branches=apart)


def test_what_is_missing_lies_beyond_a_number_whose_steps_are_too_small_for_floats() -> None:
    position = numbers("size", np.array([1e300]), missing=True).position
    assert position[1] > position[0] == 1e300
