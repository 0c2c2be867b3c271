import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.measures import measure, measure_briefly, modal_shares
from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, numbers
from tests.algorithms.records.partitions import partitions


def members(class_of: Int32Array) -> list[list[int]]:
    n = int(class_of.max(initial=-1)) + 1
    return [np.flatnonzero(class_of == c).tolist() for c in range(n)]


@given(partitions(), st.sampled_from([0.3, 0.5, 0.8]))
def test_the_records_in_classes_where_one_value_prevails_are_counted(
    made: tuple[Records, Int32Array], share: float
) -> None:
    table, class_of = made
    found = modal_shares(table, class_of, share)
    columns = [*table.qi.T.tolist(), *table.sensitive.T.tolist()]
    most = [max(Counter(column).values()) / table.n for column in columns]
    assert found.table == pytest.approx(most)
    classes = members(class_of)
    above = [
        [max(Counter(column[i] for i in of).values()) > share * len(of) + 1e-9 for of in classes]
        for column in columns
    ]
    sizes = [len(of) for of in classes]
    assert found.n_above == tuple(
        sum(n for n, is_above in zip(sizes, each, strict=True) if is_above) for each in above
    )
    any_above = [naive.n_above(table, of, share) > 0 for of in classes]
    assert found.n_above_any == sum(
        n for n, is_above in zip(sizes, any_above, strict=True) if is_above
    )


@given(partitions())
def test_what_is_reached_is_kept_by_every_class_and_nothing_more_is(
    made: tuple[Records, Int32Array],
) -> None:
    table, class_of = made
    found = measure(table, SCHEMA, class_of)
    classes = members(class_of)

    def all_keep(promise: Promise) -> bool:
        return all(naive.keeps(table, SCHEMA, promise, of) for of in classes)

    if not classes:
        assert (found.k, found.d, found.l, found.entropy_l) == (0, (0, 0, 0), (0,), (0.0,))
        return
    assert all_keep(
        Promise(
            k=found.k,
            d=min(found.d),
            l=found.l[0],
            max_share=max(found.max_share),
            max_source_share=found.max_source_share[0],
            min_spread={"age": found.min_spread[0] or 0.0},
            entropy_l=found.entropy_l[0],
            t=found.t[0],
        )
    )
    assert not all_keep(Promise(k=found.k + 1))
    assert not all_keep(Promise(k=1, d=min(found.d) + 1))
    assert not all_keep(Promise(k=1, l=found.l[0] + 1))
    assert not all_keep(Promise(k=1, max_share=max(found.max_share) - 1e-6))
    assert not all_keep(Promise(k=1, max_source_share=found.max_source_share[0] - 1e-6))
    assert not all_keep(Promise(k=1, min_spread={"age": (found.min_spread[0] or 0.0) + 1e-6}))
    assert not all_keep(Promise(k=1, entropy_l=found.entropy_l[0] + 1e-6))
    assert found.t[0] == 0 or not all_keep(Promise(k=1, t=found.t[0] - 1e-6))


@given(partitions())
def test_every_column_is_measured_as_by_hand(made: tuple[Records, Int32Array]) -> None:
    table, class_of = made
    found = measure(table, SCHEMA, class_of)
    classes = members(class_of)
    if not classes:
        return
    for j, attribute in enumerate(SCHEMA.qis):
        real = [{int(table.qi[i, j]) for i in of} - {attribute.missing} for of in classes]
        assert found.d[j] == min(len(values) for values in real)
        places = [[float(attribute.position[v]) for v in values] for values in real]
        wide = min(max(p, default=0.0) - min(p, default=0.0) for p in places)
        assert found.min_spread[j] == (wide if attribute.numeric else None)
        assert found.max_share[j] == max(_modal(table, (j,), of) for of in classes)
    for s, source in enumerate(SCHEMA.sources):
        assert found.max_source_share[s] == max(_modal(table, source, of) for of in classes)


def _modal(table: Records, columns: tuple[int, ...], of: list[int]) -> float:
    had = {(tuple(table.qi[i, list(columns)].tolist()), int(table.person[i])) for i in of}
    most = max(Counter(value for value, _ in had).values())
    return most / len({int(table.person[i]) for i in of})


@given(partitions())
def test_losses_and_sizes_are_those_of_the_definitions(made: tuple[Records, Int32Array]) -> None:
    table, class_of = made
    found = measure(table, SCHEMA, class_of)
    classes = members(class_of)
    sizes = [len(of) for of in classes]
    n_out = table.n - sum(sizes)
    assert (found.n, found.n_suppressed, found.n_classes) == (table.n, n_out, len(classes))
    assert found.suppressed_share == n_out / table.n
    assert (found.size_min, found.size_max) == (min(sizes, default=0), max(sizes, default=0))
    assert found.size_median == (np.median(sizes) if sizes else 0)
    assert found.dm_published == sum(size**2 for size in sizes)
    assert found.dm == found.dm_published + n_out * table.n
    for cost in Cost:
        lost = sum(len(of) * naive.loss(table, SCHEMA, cost, of) for of in classes)
        assert found.gcp[cost] == pytest.approx((lost + 3 * n_out) / (3 * table.n))
        assert found.gcp_published[cost] == pytest.approx(lost / (3 * max(sum(sizes), 1)))
        assert found.gcp[cost] == pytest.approx(sum(found.ncp[cost]) / 3)


@pytest.mark.parametrize("cost", Cost)
def test_a_value_beside_none_costs_all_wherever_it_lies_and_none_beside_none_nothing(
    cost: Cost,
) -> None:
    age, work, _ = SCHEMA.qis
    table = Records(np.zeros((2, 3), np.int32), np.zeros((2, 1), np.int32), np.arange(2, dtype="i"))
    for j, attribute in enumerate((age, work)):
        for code in range(attribute.size):
            table.qi[:, j] = code, attribute.missing
            lost = measure(table, SCHEMA, np.zeros(2, np.int32)).ncp[cost][j]
            assert lost == (code != attribute.missing)


def test_a_person_who_repeats_a_value_has_it_once() -> None:
    table = Records(
        qi=np.array([[0, 0, 0], [0, 0, 0], [1, 1, 1]], np.int32),
        sensitive=np.array([[0], [0], [1]], np.int32),
        person=np.array([0, 0, 1], np.int32),
    )
    found = measure(table, SCHEMA, np.zeros(3, np.int32))
    assert (found.k, found.max_share, found.max_source_share) == (2, (0.5,) * 3, (0.5,) * 2)
    assert math.isclose(found.entropy_l[0], 2)


def test_a_gap_in_the_numbers_of_the_classes_is_refused() -> None:
    table = Records(np.zeros((2, 3), np.int32), np.zeros((2, 1), np.int32), np.arange(2, dtype="i"))
    with pytest.raises(ValueError, match="no records"):
        measure(table, SCHEMA, np.array([0, 2], np.int32))


def test_nothing_at_all_can_be_measured() -> None:
    nobody = Records(np.zeros((0, 3), np.int32), np.zeros((0, 1), np.int32), np.zeros(0, np.int32))
    found = measure(nobody, SCHEMA, np.zeros(0, np.int32))
    assert (found.n, found.k, found.gcp[Cost.SET], found.dm) == (0, 0, 0.0, 0)


@given(partitions(), st.sampled_from(Cost))
def test_a_summary_says_what_all_measures_say(made: tuple[Records, Int32Array], cost: Cost) -> None:
    said, found = measure_briefly(made[0], SCHEMA, made[1], cost), measure(made[0], SCHEMA, made[1])
    assert said == tuple(
        found.gcp_published[cost] if name == "gcp_published" else getattr(found, name)
        for name in said._fields
    )


@given(partitions())
def test_all_left_out_is_all_lost(made: tuple[Records, Int32Array]) -> None:
    table, _ = made
    found = measure(table, SCHEMA, np.full(table.n, SUPPRESSED, np.int32))
    assert all(gcp == 1 for gcp in found.gcp.values())
    assert found.dm == table.n**2


def test_an_attribute_of_one_value_has_nothing_to_lose() -> None:
    schema = Schema(qis=(numbers("one", 7),), sensitive=(), sources=((0,),))
    table = Records(np.zeros((2, 1), np.int32), np.zeros((2, 0), np.int32), np.arange(2, dtype="i"))
    found = measure(table, schema, np.zeros(2, np.int32))
    assert (found.gcp[Cost.RANGE], found.d, found.min_spread, found.l) == (0.0, (1,), (0.0,), ())
