from itertools import combinations_with_replacement, pairwise
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.kaca.coarsening import Cell, Ladder, Total, add_up
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.algorithms.records.generalized_values import (
    Form,
    Hours,
    LabelStyle,
    Prefix,
    text,
    to_json,
)
from anonymizer.algorithms.records.published_values import ValueReader
from anonymizer.domain.records import Attribute, Schema

K = 2
SECTIONS = ("G5611530010", "G5615530120", "G7611530010", "S0010530010")


class Exit(NamedTuple):
    truck: int
    section: str
    hour: int
    cents: int


class Window(NamedTuple):
    """The exits of each published class; `own` is what the class says of its own trucks."""

    classes: list[list[Exit]]
    own: list[int]

    def cells(self) -> list[Cell]:
        return [_cell(c, own) for c, own in zip(self.classes, self.own, strict=True)]


def _cell(members: list[Exit], own: int) -> Cell:
    prefix, hours = Prefix(members[0].section), Hours((members[0].hour, members[0].hour + 1))
    for each in members[1:]:
        prefix = prefix.join(Prefix(each.section))
        hours = hours.join(Hours((each.hour, each.hour + 1)))
    trucks = len({each.truck for each in members})
    total = Total(len(members), sum(each.cents for each in members) / 100)
    return Cell((prefix, hours), trucks, own, trucks, len(members), (total,))


@st.composite
def windows(draw: st.DrawFn) -> Window:
    """Each truck's first exit is its own class's; the others are anywhere."""

    def exit_of(truck: int) -> Exit:
        return Exit(
            truck,
            draw(st.sampled_from(SECTIONS)),
            draw(st.sampled_from([0, 7, 8, 12, 23])),
            draw(st.integers(0, 300)),
        )

    sizes = draw(st.lists(st.integers(K, K + 2), max_size=5))
    trucks = iter(draw(st.permutations(range(sum(sizes)))))
    classes = [[exit_of(next(trucks)) for _ in range(size)] for size in sizes]
    if not sizes or draw(st.booleans()):
        return Window(classes, sizes)  # one exit a truck: all are own
    for truck in draw(st.lists(st.integers(0, sum(sizes) - 1), max_size=8)):
        classes[draw(st.integers(0, len(sizes) - 1))].append(exit_of(truck))
    return Window(classes, [size // K * K for size in sizes])


def answer(of: list[Window], k: int) -> dict[object, set[tuple[int, int, Exit]]]:
    """What each row of an answer is of: exits by their window, class and themselves."""
    rows: dict[object, set[tuple[int, int, Exit]]] = {}
    for w, window in enumerate(of):
        ladder = Ladder(window.cells())
        for group, cell in zip(ladder.groups(k), ladder.cells(k), strict=True):
            members = {(w, c, each) for c in group for each in window.classes[c]}
            rows.setdefault(cell.values, set()).update(members)
    return rows


@settings(deadline=None)
@given(st.lists(windows(), min_size=1, max_size=3), st.data())
def test_no_two_answers_differ_or_agree_by_fewer_than_k_trucks_in_any_cell(
    release: list[Window], data: st.DataObject
) -> None:
    ks = data.draw(st.lists(st.integers(K, 12), min_size=2, max_size=3))
    ends = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(release)), st.integers(0, len(release))).map(sorted),
            min_size=2,
            max_size=3,
        )
    )
    asked = [(k, first, last) for k in ks for first, last in ends]
    answers = [
        (k, answer([w if first <= i < last else Window([], []) for i, w in enumerate(release)], k))
        for k, first, last in asked
    ]
    for (k_1, one), (k_2, other) in combinations_with_replacement(answers, 2):
        for a in one.values():
            for b in other.values():
                for piece in (a & b, a - b, b - a):
                    trucks = {each.truck for _, _, each in piece}
                    assert not piece or len(trucks) >= min(k_1, k_2)


@settings(deadline=None)
@given(windows(), st.integers(K, 20))
def test_every_cell_holds_k_distinct_trucks_and_its_words_and_sums_are_true(
    window: Window, k: int
) -> None:
    ladder = Ladder(window.cells())
    groups = ladder.groups(k)
    for group, cell in zip(groups, ladder.cells(k), strict=True):
        members = [each for c in group for each in window.classes[c]]
        assert len({each.truck for each in members}) >= cell.certain >= k
        assert cell.n_records == len(members)
        counted = (len({each.truck for each in window.classes[c]}) for c in group)
        assert cell.n_persons == sum(counted)
        assert cell.totals == (Total(len(members), sum(e.cents for e in members) / 100),)
        prefix, hours = cell.values
        assert isinstance(prefix, Prefix)
        assert isinstance(hours, Hours)
        assert all(each.section.startswith(str(prefix.prefix)) for each in members)
        assert {each.hour for each in members} <= hours.hours
    everybody = [c for group in groups for c in group]
    assert sorted(everybody) == (list(range(len(window.classes))) if groups else [])
    if not groups:
        assert sum(window.own) < k


@settings(deadline=None)
@given(windows())
def test_a_larger_k_only_joins_cells_and_joins_none_without_need(window: Window) -> None:
    ladder = Ladder(window.cells())
    for finer, coarser in pairwise(ladder.groups(k) for k in range(K, 25)):
        for group in finer:
            assert not coarser or any(set(group) <= set(larger) for larger in coarser)
    assert sorted(ladder.groups(K)) == [[c] for c in range(len(window.classes))]


@settings(deadline=None)
@given(windows(), st.randoms(use_true_random=False), st.integers(K, 12))
def test_the_order_in_which_classes_were_published_changes_no_answer(
    window: Window, rnd: np.random.Generator, k: int
) -> None:
    cells = window.cells()
    if len({cell.values for cell in cells}) < len(cells):
        return  # of two that read the same, either comes first
    other = cells.copy()
    rnd.shuffle(other)
    assert add_up(Ladder(cells).cells(k)) == add_up(Ladder(other).cells(k))


def test_cells_that_read_the_same_are_added_up() -> None:
    def cell(prefix: str, n: int, total: Total | None) -> Cell:
        return Cell((Prefix(prefix),), n, n, n, n, (total,))

    found = add_up(
        [
            cell("S", 3, None),
            cell("G", 5, Total(5, 0.1)),
            cell("S", 4, Total(4, 0.2)),
            cell("G", 6, Total(6, 0.2)),
        ]
    )
    assert [(c.values[0].order_key[1], c.n_persons, c.totals) for c in found] == [
        ("G", 11, (Total(11, 0.3),)),
        ("S", 7, (Total(4, 0.2),)),
    ]


COLOUR = Attribute("colour", np.arange(4.0), ("red", "green", "blue", "?"), missing=3)
SPEED = Attribute("speed", np.arange(6.0), missing=5)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.booleans()), min_size=1),
    st.sampled_from([Form.PLAIN, Form.PREFIX]),
    st.sampled_from([Form.PLAIN, Form.HOURS]),
)
def test_the_union_of_two_classes_covers_all_members_of_both_also_those_without_a_value(
    rows: list[tuple[int, int, bool]], colour: Form, speed: Form
) -> None:
    qi = np.array([row[:2] for row in rows], np.int32)
    class_of = np.unique([row[2] for row in rows], return_inverse=True)[1].astype(np.int32)
    general = generalize(qi, classes_of(class_of), Schema((COLOUR, SPEED), (), ((0,), (1,))))
    styles = (LabelStyle(colour), LabelStyle(speed, per_day=5.0))
    for j, (attribute, style) in enumerate(zip((COLOUR, SPEED), styles, strict=True)):
        values = [general.joinable_value(c, j, style) for c in range(len(general))]
        both = values[0].join(values[-1])  # type: ignore[arg-type]
        reader = ValueReader(attribute, per_day=5.0)
        for published in (text(both), to_json(both)):
            runs = reader.runs(published)
            assert all(any(lo <= v <= hi for lo, hi in runs) for v in qi[:, j].tolist())
