"""Which source takes a message: all positions of a device go to the same one.

The id of its device decides, not its topic: a device may have several. Where payloads name devices,
only a source can read the ids, so one source takes all mobile devices. Cloaked fixed devices hide
each other, so one source takes them, too.
"""

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from anonymizer.domain.arrays import IntArray, with_room
from anonymizer.domain.device_ids import id_of
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.positions.decode.senders import UNKNOWN, Senders
from anonymizer.pipeline.positions.decode.topics import TopicRouter, Treatment
from anonymizer.settings import InputSettings
from anonymizer.settings.base import id_levels

FIXED_SOURCE = 0
"""The source of all cloaked fixed devices, and of mobile ones that payloads name."""
_NEW = -1
_KEPT_S = 3600.0


class DeviceRouting:
    """Divides messages among sources, equally in every bridge and after every restart.

    Notes
    -----
    About 0.1 µs a message of a topic that is known, and 5 µs of one that is not.
    """

    def __init__(self, inputs: Sequence[InputSettings]) -> None:
        self._router = TopicRouter(inputs)
        self._senders = Senders(self._router)
        self._number_of: IntArray = np.zeros(0, np.int64)
        """Of the topics known to `_senders`: see `_number`, or `_NEW`."""
        mobile = [each for each in inputs if each.kind == "mobile"]
        self._are_named_by_payloads = any(each.device_from == "payload" for each in mobile)

    def parts_of(self, messages: PackedDeliveries, n_parts: int) -> IntArray:
        """Return the source of each message, shape (n,)."""
        sender = self._senders.topics(messages)
        n_known = len(self._number_of)
        self._number_of = with_room(self._number_of, 1 + len(self._senders))
        self._number_of[n_known:] = _NEW
        number = np.where(sender == UNKNOWN, _NEW, self._number_of[sender])
        bounds, stream = messages.columns.bounds, messages.stream
        for row in np.flatnonzero(number == _NEW).tolist():
            start, end = bounds[row, :2].tolist()
            number[row] = self._number(stream[start:end])
            if sender[row] != UNKNOWN:
                self._number_of[sender[row]] = number[row]
        return number % n_parts

    def of_statements(self, topic: str) -> "StatementRouting":
        """Return what divides statements of devices on the topics of a filter."""
        return StatementRouting(id_levels(topic), to_one=self._are_named_by_payloads)

    def _number(self, topic: bytes) -> int:
        """Return a number that decides on the source."""
        found = self._router.match(topic.decode("utf-8", "surrogatepass"))
        if found is None:
            return crc32(topic)  # no input's: one of the sources counts it
        index, device = found
        treatment = self._router.routes[index].treatment
        is_mobile = treatment == Treatment.MOBILE
        if treatment == Treatment.CLOAKED or (is_mobile and self._are_named_by_payloads):
            return FIXED_SOURCE
        return _number_of(device) if device else crc32(topic)

    def forget(self, *, at_s: float) -> None:
        """Forget topics that are silent, see `NameTable.forget`."""
        n = len(self._senders)
        self._senders.forget(at_s=at_s, kept_s=_KEPT_S)
        if len(self._senders) != n:
            self._number_of = np.zeros(0, np.int64)


class StatementRouting:
    """Divides what devices state about themselves: each goes to the source of its positions.

    The id of the device comes from `levels` of the topics; `to_one`: one source takes all.
    """

    def __init__(self, levels: Sequence[int], *, to_one: bool) -> None:
        self._levels, self._to_one = levels, to_one

    def parts_of(self, messages: PackedDeliveries, n_parts: int) -> IntArray:
        """Return the source of each message, shape (n,)."""
        found = np.full(len(messages), FIXED_SOURCE, np.int64)
        for row, (start, end) in enumerate(messages.columns.bounds[:, :2].tolist()):
            if not self._to_one:
                of = messages.stream[start:end].decode("utf-8", "surrogatepass").split("/")
                found[row] = _number_of(id_of(of[i] for i in self._levels))
        return found % n_parts


def _number_of(device: str) -> int:
    return crc32(device.encode("utf-8", "surrogatepass"))
