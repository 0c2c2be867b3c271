"""Topics of the cluster in Kafka, their partitions, and the keys of their messages.

The key of a message says which stage takes it: `source-<number>-<suffix>` or
`lane-<number>-<suffix>`. Kafka's partitioner `consistent` takes the CRC-32 of a key; the suffix is
chosen so that stage i is in partition i modulo their number, on whatever machine it is computed.
"""

from functools import cache
from itertools import count
from typing import Literal, NamedTuple, TypeAlias
from zlib import crc32

from anonymizer.settings import Settings

Kind: TypeAlias = Literal["source", "lane"]
"""Kind of a stage."""
PARTITIONER = "consistent"
"""Of every producer in the cluster, so that `key_of` decides on the partition."""


class Topic(NamedTuple):
    """A topic of the cluster."""

    name: str
    n_partitions: int


class Topics(NamedTuple):
    """All topics of a cluster.

    Attributes
    ----------
    sources
        Inputs of the sources: raw messages of the bridges, and reports of the lanes.
    lanes
        Inputs of the lanes: batches of the sources, and broadcasts of the lanes.
    out
        Messages for MQTT, sent by lanes. It has as many partitions as there are sources, so that as
        many bridges can share it.
    """

    sources: Topic
    lanes: Topic
    out: Topic


def topics_of(settings: Settings) -> Topics:
    """Return the topics that these settings ask for."""
    prefix, n_sources = settings.cluster.prefix, settings.cluster.n_sources
    return Topics(
        Topic(f"{prefix}.sources", n_sources),
        Topic(f"{prefix}.lanes", settings.region.districts),
        Topic(f"{prefix}.out", n_sources),
    )


@cache
def key_of(kind: Kind, number: int, n_partitions: int) -> bytes:
    """Return the key of the messages for, or in `out` of, a stage.

    They are in partition `number` modulo `n_partitions`.
    """
    return next(
        key
        for key in (b"%s-%d-%d" % (kind.encode(), number, suffix) for suffix in count())
        if crc32(key) % n_partitions == number % n_partitions
    )


def stage_of(key: bytes) -> tuple[str, int]:
    """Return kind and number of the stage that a key names.

    Raises
    ------
    ValueError
        If it names none.
    """
    kind, *numbers = key.split(b"-")
    if (
        kind not in {b"source", b"lane"}
        or len(numbers) != 2
        or not all(map(bytes.isdigit, numbers))
    ):
        raise ValueError("the key names no stage")
    return kind.decode(), int(numbers[0])
