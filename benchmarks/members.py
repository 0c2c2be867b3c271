"""Bridges and workers of a cluster on this machine, as processes, and an analyst who listens."""

import asyncio
import os
import secrets
import shutil
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from anonymizer.errors import TransportError
from anonymizer.pipeline.ports import Delivery
from anonymizer.settings import BrokerSettings
from anonymizer.transport.link import MqttLink
from benchmarks.gateways import RunningGateway, Scrape, running_program, until
from tests.cluster.kafka import JARS, Kafka

TICK_S = 1.0
START_S = 120.0
"""Longest time until all members are ready, or the first cloaked message comes."""
ONE, MANY = 'topic = "positions/{device}"', 'topic = "positions/batch"\ndevice_from = "payload"'
"""Inputs whose messages have one position, and those of many devices."""
_OUTPUT = "cloaked/positions"
_SETTINGS = """
[network]
source = "{network}"
[broker]
url = "{url}"
client_id = "bridge-0123456789abcdef0123456789abcdef"
session_expiry_s = 600
keepalive_s = 6
[[inputs]]
{input}
qos = {qos}
[limits]
max_ids_per_topic = 1000000
[region]
districts = {n_districts}
[kafka]
servers = "{kafka}"
group = "{prefix}"
[cluster]
n_parts = {n_sources}
secret_file = "{secret}"
[tick]
interval_s = {tick_s}
[http]
port = 0
"""


def why_not(jars: Path = JARS) -> str | None:
    """Return why there can be no cluster on this machine; None: there can."""
    if shutil.which("java") is None:
        return "there is no Java"
    if not jars.is_dir():
        return "Kafka is not installed: make test-cluster"
    return None


class Member:
    """A bridge or worker that can be ended and started again.

    Parameters
    ----------
    arguments
        Of `anonymizer`.
    """

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._stack = AsyncExitStack()
        self._program: RunningGateway | None = None

    @property
    def program(self) -> RunningGateway:
        """The running program."""
        assert self._program is not None  # noqa: S101  `start` has made it
        return self._program

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not ended since."""
        return self._program is not None

    async def start(self) -> None:
        """Start it, and return when its HTTP interface is there."""
        self._program = await self._stack.enter_async_context(running_program(*self._arguments))

    def twin(self) -> "Member":
        """Return another process of the same name, not started yet."""
        return Member(*self._arguments)

    async def stand_by(self) -> None:
        """Start it while another process has its name, and return when it stands by.

        Raises
        ------
        TransportError
            If that takes too long.
        """
        await self.start()

        async def stands_by() -> bool:
            return "stands by" in await self.program.why_not_ready()

        if not await until(stands_by, within_s=START_S):
            raise TransportError("a member of the cluster does not stand by")

    async def kill(self) -> None:
        """End it as `kill -9` does."""
        os.kill(self.program.pid, signal.SIGKILL)
        await self.stop()

    async def stop(self) -> None:
        """End it in order."""
        await self._stack.aclose()
        self._program = None


class Members:
    """The members of a cluster."""

    def __init__(self, bridges: list[Member], workers: list[Member]) -> None:
        self.bridges, self.workers = bridges, workers

    @property
    def all(self) -> list[Member]:
        """Bridges, then workers."""
        return [*self.bridges, *self.workers]

    async def until_ready(self) -> None:
        """Wait until all are ready.

        Raises
        ------
        TransportError
            If that takes too long.
        """

        async def are_ready() -> bool:
            return all(await asyncio.gather(*(member.program.ready() for member in self.all)))

        if not await until(are_ready, within_s=START_S):
            raise TransportError("a member of the cluster does not become ready")

    async def scrape(self) -> Scrape:
        """Return the sums of the metrics of all."""
        total: dict[str, float] = {}
        for scrape in await asyncio.gather(*(member.program.scrape() for member in self.all)):
            for key, value in scrape.values.items():
                total[key] = total.get(key, 0.0) + value
        return Scrape(total)

    async def n_received(self) -> int:
        """Return how many positions the sources have received."""
        return (await self.scrape()).n_received


@asynccontextmanager
async def running_members(
    folder: Path,
    kafka: Kafka,
    url: str,
    *,
    network: str,
    inputs: str = ONE,
    qos: int = 1,
    n_sources: int = 4,
    n_districts: int = 8,
    n_bridges: int = 1,
    n_workers: int = 1,
) -> AsyncIterator[Members]:
    """Run bridges and workers, with topics of their own, until the block ends.

    Parameters
    ----------
    folder
        For settings and states.
    kafka, url
        Kafka, and the address of the MQTT broker.
    network, inputs, qos, n_sources, n_districts
        Of the settings; `ONE` or `MANY`.
    n_bridges, n_workers
        How many of each.
    """
    prefix = f"b{secrets.token_hex(4)}"
    secret, config, state = (folder / f"{prefix}.{end}" for end in ("secret", "toml", "state"))
    secret.touch(mode=0o600)
    secret.write_bytes(secrets.token_bytes(32))
    config.write_text(
        _SETTINGS.format(
            network=network,
            url=url,
            input=inputs,
            qos=qos,
            n_districts=n_districts,
            kafka=kafka.address,
            prefix=prefix,
            n_sources=n_sources,
            secret=secret,
            tick_s=TICK_S,
        ),
        encoding="utf-8",
    )
    options = ("--config", str(config), "--name")
    members = Members(
        [Member("bridge", *options, f"bridge-{i}") for i in range(n_bridges)],
        [
            Member("worker", *options, f"worker-{i}", "--state", str(state))
            for i in range(n_workers)
        ],
    )
    try:
        for member in members.all:
            await member.start()
        await members.until_ready()
        yield members
    finally:
        for member in members.all:
            await member.stop()


class Analyst:
    """Receives cloaked messages, and notes when each came.

    Parameters
    ----------
    url
        Address of the MQTT broker.

    Attributes
    ----------
    came
        Unix seconds at which each message came, and how long its tick was over then.
    """

    class _Message(msgspec.Struct):
        time: float

    def __init__(self, url: str) -> None:
        self.came: list[tuple[float, float]] = []
        decode = msgspec.json.Decoder(self._Message).decode

        def see(deliveries: Sequence[Delivery]) -> None:
            now = time.time()
            self.came += [(now, now - decode(each.payload).time) for each in deliveries]
            self._link.acknowledge(each.receipt for each in deliveries if each.receipt)

        self._link = MqttLink(
            BrokerSettings(url=url),
            client_id="analyst",
            subscriptions=[(_OUTPUT, 0)],
            deliver=see,
            on_state=lambda _up, _why: None,
        )

    @property
    def delays_s(self) -> list[float]:
        """From the end of its tick until each message came, in seconds."""
        return [delay_s for _, delay_s in self.came]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Receive while the block runs."""
        running = asyncio.create_task(self._link.run(), name="analyst")
        await self._link.until_connected()
        try:
            yield
        finally:
            await self._link.close()
            await running

    async def until_some(self) -> None:
        """Wait for the first message.

        Raises
        ------
        TransportError
            If it does not come in time.
        """

        async def has_come() -> bool:
            return bool(self.came)

        if not await until(has_come, within_s=START_S):
            raise TransportError("no cloaked message in time")
