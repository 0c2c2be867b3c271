"""Other forms of messages: CloudEvents and NGSI-LD.

Neither says more than the message that it is made of.

References
----------
.. [1] "MQTT Protocol Binding for CloudEvents", version 1.0.3-wip, section 3.1 (binary mode).
.. [2] ETSI GS CIM 009, "NGSI-LD API", section 4.5 (entities).
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from anonymizer.codecs.coarse import iso8601
from anonymizer.codecs.ngsi_ld import CONTEXT
from anonymizer.pipeline.ports import Headers, Link, Outgoing

if TYPE_CHECKING:
    from anonymizer.settings import Settings

_ID_BYTES = 12
ENTITY_TYPE = "CloakedGroup"
EVENT_TYPE = "anonymizer.{kind}.v1"
_OF_THE_ENTITY = frozenset({"v", "time", "group", "geometry", "bbox"})


class OtherForms:
    """Gives messages the headers of CloudEvents, and makes NGSI-LD entities of them.

    Parameters
    ----------
    settings
        The whole settings.
    more
        See `kinds_of`.
    """

    def __init__(self, settings: "Settings", more: Mapping[str, str]) -> None:
        self._source = event_source(settings)
        self._kind_of = kinds_of(settings, more) if "cloudevents" in settings.output.forms else {}
        self._groups_topic = settings.output.topic
        self._entities_topic = (
            settings.topics.entities if "ngsi_ld" in settings.output.forms else None
        )

    @classmethod
    def asked_for(cls, settings: "Settings", more: Mapping[str, str]) -> "OtherForms | None":
        """Return the forms that the settings name; None: they name none."""
        named = {"cloudevents", "ngsi_ld"} & {*settings.output.forms}
        return cls(settings, more) if named else None

    def of(self, messages: Sequence[Outgoing]) -> list[Outgoing]:
        """Return messages with their headers, and behind them all the entities made of them."""
        events = [self._with_headers(message) for message in messages]
        return events + [
            Outgoing(self._entities_topic, entity(message.payload))
            for message in messages
            if self._entities_topic and message.topic == self._groups_topic
        ]

    def _with_headers(self, message: Outgoing) -> Outgoing:
        kind = self._kind_of.get(message.topic)
        if kind is None:
            return message
        return message._replace(headers=cloudevent(message, kind=kind, source=self._source))


class FormsLink:
    """A link that publishes messages in their other forms, too.

    Notes
    -----
    An entity counts neither as published nor as lost: only the message that it is made of does.
    """

    def __init__(self, link: Link, forms: OtherForms) -> None:
        self._link, self._forms = link, forms

    @property
    def connected(self) -> bool:
        """Whether the broker is connected at this moment."""
        return self._link.connected

    async def publish(
        self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
    ) -> Sequence[bool | None]:
        """Publish a batch; the result is about the messages, not about their entities."""
        done = await self._link.publish(self._forms.of(messages), qos=qos, timeout_s=timeout_s)
        return done[: len(messages)]

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Acknowledge settled deliveries to the broker."""
        self._link.acknowledge(receipts)

    async def stop_receiving(self) -> None:
        """End the inflow."""
        await self._link.stop_receiving()

    async def close(self) -> None:
        """Publish the final status and disconnect."""
        await self._link.close()


def event_source(settings: "Settings") -> str:
    """Return the attribute `source` of the events of a gateway: the path of its status."""
    return "/" + settings.broker.status_topic.rpartition("/")[0]


def kinds_of(settings: "Settings", more: Mapping[str, str]) -> Mapping[str, str]:
    """Return the name of the messages on each topic that carries events.

    `more`: those of the outputs besides groups and fixed devices.
    """
    region = "Group" if settings.output.form == "group" else "Device"
    return {
        settings.output.topic: region,
        settings.topics.fixed: region,
        settings.topics.public: "PublicDevice",
    } | dict(more)


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
            ("type", EVENT_TYPE.format(kind=kind)),
        ),
    )


def entity(payload: bytes) -> bytes:
    """Return a message about a group as an NGSI-LD entity in normalized form [2]_.

    Parameters
    ----------
    payload
        A message about a group, or about one member of it.
    """
    message: dict[str, Any] = msgspec.json.decode(payload)
    at = iso8601(message["time"])
    found: dict[str, Any] = {
        "@context": CONTEXT,
        "id": f"urn:ngsi-ld:{ENTITY_TYPE}:{message.get('pseudonym') or message['group']}",
        "type": ENTITY_TYPE,
    }
    if (place := _place(message)) is not None:
        found["location"] = {"type": "GeoProperty", "value": place, "observedAt": at}
    for name, value in message.items():
        if name == "until":
            value = {"@type": "DateTime", "@value": iso8601(value)}  # noqa: PLW2901  its form here
        if name not in _OF_THE_ENTITY:
            found[name] = {"type": "Property", "value": value, "observedAt": at}
    return msgspec.json.encode(found)


def _place(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if (box := message.get("bbox")) is not None:
        west, south, east, north = box
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        return {"type": "Polygon", "coordinates": [ring]}
    return message.get("geometry")
