"""Classes range by range keep the promise, lose no record, and lose little information."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.division import cuts, divide
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.hilbert import hilbert_key, hilbert_order
from anonymizer.algorithms.records.measures import measure
from anonymizer.algorithms.records.methods import searches
from anonymizer.algorithms.records.problem import Cost
from anonymizer.algorithms.records.ranges import NO_GROUP, form, meetings, settle
from anonymizer.algorithms.records.task import ModelTarget, Task
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.errors import GuaranteeError
from tests.algorithms.records.in_ranges import in_ranges
from tests.algorithms.records.made import (
    SCHEMA,
    categories,
    counts_alone,
    numbers,
    promises,
    records,
)

ALL = [(model, method) for model, each in MODELS.items() for method in each.methods]
METHODS = [how for how in ALL if how[1] not in {"best", "kmeans"}]


def counts(codes: Int32Array, attributes: tuple[Attribute, ...]) -> list[IntArray]:
    columns = zip(codes.T, attributes, strict=True)
    return [np.bincount(column, minlength=a.size) for column, a in columns]


def former_for(
    table: Records,
    promise: Promise,
    model: str = "kd",
    method: str = "hilbert",
    schema: Schema = SCHEMA,
) -> Former:
    return Former(
        schema=schema,
        usual_qi=counts(table.qi, schema.qis),
        usual=counts(table.sensitive, schema.sensitive),
        promise=promise,
        model=MODELS[model],
        method=method,
    )


@settings(max_examples=25, deadline=None)
@given(
    table=records(),
    promise=promises(),
    n_ranges=st.integers(1, 6),
    how=st.sampled_from(METHODS),
)
def test_every_class_keeps_its_promise_against_the_whole_table(
    table: Records, promise: Promise, n_ranges: int, how: tuple[str, str]
) -> None:
    class_of = in_ranges(table, former_for(table, promise, *how), n_ranges=n_ranges)
    assert class_of.shape == (table.n,)
    assert not verify_classes(table, SCHEMA, promise, class_of)


@settings(max_examples=25, deadline=None)
@given(
    table=records(),
    promise=counts_alone(),
    n_ranges=st.integers(1, 6),
    how=st.sampled_from(METHODS),
)
def test_with_k_d_and_l_alone_nothing_is_suppressed_unless_the_whole_table_is(
    table: Records, promise: Promise, n_ranges: int, how: tuple[str, str]
) -> None:
    class_of = in_ranges(table, former_for(table, promise, *how), n_ranges=n_ranges)
    one = np.zeros(table.n, np.int32)
    possible = not verify_classes(table, SCHEMA, promise, one)
    assert bool((class_of != SUPPRESSED).all()) is possible


def test_no_records_are_in_no_class() -> None:
    none = Records(np.zeros((0, 3), np.int32), np.zeros((0, 1), np.int32), np.zeros(0, np.int32))
    former = former_for(none, Promise(k=2))
    assert len(in_ranges(none, former, n_ranges=3)) == 0
    assert len(form(none, former)) == 0


def made(n: int, seed: int = 1) -> tuple[Records, Schema]:
    """Records with the skew and the correlation of a census."""
    rng = np.random.default_rng(seed)
    home = rng.gamma(2.0, 120.0, n).astype(np.int32).clip(0, 999)
    age = (20 + 25 * rng.beta(2, 4, n) + home / 40).astype(np.int32).clip(0, 99)
    work = rng.choice(8, n, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.03, 0.02]).astype(np.int32)
    sex = rng.integers(0, 2, n).astype(np.int32)
    illness = ((age // 12 + rng.integers(0, 5, n)) % 9).astype(np.int32)
    schema = Schema(
        qis=(
            numbers("home", *range(1000)),
            numbers("age", *range(100)),
            categories("work", "abcdefgh"),
            categories("sex", "fm"),
        ),
        sensitive=(categories("illness", "rstuvwxyz"),),
        sources=((0, 1), (2, 3)),
    )
    return Records(
        np.column_stack([home, age, work, sex]), illness[:, None], np.arange(n, dtype=np.int32)
    ), schema


@pytest.mark.parametrize(
    "how",
    [
        ("kd", "hilbert"),
        ("kd", "mondrian"),
        ("kd", "best"),
        ("kld", "hilbert"),
        ("kld", "best"),
        ("kaca", "fast"),
        ("cells", "tree"),
    ],
)
def test_ranges_lose_at_most_one_in_a_hundred_more_than_the_whole(how: tuple[str, str]) -> None:
    table, schema = made(8_000)
    model = MODELS[how[0]]
    promise = Promise(k=5, d=model.d, l=model.l)
    former = former_for(table, promise, how[0], how[1], schema)
    work = 4_000 if searches(how[1]) else None
    together = form(table, former, work_per_record=work)
    apart = in_ranges(table, former, n_ranges=5, work_per_record=work)
    losses = [measure(table, schema, each).gcp[Cost.RANGE] for each in (together, apart)]
    assert losses[1] <= 1.01 * losses[0]


def test_a_range_without_a_class_meets_its_neighbours() -> None:
    """The middle of the order has one illness alone: l = 2 has no class there."""
    n = 60
    schema = Schema((numbers("home", *range(n)),), (categories("illness", "fg"),), ((0,),))
    illness = np.where((np.arange(n) >= 20) & (np.arange(n) < 40), 0, np.arange(n) % 2)
    table = Records(
        np.arange(n, dtype=np.int32)[:, None],
        illness.astype(np.int32)[:, None],
        np.arange(n, dtype=np.int32),
    )
    former = former_for(table, Promise(k=2, l=2), "kld", "hilbert", schema)
    middle = table.only(np.arange(20, 40))
    assert (form(middle, former) == SUPPRESSED).all()
    class_of = in_ranges(table, former, n_ranges=3)
    assert (class_of != SUPPRESSED).all()
    assert class_of.max() >= 10  # the neighbours gave up their border classes alone


def test_t_closeness_of_a_range_is_measured_from_the_whole_table() -> None:
    """Each half has one illness alone, and is close to itself but not to the whole."""
    n = 40
    schema = Schema((numbers("home", *range(n)),), (categories("illness", "fg"),), ((0,),))
    illness = (np.arange(n) >= n // 2).astype(np.int32)
    table = Records(
        np.arange(n, dtype=np.int32)[:, None], illness[:, None], np.arange(n, dtype=np.int32)
    )
    for model, method in METHODS:
        former = former_for(table, Promise(k=2, t=0.1), model, method, schema)
        half = table.only(np.arange(n // 2))
        assert (form(half, former) == SUPPRESSED).all()
        assert (
            form(half, former_for(half, former.promise, model, method, schema)) != SUPPRESSED
        ).all()
        class_of = in_ranges(table, former, n_ranges=2)
        assert not verify_classes(table, schema, former.promise, class_of)


def test_a_method_that_breaks_the_promise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone(task: Task) -> Int32Array:
        return np.arange(task.records.n, dtype=np.int32)

    monkeypatch.setitem(MODELS, "kd", replace(MODELS["kd"], methods={"alone": alone}))
    table = Records(
        np.zeros((4, 3), np.int32), np.zeros((4, 1), np.int32), np.arange(4, dtype=np.int32)
    )
    with pytest.raises(GuaranteeError, match="4 breaches"):
        in_ranges(table, former_for(table, Promise(k=2), "kd", "alone"), n_ranges=1)


def test_former_classes_stay_where_new_ones_would_suppress_no_fewer() -> None:
    table = Records(
        np.array([[0, 0, 0], [0, 0, 0], [1, 0, 0]], np.int32),
        np.zeros((3, 1), np.int32),
        np.arange(3, dtype=np.int32),
    )
    promise = Promise(k=2, max_share=1.0, min_spread={})
    former = former_for(table, promise)
    assert settle(table, former, np.array([7, 7, SUPPRESSED], np.int32)).tolist() == [0, 0, 0]
    strict = replace(former, promise=Promise(k=4))
    assert settle(table, strict, np.array([7, 7, SUPPRESSED], np.int32)).tolist() == [0, 0, -1]


@pytest.mark.parametrize(
    ("n_left", "n_classes", "groups"),
    [
        ([0, 0, 0], [3, 3, 3], [-1, -1, -1]),
        ([0, 4, 0], [3, 0, 3], [0, 0, 0]),
        ([4, 0, 0], [0, 3, 3], [0, 0, -1]),
        ([0, 0, 4], [3, 3, 0], [-1, 0, 0]),
        ([0, 4, 4, 0, 0], [3, 0, 0, 3, 3], [0, 0, 0, 0, -1]),
        ([4, 0, 0, 0, 4], [0, 3, 3, 3, 0], [0, 0, -1, 1, 1]),
        ([4, 0, 4], [0, 3, 0], [0, 0, 0]),
        ([1, 0, 0], [3, 3, 3], [0, 0, -1]),
        ([4], [0], [0]),
        ([4, 4], [0, 0], [0, 0]),
    ],
)
def test_ranges_meet_the_nearest_ones_with_classes(
    n_left: Sequence[int], n_classes: Sequence[int], groups: Sequence[int]
) -> None:
    assert NO_GROUP == -1
    assert meetings(n_left, n_classes).tolist() == groups


@pytest.mark.parametrize(("model", "method"), ALL)
def test_no_range_is_much_larger_than_the_table_over_their_number(model: str, method: str) -> None:
    table, schema = made(5_000)
    former = former_for(table, Promise(k=2), model, method, schema)
    division = divide(table.qi[::3], former, n_ranges=7)
    size = np.bincount(division.ranges_of(table.qi, np.zeros(table.n, np.int64)))
    assert 7 <= len(size) == division.n_ranges <= 14
    assert size.max() <= 1.2 * 5_000 / 7


def test_stretches_follow_the_hilbert_order() -> None:
    table, schema = made(5_000)
    division = divide(table.qi, former_for(table, Promise(k=2), schema=schema), n_ranges=7)
    along = hilbert_order(table.qi, [qi.size for qi in schema.qis])
    range_of = division.ranges_of(table.qi, np.zeros(table.n, np.int64))
    assert (np.diff(range_of[along]) >= 0).all()


def test_boxes_of_cells_follow_the_target() -> None:
    """Only age tells the target, so only age is cut first."""
    table, schema = made(2_000)
    former = former_for(table, Promise(k=2), "cells", "tree", schema)
    old = (table.qi[:, 1] > np.median(table.qi[:, 1])).astype(int)
    division = divide(table.qi, former, n_ranges=2, target=ModelTarget(old))
    range_of = division.ranges_of(table.qi, np.zeros(table.n, np.int64))
    assert all(len(set(old[range_of == r])) == 1 for r in range(division.n_ranges))


@pytest.mark.parametrize(("model", "method"), ALL)
def test_equal_records_are_spread_over_ranges_and_those_of_a_person_stay_together(
    model: str, method: str
) -> None:
    home = np.array([1, 1, *[5] * 12, 9, 9], np.int32)
    schema = Schema((numbers("home", *range(10)),), (), ((0,),))
    turn = np.arange(len(home)) // 2
    table = Records(home[:, None], np.zeros((16, 0), np.int32), turn.astype(np.int32))
    division = divide(table.qi, former_for(table, Promise(k=2), model, method, schema), n_ranges=4)
    range_of = division.ranges_of(table.qi, turn)
    assert np.bincount(range_of).max() <= 6
    assert len(set(range_of[2:14].tolist())) >= 3
    assert all(len(set(range_of[turn == each])) == 1 for each in set(turn.tolist()))


def test_ranges_begin_at_even_shares_of_the_keys() -> None:
    assert cuts(np.array([9, 1, 5, 3], np.uint64), 4).tolist() == [3, 5, 9]


@pytest.mark.parametrize("sizes", [[2, 2], [1000, 3], [2**16] * 4, [2**13] * 5, [2**31] * 4])
def test_the_key_has_the_first_bits_of_the_order(sizes: list[int]) -> None:
    codes = np.random.default_rng(3).integers(0, sizes, (500, len(sizes))).astype(np.int32)
    key = hilbert_key(codes, sizes)
    assert (np.diff(key[hilbert_order(codes, sizes)].astype(object)) >= 0).all()
    assert len(np.unique(key)) == len(np.unique(codes, axis=0))


def test_without_columns_every_key_is_the_same() -> None:
    assert hilbert_key(np.zeros((3, 0), np.int32), []).tolist() == [0, 0, 0]


def test_schemas_without_sensitive_attributes_have_ranges_too() -> None:
    qi: tuple[Attribute, ...] = (numbers("home", *range(30)),)
    schema = Schema(qi, (), ((0,),))
    table = Records(
        np.arange(30, dtype=np.int32)[:, None],
        np.zeros((30, 0), np.int32),
        np.arange(30, dtype=np.int32),
    )
    former = former_for(table, Promise(k=3, t=inf), "kd", "mondrian", schema)
    assert in_ranges(table, former, n_ranges=4).max() >= 4
