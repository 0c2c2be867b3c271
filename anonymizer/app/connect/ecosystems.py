"""Ecosystems: what is known of each common source of positions over MQTT, a row each."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from anonymizer.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class Ecosystem:
    """A source of positions."""

    input: Mapping[str, Any]
    """Keys of `[[inputs]]`."""
    topic: str
    """Where a publisher writes; `{user}` is its name at the broker, `{n}` the number of a
    device."""
    rule: str
    """What a publisher may write, as a rule of Mosquitto, without its first word: with `%u` for its
    name, each device is a user of its own, and writes under one counted id: every level that
    `input` counts is its name. Without, one user speaks for all devices."""
    publisher: str = "device"
    """Name of the user that publishes, or of the first of them."""
    payload: Callable[[int, float, float, float], Mapping[str, Any]]
    """Makes a message of the number of a device, degrees and unix seconds."""
    words: str
    """What is to be set where the positions come from. `{user}`, `{password}`, `{host}` and
    `{port}` are filled in."""
    bridge: tuple[str, ...] = ()
    """Lines of Mosquitto with which it fetches the positions from a broker of the ecosystem's."""

    @property
    def has_users(self) -> bool:
        """Whether each device is a user of the broker."""
        return "%u" in self.rule

    def message(
        self, user: str, lat: float, lon: float, *, time: float, n: int = 1
    ) -> tuple[str, bytes]:
        """Return topic and payload of device `n` of a user at a place, degrees, unix seconds."""
        topic = self.topic.format(user=user, n=n)
        return topic, json.dumps(self.payload(n, lat, lon, time)).encode()

    @property
    def raw(self) -> str:
        """Filter of all that its publishers may write."""
        return self.rule.replace("%u", "+")


def _iso(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")


ECOSYSTEMS: Mapping[str, Ecosystem] = MappingProxyType(
    {
        "owntracks": Ecosystem(
            input={"topic": "owntracks/{user}/phone", "codec": "owntracks"},
            topic="owntracks/{user}/phone",
            rule="owntracks/%u/phone",
            payload=lambda _, lat, lon, time: {
                "_type": "location", "acc": 10, "lat": lat, "lon": lon, "tst": int(time),
            },
            words="in the app: mode MQTT, host {host}, port {port}, user name {user}, the password"
            " in {password}, device id phone, and monitoring move; a second phone is a second user",
        ),
        "traccar": Ecosystem(
            input={"topic": "traccar", "codec": "traccar", "device_from": "payload"},
            topic="traccar",
            rule="traccar",
            publisher="traccar",
            payload=lambda n, lat, lon, time: {
                "position": {"latitude": lat, "longitude": lon, "fixTime": _iso(time)},
                "device": {"id": n, "uniqueId": f"tracker{n}"},
            },
            words="in traccar.xml: forward.type mqtt, forward.topic traccar, forward.url"
            " mqtt://{user}:PASSWORD@{host}:{port} with the password in {password}",
        ),
        "home-assistant": Ecosystem(
            input={"topic": "location/{device}", "codec": "home_assistant"},
            topic="location/{user}",
            rule="location/%u",
            payload=lambda _n, lat, lon, _: {"latitude": lat, "longitude": lon, "gps_accuracy": 10},
            words="each tracker publishes on location/{user} as user {user}, not retained, to"
            " {host}:{port}, with the password in {password}",
        ),
        "meshtastic": Ecosystem(
            input={"topic": "msh/+/2/json/#", "codec": "meshtastic", "device_from": "payload"},
            topic="msh/EU_868/2/json/LongFast/!00000001",
            rule="msh/#",
            publisher="meshtastic",
            payload=lambda n, lat, lon, time: {
                "type": "position", "from": n, "sender": "!00000001", "timestamp": int(time),
                "payload": {"latitude_i": round(lat * 1e7), "longitude_i": round(lon * 1e7)},
            },
            words="in the nodes that uplink: MQTT and its JSON on, encryption off, address"
            " {host}:{port}, user {user}, the password in {password}, root topic msh/REGION, and"
            " the channel's position precision at its most",
        ),
        "ttn": Ecosystem(
            input={"topic": "v3/+/devices/{device}/up", "codec": "ttn"},
            topic="v3/app@ttn/devices/tracker{n}/up",
            rule="v3/#",
            publisher="ttn",
            payload=lambda n, lat, lon, time: {
                "end_device_ids": {"device_id": f"tracker{n}"},
                "uplink_message": {
                    "decoded_payload": {"latitude": lat, "longitude": lon},
                    "received_at": _iso(time),
                },
            },
            words="mosquitto.conf fetches uplinks: write the id of your application, its cluster"
            " and an API key into the lines below `connection ttn`",
            bridge=(
                "connection ttn",
                "address eu1.cloud.thethings.network:8883",
                "bridge_capath /etc/ssl/certs",
                "remote_username APPLICATION@ttn",
                "remote_password API-KEY",
                "notifications false",
                "topic v3/+/devices/+/up in 0",
            ),
        ),
        "hsl": Ecosystem(
            input={"topic": "hfp/vp/+/{operator}/{vehicle}/#", "codec": "hfp"},
            topic="hfp/vp/bus/0012/{n:05}/1069/1/Elielinaukio/8:11/5171/3/60;24/28/65/06",
            rule="hfp/#",
            publisher="hsl",
            payload=lambda n, lat, lon, time: {
                "VP": {"lat": lat, "long": lon, "tst": _iso(time), "oper": 12, "veh": n}
            },
            words="mosquitto.conf fetches the vehicles on a trip from mqtt.hsl.fi, which asks for"
            " no account",
            bridge=(
                "connection hsl",
                "address mqtt.hsl.fi:8883",
                "bridge_capath /etc/ssl/certs",
                "notifications false",
                "topic vp/# in 0 hfp/ /hfp/v2/journey/ongoing/",
            ),
        ),
    }
)  # fmt: skip


KAFKA = "kafka"
"""Positions that are in Kafka: no ecosystem of MQTT."""
NAMES = (*ECOSYSTEMS, KAFKA)
"""Of all sources that can be connected."""


def ecosystem_of(name: str) -> Ecosystem:
    """Return an ecosystem by its name.

    Raises `SettingsError` if there is none of this name.
    """
    if name not in ECOSYSTEMS:
        raise SettingsError(f"{name}: must be one of {', '.join(NAMES)}")
    return ECOSYSTEMS[name]
