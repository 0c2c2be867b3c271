"""What an operator does with a cluster: check its settings, see what was dropped, erase it."""

import fcntl
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from anonymizer.cluster.dropping import Dropped, decode_dropped
from anonymizer.cluster.kafka import (
    check_options,
    worker_secret,
)
from anonymizer.cluster.limits import check_cluster
from anonymizer.cluster.topics import Kind, topic_by_kind
from anonymizer.cluster.worker import stage_makers
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError, SettingsError
from anonymizer.extras import extra
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.settings import Settings, zones_of
from anonymizer.transport.kafka_clients import client_options, reading
from anonymizer.transport.kafka_problems import KafkaLostError, Problems, reason_of

with extra("kafka"):
    from confluent_kafka import (
        Consumer,
        ConsumerGroupState,
        KafkaError,
        KafkaException,
        TopicPartition,
    )
    from confluent_kafka.admin import AdminClient

_ANSWER_S = 30.0
_LEAVE_S = 12.0
"""Time for which Kafka may take a worker that has ended for a member: twice its session."""
_MOMENT_S = 0.2
_RAW: tuple[Kind, ...] = ("source", "lane", "stream")
_EARLIER = "plans", "ranges"
"""Topics of earlier versions with raw data."""
_T = TypeVar("_T")


def check_members(settings: Settings, network: RoadNetwork, streams: Sequence[Stream]) -> None:
    """Check all that a bridge or a worker would refuse, without a connection.

    Raises `SettingsError` if one would end at its start; the message names the key.
    """
    check_cluster(settings)
    check_options(settings)
    secret = worker_secret(settings)
    zoned = with_zones(network, zones_of(settings.zones))
    makers = stage_makers(settings, zoned, streams, secret)
    if not makers:
        raise SettingsError("inputs, streams: there are none, so a cluster has nothing to do")
    for make in makers.values():
        make(0)


def dropped(settings: Settings) -> Iterator[Dropped]:
    """Yield where the inputs lie that workers have dropped, the oldest first.

    Raises `KafkaLostError` if Kafka cannot be read.
    """
    topic = topic_by_kind(settings)["dropped"]
    told = reading(client_options(settings.kafka), group=topic.name, problems=Problems())
    reader = Consumer({**told, "enable.partition.eof": True})
    try:
        where = TopicPartition(topic.name, 0)
        where.offset, _ = _asked(lambda: reader.get_watermark_offsets(where, timeout=_ANSWER_S))
        reader.assign([where])
        while True:
            message = reader.poll(_ANSWER_S)
            if message is None:
                raise KafkaLostError("kafka.servers: does not answer")
            error = message.error()
            if error is None:
                yield _said_in(message)
            elif error.name() == "_PARTITION_EOF":
                return
            else:
                raise KafkaLostError(f"kafka.servers: {error.str()}")
    finally:
        reader.close()


def _said_in(message: Any) -> Dropped:  # noqa: ANN401  of the library
    """Return what a notice says; a message that no worker has sent is described as such."""
    value = message.value() or b""
    try:
        return decode_dropped(value)
    except (ValueError, RecursionError):
        at_s = message.timestamp()[1] / 1000
        where = message.topic(), message.partition(), message.offset()
        return Dropped(*where, at_s, len(value), "unreadable")


def erase(settings: Settings, state_dir: Path | None) -> list[str]:
    """Erase all raw data of a cluster that is stopped; return what was erased.

    That is every input of a stage and every state, in Kafka and in a folder of states. What was
    published stays. The cluster begins anew afterwards.

    InputError if bridges or workers run, or the folder cannot be erased; KafkaLostError if Kafka
    cannot be reached, or refuses.
    """
    group, bridges = (f"{settings.kafka.group}.{kind}" for kind in ("workers", "bridges"))
    erased = []
    with ExitStack() as held:
        admin = held.enter_context(AdminClient(dict(client_options(settings.kafka))))
        folders = [] if state_dir is None else _folders(state_dir, group, held)
        _check_stopped(admin, [group, bridges])
        raw = {topic.name for kind, topic in topic_by_kind(settings).items() if kind in _RAW}
        raw |= {f"{settings.kafka.group}.{name}" for name in _EARLIER}
        there = _asked(lambda: admin.list_topics(timeout=_ANSWER_S)).topics
        names = [name for name in there if name in raw or name.startswith(f"changelog__{group}--")]
        if names:
            for future in admin.delete_topics(names, request_timeout=_ANSWER_S).values():
                _asked(future.result)
        erased += [f"topic {name}" for name in sorted(names)]
        [forgotten] = admin.delete_consumer_groups([group], request_timeout=_ANSWER_S).values()
        try:
            forgotten.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise KafkaLostError(f"kafka.servers: {reason_of(error)}") from None
        for folder in folders:
            try:
                shutil.rmtree(folder) if folder.is_dir() else folder.unlink()
            except OSError as error:
                raise InputError(f"{folder}: cannot be erased: {error.strerror}") from None
            erased.append(f"folder {folder}" if not folder.suffix else f"file {folder}")
    return erased


def _folders(state_dir: Path, group: str, held: ExitStack) -> list[Path]:
    """Return what workers of this or earlier versions keep; hold their locks meanwhile."""
    for lock in sorted(state_dir.glob("*.lock")):
        file = held.enter_context(lock.open("a"))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{lock}: this worker runs; stop it first") from None
    kept = (state_dir.glob(f"*/{group}{end}") for end in ("", ".topics.json"))
    return sorted(path for paths in kept for path in paths)


def _check_stopped(admin: Any, groups: Sequence[str]) -> None:  # noqa: ANN401  of the library
    """Check that no group has members; one that has just ended may still be counted."""
    deadline = time.monotonic() + _LEAVE_S
    while True:
        asked = admin.describe_consumer_groups(list(groups), request_timeout=_ANSWER_S)
        found = {name: _state_of(future) for name, future in asked.items()}
        running = [name for name, has_members in found.items() if has_members]
        if not running:
            return
        if time.monotonic() > deadline:
            raise InputError(
                f"cluster: members of {', '.join(sorted(running))} run: stop all bridges and"
                " workers first"
            )
        time.sleep(_MOMENT_S)


def _state_of(future: Any) -> bool:  # noqa: ANN401  likewise
    try:
        state = future.result().state
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return False
        raise KafkaLostError(f"kafka.servers: {reason_of(error)}") from None
    return state not in {ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD}


def _asked(ask: Callable[[], _T]) -> _T:
    try:
        return ask()
    except KafkaException as error:
        raise KafkaLostError(f"kafka.servers: {reason_of(error)}") from None
