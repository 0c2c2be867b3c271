"""Table of devices: slots and pseudonyms. Device ids are stored here only, in memory only."""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.pipeline.names import with_room

NO_SLOT = -1
_PSEUDONYM_BYTES = 9  # 72 bits, 12 characters: collisions are negligible


class DeviceTable:
    """Assigns a slot (a small integer) to each device present, and pseudonyms to slots.

    Parameters
    ----------
    secret
        Key of the pseudonyms. A live service takes it from the operating system's generator, so
        that runs cannot be linked; a reproducible run derives it from a seed.
    max_devices
        Most devices present at once.

    Notes
    -----
    A pseudonym is a keyed hash of device and version. A replay yields the same pseudonyms, and
    without the key a pseudonym reveals nothing about another.
    """

    def __init__(self, *, secret: bytes, max_devices: int) -> None:
        self._secret = secret
        self._max_devices = max_devices
        self._slot_of: dict[str, int] = {}
        self._device_of: list[str | None] = []
        self._free: list[int] = []
        self._pseudonym_of: list[str] = []
        self._version_of: list[int | None] = []
        self._key_of: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._has_key: BoolArray = np.zeros(0, bool)
        self.n_freed: IntArray = np.zeros(64, np.int64)
        """How often each slot has been freed; whoever remembers a slot remembers this too."""

    def __len__(self) -> int:
        """Return the number of devices present."""
        return len(self._slot_of)

    def slot(self, device: str) -> int:
        """Return the slot of a device, a new one for a new device; `NO_SLOT` if all are taken."""
        slot = self._slot_of.get(device)
        if slot is not None:
            return slot
        if self._free:
            slot = self._free.pop()
            self._device_of[slot] = device
        elif len(self._device_of) < self._max_devices:
            slot = len(self._device_of)
            self.n_freed = with_room(self.n_freed, slot + 1)
            self._device_of.append(device)
            self._pseudonym_of.append("")
            self._version_of.append(None)
        else:
            return NO_SLOT
        self._slot_of[device] = slot
        return slot

    def find(self, device: str) -> int:
        """Return the slot of a device, `NO_SLOT` if it has none."""
        return self._slot_of.get(device, NO_SLOT)

    def names(self, slots: Int32Array) -> list[str]:
        """Return the device of each slot; empty for a slot without one."""
        return [self._device_of[slot] or "" for slot in slots.tolist()]

    def keys(self, slots: Int32Array) -> NDArray[np.uint64]:
        """Return a number for the device of each slot: in every process that has the secret, equal.

        Two devices have the same number with a probability of 2^-64; they then count as one.
        """
        self._key_of = with_room(self._key_of, len(self._device_of))
        self._has_key = with_room(self._has_key, len(self._device_of))
        new = slots[~self._has_key[slots]]
        for slot in new.tolist():
            device = self._device_of[slot] or ""
            digest = blake2b(
                device.encode("utf-8", "surrogatepass"),
                digest_size=8,
                key=self._secret,
                person=b"key",
            ).digest()
            self._key_of[slot] = int.from_bytes(digest, "big")
        self._has_key[new] = True
        return self._key_of[slots]

    def free(self, slots: Int32Array) -> None:
        """Forget the devices of these slots."""
        for slot in slots.tolist():
            device = self._device_of[slot]
            if device is not None:
                del self._slot_of[device]
                self._device_of[slot] = None
                self._version_of[slot] = None
                self.n_freed[slot] += 1
                self._has_key[slot : slot + 1] = False
                self._free.append(slot)

    def pseudonyms(self, slots: Sequence[int], versions: Sequence[int]) -> list[str]:
        """Return the pseudonym of each slot in the given version."""
        return [
            self._pseudonym_of[slot]
            if self._version_of[slot] == version
            else self._rename(slot, version)
            for slot, version in zip(slots, versions, strict=True)
        ]

    def _rename(self, slot: int, version: int) -> str:
        device = self._device_of[slot]
        if device is None:
            raise KeyError("this slot has no device")
        digest = blake2b(
            device.encode("utf-8", "surrogatepass"),
            digest_size=_PSEUDONYM_BYTES,
            key=self._secret,
            salt=version.to_bytes(8, "big", signed=True),
        ).digest()
        name = self._pseudonym_of[slot] = urlsafe_b64encode(digest).decode()
        self._version_of[slot] = version
        return name
