"""Playing: one run, from connecting to the broker until all connections are closed."""

import asyncio
import secrets
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rich.console import Console

from anonymizer.domain.arrays import FloatArray
from anonymizer.errors import TransportError
from anonymizer.pipeline.ports import Link, Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport.link import MqttLink
from simulator.displays import Bar, Display, Lines, Silent, show_until
from simulator.publishing import SystemClock, Tally, publish
from simulator.reports import Due, Playable
from simulator.waiting import until_ready

D = TypeVar("D", bound=Due)
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class RunningLink(Link, Protocol):
    """A link that is run as a task of the caller."""

    async def run(self) -> None:
        """Stay connected until `close`."""

    async def until_connected(self) -> None:
        """Wait until the link is connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """The broker and topic to which messages are published, and how."""

    broker: BrokerSettings
    topic: str = "positions/{device}"
    qos: int = 0
    connections: int = 1
    """Number of connections among which the devices are divided."""
    per_message: int = 1
    """Most positions in one message; more than 1: they state their devices."""
    wait_for: str | None = None
    """Address of a gateway that is to be ready before the traffic begins."""
    connect_timeout_s: float = 5.0
    """Time to connect at the start; if the connection is lost later, the traffic waits."""


async def play(
    source: Playable[D],
    outlet: Outlet,
    tally: Tally,
    *,
    encode: Callable[[D, FloatArray], list[Outgoing]],
    quiet: bool = False,
) -> None:
    """Encode and publish a source over connections to a broker; SIGINT and SIGTERM end it early.

    Raises
    ------
    TransportError
        If the links do not connect in time at the start.
    """
    if outlet.wait_for is not None:
        await until_ready(outlet.wait_for)
    failure = deque(["no answer in time"], maxlen=1)

    def on_state(up: bool, reason: str) -> None:  # noqa: FBT001  the signature of the callback
        if not up:
            failure.append(reason)

    run_id = secrets.token_hex(4)  # client ids must differ between simulators at one broker
    links = [
        MqttLink(
            outlet.broker,
            client_id=f"simulator-{run_id}-{number}",
            deliver=lambda _: None,
            on_state=on_state,
        )
        for number in range(outlet.connections)
    ]
    async with _connected(links, outlet, failure):
        done = asyncio.Event()
        with _stop_on_signals() as stop, _display(source, quiet=quiet) as display:
            showing = asyncio.create_task(show_until(done, tally, display), name="display")
            try:
                await publish(
                    source,
                    links,
                    encode=encode,
                    qos=outlet.qos,
                    stop=stop,
                    clock=SystemClock(),
                    tally=tally,
                    per_message=outlet.per_message,
                )
            finally:
                done.set()
                await showing


@asynccontextmanager
async def _connected(
    links: Sequence[RunningLink], outlet: Outlet, failure: Sequence[str]
) -> AsyncIterator[None]:
    """Run the links during the block, and close them at its end.

    Raises
    ------
    TransportError
        If not all links connect in time; the message contains the last `failure`.
    """
    running = [asyncio.create_task(link.run(), name="link") for link in links]
    try:
        try:
            async with asyncio.timeout(outlet.connect_timeout_s):
                await asyncio.gather(*(link.until_connected() for link in links))
        except TimeoutError:
            raise TransportError(f"{outlet.broker.url}: not connected: {failure[-1]}") from None
        yield
    finally:
        await asyncio.gather(*(link.close() for link in links))
        await asyncio.gather(*running)


@contextmanager
def _stop_on_signals() -> Iterator[asyncio.Event]:
    """Let signals end the traffic, not the program, which still has to print the summary."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)


def _display(source: Playable[Due], *, quiet: bool) -> Display:
    if quiet:
        return Silent()
    console = Console(stderr=True)
    if console.is_terminal:
        return Bar(console, requested_per_s=source.rate_per_s, n_total=source.n_total)
    return Lines(sys.stderr, requested_per_s=source.rate_per_s)
