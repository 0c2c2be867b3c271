"""Kafka's topics for what stages send: to stages, to bridges, and the operator's own."""

from collections.abc import Iterator, Mapping

import structlog

from anonymizer.cluster.positions.raw_batches import decode_out, encode_out
from anonymizer.cluster.resident import StageEvents
from anonymizer.cluster.runner import Addressed
from anonymizer.cluster.stage import Send
from anonymizer.cluster.topics import Kind, Topic, key_of
from anonymizer.settings import Settings

_HEADER_BYTES = 1024
"""More than what Kafka adds to a message."""


def kafka_outputs(settings: Settings) -> dict[str, str]:
    """Return the operator's topic for what is published, by topic of the pipeline."""
    of_records = {each.output_topic: each.kafka for each in settings.streams if each.kafka}
    return settings.kafka_outputs | of_records


class Destinations:
    """Addresses messages of stages.

    A message that its topic does not take would end every transaction that it is in. It is left
    out, and counted.

    `topics` are by the kind of what is in them; `outputs`: see `kafka_outputs`.
    """

    def __init__(
        self,
        topics: Mapping[Kind, Topic],
        outputs: Mapping[str, str],
        counts: StageEvents,
    ) -> None:
        self._topic_of: dict[str, tuple[Kind, Topic]] = {
            kind: (kind, topics[kind]) for kind in topics
        }
        self._outputs, self._counts = outputs, counts
        self.largest: Mapping[str, int] = {}
        """Of the operator's topics: bytes of the largest message that each takes."""

    def of(self, send: Send) -> Iterator[Addressed]:
        """Yield what a message of a stage is in Kafka."""
        value = send.value
        if send.to == "out" and self._outputs:
            by_mqtt = []
            for message in decode_out(value):
                topic = self._outputs.get(message.topic)
                if topic is None:
                    by_mqtt.append(message)
                    continue
                payload = message.payload
                if len(payload) + _HEADER_BYTES <= self.largest.get(topic, 0):
                    yield Addressed(topic, message.key.encode() or None, payload)
                else:
                    self._counts.n_dropped["too_large"] += 1
                    _LOG.error(
                        "a message is too large: raise max.message.bytes of the topic",
                        topic=topic,
                        n_bytes=len(payload),
                    )
            if not by_mqtt:
                return
            value = encode_out(by_mqtt)
        kind, to = self._topic_of[send.to]
        yield Addressed(to.name, key_of(kind, send.number, to.n_partitions), value)


_LOG: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
