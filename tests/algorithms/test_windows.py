"""Event-time windows on drawn timelines: one column for each second, one line for each source."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.windows import NEVER, WindowRule, Windows
from anonymizer.domain.outcomes import Outcome
from tests.examples import many

FAR = 1e9
Part = tuple[int, float]


@dataclass
class Story:
    """Window and outcome of each part, and when each window closed."""

    placed: dict[tuple[str, float], tuple[int, Outcome]] = field(default_factory=dict)
    closed: list[tuple[float, int]] = field(default_factory=list)


def play(rule: WindowRule, timeline: str) -> Story:
    """Play a drawing: a digit or letter in column t is an event time (a = 10) sent at second t."""
    lines = [line.split(":", 1) for line in timeline.strip().splitlines()]
    names = [name.strip() for name, _ in lines]
    columns = [text.strip(" |") for _, text in lines]
    windows = Windows(rule, [-inf] * len(names), at_s=0.0)
    story = Story()
    for t in range(max(map(len, columns))):
        for source, text in enumerate(columns):
            if t < len(text) and text[t] not in "- ":
                ts = float(int(text[t], 36))
                story.placed[names[source], ts] = windows.place(source, ts, now=FAR, at_s=float(t))
        story.closed += [(float(t), w) for w in windows.due(at_s=float(t))]
    return story


def rule(*, length_s: float = 5.0, silence_s: float = inf, **more: float) -> WindowRule:
    return WindowRule(length_s=length_s, silence_s=silence_s, **more)  # type: ignore[arg-type]


def test_a_window_closes_when_its_only_source_reaches_its_end() -> None:
    story = play(rule(), "a:|0-2-4-6---a|")
    assert story.closed == [(6, 0), (10, 1)]
    assert {w for w, _ in story.placed.values()} == {0, 1, 2}


def test_lateness_keeps_a_window_open_for_parts_that_come_later() -> None:
    story = play(rule(lateness_s=2), "a:|0-4-6-3-7--2|")
    assert story.closed == [(8, 0)]
    assert story.placed["a", 3] == (0, Outcome.HELD)
    assert story.placed["a", 2] == (0, Outcome.LATE)


def test_the_slowest_active_source_decides_when_a_window_closes() -> None:
    story = play(
        rule(),
        """
        a:|0-2-4-6-8-a-c-|
        b:|1---------3--6|
        """,
    )
    assert story.closed == [(13, 0)]


def test_a_source_that_has_not_spoken_yet_holds_the_windows_open_until_it_is_silent() -> None:
    story = play(
        rule(silence_s=8),
        """
        a:|0-2-4-6-8-a--|
        b:|-------------|
        """,
    )
    assert story.closed == [(9, 0), (10, 1)]


def test_a_source_that_falls_silent_is_no_longer_waited_for_and_may_come_back() -> None:
    story = play(
        rule(silence_s=4),
        """
        a:|0-2-4-6-8-----a---f|
        b:|1-------------9-b--|
        """,
    )
    assert story.closed == [(6, 0), (13, 1)]
    assert story.placed["b", 11] == (2, Outcome.HELD)
    assert story.placed["b", 9][1] is Outcome.LATE


def test_when_traffic_stops_every_window_closes_by_the_clock() -> None:
    story = play(rule(silence_s=3), "a:|0-2-4-6-------|")
    assert story.closed == [(6, 0), (10, 1)]


def test_the_watermark_never_goes_back() -> None:
    story = play(
        rule(silence_s=3),
        """
        a:|0-------------|
        b:|8-8-8-8-1-----|
        """,
    )
    assert story.closed[:1] == [(4, 0)]
    assert story.placed["b", 1] == (0, Outcome.LATE)


def test_a_part_of_the_present_closes_the_oldest_window_if_too_many_are_open() -> None:
    story = play(
        rule(max_open=2),
        """
        a:|0--5--k--5-6|
        b:|1-----------|
        """,
    )
    assert story.closed == [(6, 0)]
    assert story.placed["a", 20] == (4, Outcome.HELD)
    assert story.placed["a", 6] == (1, Outcome.HELD)


def test_a_part_older_than_all_of_too_many_windows_is_refused() -> None:
    windows = Windows(rule(max_open=2), [-inf, -inf], at_s=0)
    for ts in (20, 30):
        assert windows.place(0, ts, now=FAR, at_s=0)[1] is Outcome.HELD
    assert windows.place(0, 10, now=FAR, at_s=0) == (2, Outcome.SUPPRESSED__TOO_MANY_WINDOWS)
    assert windows.place(0, 25, now=FAR, at_s=0) == (5, Outcome.HELD)
    assert windows.due(at_s=0) == [4]


def test_a_clock_that_is_ahead_closes_no_window_early() -> None:
    windows = Windows(rule(max_open=3, max_ahead_s=5), [-inf], at_s=0)
    assert windows.place(0, 4, now=4, at_s=0) == (0, Outcome.HELD)
    assert windows.place(0, 9, now=4, at_s=0) == (1, Outcome.HELD)
    assert windows.due(at_s=0) == []
    assert windows.place(0, 4.5, now=4.5, at_s=0) == (0, Outcome.HELD)
    full = Windows(rule(max_open=1, max_ahead_s=5), [-inf], at_s=0)
    assert full.place(0, 4, now=4, at_s=0)[1] is Outcome.HELD
    assert full.place(0, 9, now=4, at_s=0) == (1, Outcome.SUPPRESSED__TOO_MANY_WINDOWS)
    assert full.due(at_s=0) == []


def test_parts_that_are_not_accepted_do_not_keep_their_source_active() -> None:
    windows = Windows(rule(silence_s=4), [-inf, -inf], at_s=0, floor=2)
    for at_s in range(10):
        windows.place(0, 10 + at_s, now=FAR, at_s=at_s)
        assert windows.place(1, 3, now=FAR, at_s=at_s) == (0, Outcome.LATE)
    assert windows.due(at_s=10) == [2]


hostile_parts = st.lists(st.tuples(st.integers(0, 1), st.integers(-40, 10)), min_size=0, max_size=3)


@many(3)
@given(
    st.lists(hostile_parts, min_size=30, max_size=60),
    st.integers(1, 9),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 3),
)
def test_no_source_is_crowded_out_or_held_by_hostile_parts_under_possible_settings(
    hostile: list[list[Part]], length_s: int, lateness_s: int, ahead_s: int, extra: int
) -> None:
    possible = WindowRule(length_s=length_s, lateness_s=lateness_s, max_ahead_s=ahead_s)
    max_open = int(possible.least_open) + extra
    windows = Windows(replace(possible, max_open=max_open, silence_s=20), [-inf] * 3, at_s=0)
    longest_s = ahead_s + length_s + 2 * lateness_s + 20 + 2
    opened_at: dict[int, int] = {}
    start, closed = 1000.0, list[int]()
    for second, parts in enumerate(hostile):
        now = start + second
        for source, offset in parts:  # any time, in the source of others or in one of its own
            windows.place(2 * source, now + offset, now=now, at_s=second)
        delay = second % (lateness_s + 1)  # honest clocks are behind by the lateness at most
        for source in (0, 1):
            placed = windows.place(source, now - delay, now=now, at_s=second)
            assert placed[1] is Outcome.HELD, (source, delay)
        closed += windows.due(at_s=second)
        assert windows.n_open <= max_open
        for window in windows._open:
            opened_at.setdefault(window, second)
            assert second - opened_at[window] <= longest_s
    assert len(closed) == len(set(closed))


def test_a_time_too_far_ahead_is_invalid_and_does_not_keep_its_source_active() -> None:
    windows = Windows(rule(max_ahead_s=2, silence_s=3), [-inf], at_s=0)
    assert windows.place(0, 103, now=100, at_s=3) == (NEVER, Outcome.INVALID__FUTURE_TIME)
    assert windows.place(0, 102, now=100, at_s=3) == (20, Outcome.HELD)
    assert windows.place(0, -1, now=100, at_s=9) == (NEVER, Outcome.INVALID__ANCIENT_TIME)
    assert windows.due(at_s=7) == [20]


def test_windows_may_begin_at_another_hour() -> None:
    shifted = WindowRule(length_s=10, offset_s=4)
    assert [shifted.window_of(ts) for ts in (3.9, 4.0, 13.9, 14.0)] == [-1, 0, 0, 1]
    assert shifted.span(1) == (14, 24)


def test_a_window_that_closed_before_a_restart_is_due_after_it() -> None:
    before = Windows(rule(), [-inf], at_s=0)
    for ts in (1, 6, 12):
        before.place(0, ts, now=FAR, at_s=0)
    after = Windows(rule(), before.newest, at_s=9, floor=before.floor, opened=iter([0, 1, 2]))
    assert (after.n_due, after.n_open) == (2, 1)
    assert after.due(at_s=9) == before.due(at_s=9) == [0, 1]


def test_closed_windows_leave_room_for_others() -> None:
    windows = Windows(rule(max_open=2), [-inf], at_s=0)
    for ts in range(0, 100, 5):
        assert windows.place(0, ts, now=FAR, at_s=0) == (ts // 5, Outcome.HELD)
    assert windows.due(at_s=0) == list(range(19))


def test_a_restart_changes_nothing_that_is_stored() -> None:
    before = Windows(rule(), [-inf, -inf], at_s=0)
    for source, ts in ((0, 1), (1, 2), (0, 7), (1, 6), (1, 12)):
        before.place(source, ts, now=FAR, at_s=0)
    assert before.due(at_s=0) == [0]
    after = Windows(rule(), before.newest_open, at_s=50, floor=before.floor, opened=[1, 2])
    for windows in (before, after):
        assert windows.place(0, 3, now=FAR, at_s=50) == (0, Outcome.LATE)
        assert windows.place(0, 11, now=FAR, at_s=50) == (2, Outcome.HELD)
        assert windows.due(at_s=50) == [1]
        assert windows.n_open == 1


@many(3)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60).map(float)), max_size=60),
    st.integers(1, 9),
    st.integers(0, 9),
    st.integers(0, 60),
)
def test_a_restart_without_times_of_closed_windows_changes_no_outcome(
    parts: list[Part], length_s: int, lateness_s: int, restart: int
) -> None:
    windows = Windows(
        WindowRule(length_s=length_s, lateness_s=lateness_s, max_open=100), [-inf] * 3, at_s=0
    )
    again = windows
    for i, (source, ts) in enumerate(parts):
        if i == restart:
            opened = [*windows._open, *windows._closed]
            assert all(ts == -inf or ts >= windows.floor * length_s for ts in windows.newest_open)
            again = Windows(
                windows.rule, windows.newest_open, at_s=0, floor=windows.floor, opened=opened
            )
        placed = windows.place(source, ts, now=FAR, at_s=0)
        if again is not windows:
            assert again.place(source, ts, now=FAR, at_s=0) == placed
            assert again.floor == windows.floor
            assert again.newest_open == windows.newest_open


def naive(parts: Sequence[Part], *, length_s: int, lateness_s: int, n: int) -> list[bool]:
    """Return whether each part is on time, by looking at all parts before it."""
    answers: list[bool] = []
    for i, (_, ts) in enumerate(parts):
        taken = [part for part, fine in zip(parts[:i], answers, strict=True) if fine]
        newest = [max((t for s, t in taken if s == source), default=-inf) for source in range(n)]
        answers.append((ts // length_s + 1) * length_s > min(newest) - lateness_s)
    return answers


timelines = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 40).map(float)), min_size=1, max_size=40
)


@many(3)
@given(timelines, st.integers(1, 9), st.integers(0, 9))
def test_a_part_is_late_exactly_if_the_naive_twin_finds_it_late(
    parts: list[Part], length_s: int, lateness_s: int
) -> None:
    windows = Windows(
        WindowRule(length_s=length_s, lateness_s=lateness_s, max_open=100), [-inf] * 3, at_s=0
    )
    found = [windows.place(s, ts, now=FAR, at_s=0)[1] for s, ts in parts]
    on_time = naive(parts, length_s=length_s, lateness_s=lateness_s, n=3)
    assert [outcome is Outcome.HELD for outcome in found] == on_time


def floors_of(rule: WindowRule, parts: Sequence[Part], *, n: int) -> list[int]:
    """Return the floor after each second, in which one part comes, by looking at all before it."""
    taken: list[tuple[int, int, float]] = []
    floors = [NEVER]
    for at_s in range(len(parts) + 1):
        newest = [max((t for _, s, t in taken if s == source), default=-inf) for source in range(n)]
        heard = [max((a for a, s, _ in taken if s == source), default=0) for source in range(n)]
        active = [newest[s] for s in range(n) if at_s - heard[s] <= rule.silence_s]
        long_known = (t for a, _, t in taken if at_s - a > rule.silence_s)
        watermark = max(min(active, default=-inf), *long_known, -inf) - rule.lateness_s
        floor = floors[-1] if watermark == -inf else max(floors[-1], rule.window_of(watermark))
        if not active and taken:
            floor = max(floor, max(rule.window_of(t) for _, _, t in taken) + 1)
        floors.append(floor)
        if at_s < len(parts) and rule.window_of(parts[at_s][1]) >= floor:
            taken.append((at_s, *parts[at_s]))
    return floors[1:]


@many(3)
@given(timelines, st.integers(1, 9), st.integers(0, 9), st.integers(1, 12), st.integers(0, 2))
def test_windows_are_held_as_long_as_the_naive_twin_holds_them(
    parts: list[Part], length_s: int, lateness_s: int, silence_s: int, braking: int
) -> None:
    some = rule(length_s=length_s, lateness_s=lateness_s, silence_s=silence_s, max_open=100)
    for brakes in (False, True):
        windows = Windows(some, [-inf] * 3, at_s=0)
        found, sent = [], []
        for at_s in range(len(parts) + 1):
            windows.due(at_s=at_s)
            found.append(windows.floor)
            if at_s < len(parts):
                source, ts = parts[at_s]
                if brakes and source == braking:  # the oldest time that is not late
                    ts = max(0.0, windows.floor * length_s)
                sent.append((source, ts))
                windows.place(source, ts, now=FAR, at_s=at_s)
        assert found == floors_of(some, sent, n=3)


@pytest.mark.parametrize("step_s", [0.0, 0.001, 0.5, 0.9, 1.0])
def test_a_source_that_stands_on_the_brake_holds_each_window_as_long_as_a_silent_one(
    step_s: float,
) -> None:
    some = rule(length_s=300, lateness_s=30, silence_s=330, max_open=8)
    windows = Windows(some, [-inf] * 2, at_s=0)
    brake, opened = 0.0, set[int]()
    for second in range(6000):
        now = float(second)
        assert windows.place(0, now, now=now, at_s=second)[1] is Outcome.HELD
        opened.add(int(now // 300))
        # The oldest time that is not yet late, or one that creeps on from it.
        brake = min(now, max(brake + step_s, windows.floor * 300.0))
        assert windows.place(1, brake, now=now, at_s=second)[1] is Outcome.HELD
        for window in windows.due(at_s=second):
            assert second <= some.span(window)[1] + 30 + 330 + 1
            opened.discard(window)
        assert len(windows._passed) <= 3, "one for each window that is held"
        assert all(second <= some.span(window)[1] + 30 + 330 + 1 for window in opened)


def test_a_slow_source_is_waited_for_as_long_as_it_is_behind_by_less_than_the_silence() -> None:
    some = rule(length_s=10, silence_s=25, max_open=100)
    windows = Windows(some, [-inf] * 2, at_s=0)
    for second in range(25, 500):
        windows.place(0, second, now=FAR, at_s=second)
        assert windows.place(1, second - 25, now=FAR, at_s=second)[1] is Outcome.HELD
        windows.due(at_s=second)
        assert windows.floor == (second - 25) // 10


def test_how_long_a_window_is_held_is_part_of_the_state() -> None:
    some = rule(silence_s=4)
    before = Windows(some, [-inf] * 2, at_s=0)
    before.place(0, 7, now=FAR, at_s=1)
    for at_s in (1, 3, 5):
        before.place(1, 0, now=FAR, at_s=at_s)
        assert before.due(at_s=at_s) == []
    again = Windows(some, [-inf] * 2, at_s=5)
    again.restore(before.state())
    assert again.due(at_s=5) == []
    assert again.due(at_s=6) == before.due(at_s=6) == [0]


@many(3)
@given(timelines, st.integers(1, 9), st.data())
def test_any_order_within_the_lateness_gives_the_same_windows(
    parts: list[Part], length_s: int, data: st.DataObject
) -> None:
    lateness_s = data.draw(st.integers(0, 12))
    # Sorted by a time that is off by less than the lateness, so that no part comes after one
    # that is newer by as much.
    off = data.draw(st.lists(st.integers(0, lateness_s), min_size=len(parts), max_size=len(parts)))
    order = sorted(range(len(parts)), key=lambda i: (parts[i][1] + off[i], i))
    look_after = data.draw(st.sets(st.integers(0, len(parts))))
    windows = Windows(
        WindowRule(length_s=length_s, lateness_s=lateness_s, max_open=100), [-inf] * 3, at_s=0
    )
    closed: list[int] = []
    for n, i in enumerate(order):
        source, ts = parts[i]
        assert windows.place(source, ts, now=FAR, at_s=0) == (ts // length_s, Outcome.HELD)
        if n in look_after:
            closed += windows.due(at_s=0)
    assert closed == sorted(set(closed))
    newest = [max((t for s, t in parts if s == source), default=-inf) for source in range(3)]
    reached = min(newest) - lateness_s
    closed += windows.due(at_s=0)
    held = {int(ts // length_s) for _, ts in parts}
    assert closed == sorted(w for w in held if (w + 1) * length_s <= reached)


@many(3)
@given(timelines, st.integers(1, 9))
def test_every_window_closes_exactly_once(parts: list[Part], length_s: int) -> None:
    windows = Windows(WindowRule(length_s=length_s, silence_s=5, max_open=100), [-inf] * 3, at_s=0)
    closed: list[int] = []
    held = set()
    for at_s, (source, ts) in enumerate(parts):
        window, outcome = windows.place(source, ts, now=FAR, at_s=at_s)
        if outcome is Outcome.HELD:
            assert window not in closed
            held.add(window)
        closed += windows.due(at_s=at_s)
    closed += windows.due(at_s=len(parts) + 5)
    assert sorted(closed) == sorted(held)
    assert windows.n_open == 0


@many(3)
@given(timelines, st.integers(1, 9), st.randoms(use_true_random=False))
def test_in_ticks_the_order_of_the_parts_of_a_tick_makes_no_difference(
    parts: list[Part], length_s: int, random: Random
) -> None:
    alone = WindowRule(length_s=length_s, silence_s=5, lateness_s=2, max_open=100)
    one, other = (Windows(alone, [-inf] * 3, at_s=-inf, in_ticks=True) for _ in range(2))
    for each in (one, other):
        each.begin(at_s=0)
    for at_s in range(0, len(parts), 2):
        tick = parts[at_s : at_s + 2]
        placed = Counter(one.place(*part, now=FAR, at_s=at_s) for part in tick)
        random.shuffle(tick)
        assert Counter(other.place(*part, now=FAR, at_s=at_s) for part in tick) == placed
        assert one.due(at_s=at_s) == other.due(at_s=at_s)
        again = Windows(alone, [-inf] * 3, at_s=0, in_ticks=True)
        again.restore(other.state())
        assert again.state() == other.state() == one.state()
        other = again


@many(3)
@given(timelines, st.integers(1, 9))
def test_in_ticks_of_one_part_windows_close_as_otherwise(parts: list[Part], length_s: int) -> None:
    alone = WindowRule(length_s=length_s, silence_s=5, lateness_s=2, max_open=3)
    one = Windows(alone, [-inf] * 3, at_s=0)
    ticking = Windows(alone, [-inf] * 3, at_s=0, in_ticks=True)
    for at_s, (source, ts) in enumerate(parts):
        assert ticking.place(source, ts, now=FAR, at_s=at_s) == one.place(
            source, ts, now=FAR, at_s=at_s
        )
        assert ticking.due(at_s=at_s) == one.due(at_s=at_s)


def test_a_drawing_with_an_unknown_sign_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("invalid literal")):
        play(rule(), "a:|0-!|")


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1), st.integers(0, 400)), max_size=40),
    st.integers(2, 5),
    st.integers(1, 20),
    st.integers(0, 10),
    st.sampled_from([False, True]),
)
def test_fewer_vehicles_than_a_leap_needs_make_nothing_late_for_others(
    wrong: list[tuple[int, int, int]],
    k: int,
    length_s: int,
    lateness_s: int,
    in_ticks: bool,  # noqa: FBT001  of hypothesis
) -> None:
    """A replay of old times: k - 1 vehicles state any later time, before and between the others."""
    rules = WindowRule(length_s=length_s, lateness_s=lateness_s, n_to_leap=k, max_open=30)
    windows = Windows(rules, [-inf, -inf], at_s=0, in_ticks=in_ticks)
    at_second = dict[int, list[tuple[int, int, int]]]()
    for second, source, vehicle in wrong:
        at_second.setdefault(second, []).append((second, source, vehicle))
    for second in range(60):
        for _, source, ahead in at_second.get(second, []):
            far = second + 2 * rules.step_s + 1 + ahead
            windows.place(source, far, now=FAR, at_s=second, vehicle=b"wrong%d" % (ahead % (k - 1)))
        for source in (0, 1):
            name = b"%d of %d" % (second % (k + 1), k)
            delay = min(second, second % (lateness_s + 1))
            placed = windows.place(source, second - delay, now=FAR, at_s=second, vehicle=name)
            assert placed[1] is Outcome.HELD
        windows.due(at_s=second)


def test_a_leap_of_as_many_vehicles_as_it_needs_closes_what_is_older() -> None:
    windows = Windows(rule(n_to_leap=3), [-inf], at_s=0)
    closed = []
    for vehicle in range(6):
        ts = vehicle if vehicle < 3 else 998 + vehicle
        windows.place(0, ts, now=FAR, at_s=0, vehicle=b"%d" % vehicle)
        closed.append(windows.due(at_s=0))
    assert closed == [[], [], [], [], [], [0]]


def test_a_time_that_nobody_else_has_come_near_to_is_left_after_a_silence() -> None:
    windows = Windows(rule(n_to_leap=3, silence_s=20), [-inf], at_s=0)
    for vehicle in range(3):
        windows.place(0, vehicle, now=FAR, at_s=0, vehicle=b"%d" % vehicle)
    windows.place(0, 100, now=FAR, at_s=19, vehicle=b"4")
    assert windows.due(at_s=19) == []
    windows.place(0, 121, now=FAR, at_s=21, vehicle=b"4")
    assert windows.due(at_s=21) == [0, 20]


def test_one_vehicle_takes_no_open_window_from_the_others() -> None:
    windows = Windows(rule(n_to_leap=2, max_open=2), [-inf], at_s=0)
    for vehicle, ts in enumerate((1, 6)):
        windows.place(0, ts, now=FAR, at_s=0, vehicle=b"%d" % vehicle)
    placed = [windows.place(0, far, now=FAR, at_s=0, vehicle=b"9")[1] for far in (100, 200, 300)]
    assert placed == [Outcome.HELD, Outcome.HELD, Outcome.SUPPRESSED__TOO_MANY_WINDOWS]
    assert windows.due(at_s=0) == [0]
    assert windows.place(0, 8, now=FAR, at_s=0, vehicle=b"1")[1] is Outcome.HELD


def test_a_vehicle_that_comes_back_no_longer_counts_for_a_leap_of_others() -> None:
    windows = Windows(rule(n_to_leap=3), [-inf], at_s=0)
    sent = [(1, 0), (2, 1), (3, 2), (100, 0), (4, 0), (100, 1), (101, 2)]
    for ts, vehicle in sent:
        windows.place(0, ts, now=FAR, at_s=0, vehicle=b"%d" % vehicle)
    assert windows.due(at_s=0) == []
    restored = Windows(rule(n_to_leap=3), [-inf], at_s=0)
    restored.restore(windows.state())
    restored.place(0, 102, now=FAR, at_s=0, vehicle=b"3")
    assert restored.due(at_s=0) == [0]
