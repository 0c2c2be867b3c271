"""Stages of the positions flow: tick and publish, with one bounded queue between them.

Drain: `stop` is set; the tick stage empties the inbox once more and closes the queue, and the
publish stage finishes the queue. Cancel: `abandon` settles all unfinished outputs as undelivered.
Failure: the exception reaches the owning TaskGroup.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeAlias

from anonymizer.pipeline.ports import Link
from anonymizer.pipeline.positions.flow import PositionFlow, TickOutput
from anonymizer.pipeline.positions.inbox import Inbox

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
    stop: asyncio.Event,
    wall: Callable[[], float],
) -> None:
    """Turn the arrivals of each interval into one output, until `stop` is set; then drain."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    stopped = False
    while not stopped:
        due = max(due + interval_s, loop.time())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await stop.wait()
        # Read before the inbox is emptied: another tick then takes what arrives during `put`.
        stopped = stop.is_set()
        batches, receipts = inbox.take()
        output = flow.tick(batches, receipts, now=wall())
        try:
            await ticks.put(output)
        except asyncio.CancelledError:
            flow.settle(output, [], seconds=0.0)
            raise
    await ticks.put(None)


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


def abandon(flow: PositionFlow, inbox: Inbox, ticks: Ticks, *, now: float) -> None:
    """Settle everything that is still queued after the stages have ended."""
    while not ticks.empty():
        output = ticks.get_nowait()
        if output is not None:
            flow.settle(output, [], seconds=0.0)
    batches, receipts = inbox.take()
    flow.settle(flow.tick(batches, receipts, now=now), [], seconds=0.0)
    flow.close()
