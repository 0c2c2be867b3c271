"""A worker says that its stages stand still because of the times of what comes in."""

import pytest

from anonymizer.cluster.input_times import InputTimes
from anonymizer.cluster.positions.raw_batches import Raw
from anonymizer.cluster.records.frontier import Frontier
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from tests.cluster.positions.cluster import START, Cluster
from tests.cluster.positions.test_clock_jumps import world_of

TEN_YEARS_S = 3_652 * 86_400


@pytest.mark.parametrize("ahead_s", [0, 3, 10, TEN_YEARS_S])
def test_readiness_names_for_how_long_a_clock_that_was_ahead_holds_positions_back(
    ahead_s: int,
) -> None:
    cluster, times = Cluster(world_of("readings")), InputTimes(longest_s=5.0)
    for tick, shift_s in enumerate((0, 0, ahead_s, 0)):
        now = START + tick + shift_s
        for bridge in range(2):
            cluster._state(bridge, now, [], at_s=float(now + 1))
        cluster.read_all()
        times.look(cluster.sources, [], owned={("source", 0)})
        assert bool(times.problems) == (tick == 3 and ahead_s > 5)
    if ahead_s > 5:
        [problem] = times.problems
        assert f"for {ahead_s - 1} s" in problem


def test_windows_of_records_wait_as_long_as_a_clock_was_ahead_and_no_longer() -> None:
    frontier = Frontier(wait_s=5.0)
    behind = []
    for tick, at_s in ((10, 10.0), (400, 400.0), (11, 401.0), (399, 402.0), (401, 403.0)):
        moved = frontier.passes(Raw("bridge", tick, False, []), now=at_s)
        behind.append((frontier.n_behind, moved))
    # What the clock said before it was corrected is forgotten only with a bridge that is gone.
    assert behind[:4] == [(0, True), (0, True), (389, False), (1, False)]
    assert behind[4] == (0, True)


def test_a_stream_of_which_only_late_parts_come_is_named_but_not_because_a_stage_moved() -> None:
    now, ledger = 0.0, Ledger()
    times = InputTimes(longest_s=5.0, clock=lambda: now)
    for now in range(100):
        ledger.receive(1)
        ledger.settle(Outcome.LATE, 1)
        owned = {("stream", 0)} if now < 50 else {("stream", 1)}
        times.look([], [("fleet", ledger, 0)], owned=owned)
        assert bool(times.problems) == (30 <= now < 50 or now >= 80), now
    assert times.problems[0].startswith("stream fleet: nothing is published")
