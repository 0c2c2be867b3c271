from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.cumulative import (
    NO_COMPANY,
    UNKNOWN,
    Memory,
    advance,
    lasting_columns,
    pack,
    remaining,
    short,
    unpack,
)
from anonymizer.algorithms.records.cumulative_enforcement import enforce, keep_company, violators
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, categories, numbers
from tests.algorithms.records.partitions import partitions

PROMISE = Promise(k=2, d=2, l=2)
LASTING = lasting_columns(SCHEMA, PROMISE, ["home", "illness", "work"])
COLUMNS = ((False, 1), (False, 2), (True, 0))
"""Of `LASTING`: whether it is sensitive, and its place in the schema."""
N_PERSONS = 40

Window = tuple[Records, Int32Array]
Left = dict[tuple[int, int], set[int]]
"""What is left of a person and lasting column."""


def by_hand(left: Left, window: Window) -> Left:
    """Intersect what is left with the class of each record."""
    table, class_of = window
    left = {key: set(codes) for key, codes in left.items()}
    for i, c in enumerate(class_of.tolist()):
        for a, (sensitive, j) in enumerate(COLUMNS):
            column = (table.sensitive if sensitive else table.qi)[:, j].tolist()
            missing = (SCHEMA.sensitive if sensitive else SCHEMA.qis)[j].missing
            if c == SUPPRESSED or column[i] == missing:
                continue
            said = {column[m] for m in np.flatnonzero(class_of == c).tolist()} - {missing}
            key = (int(table.person[i]), a)
            before = left.get(key, set())
            left[key] = before & said if column[i] in before else said
    return left


def after(windows: Sequence[Window]) -> Memory:
    memory = unpack([None] * N_PERSONS, LASTING)
    for number, (table, class_of) in enumerate(windows):
        memory = advance(memory, LASTING, table, class_of, first_company=100 * number)
    return memory


def left_of(memory: Memory) -> Left:
    rows = np.split(memory.code, memory.first_of[1:-1])
    return {divmod(at, len(LASTING)): set(row.tolist()) for at, row in enumerate(rows) if len(row)}


@given(st.lists(partitions(), max_size=4))
def test_what_is_left_is_what_every_class_of_a_person_has_said(windows: list[Window]) -> None:
    expected: Left = {}
    for window in windows:
        expected = by_hand(expected, window)
    memory = after(windows)
    assert left_of(memory) == expected
    counts = remaining(memory, LASTING)
    for (p, a), count in np.ndenumerate(counts):
        assert count == len(expected.get((p, a), ())) or (
            count == UNKNOWN and (p, a) not in expected
        )
    too_few = {p for (p, _), codes in expected.items() if len(codes) < 2}
    assert set(np.flatnonzero(short(memory, LASTING)).tolist()) == too_few


@given(partitions(), partitions())
def test_company_is_the_class_of_the_last_publication(first: Window, second: Window) -> None:
    expected = dict.fromkeys(range(N_PERSONS), NO_COMPANY)
    for number, (table, class_of) in enumerate((first, second)):
        for person, c in zip(table.person.tolist(), class_of.tolist(), strict=True):
            if c != SUPPRESSED:
                expected[person] = 100 * number + c
    assert dict(enumerate(after([first, second]).company.tolist())) == expected


@given(st.lists(partitions(), max_size=3))
def test_memory_survives_being_stored_by_person(windows: list[Window]) -> None:
    memory = after(windows)
    stored = pack(memory, LASTING)
    again = unpack(stored, LASTING)
    assert (again.first_of == memory.first_of).all()
    assert (again.code == memory.code).all()
    assert (again.company == memory.company).all()
    some = [3, 1]
    assert pack(unpack([stored[p] for p in some], LASTING), LASTING) == [stored[p] for p in some]


def test_a_person_of_whom_nothing_is_stored_is_a_new_one() -> None:
    (stored,) = pack(unpack([None], LASTING), LASTING)
    assert pack(unpack([stored], LASTING), LASTING) == [stored]
    assert unpack([], LASTING).n_persons == 0


@pytest.mark.parametrize("spoil", [lambda b: b[:-4], lambda b: b + b"1234", lambda b: b[:9]])
def test_what_was_stored_for_other_columns_is_refused(spoil: object) -> None:
    assert callable(spoil)
    with pytest.raises(ValueError, match="does not fit"):
        unpack([spoil(pack(unpack([None], LASTING), LASTING)[0])], LASTING)


def test_a_count_below_nothing_is_refused() -> None:
    blob = bytes(8) + np.array([-1, 1, 0], "<i4").tobytes()
    with pytest.raises(ValueError, match="does not fit"):
        unpack([blob], LASTING)


@pytest.mark.parametrize("names", [["height"], ["work", "work"]])
def test_only_attributes_that_are_there_can_last(names: list[str]) -> None:
    with pytest.raises(ValueError, match="lasting"):
        lasting_columns(SCHEMA, PROMISE, names)


def people(*rows: tuple[int, int, int]) -> Records:
    """Rows of work, home and illness, person by person."""
    cells = np.array(rows, np.int32)
    qi = np.ascontiguousarray(np.column_stack([np.arange(len(rows)) % 4, cells[:, :2]]), np.int32)
    return Records(qi, np.ascontiguousarray(cells[:, 2:]), np.arange(len(rows), dtype=np.int32))


def test_two_windows_that_each_hide_a_value_can_give_it_away_together() -> None:
    table = people((0, 0, 0), (1, 1, 1), (2, 0, 0), (0, 1, 1))
    memory = after([(table, np.array([0, 0, 1, 1], np.int32))])
    assert not short(memory, LASTING).any()
    again = np.array([0, 1, 0, 1], np.int32)
    assert violators(memory, LASTING, table, again).all()  # works 0, 1 and 0, 2 leave 0
    assert violators(memory, LASTING, table, again[[0, 0, 2, 2]]).sum() == 0


def test_a_value_that_changed_begins_anew_and_a_missing_one_says_nothing() -> None:
    table = people((0, 0, 0), (1, 1, 1))
    memory = after([(table, np.zeros(2, np.int32))])
    changed = people((3, 0, 0), (4, 1, 1))
    memory = advance(memory, LASTING, changed, np.zeros(2, np.int32), first_company=2)
    assert left_of(memory)[0, 0] == {3, 4}
    unknown = people((5, 0, 0), (4, 1, 1))
    memory = advance(memory, LASTING, unknown, np.zeros(2, np.int32), first_company=3)
    assert left_of(memory)[0, 0] == {3, 4}
    assert left_of(memory)[1, 0] == {4}


def well_kept(table: Records, promise: Promise, class_of: Int32Array) -> bool:
    n_classes = int(class_of.max(initial=-1)) + 1
    members = [np.flatnonzero(class_of == c).tolist() for c in range(n_classes)]
    return all(of and naive.keeps(table, SCHEMA, promise, of) for of in members)


PROMISES = st.sampled_from([PROMISE, Promise(k=3, d=2, max_share=0.75), Promise(k=2, d=3, l=2)])


@given(st.lists(partitions(), max_size=3), partitions(), PROMISES)
def test_enforced_classes_keep_the_promise_now_and_leave_enough_of_all_they_publish(
    before: list[Window], window: Window, promise: Promise
) -> None:
    table, class_of = window
    lasting = lasting_columns(SCHEMA, promise, ["home", "illness", "work"])
    memory = after(before)
    done = enforce(memory, lasting, table, SCHEMA, promise, class_of)
    assert well_kept(table, promise, done.class_of)
    kept = done.class_of != SUPPRESSED
    published = table.person[kept]
    later = advance(memory, lasting, table, done.class_of, first_company=1000)
    assert not short(later, lasting)[published].any()
    assert (class_of[kept] != SUPPRESSED).all()
    assert done.n_suppressed == ((class_of != SUPPRESSED) & ~kept).sum()
    assert 0 <= done.n_moved <= kept.sum()


@given(st.lists(partitions(), max_size=3), partitions())
def test_what_is_in_order_is_left_as_it_is(before: list[Window], window: Window) -> None:
    table, class_of = window
    memory = after(before)
    fine = enforce(memory, LASTING, table, SCHEMA, PROMISE, class_of).class_of
    again = enforce(memory, LASTING, table, SCHEMA, PROMISE, fine)
    assert (again.class_of == fine).all()
    assert (again.n_moved, again.n_suppressed) == (0, 0)


@given(st.lists(partitions(), min_size=1, max_size=3), partitions())
def test_those_who_keep_company_were_one_class_and_are_a_good_one_again(
    before: list[Window], window: Window
) -> None:
    table, _ = window
    memory = after(before)
    class_of = keep_company(memory, LASTING, table, SCHEMA, PROMISE)
    assert well_kept(table, PROMISE, class_of)
    assert not violators(memory, LASTING, table, class_of).any()
    for c in range(class_of.max(initial=-1) + 1):
        companies = set(memory.company[table.person[class_of == c]].tolist())
        assert len(companies) == 1
        assert NO_COMPANY not in companies


def test_a_class_that_is_here_again_stays_together() -> None:
    table = people((0, 0, 0), (1, 1, 1), (2, 0, 0), (3, 1, 1))
    halves = np.array([0, 0, 1, 1], np.int32)
    memory = after([(table, halves)])
    assert (keep_company(memory, LASTING, table, SCHEMA, PROMISE) == halves).all()
    without_one = table.only(np.array([0, 2, 3]))
    expected = [SUPPRESSED, 0, 0]
    assert keep_company(memory, LASTING, without_one, SCHEMA, PROMISE).tolist() == expected


def test_whoever_would_be_exposed_joins_the_class_that_costs_least() -> None:
    # Persons 0 and 1 would say works 0 and 3; person 0 has 0 and 1 left, as classes 1 and 2 offer.
    first = people((0, 0, 0), (1, 1, 1))
    memory = after([(first, np.zeros(2, np.int32))])
    # So does class 3; class 2 alone knows his value already.
    works = [0, 3, 1, 2, 1, 0, 1, 2, 4, 4]
    cells = np.array([(work, i % 2, i % 2) for i, work in enumerate(works)], np.int32)
    table = Records(
        np.ascontiguousarray(np.column_stack([np.zeros(10), cells[:, :2]]), np.int32),
        np.ascontiguousarray(cells[:, 2:]),
        np.array([0, *range(2, 11)], np.int32),
    )
    window = np.array([0, 0, 1, 1, 2, 2, 3, 3, 0, 0], np.int32)
    lasting = lasting_columns(SCHEMA, Promise(k=2, d=2), ["work"])
    only_work = Memory(np.array([0, 2, *[2] * (N_PERSONS - 1)]), memory.code[:2], memory.company)
    assert only_work.code.tolist() == [0, 1]
    done = enforce(only_work, lasting, table, SCHEMA, Promise(k=2, d=1), window)
    assert done.class_of.tolist() == [2, 0, 1, 1, 2, 2, 3, 3, 0, 0]
    assert (done.n_moved, done.n_suppressed) == (1, 0)


WHERE = Attribute("place", np.array([0.0, 1.0, 2.0, 1000.0]))
KIND = categories("kind", "abcd", halves=True)


@pytest.mark.parametrize(
    ("attribute", "cost", "codes", "home"),
    [
        (WHERE, Cost.RANGE, (2, 3, 0), 1),  # two metres away, not 998
        (KIND, Cost.RANGE, (1, 3, 0), 1),
        (KIND, Cost.SET, (1, 3, 0), 0),  # one more category in either: the first
        (KIND, Cost.TAXONOMY, (1, 2, 0), 1),  # its group, not all
    ],
)
def test_a_record_that_moves_joins_the_class_that_costs_least_by_the_cost_of_the_stream(
    attribute: Attribute, cost: Cost, codes: tuple[int, int, int], home: int
) -> None:
    schema = Schema((categories("type", "ab"), attribute), sensitive=(), sources=((0, 1),))
    mover, one, other = codes
    qi = np.array([[0, mover], [0, one], [1, one], [0, other], [1, other]], np.int32)
    table = Records(qi, np.zeros((5, 0), np.int32), np.arange(5, dtype=np.int32))
    promise = Promise(k=1, d=1)
    lasting = lasting_columns(schema, Promise(k=1, d=2), ["type"])
    alone = np.array([0, 1, 1, 2, 2], np.int32)
    memory = unpack([None] * 5, lasting)
    done = enforce(memory, lasting, table, schema, promise, alone, cost=cost)
    assert done.class_of.tolist() == [home, 0, 0, 1, 1]


def test_where_one_is_moved_an_attribute_of_one_value_costs_nothing() -> None:
    schema = Schema(
        qis=(categories("type", "ab"), categories("only", "x")), sensitive=(), sources=((0, 1),)
    )
    qi = np.array([[0, 0], [0, 0], [0, 0], [1, 0]], np.int32)
    table = Records(qi, np.zeros((4, 0), np.int32), np.arange(4, dtype=np.int32))
    lasting = lasting_columns(schema, Promise(k=1, d=2), ["type"])
    halves = np.array([0, 0, 1, 1], np.int32)
    done = enforce(unpack([None] * 4, lasting), lasting, table, schema, Promise(k=1), halves)
    assert done.class_of.tolist() == [0, 0, 0, 0]
    assert (done.n_moved, done.n_suppressed) == (2, 0)


FLEET = Schema(
    qis=(
        categories("type", "abcdefgh"),
        categories("home", "ijklmnopqr"),
        numbers("speed", *range(60)),
    ),
    sensitive=(categories("fault", "stuvw"),),
    sources=((0, 1), (2,)),
)


def test_whoever_moves_into_a_class_and_breaks_it_leaves_and_its_members_stay() -> None:
    schema = Schema((categories("type", "ab"),), (), ((0,),))
    lasting = lasting_columns(schema, Promise(k=1), ["type"])
    table = Records(
        np.array([[0], [0], [1], [1], [0]], np.int32),
        np.zeros((5, 0), np.int32),
        np.arange(5, dtype=np.int32),
    )
    alone = np.array([0, 0, 0, 0, 1], np.int32)  # and a third `a` would be one too many
    promise = Promise(k=4, max_share=0.5)
    done = enforce(unpack([None] * 5, lasting), lasting, table, schema, promise, alone)
    assert done.class_of.tolist() == [0, 0, 0, 0, SUPPRESSED]


def fleet_over_windows(*, enforced: bool, n: int = 600, n_windows: int = 50) -> tuple[float, float]:
    """Return the shares of vehicles that are exposed at the end, and of records suppressed."""
    rng = np.random.default_rng(7)
    promise = Promise(k=5, d=2, l=2)
    lasting = lasting_columns(FLEET, promise, ["type", "home", "fault"])
    of_vehicle = rng.integers(0, [8, 10, 5], (n, 3)).astype(np.int32)
    memory = unpack([None] * n, lasting)
    n_records, n_suppressed, n_classes = 0, 0, 0
    for _ in range(n_windows):
        here = np.flatnonzero(rng.random(n) < 0.6).astype(np.int32)
        speed = rng.integers(0, 60, len(here)).astype(np.int32)
        qi = np.ascontiguousarray(np.column_stack([of_vehicle[here, :2], speed]))
        table = Records(qi, np.ascontiguousarray(of_vehicle[here, 2:]), here)
        class_of = np.full(len(here), SUPPRESSED, np.int32)
        if enforced:
            class_of = keep_company(memory, lasting, table, FLEET, promise)
        afresh = np.flatnonzero(class_of == SUPPRESSED)
        rest = table.only(afresh)
        new = sweep(make_problem(rest, FLEET, promise), hilbert_order(rest.qi, [8, 10, 60]))
        class_of[afresh] = np.where(new >= 0, new + class_of.max(initial=-1) + 1, SUPPRESSED)
        if enforced:
            class_of = enforce(memory, lasting, table, FLEET, promise, class_of).class_of
        memory = advance(memory, lasting, table, class_of, first_company=n_classes)
        n_classes += int(class_of.max(initial=-1)) + 1
        n_records += len(here)
        n_suppressed += int((class_of == SUPPRESSED).sum())
    return float(short(memory, lasting).mean()), n_suppressed / n_records


def test_fifty_windows_expose_nearly_all_without_enforcement_and_nobody_with_it() -> None:
    exposed, suppressed = fleet_over_windows(enforced=False)
    assert exposed > 0.9
    assert suppressed == 0
    exposed, suppressed = fleet_over_windows(enforced=True)
    assert exposed == 0
    assert suppressed < 0.1
