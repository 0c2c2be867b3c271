"""MQTT over WebSocket: the bytes of a wire, in frames of one connection (RFC 6455).

The library knows the protocol and no sockets; this module connects it with the transport of the
loop. Each write is one binary frame. An MQTT packet may be spread over frames, and a frame may
hold several.
"""

import asyncio
from typing import TYPE_CHECKING, cast

from anonymizer.errors import TransportError
from anonymizer.extras import extra
from anonymizer.transport.wire import Wire

if TYPE_CHECKING:
    from websockets.frames import Frame

_SUBPROTOCOL = "mqtt"
_MAX_FRAME_BYTES = 257 << 20
"""Largest frame: the largest packet of MQTT and its head. The library holds a frame until it is
complete; if it ended the connection instead, the broker would deliver the same one again."""
_READ_BYTES = 1 << 18
"""Most bytes that the wire gets in one call, as from a socket."""


class WebSocket(asyncio.Protocol):
    """A WebSocket between the transport of a connection and a wire.

    Parameters
    ----------
    wire
        Gets a transport when the broker has accepted the WebSocket.
    url
        Address, `ws://host:port/path` or `wss://...`.

    Raises
    ------
    MissingExtraError
        If the library is not installed.
    """

    def __init__(self, wire: Wire, url: str) -> None:
        with extra("websockets"):
            from websockets.client import ClientProtocol  # noqa: PLC0415  an extra
            from websockets.typing import Subprotocol  # noqa: PLC0415  likewise
            from websockets.uri import parse_uri  # noqa: PLC0415  likewise
        self._wire = wire
        self._protocol: ClientProtocol = ClientProtocol(
            parse_uri(url), subprotocols=[Subprotocol(_SUBPROTOCOL)], max_size=_MAX_FRAME_BYTES
        )
        self._transport: asyncio.Transport | None = None
        self._is_open = False
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the broker has accepted; a TransportError if it has refused."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask the broker for a WebSocket."""
        self._transport = cast("asyncio.Transport", transport)
        self._protocol.send_request(self._protocol.connect())
        self._send()

    def data_received(self, data: bytes) -> None:
        """Pass the contents of complete frames to the wire."""
        self._protocol.receive_data(data)
        self._take()

    def eof_received(self) -> None:
        """Let the connection end."""
        self._protocol.receive_eof()
        self._take()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass the loss on to the wire, or to whoever waits for the handshake."""
        self._transport = None
        if self._is_open:
            self._wire.connection_lost(exc)
        elif not self.opened.done():
            self.opened.set_exception(exc or TransportError("closed before the WebSocket was open"))

    def pause_writing(self) -> None:
        """Make writers wait."""
        self._wire.pause_writing()

    def resume_writing(self) -> None:
        """Let writers continue."""
        self._wire.resume_writing()

    def write(self, data: bytes) -> None:
        """Send bytes as one frame."""
        if self._transport is not None and self._protocol.close_expected() is False:
            self._protocol.send_binary(data)
            self._send()

    def close(self) -> None:
        """Close the WebSocket, then the connection."""
        if self._transport is not None:
            if not self._protocol.close_expected():
                self._protocol.send_close()
                self._send()
            self._transport.close()

    def _take(self) -> None:
        """Handle what the library has found in the bytes."""
        for event in self._protocol.events_received():
            if not self._is_open:
                self._decide()
            else:
                self._read(cast("Frame", event))
        if self._protocol.handshake_exc is not None and not self.opened.done():
            self._decide()
        self._send()
        if self._protocol.close_expected() and self._transport is not None:
            self._transport.close()

    def _decide(self) -> None:
        refusal = self._protocol.handshake_exc
        if refusal is None and self._protocol.subprotocol != _SUBPROTOCOL:
            refusal = TransportError("the server offers no MQTT")
        if refusal is not None:
            if not self.opened.done():
                self.opened.set_exception(TransportError(f"no WebSocket: {refusal}"))
            if self._transport is not None:
                self._transport.abort()
            return
        self._is_open = True
        self._wire.connection_made(cast("asyncio.Transport", _FramedTransport(self)))
        if not self.opened.done():
            self.opened.set_result(None)

    def _read(self, frame: "Frame") -> None:
        from websockets.frames import Opcode  # noqa: PLC0415  an extra, which is installed

        if frame.opcode in {Opcode.BINARY, Opcode.CONT}:
            for begin in range(0, len(frame.data), _READ_BYTES):
                self._wire.data_received(bytes(frame.data[begin : begin + _READ_BYTES]))
        elif frame.opcode is Opcode.TEXT and self._transport is not None:
            self._transport.abort()  # MQTT has no text

    def _send(self) -> None:
        for data in self._protocol.data_to_send():
            if data and self._transport is not None:
                self._transport.write(data)

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport of the connection; None after it is lost."""
        return self._transport


class _FramedTransport:
    """What a wire uses of a transport, over a WebSocket."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    def write(self, data: bytes) -> None:
        self._socket.write(data)

    def close(self) -> None:
        self._socket.close()

    def abort(self) -> None:
        if self._socket.transport is not None:
            self._socket.transport.abort()

    def is_closing(self) -> bool:
        transport = self._socket.transport
        return transport is None or transport.is_closing()

    def pause_reading(self) -> None:
        if self._socket.transport is not None:
            self._socket.transport.pause_reading()

    def resume_reading(self) -> None:
        if self._socket.transport is not None:
            self._socket.transport.resume_reading()

    def set_write_buffer_limits(self, high: int) -> None:
        if self._socket.transport is not None:
            self._socket.transport.set_write_buffer_limits(high=high)
