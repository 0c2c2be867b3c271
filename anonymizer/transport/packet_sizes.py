"""What a broker takes: the largest packet, as it said or as lost connections have shown.

MQTT 5 lets a broker announce its limit, and a link that speaks 3.1.1 asks in MQTT 5. Where it
announces none, it just ends the connection at a packet that is too large, again and again. So
packets that are larger than any that it has taken are watched until it has answered something that
came after them: a broker answers in order. What was unanswered when it ended a connection is
blamed. What can be cut is then cut smaller, and what has cost two connections is not sent again.
"""

from collections import deque

from anonymizer.pipeline.ports import PART_BYTES

ALWAYS_TAKEN = 512
"""A packet of so many bytes is never blamed: it is of the size of any message of a device."""
_NO_LIMIT = 0xFFFFFFF + 5
"""The largest packet of MQTT."""
_SMALLER = 4
"""What can be cut is cut to this part of what has cost a connection, so that few are lost."""
_CLOSE = 8
"""The limit is searched for to this part of itself."""
_OVERHEAD = 5 + 2 + 2 + 1
"""Of a packet without headers: its length, that of its topic, its identifier, no properties."""


class PacketSizes:
    """Learns over the connections of a link which packets the broker takes."""

    def __init__(self) -> None:
        self._announced: int | None = None
        self.asked: int | None = None
        """What the broker announces in MQTT 5, where another version is spoken; None: not known."""
        self._proven = ALWAYS_TAKEN
        self._blamed: list[int] = []
        """Sizes that each cost a connection; none that the broker has taken since."""
        self._watched: deque[tuple[int, int]] = deque()
        """Number and size of packets without an answer; of two, the later one is smaller."""
        self.n_sent = 0
        """Packets that were watched so far: those up to a number are answered together."""

    def announced(self, most_bytes: int | None) -> None:
        """Take in what the broker says at a new connection; None: nothing."""
        self._announced = self.asked if most_bytes is None else most_bytes
        self._watched.clear()

    @property
    def most_bytes(self) -> int:
        """Size of the largest packet that is sent."""
        if self._announced is not None:
            return self._announced
        if len(self._blamed) < 2:
            return _NO_LIMIT
        least = min(self._blamed)
        # Each connection that is lost from here on halves what is not known.
        return (
            self._proven if least - self._proven <= least // _CLOSE else (self._proven + least) // 2
        )

    def part_bytes(self, topic: str) -> int:
        """Return the size of the largest payload, for a topic, of what can be cut."""
        most = self.most_bytes
        if self._blamed and self._announced is None:
            most = min(most, max(self._proven, min(self._blamed) // _SMALLER))
        return min(PART_BYTES, most - _OVERHEAD - len(topic.encode()))

    def sent(self, n_bytes: int) -> None:
        """Watch a packet that has been sent, if it is larger than any that was taken."""
        if n_bytes <= self._proven or self._announced is not None:
            return
        self.n_sent += 1
        while self._watched and self._watched[-1][1] <= n_bytes:
            self._watched.pop()
        self._watched.append((self.n_sent, n_bytes))

    @property
    def is_waiting(self) -> bool:
        """Whether a packet is watched."""
        return bool(self._watched)

    def answered(self, n_sent: int) -> None:
        """Note that the broker has read the first packets of those that were watched."""
        while self._watched and self._watched[0][0] <= n_sent:
            self._proven = max(self._proven, self._watched.popleft()[1])
        self._blamed = [each for each in self._blamed if each > self._proven]

    def ended(self) -> int:
        """Note that the broker has ended the connection; return the size that is blamed, or 0."""
        if not self._watched:
            return 0
        blamed = self._watched[0][1]
        self._blamed.append(blamed)
        self._watched.clear()
        return blamed
