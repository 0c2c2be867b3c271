"""Messages from Kafka in the form of the pipeline, in which the topic names the device."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.discreet import discreet
from anonymizer.settings import InputSettings, SourceSettings
from anonymizer.settings.base import id_levels

Message: TypeAlias = Any
"""A message of confluent-kafka."""

_PIECE_BYTES = 1 << 28
"""Of a batch, whose bounds are numbers of 32 bits."""


class _Source(NamedTuple):
    """What is to be known of a topic that is read."""

    name: bytes
    """Under which its messages pass the pipeline, as far as it is the same for all."""
    names_devices: bool
    header: str | None


@discreet
class Piece(NamedTuple):
    """Messages, and the bytes of their topics and payloads, see `packed.Packed`."""

    messages: Sequence[Message]
    stream: bytes
    bounds: Int32Array


class KafkaTopics:
    """The topics of Kafka that some inputs, or sources of records, read.

    Parameters
    ----------
    inputs
        Those that are not of Kafka are left out.
    max_payload_bytes
        Of longer payloads only one byte more is passed on.
    """

    def __init__(
        self, inputs: Iterable[InputSettings | SourceSettings], *, max_payload_bytes: int
    ) -> None:
        self._sources = {each.kafka: _source(each) for each in inputs if each.kafka is not None}
        items = self._sources.items()
        self._name_of = {topic: of.name for topic, of in items if not of.names_devices}
        self._most = max_payload_bytes + 1

    @property
    def names(self) -> list[str]:
        """Their names."""
        return list(self._sources)

    def pieces(self, messages: Sequence[Message]) -> Iterator[Piece]:
        """Yield messages of these topics as if they had come by MQTT, in batches of some size."""
        parts = [b""] * (2 * len(messages))
        name_of, most = self._name_of, self._most
        parts[::2] = [name_of.get(each.topic()) or self._topic(each) for each in messages]
        parts[1::2] = [(each.value() or b"")[:most] for each in messages]
        cuts = np.zeros(len(parts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=cuts[1:])
        if cuts[-1] > _PIECE_BYTES and len(messages) > 1:
            yield from self.pieces(messages[: len(messages) // 2])
            yield from self.pieces(messages[len(messages) // 2 :])
            return
        bounds = np.stack([cuts[:-1:2], cuts[1::2], cuts[1::2], cuts[2::2]], axis=1)
        yield Piece(messages, b"".join(parts), bounds.astype(np.int32))

    def _topic(self, message: Message) -> bytes:
        """Return the topic of a message that names a device."""
        source = self._sources[message.topic()]
        if source.header is None:
            return source.name + _level(message.key())
        stated = dict(message.headers() or ())  # the last one of a name, as Kafka's own clients
        return source.name + _level(stated.get(source.header))


def _source(settings: InputSettings | SourceSettings) -> _Source:
    names_devices = bool(id_levels(settings.topic))
    name, slash, _ = settings.topic.partition("/")
    return _Source(f"{name}{slash}".encode(), names_devices, settings.header)


def _level(name: bytes | str | None) -> bytes:
    """Return an id as one level of a topic, another one for each; empty if it is no text."""
    level = name.encode() if isinstance(name, str) else name or b""
    try:
        level.decode()
    except UnicodeDecodeError:
        return b""
    return level.replace(b"%", b"%25").replace(b"/", b"%2F")
