"""`[kafka]`: where Apache Kafka is, for gateways without MQTT, and for clusters."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from anonymizer.settings.base import Group, Name, NonEmpty, OutputTopic, like

_OWN = frozenset(
    {
        "acks", "auto.offset.reset", "bootstrap.servers", "client.id", "enable.auto.commit",
        "enable.auto.offset.store", "enable.idempotence", "enable.partition.eof", "group.id",
        "isolation.level", "message.timeout.ms", "delivery.timeout.ms", "partitioner",
        "request.required.acks", "transactional.id",
    }
)  # fmt: skip
"""Options on which the promises of a gateway, bridges and workers depend."""


def _is_not_own(key: str) -> str:
    if key in _OWN:
        raise ValueError(f"{key} is set by bridges and workers themselves, and by the gateway")
    return key


Option = Annotated[
    str,
    like(r"^[a-z0-9.]{1,64}$", "must be an option of librdkafka, such as security.protocol"),
    AfterValidator(_is_not_own),
]
"""Key of an option of librdkafka."""


def _have_ports(kafka: str) -> str:
    for address in kafka.split(","):
        host, _, port = address.rpartition(":")
        if not host or "/" in host or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise ValueError("must be host:port, or several with commas in between")
    return kafka


Addresses = Annotated[NonEmpty, AfterValidator(_have_ports)]
"""Addresses of some brokers of Kafka."""
_TOPIC = r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,248}$"
_NO_TOPIC = "must be a topic of Kafka: at most 249 letters, digits, dots, _ and -"
_OF_KAFKA = "kafka:"


def check_kafka_topic(stated: str) -> None:
    """Raise ValueError if this is no topic of Kafka."""
    if not re.match(_TOPIC, stated):
        raise ValueError(_NO_TOPIC)


def topic_of_kafka(topic: object) -> str | None:
    """Return the topic of Kafka in `kafka:NAME`, also with levels below it; None: it is another."""
    if not isinstance(topic, str) or not topic.startswith(_OF_KAFKA):
        return None
    return topic.removeprefix(_OF_KAFKA).partition("/")[0]


def checked_topic(topic: str, below: str = "") -> str:
    """Return a topic; `kafka:NAME` with `below`, the level that names the device, as in messages.

    ValueError if NAME is no topic of Kafka, or other levels are below it.
    """
    if topic_of_kafka(topic) is None:
        return topic
    name = topic.removeprefix(_OF_KAFKA).removesuffix(below)
    check_kafka_topic(name)
    return f"{_OF_KAFKA}{name}{below}"


def topic_below(topic: str, below: str) -> str:
    """Return `checked_topic`; the error names the key, for a table as a whole."""
    try:
        return checked_topic(topic, below)
    except ValueError as error:
        raise ValueError(f"topic: {error}") from None


AnyOutputTopic = Annotated[OutputTopic, AfterValidator(checked_topic)]
"""MQTT topic without wildcards, or `kafka:NAME`, a topic of Kafka."""


class KafkaSettings(Group):
    """Apache Kafka, for a gateway that reads and publishes there, and for clusters.

    `topic = "kafka:NAME"` of inputs, output, streams and their sources is a topic of Kafka, which
    must exist. It needs the extra `kafka`. A gateway that reads Kafka alone needs no MQTT broker.
    """

    servers: Addresses = "127.0.0.1:9092"
    """Addresses of some brokers of Kafka, `host:port,host:port`."""
    options: dict[Option, SecretStr] = Field(default={})
    """Options of librdkafka, the client library, as text: above all those of encryption and login,
    `{ "security.protocol" = "ssl", "ssl.ca.location" = "ca.pem" }`."""
    group: Name = "anonymizer"
    """Name of the consumer group; that of records has `.records` behind it. Where it has read to is
    kept in Kafka, for records also in the store. Several gateways in one group would divide the
    devices, and each would hide only its own among each other: run one. A second one that takes
    over needs topics of one partition. The names of a cluster's topics and groups begin with it."""
