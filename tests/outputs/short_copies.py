"""Copies for the tests: of each message about a group, its number of members. One file, no more."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from anonymizer.domain.network import RoadNetwork
from anonymizer.outputs.copies import Copy
from anonymizer.outputs.message_kind import NUMBER, Channel, MessageKind, object_of
from anonymizer.pipeline.ports import Outgoing

if TYPE_CHECKING:
    from anonymizer.settings import Settings

TOPIC = "anonymizer/sizes"
_KIND = MessageKind(
    "Size", "How many members a group has.", object_of({"n": NUMBER}, "n"), {"n": 9}
)


class Sizes(Copy):
    """Tells the size of each group."""

    name = "sizes"

    def __init__(self, settings: "Settings", network: RoadNetwork) -> None:  # noqa: ARG002  see `Copy`
        self._groups = settings.output.topic

    @staticmethod
    def channels(settings: "Settings") -> Iterator[Channel]:  # noqa: ARG004  see `Copy`
        """Yield the topic."""
        yield Channel(TOPIC, _KIND, incoming=False)

    def of(self, messages: Sequence[Outgoing]) -> list[Outgoing]:
        """Return the sizes."""
        groups = [msgspec.json.decode(m.payload) for m in messages if m.topic == self._groups]
        sizes = [{"n": len(group["pseudonyms"])} for group in groups]
        return [Outgoing(TOPIC, msgspec.json.encode(each)) for each in sizes]


COPY = Sizes
