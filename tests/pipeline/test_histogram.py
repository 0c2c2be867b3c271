import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.histograms import BatchHistogram

EDGES = (1.0, 2.5, 4.0, 10.0)
values = st.sampled_from([*EDGES, 0.0, -1.0, 11.0]) | st.floats(-20, 20)


@given(st.lists(st.lists(values, max_size=20), max_size=5))
def test_counts_are_those_of_numpy_with_inclusive_upper_edges(batches: list[list[float]]) -> None:
    histogram = BatchHistogram(EDGES)
    for batch in batches:
        histogram.observe(batch)
    every = np.array([value for batch in batches for value in batch])
    expected = [int((every <= edge).sum()) for edge in (*EDGES, math.inf)]
    assert histogram.cumulative() == expected
    assert histogram.n == len(every)
    assert histogram.total == pytest.approx(every.sum(), abs=1e-9)


@given(
    st.lists(st.tuples(st.lists(values, max_size=3), st.booleans()), max_size=100),
    st.integers(0, 600),
)
def test_what_is_counted_does_not_depend_on_when_somebody_looks(
    batches: list[tuple[list[float], bool]], n_many: int
) -> None:
    watched, left_alone = BatchHistogram(EDGES), BatchHistogram(EDGES)
    for batch, looks in [*batches, ([0.5] * n_many, False)]:
        again = np.array(batch, np.float64)
        for histogram in (watched, left_alone):
            histogram.observe(again)
        again += 1.0  # whoever measures may use its array again
        if looks:
            watched.cumulative()
    assert watched.cumulative() == left_alone.cumulative()
    assert watched.total == pytest.approx(left_alone.total, abs=1e-9)


def test_nothing_is_lost_or_counted_twice_while_another_thread_looks() -> None:
    histogram, n = BatchHistogram(EDGES), 20_000
    with ThreadPoolExecutor(1) as pool:
        seen = pool.submit(lambda: [histogram.n for _ in range(500)])
        for _ in range(n):
            histogram.observe(1.0)
    assert seen.result() == sorted(seen.result())
    assert (histogram.n, histogram.total) == (n, n)


@given(st.lists(st.sampled_from(EDGES), min_size=1, max_size=30), st.sampled_from([0.1, 0.5, 1.0]))
def test_a_quantile_is_that_of_numpy_where_values_are_edges(batch: list[float], q: float) -> None:
    histogram = BatchHistogram(EDGES)
    histogram.observe(batch)
    assert histogram.quantile(q) == np.quantile(batch, q, method="inverted_cdf")


def test_an_empty_histogram_has_no_quantile_and_no_mean() -> None:
    histogram = BatchHistogram(EDGES)
    assert math.isnan(histogram.quantile(0.5))
    assert math.isnan(histogram.mean)


@given(
    before=st.lists(values),
    after=st.lists(values, min_size=1),
    q=st.sampled_from([0.0, 0.01, 0.5, 0.9, 0.99, 1.0]),
)
def test_quantiles_of_a_span_are_those_of_the_values_since_its_start(
    before: list[float], after: list[float], q: float
) -> None:
    for interpolate in (False, True):
        histogram = BatchHistogram(EDGES, interpolate=interpolate)
        histogram.observe(before)
        earlier = histogram.copy()
        histogram.observe(after)
        span = histogram.since(earlier)
        assert span.n == len(after)
        assert span.mean == pytest.approx(np.mean(after), abs=1e-9)
        true = sorted(after)[max(0, math.ceil(q * len(after)) - 1)]
        edge = min([edge for edge in EDGES if edge >= true], default=EDGES[-1])
        if interpolate:
            below = max([e for e in EDGES if e < edge], default=-math.inf)
            assert below <= span.quantile(q) <= edge + 1e-9
        else:
            assert span.quantile(q) == edge
        assert earlier.n == len(before), "a copy does not change"


def test_an_interpolated_quantile_divides_the_gap_between_edges_by_factors() -> None:
    histogram = BatchHistogram((1.0, 4.0, 16.0), interpolate=True)
    histogram.observe([1.0, 2.0, 3.0])
    assert [histogram.quantile(q) for q in (1 / 3, 2 / 3, 1.0)] == pytest.approx([1.0, 2.0, 4.0])
