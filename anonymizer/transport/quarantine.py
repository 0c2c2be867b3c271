"""Packets that have ended connections again and again: they are skipped from then on.

A broker delivers what is not acknowledged again before anything else. A packet that cannot be read
would therefore end every connection, and hold up everything behind it for ever.
"""

import hashlib
import secrets
from collections.abc import Callable

MOST_ENDS = 3
"""Connections that a packet may end."""
_MOST_KNOWN = 1000
"""Packets that are remembered; the one that came last stays longest."""

OnQuarantined = Callable[[int, str], None]
"""Called with the length of a packet and a keyed hash of it, once when it is skipped first."""


class Quarantine:
    """The packets that ended connections of one link, as hashes with a key that is nowhere else.

    `on_quarantined`: see `OnQuarantined`.
    """

    def __init__(self, on_quarantined: OnQuarantined = lambda *_: None) -> None:
        self._on_quarantined = on_quarantined
        self._key = secrets.token_bytes(32)
        self._n_ends: dict[bytes, int] = {}  # the oldest first

    def holds(self, *parts: bytes, n_bytes: int) -> bool:
        """Take note of a packet that breaks the protocol; return whether it is to be skipped.

        If not, it is to end the connection.

        Parameters
        ----------
        parts
            Its contents, without what differs when it is delivered again.
        n_bytes
            Its length.
        """
        hashed = hashlib.blake2b(key=self._key, digest_size=16)
        for part in parts:
            hashed.update(part)
        name = hashed.digest()
        n_ends = self._n_ends.pop(name, 0)
        self._n_ends[name] = n_ends + 1
        if len(self._n_ends) > _MOST_KNOWN:
            del self._n_ends[next(iter(self._n_ends))]
        if n_ends == MOST_ENDS:
            self._on_quarantined(n_bytes, name.hex())
        return n_ends >= MOST_ENDS
