"""The model of a cluster finds costs, shares the processor, and predicts runs it has not seen."""

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cluster import Climb, Result, State
from benchmarks.cluster_model import PROGRAMS, Costs, Layout, simulate
from benchmarks.gateways import Scrape
from benchmarks.members import why_not
from benchmarks.plan import Stored, compared, costs_of, delays, sized, with_hop

COSTS = Costs(
    of={
        "bridge": np.array([0.02, 3e-6]),
        "workers": np.array([0.01, 1e-3, 2e-4, 3e-6]),
        "kafka": np.array([0.02, 5e-3, 1e-3, 2e-6]),
    },
    given_s={"broker": 7e-6},
    share_of_sources=0.4,
    hop_s=0.01,
)
LAYOUT = Layout(10_000.0, 4, 8, 2)


def row(layout: Layout) -> dict[str, float]:
    """A run as the benchmark states it, if a position costs what `COSTS` says."""
    return {
        "sent/s": layout.rate_per_s,
        "sources": layout.n_sources,
        "districts": layout.n_districts,
        "workers": layout.n_workers,
        **{f"{program}, µs": COSTS.us(program, layout) for program in PROGRAMS},
        "broker, µs": 7.0,
    }


def test_costs_that_explain_all_runs_are_found() -> None:
    runs = [
        Layout(rate, sources, districts, n_workers)
        for sources, districts in ((1, 1), (8, 1), (4, 8))
        for n_workers in (1, 2)
        for rate in (1_000.0, 20_000.0)
    ]
    found = Costs.fitted(list(map(row, runs)), share_of_sources=0.4, given=["broker"])
    for layout in (LAYOUT, LAYOUT._replace(n_workers=4, rate_per_s=50_000.0)):
        assert found.us("workers", layout) == pytest.approx(COSTS.us("workers", layout))
        assert found.us("bridge", layout) == pytest.approx(COSTS.us("bridge", layout))
    assert found.all_cores(runs[-1]) == pytest.approx(COSTS.all_cores(runs[-1]))


def test_a_tick_needs_three_hops_and_work_that_outgrows_the_cores_waits() -> None:
    quiet = simulate(COSTS, LAYOUT, n_cores=2.0, n_ticks=10)
    assert len(quiet.delay_s) == pytest.approx(6 * LAYOUT.n_districts, abs=LAYOUT.n_districts)
    # Three hops, and at most two waits for a transaction to end.
    assert 3 * COSTS.hop_s <= quiet.delay_s.min() <= quiet.delay_s.max() < 3 * COSTS.hop_s + 0.5
    assert quiet.backlog_s < 0.1
    most = LAYOUT._replace(rate_per_s=2.0 / COSTS.all_cores(LAYOUT) * LAYOUT.rate_per_s)
    twice = most._replace(rate_per_s=2 * most.rate_per_s)
    assert simulate(COSTS, twice, n_cores=2.0, n_ticks=10).backlog_s > 2.0
    slow = simulate(COSTS, LAYOUT, n_cores=0.5, n_ticks=10)
    assert np.median(slow.delay_s) > np.median(quiet.delay_s)


def test_a_plan_has_room_for_its_devices() -> None:
    small, large = (sized(COSTS, n) for n in (10_000, 500_000))
    assert small.layout.n_sources == 4
    assert small.layout.n_districts == 8
    for each in (small, large):
        assert each.cores["workers"] <= 0.6 * each.layout.n_workers
        assert each.cores["bridge"] <= 0.6 * each.layout.n_bridges
        assert 3 * COSTS.hop_s < each.p99_s < 2.0
    assert large.layout.n_workers > small.layout.n_workers


@pytest.mark.soak
def test_the_model_predicts_four_workers_within_a_fifth_and_how_long_two_and_four_take() -> None:
    stored = Stored.read()
    costs = with_hop(stored, costs_of(stored))
    found = [*compared(stored, costs), *delays(stored, costs)]
    for each in found:
        print(each, f"{each.error:+.0%}")  # noqa: T201
    for figure in ("workers, µs", "kafka, µs", "everything, µs"):
        assert {each.n_workers for each in found if each.what == figure} == {4}
    assert {each.n_workers for each in found if each.what == "p50, ms"} == {2, 4}
    assert max(abs(each.error) for each in found) <= 0.2


def result(delay_s: list[float], **counts: float) -> Result:
    names = {"anonymizer_received_total{}": 1000.0, **counts}
    used = dict.fromkeys(("bridge", "workers"), 10.0)
    before = State(0.0, dict.fromkeys(used, 0.0), 0.0, Scrape({}), 0)
    after = State(10.0, used, 10.0, Scrape(names), 0)
    return Result(Climb(1, 1, [100]), 100, 100.0, 0, before, after, delay_s, {})


def test_a_rate_is_kept_up_with_if_nothing_is_late_and_the_delay_does_not_grow() -> None:
    steady = [0.4] * 30
    assert result(steady).kept_up
    assert result(steady).us("workers") == pytest.approx(10_000)
    assert not result([i * 0.1 for i in range(30)]).kept_up
    assert not result([4.0] * 30).kept_up
    assert not result([]).kept_up
    assert math.isinf(result([]).quantile_s(0.5))
    late = 'anonymizer_worker_events_total{event="late_batches",stage="lane"}'
    assert not result(steady, **{late: 1.0}).kept_up


def test_it_is_said_in_a_line_that_there_is_no_kafka(tmp_path: Path) -> None:
    found = why_not(tmp_path / "kafka")
    assert found is not None
    assert "\n" not in found
