"""Thresholds that own devices cannot be brought to: a secret one for each figure and interval.

A figure of at least k devices appears and disappears with one device if it stands at k. Whoever has
some devices among those that are counted can bring it there, and then sees everybody who comes and
goes. So thresholds are spread over a whole step, by a keyed hash: a figure appears at k + u devices
and moves on at multiples of k, plus u, where u is below k, and another in each interval. Wherever a
number of devices stands, one device more or less changes what is told in one of k intervals, as
without devices of one's own. A threshold that lasts would be found by one device more in each
interval, and known from then on. Nothing is remembered, so a cluster and one process tell the same.

Notes
-----
Figures of the same devices over T intervals tell their number to about k / (2 sqrt(T)).

References
----------
.. [1] L. G. Roberts, "Picture coding using pseudo-random noise", IRE Transactions on Information
   Theory 8, 1962 (a quantizer with dither).
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from anonymizer.domain.arrays import BoolArray, IntArray

Key = tuple[int, ...]
"""Names a figure, the same in every interval: its kind, and its area."""


class SecretThresholds:
    """Decides which figures of an interval are told, and by which multiples of k.

    Parameters
    ----------
    secret
        The same wherever the same is to be told; None: thresholds are sharp.
    """

    def __init__(self, secret: bytes | None = None, *, interval: int = 0) -> None:
        self._key = None
        if secret is not None:
            salt = interval.to_bytes(8, "big", signed=True)
            made = blake2b(digest_size=32, key=secret[:64], salt=salt, person=b"thresholds")
            self._key = made.digest()

    @property
    def are_sharp(self) -> bool:
        """Whether all are at k and its multiples."""
        return self._key is None

    def passes(self, keys: Sequence[Key], n: IntArray, k: int) -> BoolArray:
        """Return which figures are told, given their numbers of devices, shape (keys,)."""
        told: BoolArray = n >= k
        if self._key is not None:
            near = np.flatnonzero(told & (n < 2 * k - 1))
            told[near] = n[near] >= k + self._offsets(keys, near, k)
        return told

    def levels(self, keys: Sequence[Key], n: IntArray, k: int) -> IntArray:
        """Return the multiples of k that stand for numbers of at least k, shape (keys,).

        There are so many devices, or up to `most_more` more.
        """
        offset = np.zeros(1, np.int64)
        if self._key is not None:
            offset = self._offsets(keys, np.arange(len(n)), k)
        level: IntArray = np.maximum((n - offset) // k * k, k)
        return level

    def advances(self, keys: Sequence[Key], n: IntArray, k: int) -> IntArray:
        """Return by how much figures that begin anew move on, multiples of k, shape (keys,)."""
        moves: IntArray = np.where(self.passes(keys, n, k), self.levels(keys, n, k), 0)
        return moves

    def most_more(self, k: int) -> int:
        """Return how many more devices there may be than a level says, or below a figure at all."""
        return k - 1 if self._key is None else 2 * k - 2

    def _offsets(self, keys: Sequence[Key], chosen: IntArray, k: int) -> IntArray:
        """Return the offset of each chosen figure, at least 0 and below k."""
        key = self._key or b""
        found = (
            blake2b(np.array(keys[i], np.int64).tobytes(), digest_size=8, key=key).digest()
            for i in chosen.tolist()
        )
        numbers = np.frombuffer(b"".join(found), np.uint64)
        return (numbers % np.uint64(k)).astype(np.int64)
