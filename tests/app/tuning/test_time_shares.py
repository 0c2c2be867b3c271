"""The time budget of a search, divided among its configurations."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.app.tuning.time_shares import RowTime, TimeShares


def test_time_that_early_configurations_do_not_use_goes_to_later_ones() -> None:
    now = 0.0
    shares = TimeShares(20.0, n_waiting=4, n_processes=2, clock=lambda: now)
    assert [shares.begin(i, 1, rest_s=0.0).end_s for i in (0, 1)] == [10.0, 10.0]
    now = 2.0  # row 0 ends early: its process has 18 s, the other one 10 s, for two configurations
    shares.end(0)
    assert shares.begin(2, 1, rest_s=0.0).end_s == 2.0 + (18.0 + 10.0) / 2
    now = 10.0
    shares.end(1)
    assert shares.begin(3, 1, rest_s=0.0).end_s == 20.0


@given(
    st.lists(st.tuples(st.integers(1, 5), st.floats(0, 9)), min_size=1, max_size=12),
    st.floats(0.1, 50),
)
def test_no_row_has_more_time_than_there_is_and_all_of_it_can_be_used(
    rows: list[tuple[int, float]], budget_s: float
) -> None:
    now = 0.0
    n = sum(each for each, _ in rows)
    shares = TimeShares(budget_s, n_waiting=n, n_processes=1, clock=lambda: now)
    for i, (n_configurations, took_s) in enumerate(rows):
        row_time = shares.begin(i, n_configurations, rest_s=0.0)
        assert min(now, budget_s) <= row_time.end_s <= budget_s
        assert row_time.begins() == (now < budget_s)
        now += took_s
        shares.end(i)
    now = 0.0
    shares = TimeShares(budget_s, n_waiting=n, n_processes=1, clock=lambda: now)
    for i, (n_configurations, _) in enumerate(rows):
        now = shares.begin(i, n_configurations, rest_s=0.0).end_s
        shares.end(i)
    assert now == pytest.approx(budget_s)


def test_a_search_has_its_share_without_the_time_that_the_rest_takes() -> None:
    now = 0.0
    row_time = RowTime(20.0, 10.0, 1.0, lambda: now)
    budget = row_time.search_budget(20.0, n_configurations=2, n_searches=4)
    now = 1.0
    assert budget() == 0.5  # of (10 - 2 * 1) / 4 s
    assert row_time.search_budget(0.5, n_configurations=1, n_searches=1)() == 1.0
    now = 9.5
    assert row_time.search_budget(20.0, n_configurations=1, n_searches=1)() == 0.0
    assert RowTime(clock=lambda: now).search_budget(inf, n_configurations=1, n_searches=1)() == 1.0


def test_nothing_begins_that_would_end_after_the_deadline_by_what_others_took() -> None:
    now = 0.0
    row = RowTime(deadline_s=150.0, clock=lambda: now)
    assert row.begins()  # nothing is known yet
    now = 60.0  # a loaded machine
    assert row.begins()
    now = 120.0
    assert not row.begins()  # it would end at 180
    known = RowTime(deadline_s=150.0, rest_s=60.0, clock=lambda: now)
    assert not known.begins()  # nor in another row


def test_time_spent_searching_is_none_that_the_next_one_needs() -> None:
    now = 0.0
    row = RowTime(deadline_s=100.0, clock=lambda: now)
    assert row.begins()
    now, row.searched_s = 60.0, 55.0
    assert row.begins()
