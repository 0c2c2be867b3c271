"""Messages of the codec `meshtastic`."""

from anonymizer.domain.fixes import Fix
from tests.codecs.sample import (
    LAT7,
    LON7,
    NOT_A_POSITION,
    NULL_ISLAND,
    OUT_OF_RANGE,
    SCHEMA,
    TS,
    Stated,
    written,
)


def samples() -> list[Stated]:
    at = {"latitude_i": 518495880, "longitude_i": 195866210}
    packet = {"type": "position", "from": 42, "sender": "!gateway", "timestamp": 8, "payload": at}
    return [
        ("position", {**packet, "payload": {**at, "time": 7}}, [
            Fix(51.849588, 19.586621, 7.0, "42"),
        ]),
        ("ground speed", {**packet, "payload": {**at, "ground_speed": 36, "ground_track": 9}}, [
            Fix(51.849588, 19.586621, 8.0, "42", {"speed_mps": 10.0}),
        ]),
        ("bad speed", {**packet, "payload": {**at, "ground_speed": [[]]}}, [
            Fix(51.849588, 19.586621, 8.0, "42"),
        ]),
        ("heard at", packet, [Fix(51.849588, 19.586621, 8.0, "42")]),
        ("clock never set", {**packet, "timestamp": 0, "payload": {**at, "time": 0}}, [
            Fix(51.849588, 19.586621, None, "42"),
        ]),
        ("command", {**packet, "type": "sendposition"}, [NOT_A_POSITION]),
        ("telemetry", {**packet, "type": "telemetry", "payload": {"voltage": 1}}, [NOT_A_POSITION]),
        ("text", {"type": "text", "payload": "hello"}, [NOT_A_POSITION]),
        ("null island", {**packet, "payload": {"latitude_i": 0, "longitude_i": 0}}, [NULL_ISLAND]),
        ("degrees", {**packet, "payload": {"latitude_i": 51.8, "longitude_i": 1}}, [SCHEMA]),
        ("not an int32", {**packet, "payload": {**at, "latitude_i": 10**400}}, [SCHEMA]),
        ("beyond the pole", {**packet, "payload": {**at, "latitude_i": 900000001}}, [OUT_OF_RANGE]),
        ("no payload", {"type": "position"}, [SCHEMA]),
        ("no type", {"payload": at}, [SCHEMA]),
    ]  # fmt: skip


typical = written(
    {
        "channel": 0, "from": 3935274544, "hops_away": 0, "id": 178295092, "rssi": -97,
        "payload": {"latitude_i": LAT7, "longitude_i": LON7, "altitude": 17, "time": TS,
                    "ground_speed": 3, "precision_bits": 32, "sats_in_view": 9},
        "sender": "!ea8f8630", "timestamp": TS, "to": 4294967295, "type": "position",
    }
)  # fmt: skip
