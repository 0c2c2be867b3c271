"""The wire: the bytes of one connection, read in bursts and written once a turn, within bounds."""

import asyncio
from collections.abc import Callable
from typing import cast

READ_BYTES = 1 << 18
"""Most bytes that the event loop reads at once."""
_TURNS_TO_READ = 2
"""Of the event loop, until it has read what is there: it asks the system, then calls back."""
_MOST_READS = 16
"""Of `Wire.collect`: 4 MiB, several times what arrives in a rest."""
_FLUSH_BYTES = 1 << 16
_HIGH_WATER_BYTES = 1 << 18


class Wire(asyncio.Protocol):
    """A plain or TLS connection to a peer, created by `loop.create_connection`.

    Parameters
    ----------
    on_bytes
        Receives the bytes of one read, at most 256 KiB, which bounds the work of a turn.
    on_lost
        Called once when the connection is lost, with the error if there was one.
    """

    def __init__(
        self, *, on_bytes: Callable[[bytes], None], on_lost: Callable[[Exception | None], None]
    ) -> None:
        self._on_bytes = on_bytes
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []
        self._n_outgoing = 0
        self._writable = asyncio.Event()
        self._resting: asyncio.TimerHandle | None = None
        self._more = False
        """Whether the last read was a full one, so that more is there."""
        self.reading = True
        """Whether arriving bytes are read, apart from rests."""
        self.was_made = False
        """Whether there has been a connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to use the connection."""
        self.was_made = True
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the loss, and wake waiting writers so that they notice it."""
        self._transport = None
        self._writable.set()
        self._on_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass the bytes to `on_bytes`."""
        self._more = len(data) >= READ_BYTES
        self._on_bytes(data)

    def pause_writing(self) -> None:
        """Make writers wait, because the peer reads too slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let writers continue."""
        self._writable.set()

    @property
    def is_writable(self) -> bool:
        """Whether `writable` would return at once."""
        return self._writable.is_set()

    async def writable(self) -> None:
        """Wait until the peer has read most of what was written, or the connection is lost."""
        await self._writable.wait()

    def write(self, data: bytes) -> None:
        """Send bytes, together with everything else written in this turn of the loop.

        Without a connection they are dropped.
        """
        if self._transport is None:
            return
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(data)
        self._n_outgoing += len(data)
        if self._n_outgoing >= _FLUSH_BYTES:
            self._flush()

    def rest(self, duration_s: float) -> None:
        """Pause reading for a while; arriving bytes stay in the operating system's buffer.

        Many small reads become a few large ones: the cost of a read is the wake-up, not the bytes.
        """
        if self._resting is None:
            self._resting = asyncio.get_running_loop().call_later(duration_s, self.end_rest)
            self._pause_or_resume()

    def end_rest(self) -> None:
        """Continue to read at once if reading rests."""
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
            self._pause_or_resume()

    async def collect(self) -> None:
        """End a rest, and pass on all that has arrived meanwhile."""
        if self._resting is None:
            return
        self.end_rest()
        self._more = True
        for _ in range(_MOST_READS):
            if self._more:
                self._more = False
                for _ in range(_TURNS_TO_READ):
                    await asyncio.sleep(0)

    def read(self, *, on: bool) -> None:
        """Read arriving bytes, or leave them with the operating system and so with the peer."""
        if on != self.reading:
            self.reading = on
            self._pause_or_resume()

    def close(self) -> None:
        """Send what has been written, then close."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._outgoing.clear()
        if self._transport is not None:
            self._transport.abort()

    def _flush(self) -> None:
        outgoing, self._outgoing, self._n_outgoing = self._outgoing, [], 0
        if outgoing and self._transport is not None:
            self._transport.write(b"".join(outgoing))

    def _pause_or_resume(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self.reading and self._resting is None:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
