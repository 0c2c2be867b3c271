import asyncio

import pytest

from benchmarks.durable import Backlog, drain

N = 1_000_000


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_backlog_of_a_million_arrives_over_one_connection_and_nothing_twice() -> None:
    drained = asyncio.run(drain(Backlog(N)))
    outcomes = drained.outcomes()
    print(outcomes, drained)  # noqa: T201
    assert drained.n_connections == 1
    assert "duplicate/" not in outcomes
    assert sum(outcomes.values()) == N
    assert drained.n_classes > 0
    assert drained.n_classes_twice == 0
