"""Sides of a gateway: what it has beside the flow of positions, each as one declaration.

A side states what runs, how that ends, its connections, its metrics and what may be wrong with it.
The gateway starts, ends, counts and asks all of them alike.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from prometheus_client.registry import Collector

from anonymizer.app.live_map.screen import See
from anonymizer.pipeline.ports import LinkCounts

LOOK_S = 1.0
"""Time between two looks at the counts for what is wrong."""


@dataclass(frozen=True, slots=True)
class Service:
    """A task of a gateway."""

    name: str
    """Of the task."""
    run: Callable[[], Coroutine[Any, Any, None]]
    """What it does."""
    close: Callable[[], Awaitable[None]] | None = None
    """Makes `run` return, for what must end in its own way. None: `run` is cancelled."""
    last: Callable[[], Awaitable[None]] | None = None
    """What is left to do once it was cancelled; None: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySide:
    """One side of a gateway; most have only some of these."""

    services: Sequence[Service] = ()
    """What runs, in the order in which it ends."""
    links: Mapping[str, LinkCounts] = field(default_factory=dict)
    """Counts of its connections, by name."""
    problems: Callable[[], Sequence[str]] = tuple
    """Returns sentences about what is wrong now, for readiness."""
    notes: Callable[[], Sequence[str]] = tuple
    """Returns sentences about what may be as it should be, or not."""
    connected: Callable[[], None] = lambda: None
    """Called when the connection of positions has been made."""
    sees: Sequence[See] = ()
    """Called with the groups that were published."""
    exact: Sequence[Collector] = ()
    public: Sequence[Collector] = ()
    """`exact`, `public`: its metrics: for the bearer of the token, and for everybody."""


class Sides:
    """All sides of a gateway.

    `sides`: in the order in which they end; first all services that are cancelled, at once.
    """

    def __init__(self, sides: Sequence[GatewaySide]) -> None:
        self._sides = sides
        self._services = [service for side in sides for service in side.services]
        self._tasks: list[asyncio.Task[None]] = []
        self.links = dict(chain.from_iterable(side.links.items() for side in sides))
        self.sees = [each for side in sides for each in side.sees]
        self.exact = [each for side in sides for each in side.exact]
        self.public = [each for side in sides for each in side.public]
        """`links`, `sees`, `exact`, `public`: those of all sides."""

    def start(self, group: asyncio.TaskGroup) -> None:
        """Start all services, as tasks of a group that waits for their ends."""
        self._tasks = [group.create_task(each.run(), name=each.name) for each in self._services]

    async def stop(self) -> None:
        """End all services."""
        for service, task in zip(self._services, self._tasks, strict=True):
            if service.close is None:
                task.cancel()
        for service in self._services:
            if service.last is not None:
                await service.last()
        for service in self._services:
            if service.close is not None:
                await service.close()
        for task in self._tasks:
            task.cancel()  # it may still wait for another that is closed by now

    def connected(self) -> None:
        """Tell all that the connection of positions has been made."""
        for side in self._sides:
            side.connected()

    def problems(self) -> Iterator[str]:
        """Yield what is wrong now."""
        return chain.from_iterable(side.problems() for side in self._sides)

    def notes(self) -> Iterator[str]:
        """Yield what may be as it should be, or not."""
        return chain.from_iterable(side.notes() for side in self._sides)


def again_and_again(does: Callable[[], None], *, every_s: float) -> Callable[[], Any]:
    """Return what calls a function at once and then every so many seconds, until cancelled."""

    async def run() -> None:
        while True:
            does()
            await asyncio.sleep(every_s)

    return run
