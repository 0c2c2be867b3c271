"""Cohorts: what all classes of a person leave possible together, whoever comes and goes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED, without_gaps
from anonymizer.algorithms.records.cohorts import (
    Cohorts,
    assigned,
    formed,
    published_loss,
    remembered_covers,
    with_covers,
)
from anonymizer.algorithms.records.cumulative import (
    NO_COMPANY,
    Memory,
    advance,
    lasting_columns,
    pack,
    unpack,
)
from anonymizer.algorithms.records.founding import WAITING, founding_promise, lasting_only
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.records import naive
from tests.algorithms.records.made import categories, numbers

SIZES = (4, 6, 5, 3)
FLEET = Schema(
    qis=(
        categories("type", "abcd", halves=True),
        numbers("built", *range(6)),
        numbers("speed", *range(5)),
    ),
    sensitive=(categories("fault", "xyz"),),
    sources=((0, 1), (2,)),
)
PROMISE = Promise(k=3, d=2)
LASTING = lasting_columns(FLEET, PROMISE, ["type", "built"])
COSTS = st.sampled_from(list(Cost))


class Gateway:
    """What a stream does with its windows, without messages."""

    def __init__(self, promise: Promise = PROMISE, cost: Cost = Cost.RANGE) -> None:
        self.promise, self.cost = promise, cost
        self.stored: dict[int, bytes] = {}
        self.n_windows = 0
        self.labels: dict[int, list[tuple[frozenset[int], ...]]] = {}
        """What the classes of each vehicle said about its lasting attributes, window by window."""

    def close(
        self, vehicles: list[int], cells: Int32Array, refused: tuple[int, ...] = ()
    ) -> Int32Array:
        """Publish a window without some vehicles; return the class of each."""
        n = len(vehicles)
        records = Records(
            np.ascontiguousarray(cells[:, :3]),
            np.ascontiguousarray(cells[:, 3:]),
            np.arange(n, dtype=np.int32),
        )
        memory = unpack([self.stored.get(v) for v in vehicles], LASTING)
        schema = lasting_only(FLEET, LASTING.qis)

        def found() -> Int32Array:
            some = Records(
                np.ascontiguousarray(records.qi[:, :2]), np.zeros((n, 0), np.int32), records.person
            )
            problem = make_problem(some, schema, founding_promise(self.promise, schema))
            return sweep(problem, hilbert_order(some.qi, SIZES[:2]))

        cohorts = assigned(
            memory, LASTING, records, FLEET, found, promise=self.promise, cost=self.cost
        )
        class_of = formed(
            cohorts,
            LASTING,
            records,
            FLEET,
            (records, FLEET),
            swept,
            promise=self.promise,
            cost=self.cost,
        )
        self._check(records, cohorts, class_of)
        class_of[np.isin(vehicles, refused)] = SUPPRESSED
        class_of = without_gaps(class_of)
        self._publish(vehicles, records, cohorts, class_of)
        self._remember(vehicles, memory, records, cohorts, class_of)
        return class_of

    def _check(self, records: Records, cohorts: Cohorts, class_of: Int32Array) -> None:
        assert (class_of[cohorts.of == WAITING] == SUPPRESSED).all()
        for c in range(int(class_of.max(initial=-1)) + 1):
            members = np.flatnonzero(class_of == c).tolist()
            assert naive.keeps(records, FLEET, self.promise, members)

    def _publish(
        self, vehicles: list[int], records: Records, cohorts: Cohorts, class_of: Int32Array
    ) -> None:
        rows, of_rows = with_covers(records, class_of, cohorts, LASTING)
        for i, v in enumerate(vehicles):
            if class_of[i] != SUPPRESSED:
                label = tuple(
                    held(FLEET.qis[j], rows.qi[of_rows == class_of[i], j], self.cost)
                    for j in (0, 1)
                )
                for j in (0, 1):
                    assert int(records.qi[i, j]) in label[j]
                self.labels.setdefault(v, []).append(label)
        problem = make_problem(rows, FLEET, self.promise, cost=self.cost)
        assert 0 <= published_loss(problem, class_of, of_rows) <= 1

    def _remember(
        self,
        vehicles: list[int],
        memory: Memory,
        records: Records,
        cohorts: Cohorts,
        class_of: Int32Array,
    ) -> None:
        self.n_windows += 1
        first = self.n_windows << 40
        after = advance(memory, LASTING, records, class_of, first_company=first)
        after = remembered_covers(after, LASTING, cohorts, first_company=first)
        packed = pack(after, LASTING)
        kept = (class_of != SUPPRESSED) | cohorts.is_new
        self.stored |= {v: packed[i] for i, v in enumerate(vehicles) if kept[i]}


def swept(some: Records, _at: IntArray, columns: Schema, problem: Problem) -> Int32Array:
    """Return classes along the curve."""
    return sweep(problem, hilbert_order(some.qi, [qi.size for qi in columns.qis]))


def held(attribute: Attribute, codes: IntArray | Int32Array, cost: Cost) -> frozenset[int]:
    """Return the codes that the published label of some codes holds."""
    tree = attribute.hierarchy
    lo, hi = int(min(codes)), int(max(codes))
    if attribute.numeric:
        return frozenset(range(lo, hi + 1))
    if cost is Cost.TAXONOMY and tree is not None:
        common = next(n for n in tree.ancestor[lo] if all(n in tree.ancestor[c] for c in codes))
        return frozenset(c for c in range(attribute.size) if common in tree.ancestor[c])
    return frozenset(int(code) for code in codes)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[list[int], Int32Array]]:
    """Some windows of vehicles that come and go; the type and the year of each stay the same."""
    n = draw(st.integers(6, 24))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    lasting = rng.integers(0, SIZES[:2], (n, 2))
    windows = []
    for w in range(draw(st.integers(2, 8))):
        here = np.flatnonzero((rng.random(n) < 0.8) & (np.arange(n) < 8 + 4 * w)).tolist()
        changing = rng.integers(0, SIZES[2:], (len(here), 2))
        windows.append((here, np.column_stack([lasting[here], changing]).astype(np.int32)))
    return windows


@given(histories(), COSTS, st.sampled_from([PROMISE, Promise(k=3, d=2, l=2), Promise(k=4, d=3)]))
def test_all_classes_of_a_vehicle_leave_the_values_that_the_first_one_left(
    windows: list[tuple[list[int], Int32Array]], cost: Cost, promise: Promise
) -> None:
    gateway = Gateway(promise, cost)
    for vehicles, cells in windows:
        gateway.close(vehicles, cells)
    for vehicle, labels in gateway.labels.items():
        cover = unpack([gateway.stored[vehicle]], LASTING)
        for a, column in enumerate(zip(*labels, strict=True)):
            left = frozenset.intersection(*column)
            assert left >= set(cover.code[cover.first_of[a] : cover.first_of[a + 1]].tolist())
            assert len(left) >= promise.d


def window(*rows: tuple[int, int]) -> Int32Array:
    changing = [(i % 5, i % 3) for i in range(len(rows))]
    return np.array([(*row, *rest) for row, rest in zip(rows, changing, strict=True)], np.int32)


TIGHT = [(0, 0), (1, 1), (0, 1), (2, 4), (3, 5), (2, 5)]


def test_a_newcomer_with_a_value_that_nobody_else_can_have_waits() -> None:
    gateway = Gateway()
    gateway.close([*range(6)], window(*TIGHT[:4], (2, 3), TIGHT[5]))
    class_of = gateway.close([*range(7)], window(*TIGHT[:4], (2, 3), TIGHT[5], (3, 2)))
    assert class_of[6] == SUPPRESSED
    assert (class_of[:6] != SUPPRESSED).all()


@given(histories(), COSTS, st.sampled_from([PROMISE, Promise(k=4, d=3)]))
def test_who_knows_all_covers_and_who_was_present_reads_no_value_of_a_newcomer(
    windows: list[tuple[list[int], Int32Array]], cost: Cost, promise: Promise
) -> None:
    gateway, founded = Gateway(promise, cost), dict[int, int]()
    for w, (vehicles, cells) in enumerate(windows):
        gateway.close(vehicles, cells, tuple(v for v in vehicles if (v + w) % 4 == 0))
        founded |= dict.fromkeys(gateway.stored.keys() - founded.keys(), w)
    for a, attribute in enumerate(FLEET.qis[:2]):
        every = unpack([gateway.stored[v] for v in founded], LASTING)
        rows = [every.code[slice(*every.first_of[2 * i + a :][:2])] for i in range(len(founded))]
        cover = dict(zip(founded, rows, strict=True))
        can_have = {v: held(attribute, codes, cost) for v, codes in cover.items()}
        anything = frozenset(range(attribute.size))
        for v, w in founded.items():
            vehicles, cells = windows[w]
            own = dict(zip(vehicles, cells[:, a].tolist(), strict=True))
            without = np.setdiff1d(cover[v], own[v])
            if own[v] not in held(attribute, without, cost):
                can = [u for u in vehicles if own[v] in can_have.get(u, anything)]
                values = [own[u] for u in can if u != v]
                assert own[v] in values or len(set(values)) >= promise.d - 1


def test_a_cover_that_hides_others_is_kept_by_a_vehicle_that_is_not_published() -> None:
    gateway = Gateway()
    gateway.close([*range(6)], window(*TIGHT), refused=(2,))
    cover = gateway.stored[2]
    gateway.close([*range(8)], window(*TIGHT, (0, 0), (1, 1)))
    assert gateway.stored[2] == cover
    assert unpack([cover], LASTING).company[0] == unpack([gateway.stored[0]], LASTING).company[0]


def test_a_newcomer_founds_a_cohort_of_which_others_give_the_values() -> None:
    gateway = Gateway()
    gateway.close([*range(6)], window(*TIGHT))
    before = gateway.labels[0][-1]
    class_of = gateway.close([*range(7)], window(*TIGHT, (1, 5)))
    assert (class_of != SUPPRESSED).all()
    memory = unpack([gateway.stored[v] for v in range(7)], LASTING)
    assert memory.company.tolist().count(int(memory.company[6])) == 1
    cover = [set(memory.code[slice(*memory.first_of[i : i + 2])].tolist()) for i in range(12, 14)]
    assert min(map(len, cover)) >= PROMISE.d
    there = np.array([*TIGHT, (1, 5)])
    inside = np.logical_and.reduce([np.isin(there[:, a], [*cover[a]]) for a in (0, 1)])
    assert inside.sum() >= PROMISE.k
    assert gateway.labels[0][-1][0] >= before[0]


def test_newcomers_that_no_class_takes_wait() -> None:
    gateway = Gateway()
    gateway.close([*range(6)], window(*TIGHT))
    memory = unpack([gateway.stored[v] for v in range(6)] + [None], LASTING)
    cells = window(*TIGHT, (1, 5))
    records = Records(cells[:, :3], cells[:, 3:], np.arange(7, dtype=np.int32))
    cohorts = assigned(
        memory,
        LASTING,
        records,
        FLEET,
        lambda: np.full(7, SUPPRESSED, np.int32),
        promise=PROMISE,
    )
    assert cohorts.of.tolist().count(WAITING) == 1


def test_those_who_stay_are_published_when_others_leave_and_lose_nothing() -> None:
    gateway = Gateway()
    first = gateway.close([*range(6)], window(*TIGHT))
    assert len(set(first.tolist())) == 2
    class_of = gateway.close([0, 3, 4, 5], window(*(TIGHT[v] for v in (0, 3, 4, 5))))
    assert (class_of != SUPPRESSED).all()
    assert gateway.labels[0][-1][0] > gateway.labels[0][0][0]


def test_a_value_that_changed_makes_a_newcomer() -> None:
    gateway = Gateway()
    gateway.close([*range(6)], window(*TIGHT))
    moved = [(3, 5), *TIGHT[1:]]
    gateway.close([*range(6)], window(*moved))
    company = unpack([gateway.stored[v] for v in (0, 1, 3)], LASTING).company
    assert company[0] not in company[1:]
    assert company[1] != company[2]


@pytest.mark.parametrize("n", [0, 2])
def test_a_window_of_too_few_publishes_nothing(n: int) -> None:
    gateway = Gateway()
    assert (gateway.close([*range(n)], window(*TIGHT[:n]).reshape(n, 4)) == SUPPRESSED).all()


def test_a_new_cohort_has_a_number_of_its_own() -> None:
    gateway = Gateway()
    gateway.close([*range(6)], window(*TIGHT))
    gateway.close([6, 7, 8], window((1, 5), (0, 3), (0, 4)))
    company = unpack([gateway.stored[v] for v in range(9)], LASTING).company
    assert len(set(company.tolist())) == 3
    assert NO_COMPANY not in company


def test_a_value_that_is_withheld_is_shown_as_missing_and_nothing_else_is() -> None:
    types, sizes = categories("type", "abc", missing=True), categories("size", "xy", missing=True)
    schema = Schema((types, sizes), (), ((0, 1),))
    lasting = lasting_columns(schema, PROMISE, ["type", "size"])
    qi = np.array([[0, 1], [1, 0], [2, 1]], np.int32)
    records = Records(qi, np.zeros((3, 0), np.int32), np.arange(3, dtype=np.int32))
    withheld = np.array([[True, False], [False, False], [False, True]])
    cohorts = Cohorts(np.zeros(3, np.int32), (), np.zeros(0, np.int64), withheld)
    assert cohorts.shown(records, schema, lasting).qi.tolist() == [[3, 1], [1, 0], [2, 2]]
    assert records.qi.tolist() == qi.tolist()
