"""Raw messages on their way to the stages of one kind, acknowledged when Kafka has them."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from anonymizer.cluster.bridge_metrics import Passed
from anonymizer.cluster.positions.bridge_queue import BridgeQueue, Load
from anonymizer.cluster.positions.raw_batches import RAW, Raw, encode_raw
from anonymizer.cluster.topics import Kind, Topic, key_of
from anonymizer.pipeline.clock import SteadyClock
from anonymizer.pipeline.ports import Delivery

_PIECE_BYTES = 1 << 19
"""What waits for a stage is sent before the tick ends when it has so many bytes."""
_MOST_STATEMENTS = 100
"""Messages to a stage that Kafka does not have yet, beyond which empty ones are left out."""


class Sends(Protocol):
    """Sends messages to Kafka."""

    def send(
        self, topic: str, key: bytes, value: bytes, *, at_s: float, stored: Callable[[], None]
    ) -> None:
        """Send a message of a unix time; `stored` is called when nothing can lose it any more."""
        ...


class RisingTime:
    """Unix time by which ticks are stated: it follows the wall's clock, and never goes back.

    `on_jump`: called with the seconds, when the wall's clock is set to another time.
    """

    def __init__(self, on_jump: Callable[[float], None]) -> None:
        self._clock = SteadyClock(wall=time.time, monotonic=time.monotonic, on_jump=on_jump)
        self._now_s = 0.0

    def now(self) -> float:
        """Return the time."""
        self._now_s = max(self._now_s, self._clock.now() + max(0.0, self._clock.wall_ahead_s()))
        return self._now_s


class Inflow:
    """What comes in by one way, and the stages among which its messages are divided.

    `bridge` is the name of who passes the messages on, a bridge or a worker. The stages of `queue`
    read `topic`. `acknowledge` is called with the receipts of messages that
    Kafka has, `changed` when there is more or less that waits. At most `most_receipts` messages
    that are to be acknowledged wait for the end of a tick: the broker sends few more until then.
    `now` returns unix time, which never goes back. `of`: what the messages are, see `encode_raw`;
    ticks are stated with `RAW` alone.
    """

    def __init__(
        self,
        *,
        bridge: str,
        kind: Kind,
        topic: Topic,
        queue: BridgeQueue,
        acknowledge: Callable[[Iterable[int]], None],
        most_receipts: int,
        now: Callable[[], float],
        interval_s: float,
        passed: Passed,
        changed: Callable[[], None],
        of: bytes = RAW,
    ) -> None:
        self.sender: Sends | None = None
        """To be set before anything is delivered."""
        self._bridge = bridge
        self._kind, self._topic = kind, topic
        self._queue = queue
        self._acknowledge = acknowledge
        self._most_receipts = most_receipts
        self._now, self._interval_s = now, interval_s
        self._passed = passed
        self._changed = changed
        self._of = of
        self._unstored = [0] * queue.n_stages
        self._of_tick = [(0, 0)] * queue.n_stages
        self._since_s: dict[int, float] = {}

    @property
    def n_waiting_bytes(self) -> int:
        """Memory of the messages that are not sent yet."""
        return sum(self._queue.n_bytes)

    @property
    def n_unstored(self) -> int:
        """Messages to Kafka that it does not have yet."""
        return sum(self._unstored)

    @property
    def waits_since_s(self) -> float | None:
        """Monotonic time since which Kafka has taken no waiting message; None: none waits."""
        return min(self._since_s.values(), default=None)

    def most_of_tick(self) -> tuple[int, int]:
        """Return how many messages, and bytes, a stage got in the present tick at most."""
        queue = self._queue
        of_part = zip(self._of_tick, queue.n_messages, queue.n_bytes, strict=True)
        totals = [(n + waiting, size + bytes_) for (n, size), waiting, bytes_ in of_part]
        return max(n for n, _ in totals), max(size for _, size in totals)

    def flush(self) -> None:
        """Send what has arrived."""
        for part in range(self._queue.n_stages):
            if self._queue.n_messages[part]:
                self._send(part, tick=self._tick() - 1)

    def state_tick(self) -> None:
        """Send what has arrived, and that the tick before the present one is over."""
        tick = self._tick() - 1
        for part in range(self._queue.n_stages):
            is_stated = self._of == RAW and self._unstored[part] < _MOST_STATEMENTS
            if self._queue.n_messages[part] or is_stated:
                self._send(part, tick=tick)
            self._of_tick[part] = 0, 0

    def state_last(self) -> None:
        """Send what has arrived, and that nothing more will come."""
        for part in range(self._queue.n_stages):
            self._send(part, tick=self._tick(), last=True)

    def _tick(self) -> int:
        """Return the present tick."""
        return int(self._now() // self._interval_s)

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Take messages that have just arrived."""
        self._passed.n_received += len(deliveries)
        self._queue.put(deliveries, at_s=self._now())
        for part in range(self._queue.n_stages):
            if (
                self._queue.n_bytes[part] >= _PIECE_BYTES
                or self._queue.n_receipts[part] * self._queue.n_stages >= self._most_receipts
            ):
                # The present tick is not over: all of the one before has been sent.
                self._send(part, tick=self._tick() - 1)
        self._changed()

    def _send(self, part: int, *, tick: int, last: bool = False) -> None:
        assert self.sender is not None  # noqa: S101  it is set before anything is delivered
        load = self._queue.take(part)
        rest = load._replace(arrivals=[])
        n, size = self._of_tick[part]
        self._of_tick[part] = n + load.n_messages, size + load.n_bytes
        self._passed.n_waiting += load.n_messages
        self._passed.n_bytes += load.n_bytes
        self._unstored[part] += 1
        self._since_s.setdefault(part, time.monotonic())
        self.sender.send(
            self._topic.name,
            key_of(self._kind, part, self._topic.n_partitions),
            encode_raw(Raw(self._bridge, tick, last, load.arrivals), of=self._of),
            at_s=self._now(),
            stored=lambda: self._note_stored(part, rest),
        )

    def _note_stored(self, part: int, load: Load) -> None:
        self._acknowledge(load.receipts)
        self._passed.n_stored += load.n_messages
        self._passed.n_waiting -= load.n_messages
        self._passed.n_bytes -= load.n_bytes
        self._unstored[part] -= 1
        del self._since_s[part]
        if self._unstored[part]:
            self._since_s[part] = time.monotonic()
        self._changed()
