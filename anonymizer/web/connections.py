"""Connections of the HTTP server: a new client finds a place, however many others are idle.

It refuses what is not a request, and heads above the limit.

A client that sends half a request, or does not read its answer, keeps a connection without keeping
the server busy. Such a connection has a deadline, and beyond the largest number of connections the
one that has waited for its client the longest is closed. Clients that send a whole request, as
probes and scrapers do, are therefore always answered.
"""

import asyncio
import socket
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class Limits(NamedTuple):
    """Limits of the connections of a server."""

    connections: int = 320
    """Largest number of connections. It must exceed the number of requests that the application
    accepts at a time, so that some connections always wait for their client."""
    request_s: float = 10.0
    """Time for sending a request, from the start of the connection or the previous answer."""
    read_s: float = 20.0
    """Longest time in which a client reads nothing of an answer that waits for it, from when the
    buffers of both systems are full."""
    head_bytes: int = 16_384
    """Largest size of the request line and the headers."""


LIMITS = Limits()
_SEND_BYTES = 65_536
"""What the system holds of an answer. It would hold megabytes, and take them for read."""
_LOOKS = 4
"""At an unread answer, in the time after which its connection is given up."""
_PARTING_S = 1.0
"""Time for a client to read why it was refused. What it sends meanwhile is dropped."""


def protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Return what `uvicorn.Config(http=...)` makes connections with."""
    return cast("type[asyncio.Protocol]", partial(_Connection, limits=limits))


def _turn(connection: "_Connection") -> tuple[bool, float]:
    """Return the sort key of a waiting connection; the first makes room for another."""
    return connection.is_unread, connection.since_s


class _Requests(h11.Connection):
    """Reads requests; refuses a head above the limit even if it arrived whole in one piece."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(h11.SERVER, most_bytes)
        self._most_bytes = most_bytes
        self.status = HTTPStatus.BAD_REQUEST
        """Of the answer to what was refused."""

    def next_event(self) -> Any:  # noqa: ANN401  as of h11
        """Return the next event; see `h11.Connection.next_event`."""
        n_before = self._n_unread() if self.their_state is h11.IDLE else 0
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            self.status = HTTPStatus(error.error_status_hint)
            raise
        if isinstance(event, h11.Request) and n_before - self._n_unread() > self._most_bytes:
            self.status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise h11.RemoteProtocolError("the head is too large", self.status)
        return event

    def _n_unread(self) -> int:
        return len(self.trailing_data[0])


class _Connection(H11Protocol):
    """One connection; `connections`, which it inherits, is the set of all of them."""

    def __init__(self, *args: Any, limits: Limits, **kwargs: Any) -> None:  # noqa: ANN401  uvicorn's
        super().__init__(*args, **kwargs)
        self.conn = self._requests = _Requests(limits.head_bytes)
        self._limits = limits
        self._is_refused = False
        self.since_s = 0.0
        self._unread_bytes = 0
        self._read_s = 0.0
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Whether it is the client's turn: to send a request, or to read the answer."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.is_unread

    @property
    def is_unread(self) -> bool:
        """Whether the client leaves an answer unread."""
        return self.flow.write_paused

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request, and close another connection if there are too many."""
        end = transport.get_extra_info("socket")
        if end is not None:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        super().connection_made(cast("asyncio.Transport", transport))
        self._wait(self._limits.request_s)
        if len(self.connections) > self._limits.connections:
            others = [c for c in self.connections if isinstance(c, _Connection) and c is not self]
            longest = min((c for c in others if c.waits), key=_turn, default=self)
            # At once, because several connections may begin before the loop calls connection_lost.
            self.connections.discard(longest)
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read requests, unless the client was refused."""
        if not self._is_refused:
            super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request, with the headers of every answer, and close the connection."""
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.abort()
            return
        status, self._is_refused = self._requests.status, True
        if status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            msg = "the head of the request is too large"
        headers = [
            *self.server_state.default_headers,
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(msg)).encode()),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=status, headers=headers, reason=status.phrase),
            h11.Data(data=msg.encode("ascii")),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        # To close at once would take the answer away from a client that is still sending.
        self.transport.write_eof()
        self._wait(_PARTING_S)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, once the answer has been read."""
        if not self.is_unread:
            self._wait(self._limits.request_s)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        self._read_s = self.loop.time()
        self._wait(self._limits.read_s / _LOOKS)

    def resume_writing(self) -> None:
        """Begin to wait for the next request, if the answer is complete."""
        super().resume_writing()
        self._wait(self._limits.request_s)

    def _wait(self, seconds: float) -> None:
        self.since_s = self.loop.time()
        self._unread_bytes = self.transport.get_write_buffer_size()
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        now_s = self.loop.time()
        if self.is_unread and self.transport.get_write_buffer_size() < self._unread_bytes:
            self._read_s = now_s
        if self.is_unread and now_s - self._read_s < self._limits.read_s:
            since_s = self.since_s
            self._wait(self._limits.read_s / _LOOKS)
            self.since_s = since_s  # a client that reads slowly keeps its turn in the queue
        elif self.waits:
            # Not `close`, which would wait for the client to read what is left.
            self.transport.abort()
