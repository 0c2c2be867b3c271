"""Positions that are lost because a table or queue is full: once in the log, and in readiness."""

from anonymizer.app.gateway.input_troubles import NO_ROOM, TOO_SLOW, NoRoomWatch
from anonymizer.domain.outcomes import Outcome


def seen(lost: list[int]) -> tuple[list[int], list[bool]]:
    """Return the seconds at which the watch reports, and whether it is a problem at each."""
    watch, total, reported, problem = NoRoomWatch(), 0, [], []
    for at_s, n in enumerate(lost):
        total += n
        if watch.see({Outcome.SUPPRESSED__OVERLOAD: total}, n_late=0, at_s=float(at_s)):
            reported.append(at_s)
        problem.append(watch.problems == [NO_ROOM])
    return reported, problem


def test_a_loss_of_some_seconds_is_reported_once_until_there_was_room_for_longer() -> None:
    reported, problem = seen([0, *[7] * 60, *[0] * 40, *[7] * 10])
    assert reported == [4, 104]
    assert problem.index(True) == 4
    assert not problem[95]
    assert problem[-1]


def test_positions_that_are_lost_now_and_then_are_reported_as_well() -> None:
    assert seen([0, *[1, 0, 0, 0, 0] * 9])[0] == [6]


def test_a_burst_that_passes_is_in_the_counts_alone() -> None:
    assert seen([0, 900, 900, *[0] * 60]) == ([], [False] * 63)


def test_what_was_lost_before_it_began_to_look_is_not_reported() -> None:
    assert seen([900, *[0] * 9])[0] == []


def test_late_ticks_are_not_taken_for_a_full_table() -> None:
    watch = NoRoomWatch()
    for second in range(10):  # the machine is slow, then somebody fills a table
        watch.see({Outcome.SUPPRESSED__OVERLOAD: 7 * second}, n_late=second, at_s=float(second))
    assert watch.problems == [TOO_SLOW]
    watch.see({Outcome.SUPPRESSED__OVERLOAD: 100}, n_late=9, at_s=40.0)
    assert watch.problems == [NO_ROOM]
