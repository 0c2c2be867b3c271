"""Which windows have ended: each once, after nothing of it can follow, whatever the clock does."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.outputs.windows import EndedWindows
from tests.examples import many

EVERY_S, KNOWN_AFTER_S = 10.0, 7.0
clocks = st.lists(st.integers(1, 25), min_size=1, max_size=30)
"""Seconds from each look to the next."""


@many(2)
@given(clocks, st.lists(st.integers(2, 9), min_size=30, max_size=30), st.integers(0, 1))
def test_each_window_ends_once_with_the_largest_k_that_was_promised(
    steps: list[int], ks: list[int], n_ahead: int
) -> None:
    windows, now, found = EndedWindows(EVERY_S, KNOWN_AFTER_S, n_ahead=n_ahead), 1003.0, []
    looks = []
    for step, k in zip(steps, ks, strict=False):
        now += step
        looks.append((now, k))
        assert windows.begins(now) == (len(looks) == 1)
        is_due = windows.is_due(now)
        ended = windows.ended(now, k=k)
        assert bool(ended) == is_due
        for window, largest in ended:
            end_s = (window + 1) * EVERY_S
            # Of what was promised while it was under way, in the windows before, and at its end.
            from_s = window * EVERY_S - n_ahead * EVERY_S
            least = [each for at_s, each in looks if from_s <= at_s < end_s]
            assert largest == max([k, *least])
            assert end_s + KNOWN_AFTER_S <= now
        found += [window for window, _ in ended]
        again = EndedWindows(EVERY_S, KNOWN_AFTER_S, n_ahead=n_ahead)
        again.restore(unpack(pack(windows.state())))
        windows = again
    first = math.floor(looks[0][0] / EVERY_S) + 1
    last = math.floor((now - KNOWN_AFTER_S) / EVERY_S)
    assert found == list(range(first, last)), "the window in which it begins is left out"


def test_a_clock_that_is_put_forward_ends_few_windows_and_one_put_back_begins_anew() -> None:
    windows = EndedWindows(EVERY_S, KNOWN_AFTER_S)
    assert windows.begins(1000.0)
    assert windows.ended(1000.0, k=2) == []
    year_s = 3e7
    assert not windows.begins(1000.0 + year_s)
    n = len(windows.ended(1000.0 + year_s, k=2))
    assert 0 < n < 60
    assert windows.begins(1100.0), "what was seen before is of another time"
    assert windows.ended(1100.0, k=2) == []
    assert windows.ended(1130.0, k=2) == [(111, 2)]
    windows.restart()
    assert windows.begins(1131.0)


def test_what_has_not_begun_has_no_windows() -> None:
    state: list[Any] = EndedWindows(EVERY_S, KNOWN_AFTER_S).state()
    assert state == [None, []]
