"""Messages about groups and fixed devices in the contract."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from anonymizer.outputs.message_kind import CONTRACT_VERSION, Channel, MessageKind, schema_of
from anonymizer.pipeline.positions.out.encoding import DeviceMessage, GroupMessage
from anonymizer.pipeline.positions.out.public_devices import PublicMessage

if TYPE_CHECKING:
    from anonymizer.settings import Settings

_STAMPED = ("v", "network", "group", "until")
"""Fields that every message of a service has, and a line of a file lacks."""
_EXAMPLE_OF_A_REGION: Mapping[str, Any] = {
    "v": CONTRACT_VERSION,
    "time": 1800000000.3,
    "until": 1800000030.3,
    "network": "bec64b210518afc4",
    "group": "0Jt1uZ9xQmT4",
    "k": 2,
    "region": [2, 6, 7, 12],
}
GROUP = MessageKind(
    "Group",
    "A group: all devices that publish one region at one time.",
    schema_of(GroupMessage, also_required=_STAMPED),
    {**_EXAMPLE_OF_A_REGION, "pseudonyms": ["3nG0cQ9kPqAz", "fU2x1bpQ7zdw"]},
)
DEVICE = MessageKind(
    "Device",
    "One member of a group.",
    schema_of(DeviceMessage, also_required=_STAMPED),
    {**_EXAMPLE_OF_A_REGION, "pseudonym": "3nG0cQ9kPqAz"},
)
PUBLIC = MessageKind(
    "PublicDevice",
    "A public device that stands still.",
    schema_of(PublicMessage),
    {"time": 1800000000.3, "device": "air-1", "lat": 60.1699, "lon": 24.9384},
)


def region_kind(settings: "Settings") -> MessageKind:
    """Return what tells of regions: a group, or each of its members."""
    return GROUP if settings.output.form == "group" else DEVICE


def group_channels(settings: "Settings") -> Iterator[Channel]:
    """Yield the topics of groups, and of fixed devices that are cloaked or public."""
    region, kafka = region_kind(settings), settings.output.kafka
    key = "The group." if region is GROUP else "The pseudonym."
    yield Channel(settings.output.topic, region, incoming=False, kafka=kafka, key=key)
    kinds = {each.kind for each in settings.inputs}
    if "fixed" in kinds:
        yield Channel(settings.topics.fixed, region, incoming=False)
    if "public" in kinds:
        yield Channel(settings.topics.public, PUBLIC, incoming=False)
