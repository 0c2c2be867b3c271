from decimal import Decimal
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.attributes import ambiguous, numbers
from anonymizer.algorithms.records.interval_hierarchy import branches_of, by_width

VALUES = st.lists(st.integers(-30, 30), min_size=1, max_size=25, unique=True).map(sorted)


def test_intervals_of_a_width_begin_at_its_multiples_and_are_joined_level_by_level() -> None:
    values = [Decimal(x) for x in range(18, 32)]
    interval = by_width(values, Decimal(5))
    branches = branches_of([str(x) for x in values], interval, n_levels=3, joined=2)
    assert branches[0] == ("18", "[18-19]", "*")
    assert branches[2] == ("20", "[20-24]", "[20-29]", "[20-31]", "*")
    assert branches[-1] == ("31", "[30-31]", "[20-31]", "*")


@given(VALUES, st.integers(1, 12), st.integers(1, 4), st.integers(2, 3))
def test_every_node_holds_its_label_and_the_product_reads_every_hierarchy(
    values: list[int], n: int, n_levels: int, joined: int
) -> None:
    interval = by_width([Decimal(x) for x in values], Decimal(n))
    assert all(a <= b for a, b in pairwise(interval))
    leaves = [str(x) for x in values]
    branches = branches_of(leaves, interval, n_levels=n_levels, joined=joined)
    assert [branch[0] for branch in branches] == leaves
    assert {branch[-1] for branch in branches} == {"*"}
    assert ambiguous(branches) is None
    for label in {label for branch in branches for label in branch[1:-1]}:
        own = [int(branch[0]) for branch in branches if label in branch]
        assert label == f"[{own[0]}-{own[-1]}]"
        assert [x for x in values if own[0] <= x <= own[-1]] == own
    attribute = numbers("x", np.array(values, float), branches=branches)
    assert attribute.hierarchy is not None
