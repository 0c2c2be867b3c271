"""Options of all clients of Kafka: first what an operator may change, then what must be so."""

from collections.abc import Mapping
from typing import Any

from anonymizer.settings import KafkaSettings
from anonymizer.transport.kafka_problems import Problems

SESSION_MS = 6_000
"""Time after which others read what a dead member of a group read: the least that Kafka's defaults
admit."""
MEMBER: Mapping[str, Any] = {
    "session.timeout.ms": SESSION_MS,
    "heartbeat.interval.ms": SESSION_MS // 4,
}
"""Of a consumer that shares partitions with others."""
SHARES = {"partition.assignment.strategy": "cooperative-sticky"}
"""Of one that goes on with what it keeps while the group divides the rest anew."""
MESSAGE_BYTES = 16 << 20
"""Largest message in the topics of a cluster; Kafka's default is a sixteenth."""
LARGE_READ = {"fetch.message.max.bytes": MESSAGE_BYTES}
ALL_THAT_FITS = {
    "queue.buffering.max.kbytes": 2_097_151,  # the most there is
    "queue.buffering.max.messages": 0,  # only the bytes count
}
"""Of a producer before which somebody else bounds what waits."""
_READ_AHEAD = {"fetch.queue.backoff.ms": 10}
"""How a consumer fetches on. With the client's own value, a second, it waits every time that it
has more than a few messages ahead, and reads a seventh of what it can."""


def client_options(settings: KafkaSettings) -> dict[str, str]:
    """Return what every client needs: where Kafka is, how to log in, and to be silent.

    While Kafka is away, the library writes 27 lines a second past the log. What matters of them is
    logged by `Problems`.
    """
    said = {key: value.get_secret_value() for key, value in settings.options.items()}
    return {**said, "bootstrap.servers": settings.servers, "log_level": "0"}


def reading(kafka: Mapping[str, str], *, group: str, problems: Problems) -> dict[str, Any]:
    """Return the options of a consumer: it reads what is committed, from the first message on.

    `kafka`: as `client_options` returns them. Nothing is committed by itself.
    """
    return {
        **_READ_AHEAD,
        **kafka,
        "group.id": group,  # required, also where there is no group
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "error_cb": lambda error: problems.note(error.str()),
    }


def writing(kafka: Mapping[str, str], *, problems: Problems) -> dict[str, Any]:
    """Return the options of a producer: each message once, in order, on all replicas."""
    return {
        "compression.type": "lz4",
        **kafka,
        "acks": "all",
        "enable.idempotence": True,
        "error_cb": lambda error: problems.note(error.str()),
    }
