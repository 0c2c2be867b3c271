"""Stages of the positions flow: tick and publish, with one bounded queue between them.

Drain: `stop` is set; the tick stage empties the inbox once more and closes the queue, and the
publish stage finishes the queue. Cancel: `abandon` settles all unfinished outputs as undelivered,
but for messages that the broker has accepted.
Failure: the exception reaches the owning TaskGroup.

A tick runs in a thread, so the loop goes on receiving, answering the broker and serving HTTP
however long a tick takes. While it is late, the inbox keeps the newest messages only.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from anonymizer.pipeline.clock import SteadyClock
from anonymizer.pipeline.ports import Link
from anonymizer.pipeline.positions.tick.flow import PositionFlow, TickOutput
from anonymizer.pipeline.positions.tick.inbox import Arrivals, Inbox

Ticks: TypeAlias = "asyncio.Queue[TickOutput | None]"
"""Outputs to be published; None closes the queue."""

_EARLY = 0.8
"""Share of the interval after which what has arrived is prepared, so that less work is left at its
end, for which every position waits. A link rests for up to a quarter of the interval after a read,
so that three quarters of the input are there then; after 0.7 of it, only half."""
_ENOUGH_BYTES = 1 << 17
"""Of messages: what takes longer than to begin the work in a thread."""
QUEUED_TICKS = 2
"""Size of the queue: a slow publisher slows the tick stage down."""
_ON_TIME = 100
"""So many ticks in succession on time end a time of late ones."""
_RETRY_S = 0.1
"""Pause before the rest of an interrupted output is sent again, while the flow drains."""


async def tick_stage(
    flow: PositionFlow,
    inbox: Inbox,
    ticks: Ticks,
    *,
    interval_s: float,
    late_s: float,
    stop: asyncio.Event,
    clock: SteadyClock,
    acknowledge: Callable[[list[int]], None],
    collect: Callable[[], Awaitable[None]] | None = None,
    on_late: Callable[[bool], None] = lambda _: None,
) -> None:
    """Turn the arrivals of each interval into one output, until `stop` is set; then drain.

    If the inbox has not been emptied for `late_s`, the tick is late: its messages yield to newer
    ones, and `acknowledge` gets their receipts. `on_late` is called with True at the first late
    tick, and with False when `_ON_TIME` ticks in succession were not late.

    `collect` delivers what has arrived and was not read yet. A link may therefore read in large
    pieces without delaying a position beyond its tick.
    """
    loop = asyncio.get_running_loop()
    due = loop.time()
    punctuality = _Punctuality(flow, on_late)

    def fall_behind() -> None:
        punctuality.late()
        acknowledge(inbox.hurry())

    late = loop.call_soon(int)
    stopped = False
    try:
        while not stopped:
            due = max(due + interval_s, loop.time())
            await _stopped_by(stop, due - (1 - _EARLY) * interval_s)
            if inbox.n_bytes >= _ENOUGH_BYTES and not inbox.is_overloaded:
                await _prepare_in_thread(flow, inbox.take())
            await _stopped_by(stop, due)
            if collect is not None:
                await collect()
            # Read before the inbox is emptied: another tick then takes what arrives during `put`.
            stopped = stop.is_set()
            batches = inbox.take()
            late.cancel()
            punctuality.tick()
            late = loop.call_later(late_s, fall_behind)
            output = await _tick_in_thread(flow, batches, clock)
            try:
                await ticks.put(output)
            except asyncio.CancelledError:
                flow.settle(output, [], seconds=0.0)
                raise
    finally:
        late.cancel()
    await ticks.put(None)


class _Punctuality:
    """Counts late ticks, and reports when they begin and when they are over; see `tick_stage`."""

    def __init__(self, flow: PositionFlow, on_late: Callable[[bool], None]) -> None:
        self._stats = flow.stats
        self._on_late = on_late
        self._n_on_time = _ON_TIME
        """In succession, at most `_ON_TIME`."""

    def late(self) -> None:
        self._stats.n_late_ticks += 1
        if self._n_on_time == _ON_TIME:
            self._on_late(True)
        self._n_on_time = -1  # the late tick itself is still to begin

    def tick(self) -> None:
        self._stats.n_ticks += 1
        if self._n_on_time < _ON_TIME:
            self._n_on_time += 1
            if self._n_on_time == _ON_TIME:
                self._on_late(False)


async def _stopped_by(stop: asyncio.Event, due_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(due_s):
            await stop.wait()


async def _prepare_in_thread(flow: PositionFlow, batches: Sequence[Arrivals]) -> None:
    flow.take(batches)
    work = asyncio.ensure_future(asyncio.to_thread(flow.prepare, batches))
    try:
        await asyncio.wait([work])
    finally:
        await asyncio.wait([work])  # also if cancelled: a thread cannot be
        work.result()  # its failure matters more


async def _tick_in_thread(
    flow: PositionFlow, batches: Sequence[Arrivals], clock: SteadyClock
) -> TickOutput:
    flow.begin(batches)
    work = asyncio.ensure_future(
        asyncio.to_thread(flow.release, batches, now=clock.now(), wall_ahead_s=clock.wall_ahead_s())
    )
    try:
        await asyncio.wait([work])
    except asyncio.CancelledError:
        await asyncio.wait([work])  # a thread cannot be cancelled
        flow.settle(flow.book(work.result()), [], seconds=0.0)
        raise
    return flow.book(work.result())


async def publish_stage(
    flow: PositionFlow,
    ticks: Ticks,
    link: Link,
    *,
    qos: int,
    timeout_s: float,
    whole: bool = False,
) -> None:
    """Publish each output, account for it, acknowledge its input; end when the queue closes.

    `whole`: the messages of an output belong together. If the connection is lost in the middle of
    them, the broker gets the others as soon as it is back, and nothing newer before; this needs QoS
    1.
    """
    publisher = _Publisher(flow, link, qos=qos, timeout_s=timeout_s, whole=whole)
    try:
        while (output := await ticks.get()) is not None:
            await publisher.publish(output)
        while True:
            if await publisher.finish():
                return
            await asyncio.sleep(_RETRY_S)
    finally:
        # Also if cancelled: unpublished positions count as undelivered, never as lost.
        publisher.give_up()


@dataclass(slots=True)
class _Sending:
    """An output on its way: the messages that the broker has, and those that it may have."""

    output: TickOutput
    delivered: list[bool]
    unknown: list[int]
    seconds: float = 0.0


class _Publisher:
    """Publishes one output after the other; see `publish_stage`."""

    def __init__(
        self, flow: PositionFlow, link: Link, *, qos: int, timeout_s: float, whole: bool
    ) -> None:
        self._flow = flow
        self._link = link
        self._qos = qos
        self._timeout_s = timeout_s
        self._whole = whole
        self._sending: _Sending | None = None

    async def publish(self, output: TickOutput) -> None:
        """Publish an output, or nothing of it if the one before it cannot be finished yet."""
        if await self.finish():
            n = len(output.messages)
            self._sending = _Sending(output, [False] * n, list(range(n)))
            await self._send(self._sending)
        else:
            self._flow.settle(output, [], seconds=0.0)
            self._link.acknowledge(output.receipts)

    async def finish(self) -> bool:
        """Send the rest of an interrupted output; return whether nothing is left of it."""
        if self._sending is not None and self._link.connected:
            await self._send(self._sending)
        return self._sending is None

    def give_up(self) -> None:
        """Account for an output that is not finished."""
        if self._sending is not None:
            self._settle(self._sending)

    async def _send(self, sending: _Sending) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        messages = [sending.output.messages[i] for i in sending.unknown]
        taken: Sequence[bool | None] = ()
        if messages:
            taken = await self._link.publish(messages, qos=self._qos, timeout_s=self._timeout_s)
        answers = list(zip(sending.unknown, taken, strict=True))
        for i, answer in answers:
            sending.delivered[i] = bool(answer)
        sending.unknown = [i for i, answer in answers if answer is None]
        sending.seconds += loop.time() - began
        if not (self._whole and sending.unknown):
            self._settle(sending)
            self._link.acknowledge(sending.output.receipts)

    def _settle(self, sending: _Sending) -> None:
        self._sending = None
        self._flow.settle(sending.output, sending.delivered, seconds=sending.seconds)


def abandon(flow: PositionFlow, inbox: Inbox, ticks: Ticks, clock: SteadyClock) -> None:
    """Settle everything that is still queued after the stages have ended."""
    while not ticks.empty():
        output = ticks.get_nowait()
        if output is not None:
            flow.settle(output, [], seconds=0.0)
    last = flow.tick(inbox.take(), now=clock.now(), wall_ahead_s=clock.wall_ahead_s())
    flow.settle(last, [], seconds=0.0)
    flow.close()
