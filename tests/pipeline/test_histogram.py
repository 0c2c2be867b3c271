import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.accounting import BatchHistogram

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


@given(st.lists(st.sampled_from(EDGES), min_size=1, max_size=30), st.sampled_from([0.1, 0.5, 1.0]))
def test_a_quantile_is_that_of_numpy_where_values_are_edges(batch: list[float], q: float) -> None:
    histogram = BatchHistogram(EDGES)
    histogram.observe(batch)
    assert histogram.quantile(q) == np.quantile(batch, q, method="inverted_cdf")


def test_there_is_no_quantile_of_nothing_and_none_beyond_the_last_edge() -> None:
    histogram = BatchHistogram(EDGES)
    assert math.isnan(histogram.quantile(0.5))
    histogram.observe([5.0, 1000.0])
    assert histogram.quantile(0.5) == 10.0
    assert histogram.quantile(1.0) == math.inf
