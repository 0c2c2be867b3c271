"""The operator's own topics of Kafka, read by workers: what a bridge does for MQTT, without one.

A worker reads raw messages and divides them among the stages in the transaction that its stages
use. So each message comes to its stage once, whoever is killed, and whatever the keys and the
partitions of the topics are. What stages then make of it is in the order of their own inputs.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import structlog

from anonymizer.cluster.bridge_metrics import Passed
from anonymizer.cluster.inflow import Inflow, RisingTime
from anonymizer.cluster.positions.bridge_queue import BridgeQueue
from anonymizer.cluster.positions.device_routing import DeviceRouting
from anonymizer.cluster.records.searches_by_work import longest_take_s
from anonymizer.cluster.records.stream_routing import StreamRouting
from anonymizer.cluster.topics import Kind, Topic, topics_of
from anonymizer.cluster.transactions import (
    Places,
    Transactions,
    consumer_options,
    lags_of,
    translated,
)
from anonymizer.cluster.worker_metrics import WorkDone
from anonymizer.extras import extra
from anonymizer.pipeline.packed_deliveries import MAX_WAITING_BYTES, Packed, PackedDeliveries
from anonymizer.settings import Settings
from anonymizer.transport.kafka_messages import KafkaTopics, Message
from anonymizer.transport.kafka_problems import KafkaLostError

with extra("kafka"):
    from confluent_kafka import Consumer, KafkaException, TopicPartition

_AT_ONCE = 4096
"""Most messages that are read together."""
_ANSWER_S = 30.0
_NO_RECEIPTS = 1 << 62
"""Messages that wait to be acknowledged to nobody."""
_SHARE = 2
"""A stage gets this part of what may wait for it in one tick: another tick may wait as well."""


def kafka_inputs(settings: Settings) -> set[str]:
    """Return the topics of Kafka that are inputs or sources of records."""
    sources = [source.kafka for stream in settings.streams for source in stream.sources]
    read = [*(each.kafka for each in settings.inputs), *sources]
    return {topic for topic in read if topic is not None}


class _Way:
    """What is read for the stages of one kind."""

    def __init__(
        self, inflow: Inflow, topics: KafkaTopics, forget: Callable[..., None], most: int
    ) -> None:
        self.inflow, self.topics, self.forget = inflow, topics, forget
        self._most = most
        """Messages that may wait for a stage; 0: any number."""

    def room(self, share: float) -> int:
        """Return how many more may be read in this tick, by who has a share of all partitions."""
        n, size = self.inflow.most_of_tick()
        if size >= share * MAX_WAITING_BYTES / _SHARE:
            return 0
        return int(share * self._most / _SHARE) - n if self._most else _AT_ONCE


class KafkaInflow:
    """Reads with the transactions of a worker, and states ticks as bridges do.

    It reads no faster than stages can hold what waits for a tick: the rest waits in Kafka.
    """

    def __init__(
        self,
        settings: Settings,
        kafka: Mapping[str, str],
        *,
        name: str,
        link: Transactions,
        observed: WorkDone,
        n_partitions: Mapping[str, int],
    ) -> None:
        self._link, self._observed = link, observed
        self._n_partitions = sum(n_partitions.values())
        self._interval_s = settings.tick.interval_s
        self._now = RisingTime(
            lambda jump_s: _LOG.warning(
                "the system's clock was set to another time", forward_s=round(jump_s, 3)
            )
        ).now
        self._ways = list(self._all_ways(settings, name))
        for each in n_partitions:
            observed.n_taken.setdefault(each, 0)
        self._tick = 0
        self._is_paused = self._has_stated = self._is_closing = False
        self._owned: Places = frozenset()
        self._expected: dict[tuple[str, int], int] = {}
        """Offset of the next message of each partition."""
        self._taken: dict[tuple[str, int], int] = {}
        self._consumer = Consumer(
            consumer_options(
                kafka,
                group=f"{settings.kafka.group}.readers",
                name=name,
                silent_s=longest_take_s(settings.streams),
            )
            | {"statistics.interval.ms": 1000, "stats_cb": self._on_statistics}
        )
        link.contain(self)
        self._consumer.subscribe(
            list(n_partitions),
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )

    def _all_ways(self, settings: Settings, name: str) -> "list[_Way]":
        limits, topics = settings.limits, topics_of(settings)
        ways = []
        if settings.output.kafka is not None:
            devices = DeviceRouting(settings.inputs)
            queue = BridgeQueue(
                settings.cluster.n_parts,
                max_payload_bytes=limits.max_payload_bytes,
                parts_of=devices.parts_of,
            )
            read = KafkaTopics(settings.inputs, max_payload_bytes=limits.max_payload_bytes)
            inflow = self._inflow(name, "source", topics.sources, queue)
            ways.append(_Way(inflow, read, devices.forget, settings.presence.queue_limit))
        if settings.streams and settings.streams[0].kafka is not None:
            routing = StreamRouting(settings.streams)
            queue = BridgeQueue(
                routing.n_stages,
                max_payload_bytes=limits.max_payload_bytes,
                parts_of=routing.parts_of,
            )
            sources = [source for stream in settings.streams for source in stream.sources]
            read = KafkaTopics(sources, max_payload_bytes=limits.max_payload_bytes)
            inflow = self._inflow(name, "stream", topics.parts, queue)
            ways.append(_Way(inflow, read, routing.forget, 0))
        return ways

    def _inflow(self, name: str, kind: Kind, topic: Topic, queue: BridgeQueue) -> Inflow:
        inflow = Inflow(
            bridge=name,
            kind=kind,
            topic=topic,
            queue=queue,
            acknowledge=lambda _: None,
            most_receipts=_NO_RECEIPTS,
            now=self._now,
            interval_s=self._interval_s,
            passed=Passed(),
            changed=lambda: None,
        )
        inflow.sender = self
        return inflow

    def send(
        self, topic: str, key: bytes, value: bytes, *, at_s: float, stored: Callable[[], None]
    ) -> None:
        """Send a message in the present transaction, see `inflow.Sends`."""
        self._link.begin()
        self._link.send(topic, key, value, at_ms=int(1000 * at_s))
        stored()

    def read(self) -> bool:
        """Read what has arrived, as much as there is room for, and state the tick if one is over.

        Raises `KafkaLostError` or `KafkaException` if Kafka, or a topic, cannot be read any more.
        """
        self._state_tick()
        room = min(_AT_ONCE, *(way.room(self._share) for way in self._ways))
        if (room > 0) == self._is_paused:
            change = self._consumer.resume if self._is_paused else self._consumer.pause
            change(self._consumer.assignment())
            self._is_paused = not self._is_paused
        # Also while it is paused: that answers the group.
        messages = self._consumer.consume(max(1, room), 0)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
        new = [message for message in messages if self._is_next(message)]
        if new:
            for way in self._ways:
                self._take(way, new)
        return bool(new)

    @property
    def _share(self) -> float:
        """The share of this worker in all partitions."""
        return len(self._owned) / self._n_partitions

    def _is_next(self, message: Message) -> bool:
        """Return whether a message is to be taken, and note that it is.

        A batch may contain messages that were read before its partition moved to this worker or
        away from it; these are read again.
        """
        place, offset = (message.topic(), message.partition()), message.offset()
        if offset < self._expected.get(place, _NEVER):
            return False
        self._expected[place] = self._taken[place] = offset + 1
        return True

    def _take(self, way: _Way, messages: Sequence[Message]) -> None:
        names = way.topics.names
        if len(self._ways) > 1:
            messages = [message for message in messages if message.topic() in names]
        for piece in way.topics.pieces(messages) if messages else ():
            n = len(piece.messages)
            columns = Packed(piece.bounds, np.zeros(n, np.int64), np.zeros(n, bool))
            way.inflow.deliver(PackedDeliveries(piece.stream, columns))
        for message in messages:
            self._observed.n_taken[message.topic()] += 1

    def _state_tick(self) -> None:
        """Say that a tick is over, when it is."""
        tick = int(self._now() // self._interval_s)
        if tick == self._tick or not self._owned:
            return
        self._tick, self._has_stated = tick, True
        for way in self._ways:
            way.inflow.state_tick()
            way.forget(at_s=time.monotonic())

    def state_last(self) -> None:
        """Say that nothing more will come from this worker for now."""
        if self._has_stated:
            self._has_stated = False
            for way in self._ways:
                way.inflow.state_last()

    # For the transactions that contain it.

    def flush(self) -> None:
        """Send what has been read."""
        for way in self._ways:
            way.inflow.flush()

    def taken(self) -> tuple[list[TopicPartition], Any]:
        """Return how far each partition was read since the last commit, and by which member."""
        offsets = [TopicPartition(*place, offset) for place, offset in self._taken.items()]
        return offsets, self._consumer.consumer_group_metadata() if offsets else None

    def committed(self) -> None:
        """Note that this is committed."""
        self._taken.clear()

    def close(self) -> None:
        """Disconnect. What was not committed is given up; as a member it stays for a session."""
        self._is_closing = True
        self._consumer.close()

    # What is raised in these goes through the library, which takes the errors of its own apart.

    def _on_assign(self, _: Consumer, partitions: Sequence[TopicPartition]) -> None:
        if self._is_closing:
            return
        with translated():
            asked = [TopicPartition(each.topic, each.partition) for each in partitions]
            found = self._consumer.committed(asked, _ANSWER_S) if asked else []
            self._expected = {(each.topic, each.partition): max(0, each.offset) for each in found}
            self._own(self._expected)
            if not self._owned:
                self.state_last()

    def _on_revoke(self, _: Consumer, __: Sequence[TopicPartition]) -> None:
        if not self._is_closing:
            with translated():
                self._link.commit()
                self._expected = {}
                self._own(())

    def _own(self, places: Collection[tuple[str, int]]) -> None:
        self._owned, self._is_paused = frozenset(places), False
        self._observed.read = self._owned
        _LOG.info("topics divided", partitions=sorted(map(list, self._owned)))

    def _on_lost(self, _: Consumer, __: Sequence[TopicPartition]) -> None:
        if not self._is_closing:
            raise KafkaLostError("Kafka: has given the partitions of this worker to others")

    def _on_statistics(self, text: str) -> None:
        lags = lags_of(text).items()
        self._observed.read_lag = {place: lag for place, lag in lags if place in self._owned}


_NEVER = 1 << 63
_LOG: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
