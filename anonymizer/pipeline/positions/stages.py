"""Stages of the positions flow: tick and publish, with one bounded queue between them.

Drain: `stop` is set; the tick stage empties the inbox once more and closes the queue, and the
publish stage finishes the queue. Cancel: `abandon` settles all unfinished outputs as undelivered.
Failure: the exception reaches the owning TaskGroup.

A tick runs in a thread, so the loop goes on receiving, answering the broker and serving HTTP
however long a tick takes. While it is late, the inbox keeps the newest messages only.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

from anonymizer.pipeline.clock import SteadyClock
from anonymizer.pipeline.ports import Link
from anonymizer.pipeline.positions.flow import PositionFlow, TickOutput
from anonymizer.pipeline.positions.inbox import Arrivals, Inbox

Ticks: TypeAlias = "asyncio.Queue[TickOutput | None]"
"""Outputs to be published; None closes the queue."""

QUEUED_TICKS = 2
"""Size of the queue: a slow publisher slows the tick stage down."""


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
) -> None:
    """Turn the arrivals of each interval into one output, until `stop` is set; then drain.

    If the inbox has not been emptied for `late_s`, its messages yield to newer ones. `acknowledge`
    then gets their receipts.
    """
    loop = asyncio.get_running_loop()
    due = loop.time()
    late = loop.call_soon(int)
    stopped = False
    try:
        while not stopped:
            due = max(due + interval_s, loop.time())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await stop.wait()
            # Read before the inbox is emptied: another tick then takes what arrives during `put`.
            stopped = stop.is_set()
            batches = inbox.take()
            late.cancel()
            late = loop.call_later(late_s, lambda: acknowledge(inbox.hurry()))
            output = await _tick_in_thread(flow, batches, clock)
            try:
                await ticks.put(output)
            except asyncio.CancelledError:
                flow.settle(output, [], seconds=0.0)
                raise
    finally:
        late.cancel()
    await ticks.put(None)


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
    flow: PositionFlow, ticks: Ticks, link: Link, *, qos: int, timeout_s: float
) -> None:
    """Publish each output, account for it, acknowledge its input; end when the queue closes."""
    loop = asyncio.get_running_loop()
    while (output := await ticks.get()) is not None:
        began = loop.time()
        delivered: list[bool] = []
        try:
            if output.messages:
                delivered = list(await link.publish(output.messages, qos=qos, timeout_s=timeout_s))
        finally:
            # Also if cancelled: unpublished positions count as undelivered, never as lost.
            flow.settle(output, delivered, seconds=loop.time() - began)
        link.acknowledge(output.receipts)


def abandon(flow: PositionFlow, inbox: Inbox, ticks: Ticks, clock: SteadyClock) -> None:
    """Settle everything that is still queued after the stages have ended."""
    while not ticks.empty():
        output = ticks.get_nowait()
        if output is not None:
            flow.settle(output, [], seconds=0.0)
    last = flow.tick(inbox.take(), now=clock.now(), wall_ahead_s=clock.wall_ahead_s())
    flow.settle(last, [], seconds=0.0)
    flow.close()
