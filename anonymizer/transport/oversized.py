"""Messages above the size limit: read to their end without being held in memory.

The topic and the packet identifier are kept, so that such a message is counted where it belongs and
acknowledged like any other. In place of its payload the consumer gets one that is just too large
for it.
"""

import hashlib

_PREFIX_BYTES = 2
"""Of the length of the topic, and of the identifier."""
_DIGEST_BYTES = 16


class Oversized:
    """A PUBLISH above the limit, while its bytes arrive.

    Parameters
    ----------
    flags
        The first byte of the packet.
    n_bytes
        Length of what follows the packet's own length, as the packet states it.
    """

    def __init__(self, flags: int, n_bytes: int) -> None:
        self.flags = flags
        self.n_bytes = n_bytes
        self.head = bytearray()
        """Topic with its length, and the identifier."""
        self._n_left = n_bytes
        self._hash = hashlib.blake2b(digest_size=_DIGEST_BYTES)

    def take(self, data: bytes) -> bytes:
        """Take in the next bytes of the connection; return those that follow the packet."""
        own, rest = data[: self._n_left], data[self._n_left :]
        self._n_left -= len(own)
        at = 0
        while at < len(own) and (n_missing := self._head_bytes() - len(self.head)) > 0:
            self.head += own[at : at + n_missing]
            at += n_missing
        self._hash.update(own[at:])
        return rest

    def _head_bytes(self) -> int:
        """Return the length of the head, as far as it is known."""
        if len(self.head) < _PREFIX_BYTES:
            return _PREFIX_BYTES
        has_identifier = bool(self.flags >> 1 & 3)
        topic = int.from_bytes(self.head[:_PREFIX_BYTES])
        return _PREFIX_BYTES + topic + _PREFIX_BYTES * has_identifier

    @property
    def is_over(self) -> bool:
        """Whether the whole packet has arrived."""
        return not self._n_left

    def payload(self, n_bytes: int) -> bytes:
        """Return a payload of this length that stands for the skipped one.

        Equal messages have equal ones and others do not, so that a repetition is recognized.
        """
        return self._hash.digest().ljust(n_bytes, b"\x00")
