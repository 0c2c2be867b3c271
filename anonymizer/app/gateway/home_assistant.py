"""The gateway as a device of Home Assistant: what it is, and its public figures.

References
----------
.. [1] Home Assistant, "MQTT Discovery", device discovery payload.
"""

import re
from typing import Any

import msgspec

from anonymizer import __version__
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.counts.figures import Figures
from anonymizer.settings import Settings
from anonymizer.transport.link import ONLINE

_TOTAL = {"platform": "sensor", "state_class": "total_increasing"}
_ENTITIES: dict[str, dict[str, str]] = {
    "devices": {
        "platform": "sensor",
        "name": "Devices published",
        "state_class": "measurement",
        "icon": "mdi:map-marker-multiple",
    },
    "published": {**_TOTAL, "name": "Positions published", "icon": "mdi:map-marker-check"},
    "suppressed": {**_TOTAL, "name": "Devices not understood", "icon": "mdi:map-marker-off"},
    "ready": {
        "platform": "binary_sensor",
        "name": "Ready",
        "payload_on": "True",
        "payload_off": "False",
        "entity_category": "diagnostic",
    },
}


class GatewayState(msgspec.Struct, frozen=True):
    """What Home Assistant shows of the gateway: public counts, and whether it is ready."""

    v: int
    """Version of the form of the message."""
    ready: bool
    """As `/readyz` says."""
    devices: int
    """Devices that the published messages told of at one moment lately, in steps of k."""
    published: int
    """Positions since the start: devices of which messages told, message by message; likewise."""
    suppressed: int
    """Devices of which something could not be used, for any reason, since the start; likewise."""


def discovery_topic(settings: Settings) -> str:
    """Return the topic on which the device is described, below the prefix that is usual."""
    return f"homeassistant/device/{_id_of(settings)}/config"


def _id_of(settings: Settings) -> str:
    """Return the id of the device: the path of the gateway's status."""
    path = settings.broker.status_topic.rpartition("/")[0]
    return re.sub(r"[^A-Za-z0-9_-]", "-", path) or "anonymizer"


def discovery(settings: Settings) -> Outgoing:
    """Return the retained message that describes the device and its entities [1]_."""
    own = _id_of(settings)
    body: dict[str, Any] = {
        "device": {
            "identifiers": [own],
            "name": "Anonymizer" if own == "anonymizer" else f"Anonymizer {own}",
            "sw_version": __version__,
        },
        "origin": {"name": "anonymizer", "sw_version": __version__},
        "state_topic": settings.topics.state,
        "availability_topic": settings.broker.status_topic,
        "availability_template": "{{ 'online' if value == '"
        + ONLINE.decode()
        + "' else 'offline' }}",
        "components": {
            name: {
                **entity,
                "unique_id": f"{own}_{name}",
                "value_template": "{{ value_json." + name + " }}",
            }
            for name, entity in _ENTITIES.items()
        },
    }
    return Outgoing(discovery_topic(settings), msgspec.json.encode(body), retain=True)


def state(settings: Settings, figures: Figures, *, ready: bool) -> Outgoing:
    """Return the retained message with the state; `figures` are public ones."""
    published = figures.n_of[Outcome.PUBLISHED.label]
    body = GatewayState(
        v=1,
        ready=ready,
        devices=figures.n_published_devices,
        published=published,
        suppressed=sum(figures.n_of.values()) - published,
    )
    return Outgoing(settings.topics.state, msgspec.json.encode(body), retain=True)
