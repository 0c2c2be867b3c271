"""A broker that hands messages on at the QoS of their sender, whatever was subscribed to.

It is Mosquitto behind a relay that asks it for QoS 2 in place of the QoS in each subscription.
Subscriptions at QoS 0 stay as they are.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

from tests.end_to_end import DEADLINE_S
from tests.transport.faulty_broker import packets_of

_SUBSCRIBE = 8
_READ_BYTES = 65_536

Alter = Callable[[bytes], bytes]
"""Changes what the broker sends to a client, packet by packet; nothing: it is lost."""


class UnchangedBroker:
    """The relay.

    Attributes
    ----------
    url
        Its address, while it serves.
    """

    def __init__(self, real_url: str, *, version5: bool) -> None:
        self.url = ""
        self._real = urlsplit(real_url)
        self._version5 = version5
        self._alter: Alter = bytes
        self._open: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Accept connections while the block runs."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield
        finally:
            server.close()
            self.cut()
            await asyncio.gather(*self._open, return_exceptions=True)

    def cut(self) -> None:
        """Break all connections."""
        for connection in self._open:
            connection.cancel()

    def to_broker(self, alter: Alter) -> None:
        """Change what clients send from now on."""
        self._alter = alter

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something that a client sends makes a condition true."""
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def _accept(
        self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            from_broker, to_broker = await asyncio.open_connection(
                self._real.hostname, self._real.port
            )
            down = asyncio.create_task(_pass_on(from_broker, to_client, bytes))
            up = asyncio.create_task(_pass_on(from_client, to_broker, self._asked))
            try:
                await asyncio.wait([down, up], return_when=asyncio.FIRST_COMPLETED)
            finally:
                to_broker.transport.abort()
                for pump in (down, up):
                    pump.cancel()
                await asyncio.gather(down, up, return_exceptions=True)
        except (ConnectionError, asyncio.CancelledError):
            pass  # one end is gone, or the relay breaks the connection
        finally:
            self._open.discard(task)
            to_client.transport.abort()

    def _asked(self, packet: bytes) -> bytes:
        """Return a packet of a client as the broker gets it."""
        if packet[0] >> 4 == _SUBSCRIBE:
            packet = _at_qos_2(packet, version5=self._version5)
        self._changed.set()
        return self._alter(packet)


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, alter: Alter
) -> None:
    rest = b""
    while data := await reader.read(_READ_BYTES):
        packets, rest = packets_of(rest + data)
        writer.write(b"".join(map(alter, packets)))
        await writer.drain()


def _at_qos_2(subscribe: bytes, *, version5: bool) -> bytes:
    """Return a SUBSCRIBE (of less than 128 bytes) that asks for QoS 2 in place of 1."""
    packet, at = bytearray(subscribe), 4
    assert packet[1] < 128
    if version5:
        at += 1 + packet[at]
    while at < len(packet):
        at += 2 + int.from_bytes(packet[at : at + 2])
        packet[at] = packet[at] + (packet[at] & 3 == 1)
        at += 1
    return bytes(packet)
