"""Topics of the cluster in Kafka, their partitions, and the keys of their messages.

The key of a message says which stage takes it, or what it is: `<kind>-<number>-<suffix>`. Kafka's
partitioner `consistent_random` takes the CRC-32 of a key; the suffix is chosen so that stage i is
in partition i modulo their number, on whatever machine it is computed.
"""

from collections.abc import Mapping
from functools import cache
from itertools import count
from typing import Literal, NamedTuple, TypeAlias, get_args
from zlib import crc32

from anonymizer.outputs.registry import asked_for
from anonymizer.settings import Settings

Kind: TypeAlias = Literal["source", "lane", "stream", "out", "release", "files", "dropped"]
"""Kind of a stage, or of what stages send: messages for MQTT, releases and files for
queries, and what is said about inputs that were dropped."""
_KINDS = get_args(Kind)
PARTITIONER = "consistent_random"
"""Of every producer in the cluster, so that `key_of` decides on the partition. Messages without a
key, which go to topics of others alone, lie anywhere."""


class Topic(NamedTuple):
    """A topic of the cluster."""

    name: str
    n_partitions: int


class Topics(NamedTuple):
    """All topics of a cluster. Those of positions or of records alone may not be needed."""

    sources: Topic
    """Inputs of the sources: raw messages of the bridges, and reports of the lanes."""
    lanes: Topic
    """Inputs of the lanes: batches of the sources."""
    out: Topic
    """Messages for MQTT, sent by lanes and streams. It has as many partitions as there are sources,
    so that as many bridges can share it."""
    parts: Topic
    """Inputs of the streams: raw messages of the bridges, and which windows are due."""
    releases: Topic
    """What queries read: published classes, and the windows that they are of."""
    files: Topic
    """The newest files of outputs, which are served over HTTP."""
    dropped: Topic
    """Which inputs workers have dropped; nothing of their content."""


def topics_of(settings: Settings) -> Topics:
    """Return all topics by the names and numbers in the settings."""
    cluster = settings.cluster
    n_of = {
        "sources": cluster.n_parts,
        "lanes": settings.region.districts,
        "out": cluster.n_parts,
        "parts": cluster.n_parts,
        "releases": cluster.n_parts,
        "files": 1,
        "dropped": 1,
    }
    return Topics(**{name: Topic(f"{settings.kafka.group}.{name}", n) for name, n in n_of.items()})


def topic_by_kind(settings: Settings) -> Mapping[Kind, Topic]:
    """Return the topics that these settings need, by the kind of what is in them."""
    topics = topics_of(settings)
    found: dict[Kind, Topic] = {}
    if settings.inputs:
        found |= {"source": topics.sources, "lane": topics.lanes}
    found |= {"out": topics.out, "dropped": topics.dropped}
    if any(each.path for each in asked_for(settings)):
        found["files"] = topics.files
    if settings.streams:
        found |= {"stream": topics.parts, "release": topics.releases}
    return found


def changelog_of(group: str, topic: str) -> str:
    """Return the topic of the snapshots of the stages that read a topic."""
    return f"changelog__{group}--{topic}--default"


def partition_of(key: bytes, n_partitions: int) -> int:
    """Return the partition of the messages with a key."""
    return crc32(key) % n_partitions


@cache
def key_of(kind: Kind, number: int, n_partitions: int) -> bytes:
    """Return the key of the messages for a stage, or of what a stage of this number sends.

    They are in partition `number` modulo `n_partitions`.
    """
    return next(
        key
        for key in (b"%s-%d-%d" % (kind.encode(), number, suffix) for suffix in count())
        if partition_of(key, n_partitions) == number % n_partitions
    )


def stage_of(key: bytes) -> tuple[str, int]:
    """Return the kind and the number that a key names.

    Raises `ValueError` if it names none.
    """
    kind, *numbers = key.decode("latin-1").split("-")
    if (
        kind not in _KINDS
        or len(numbers) != 2
        or not all(each.isascii() and each.isdigit() for each in numbers)
    ):
        raise ValueError("the key names no stage")
    return kind, int(numbers[0])
