"""Displays of running traffic, and the summary."""

import asyncio
import io
from collections.abc import Callable
from typing import Self

import numpy as np
import pytest
from rich.console import Console

from simulator.displays import Bar, Display, Lines, Meter, Silent, show_until, state_line, summary
from simulator.publishing import Tally


def tally(**values: object) -> Tally:
    made = Tally(was_heard=np.array([True, False, True]))
    for name, value in values.items():
        setattr(made, name, value)
    return made


def test_the_summary_accounts_for_all_messages() -> None:
    text = summary(
        tally(n_sent=12_000, n_refused=3, played_s=10.0, lag_s=0.5, n_pauses=2),
        requested_per_s=1500.0,
    )
    assert text.splitlines() == [
        "sent      12,000 messages from 2 devices",
        "rate      1,200.0 messages/s, requested 1,500.0",
        "refused   3",
        "duration  10.0 s, lag at the end 0.50 s",
        "pauses    2 (connection lost)",
    ]
    assert "pauses" not in summary(tally(), requested_per_s=1.0)


def test_the_state_shows_rate_lag_refusals_and_a_lost_connection() -> None:
    assert state_line(tally(lag_s=0.1), rate_per_s=99, requested_per_s=1000) == (
        "99 of 1,000 msg/s, lag 0.10 s"
    )
    assert "3 refused" in state_line(tally(n_refused=3), rate_per_s=1, requested_per_s=1)
    assert "broker lost" in state_line(tally(paused=True), rate_per_s=1, requested_per_s=1)


def test_a_meter_measures_the_rate_of_the_last_readings() -> None:
    meter = Meter()
    assert meter.rate_per_s(0, 10.0) == 0.0
    assert meter.rate_per_s(50, 10.5) == 100.0
    for second in range(11, 40):
        rate = meter.rate_per_s(7 * second, float(second))
    assert rate == 7.0


@pytest.mark.parametrize(
    "make",
    [
        lambda stream: Bar(
            Console(file=stream, force_terminal=True, width=120), requested_per_s=10.0, n_total=20
        ),
        lambda stream: Lines(stream, requested_per_s=10.0),
    ],
)
def test_bar_and_lines_show_the_state(make: Callable[[io.StringIO], Display]) -> None:
    stream = io.StringIO()
    with make(stream) as display:
        display.show(tally(n_sent=5, lag_s=3.0))
        assert "of 10 msg/s, lag 3.00 s" in stream.getvalue()
        display.show(tally(n_sent=5, paused=True))
        assert "the broker lost" in stream.getvalue()


def test_a_silent_display_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Silent() as display:
        display.show(tally())
    assert capsys.readouterr() == ("", "")


class Witness:
    """A display that is due every minute, and records when it is shown."""

    every_s = 60.0

    def __init__(self) -> None:
        self.shown: asyncio.Queue[bool] = asyncio.Queue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass

    def show(self, tally: Tally) -> None:
        self.shown.put_nowait(tally.paused)


async def test_a_lost_connection_is_shown_at_once_and_the_display_ends_with_the_traffic() -> None:
    watched, witness, done = tally(), Witness(), asyncio.Event()
    showing = asyncio.create_task(show_until(done, watched, witness))
    async with asyncio.timeout(60):
        assert await witness.shown.get() is False
        watched.paused = True
        assert await witness.shown.get() is True
        done.set()
        await showing
    assert witness.shown.empty()


async def test_a_display_is_shown_again_when_its_interval_is_over() -> None:
    witness, done = Witness(), asyncio.Event()
    witness.every_s = 0.01
    showing = asyncio.create_task(show_until(done, tally(), witness))
    async with asyncio.timeout(60):
        for _ in range(3):
            await witness.shown.get()
        done.set()
        await showing
