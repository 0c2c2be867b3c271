"""A managed broker: a relay before a real one that keeps rules of its own, by ending connections.

The rules are those that documentation states of AWS IoT Core ("differences from MQTT
specifications": eight filters in a SUBSCRIBE, no QoS 2, 128 KiB; in its first years no retained
messages) and of Azure Event Grid (MQTT 3.1.1: "a publish request with a retain flag or QoS2 fails
and closes the connection").
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias
from urllib.parse import urlsplit

from tests.transport.faulty_broker import packets_of

Rule: TypeAlias = Callable[[bytes], bool]
"""Returns whether a packet of a client is against it."""


def _body(packet: bytes) -> int:
    """Return where the body of a packet begins."""
    return 1 + next(i for i in range(1, 5) if packet[i] < 128)


def no_retained_will(packet: bytes) -> bool:
    """No last will is retained: its flag is the sixth bit of the flags of CONNECT."""
    return packet[0] >> 4 == 1 and bool(packet[_body(packet) + 7] & 0x20)


def no_retained_message(packet: bytes) -> bool:
    return packet[0] >> 4 == 3 and bool(packet[0] & 1)


def no_qos_1(packet: bytes) -> bool:
    return packet[0] >> 4 == 3 and bool(packet[0] & 6)


def no_qos_2(packet: bytes) -> bool:
    return packet[0] >> 4 == 3 and bool(packet[0] & 4)


def at_most_8_filters(packet: bytes, *, version5: bool) -> bool:
    if packet[0] >> 4 != 8:
        return False
    at, n = _body(packet) + 2, 0
    at += 1 + packet[at] if version5 else 0
    while at < len(packet):
        at += 2 + int.from_bytes(packet[at : at + 2]) + 1
        n += 1
    return n > 8


def forbidden(text: bytes) -> Rule:
    """Return the rule that no filter may contain a text."""
    return lambda packet: packet[0] >> 4 == 8 and text in packet


def at_most(n_bytes: int) -> Rule:
    return lambda packet: len(packet) > n_bytes


@contextlib.asynccontextmanager
async def managed(real_url: str, *rules: Rule) -> AsyncIterator[tuple[str, list[str]]]:
    """Run the relay; yield its address, and names of the rules that have ended a connection."""
    broken: list[str] = []
    real = urlsplit(real_url)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert real.port is not None
        from_broker, to_broker = await asyncio.open_connection(real.hostname, real.port)

        async def down() -> None:
            while data := await from_broker.read(65_536):
                writer.write(data)
                await writer.drain()

        pump = asyncio.create_task(down())
        rest = b""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                packets, rest = packets_of(rest + data)
                for packet in packets:
                    against = [rule for rule in rules if rule(packet)]
                    broken.extend(getattr(rule, "__name__", "rule") for rule in against)
                    if against:
                        raise ConnectionResetError
                    to_broker.write(packet)
                await to_broker.drain()
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)
        to_broker.transport.abort()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}", broken
    finally:
        server.close()
