"""A broker that misbehaves by a schedule: a relay before a real one cuts, freezes and repeats.

Each connection has one fault of the schedule and ends with it. When the schedule is over, the
relay passes everything on. Vehicles and analysts that connect to the real broker see no fault.
"""

import asyncio
import contextlib
import random
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import urlsplit

Kind = Literal["cut", "freeze", "dribble", "repeat", "lose", "babble"]
_PUBLISH, _PUBACK = 3, 4
_DUP, _QOS_1 = 0x08, 0x02
_MALFORMED = b"\x00\x00"
"""A packet of the reserved type 0."""
_READ_BYTES = 65_536
_LOSES_S = 2.0


@dataclass(frozen=True)
class Fault:
    """What goes wrong on one connection."""

    kind: Kind
    """`cut`: it breaks, also within a packet. `freeze`: nothing passes for a while; it breaks after
    as many bytes again. `dribble`: a few bytes at a time. `repeat`: each message at QoS 1 comes
    twice. `lose`: acknowledgements are lost, in both directions, for `_LOSES_S` at most: then both
    ends may wait for each other, and few bytes pass. `babble`: what is no packet comes between two
    packets. In the end it breaks."""
    n_bytes: int
    """Bytes in one direction after which it happens, or until which it goes on."""
    to_client: bool
    """The direction: to the client, else to the broker."""
    seconds: float
    """Length of a freeze."""

    def __str__(self) -> str:
        """Return one line of a printed schedule."""
        side = "client" if self.to_client else "broker"
        return f"{self.kind} ({self.seconds:.2f} s), {self.n_bytes} bytes to the {side}"


def schedule(seed: int, n: int, *, most_bytes: int = 20_000) -> list[Fault]:
    """Return faults of all kinds, in random order; equal seeds give equal faults."""
    rng = random.Random(seed)  # noqa: S311  faults, no secrets
    kinds = get_args(Kind)
    faults = []
    for i in range(n):
        to_client = rng.random() < 0.6
        most = most_bytes if to_client else most_bytes // 20  # acknowledgements are short
        n_bytes = round(most ** rng.random())
        faults.append(Fault(kinds[i % len(kinds)], n_bytes, to_client, rng.uniform(0.02, 0.5)))
    rng.shuffle(faults)
    return faults


class FaultyBroker:
    """Relays connections to the real broker; after `begin`, each with a fault of the schedule.

    Attributes
    ----------
    url
        Its address, while it serves.
    happened
        Number of the faults that have ended their connection, by kind.
    """

    def __init__(self, real_url: str, faults: Sequence[Fault]) -> None:
        self.url = ""
        self.happened: Counter[str] = Counter()
        self._real = urlsplit(real_url)
        self._to_come = deque(faults)
        self._n_faults = len(faults)
        self._begun = False
        self._over = asyncio.Event()
        self._is_away = False
        self._open: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Accept connections while the block runs."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield
        finally:
            server.close()
            self._break_all()

    def begin(self) -> None:
        """Break the connections there are; those that follow have faults."""
        self._begun = True
        self._break_all()

    @contextlib.asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Break all connections, and accept none that lasts, while the block runs."""
        self._is_away = True
        self._break_all()
        try:
            yield
        finally:
            self._is_away = False

    async def until_over(self) -> None:
        """Wait until all faults have happened."""
        await self._over.wait()

    def _break_all(self) -> None:
        for connection in self._open:
            connection.cancel()

    async def _accept(
        self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        if self._is_away:
            to_client.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        fault = self._to_come.popleft() if self._begun and self._to_come else None
        try:
            await self._relay(from_client, to_client, fault)
        except (ConnectionError, asyncio.CancelledError):
            pass  # one end is gone, or the relay breaks the connection
        finally:
            self._open.discard(task)
            to_client.transport.abort()
            if fault is not None:
                self.happened[fault.kind] += 1
                if self.happened.total() == self._n_faults:
                    self._over.set()

    async def _relay(
        self,
        from_client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        fault: Fault | None,
    ) -> None:
        from_broker, to_broker = await asyncio.open_connection(self._real.hostname, self._real.port)
        down = asyncio.create_task(_pass_on(from_broker, to_client, fault, to_client=True))
        up = asyncio.create_task(_pass_on(from_client, to_broker, fault, to_client=False))
        try:
            longest_s = _LOSES_S if fault is not None and fault.kind == "lose" else None
            await asyncio.wait([down, up], timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in (down, up):
                pump.cancel()
            await asyncio.gather(down, up, return_exceptions=True)
            to_broker.transport.abort()


async def _pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    fault: Fault | None,
    *,
    to_client: bool,
) -> None:
    """Pass bytes on in one direction, until the fault ends the connection."""
    affected = fault is not None and fault.to_client == to_client
    left = fault.n_bytes if fault is not None and affected else None
    frozen = False
    rest = b""
    while data := await reader.read(_READ_BYTES):
        parts: Iterator[bytes] = iter([data])
        if fault is not None and fault.kind in {"repeat", "lose", "babble"}:
            packets, rest = packets_of(rest + data)
            parts = _spoiled(packets, fault.kind)
        elif fault is not None and affected and fault.kind == "dribble":
            parts = (data[i : i + 7] for i in range(0, len(data), 7))
        for part in parts:
            while left is not None and fault is not None and len(part) >= left:
                if fault.kind == "babble":  # only between packets: TCP does not change bytes
                    writer.write(part + _MALFORMED)
                    await writer.drain()
                    await reader.read()  # until the end that does not like it hangs up
                    return
                writer.write(part[:left])
                await writer.drain()
                if fault.kind != "freeze" or frozen:
                    return
                await asyncio.sleep(fault.seconds)
                part, left, frozen = part[left:], fault.n_bytes, True  # noqa: PLW2901
            if left is not None:
                left -= len(part)
            writer.write(part)
            await writer.drain()


def packets_of(stream: bytes) -> tuple[list[bytes], bytes]:
    """Split a stream into whole MQTT packets and the rest."""
    packets, start = [], 0
    while start + 2 <= len(stream):
        at, length = start + 1, 0
        while at < len(stream):
            length |= (stream[at] & 127) << 7 * (at - start - 1)
            at += 1
            if stream[at - 1] < 128:
                break
        else:
            break
        if at + length > len(stream):
            break
        packets.append(stream[start : at + length])
        start = at + length
    return packets, stream[start:]


def _spoiled(packets: Sequence[bytes], kind: Kind) -> Iterator[bytes]:
    for packet in packets:
        if kind == "lose" and packet[0] >> 4 == _PUBACK:
            continue
        yield packet
        if kind == "repeat" and packet[0] >> 4 == _PUBLISH and packet[0] & _QOS_1:
            yield bytes([packet[0] | _DUP]) + packet[1:]
