"""The publishing loop: what is due goes out in batches, paced by a clock that is passed in."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray
from anonymizer.pipeline.ports import Link, Outgoing
from simulator.reports import Due, Playable, Reports

D = TypeVar("D", bound=Due)

TICK_S = 0.025
"""Least time between batches."""
MAX_NAP_S = 0.25
"""How soon a loop with nothing to do hears of a stop or a lost broker."""
MAX_BATCH = 5_000
"""Reports in hand at most; the others are not made before these are out."""
TIMEOUT_S = 5.0
"""For the broker to take a batch."""
_ESCAPED = {ord(c): f"%{ord(c):02X}" for c in "%/+#" + "".join(map(chr, range(32))) + "\x7f"}


class Clock(Protocol):
    """Time, so that tests can bring their own."""

    def now(self) -> float:
        """Unix seconds."""

    def monotonic(self) -> float:
        """Seconds that never run back."""

    async def sleep(self, delay_s: float) -> None:
        """Let the rest of the program go on."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never run back."""
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        """Let the rest of the program go on."""
        await asyncio.sleep(delay_s)


@dataclass(slots=True, eq=False)
class Tally:
    """How far the traffic has come; the publisher writes it, displays read it."""

    was_heard: BoolArray
    """Of each device, whether the broker took a report of it."""
    n_sent: int = 0
    n_refused: int = 0
    """Not taken by the broker; at QoS 1 also: not acknowledged in time."""
    played_s: float = 0.0
    """Without the pauses."""
    lag_s: float = 0.0
    """How overdue the oldest report is that has not been published."""
    paused: bool = False
    """A connection is lost: the traffic stands still until it is back."""
    n_pauses: int = 0

    @property
    def n_devices(self) -> int:
        """Distinct devices heard."""
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
) -> None:
    """Play a source over links until its end or until `stop` is set.

    A device keeps to one link, so its reports stay in order. A broker that does not keep up
    holds the loop back: the reports wait unmade and `tally.lag_s` grows. While a link is down
    the traffic stands still, and goes on from there. What is in hand when a link breaks is
    counted as refused and not repeated: the next position says more.

    Parameters
    ----------
    encode
        Makes the messages of what is due, given the unix seconds that each states.
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
        taken = await _send(reports, encode(reports, ts), links, qos=qos)
        tally.n_sent += int(np.count_nonzero(taken))
        tally.n_refused += int(np.count_nonzero(~taken))
        tally.was_heard[reports.device[taken]] = True
        tally.played_s = clock.monotonic() - began_s - paused_s
        ahead_s = source.next_due_s - tally.played_s
        tally.lag_s = max(0.0, -ahead_s)
        # However far behind: batches of less than a tick cost more than they gain.
        if len(reports) < MAX_BATCH and not math.isinf(ahead_s):
            await clock.sleep(min(max(ahead_s, TICK_S), MAX_NAP_S))


def positions_to(
    topic: str, device_id: Sequence[str]
) -> Callable[[Reports, FloatArray], list[Outgoing]]:
    """Return what makes messages of reports, in the gateway's native JSON.

    Parameters
    ----------
    topic
        With `{device}` where the device's id goes.
    """
    topics = [topic.replace("{device}", topic_level(device)) for device in device_id]

    def encode(reports: Reports, ts: FloatArray) -> list[Outgoing]:
        columns = (reports.device, ts, reports.lat, reports.lon)
        return [
            Outgoing(topics[device], b'{"ts":%.6f,"lat":%.7f,"lon":%.7f}' % (t, lat, lon))
            for device, t, lat, lon in zip(*(c.tolist() for c in columns), strict=True)
        ]

    return encode


def topic_level(device_id: str) -> str:
    """Return a device id as one level of a topic: what has a meaning there is %-escaped."""
    return device_id.translate(_ESCAPED)


async def _pause(
    links: Sequence[Link], *, stop: asyncio.Event, clock: Clock, tally: Tally
) -> float:
    """Wait until every link is up; return how long it took."""
    began_s = clock.monotonic()
    tally.paused = True
    tally.n_pauses += 1
    while not stop.is_set() and not all(link.connected for link in links):
        await clock.sleep(MAX_NAP_S)
    tally.paused = False
    return clock.monotonic() - began_s


async def _send(
    reports: Due, messages: Sequence[Outgoing], links: Sequence[Link], *, qos: int
) -> BoolArray:
    """Publish one batch over each link; return what the broker took."""
    taken = np.zeros(len(messages), np.bool_)

    async def send(number: int, link: Link) -> None:
        rows = np.flatnonzero(reports.device % len(links) == number)
        batch = [messages[row] for row in rows.tolist()]
        if batch:
            taken[rows] = await link.publish(batch, qos=qos, timeout_s=TIMEOUT_S)

    await asyncio.gather(*(send(number, link) for number, link in enumerate(links)))
    return taken
