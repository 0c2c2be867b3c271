"""Channel between a gateway and its receiving process: short messages, each with its length.

See `receiving` for the gateway's end and `receiver` for the process's.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import msgspec

from anonymizer.pipeline.ports import LinkCounts
from anonymizer.transport.shared_batches import Place

BEAT_S = 1.0
"""How often the process says that it runs."""
_LENGTH_BYTES = 4


class _Message(msgspec.Struct, frozen=True, tag=True):
    """A message of either end."""


class Begin(_Message, frozen=True):
    """To the process, first of all: what to connect to."""

    broker: dict[str, Any]
    """The settings of the broker without the password."""
    password: str | None
    client_id: str
    subscriptions: list[tuple[str, int]]
    first_receipt: int
    """Above all receipts of earlier processes: what was delivered by those settles nothing here."""
    counts: LinkCounts
    """What happened to the connections before."""
    max_payload_bytes: int
    """As of `BrokerLink`."""

    def __repr__(self) -> str:
        """Do not reveal the password."""
        return "Begin(...)"


class Acknowledge(_Message, frozen=True):
    """To the process: receipts of settled deliveries, as int64."""

    receipts: bytes


class Taken(_Message, frozen=True):
    """To the process: a batch was taken out of the shared memory."""

    place: Place


class Stop(_Message, frozen=True):
    """To the process: end the inflow; it answers with `Stopped`."""


class Close(_Message, frozen=True):
    """To the process: disconnect and end."""


class Arrived(_Message, frozen=True):
    """From the process: a batch is in the shared memory."""

    place: Place


class Alive(_Message, frozen=True):
    """From the process, every `BEAT_S`: it runs; and the counts of its connections."""

    counts: LinkCounts | None = None
    """None: it has not begun."""


class State(_Message, frozen=True):
    """From the process: whether it is connected, why not, and the counts of its connections."""

    connected: bool
    reason: str
    counts: LinkCounts


class Quarantined(_Message, frozen=True):
    """From the process: a packet is skipped from now on; see `OnQuarantined`."""

    n_bytes: int
    name: str


class Stopped(_Message, frozen=True):
    """From the process: no batch follows."""


Message: TypeAlias = (
    Begin | Acknowledge | Taken | Stop | Close | Alive | Arrived | State | Quarantined | Stopped
)


class Channel(asyncio.Protocol):
    """One end of a channel, a protocol of a connected socket.

    Parameters
    ----------
    on_message
        Receives each whole message, in order.

    Attributes
    ----------
    ended
        Set when the other end is gone.
    n_heard
        Messages that the other end has sent.
    failure
        The error of `on_message`, if that closed this end.
    """

    def __init__(self, on_message: Callable[[Message], None]) -> None:
        self._on_message = on_message
        self._decoder = msgspec.msgpack.Decoder(Message)
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self.ended = asyncio.Event()
        self.n_heard = 0
        self.failure: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to use the socket."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end."""
        del exc
        self._transport = None
        self.ended.set()

    def data_received(self, data: bytes) -> None:
        """Pass on the messages that these bytes complete."""
        self._buffer += data
        stream, start = bytes(self._buffer), 0
        while self._transport is not None and not self._transport.is_closing():
            body = start + _LENGTH_BYTES
            end = body + int.from_bytes(stream[start:body])
            if end > len(stream) or body > len(stream):
                break
            self.n_heard += 1
            try:
                self._on_message(self._decoder.decode(stream[body:end]))
            except Exception as error:  # noqa: BLE001  the loop would only log it; `run` raises it
                self.failure = error
                self._transport.abort()
            start = end
        del self._buffer[:start]

    def send(self, message: Message) -> None:
        """Send a message; without a connection it is dropped."""
        if self._transport is not None:
            body = msgspec.msgpack.encode(message)
            self._transport.write(len(body).to_bytes(_LENGTH_BYTES) + body)

    def close(self) -> None:
        """Send what has been sent, then close."""
        if self._transport is not None:
            self._transport.close()
