"""Senders: who sent a message, its topic or an id in its payload, as a number.

What has to be known of a sender is found out once and then looked up by its number: the input, the
length of the id, the slot of the device. A position of a known device needs no Python object.
"""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import Int32Array, IntArray, RecordArray
from anonymizer.pipeline.devices import NO_SLOT, DeviceTable
from anonymizer.pipeline.name_hashes import Bytes
from anonymizer.pipeline.names import MAX_BYTES, UNKNOWN, NameTable, with_room
from anonymizer.pipeline.packed import PackedDeliveries
from anonymizer.pipeline.positions.decode.topics import TopicRouter

NO_INPUT = -1
"""In place of the index of an input: none has this topic."""
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

    def __len__(self) -> int:
        """Return the number of senders."""
        return len(self._names)

    def __repr__(self) -> str:
        """Return the number alone."""
        return f"Senders({len(self)})"

    def topics(self, messages: PackedDeliveries) -> IntArray:
        """Return the sender that the topic of each message is, shape (n,).

        It is `UNKNOWN` if there is no room for more.
        """
        bounds = messages.columns.bounds
        kind = np.full(len(bounds), _TOPIC, np.int32)
        return self._numbers(np.frombuffer(messages.stream, np.uint8), bounds, kind)

    def ids(self, stream: bytes, spans: Int32Array, input_: Int32Array) -> IntArray:
        """Return the sender that an id in a payload is, shape (n,), see `topics`.

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
            for sender in range(first, len(self)):
                found = self._stated(sender)
                self._of[sender] = (*found, NO_SLOT, UNKNOWN, 0)
        return senders

    def _stated(self, sender: int) -> tuple[int, int]:
        """Return the input of a sender, and the length of its id."""
        name, kind = self._names.name(sender), self._names.kind(sender)
        return self.found(_text(name)) if kind == _TOPIC else (kind - 1, len(name))

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
        return name if self._names.kind(sender) != _TOPIC else self._router.device(name)

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
        """Forget senders that are silent, see `NameTable.forget`. Numbers are void then."""
        kept = self._names.forget(at_s=at_s, kept_s=kept_s)
        if kept is not None:
            self._of = with_room(self._of[kept], 1)
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
