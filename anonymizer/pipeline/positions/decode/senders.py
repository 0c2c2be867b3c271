"""Senders: who sent a message, its topic or an id in its payload, as a number.

What has to be known of a sender is found out once and then looked up by its number: the input, the
length of the id, the slot of the device. A position of a known device needs no Python object.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from anonymizer.algorithms.kernels import inlined_kernel, kernel
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, RecordArray, with_room
from anonymizer.domain.device_ids import plain_id
from anonymizer.pipeline.devices import NO_SLOT, DeviceTable
from anonymizer.pipeline.name_hashes import KEY, Bytes, hash_all, hash_span
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.positions.decode.topics import NO_INPUT, TopicRouter

UNKNOWN = -1
"""In place of a number: the table does not have the name."""
MAX_BYTES = 128 * 1024 * 1024
"""Room for about a million names of 40 characters."""
ENTRY_BYTES = 80
"""Memory of a name without its bytes; a test measures it."""

_LOW = (1 << 31) - 1
"""Bits of a place that hold 1 + a number; the others hold a part of the hash."""
_FEWEST = 512


class NameTable:
    """Numbers of names, from 0 on.

    Parameters
    ----------
    max_bytes
        Most memory of the table.

    Notes
    -----
    Open addressing with linear probing; a place holds a part of the hash and a number. The bytes
    are compared wherever that part agrees. About 0.05 µs a name.
    """

    def __init__(self, *, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._since_s: float | None = None
        self._is_full = False
        self._allocate(0, 0)

    def _allocate(self, n: int, n_bytes: int) -> None:
        """Make an empty table with room for so many names."""
        self._n = 0
        self._bytes: Bytes = np.zeros(max(n_bytes, 32 * _FEWEST), np.uint8)
        self._end: IntArray = np.zeros(max(n, _FEWEST) + 1, np.int64)
        self._kind: Int32Array = np.zeros(max(n, _FEWEST), np.int32)
        self._used: BoolArray = np.zeros(max(n, _FEWEST), np.bool_)
        self._places: IntArray = np.zeros(1 << (2 * max(n, _FEWEST) - 1).bit_length(), np.int64)

    def __len__(self) -> int:
        """Return the number of names."""
        return self._n

    @property
    def n_bytes(self) -> int:
        """Memory of the names, as it counts towards the limit."""
        return ENTRY_BYTES * self._n + int(self._end[self._n])

    def name(self, number: int) -> bytes:
        """Return a name."""
        return self._bytes[self._end[number] : self._end[number + 1]].tobytes()

    def kind(self, number: int) -> int:
        """Return the kind of a name."""
        return int(self._kind[number])

    def since(self, first: int) -> tuple[list[str], Int32Array]:
        """Return the names from a number on, and their kinds, shape (names,)."""
        end = self._end[first : self._n + 1]
        data, ends = self._bytes[end[0] : end[-1]].tobytes(), (end - end[0]).tolist()
        if data.isascii():
            text = data.decode()
            names = [text[a:b] for a, b in pairwise(ends)]
        else:
            names = [_text(data[a:b]) for a, b in pairwise(ends)]
        return names, self._kind[first : self._n]

    def find(self, stream: Bytes, spans: Int32Array, kind: Int32Array) -> IntArray:
        """Return the number of each name or `UNKNOWN`, shape (n,).

        Parameters
        ----------
        stream, spans
            The bytes, and start and end of each name in them, shape (n, 2) or wider.
        kind
            Kind of each name, shape (n,). Equal names of different kinds are different.
        """
        return _find(
            stream, spans, kind, *KEY, self._places, self._bytes, self._end, self._kind, self._used
        )

    def add(self, stream: Bytes, spans: Int32Array, kind: Int32Array) -> IntArray:
        """Return the number of each name, shape (n,), a new one for a new name, in order.

        It is `UNKNOWN` if there is no room. Parameters as of `find`.
        """
        n, end = self._n + len(spans), int(self._end[self._n] + (spans[:, 1] - spans[:, 0]).sum())
        if 2 * n > len(self._places):
            self._places = np.zeros(1 << (2 * n - 1).bit_length(), np.int64)
            _place(self._bytes, self._end, *KEY, self._places, self._n)
        self._bytes = with_room(self._bytes, end)
        self._end = with_room(self._end, n + 1)
        self._kind = with_room(self._kind, n)
        self._used = with_room(self._used, n)
        numbers, self._n = _add(
            stream, spans, kind, *KEY, self._places, self._bytes, self._end, self._kind,
            self._used, self._n, self._max_bytes,
        )  # fmt: skip
        self._is_full |= bool((numbers == UNKNOWN).any())
        return numbers

    def forget(self, *, at_s: float, kept_s: float) -> IntArray | None:
        """Forget the names that were last used `kept_s` ago or earlier.

        If there was no room, it forgets more: those that were used least recently. It must be
        called often, because the age of a name is rounded up to the time between two calls.

        Returns
        -------
        The earlier numbers of the names that are left, in their new order; None: all are left.
        """
        if self._since_s is None:
            self._since_s = at_s
        age_s = at_s - self._since_s
        if age_s < kept_s / 2 and not self._is_full:
            return None
        # Nothing was forgotten for as long as `kept_s`: too late for all of them.
        kept = np.flatnonzero(self._used[: self._n] & (age_s < kept_s))
        n_bytes = int((self._end[kept + 1] - self._end[kept]).sum())
        if self._is_full and n_bytes + ENTRY_BYTES * len(kept) > self._max_bytes // 2:
            kept, n_bytes = kept[:0], 0
        old, end, kind = self._bytes, self._end, self._kind
        self._allocate(len(kept), n_bytes)
        _move(old, end, kept, self._bytes, self._end)
        self._kind[: len(kept)] = kind[kept]
        self._n = len(kept)
        _place(self._bytes, self._end, *KEY, self._places, self._n)
        self._since_s, self._is_full = at_s, False
        return kept


@kernel
def _find(
    stream: Bytes,
    spans: Int32Array,
    kind: Int32Array,
    base: int,
    other_base: int,
    places: IntArray,
    names: Bytes,
    name_end: IntArray,
    kind_of: Int32Array,
    used: BoolArray,
) -> IntArray:
    """Return the number of each name or `UNKNOWN`; mark those that are found as used."""
    numbers = hash_all(stream, spans, base, other_base)
    for row in range(len(spans)):
        sought = stream[spans[row, 0] : spans[row, 1]]
        at = _place_of(sought, kind[row], numbers[row], places, names, name_end, kind_of)
        numbers[row] = (places[at] & _LOW) - 1
        if numbers[row] != UNKNOWN:
            used[numbers[row]] = True
    return numbers


@kernel
def _add(
    stream: Bytes,
    spans: Int32Array,
    kind: Int32Array,
    base: int,
    other_base: int,
    places: IntArray,
    names: Bytes,
    name_end: IntArray,
    kind_of: Int32Array,
    used: BoolArray,
    n: int,
    max_bytes: int,
) -> tuple[IntArray, int]:
    """Return the number of each name or `UNKNOWN`, and how many names there are now."""
    numbers = hash_all(stream, spans, base, other_base)
    for row in range(len(spans)):
        sought, hashed = stream[spans[row, 0] : spans[row, 1]], numbers[row]
        at = _place_of(sought, kind[row], hashed, places, names, name_end, kind_of)
        end = name_end[n] + len(sought)
        if places[at] == 0 and end + ENTRY_BYTES * (n + 1) <= max_bytes:
            names[name_end[n] : end] = sought
            name_end[n + 1], kind_of[n], used[n] = end, kind[row], True
            n += 1
            places[at] = (hashed & ~_LOW) | n
        numbers[row] = (places[at] & _LOW) - 1
    return numbers, n


@inlined_kernel
def _place_of(
    sought: Bytes,
    kind: int,
    hashed: int,
    places: IntArray,
    names: Bytes,
    name_end: IntArray,
    kind_of: Int32Array,
) -> int:
    """Return the place of a name, an empty one if it has none."""
    mask = len(places) - 1
    at = hashed & mask
    while places[at] != 0:
        if (places[at] ^ hashed) & ~_LOW == 0:
            number = (places[at] & _LOW) - 1
            name = names[name_end[number] : name_end[number + 1]]
            if kind_of[number] == kind and len(name) == len(sought):
                # To the end even if a byte differs, which it hardly ever does: without a branch,
                # many bytes are compared at once.
                differs = np.uint8(0)
                for i in range(len(name)):
                    differs |= name[i] ^ sought[i]
                if differs == 0:
                    break
        at = (at + 1) & mask
    return at


@kernel
def _place(
    names: Bytes, name_end: IntArray, base: int, other_base: int, places: IntArray, n: int
) -> None:
    """Put the first `n` names into empty places."""
    mask = len(places) - 1
    for number in range(n):
        hashed = hash_span(names, name_end[number], name_end[number + 1], base, other_base)
        at = hashed & mask
        while places[at] != 0:
            at = (at + 1) & mask
        places[at] = (hashed & ~_LOW) | (number + 1)


@kernel
def _move(old: Bytes, old_end: IntArray, kept: IntArray, new: Bytes, new_end: IntArray) -> None:
    """Copy the kept names."""
    at = 0
    for number in range(len(kept)):
        for i in range(old_end[kept[number]], old_end[kept[number] + 1]):
            new[at] = old[i]
            at += 1
        new_end[number + 1] = at


OF_PAYLOAD = -1
"""In place of the length of an id: the payloads of the topic name devices."""
_TOPIC = 0
"""Kind of a name that is a topic. An id in a payload has 1 + the index of the input."""

_SENDER = np.dtype(
    [
        ("input", np.int32),
        ("n_chars", np.int32),  # of the device id, or OF_PAYLOAD
        ("slot", np.int32),
        ("named_by", np.int32),  # the topic that was allowed to name this id
        ("n_freed", np.int64),  # of the slot, when the device got it
    ]
)


class Senders:
    """The topics and ids that sent something of late.

    `max_bytes`: most memory of their names.
    """

    def __init__(self, router: TopicRouter, *, max_bytes: int = MAX_BYTES) -> None:
        self._router = router
        self._names = NameTable(max_bytes=max_bytes)
        self._of: RecordArray = np.zeros(1, _SENDER)
        self._newest: tuple[int, list[str | None]] = 0, []
        """Devices of the senders that were added last, and the first of their numbers."""

    def __len__(self) -> int:
        """Return the number of senders."""
        return len(self._names)

    def topics(self, messages: PackedDeliveries) -> IntArray:
        """Return the sender that the topic of each message is, shape (n,).

        It is `UNKNOWN` if there is no room for more.
        """
        bounds = messages.columns.bounds
        kind = np.full(len(bounds), _TOPIC, np.int32)
        return self._numbers(np.frombuffer(messages.stream, np.uint8), bounds, kind)

    def ids(self, stream: bytes, spans: Int32Array, input_: Int32Array) -> IntArray:
        """Return the sender that an id in a payload is, shape (n,), see `topics`.

        Each spelling of an id is a sender; `device` and `slots` are the same of all.

        `spans`: start and end of each id in the bytes, shape (n, 2); `input_`: index of its input,
        shape (n,).
        """
        return self._numbers(np.frombuffer(stream, np.uint8), spans, 1 + input_)

    def _numbers(self, stream: Bytes, spans: Int32Array, kind: Int32Array) -> IntArray:
        senders = self._names.find(stream, spans, kind)
        new = np.flatnonzero(senders == UNKNOWN)
        if len(new):
            first = len(self)
            senders[new] = self._names.add(stream, spans[new], kind[new])
            self._of = with_room(self._of, len(self))
            self._state(first)
        return senders

    def _state(self, first: int) -> None:
        """Find out what is asked of senders from a number on, all topics or all ids."""
        names, kinds = self._names.since(first)
        of = self._of[first : len(self)]
        if len(kinds) and kinds[0] == _TOPIC:
            of["input"], devices = self._router.match_all(names)
        else:
            of["input"], devices = kinds - 1, [plain_id(name) for name in names]
        of["n_chars"] = [OF_PAYLOAD if each is None else len(each) for each in devices]
        of["slot"], of["named_by"], of["n_freed"] = NO_SLOT, UNKNOWN, 0
        self._newest = first, devices

    def found(self, topic: str) -> tuple[int, int]:
        """Return the input of a topic, or `NO_INPUT`, and the length of its device id."""
        index, device = self._router.match(topic) or (NO_INPUT, "")
        return index, OF_PAYLOAD if device is None else len(device)

    def input_of(self, senders: IntArray) -> Int32Array:
        """Return the index of the input of each sender, `NO_INPUT` where it has none."""
        return np.where(senders == UNKNOWN, NO_INPUT, self._of["input"][senders])

    def n_chars_of(self, senders: IntArray) -> Int32Array:
        """Return the length of the device id of each sender, or `OF_PAYLOAD`."""
        return np.where(senders == UNKNOWN, 0, self._of["n_chars"][senders])

    def named_by(self, ids: IntArray) -> Int32Array:
        """Return the topic that was allowed to name each id, `UNKNOWN` if none is remembered."""
        return np.where(ids < 0, UNKNOWN, self._of["named_by"][np.maximum(ids, 0)])

    def allow(self, ids: IntArray, topics: IntArray) -> None:
        """Remember that these topics may name these ids."""
        known = ids >= 0
        self._of["named_by"][ids[known]] = topics[known]

    def forbid(self) -> None:
        """Forget which topic may name which id."""
        self._of["named_by"] = UNKNOWN

    def device(self, sender: int) -> str:
        """Return the id of a device, empty if a topic names none."""
        name = _text(self._names.name(sender))
        of_payload = self._names.kind(sender) != _TOPIC
        return plain_id(name) if of_payload else self._router.device(name)

    def devices(self, senders: Sequence[int], names: Sequence[str]) -> list[str]:
        """Return the ids of some devices; `names` has those of numbers below 0, from -1 down."""
        first, newest = self._newest
        n = len(newest)
        return [
            newest[each - first] or ""
            if 0 <= each - first < n
            else (self.device(each) if each >= 0 else names[-1 - each])
            for each in senders
        ]

    def slots(self, senders: IntArray, devices: DeviceTable) -> Int32Array:
        """Return the slot of each device where it is remembered, else `NO_SLOT`, shape (n,).

        `devices` is always the same for one sender; numbers below 0 have none.
        """
        return _slots(senders, self._of, devices.n_freed)

    def remember(self, senders: IntArray, slots: Int32Array, devices: DeviceTable) -> None:
        """Remember the slots of these senders until they are freed."""
        known = (senders >= 0) & (slots != NO_SLOT)
        self._of["slot"][senders[known]] = slots[known]
        self._of["n_freed"][senders[known]] = devices.n_freed[slots[known]]

    def forget(self, *, at_s: float, kept_s: float) -> None:
        """Forget senders that are silent, see `NameTable.forget`. Numbers become invalid."""
        kept = self._names.forget(at_s=at_s, kept_s=kept_s)
        if kept is not None:
            self._of, self._newest = with_room(self._of[kept], 1), (0, [])
            self.forbid()


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")


@kernel
def _slots(senders: IntArray, of: RecordArray, n_freed: IntArray) -> Int32Array:
    slots = np.empty(len(senders), np.int32)
    for i in range(len(senders)):
        slot = np.int32(NO_SLOT)
        if senders[i] >= 0:
            sender = of[senders[i]]
            if sender["slot"] != NO_SLOT and n_freed[sender["slot"]] == sender["n_freed"]:
                slot = sender["slot"]
        slots[i] = slot
    return slots
