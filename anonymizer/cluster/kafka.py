"""Access to Kafka: options of the clients, and the topics that must be there."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from anonymizer.cluster.topics import topic_by_kind
from anonymizer.errors import SettingsError, TransportError
from anonymizer.extras import extra
from anonymizer.settings import Settings

with extra("cluster"):
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

MESSAGE_BYTES = 16 << 20
"""Largest message in the topics of a cluster; Kafka's default is a sixteenth."""
_TOPIC_CONFIG = {
    "max.message.bytes": str(MESSAGE_BYTES),
    # Far longer than a snapshot of a stage is old, and no longer: these are raw positions.
    "retention.ms": "3600000",
    "segment.ms": "600000",  # only whole segments are erased
}
_LEAST_MS = int(_TOPIC_CONFIG["retention.ms"])
_ANSWER_S = 30.0
_MOMENT_S = 0.05
_SECRET_BYTES = 32


def client_options(settings: Settings) -> dict[str, str]:
    """Return what every client of Kafka needs: where it is, and how to log in."""
    cluster = settings.cluster
    said = {key: value.get_secret_value() for key, value in cluster.kafka_options.items()}
    return {"bootstrap.servers": cluster.kafka, **said}


def ensure_topics(settings: Settings) -> None:
    """Create the topics that are missing, with as many copies as Kafka's own default says.

    Raises
    ------
    SettingsError
        If a topic has another number of partitions than the settings ask for: messages of one
        stage would lie in two places.
    TransportError
        If Kafka cannot be reached, or refuses.
    """
    by_kind = topic_by_kind(settings)
    wanted = list(by_kind.values())
    # What was published is no secret, and a bridge that lost its file reads it again.
    kept_ms = max(_LEAST_MS, int(1000 * settings.store.keep_published_s))
    # A bridge whose clock is ahead would close ticks for which others still have messages.
    ahead = {"message.timestamp.after.max.ms": str(int(1000 * settings.cluster.wait_s))}
    config_of = {
        "source": _TOPIC_CONFIG | ahead,
        "joiner": _TOPIC_CONFIG | ahead,
        "release": _TOPIC_CONFIG | {"retention.ms": str(kept_ms)},
    }
    try:
        admin = AdminClient(client_options(settings))
        made = admin.create_topics(
            [
                NewTopic(*topic, config=config_of.get(kind, _TOPIC_CONFIG))
                for kind, topic in by_kind.items()
            ],
            request_timeout=_ANSWER_S,
        )
        for future in made.values():
            _unless_there(future.result)
        there = _listed(admin, {topic.name for topic in wanted})
    except KafkaException as error:
        raise TransportError(f"cluster.kafka: {reason_of(error)}") from None
    for topic in wanted:
        n = len(there[topic.name].partitions) if topic.name in there else 0
        if n != topic.n_partitions:
            raise SettingsError(
                f"cluster: the topic {topic.name} has {n} partitions, and these settings need"
                f" {topic.n_partitions}; choose another prefix, or the numbers of before"
            )


def _listed(admin: AdminClient, names: set[str]) -> Mapping[str, Any]:
    """Return all topics; a new one may be listed a moment after it was created."""
    deadline = time.monotonic() + _ANSWER_S
    while True:
        there: Mapping[str, Any] = admin.list_topics(timeout=_ANSWER_S).topics
        if names <= there.keys() or time.monotonic() > deadline:
            return there
        time.sleep(_MOMENT_S)


def secret_of(path: Path) -> bytes:
    """Return the content of `cluster.secret_file`.

    Raises
    ------
    SettingsError
        If it cannot be read, is too short, or can be read by others than its owner and its group.
    """
    try:
        if path.stat().st_mode & 0o007:
            raise SettingsError("cluster.secret_file: others can read it; chmod 600")
        secret = path.read_bytes()
    except OSError:
        raise SettingsError("cluster.secret_file cannot be read") from None
    if len(secret) < _SECRET_BYTES:
        raise SettingsError(f"cluster.secret_file: needs at least {_SECRET_BYTES} random bytes")
    return secret


def reason_of(error: KafkaException) -> str:
    """Return why Kafka failed, in its own words; they name topics and brokers, never content."""
    cause = error.args[0] if error.args else None
    return cause.str() if isinstance(cause, KafkaError) else type(error).__name__


def _unless_there(result: Callable[[], object]) -> None:
    try:
        result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
