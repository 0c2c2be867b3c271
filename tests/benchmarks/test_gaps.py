"""What an analyst notices when members of a cluster die or are restarted, on a real Kafka."""

import asyncio

import numpy as np
import pytest

from benchmarks.gaps import Blows, strike
from benchmarks.members import why_not

LONGEST_S = {
    # The bar for an upgrade: each member in turn, the next process standing by.
    "worker stopped, another process stood by": 5.0,
    "bridge stopped, started again": 5.0,
    "worker killed, another process stood by": 10.0,
    # The group waits six seconds for a dead worker, a tick five for a silent bridge.
    "worker killed, taken over by the group": 20.0,
    "bridge killed, started again": 15.0,
}


@pytest.mark.kafka
@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_members_are_replaced_within_seconds_and_nothing_acknowledged_is_lost() -> None:
    assert why_not() is None, why_not()
    found = asyncio.run(strike(Blows(20, 7)))
    for kind, gaps in found.gaps.items():
        # Where a part of the messages is held up, an analyst still hears the others.
        p99_s = float(np.quantile([max(gap) for gap in gaps], 0.99))
        print(kind, len(gaps), f"{p99_s:.1f} s")  # noqa: T201
        assert p99_s <= LONGEST_S[kind], kind
    assert found.n_received >= found.n_sent > 0
    assert found.imbalance == 0
