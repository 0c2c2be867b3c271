"""Who is behind a slot: the only place that holds device ids, in memory alone."""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b

from anonymizer.domain.arrays import Int32Array

NO_SLOT = -1
_PSEUDONYM_BYTES = 9  # 72 bits, 12 characters: no two alike among any number of devices seen


class DeviceTable:
    """Gives each present device a small integer, and each of those a pseudonym for a while.

    Parameters
    ----------
    secret
        Key of the pseudonyms. From the operating system's generator for a live service, so
        that nothing links one run to the next; derived from a seed for a reproducible run.
    max_devices
        Devices present at once.

    Notes
    -----
    A pseudonym is a keyed hash of device and version: a replay draws the same again, and none
    tells anything of another without the key.
    """

    def __init__(self, *, secret: bytes, max_devices: int) -> None:
        self._secret = secret
        self._max_devices = max_devices
        self._slot_of: dict[str, int] = {}
        self._device_of: list[str | None] = []
        self._free: list[int] = []
        self._pseudonym_of: list[str] = []
        self._version_of: list[int | None] = []

    def __len__(self) -> int:
        """Devices present."""
        return len(self._slot_of)

    def slot(self, device: str) -> int:
        """Return the slot of a device, a new one for a new device, `NO_SLOT` when all are taken."""
        slot = self._slot_of.get(device)
        if slot is not None:
            return slot
        if self._free:
            slot = self._free.pop()
            self._device_of[slot] = device
        elif len(self._device_of) < self._max_devices:
            slot = len(self._device_of)
            self._device_of.append(device)
            self._pseudonym_of.append("")
            self._version_of.append(None)
        else:
            return NO_SLOT
        self._slot_of[device] = slot
        return slot

    def free(self, slots: Int32Array) -> None:
        """Forget the devices behind these slots."""
        for slot in slots.tolist():
            device = self._device_of[slot]
            if device is not None:
                del self._slot_of[device]
                self._device_of[slot] = None
                self._version_of[slot] = None
                self._free.append(slot)

    def pseudonyms(self, slots: Sequence[int], versions: Sequence[int]) -> list[str]:
        """Return the pseudonyms that devices bear, given the numbers of those."""
        return [
            self._pseudonym_of[slot]
            if self._version_of[slot] == version
            else self._rename(slot, version)
            for slot, version in zip(slots, versions, strict=True)
        ]

    def _rename(self, slot: int, version: int) -> str:
        device = self._device_of[slot]
        if device is None:
            raise KeyError("no device is behind this slot")
        digest = blake2b(
            device.encode("utf-8", "surrogatepass"),
            digest_size=_PSEUDONYM_BYTES,
            key=self._secret,
            salt=version.to_bytes(8, "big", signed=True),
        ).digest()
        name = self._pseudonym_of[slot] = urlsafe_b64encode(digest).decode()
        self._version_of[slot] = version
        return name
