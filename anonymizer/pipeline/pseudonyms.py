"""Keys and pseudonyms of devices: keyed hashes, equal in every process that has the secret."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from hashlib import blake2b

_PSEUDONYM_BYTES = 9  # 72 bits, 12 characters: collisions are negligible


def key_of(device: str, secret: bytes) -> int:
    """Return the number that stands for a device, below 2^64.

    Two devices have the same number with a probability of 2^-64; they then count as one.
    """
    digest = blake2b(
        device.encode("utf-8", "surrogatepass"), digest_size=8, key=secret, person=b"key"
    )
    return int.from_bytes(digest.digest(), "big")


class Pseudonyms:
    """Makes the pseudonyms of devices; remembers the newest one of each slot.

    Parameters
    ----------
    secret
        Key of the pseudonyms. Without it, a pseudonym reveals nothing about another.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._of_slot: dict[int, tuple[int, int, str]] = {}

    def __repr__(self) -> str:
        """Reveal nothing."""
        return "Pseudonyms(...)"

    def of(self, slots: Iterable[int], keys: Iterable[int], versions: Iterable[int]) -> list[str]:
        """Return the pseudonym of the device in each slot, by its key, in a version."""
        names = []
        for slot, key, version in zip(slots, keys, versions, strict=True):
            known = self._of_slot.get(slot)
            if known is None or known[0] != key or known[1] != version:
                known = self._of_slot[slot] = key, version, self._make(key, version)
            names.append(known[2])
        return names

    def forget(self, slots: Iterable[int]) -> None:
        """Forget the pseudonyms of these slots."""
        for slot in slots:
            self._of_slot.pop(slot, None)

    def _make(self, key: int, version: int) -> str:
        digest = blake2b(
            key.to_bytes(8, "big"),
            digest_size=_PSEUDONYM_BYTES,
            key=self._secret,
            salt=version.to_bytes(8, "big", signed=True),
        )
        return urlsafe_b64encode(digest.digest()).decode()
