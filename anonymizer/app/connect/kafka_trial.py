"""Trial of a Kafka's users and rules: each may do what it must, and nothing else.

One message is written, to the raw topic: a position at latitude and longitude 0, where no gateway
believes a device to be. Everything else Kafka is asked: other programs may read what is published.
"""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from anonymizer.app.connect.broker_files import ANALYST, GATEWAY
from anonymizer.app.connect.kafka_files import FLEET
from anonymizer.codecs import CoarsePoint
from anonymizer.errors import TransportError
from anonymizer.extras import extra
from anonymizer.settings import InputSettings, Settings
from anonymizer.transport.kafka_clients import client_options
from anonymizer.transport.kafka_problems import reason_of

with extra("kafka"):
    from confluent_kafka import (
        Consumer,
        KafkaException,
        Producer,
        TopicCollection,
        TopicPartition,
    )
    from confluent_kafka.admin import AdminClient

_ANSWER_S, _AGAIN_S = 10.0, 0.5
_DEVICE = "anonymizer-trial"
READ, WRITE = "READ", "WRITE"


class _User:
    """A user of Kafka, and what it may do, while `held` is open."""

    def __init__(self, name: str, options: Mapping[str, str], held: ExitStack) -> None:
        self.name = name
        self._why = ""
        self.options: dict[str, Any] = {**options, "log_level": "0", "error_cb": self._note}
        self._admin: Any = held.enter_context(AdminClient(self.options))

    def _note(self, error: Any) -> None:  # noqa: ANN401  of confluent-kafka
        if "auth" in error.str().lower() or not self._why:
            self._why = error.str()

    def let_in(self) -> None:
        """Log in; TransportError if that fails."""
        try:
            self._admin.list_topics(timeout=_ANSWER_S)
        except KafkaException as error:
            self._admin.poll(0)  # the client hands over what it noted
            why = self._why or reason_of(error)
            raise TransportError(f"Kafka does not let {self.name} in: {why}") from None

    def may(self, operation: str, topic: str) -> bool:
        """Return whether Kafka lets it do something with a topic that exists, as far as it sees."""
        try:
            found = self._admin.describe_topics(
                TopicCollection([topic]),
                include_authorized_operations=True,
                request_timeout=_ANSWER_S,
            )[topic].result()
        except KafkaException:  # what it may not see it may not use
            return False
        return operation in {each.name for each in found.authorized_operations or ()}

    def may_read_as(self, group: str) -> bool:
        """Return whether it may read as a member of a group; Kafka may have to find it first."""
        deadline = time.monotonic() + _ANSWER_S
        while True:
            try:
                found = self._admin.describe_consumer_groups(
                    [group], include_authorized_operations=True, request_timeout=_ANSWER_S
                )[group].result()
            except KafkaException as error:
                if "COORDINATOR" in error.args[0].name() and time.monotonic() < deadline:
                    time.sleep(_AGAIN_S)
                    continue
                return False
            return READ in {each.name for each in found.authorized_operations or ()}


def try_out(settings: Settings, *, fleet: Mapping[str, str], analyst: Mapping[str, str]) -> bool:
    """Try a Kafka as its three kinds of users; return whether a position was sent.

    None is where its format cannot be written.

    Parameters
    ----------
    settings
        The gateway's, with one input, of Kafka.
    fleet, analyst
        Options of librdkafka of who writes positions and who reads what is published.

    Raises
    ------
    TransportError
        If something is missing; the message says what, in a sentence.
    """
    [stated], regions = settings.inputs, settings.output.kafka or ""
    raw, group = stated.kafka or "", settings.kafka.group
    with ExitStack() as held:
        gateway = _User(GATEWAY, client_options(settings.kafka), held)
        publisher, reader = _User(FLEET, fleet, held), _User(ANALYST, analyst, held)
        for each in (gateway, publisher, reader):
            each.let_in()
        _check_rules(gateway, publisher, reader, raw=raw, regions=regions, group=group)
        payload = _position(stated)
        if payload is not None:
            _send(raw, payload, fleet=publisher, gateway=gateway, group=group)
    return payload is not None


def _check_rules(
    gateway: _User, publisher: _User, reader: _User, *, raw: str, regions: str, group: str
) -> None:
    """Ask for what each must and must not be able to do."""
    for user, operation, topic in (
        (publisher, WRITE, raw),
        (gateway, READ, raw),
        (gateway, WRITE, regions),
        (reader, READ, regions),
    ):
        if not user.may(operation, topic):
            does = {READ: "read", WRITE: "write to"}[operation]
            raise TransportError(
                f"Kafka does not let {user.name} {does} {topic}, or has no such topic: setup.sh"
                " makes topics and rules"
            )
    if not gateway.may_read_as(group):
        raise TransportError(f"Kafka does not let gateway read as a member of group {group}")
    if reader.may(READ, raw):
        raise TransportError(
            f"analyst can read what the fleet writes to {raw}: deny it (setup.sh has the rule),"
            " with an authorizer in Kafka"
        )
    for user in (publisher, reader):
        if user.may(WRITE, regions):
            raise TransportError(
                f"{user.name} can write to {regions}, where the gateway publishes: let gateway"
                " alone"
            )


def _position(stated: InputSettings) -> bytes | None:
    """Return a position at 0, 0 in the format of an input; None: it cannot be written."""
    try:
        return stated.make_encoder()(CoarsePoint(0.0, 0.0, 1, time.time(), _DEVICE, "t"))
    except (KeyError, ValueError):
        return None


def _send(topic: str, payload: bytes, *, fleet: _User, gateway: _User, group: str) -> None:
    """Write as the fleet, read as the gateway, outside its group: one that runs notices nothing."""
    consumer: Any = Consumer({**gateway.options, "group.id": group, "enable.auto.commit": False})
    try:
        consumer.assign(_ends(consumer, topic))
        _produce(topic, payload, fleet)
        deadline = time.monotonic() + _ANSWER_S
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None and message.value() == payload:
                return
    except KafkaException as error:
        raise TransportError(f"Kafka: {topic}: {reason_of(error)}") from None
    finally:
        consumer.close()
    raise TransportError(f"Kafka takes {topic} from fleet and does not give it to gateway")


def _ends(consumer: Any, topic: str) -> list[Any]:  # noqa: ANN401  of confluent-kafka
    """Return the end of each partition of a topic."""
    numbers = consumer.list_topics(topic, timeout=_ANSWER_S).topics[topic].partitions
    parts = [TopicPartition(topic, number) for number in numbers]
    return [
        TopicPartition(
            topic, part.partition, consumer.get_watermark_offsets(part, timeout=_ANSWER_S)[1]
        )
        for part in parts
    ]


def _produce(topic: str, payload: bytes, fleet: _User) -> None:
    refused = ["it does not answer"]

    def note(error: Any, _: object) -> None:  # noqa: ANN401  of confluent-kafka
        refused[:] = [] if error is None else [error.str()]

    producer: Any = Producer({**fleet.options, "message.timeout.ms": int(1000 * _ANSWER_S)})
    producer.produce(topic, payload, _DEVICE, on_delivery=note)
    producer.flush(2 * _ANSWER_S)
    if refused:
        raise TransportError(f"Kafka does not take {topic} from fleet: {refused[0]}")
