"""The stages of the records flow: intake, closing and publishing, with the store between them.

Drain: when no more messages arrive, intake ends when its inbox is empty, closing when the current
window is closed, and publishing when no class waits or the broker accepts nothing. Open windows
and unpublished classes stay in the store. Cancel: the store keeps the state of the last
transaction. Failure: the error is raised to the owning TaskGroup.
"""

import asyncio
import contextlib
import math
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ParamSpec, Protocol, TypeVar

from anonymizer.algorithms.records.methods import AUTO
from anonymizer.pipeline.ports import Link, Outgoing
from anonymizer.pipeline.records.anonymize_window import Closing
from anonymizer.pipeline.records.flow import Due, RecordFlow
from anonymizer.pipeline.records.inbox import RecordInbox

P = ParamSpec("P")
T = TypeVar("T")
CHECK_EVERY_S = 0.1
"""How often the stage checks whether a window is due."""
RETRY_S = 0.2
"""Pause after the broker did not accept all messages."""
MAX_MESSAGES = 500
"""Most messages published in one batch."""
MAX_DUE = 1
"""Most windows that may be due while intake continues; a backlog would otherwise grow."""
SEARCH_S = 2.5
"""Of all windows that are due at once: how long `auto` searches in them together."""
LEAST_SEARCH_S = 0.02
"""`auto` does not begin a search of less, which finds nothing."""
AT_ONCE = 50
"""Most windows that are anonymized before they are stored, all in one transaction."""
_ALONE = frozenset({"best", "sighted", "kmeans"})
"""Methods that take their time whatever waits: nobody waits for them to be stored."""


class InThread(Protocol):
    """Runs functions in a separate thread, one after the other."""

    def __call__(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]:
        """Return what `function` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageContext:
    """What the stages share."""

    flow: RecordFlow
    """The flow; its methods that change anything are called only through `in_store`."""
    in_store: InThread
    in_worker: InThread
    """`in_store`, `in_worker`: the thread for quick calls that change the store, and the one for
    slow computations."""
    wall: Callable[[], float]
    clock: Callable[[], float]
    """`wall`, `clock`: the wall clock in unix seconds, and the seconds of a monotonic clock."""
    places_of: Callable[[Sequence[int]], Mapping[str, int]] = lambda _: {}
    """See `RecordFlow.take`."""


@dataclass(frozen=True, slots=True)
class StageSignals:
    """Events by which the stages wait for each other."""

    drain: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when no more windows should be closed."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a window is due."""
    caught_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all windows that were due are closed."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there may be classes to publish, or no more will come."""
    last: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when no more classes will come: those that the broker does not accept then wait for the
    next start."""


async def intake_stage(
    context: StageContext, inbox: RecordInbox, link: Link, signals: StageSignals
) -> None:
    """Store messages, then acknowledge them, until the inbox is closed and empty.

    It pauses while windows wait to be closed, so that the backlog stays at the broker.
    """
    flow = context.flow
    while (arrived := await inbox.take()) is not None:
        receipts = await context.in_store(
            flow.take,
            arrived,
            now=context.wall(),
            at_s=context.clock(),
            places_of=context.places_of,
        )
        link.acknowledge(receipts)
        if flow.n_due:
            signals.over.set()
        while flow.n_due > MAX_DUE and not signals.drain.is_set():
            signals.caught_up.clear()
            await signals.caught_up.wait()


async def close_stage(
    context: StageContext, signals: StageSignals, *, on_closed: Callable[[Due, Closing], None]
) -> None:
    """Anonymize and close each window that is due, until the drain.

    `on_closed`: called after each window.
    """
    try:
        while not signals.drain.is_set():
            signals.over.clear()
            every = await context.in_store(context.flow.due, at_s=context.clock())
            async for closed in _anonymized(context, every, signals.drain):
                await context.in_store(context.flow.close_all, closed, now=context.wall())
                for due, closing in closed:
                    on_closed(due, closing)
                signals.closed.set()
            signals.caught_up.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_EVERY_S):
                    await signals.over.wait()
    finally:
        signals.caught_up.set()


async def publish_stage(
    context: StageContext,
    link: Link,
    signals: StageSignals,
    *,
    takes: Callable[[Outgoing], bool] = lambda _: True,
) -> None:
    """Publish waiting classes in order, and retry until the broker has accepted them.

    A batch waits for as long as the connection lives: only where that is lost are classes sent
    again, because nobody knows whether the broker has them.

    Classes that are too large for the broker (`takes`) would wait for ever; they are suppressed.
    """
    while True:
        signals.closed.clear()
        waiting = await context.in_store(context.flow.waiting, limit=MAX_MESSAGES)
        if too_large := [w for w in waiting if not takes(w.message)]:
            await context.in_store(context.flow.suppress, too_large)
            continue
        if waiting:
            accepted = await link.publish([w.message for w in waiting], qos=1, timeout_s=math.inf)
            published = [w for w, ok in zip(waiting, accepted, strict=True) if ok]
            if published:
                await context.in_store(context.flow.published, published, now=context.wall())
            if len(published) == len(waiting):
                continue
        if signals.last.is_set():
            return
        if waiting:
            await asyncio.sleep(RETRY_S)
        else:
            await signals.closed.wait()


async def _anonymized(
    context: StageContext, every: Sequence[Due], drain: asyncio.Event
) -> AsyncIterator[list[tuple[Due, Closing]]]:
    """Anonymize windows until the drain; yield a few with their results, which are to be stored.

    `auto` searches in a window for no longer than its share of the time that there is for all, and
    ends when the next window of the stream is due.
    """
    flow, clock = context.flow, context.clock
    until_s, ahead = clock() + SEARCH_S, deque(every)
    most = min(max(1, len(every) // 10), AT_ONCE)
    behind = Counter(due.stream for due in every)

    def anonymize(due: Due, memories: Mapping[bytes, bytes]) -> Closing:
        state = flow.states[due.stream]
        behind[due.stream] -= 1
        is_auto, budget_s = state.stream.settings.method == AUTO, state.stream.settings.budget_s
        if is_auto:
            share_s = (until_s - clock()) / (1 + behind.total())
            budget_s = min(budget_s, share_s) if share_s >= LEAST_SEARCH_S else 0.0
        deadline_s = clock() + budget_s

        def time_left() -> float:
            hurries = is_auto and (behind[due.stream] > 0 or state.windows.n_due > 0)
            if drain.is_set() or hurries or budget_s <= 0:
                return 0.0
            return max(deadline_s - clock(), 0.0) / budget_s

        return flow.anonymize(due, memories, time_left=time_left, clock=clock)

    def known_of(some: Sequence[Due]) -> list[Mapping[bytes, bytes]]:
        return [flow.memories(due) for due in some]

    def closings_of(
        some: Sequence[Due], known: Sequence[Mapping[bytes, bytes]]
    ) -> list[tuple[Due, Closing]]:
        return [(due, anonymize(due, each)) for due, each in zip(some, known, strict=True)]

    while ahead and not drain.is_set():  # else the windows are still open in the store
        some = _at_once(context.flow, ahead, most=most)
        known = await context.in_store(known_of, some)
        yield await context.in_worker(closings_of, some, known)


def _at_once(flow: RecordFlow, ahead: deque[Due], *, most: int) -> list[Due]:
    """Take at most so many windows to be anonymized and stored together, of one stream one.

    The second window of a stream begins from what is stored of the first.
    """
    some, streams = list[Due](), set[int]()
    while ahead and len(some) < most and ahead[0].stream not in streams:
        is_alone = flow.states[ahead[0].stream].stream.settings.method in _ALONE
        if is_alone and some:
            break
        some.append(ahead.popleft())
        streams.add(some[-1].stream)
        most = 1 if is_alone else most
    return some
