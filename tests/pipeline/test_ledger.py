from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import FINAL, Ledger
from tests.examples import many

finals = st.sampled_from(FINAL)


@many(3)
@given(st.lists(st.lists(finals) | finals))
def test_single_outcomes_and_batches_of_them_add_up_alike(
    steps: list[list[Outcome] | Outcome],
) -> None:
    ledger, expected = Ledger(), Counter[Outcome]()
    for step in steps:
        if isinstance(step, Outcome):
            ledger.settle(step)
            expected[step] += 1
        else:
            ledger.settle_all(np.array(step, np.uint8))
            expected.update(step)
    assert ledger.counts() == {outcome: expected[outcome] for outcome in FINAL}
    assert ledger.n_settled == expected.total()
    assert all(ledger.n(outcome) == expected[outcome] for outcome in FINAL)


def test_what_is_received_is_counted_before_it_is_settled() -> None:
    ledger = Ledger()
    ledger.receive(3)
    ledger.settle(Outcome.LATE, 2)
    assert (ledger.n_received, ledger.n_settled) == (3, 2)


def test_outcomes_and_reasons_are_told_apart_by_their_labels() -> None:
    labels = [outcome.label for outcome in FINAL]
    assert len(set(labels)) == len(labels)
    assert Outcome.PUBLISHED.label == ("published", "")
    assert Outcome.INVALID__NULL_ISLAND.label == ("invalid", "null_island")
    assert {outcome for outcome, _ in labels} == {
        "published",
        "late",
        "duplicate",
        "invalid",
        "suppressed",
    }
