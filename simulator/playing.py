"""One run from the first connection to the last farewell."""

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
from anonymizer.transport.mqtt import MqttLink
from simulator.displays import Bar, Display, Lines, Silent, show_until
from simulator.publishing import SystemClock, Tally, publish
from simulator.reports import Due, Playable

D = TypeVar("D", bound=Due)
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class RunningLink(Link, Protocol):
    """A link whose work is a task of ours."""

    async def run(self) -> None:
        """Be connected until `close`."""

    async def until_connected(self) -> None:
        """Wait until the broker is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """Where messages go, and how."""

    broker: BrokerSettings
    topic: str = "positions/{device}"
    qos: int = 0
    connections: int = 1
    """Among which the devices are divided."""
    connect_timeout_s: float = 5.0
    """For the broker to be there at the start; later the traffic waits for it."""


async def play(
    source: Playable[D],
    outlet: Outlet,
    tally: Tally,
    *,
    encode: Callable[[D, FloatArray], list[Outgoing]],
    quiet: bool = False,
) -> None:
    """Publish a source, encoded, over connections to a broker; SIGINT and SIGTERM end it early.

    Raises
    ------
    TransportError
        If the broker is not there in time at the start.
    """
    failure = deque(["no answer in time"], maxlen=1)

    def hear(up: bool, why: str) -> None:  # noqa: FBT001  the signature of `on_state`
        if not up:
            failure.append(why)

    run_id = secrets.token_hex(4)  # two simulators at one broker are not each other
    links = [
        MqttLink(
            outlet.broker,
            client_id=f"simulator-{run_id}-{number}",
            deliver=lambda _: None,
            on_state=hear,
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
                )
            finally:
                done.set()
                await showing


@asynccontextmanager
async def _connected(
    links: Sequence[RunningLink], outlet: Outlet, failure: Sequence[str]
) -> AsyncIterator[None]:
    """Run links while the block runs, and close them all.

    Raises
    ------
    TransportError
        If not all are connected within the time given; says the last `failure` heard.
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
    """End the traffic, not the program: the summary is still to come."""
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
        return Bar(console, asked_per_s=source.rate_per_s, n_total=source.n_total)
    return Lines(sys.stderr, asked_per_s=source.rate_per_s)
