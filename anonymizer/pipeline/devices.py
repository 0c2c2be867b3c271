"""Tables of devices by key: rows, slots and pseudonyms. They hold no device id.

Keys and pseudonyms are keyed hashes, equal in every process that has the secret.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from anonymizer.algorithms.positions.device_keys import KeyArray
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, with_room

NO_ROW = NO_SLOT = -1
_PSEUDONYM_BYTES = 9  # 72 bits, 12 characters: collisions are negligible


def key_of(device: str, secret: bytes) -> int:
    """Return the number that stands for a device, below 2^64.

    Two devices have the same number with a probability of 2^-64; they then count as one.
    """
    return int(_numbers([device], _keyed(secret))[0])


def _keyed(secret: bytes) -> blake2b:
    return blake2b(digest_size=8, key=secret, person=b"key")


def _numbers(devices: Iterable[str], keyed: blake2b) -> KeyArray:
    """Return the number of each device, shape (n,). About 1 µs each."""
    digests = []
    for device in devices:
        digest = keyed.copy()
        digest.update(device.encode("utf-8", "surrogatepass"))
        digests.append(digest.digest())
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)


class KeyRows:
    """Assigns a row, a small integer, to each device by its key.

    Parameters
    ----------
    most
        Most devices that have a row at once; None: no bound.

    Notes
    -----
    A device that has a row costs a look into a dict, about 0.1 µs, and a new one 0.4 µs.
    """

    def __init__(self, most: int | None = None) -> None:
        self.key: KeyArray = np.zeros(0, np.uint64)
        self.is_used: BoolArray = np.zeros(0, bool)
        """`key`, `is_used`: of the device in each row, and whether the row has one, shape (rows or
        more,)."""
        self._most = most
        self._row_of: dict[int, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        """Return the number of devices that have a row."""
        return len(self._row_of)

    @property
    def n_rows(self) -> int:
        """Return the number of rows that have or had a device."""
        return len(self._row_of) + len(self._free)

    def of(self, keys: KeyArray) -> Int32Array:
        """Return the row of each device, shape (n,); new devices get one, in order.

        Once all are taken, it is `NO_ROW`.
        """
        rows = self.find(keys)
        new = np.flatnonzero(rows == NO_ROW)
        if len(new):
            each = dict.fromkeys(keys[new].tolist())
            added = self._add(list(each))
            rows[new] = added if len(each) == len(new) else self.find(keys[new])
        return rows

    def find(self, keys: KeyArray) -> Int32Array:
        """Return the row of each device, shape (n,); `NO_ROW` if it has none."""
        row_of = self._row_of
        return np.array([row_of.get(key, NO_ROW) for key in keys.tolist()], np.int32)

    def used(self) -> Int32Array:
        """Return the rows of all devices."""
        return np.flatnonzero(self.is_used).astype(np.int32)

    def drop(self, rows: Int32Array) -> None:
        """Forget the devices in these rows, which may pass to others."""
        for row, key in zip(rows.tolist(), self.key[rows].tolist(), strict=True):
            del self._row_of[key]
            self._free.append(row)
        self.is_used[rows] = False

    def _add(self, keys: list[int]) -> Int32Array:
        """Give rows to different devices that have none, as far as there are any; return them."""
        room = len(keys) if self._most is None else max(self._most - len(self), 0)
        n_rows, n_again = self.n_rows, min(len(keys), room, len(self._free))
        n_new = min(len(keys), room) - n_again
        rows = [self._free.pop() for _ in range(n_again)] + list(range(n_rows, n_rows + n_new))
        taken = keys[: len(rows)]
        self._row_of.update(zip(taken, rows, strict=True))
        self.key = with_room(self.key, n_rows + n_new)
        self.is_used = with_room(self.is_used, n_rows + n_new)
        self.key[rows], self.is_used[rows] = np.array(taken, np.uint64), True
        return np.array(rows + [NO_ROW] * (len(keys) - len(rows)), np.int32)

    def state(self) -> dict[str, Any]:
        """Return which devices have which rows."""
        return {
            "key": self.key,
            "is_used": self.is_used,
            "free": np.array(self._free, np.int32),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.key, self.is_used = state["key"], state["is_used"]
        self._free = state["free"].tolist()
        rows = np.flatnonzero(self.is_used)
        self._row_of = dict(zip(self.key[rows].tolist(), rows.tolist(), strict=True))


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
        self._rows = KeyRows(max_devices)
        self._most_of_all = max_devices // 2
        self._pseudonyms = Pseudonyms(secret, under)
        self._publisher_of: KeyArray = np.zeros(64, np.uint64)
        self.n_freed: IntArray = np.zeros(64, np.int64)
        """How often each slot has been freed; whoever remembers a slot remembers this too."""

    def __len__(self) -> int:
        """Return the number of devices present."""
        return len(self._rows)

    @property
    def n_for_all(self) -> int:
        """How many slots are left that any device may get; below 0: so many too many are used.

        The other half of the table is for those that may come first, see `slots`.
        """
        return self._most_of_all - len(self._rows)

    def key(self, device: str) -> int:
        """Return the key of a device, see `key_of`."""
        return int(_numbers([device], self._keyed)[0])

    def publisher(self, device: str) -> int:
        """Return the key of the first level of an id: the broker's rules bind it to a user."""
        return self.key(device.partition("/")[0])

    def slot(self, device: str) -> int:
        """Return the slot of a device, see `slots`."""
        return int(self.slots([device])[0])

    def slots(self, said: Sequence[str], *, first: BoolArray | None = None) -> Int32Array:
        """Return the slot of each of these devices, shape (n,); new devices get one, in order.

        `NO_SLOT` if all are taken. `first`: which may have any slot, shape (n,); the others come
        after them, and get none once half are taken. None: all may. About 1.5 µs each.
        """
        keys = _numbers(said, self._keyed)
        n_known = self._rows.n_rows
        slots = self._rows.of(keys) if first is None else self._in_turns(keys, first)
        if self._rows.n_rows > n_known:
            self.n_freed = with_room(self.n_freed, self._rows.n_rows)
            self._publisher_of = with_room(self._publisher_of, self._rows.n_rows)
        has = np.flatnonzero(slots != NO_SLOT)
        self._publisher_of[slots[has]] = keys[has]
        deep = [i for i in has.tolist() if "/" in said[i]]
        if deep:
            first_levels = [said[i].partition("/")[0] for i in deep]
            self._publisher_of[slots[deep]] = _numbers(first_levels, self._keyed)
        return slots

    def _in_turns(self, keys: KeyArray, first: BoolArray) -> Int32Array:
        """Give rows to new devices, to some of them first; return the row of each device."""
        slots = self._rows.find(keys)
        self._rows.of(keys[first & (slots == NO_ROW)])
        slots = self._rows.find(keys)
        others = dict.fromkeys(keys[~first & (slots == NO_ROW)].tolist())
        entering = list(others)[: max(self.n_for_all, 0)]
        if not entering:
            return slots
        self._rows.of(np.array(entering, np.uint64))
        return self._rows.find(keys)

    def find(self, key: int) -> int:
        """Return the slot of the device with a key, `NO_SLOT` if it has none."""
        return int(self._rows.find(np.array([key], np.uint64))[0])

    def keys(self, slots: Int32Array) -> KeyArray:
        """Return the key of the device in each slot: in every process with the secret, equal."""
        return self._rows.key[slots]

    def publishers(self, slots: Int32Array) -> KeyArray:
        """Return the key of the publisher of the device in each slot, see `publisher`."""
        return self._publisher_of[slots]

    def free(self, slots: Int32Array) -> None:
        """Forget the devices of these slots."""
        known = slots[(slots >= 0) & (slots < self._rows.n_rows)]
        known = np.array(list(dict.fromkeys(known.tolist())), np.int32)
        taken = known[self._rows.is_used[known]]
        self._rows.drop(taken)
        self.n_freed[taken] += 1
        self._pseudonyms.forget(slots.tolist())

    def pseudonyms(self, slots: Sequence[int], versions: Sequence[int]) -> list[str]:
        """Return the pseudonym of each slot in the given version."""
        at = np.array(slots, np.int64)
        if at.max(initial=-1) >= self._rows.n_rows or not self._rows.is_used[at].all():
            raise KeyError("this slot has no device")
        return self._pseudonyms.of(slots, self._rows.key[at].tolist(), versions)

    def state(self) -> dict[str, Any]:
        """Return which devices have which slots."""
        n = self._rows.n_rows
        rows = self._rows.state()
        columns = {
            "key": rows["key"],
            "publisher": self._publisher_of,
            "is_taken": rows["is_used"],
            "n_freed": self.n_freed,
        }
        return {name: column[:n] for name, column in columns.items()} | {"free": rows["free"]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of a table with the same secret."""
        n = len(state["key"])
        self._rows.restore(
            {
                "key": with_room(state["key"], n + 1),
                "is_used": with_room(state["is_taken"], n + 1),
                "free": state["free"],
            }
        )
        self._publisher_of = with_room(state["publisher"], n + 1)
        self.n_freed = with_room(state["n_freed"], n + 1)
        self._pseudonyms = Pseudonyms(self._secret, self._under)
