"""Messages as CloudEvents: they get headers, and stay as they are.

References
----------
.. [1] "MQTT Protocol Binding for CloudEvents", version 1.0.3-wip, section 3.1 (binary mode).
"""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from anonymizer.outputs.groups_contract import group_channels
from anonymizer.outputs.registry import asked_for
from anonymizer.pipeline.ports import Headers, Link, LinkInFront, Outgoing

if TYPE_CHECKING:
    from anonymizer.settings import Settings

_ID_BYTES = 12
_TYPE = "anonymizer.{kind}.v1"


class EventHeaders:
    """Gives messages about groups, fixed devices and windows the headers of CloudEvents."""

    def __init__(self, settings: "Settings") -> None:
        self._source = "/" + settings.broker.status_topic.rpartition("/")[0]
        channels = [*group_channels(settings)]
        channels += [one for each in asked_for(settings) for one in each.channels(settings)]
        self.kind_of = {each.address: each.message.name for each in channels if not each.retained}
        """Name of the messages on each topic that carries events."""

    def of(self, messages: Sequence[Outgoing]) -> list[Outgoing]:
        """Return the messages, with headers where they are events."""
        return [self._with_headers(message) for message in messages]

    def _with_headers(self, message: Outgoing) -> Outgoing:
        kind = self.kind_of.get(message.topic)
        if kind is None:
            return message
        return message._replace(headers=cloudevent(message, kind=kind, source=self._source))

    def schema(self, kind: str) -> dict[str, Any]:
        """Return the JSON Schema of the headers of a kind of message."""
        required = ["specversion", "id", "source", "type"]
        fixed = {
            "specversion": "1.0",
            "source": self._source,
            "type": _TYPE.format(kind=kind),
        }
        properties = {
            each: {"const": fixed[each]} if each in fixed else {"type": "string"}
            for each in required
        }
        return {"type": "object", "properties": properties, "required": required}


def event_headers(settings: "Settings") -> EventHeaders | None:
    """Return the headers of events; None: the settings ask for none."""
    return EventHeaders(settings) if "cloudevents" in settings.output.forms else None


class EventsLink(LinkInFront):
    """A link that publishes messages as events."""

    def __init__(self, link: Link, headers: EventHeaders) -> None:
        super().__init__(link)
        self._headers = headers

    async def publish(
        self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
    ) -> Sequence[bool | None]:
        """Publish a batch."""
        return await self._link.publish(self._headers.of(messages), qos=qos, timeout_s=timeout_s)


def cloudevent(message: Outgoing, *, kind: str, source: str) -> Headers:
    """Return the attributes of an event in binary content mode [1]_.

    Its `id` is a hash of topic and payload, so a message that is sent twice is one event.
    """
    digest = blake2b(message.payload, digest_size=_ID_BYTES, key=message.topic.encode()[:64])
    return Headers(
        content_type="application/json",
        user=(
            ("specversion", "1.0"),
            ("id", urlsafe_b64encode(digest.digest()).decode()),
            ("source", source),
            ("type", _TYPE.format(kind=kind)),
        ),
    )
