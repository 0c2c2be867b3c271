"""Services of a gateway: tasks that start together, and how each of them ends."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Service:
    """A task of a gateway.

    Attributes
    ----------
    name
        Of the task.
    run
        What it does.
    close
        Makes `run` return, for what must end in its own way. None: `run` is cancelled.
    last
        What is left to do once it was cancelled; None: nothing.
    """

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    close: Callable[[], Awaitable[None]] | None = None
    last: Callable[[], Awaitable[None]] | None = None


class Services:
    """All services of a gateway.

    Parameters
    ----------
    services
        In the order in which they end; first those that are cancelled, all at once.
    """

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, group: asyncio.TaskGroup) -> None:
        """Start all of them, as tasks of a group that waits for their ends."""
        self._tasks = [group.create_task(each.run(), name=each.name) for each in self._services]

    async def stop(self) -> None:
        """End all of them."""
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
