"""Topics of Kafka that must be there, and the key that workers share."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from anonymizer.cluster.topics import Kind, Topic, changelog_of, topic_by_kind
from anonymizer.errors import SettingsError
from anonymizer.extras import extra
from anonymizer.outputs.registry import asked_for
from anonymizer.settings import Settings
from anonymizer.transport.kafka_clients import MESSAGE_BYTES, client_options
from anonymizer.transport.kafka_problems import KafkaLostError, reason_of

with extra("kafka"):
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        NewTopic,
        ResourceType,
    )

BATCH_BYTES = 1_000_000
"""Most bytes that are sent to a partition together, unless one message has more."""
_LARGE = {"max.message.bytes": str(MESSAGE_BYTES)}
_INPUT_CONFIG = {
    # Workers delete what they do not need any more. The rest is needed, however old it is.
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "segment.ms": "60000",  # only whole segments are erased, and these are raw positions
}
_CHANGELOG_CONFIG = {
    "cleanup.policy": "compact",
    # What was replaced may be erased soon, so that there is little to read, and less raw data.
    "segment.ms": "60000",
    "delete.retention.ms": "60000",
    "min.cleanable.dirty.ratio": "0.2",
}
_OUTPUTS: tuple[Kind, ...] = ("out", "release", "files", "dropped")
_LEAST_MS = 3_600_000
"""Time for which outputs are kept."""
_DROPPED_MS = 30 * 86_400_000
_ANSWER_S = 30.0
_MOMENT_S = 0.05
_SECRET_BYTES = 32


class OperatorTopics(NamedTuple):
    """The operator's own topics.

    `n_partitions`: of each that is read; `largest`: bytes of the largest message, of each that is
    written to.
    """

    n_partitions: Mapping[str, int]
    largest: Mapping[str, int]


def ensure_topics(settings: Settings) -> None:
    """Create the topics that are missing, with as many copies as Kafka's own default says.

    Inputs of stages are kept without a limit, in topics that are there already, too.

    SettingsError if a topic has another number of partitions than the settings ask for: messages of
    one stage would lie in two places. KafkaLostError if Kafka cannot be reached, or refuses.
    """
    by_kind, configs = topic_by_kind(settings), topic_configs(settings)
    wanted = list(by_kind.values())
    with AdminClient(dict(client_options(settings.kafka))) as admin:
        try:
            made = admin.create_topics(
                [NewTopic(*topic, config=configs[topic.name]) for topic in wanted],
                request_timeout=_ANSWER_S,
            )
            for future in made.values():
                _unless_there(future.result)
            there = _listed(admin, {topic.name for topic in wanted})
        except KafkaException as error:
            raise KafkaLostError(f"kafka.servers: {reason_of(error)}") from None
        for topic in wanted:
            n = len(there[topic.name].partitions) if topic.name in there else 0
            if n != topic.n_partitions:
                raise SettingsError(
                    f"cluster: the topic {topic.name} has {n} partitions, and these settings need"
                    f" {topic.n_partitions}; choose another prefix, or go back to the earlier"
                    " numbers"
                )
        _keep_inputs(admin, [topic for kind, topic in by_kind.items() if kind not in _OUTPUTS])


def topic_configs(settings: Settings) -> dict[str, dict[str, str]]:
    """Return how Kafka is to keep each topic that these settings need, by name."""
    # What was published is no secret, and a bridge that lost its file reads it again.
    kept_ms = max(_LEAST_MS, int(1000 * settings.store.keep_published_s))
    # A bridge whose clock is ahead would close ticks for which others still have messages.
    ahead = {"message.timestamp.after.max.ms": str(int(1000 * settings.cluster.wait_s))}
    # The newest file is read anew by whoever starts, also when the next one was left out.
    every_s = max((each.every_s(settings) for each in asked_for(settings) if each.path), default=0)
    files_ms = max(_LEAST_MS, int(3000 * every_s))
    config_of: dict[Kind, dict[str, str]] = {
        "source": _INPUT_CONFIG | ahead,
        "stream": _INPUT_CONFIG | ahead,
        "out": {"retention.ms": str(_LEAST_MS), "segment.ms": "600000"},
        "release": {"retention.ms": str(kept_ms), "segment.ms": "600000"},
        "files": {"retention.ms": str(files_ms), "segment.ms": "600000"},
        "dropped": {"retention.ms": str(_DROPPED_MS), "segment.ms": "600000"},
    }
    return {
        topic.name: _LARGE | config_of.get(kind, _INPUT_CONFIG)
        for kind, topic in topic_by_kind(settings).items()
    }


def changelogs(group: str, inputs: Iterable[Topic]) -> list[NewTopic]:
    """Return the topics for the snapshots of the stages that read some topics."""
    return [
        NewTopic(
            changelog_of(group, topic.name), topic.n_partitions, config=_LARGE | _CHANGELOG_CONFIG
        )
        for topic in inputs
    ]


def own_topics(settings: Settings, read: Iterable[str], written: Iterable[str]) -> OperatorTopics:
    """Return what is to be known of the operator's own topics.

    SettingsError if a topic does not take what Kafka's client sends together; KafkaLostError if one
    is missing, or Kafka cannot be reached, or refuses.
    """
    read, written = sorted(set(read)), sorted(set(written))
    if not read and not written:
        return OperatorTopics({}, {})
    try:
        with AdminClient(dict(client_options(settings.kafka))) as admin:
            there = admin.list_topics(timeout=_ANSWER_S).topics
            if missing := sorted({*read, *written} - there.keys()):
                raise KafkaLostError(f"Kafka: there is no topic {', '.join(missing)}")
            asked = [ConfigResource(ResourceType.TOPIC, name) for name in written]
            found = admin.describe_configs(asked, request_timeout=_ANSWER_S) if asked else {}
            largest = {
                resource.name: int(future.result()["max.message.bytes"].value)
                for resource, future in found.items()
            }
    except KafkaException as error:
        raise KafkaLostError(f"kafka.servers: {reason_of(error)}") from None
    for name, most in largest.items():
        if most < BATCH_BYTES:
            raise SettingsError(
                f"kafka: the topic {name} has max.message.bytes = {most}; a cluster needs at least"
                f" {BATCH_BYTES}, because Kafka's client sends several messages together"
            )
    return OperatorTopics({name: len(there[name].partitions) for name in read}, largest)


def ensure_changelogs(kafka: Mapping[str, str], group: str, inputs: Iterable[Topic]) -> None:
    """Create the topics for the snapshots of the stages that read some topics.

    Raises `KafkaLostError` if Kafka cannot be reached, or refuses.
    """
    try:
        with AdminClient(dict(kafka)) as admin:
            made = admin.create_topics(changelogs(group, inputs), request_timeout=_ANSWER_S)
            for future in made.values():
                _unless_there(future.result)
    except KafkaException as error:
        raise KafkaLostError(f"Kafka: {reason_of(error)}") from error


def _keep_inputs(admin: Any, topics: Sequence[Topic]) -> None:  # noqa: ANN401  of the library
    """Let Kafka keep the inputs of stages in existing topics, too; warn if it refuses."""
    for topic in topics:
        try:
            if _is_limited(admin, topic.name):
                wanted = [
                    ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                    for name, value in _INPUT_CONFIG.items()
                ]
                resource = ConfigResource(
                    ResourceType.TOPIC, topic.name, incremental_configs=wanted
                )
                _answer(admin.incremental_alter_configs([resource], request_timeout=_ANSWER_S))
                _LOG.info("Kafka keeps inputs without a limit now", topic=topic.name)
        except KafkaException as error:
            _LOG.warning(
                "Kafka does not let this user change how long it keeps inputs: set retention.ms"
                " and retention.bytes of the topic to -1",
                topic=topic.name,
                reason=reason_of(error),
            )


def _is_limited(admin: Any, name: str) -> bool:  # noqa: ANN401  of the library
    """Return whether a topic has another configuration than inputs of stages have."""
    resource = ConfigResource(ResourceType.TOPIC, name)
    there = _answer(admin.describe_configs([resource], request_timeout=_ANSWER_S))
    return any(there[key].value != value for key, value in _INPUT_CONFIG.items())


def _answer(asked: Mapping[Any, Any]) -> Any:  # noqa: ANN401  of the library
    [future] = asked.values()
    return future.result()


def _listed(admin: AdminClient, names: set[str]) -> Mapping[str, Any]:
    """Return all topics; a new one may be listed a moment after it was created."""
    deadline = time.monotonic() + _ANSWER_S
    while True:
        there: Mapping[str, Any] = admin.list_topics(timeout=_ANSWER_S).topics
        if names <= there.keys() or time.monotonic() > deadline:
            return there
        time.sleep(_MOMENT_S)


def secret_of(path: Path) -> bytes:
    """Return the key that is in `cluster.secret_file`, 64 bytes at most.

    Raises `SettingsError` if it cannot be read, is too short, or can be read by others than its
    owner and its group.
    """
    try:
        if path.stat().st_mode & 0o007:
            raise SettingsError("cluster.secret_file: others can read it; chmod 600")
        secret = path.read_bytes()
    except OSError:
        raise SettingsError("cluster.secret_file cannot be read") from None
    if len(secret) < _SECRET_BYTES:
        raise SettingsError(f"cluster.secret_file: needs at least {_SECRET_BYTES} random bytes")
    return secret if len(secret) <= blake2b.MAX_KEY_SIZE else blake2b(secret).digest()


def worker_secret(settings: Settings) -> bytes:
    """Return the key that workers need; see `secret_of`."""
    if settings.cluster.secret_file is None:
        raise SettingsError("cluster.secret_file: workers need one")
    return secret_of(settings.cluster.secret_file)


def check_options(settings: Settings) -> None:
    """Check that Kafka's client knows the options, and can read the files that they name.

    Raises `SettingsError` if not.
    """
    options = client_options(settings.kafka)
    del options["bootstrap.servers"]  # so that it connects to nothing
    try:
        with AdminClient(dict(options)):
            pass
    except KafkaException as error:
        raise SettingsError(f"kafka.options: {reason_of(error)}") from None


def _unless_there(result: Callable[[], object]) -> None:
    try:
        result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


_LOG: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
