"""Readiness names a stream that takes parts in and publishes nothing for their times."""

import pytest

from anonymizer.app.gateway.refused_parts import RefusedParts
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome.LATE, "are late"),
        (Outcome.INVALID__FUTURE_TIME, "in the future"),
        (Outcome.INVALID__ANCIENT_TIME, "before 1970"),
    ],
)
def test_a_stream_of_which_only_wrong_times_come_is_named_within_a_minute(
    outcome: Outcome, said: str
) -> None:
    now, ledger, quiet = 0.0, Ledger(), Ledger()
    refused = RefusedParts(lambda: now)
    ledgers = [("stream fleet", ledger, 0), ("stream quiet", quiet, 0)]
    for now in range(0, 100, 10):
        ledger.receive(5)
        if now < 30:
            ledger.settle(outcome, 4)  # one is kept
        else:
            ledger.settle(outcome, 5)
        found = refused.problems(ledgers)
        assert bool(found) == (now >= 50), now
    assert len(found) == 1
    assert found[0].startswith("stream fleet: nothing is published")
    assert said in found[0]
    ledger.receive(1)
    assert not refused.problems(ledgers)
