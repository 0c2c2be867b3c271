"""Kafka's two clients of a bridge, a sender and a receiver, each with a thread of its own."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from threading import Event, Thread
from typing import Any, TypeAlias

from anonymizer.cluster.topics import PARTITIONER, Topic
from anonymizer.extras import extra
from anonymizer.transport.kafka_clients import (
    ALL_THAT_FITS,
    LARGE_READ,
    MEMBER,
    MESSAGE_BYTES,
    SHARES,
    reading,
    writing,
)
from anonymizer.transport.kafka_problems import KafkaLostError, Problems, reason_of

with extra("kafka"):
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

Message: TypeAlias = Any
"""A message of confluent-kafka."""

_POLL_S = 0.1
_AT_ONCE = 256
"""Most messages of `out` that are passed on together."""
_REVOKED_S = 10.0
"""Longest time for which another bridge waits until what this one passes on has been committed."""


class Sender:
    """Sends messages to Kafka; each exactly once and in order, however long that takes.

    `failed` fails with a KafkaLostError when Kafka refuses a message for good.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._problems = Problems()
        self._producer = Producer(
            {
                **writing(options, problems=self._problems),
                **ALL_THAT_FITS,  # the bridge bounds what waits, and stops reading
                "message.timeout.ms": 0,  # never give up
                "message.max.bytes": MESSAGE_BYTES,
                "partitioner": PARTITIONER,
                "error_cb": self._on_error,
            }
        )
        self.failed: asyncio.Future[None] = self._loop.create_future()
        self._ended = Event()
        self._thread = Thread(target=self._serve, name="kafka sender", daemon=True)
        self._thread.start()

    def send(
        self, topic: str, key: bytes, value: bytes, *, at_s: float, stored: Callable[[], None]
    ) -> None:
        """Send a message of a unix time; `stored` is called on the loop when Kafka has it."""

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is None:
                self._call(stored)
            else:
                self._call(self._fail, error)

        self._producer.produce(topic, value, key, timestamp=int(1000 * at_s), on_delivery=delivered)

    def close(self) -> None:
        """End the thread. What Kafka does not have yet is given up, and not acknowledged."""
        self._ended.set()
        self._thread.join()
        self._producer.purge(blocking=False)

    def _serve(self) -> None:
        while not self._ended.is_set():
            self._producer.poll(_POLL_S)

    def _on_error(self, error: KafkaError) -> None:
        self._problems.note(error.str())
        if error.fatal():
            self._call(self._fail, error)

    def _fail(self, error: KafkaError) -> None:
        if not self.failed.done():
            why = error.str()
            if error.code() in {KafkaError.INVALID_TIMESTAMP, KafkaError.INVALID_RECORD}:
                why += "; is the clock of this machine ahead by more than cluster.wait_s?"
            self.failed.set_exception(KafkaLostError(f"kafka.servers: {why}"))

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        if not self._ended.is_set() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)


class Receiver:
    """Reads a topic in a consumer group, and commits what was passed on.

    When `pass_on` returns, the values are committed. `lag`: messages still to be read, as far as is
    known; `owned`: partitions that it reads; `failed` fails with whatever ended the thread.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        topic: Topic,
        *,
        group: str,
        pass_on: Callable[[Sequence[bytes]], Awaitable[None]],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._problems = Problems()
        self._topic = topic
        self._pass_on = pass_on
        self._consumer = Consumer(
            {
                **reading(options, group=group, problems=self._problems),
                **SHARES,
                **MEMBER,
                **LARGE_READ,
                "queued.max.messages.kbytes": 65_536,
            }
        )
        self.lag = 0
        self.owned = 0
        self.failed: asyncio.Future[None] = self._loop.create_future()
        self._waiting: deque[Message] = deque()
        self._passing: Event | None = None
        self._offsets: list[Any] = []
        self._stopping = Event()
        self._give_up_at = inf
        self._thread = Thread(target=self._serve, name="kafka receiver", daemon=True)
        self._thread.start()

    async def close(self, *, within_s: float) -> None:
        """Commit what can be passed on in time, leave the group and end the thread.

        Kafka's client may leave it for ever: then the thread is left alone.
        """
        self._give_up_at = time.monotonic() + within_s
        self._stopping.set()
        await asyncio.to_thread(self._thread.join, within_s + _REVOKED_S)

    def _serve(self) -> None:
        try:
            self._consumer.subscribe([self._topic.name], on_revoke=self._on_revoke)
            while not self._stopping.is_set():
                self._take_some()
                self._count()
            self._consumer.close()
        except Exception as error:  # noqa: BLE001  the outermost edge of a thread
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._fail, error)

    def _take_some(self) -> None:
        if self._waiting:
            messages = list(self._waiting)
            self._waiting.clear()
        else:
            messages = self._consumer.consume(_AT_ONCE, _POLL_S)
        good = [message for message in messages if message.error() is None]
        for message in messages:
            if message.error() is not None:
                self._problems.note(message.error().str())
        if good:
            self._pass(good)

    def _pass(self, messages: list[Message]) -> None:
        """Pass messages on, and commit them. The group is answered meanwhile."""
        done = self._passing = Event()
        self._offsets = [
            TopicPartition(message.topic(), message.partition(), message.offset() + 1)
            for message in {message.partition(): message for message in messages}.values()
        ]
        values = [message.value() or b"" for message in messages]
        coming = asyncio.run_coroutine_threadsafe(_awaited(self._pass_on(values)), self._loop)
        coming.add_done_callback(lambda _: done.set())
        while not done.wait(_POLL_S):
            if self._stopping.is_set() and time.monotonic() > self._give_up_at:
                coming.cancel()
                return
            self._consumer.pause(self._consumer.assignment())
            newcomer = self._consumer.poll(0)
            if newcomer is not None:
                self._waiting.append(newcomer)
        coming.result()
        self._commit()
        self._consumer.resume(self._consumer.assignment())

    def _commit(self) -> None:
        offsets, self._offsets, self._passing = self._offsets, [], None
        try:
            if offsets:
                self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            # They are read and passed on once more.
            self._problems.note(f"not committed: {reason_of(error)}")

    def _on_revoke(self, consumer: Any, partitions: Sequence[Any]) -> None:  # noqa: ANN401, ARG002
        """Finish what is being passed on before another bridge reads it."""
        if self._passing is not None and self._passing.wait(_REVOKED_S):
            self._commit()
        gone = {partition.partition for partition in partitions}
        kept = [message for message in self._waiting if message.partition() not in gone]
        self._waiting = deque(kept)

    def _count(self) -> None:
        self.owned = len(self._consumer.assignment())
        self.lag = lag_of(self._consumer)

    def _fail(self, error: Exception) -> None:
        if not self.failed.done():
            known = reason_of(error) if isinstance(error, KafkaException) else type(error).__name__
            self.failed.set_exception(KafkaLostError(f"kafka.servers: {known}"))


def lag_of(consumer: Any) -> int:  # noqa: ANN401  of the library
    """Return how many messages a consumer has still to read, as far as it knows."""
    lag = 0
    for partition in consumer.position(consumer.assignment()):
        _, high = consumer.get_watermark_offsets(partition, cached=True) or (0, 0)
        lag += max(0, high - partition.offset) if partition.offset >= 0 else 0
    return lag


async def _awaited(work: Awaitable[None]) -> None:
    await work
