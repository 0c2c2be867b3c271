"""A link to Apache Kafka: messages of topics in a consumer group, what is published to topics.

Kafka's clients are polled by two threads; everything else is done on the event loop.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Any

import numpy as np

from anonymizer.domain.arrays import BoolArray, IntArray
from anonymizer.extras import extra
from anonymizer.pipeline.packed_deliveries import Packed, PackedDeliveries
from anonymizer.pipeline.ports import Deliver, LinkCounts, Loss, Outgoing
from anonymizer.settings import InputSettings, KafkaSettings, SourceSettings
from anonymizer.transport.kafka_clients import MEMBER, SHARES, client_options, reading, writing
from anonymizer.transport.kafka_messages import KafkaTopics, Message, Piece
from anonymizer.transport.kafka_offsets import Offsets, Part
from anonymizer.transport.kafka_problems import KafkaLostError, Problems, reason_of

with extra("kafka"):
    from confluent_kafka import (
        Consumer,
        KafkaError,
        KafkaException,
        Producer,
        TopicCollection,
        TopicPartition,
    )
    from confluent_kafka.admin import AdminClient

_AT_ONCE = 4096
"""Most messages that are read together."""
_READ_S = 0.025
"""Longest time for which they are collected, as the rest of a link of MQTT."""
_COMMIT_MS = 500
"""Time between two commits; what may be committed is stated twice as often."""
_LOOK_S = 1.0
"""Time between two attempts to reach Kafka, and how long one may take."""
_WAIT_S = 0.005
_ANSWER_S = 10.0
_CLOSE_S = 3 * _ANSWER_S
_REVOKED_S = 10.0
"""How long another client waits at most for what this one has still to settle."""
_UNDECIDED = ("_MSG_TIMED_OUT", "_TIMED_OUT", "_PURGE_INFLIGHT", "REQUEST_TIMED_OUT")
"""Errors of a message that Kafka may have all the same."""


class KafkaLink:
    """A connection to Kafka; implements `anonymizer.pipeline.ports.Link`.

    The caller runs `run` in a task of its own. Offsets are committed up to the first message that
    is not acknowledged, so after an end without warning the others come once more. The client
    library commits: it alone knows when the group divides the partitions anew, and an offset that
    reaches Kafka then is refused.

    Parameters
    ----------
    settings
        Where Kafka is.
    inputs
        The topics to be read; none: nothing is read.
    outputs
        The topic of Kafka for each topic of the pipeline. Messages of others are not published.
    on_state
        Called with whether Kafka can be reached and the reason, at every change and at every
        failed attempt to begin.
    timeout_s
        After this time a message that Kafka does not take is given up.
    most_waiting
        So many deliveries are not acknowledged at most: the others wait in Kafka.
    max_payload_bytes
        Of longer payloads only one byte more is delivered.
    has_room
        Returns whether more may be read, besides; called in another thread.
    kept_places
        Where each partition is to be read on, as `places_of` said before: what was delivered before
        that is not delivered again, wherever Kafka begins. None: Kafka alone knows.

    Raises
    ------
    KafkaLostError
        By `run`, if Kafka refuses this client for good.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        inputs: Sequence[InputSettings | SourceSettings],
        outputs: Mapping[str, str],
        deliver: Deliver,
        on_state: Callable[[bool, str], None],
        timeout_s: float,
        most_waiting: int,
        max_payload_bytes: int,
        has_room: Callable[[], bool] = lambda: True,
        kept_places: Callable[[], Mapping[str, int]] | None = None,
    ) -> None:
        self._sources = KafkaTopics(inputs, max_payload_bytes=max_payload_bytes)
        self._outputs = dict(outputs)
        self._deliver = deliver
        self._on_state = on_state
        self._most_waiting, self._has_room = most_waiting, has_room
        self._problems = Problems()
        self._options = where = client_options(settings)
        self._consumer_options = {
            **SHARES,
            **MEMBER,
            "auto.commit.interval.ms": _COMMIT_MS,
            **reading(where, group=settings.group, problems=self._problems),
            "enable.auto.commit": True,
            "enable.auto.offset.store": False,  # `_store` does, after they are settled
            "on_commit": self._on_commit,
            "error_cb": self._on_error,
        }
        self._producer_options = {
            "linger.ms": 2,
            **writing(where, problems=self._problems),
            "message.timeout.ms": max(1, int(1000 * timeout_s)),
            "error_cb": self._on_error,
        }
        self._kept_places = kept_places
        self._lock = Lock()
        """Of the offsets and places, which several threads use."""
        self.counts = LinkCounts()
        self._connected = False
        self._up = asyncio.Event()
        self._begin()

    def _begin(self) -> None:
        """Begin anew: nothing is delivered yet."""
        self._offsets = Offsets()
        self._place_of: dict[Part, str] = {}
        self._read_to: dict[str, int] = {}
        self._handed: deque[tuple[int, Mapping[str, int]]] = deque()
        self._patience_s = _REVOKED_S
        self._receiving, self._rests, self._ending = True, Event(), Event()
        self._closing, self._ended = asyncio.Event(), asyncio.Event()
        self._failure: Exception | None = None

    @property
    def connected(self) -> bool:
        """Whether Kafka could be reached of late, and has the topics."""
        return self._connected

    @property
    def refused(self) -> Sequence[str]:
        """Nothing: Kafka refuses no filter of several."""
        return ()

    async def until_connected(self) -> None:
        """Wait until Kafka is reached."""
        await self._up.wait()

    async def run(self) -> None:
        """Read and publish until `close`; raises whatever `deliver` raised. It can run again."""
        self._loop = asyncio.get_running_loop()
        self._begin()
        self._read_to = dict(self._kept_places()) if self._kept_places else {}
        try:
            self._consumer: Any = Consumer(self._consumer_options)
            self._producer: Any = Producer(self._producer_options)
        except KafkaException as error:
            raise KafkaLostError(f"kafka: {reason_of(error)}") from None
        threads = [
            Thread(target=self._serve, args=(work,), name=f"kafka {name}", daemon=True)
            for name, work in (("reader", self._read_on), ("writer", self._write_on))
        ]
        try:
            for thread in threads:
                thread.start()
            await self._closing.wait()
        finally:
            self._ending.set()
            for thread in threads:
                # Kafka's client may close for ever; then the thread is left alone.
                await asyncio.to_thread(thread.join, _CLOSE_S)
            self._producer.purge(blocking=False)
            self._note_state(False, "closed")
            self._ended.set()
        if self._failure is not None:
            raise self._failure

    async def publish(
        self,
        messages: Sequence[Outgoing],
        *,
        qos: int,  # noqa: ARG002  Kafka always acknowledges
        timeout_s: float,
    ) -> Sequence[bool | None]:
        """Publish a batch; return for each message whether all replicas of Kafka have it."""
        reports = _Reports(len(messages), self._loop)
        for i, message in enumerate(messages):
            topic = self._outputs.get(message.topic)
            if topic is None or not self._connected:
                reports.note(i, taken=False)
                continue
            try:
                self._producer.produce(
                    topic, message.payload, message.key or None, on_delivery=reports.callback(i)
                )
            except (BufferError, KafkaException) as error:
                self._problems.note(reason_of(error))
                reports.note(i, taken=False)
        return await reports.answers(timeout_s)

    def takes(self, message: Outgoing) -> bool:  # noqa: ARG002  as `MqttLink`
        """Return True: Kafka's limit is not known before it refuses a message."""
        return True

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Let deliveries be committed; unknown receipts are ignored."""
        with self._lock:
            self._offsets.settle(receipts)

    def places_of(self, receipts: Sequence[int]) -> Mapping[str, int]:
        """Return how far each partition was read for these deliveries and all before them.

        Only what was not returned yet. It names partitions with the id of their topic: one that was
        deleted and made again is another one.
        """
        last, places = max(receipts, default=0), dict[str, int]()
        with self._lock:
            while self._handed and self._handed[0][0] <= last:
                places.update(self._handed.popleft()[1])
        return places

    async def collect(self) -> None:
        """Do nothing: what has arrived is delivered within `_READ_S`."""

    async def stop_receiving(self) -> None:
        """Stop deliveries. What was delivered can still be acknowledged."""
        self._receiving = False
        await asyncio.to_thread(self._rests.wait, _ANSWER_S)
        await asyncio.sleep(0)  # what the reader has handed over is delivered

    async def close(self) -> None:
        """Commit what is acknowledged and leave the group, so that `run` returns."""
        self._patience_s = 0.0  # nothing more will be acknowledged
        self._closing.set()
        await self._ended.wait()

    # On the event loop, for the threads.

    def _note_state(self, connected: bool, reason: str) -> None:  # noqa: FBT001  as `on_state`
        if connected and not self._connected:
            self.counts.n_connections += 1
            self._up.set()
        elif self._connected and not connected:
            self._up.clear()
            if not self._closing.is_set():
                self.counts.lost[Loss.NO_ANSWER] += 1
        self._connected = connected
        self._on_state(connected, reason)

    def _hand_over(self, deliveries: PackedDeliveries) -> None:
        try:
            self._deliver(deliveries)
        except Exception as error:  # noqa: BLE001  the loop would only log it; `run` raises it
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._closing.set()

    # In the threads.

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    def _serve(self, work: Callable[[], None]) -> None:
        try:
            work()
        except KafkaException as error:
            self._call(self._fail, KafkaLostError(f"kafka: {reason_of(error)}"))
        except Exception as error:  # noqa: BLE001  the outermost edge of a thread
            self._call(self._fail, error)
        finally:
            self._rests.set()

    def _on_error(self, error: KafkaError) -> None:
        self._problems.note(error.str())
        if error.fatal():
            self._call(self._fail, KafkaLostError(f"kafka: {error.str()}"))
        elif error.name() == "_ALL_BROKERS_DOWN" and self._connected:
            self._call(self._note_state, False, error.str())

    def _write_on(self) -> None:
        while not self._ending.is_set():
            self._producer.poll(_WAIT_S)

    def _read_on(self) -> None:
        subscribed, store_at, look_at = False, 0.0, 0.0
        while not self._ending.is_set():
            now = time.monotonic()
            if not self._connected and now >= look_at:
                look_at = now + _LOOK_S
                problem = self._problem()
                self._call(self._note_state, not problem, problem or "connected")
                if not problem and not subscribed and self._sources.names:
                    subscribed = True
                    self._consumer.subscribe(
                        list(self._sources.names),
                        on_assign=self._on_assign,
                        on_revoke=self._on_revoke,
                        on_lost=self._on_lost,
                    )
            self._read_once(subscribed=subscribed)
            if now >= store_at:
                store_at = now + _COMMIT_MS / 2000
                self._store()
        self._wait_for_commits()
        self._consumer.close()

    def _problem(self) -> str:
        """Return why Kafka cannot be used; empty: it can."""
        try:
            there = self._consumer.list_topics(timeout=_LOOK_S).topics
        except KafkaException as error:
            return reason_of(error)
        missing = {*self._sources.names, *self._outputs.values()} - there.keys()
        return f"there is no topic {', '.join(sorted(missing))}" if missing else ""

    def _read_once(self, *, subscribed: bool) -> None:
        if not self._receiving:
            self._rests.set()
        room = min(_AT_ONCE, self._most_waiting - len(self._offsets))
        # Not a few at a time, wherever there is room for many.
        is_much = room >= min(_AT_ONCE, max(1, self._most_waiting // 4))
        if not (subscribed and self._receiving and is_much and self._has_room()):
            self._ending.wait(_WAIT_S)
            return
        good = []
        for message in self._consumer.consume(room, _READ_S):
            error = message.error()
            if error is None:
                good.append(message)
            else:
                self._problems.note(error.str())
        if good:
            self._take(good)

    def _take(self, messages: list[Message]) -> None:
        """Hand messages over to the loop, in pieces that are not too large."""
        for piece in self._sources.pieces(messages):
            self._take_piece(piece)

    def _take_piece(self, piece: Piece) -> None:
        messages, stream, bounds = piece
        with self._lock:
            number_of = self._offsets.number
            number = np.array([number_of(m.topic(), m.partition()) for m in messages], np.int64)
            offset = np.array([message.offset() for message in messages], np.int64)
            receipt = self._offsets.add(number, offset)
            if self._kept_places:
                is_old = self._read_on_to(number, offset, receipt)
                self._offsets.settle(receipt[is_old])
                if is_old.any():
                    n = np.count_nonzero(is_old)
                    self._problems.note(f"{n} messages are left out: they were taken before")
                bounds, receipt = bounds[~is_old], receipt[~is_old]
        if not len(receipt):
            return
        columns = Packed(bounds, receipt, np.zeros(len(receipt), bool))
        self._call(self._hand_over, PackedDeliveries(stream, columns))

    def _read_on_to(self, number: IntArray, offset: IntArray, receipt: IntArray) -> BoolArray:
        """Note that messages were read; return which of them were read before, shape (n,)."""
        is_old, places = np.zeros(len(offset), bool), dict[str, int]()
        for each in np.unique(number).tolist():
            place, of_part = self._place_of[self._offsets.part(each)], number == each
            read_to, end = self._read_to.get(place, 0), int(offset[of_part].max()) + 1
            is_old |= of_part & (offset < read_to)
            if end > read_to:
                self._read_to[place] = places[place] = end
        if places:
            self._handed.append((int(receipt[~is_old].max()), places))
        return is_old

    def _store(self) -> Mapping[Part, int]:
        """Note how far each partition is settled, to be committed soon; return it."""
        with self._lock:
            settled = self._offsets.settled()
        if settled:
            # Fails for partitions that are not ours any more: others read them from where they are.
            with suppress(KafkaException):
                self._consumer.store_offsets(
                    offsets=[TopicPartition(*part, to) for part, to in settled.items()]
                )
        return settled

    def _wait_for_commits(self) -> None:
        """Wait until Kafka has all that is settled, or the time is up."""
        deadline = time.monotonic() + _ANSWER_S
        while self._connected and time.monotonic() < deadline:
            if self._has(self._store()):
                return
            # Answers the group. What comes is not settled, so it is read again by whoever is next.
            self._consumer.consume(_AT_ONCE, _READ_S)
        self._problems.note("what was settled last is not committed, and is read again")

    def _has(self, settled: Mapping[Part, int]) -> bool:
        """Return whether Kafka has these offsets."""
        parts = [TopicPartition(*part) for part in settled]
        try:
            found = self._consumer.committed(parts, timeout=_LOOK_S) if parts else []
        except KafkaException:  # it does not answer while the partitions are divided anew
            return False
        return all(each.offset >= settled[Part(each.topic, each.partition)] for each in found)

    def _on_commit(self, error: KafkaError | None, _: object) -> None:
        if error is not None:
            # They stay uncommitted, and are tried again.
            self._problems.note(f"not committed: {error.str()}")

    def _on_assign(self, _: object, partitions: Sequence[Any]) -> None:
        """Learn the places of partitions, where they are kept."""
        if not self._kept_places:
            return
        id_of = self._topic_ids({each.topic for each in partitions})
        with self._lock:
            for each in partitions:
                part = Part(each.topic, each.partition)
                self._place_of[part] = f"{id_of[each.topic]}/{each.partition}"

    def _topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of topics, of which those made again have others; KafkaException if not.

        Kafka may be away at this moment; it is asked until it has let others wait long enough.
        """
        deadline, wanted = time.monotonic() + 3 * _ANSWER_S, TopicCollection(list(topics))
        with AdminClient(dict(self._options)) as admin:
            while True:
                asked = admin.describe_topics(wanted, request_timeout=_ANSWER_S)
                try:
                    return {topic: str(found.result().topic_id) for topic, found in asked.items()}
                except KafkaException as error:
                    self._problems.note(reason_of(error))
                    if self._ending.wait(_LOOK_S) or time.monotonic() > deadline:
                        raise

    def _on_revoke(self, _: object, partitions: Sequence[Any]) -> None:
        """Settle what was read of partitions; it is committed before another client reads them."""
        parts = [Part(each.topic, each.partition) for each in partitions]
        deadline = time.monotonic() + self._patience_s
        while time.monotonic() < deadline:
            with self._lock:
                if not self._offsets.n_waiting(parts):
                    break
            self._ending.wait(_WAIT_S)
        self._store()
        self._forget(parts)

    def _on_lost(self, _: object, partitions: Sequence[Any]) -> None:
        """Forget partitions that another client has taken over."""
        self._forget([Part(each.topic, each.partition) for each in partitions])

    def _forget(self, parts: Sequence[Part]) -> None:
        with self._lock:
            self._offsets.forget(parts)


class _Reports:
    """What Kafka says of each message of a batch, whose reports come in another thread."""

    def __init__(self, n: int, loop: asyncio.AbstractEventLoop) -> None:
        self._answers: list[bool | None] = [None] * n
        self._n_open = n
        self._lock = Lock()
        self._loop = loop
        self._done = asyncio.Event()
        if not n:
            self._done.set()

    def note(self, i: int, *, taken: bool | None) -> None:
        """Note what became of a message."""
        with self._lock:
            self._answers[i] = taken
            self._n_open -= 1
            is_last = not self._n_open
        if is_last and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._done.set)

    def callback(self, i: int) -> Callable[[KafkaError | None, Message], None]:
        """Return what the client calls with the report of a message."""

        def report(error: KafkaError | None, _: Message) -> None:
            unknown = error is not None and error.name() in _UNDECIDED
            self.note(i, taken=None if unknown else error is None)

        return report

    async def answers(self, timeout_s: float) -> Sequence[bool | None]:
        """Return what was said within a time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._done.wait()
        except TimeoutError:
            pass
        with self._lock:
            return list(self._answers)
