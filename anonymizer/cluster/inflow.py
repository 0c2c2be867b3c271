"""Messages of MQTT on their way to the stages of one kind, acknowledged when Kafka has them."""

import time
from collections.abc import Callable, Sequence

from anonymizer.cluster.bridge_metrics import Passed
from anonymizer.cluster.clients import Sender
from anonymizer.cluster.positions.bridge_queue import BridgeQueue, Load
from anonymizer.cluster.positions.raw_batches import RAW, Raw, encode_raw
from anonymizer.cluster.topics import Kind, Topic, key_of
from anonymizer.pipeline.ports import Deliver, Delivery
from anonymizer.transport import MqttLink

_PIECE_BYTES = 1 << 19
"""What waits for a stage is sent before the tick ends when it has so many bytes."""
_MOST_STATEMENTS = 100
"""Messages to a stage that Kafka does not have yet, beyond which empty ones are left out."""


class Inflow:
    """A subscription of a bridge, and the stages among which its messages are divided.

    Parameters
    ----------
    bridge
        Name of the bridge.
    kind, topic
        Of the stages; there are as many as the topic has partitions.
    queue
        Divides the messages.
    make_link
        Returns the connection to MQTT that delivers to a function.
    most_receipts
        So many messages are sent to Kafka at once, because the broker waits for them.
    now
        Returns unix time, which never goes back.
    interval_s
        Length of a tick.
    passed
        Counts of the bridge.
    changed
        Called when there is more or less that waits.
    of
        What the messages are, see `encode_raw`. Ticks are stated with those of `RAW` alone.
    """

    def __init__(
        self,
        *,
        bridge: str,
        kind: Kind,
        topic: Topic,
        queue: BridgeQueue,
        make_link: Callable[[Deliver], MqttLink],
        most_receipts: int,
        now: Callable[[], float],
        interval_s: float,
        passed: Passed,
        changed: Callable[[], None],
        of: bytes = RAW,
    ) -> None:
        self.link = make_link(self._deliver)
        self.sender: Sender | None = None
        """To be set before anything is delivered."""
        self._bridge = bridge
        self._kind, self._topic = kind, topic
        self._queue = queue
        self._most_receipts = most_receipts
        self._now, self._interval_s = now, interval_s
        self._passed = passed
        self._changed = changed
        self._of = of
        self._unstored = [0] * topic.n_partitions
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
        """Since when Kafka has taken nothing of what waits for it, monotonic; None: it has all."""
        return min(self._since_s.values(), default=None)

    def state_tick(self) -> None:
        """Send what has arrived, and that the tick before the present one is over."""
        tick = self._tick() - 1
        for part in range(self._topic.n_partitions):
            is_stated = self._of == RAW and self._unstored[part] < _MOST_STATEMENTS
            if self._queue.n_messages[part] or is_stated:
                self._send(part, tick=tick)

    def state_last(self) -> None:
        """Send what has arrived, and that nothing more will come."""
        for part in range(self._topic.n_partitions):
            self._send(part, tick=self._tick(), last=True)

    def _tick(self) -> int:
        """Return the present tick."""
        return int(self._now() // self._interval_s)

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        self._passed.n_received += len(deliveries)
        self._queue.put(deliveries, at_s=self._now())
        for part in range(self._topic.n_partitions):
            if (
                self._queue.n_bytes[part] >= _PIECE_BYTES
                or self._queue.n_messages[part] * self._topic.n_partitions >= self._most_receipts
            ):
                # The present tick is not over: all of the one before has been sent.
                self._send(part, tick=self._tick() - 1)
        self._changed()

    def _send(self, part: int, *, tick: int, last: bool = False) -> None:
        assert self.sender is not None  # noqa: S101  `Bridge.run` has set it
        load = self._queue.take(part)
        rest = load._replace(arrivals=[])
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
        self.link.acknowledge(load.receipts)
        self._passed.n_stored += load.n_messages
        self._passed.n_waiting -= load.n_messages
        self._passed.n_bytes -= load.n_bytes
        self._unstored[part] -= 1
        del self._since_s[part]
        if self._unstored[part]:
            self._since_s[part] = time.monotonic()
        self._changed()
