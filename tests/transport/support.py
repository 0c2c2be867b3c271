"""Support for tests of links: an inbox, a running link, and quick settings."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

import pytest

from anonymizer.pipeline.ports import Delivery, Link
from anonymizer.settings import BrokerSettings
from tests.brokers import QuickBrokerSettings
from tests.end_to_end import DEADLINE_S

VERSIONS = pytest.mark.parametrize("version", ["5", "3.1.1"])


class RunningLink(Link, Protocol):
    """A link that can be run, which is more than the port requires."""

    async def run(self) -> None: ...

    async def until_connected(self) -> None: ...


class Inbox:
    """Collects deliveries and states, and waits for them."""

    def __init__(self) -> None:
        self.batches: list[list[Delivery]] = []
        self.states: list[tuple[bool, str]] = []
        self._changed = asyncio.Event()

    @property
    def deliveries(self) -> list[Delivery]:
        return [delivery for batch in self.batches for delivery in batch]

    @property
    def payloads(self) -> list[bytes]:
        return [delivery.payload for delivery in self.deliveries]

    def deliver(self, batch: Sequence[Delivery]) -> None:
        self.batches.append(list(batch))
        self._changed.set()

    def on_state(self, connected: bool, reason: str) -> None:  # noqa: FBT001  the callback's shape
        self.states.append((connected, reason))
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a delivery or a state makes the condition true."""
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def receives(self, n: int) -> None:
        """Wait for this many messages."""
        await self.until(lambda: sum(map(len, self.batches)) >= n)

    async def loses(self, reason: str) -> None:
        """Wait until a failure or loss is reported whose reason contains these words."""
        await self.until(lambda: any(not up and reason in why for up, why in self.states))


@contextlib.asynccontextmanager
async def running(link: RunningLink, *, connected: bool = True) -> AsyncIterator[None]:
    """Run a link, and close it at the end."""
    async with asyncio.TaskGroup() as group:
        group.create_task(link.run(), name="link")
        if connected:
            async with asyncio.timeout(DEADLINE_S):
                await link.until_connected()
        yield
        await link.close()


def settings(url: str, **changes: object) -> BrokerSettings:
    """Return settings that reconnect quickly."""
    return QuickBrokerSettings.model_validate({"url": url, **changes})
