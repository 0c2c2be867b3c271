"""Readings of groups against naive twins, and what they must never reveal."""

import math
import statistics
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.readings import (
    ReadingsState,
    Summaries,
    summarize,
)
from anonymizer.domain.arrays import FloatArray, IntArray, starts_of
from anonymizer.domain.readings import ReadingAttribute

ALL = ("count", "mean", "min", "max", "p10", "p25", "p50", "p75")
SPEED = ReadingAttribute("speed_mps", 0.0, 50.0, statistics=ALL)
BATTERY = ReadingAttribute(
    "battery_percent", 0.0, 100.0, step=5.0, statistics=ALL, per_pseudonym=True
)

Row = tuple[int, int, float, float]
"""Slot, attribute, value, unix seconds."""

rows = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 1),
        st.sampled_from([-1e300, -1.0, 0.0, 2.4, 2.5, 37.5, 50.0, 51.0, 1e300]),
        st.integers(0, 4).map(float),
    ),
    max_size=12,
)
values = st.sampled_from([math.nan, 0.0, 1.0, 2.0, 2.0, 7.0, 49.0, 50.0]) | st.floats(0, 50)
groups = st.lists(st.tuples(st.lists(values, max_size=9), st.integers(2, 5)), max_size=5)


def advanced(state: ReadingsState, batch: list[Row]) -> IntArray:
    slot, attribute, value, ts = zip(*batch, strict=True) if batch else ((), (), (), ())
    return state.advance(
        np.array(slot, np.int32),
        np.array(attribute, np.int64),
        np.array(value, np.float64),
        np.array(ts, np.float64),
    )


def slots(*chosen: int) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    return np.array(chosen, np.int32)


def naive_rounded(x: float, attribute: ReadingAttribute) -> float:
    if attribute.step is None or math.isnan(x):
        return x
    n = math.floor((x - attribute.lo) / attribute.step + 0.5)
    return min(attribute.hi, attribute.lo + n * attribute.step)


def naive_current(attribute: int, slot: int, batch: list[Row], since: float) -> float:
    declared = (SPEED, BATTERY)[attribute]
    mine = [
        (ts, naive_rounded(min(max(x, declared.lo), declared.hi), declared))
        for s, a, x, ts in batch
        if (s, a) == (slot, attribute)
    ]
    return max(mine)[1] if mine and max(mine)[0] >= since else math.nan


@given(rows, st.randoms(use_true_random=False), st.integers(0, 12), st.integers(0, 6))
def test_the_newest_value_counts_whatever_the_order_and_the_batching(
    drawn: list[Row], rnd: Random, cut: int, now: int
) -> None:
    shuffled = list(drawn)
    rnd.shuffle(shuffled)
    state = ReadingsState([SPEED, BATTERY])
    n_clamped = advanced(state, shuffled[:cut]) + advanced(state, shuffled[cut:])
    current = state.current(slots(0, 1, 2, 3, 2), since=now - 2.0)
    expected = [[naive_current(a, s, drawn, now - 2.0) for a in range(2)] for s in (0, 1, 2, 3, 2)]
    np.testing.assert_array_equal(current, expected)
    assert n_clamped.tolist() == [
        sum(row[1] == a and not 0 <= row[2] <= hi for row in drawn)
        for a, hi in enumerate((50.0, 100.0))
    ]


def test_the_next_device_in_a_freed_slot_inherits_nothing() -> None:
    state = ReadingsState([SPEED])
    advanced(state, [(0, 0, 7.0, 100.0), (1, 0, 8.0, 100.0)])
    state.forget(slots(0, 1_000_000))
    assert state.current(slots(0, 1), since=41.0)[:, 0].tolist() == [
        pytest.approx(math.nan, nan_ok=True),
        8.0,
    ]
    advanced(state, [(0, 0, 3.0, 50.0)])  # older than the last reading of the previous device
    assert state.current(slots(0), since=41.0)[0, 0] == 3.0


def test_a_slot_without_readings_has_no_value() -> None:
    state = ReadingsState([SPEED])
    assert np.isnan(state.current(slots(5), since=-60.0)).all()
    assert state.index_of == {"speed_mps": 0}


def test_rounding_never_leaves_the_declared_range() -> None:
    uneven = ReadingAttribute("x", -1.0, 50.0, step=4.0, statistics=("mean",))
    state = ReadingsState([uneven])
    advanced(state, [(0, 0, 50.0, 0.0), (1, 0, 49.5, 0.0), (2, 0, -1.0, 0.0), (3, 0, 1.5, 0.0)])
    current = state.current(slots(0, 1, 2, 3), since=-60.0)
    assert current[:, 0].tolist() == [50.0, 50.0, -1.0, 3.0]
    (published,) = summarized([([50.0, 50.0], 2)], uneven)[0].published()
    assert published == {"x": {"mean": 50.0}}


def naive_percentile(known: list[float], percent: int) -> float:
    """Interpolate in exact fractions; NaN for a percentile that depends on an extreme value."""
    at = Fraction(percent, 100) * (len(known) - 1)
    below, above = math.floor(at), math.ceil(at)
    if below == 0 or above == len(known) - 1:
        return math.nan
    return known[below] + (known[above] - known[below]) * float(at - below)


def summarized(
    drawn: list[tuple[list[float], int]], *attributes: ReadingAttribute
) -> tuple[Summaries, FloatArray, IntArray]:
    """Summarize groups in which every attribute has the same values."""
    flat = np.array([x for members, _ in drawn for x in members], np.float64)
    value = np.repeat(flat[:, None], len(attributes), axis=1)
    first_member_of = starts_of(np.array([len(members) for members, _ in drawn], np.int64))
    k = np.array([k for _, k in drawn], np.int32)
    return summarize(value, first_member_of, k, attributes=attributes), value, first_member_of


@given(groups)
def test_a_summary_equals_its_naive_twin(drawn: list[tuple[list[float], int]]) -> None:
    coarse = ReadingAttribute("coarse", 0.0, 50.0, step=4.0, statistics=ALL)
    summaries, _, _ = summarized(drawn, SPEED, coarse)
    published = summaries.published()
    for g, (members, k) in enumerate(drawn):
        known = sorted(x for x in members if not math.isnan(x))
        if len(known) < k:
            assert published[g] == {}
            continue
        exact = {
            "count": len(known),
            "mean": statistics.fmean(known),
            "min": known[0],
            "max": known[-1],
        } | {f"p{p}": naive_percentile(known, p) for p in (10, 25, 50, 75)}
        stated = {s: x for s, x in exact.items() if not math.isnan(x)}
        assert published[g]["speed_mps"] == pytest.approx(stated, rel=1e-9, abs=1e-9)
        coarse_row = published[g]["coarse"]
        assert coarse_row.keys() == stated.keys()
        for s in stated.keys() - {"count", "min", "max"}:
            # A value halfway between two steps may be rounded either way.
            assert abs(coarse_row[s] - stated[s]) <= 2.0 + 1e-9
            assert coarse_row[s] % 4.0 == 0 or coarse_row[s] == 50.0
    few = [sum(not math.isnan(x) for x in members) for members, _ in drawn]
    n_left_out = sum(0 < n < k for n, (_, k) in zip(few, drawn, strict=True))
    assert summaries.n_left_out.tolist() == [n_left_out, n_left_out]


@given(groups, st.randoms(use_true_random=False))
def test_the_order_of_members_changes_no_statistic(
    drawn: list[tuple[list[float], int]], rnd: Random
) -> None:
    shuffled = [(list(members), k) for members, k in drawn]
    for members, _ in shuffled:
        rnd.shuffle(members)
    assert summarized(drawn, SPEED)[0].published() == summarized(shuffled, SPEED)[0].published()


@given(groups)
def test_statistics_lie_in_order_between_the_extremes(
    drawn: list[tuple[list[float], int]],
) -> None:
    for attribute in (SPEED, BATTERY):
        accepted = [([naive_rounded(x, attribute) for x in members], k) for members, k in drawn]
        for row in filter(None, summarized(accepted, attribute)[0].published()):
            statistics_of = row[attribute.name]
            names = ("min", "p10", "p25", "p50", "p75", "max")
            ordered = [statistics_of[s] for s in names if s in statistics_of]
            assert ordered == sorted(ordered)
            assert statistics_of["min"] <= statistics_of["mean"] <= statistics_of["max"]


def test_groups_with_fewer_than_k_values_publish_nothing_and_are_counted() -> None:
    nan = math.nan
    summaries, _, _ = summarized(
        [([3, 4, nan], 3), ([nan, nan], 2), ([1, 2, 3], 3), ([], 2)], SPEED
    )
    assert [set(row) for row in summaries.published()] == [set(), set(), {"speed_mps"}, set()]
    assert summaries.n_left_out.tolist() == [1]


@pytest.mark.parametrize("n", range(2, 12))
def test_no_quantile_depends_on_the_smallest_or_the_largest_value(n: int) -> None:
    shares = tuple(f"p{p}" for p in range(1, 100))
    inner = ReadingAttribute("x", -1000.0, 1000.0, statistics=shares)
    members = [500.0] * n
    calm = summarized([([0.0, *members[2:], 900.0], 2)], inner)[0].published()
    wild = summarized([([-1000.0, *members[2:], 1000.0], 2)], inner)[0].published()
    assert calm == wild
    assert ("p50" in calm[0]["x"]) == (n >= 3)
    assert ("p25" in calm[0]["x"]) == ("p75" in calm[0]["x"]) == (n >= 5)


def test_extremes_and_individual_values_are_published_only_on_request() -> None:
    plain = ReadingAttribute("plain", 0.0, 50.0)
    summaries, value, first_member_of = summarized([([1.0, 2.0, 3.0, 4.0, 5.0], 2)], plain)
    assert summaries.published() == [
        {"plain": {"count": 5, "mean": 3.0, "p25": 2.0, "p50": 3.0, "p75": 4.0}}
    ]
    assert summaries.own_values(value, first_member_of) == {}


def test_individual_values_are_published_only_in_groups_with_published_statistics() -> None:
    nan = math.nan
    summaries, value, first_member_of = summarized(
        [([1 / 3, nan, 5.0], 2), ([7.0, nan], 2), ([8.0, 9.0], 2)], SPEED, BATTERY
    )
    assert summaries.own_values(value, first_member_of) == {
        "battery_percent": [0.3333333333, None, 5.0, None, None, 8.0, 9.0]
    }


def test_a_difference_of_two_releases_reveals_a_value_only_as_precisely_as_the_step() -> None:
    before = [3.0, 11.0, 17.0, 20.0]
    coarse = ReadingAttribute("x", 0.0, 100.0, step=10.0, statistics=("count", "mean"))
    exact = ReadingAttribute("x", 0.0, 100.0, statistics=("count", "mean"))

    def sums(attribute: ReadingAttribute, members: list[float]) -> float:
        (published,) = summarized([(members, 2)], attribute)[0].published()
        return published["x"]["mean"] * published["x"]["count"]

    assert sums(exact, [*before, 37.0]) - sums(exact, before) == pytest.approx(37.0)
    rounded = {sums(coarse, [*before, x]) - sums(coarse, before) for x in range(26, 50)}
    assert len(rounded) == 1


@pytest.mark.parametrize(
    ("lo", "hi", "decimals"), [(0, 100, 10), (-5, 1e9, 3), (0, 1e-6, 18), (0, 1e12, 0)]
)
def test_decimals_keep_twelve_digits_of_the_range(lo: float, hi: float, decimals: int) -> None:
    assert ReadingAttribute("x", lo, hi).decimals == decimals


def test_without_declared_readings_nothing_is_published() -> None:
    state = ReadingsState([])
    advanced(state, [])
    value = state.current(slots(0, 1, 2), since=-60.0)
    summaries = summarize(value, np.array([0, 3]), np.array([2], np.int32), attributes=())
    assert summaries.published() == [{}]
    assert summaries.own_values(value, np.array([0, 3])) == {}
