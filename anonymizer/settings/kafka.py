"""`[kafka]`: where Apache Kafka is, for gateways without MQTT, and for clusters."""

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from anonymizer.settings.base import Group, Name, NonEmpty, like

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
KafkaTopic = Annotated[
    str,
    like(
        r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,248}$",
        "must be a topic of Kafka: at most 249 letters, digits, dots, _ and -",
    ),
]


class KafkaSettings(Group):
    """Apache Kafka: for `inputs.kafka`, `output.kafka`, and bridges and workers of a cluster.

    It needs the extra `kafka`. A gateway with `inputs.kafka` needs no MQTT broker.
    """

    servers: Addresses = "127.0.0.1:9092"
    """Addresses of some brokers of Kafka, `host:port,host:port`."""
    options: dict[Option, SecretStr] = Field(default={})
    """Options of librdkafka, the client library, as text: above all those of encryption and login,
    `{ "security.protocol" = "ssl", "ssl.ca.location" = "ca.pem" }`."""
    group: Name = "anonymizer"
    """Name of the gateway's consumer group. Where it has read to is kept in Kafka. Several gateways
    in one group divide the devices, and each hides its own among its own alone: run one, the second
    for the case that it fails only with topics of one partition."""
