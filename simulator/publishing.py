"""The publishing loop: publishes due reports in batches, at the pace of a clock passed in."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray
from anonymizer.pipeline.ports import Link, Outgoing
from simulator.reports import Due, Playable

D = TypeVar("D", bound=Due)

TICK_S = 0.025
"""Shortest time between batches."""
MAX_NAP_S = 0.25
"""Longest sleep, after which a stop or a lost connection is noticed."""
MAX_BATCH = 5_000
"""Most reports in a batch; further ones are not made before these are published."""
TIMEOUT_S = 5.0
"""Time for the broker to accept a batch."""


class Clock(Protocol):
    """A clock, which tests replace by their own."""

    def now(self) -> float:
        """Return unix seconds."""

    def monotonic(self) -> float:
        """Return seconds that never decrease."""

    async def sleep(self, delay_s: float) -> None:
        """Wait while other tasks run."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Return unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never decrease."""
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        """Wait while other tasks run."""
        await asyncio.sleep(delay_s)


@dataclass(slots=True, eq=False)
class Tally:
    """Progress of the traffic, written by the publisher and read by displays."""

    was_heard: BoolArray
    """Whether the broker accepted a report of each device."""
    n_sent: int = 0
    n_refused: int = 0
    """Messages not accepted by the broker, or at QoS 1 not acknowledged in time."""
    played_s: float = 0.0
    """Seconds of playing, without pauses."""
    lag_s: float = 0.0
    """How overdue the oldest unpublished report is."""
    paused: bool = False
    """Whether a connection is lost, so that the traffic waits."""
    n_pauses: int = 0

    @property
    def n_devices(self) -> int:
        """Number of devices from which the broker accepted a report."""
        return int(np.count_nonzero(self.was_heard))

    @property
    def rate_per_s(self) -> float:
        """Messages sent per second of playing."""
        return self.n_sent / self.played_s if self.played_s else 0.0


async def publish(
    source: Playable[D],
    links: Sequence[Link],
    *,
    encode: Callable[[D, FloatArray], list[Outgoing]],
    qos: int,
    stop: asyncio.Event,
    clock: Clock,
    tally: Tally,
    per_message: int = 1,
) -> None:
    """Play a source over links until its end or until `stop` is set.

    Each device uses one link, so its reports stay in order. A slow broker slows the loop down:
    later reports are not made yet, and `tally.lag_s` grows. While a link is down, the traffic
    pauses; then it continues from the same point. A batch that is in progress when a link
    breaks counts as refused and is not repeated, because newer positions follow.

    Parameters
    ----------
    source, links
        What is played, and over which connections.
    encode
        Makes messages of due items, given the unix seconds that each states.
    qos, stop, clock, tally
        The QoS of all messages, the event that ends playing, the clock, and the progress, which
        is updated in place.
    per_message
        Items that `encode` puts into each message; the last one may have fewer.
    """
    began_s, epoch_s = clock.monotonic(), clock.now()
    paused_s = 0.0
    while not stop.is_set() and not math.isinf(source.next_due_s):
        if not all(link.connected for link in links):
            duration_s = await _pause(links, stop=stop, clock=clock, tally=tally)
            paused_s += duration_s
            continue
        reports = source.take(clock.monotonic() - began_s - paused_s, limit=MAX_BATCH)
        ts = epoch_s + paused_s + reports.due_s if reports.ts is None else reports.ts
        taken = await _send(reports, ts, links, encode=encode, qos=qos, per_message=per_message)
        tally.n_sent += int(np.count_nonzero(taken))
        tally.n_refused += int(np.count_nonzero(~taken))
        tally.was_heard[reports.device[taken]] = True
        tally.played_s = clock.monotonic() - began_s - paused_s
        ahead_s = source.next_due_s - tally.played_s
        tally.lag_s = max(0.0, -ahead_s)
        # Even when behind schedule, batches shorter than a tick cost more than they gain.
        if len(reports) < MAX_BATCH and not math.isinf(ahead_s):
            await clock.sleep(min(max(ahead_s, TICK_S), MAX_NAP_S))


async def _pause(
    links: Sequence[Link], *, stop: asyncio.Event, clock: Clock, tally: Tally
) -> float:
    """Wait until every link is connected; return how long it took."""
    began_s = clock.monotonic()
    tally.paused = True
    tally.n_pauses += 1
    while not stop.is_set() and not all(link.connected for link in links):
        await clock.sleep(MAX_NAP_S)
    tally.paused = False
    return clock.monotonic() - began_s


async def _send(
    items: D,
    ts: FloatArray,
    links: Sequence[Link],
    *,
    encode: Callable[[D, FloatArray], list[Outgoing]],
    qos: int,
    per_message: int,
) -> BoolArray:
    """Publish items over the links; return which of them the broker accepted."""
    taken = np.zeros(len(items), np.bool_)

    async def send(number: int, link: Link) -> None:
        rows = np.flatnonzero(items.device % len(links) == number)
        if len(rows):
            messages = encode(items if len(rows) == len(items) else items.only(rows), ts[rows])
            accepted = await link.publish(messages, qos=qos, timeout_s=TIMEOUT_S)
            taken[rows] = np.repeat([bool(each) for each in accepted], per_message)[: len(rows)]

    await asyncio.gather(*(send(number, link) for number, link in enumerate(links)))
    return taken
