"""A cap that keeps devices from being published is named in the log and in readiness."""

from anonymizer.app.gateway.input_troubles import TOO_LARGE, TooLargeWatch
from anonymizer.domain.outcomes import Outcome

LARGE, PUBLISHED = Outcome.SUPPRESSED__REGION_TOO_LARGE, Outcome.PUBLISHED


def test_a_tenth_of_the_positions_of_a_minute_is_a_problem_that_begins_once_and_ends() -> None:
    watch = TooLargeWatch(look_s=60)
    looks = [
        (0, 500, 0),  # of an earlier run
        (30, 590, 10),
        (60, 590, 10),
        (90, 700, 10),
        (120, 700, 30),
        (180, 701, 100),
    ]
    begun, named = [], []
    for at_s, n_published, n_large in looks:
        begun.append(watch.see({PUBLISHED: n_published, LARGE: n_large}, at_s=at_s))
        named.append(watch.problems)
    assert begun == [False, False, True, False, False, False]
    assert named == [[], [], *[[TOO_LARGE]] * 4]
    assert not watch.see({PUBLISHED: 900, LARGE: 101}, at_s=240)
    assert watch.problems == []


def test_silence_is_no_problem() -> None:
    watch = TooLargeWatch(look_s=60)
    for at_s in (0, 60, 120):
        assert not watch.see({LARGE: 50}, at_s=at_s)
        assert watch.problems == []
