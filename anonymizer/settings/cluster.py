"""`[cluster]`: positions and records on Apache Kafka, as bridges and workers."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr, field_validator

from anonymizer.settings.base import PLAIN_NAME, Group, NonEmpty, Positive, like

_OWN = frozenset(
    {
        "acks", "auto.offset.reset", "bootstrap.servers", "client.id", "enable.auto.commit",
        "enable.auto.offset.store", "enable.idempotence", "enable.partition.eof", "group.id",
        "isolation.level", "message.timeout.ms", "delivery.timeout.ms", "partitioner",
        "request.required.acks", "transactional.id",
    }
)  # fmt: skip
"""Options on which the promises of bridges and workers depend."""


def _is_not_own(key: str) -> str:
    if key in _OWN:
        raise ValueError(f"{key} is set by bridges and workers themselves")
    return key


Option = Annotated[
    str,
    like(r"^[a-z0-9.]{1,64}$", "must be an option of librdkafka, such as security.protocol"),
    AfterValidator(_is_not_own),
]
"""Key of an option of librdkafka."""


class ClusterSettings(Group):
    """Kafka, and what `anonymizer bridge` and `anonymizer worker` must agree on.

    `anonymizer serve` uses nothing of it. All bridges and workers of a cluster need the same
    settings.
    """

    kafka: NonEmpty = "127.0.0.1:9092"
    """Addresses of some brokers of Kafka, `host:port,host:port`."""
    kafka_options: dict[Option, SecretStr] = Field(default={})
    """Options of librdkafka, the client library, as text: above all those of encryption and login,
    `{ "security.protocol" = "ssl", "ssl.ca.location" = "ca.pem" }`."""
    prefix: Annotated[str, like(r"^[A-Za-z0-9_-]{1,64}$", PLAIN_NAME)] = "anonymizer"
    """Beginning of the names of the topics and consumer groups in Kafka."""
    n_sources: Annotated[int, Field(ge=1, le=1024)] = 4
    """Number of sources: parts of the devices that are located independently. It must not change
    while there is anything in the topics."""
    n_joiners: Annotated[int, Field(ge=1, le=1024)] = 4
    """Number of joiners: parts of the vehicles whose records are joined independently. It must not
    change while there is anything in the topics."""
    n_ranges: Annotated[int, Field(ge=1, le=1024)] = 4
    """Number of ranges: parts of a closed window that are anonymized at the same time. It must not
    change while there is anything in the topics."""
    records_per_range: Annotated[int, Field(ge=100, le=1_000_000)] = 50_000
    """About how many records of a window one range takes. A larger window is divided by a sample
    into several ranges, which form classes apart; only what finds no class, and classes at the
    borders, meet once more. A worker forms the classes of a range in one go, which must take less
    than 240 s; its other stages wait meanwhile."""
    wait_s: Positive = 5.0
    """How long a tick waits for a bridge, a source or a district that has fallen silent, in
    seconds."""
    secret_file: Path | None = None
    """A file with at least 32 random bytes that others may not read, the same for all workers.
    Pseudonyms are made with it. None: workers do not start."""

    @field_validator("kafka")
    @classmethod
    def _addresses_have_ports(cls, kafka: str) -> str:
        for address in kafka.split(","):
            host, _, port = address.rpartition(":")
            if not host or "/" in host or not port.isdigit() or not 0 < int(port) < 1 << 16:
                raise ValueError("must be host:port, or several with commas in between")
        return kafka
