from collections import Counter
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.attributes import ambiguous, numbers
from anonymizer.algorithms.records.interval_hierarchy import (
    branches_of,
    by_number,
    by_quantiles,
    by_width,
)

VALUES = st.lists(st.integers(-30, 30), min_size=1, max_size=25, unique=True).map(sorted)


def test_intervals_of_a_width_begin_at_its_multiples_and_are_joined_level_by_level() -> None:
    values = [Decimal(x) for x in range(18, 32)]
    interval = by_width(values, Decimal(5))
    branches = branches_of([str(x) for x in values], interval, n_levels=3, joined=2)
    assert branches[0] == ("18", "[18-19]", "*")
    assert branches[2] == ("20", "[20-24]", "[20-29]", "[20-31]", "*")
    assert branches[-1] == ("31", "[30-31]", "[20-31]", "*")


@given(VALUES, st.integers(1, 12), st.integers(1, 4), st.integers(2, 3), st.integers(0, 2))
def test_every_node_holds_its_label_and_the_product_reads_every_hierarchy(
    values: list[int], n: int, n_levels: int, joined: int, how: int
) -> None:
    decimals = [Decimal(x) for x in values]
    ways = [
        by_width(decimals, Decimal(n)),
        by_number(decimals, n),
        by_quantiles([1] * len(values), n),
    ]
    assert all(a <= b for a, b in pairwise(ways[how]))
    leaves = [str(x) for x in values]
    branches = branches_of(leaves, ways[how], n_levels=n_levels, joined=joined)
    assert [branch[0] for branch in branches] == leaves
    assert {branch[-1] for branch in branches} == {"*"}
    assert ambiguous(branches) is None
    for label in {label for branch in branches for label in branch[1:-1]}:
        own = [int(branch[0]) for branch in branches if label in branch]
        assert label == f"[{own[0]}-{own[-1]}]"
        assert [x for x in values if own[0] <= x <= own[-1]] == own
    attribute = numbers("x", np.array(values, float), branches=branches)
    assert attribute.hierarchy is not None


@given(VALUES, st.integers(2, 8))
def test_n_intervals_are_at_most_n_and_equally_wide(values: list[int], n: int) -> None:
    found = by_number([Decimal(x) for x in values], n)
    span = values[-1] - values[0]
    for value, interval in zip(values, found, strict=True):
        assert 0 <= interval < n
        assert interval * span <= (value - values[0]) * n <= (interval + 1) * span


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(2, 6))
def test_a_quantile_holds_a_value_more_than_its_part_of_the_records_at_most(
    times: list[int], n: int
) -> None:
    found = by_quantiles(times, n)
    held: Counter[int] = Counter()
    for interval, each in zip(found, times, strict=True):
        assert 0 <= interval < n
        held[interval] += each
    assert all(each <= sum(times) / n + max(times) for each in held.values())


@pytest.mark.parametrize("times", [[0, 0], [5]])
def test_one_value_or_none_is_one_interval(times: list[int]) -> None:
    assert len(set(by_quantiles(times, 4))) == 1
    assert by_number([Decimal(3)], 4) == [0]
