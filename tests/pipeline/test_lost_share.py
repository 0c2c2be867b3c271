"""A limit that costs a share of an input is named once, until it no longer does."""

import pytest

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.lost_share import LIKELY, LIMITS, LostShare
from anonymizer.pipeline.misfit import CAUSES

OLD, FAR = Outcome.INVALID__ANCIENT_TIME, Outcome.SUPPRESSED__IMPLAUSIBLE_JUMP


def test_a_share_that_is_lost_is_reported_once_until_it_is_over() -> None:
    watch = LostShare()
    assert watch.see({OLD: 7}, n_usable=3, at_s=0.0) == {}
    assert watch.see({OLD: 100}, n_usable=900, at_s=30.0) == {}
    assert watch.see({OLD: 107}, n_usable=903, at_s=60.0) == {OLD: 0.1}
    assert watch.see({OLD: 207}, n_usable=1803, at_s=120.0) == {}
    assert watch.see({OLD: 208}, n_usable=2802, at_s=180.0) == {}
    assert watch.see({OLD: 308, FAR: 1}, n_usable=3701, at_s=240.0) == {OLD: 0.1}


@pytest.mark.parametrize("outcome", LIKELY)
def test_half_of_an_input_that_is_refused_is_said_whatever_the_reason(outcome: Outcome) -> None:
    watch = LostShare()
    watch.see({}, n_usable=0, at_s=0.0)
    assert not watch.notes
    assert watch.see({outcome: 3000}, n_usable=3000, at_s=60.0) == {outcome: 0.5}
    [note] = watch.notes
    assert note.endswith(LIKELY[outcome])
    watch.see({outcome: 3100}, n_usable=8900, at_s=120.0)
    assert not watch.notes


def test_what_is_left_out_on_purpose_is_no_share_that_is_lost() -> None:
    assert {Outcome.INVALID__NOT_SELECTED, Outcome.SUPPRESSED__OFF_GRAPH} == set(CAUSES) - set(
        LIKELY
    )


def test_little_input_is_looked_at_for_longer() -> None:
    watch = LostShare()
    watch.see({}, n_usable=0, at_s=0.0)
    assert watch.see({FAR: 9}, n_usable=9, at_s=100.0) == {}
    assert watch.see({FAR: 50}, n_usable=50, at_s=900.0) == {FAR: 0.5}


def test_each_sentence_says_what_to_look_at() -> None:
    assert all("input" in text or "pass on" in text for text in LIMITS.values())
