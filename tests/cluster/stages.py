"""A small stage for the tests of what runs stages: it counts and sums by the first byte."""

import msgspec

from anonymizer.cluster.stage import Send, UnreadableError

UNREADABLE, FAILS = b"\xf0", b"\xf1"
"""First bytes of inputs that the stage cannot read, and at which it fails in the middle."""


class Sums:
    """Counts its inputs and sums their lengths by their first byte.

    It sends both at every tenth input, and when the clock of the inputs has passed a whole minute.
    """

    def __init__(self, number: int = 0) -> None:
        self._number = number
        self._n = 0
        self._minute = 0
        self._sums: dict[int, int] = {}
        self._padding = b""

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        if value[:1] in {UNREADABLE, b""}:
            raise UnreadableError
        self._n += 1
        if value[:1] == FAILS:
            raise KeyError(value)
        self._sums[value[0]] = self._sums.get(value[0], 0) + len(value)
        self._padding = value
        minute, before = int(at_s // 60), self._minute
        self._minute = max(minute, before)
        if self._n % 10 and minute <= before:
            return []
        said = msgspec.json.encode([self._n, minute, sorted(self._sums.items())])
        return [Send("out", self._number, said)] * (1 + self._n % 2)

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode([self._n, self._minute, self._sums, self._padding])

    def restore(self, snapshot: bytes) -> None:
        self._n, self._minute, self._sums, self._padding = msgspec.msgpack.decode(
            snapshot, type=tuple[int, int, dict[int, int], bytes]
        )
