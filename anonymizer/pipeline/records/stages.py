"""The records flow as three stages: intake, closing, publishing. The store is between them.

Drain: nothing arrives any more; intake ends when its inbox is empty, closing when the window in
hand is closed, publishing when nothing waits or the broker takes nothing. Windows that are open
stay in the store, and so does what was not published. Cancel: what was in hand is as the store
has it. Failure: it raises through to the owning TaskGroup.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import ParamSpec, Protocol, TypeVar

from anonymizer.pipeline.ports import Link
from anonymizer.pipeline.records.anonymize_window import Closing
from anonymizer.pipeline.records.flow import Due, RecordFlow
from anonymizer.pipeline.records.inbox import RecordInbox

P = ParamSpec("P")
T = TypeVar("T")
LOOK_EVERY_S = 0.1
"""How often is asked whether a window is over."""
RETRY_S = 0.2
"""How soon a broker that took nothing is tried again."""
MESSAGES_AT_ONCE = 500
MOST_OVER = 1
"""Windows that are over while more is taken in. Behind a backlog they would pile up."""


class InThread(Protocol):
    """Runs functions in a thread of its own, one after the other."""

    def __call__(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]:
        """Return what `function` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What the stages share.

    Attributes
    ----------
    flow
        Called in the thread of `in_store` alone.
    in_store, in_worker
        The one for what is quick and changes something, the other for what takes long.
    wall, clock
        Unix seconds, and seconds that never run back.
    """

    flow: RecordFlow
    in_store: InThread
    in_worker: InThread
    wall: Callable[[], float]
    clock: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Pace:
    """How the stages wait for each other.

    Attributes
    ----------
    drain
        Set when no more windows are to be closed.
    over
        Set when a window is over.
    caught_up
        Set when the windows that were over are closed.
    closed
        Set when there is something to publish, or nothing more will come.
    last
        Set when nothing more will come: what the broker does not take then waits for the next
        start.
    """

    drain: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    caught_up: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    last: asyncio.Event = field(default_factory=asyncio.Event)


async def intake_stage(means: Means, inbox: RecordInbox, link: Link, pace: Pace) -> None:
    """Store what arrives, and acknowledge it then, until the inbox is closed and empty.

    Takes no more in while windows wait to be closed: the broker then holds the backlog.
    """
    while (arrived := await inbox.take()) is not None:
        receipts = await means.in_store(
            means.flow.take, arrived, now=means.wall(), at_s=means.clock()
        )
        link.acknowledge(receipts)
        if means.flow.n_over:
            pace.over.set()
        while means.flow.n_over > MOST_OVER and not pace.drain.is_set():
            pace.caught_up.clear()
            await pace.caught_up.wait()


async def close_stage(means: Means, pace: Pace, *, tell: Callable[[Due, Closing], None]) -> None:
    """Anonymize each window that is over, until told to drain.

    Parameters
    ----------
    tell
        Told of each window.
    """
    try:
        while not pace.drain.is_set():
            pace.over.clear()
            for due in await means.in_store(means.flow.due, at_s=means.clock()):
                if pace.drain.is_set():
                    return  # it is still open in the store
                closing = await _anonymized(means, due, pace.drain)
                await means.in_store(means.flow.close, due, closing, now=means.wall())
                tell(due, closing)
                pace.closed.set()
            pace.caught_up.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await pace.over.wait()
    finally:
        pace.caught_up.set()


async def publish_stage(means: Means, link: Link, pace: Pace, *, timeout_s: float) -> None:
    """Publish what waits, in its order, as often as it takes the broker to have it.

    Parameters
    ----------
    timeout_s
        For the broker to take a batch.
    """
    while True:
        pace.closed.clear()
        waiting = await means.in_store(means.flow.waiting, limit=MESSAGES_AT_ONCE)
        if waiting:
            took = await link.publish([w.message for w in waiting], qos=1, timeout_s=timeout_s)
            taken = [w for w, there in zip(waiting, took, strict=True) if there]
            if taken:
                await means.in_store(means.flow.published, taken, now=means.wall())
            if len(taken) == len(waiting):
                continue
        if pace.last.is_set():
            return
        if waiting:
            await asyncio.sleep(RETRY_S)
        else:
            await pace.closed.wait()


async def _anonymized(means: Means, due: Due, drain: asyncio.Event) -> Closing:
    memories = await means.in_store(means.flow.memories, due)
    budget_s = means.flow.states[due.stream].stream.settings.budget_s
    deadline_s = means.clock() + budget_s

    def time_left() -> float:
        return 0.0 if drain.is_set() else max(deadline_s - means.clock(), 0.0) / budget_s

    return await means.in_worker(
        means.flow.anonymize,
        due,
        memories,
        time_left=time_left,
        clock=means.clock,
    )
