"""Table of devices: slots, keys and pseudonyms. It holds no device id.

Keys and pseudonyms are keyed hashes, equal in every process that has the secret.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, with_room

NO_SLOT = -1
_PSEUDONYM_BYTES = 9  # 72 bits, 12 characters: collisions are negligible


def key_of(device: str, secret: bytes) -> int:
    """Return the number that stands for a device, below 2^64.

    Two devices have the same number with a probability of 2^-64; they then count as one.
    """
    return _number(device, _keyed(secret))


def _keyed(secret: bytes) -> blake2b:
    return blake2b(digest_size=8, key=secret, person=b"key")


def _number(device: str, keyed: blake2b) -> int:
    digest = keyed.copy()
    digest.update(device.encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest(), "big")


class Pseudonyms:
    """Makes the pseudonyms of devices; remembers the newest one of each slot.

    Parameters
    ----------
    secret
        Key of the pseudonyms. Without it, a pseudonym reveals nothing about another.
    under
        Digest, of 16 bytes at most, of what versions mean. Where a replay under other settings
        forms other groups of the same number, their members have other pseudonyms.
    """

    def __init__(self, secret: bytes, under: bytes = b"") -> None:
        self._secret, self._under = secret, under
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
            person=self._under,
            salt=version.to_bytes(8, "big", signed=True),
        )
        return urlsafe_b64encode(digest.digest()).decode()


class DeviceTable:
    """Assigns a slot (a small integer) to each device present, and pseudonyms to slots.

    Parameters
    ----------
    secret
        Key of the pseudonyms. A live service takes it from the operating system's generator, so
        that runs cannot be linked; a reproducible run derives it from a seed.
    max_devices
        Most devices present at once.
    under
        See `Pseudonyms`.

    Notes
    -----
    A device is known by its key alone, a keyed hash of its id; a pseudonym is a keyed hash of key
    and version. A replay yields the same pseudonyms, and without the secret a pseudonym reveals
    nothing about another.
    """

    def __init__(self, *, secret: bytes, max_devices: int, under: bytes = b"") -> None:
        self._secret, self._under = secret, under
        self._keyed = _keyed(secret)
        self._max_devices = max_devices
        self._slot_of: dict[int, int] = {}
        self._n_slots = 0
        self._free: list[int] = []
        self._pseudonyms = Pseudonyms(secret, under)
        self._key_of: NDArray[np.uint64] = np.zeros(64, np.uint64)
        self._publisher_of: NDArray[np.uint64] = np.zeros(64, np.uint64)
        self._is_taken: BoolArray = np.zeros(64, bool)
        self.n_freed: IntArray = np.zeros(64, np.int64)
        """How often each slot has been freed; whoever remembers a slot remembers this too."""

    def __len__(self) -> int:
        """Return the number of devices present."""
        return len(self._slot_of)

    def key(self, device: str) -> int:
        """Return the key of a device, see `key_of`."""
        return _number(device, self._keyed)

    def publisher(self, device: str) -> int:
        """Return the key of the first level of an id: the broker's rules bind it to a user."""
        return self.key(device.partition("/")[0])

    def slot(self, device: str) -> int:
        """Return the slot of a device, a new one for a new device; `NO_SLOT` if all are taken."""
        key = self.key(device)
        slot = self._slot_of.get(key)
        if slot is not None:
            return slot
        if self._free:
            slot = self._free.pop()
        elif self._n_slots < self._max_devices:
            slot = self._n_slots
            self._n_slots += 1
            if slot >= len(self._is_taken):
                self.n_freed = with_room(self.n_freed, slot + 1)
                self._key_of = with_room(self._key_of, slot + 1)
                self._publisher_of = with_room(self._publisher_of, slot + 1)
                self._is_taken = with_room(self._is_taken, slot + 1)
        else:
            return NO_SLOT
        self._slot_of[key] = slot
        self._key_of[slot], self._is_taken[slot] = key, True
        self._publisher_of[slot] = self.publisher(device) if "/" in device else key
        return slot

    def find(self, key: int) -> int:
        """Return the slot of the device with a key, `NO_SLOT` if it has none."""
        return self._slot_of.get(key, NO_SLOT)

    def keys(self, slots: Int32Array) -> NDArray[np.uint64]:
        """Return the key of the device in each slot: in every process with the secret, equal."""
        return self._key_of[slots]

    def publishers(self, slots: Int32Array) -> NDArray[np.uint64]:
        """Return the key of the publisher of the device in each slot, see `publisher`."""
        return self._publisher_of[slots]

    def free(self, slots: Int32Array) -> None:
        """Forget the devices of these slots."""
        for slot in slots.tolist():
            if slot < self._n_slots and self._is_taken[slot]:
                del self._slot_of[int(self._key_of[slot])]
                self._is_taken[slot] = False
                self.n_freed[slot] += 1
                self._free.append(slot)
        self._pseudonyms.forget(slots.tolist())

    def pseudonyms(self, slots: Sequence[int], versions: Sequence[int]) -> list[str]:
        """Return the pseudonym of each slot in the given version."""
        at = np.array(slots, np.int64)
        if not self._is_taken[at].all():
            raise KeyError("this slot has no device")
        return self._pseudonyms.of(slots, self._key_of[at].tolist(), versions)

    def state(self) -> dict[str, Any]:
        """Return which devices have which slots."""
        n = self._n_slots
        columns = {
            "key": self._key_of,
            "publisher": self._publisher_of,
            "is_taken": self._is_taken,
            "n_freed": self.n_freed,
        }
        free = np.array(self._free, np.int32)
        return {name: column[:n] for name, column in columns.items()} | {"free": free}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of a table with the same secret."""
        self._n_slots = n = len(state["key"])
        self._key_of = with_room(state["key"], n + 1)
        self._publisher_of = with_room(state["publisher"], n + 1)
        self._is_taken = with_room(state["is_taken"], n + 1)
        self.n_freed = with_room(state["n_freed"], n + 1)
        self._free = state["free"].tolist()
        taken = np.flatnonzero(state["is_taken"])
        self._slot_of = dict(zip(state["key"][taken].tolist(), taken.tolist(), strict=True))
        self._pseudonyms = Pseudonyms(self._secret, self._under)
