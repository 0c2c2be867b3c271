"""Journals of a cluster: all that its topics ever held, and what stages make of them once more."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event, Thread
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, TopicPartition

from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.cluster.dropping import Dropped, encode_dropped
from anonymizer.cluster.positions.lane_stage import lane_stages
from anonymizer.cluster.positions.raw_batches import RAW, decode_out, decode_raw
from anonymizer.cluster.positions.source_stage import SourceStage, source_stages
from anonymizer.cluster.records.stream_routing import together
from anonymizer.cluster.records.stream_stage import StreamStage, stream_stages
from anonymizer.cluster.resident import Input, Place, Resident, StageEvents
from anonymizer.cluster.stage import Send, Stage
from anonymizer.cluster.topics import Kind, Topic, key_of, topic_by_kind
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import Settings, zones_of
from anonymizer.transport.kafka_clients import client_options
from tests import naive

POISON = b"of nobody in the cluster"
"""The end of messages that no stage can read."""
_BROUGHT: tuple[Kind, ...] = ("source", "stream")
"""Stages to which bridges send."""


class Entry(NamedTuple):
    """A committed message of Kafka; `at_s` is when it was written."""

    offset: int
    key: bytes
    value: bytes
    at_s: float

    @property
    def is_poison(self) -> bool:
        """Whether nobody of the cluster has sent it."""
        return self.value.endswith(POISON)


class Sent(NamedTuple):
    """What is equal for equal messages of stages."""

    topic: str
    key: bytes
    value: bytes


class Journals:
    """Reads all topics of a cluster from their first message on, while the block runs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._topics = topic_by_kind(settings)
        self._places = [
            (topic.name, number)
            for topic in self._topics.values()
            for number in range(topic.n_partitions)
        ]
        self.of: defaultdict[tuple[str, int], list[Entry]] = defaultdict(list)
        """Entries by topic and partition."""
        self._arrived: dict[Kind, Counter[tuple[str, bytes]]] = {
            kind: Counter() for kind in _BROUGHT if kind in self._topics
        }
        self._n_decoded: Counter[tuple[str, int]] = Counter()
        self._consumer = self._new_consumer(f"{settings.kafka.group}.journals")
        self._consumer.assign([TopicPartition(*place, 0) for place in self._places])
        self._done = Event()
        self._thread = Thread(target=self._read, daemon=True)

    def _new_consumer(self, group: str) -> Any:  # noqa: ANN401  the type checker has it not
        return Consumer(
            {
                **client_options(self._settings.kafka),
                "group.id": group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._done.is_set():
            for each in self._consumer.consume(1000, 0.1):
                if each.error() is None:
                    at_s = each.timestamp()[1] / 1000
                    entry = Entry(each.offset(), each.key() or b"", each.value(), at_s)
                    self.of[each.topic(), each.partition()].append(entry)

    def read_past(self, at_s: float) -> bool:
        """Return whether what was written until a time has been read; bridges write always."""
        return all(
            (entries := self.of[self._topics[kind].name, number]) and entries[-1].at_s > at_s
            for kind in self._arrived
            for number in range(self._topics[kind].n_partitions)
        )

    def entries(self, kind: Kind) -> Iterator[Entry]:
        """Yield what the topic of a kind holds, partition by partition."""
        topic = self._topics[kind]
        for number in range(topic.n_partitions):
            yield from list(self.of[topic.name, number])

    def arrived(self) -> dict[Kind, Counter[tuple[str, bytes]]]:
        """Return the messages that bridges have brought, by topic and payload."""
        for kind, known in self._arrived.items():
            topic = self._topics[kind]
            for number in range(topic.n_partitions):
                place = topic.name, number
                new = self.of[place][self._n_decoded[place] :]
                self._n_decoded[place] += len(new)
                known.update(
                    (each.topic, each.payload)
                    for entry in new
                    if entry.value[:1] == RAW and not entry.is_poison
                    for batch in decode_raw(entry.value).arrivals
                    for each in batch.deliveries
                )
        return self._arrived

    def published(self) -> Iterator[Outgoing]:
        """Yield the messages that bridges are to publish."""
        for entry in self.entries("out"):
            if not entry.is_poison:
                yield from decode_out(entry.value)

    def sent(self) -> Counter[Sent]:
        """Return the messages of all stages."""
        return Counter(
            Sent(topic.name, entry.key, entry.value)
            for kind, topic in self._topics.items()
            for entry in self.entries(kind)
            if not entry.is_poison and (entry.value[:1] != RAW or kind not in _BROUGHT)
        )

    def taken(self) -> dict[tuple[str, int], int]:
        """Return the offset up to which the workers have taken each partition."""
        asking = self._new_consumer(f"{self._settings.kafka.group}.workers")
        try:
            places = [TopicPartition(*place) for place in self._places]
            found = asking.committed(places, timeout=60)
        finally:
            asking.close()
        return {(each.topic, each.partition): each.offset for each in found}


class _Lines:
    """The journal of a stage whose inputs were all read."""

    name = "replayed"

    def __init__(self, entries: Sequence[Entry], key: bytes) -> None:
        self._entries, self._key = entries, key
        self._stored: dict[str, bytes] = {}

    def place(self) -> Place:
        return Place("replayed", 1 << 40)

    def between(self, after: int, before: int) -> Iterator[Input]:
        return (
            Input(each.offset, each.value, each.at_s)
            for each in self._entries
            if after < each.offset < before and each.key == self._key
        )

    def stored(self) -> Mapping[str, bytes]:
        return self._stored

    def store(self, name: str, value: bytes | None) -> None:
        if value is None:
            self._stored.pop(name, None)
        else:
            self._stored[name] = value


class Replay:
    """Fresh stages that have taken once more what the workers took, and all that they sent.

    Whatever happened to the workers: what they committed to Kafka is what their stages send for
    what they took, each message once. What no stage can take is dropped by all of them alike. The
    accounts are checked after every input.

    Attributes
    ----------
    sent
        Messages of all stages.
    stages
        By kind and number.
    """

    def __init__(
        self, journals: Journals, settings: Settings, network: RoadNetwork, *, secret: bytes
    ) -> None:
        zoned = with_zones(network, zones_of(settings.zones))
        streams = declared_streams(settings)
        make: dict[Kind, Callable[[int], Stage]] = {
            "source": source_stages(settings, zoned, secret=secret),
            "lane": lane_stages(settings, zoned, secret=secret),
            "stream": stream_stages(settings, streams, secret=secret),
        }
        self.sent: Counter[Sent] = Counter()
        self.stages: dict[tuple[str, int], Stage] = {}
        self._topics = topic_by_kind(settings)
        taken = journals.taken()
        for kind, maker in make.items():
            topic = self._topics[kind]
            n_stages = topic.n_partitions
            if kind == "stream":
                n_stages = len(together(settings.streams))
            for partition in range(topic.n_partitions):
                place = topic.name, partition
                entries = [each for each in journals.of[place] if each.offset < taken[place]]
                left = {each.key for each in entries}
                for number in range(n_stages):
                    key = key_of(kind, number, topic.n_partitions)
                    if number % topic.n_partitions == partition and key in left:
                        left.remove(key)
                        stage = self._replay(entries, key, lambda n=number, of=maker: of(n), *place)  # type: ignore[misc]
                        self.stages[kind, number] = stage
                for each in entries:
                    if each.key in left:
                        given = Input(each.offset, each.value, each.at_s)
                        self._note(self._dropped(given, "unaddressed", *place))

    def _replay(
        self,
        entries: Sequence[Entry],
        key: bytes,
        make: Callable[[], Stage],
        topic: str,
        partition: int,
    ) -> Stage:
        """Let a new stage take its inputs."""
        stage = Resident(
            make,
            _Lines(entries, key),
            lambda given, why: self._dropped(given, why, topic, partition),
            StageEvents(),
        )
        for each in entries:
            if each.key == key:
                self._note(stage.take(Input(each.offset, each.value, each.at_s)))
                check_accounts(stage.stage)
        assert stage.stage is not None
        return stage.stage

    def _dropped(self, given: Input, why: str, topic: str, partition: int) -> list[Send]:
        said = Dropped(topic, partition, given.offset, given.at_s, len(given.value), why)
        return [Send("dropped", 0, encode_dropped(said))]

    def _note(self, sends: Sequence[Send]) -> None:
        for to, number, value in sends:
            topic: Topic = self._topics[to]  # type: ignore[index]  # stages know the kinds
            address = key_of(to, number, topic.n_partitions)
            self.sent[Sent(topic.name, address, value)] += 1


def check_accounts(stage: Stage | None) -> None:
    """Check that nothing is unaccounted for."""
    accounts = []
    if isinstance(stage, SourceStage):
        accounts = [(stage.ledger, stage.n_held)]
    if isinstance(stage, StreamStage):
        accounts = [(ledger, n_held) for _, ledger, n_held in stage.ledgers]
    for ledger, n_held in accounts:
        assert naive.imbalance(ledger.counts(), received=ledger.n_received, held=n_held) == 0
