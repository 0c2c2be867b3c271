"""A gateway in the process of a test, and what is said to it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anonymizer.app.gateway.gateway import Gateway
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from anonymizer.transport.local_brokers import LocalBroker
from tests.end_to_end import DEADLINE_S, eventually, quick

NETWORK = load_network("grid:20x20")


@asynccontextmanager
async def running(gateway: Gateway) -> AsyncIterator[None]:
    """Run a gateway and drain it at the end."""
    stop = asyncio.Event()
    gateway.warm_up()  # the first in a fresh checkout compiles its kernels, without a deadline
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        group.create_task(gateway.run(stop), name="gateway")
        await gateway.until_connected()
        yield
        stop.set()


def gateway_for(broker: LocalBroker, **tables: Any) -> Gateway:  # noqa: ANN401  tables of any kind
    return Gateway(Settings.model_validate(quick(broker.url, **tables)), NETWORK)


def say(device: str, node: int) -> tuple[str, bytes]:
    payload = {"lat": float(NETWORK.lat[node]), "lon": float(NETWORK.lon[node])}
    return f"positions/{device}", json.dumps(payload).encode()


async def settled(gateway: Gateway, n_received: int) -> None:
    async def look() -> tuple[int, int]:
        return gateway.ledger.n_received, gateway.inbox.n_waiting + gateway.flow.n_held

    await eventually(look, lambda seen: seen == (n_received, 0))
