"""Current groups in the contract."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anonymizer.outputs.groups_contract import region_kind
from anonymizer.outputs.message_kind import (
    CONTRACT_VERSION,
    NUMBER,
    Channel,
    MessageKind,
    object_of,
)

if TYPE_CHECKING:
    from anonymizer.settings import Settings


def current_channels(settings: "Settings") -> Iterator[Channel]:
    """Yield the topic of the groups that live now, if they are published."""
    if settings.current.every_s:
        topic = f"{settings.topics.current}/{{part}}"
        yield Channel(topic, current(region_kind(settings)), incoming=False, retained=True)


def current(region: MessageKind) -> MessageKind:
    """Return the message with the groups that live now, in the form of those about regions."""
    return MessageKind(
        "Current",
        "The groups that live now, as they were last published.",
        object_of(
            {
                "v": {"const": CONTRACT_VERSION},
                "time": NUMBER,
                "network": {"type": "string"},
                "part": {"type": "integer", "minimum": 0},
                "of": {"type": "integer", "minimum": 1},
                "groups": {"type": "array", "items": {"$ref": f"#/$defs/{_root_of(region)}"}},
            },
            *("v", "time", "network", "part", "of", "groups"),
        )
        | {"$defs": (region.schema or {})["$defs"]},
    )


def _root_of(message: MessageKind) -> str:
    return str((message.schema or {})["$ref"]).rpartition("/")[2]
