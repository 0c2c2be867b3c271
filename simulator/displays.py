"""Displays: progress while traffic is published, and the summary at the end."""

import asyncio
import time
from collections import deque
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from simulator.publishing import Tally

_WINDOW = 12
"""Number of readings over which the current rate is computed."""
_WARN_LAG_S = 1.0


class Display(Protocol):
    """Shows a tally repeatedly; a context manager."""

    every_s: float

    def __enter__(self) -> Self:
        """Start to show."""

    def __exit__(self, *exc_info: object) -> None:
        """Restore the terminal."""

    def show(self, tally: Tally) -> None:
        """Show the current tally."""


class Silent:
    """Shows nothing."""

    every_s = 60.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Do nothing."""

    def show(self, tally: Tally) -> None:
        """Show nothing."""


class Bar:
    """A progress bar on a terminal."""

    every_s = 0.25

    def __init__(self, console: Console, *, requested_per_s: float, n_total: int | None) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task = self._progress.add_task("traffic", total=n_total, state="")
        self._meter = Meter()
        self._requested_per_s = requested_per_s

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._progress.stop()

    def show(self, tally: Tally) -> None:
        """Redraw the bar."""
        rate_per_s = self._meter.rate_per_s(tally.n_sent, time.monotonic())
        state = state_line(tally, rate_per_s=rate_per_s, requested_per_s=self._requested_per_s)
        style = "red" if tally.paused or tally.lag_s > _WARN_LAG_S else "green"
        self._progress.update(
            self._task,
            completed=tally.n_sent + tally.n_refused,
            state=f"[{style}]{state}[/]",
        )
        self._progress.refresh()


class Lines:
    """Writes a line every few seconds, if there is no terminal."""

    every_s = 5.0

    def __init__(self, stream: TextIO, *, requested_per_s: float) -> None:
        self._stream = stream
        self._meter = Meter()
        self._requested_per_s = requested_per_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Do nothing."""

    def show(self, tally: Tally) -> None:
        """Write a line."""
        rate_per_s = self._meter.rate_per_s(tally.n_sent, time.monotonic())
        state = state_line(tally, rate_per_s=rate_per_s, requested_per_s=self._requested_per_s)
        print(f"{tally.n_sent:,} sent, {state}", file=self._stream, flush=True)


class Meter:
    """Measures the rate of a growing count over its last few readings."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, int]] = deque(maxlen=_WINDOW)

    def rate_per_s(self, count: int, now_s: float) -> float:
        """Add a reading; return the rate since the oldest one kept."""
        self._readings.append((now_s, count))
        then_s, then = self._readings[0]
        return (count - then) / (now_s - then_s) if now_s > then_s else 0.0


def state_line(tally: Tally, *, rate_per_s: float, requested_per_s: float) -> str:
    """Return one line with the rate, the lag and any problems."""
    if tally.paused:
        return "paused: connection to the broker lost, reconnecting"
    parts = [f"{rate_per_s:,.0f} of {requested_per_s:,.0f} msg/s", f"lag {tally.lag_s:.2f} s"]
    if tally.n_refused:
        parts.append(f"{tally.n_refused:,} refused")
    return ", ".join(parts)


def summary(tally: Tally, *, requested_per_s: float) -> str:
    """Return the summary of a run, one figure per line."""
    lines = [
        ("sent", f"{tally.n_sent:,} messages from {tally.n_devices:,} devices"),
        ("rate", f"{tally.rate_per_s:,.1f} messages/s, requested {requested_per_s:,.1f}"),
        ("refused", f"{tally.n_refused:,}"),
        ("duration", f"{tally.played_s:.1f} s, lag at the end {tally.lag_s:.2f} s"),
    ]
    if tally.n_pauses:
        lines.append(("pauses", f"{tally.n_pauses} (connection lost)"))
    return "\n".join(f"{name:<10}{text}" for name, text in lines)


async def show_until(done: asyncio.Event, tally: Tally, display: Display) -> None:
    """Show a tally periodically, and at once when the connection is lost or restored."""
    while not done.is_set():
        display.show(tally)
        paused, left_s = tally.paused, display.every_s
        while left_s > 0 and not done.is_set() and tally.paused == paused:
            try:
                async with asyncio.timeout(min(left_s, Bar.every_s)):
                    await done.wait()
            except TimeoutError:
                left_s -= Bar.every_s
