"""The broker's session for records: what the store knows of it, and whether it was lost.

While no gateway is connected, the broker keeps records in a session. If that is gone at the first
connection of the next gateway, because another client took it over, the broker lost its disk or it
expired, the queued messages are lost. Nobody can count it, so it is said until an operator has seen
it.
"""

import asyncio
import hashlib
import struct
from collections.abc import Callable

import structlog

SHOWN_S = 3600.0
"""How long a loss is a problem of the gateway, unless an operator acknowledges it."""
_LAYOUT = struct.Struct("<16sd")


class KeptSession:
    """What is known of the session.

    Parameters
    ----------
    stored
        What `stored` was in an earlier process; empty: nothing.
    name
        Client id and broker: the session of another name is another one.
    """

    def __init__(self, stored: bytes, *, name: str, wall: Callable[[], float]) -> None:
        self._name = hashlib.blake2b(name.encode(), digest_size=16).digest()
        self._wall = wall
        known, lost_s = _LAYOUT.unpack(stored) if stored else (b"", 0.0)
        self.exists = known == self._name
        """Whether the broker should have it."""
        self._lost_s = lost_s
        self.changed = asyncio.Event()
        """Set when there is something new to be stored."""
        self._log = structlog.get_logger()

    @property
    def stored(self) -> bytes:
        """All of it that outlives the process; no client id can be read from it."""
        return _LAYOUT.pack(self._name if self.exists else b"", self._lost_s)

    @property
    def problem(self) -> str:
        """A loss that nobody has acknowledged and that is not long ago; else empty."""
        if not self._lost_s or self._wall() - self._lost_s > SHOWN_S:
            return ""
        return (
            "records: the broker had lost the session at the start, so records of the time before"
            " are lost (POST /acknowledge)"
        )

    def connected(self, *, lost: bool) -> None:
        """Note a connection at which the broker had lost the session, or had not."""
        if not self.exists:
            self.exists = True
            self.changed.set()
        elif lost:
            self._lost_s = self._wall()
            self._log.error(
                "session for records lost",
                meaning="what was sent while no gateway was connected is lost, and not counted",
            )
            self.changed.set()

    def acknowledge(self) -> None:
        """Note that an operator has seen the loss."""
        self._lost_s = 0.0
        self.changed.set()
