"""Typical messages of every codec, of realistic length, that differ only in their positions."""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec
from google.transit.gtfs_realtime_pb2 import FeedMessage

from anonymizer.networks.grids import ORIGIN_LAT, ORIGIN_LON

Writer: TypeAlias = Callable[[float, float], bytes]

_TS = 1_800_000_000
_ISO = "2027-01-15T08:00:00.250Z"

# Placeholders for the coordinates, in degrees or in 1e-7 degrees.
_LAT, _LON, _LAT7, _LON7 = "@lat@", "@lon@", "@lat7@", "@lon7@"

_MESSAGES: dict[str, Any] = {
    "native": {"ts": _TS + 0.25, "lat": _LAT, "lon": _LON},
    "owntracks": {
        "_type": "location", "acc": 12, "alt": 21, "batt": 78, "bs": 1, "cog": 270, "conn": "m",
        "lat": _LAT, "lon": _LON, "m": 1, "p": 100.2, "t": "p", "tid": "ab", "tst": _TS,
        "vac": 4, "vel": 36,
    },
    "hfp": {"VP": {
        "desi": "550", "dir": "1", "oper": 22, "veh": 1042, "tst": _ISO, "tsi": _TS, "spd": 9.7,
        "hdg": 87, "lat": _LAT, "long": _LON, "acc": 0.1, "dl": -40, "odo": 5120, "drst": 0,
        "oday": "2027-01-15", "jrn": 311, "line": 262, "start": "09:41", "loc": "GPS",
        "stop": None, "route": "2550", "occu": 0,
    }},
    "traccar": {
        "id": 81, "deviceId": 6, "protocol": "teltonika", "serverTime": _ISO, "deviceTime": _ISO,
        "fixTime": _ISO, "outdated": False, "valid": True, "latitude": _LAT, "longitude": _LON,
        "altitude": 17.0, "speed": 11.2, "course": 104.0, "address": None, "accuracy": 0.0,
        "attributes": {"ignition": True, "motion": True, "totalDistance": 93126.4},
    },
    "home_assistant": {
        "latitude": _LAT, "longitude": _LON, "gps_accuracy": 12, "battery_level": 78,
    },
    "gtfs_rt_json": {"id": "8916", "vehicle": {
        "trip": {"tripId": "1538443", "routeId": "20"}, "vehicle": {"id": "8916"},
        "position": {"latitude": _LAT, "longitude": _LON, "speed": 4.9}, "timestamp": str(_TS),
    }},
    "j2735": {
        "metadata": {
            "recordType": "bsmTx", "securityResultCode": "success", "schemaVersion": 6,
            "payloadType": "us.dot.its.jpo.ode.model.OdeBsmPayload", "odeReceivedAt": _ISO,
            "recordGeneratedAt": _ISO, "recordGeneratedBy": "OBU", "sanitized": False,
            "serialId": {"streamId": "801780cb", "bundleSize": 1, "recordId": 0},
        },
        "payload": {
            "dataType": "us.dot.its.jpo.ode.plugin.j2735.J2735Bsm",
            "data": {"coreData": {
                "msgCnt": 81, "id": "31325433", "secMark": 250,
                "position": {"latitude": _LAT, "longitude": _LON, "elevation": 17.8},
                "accelSet": {"accelLat": 0.0, "accelLong": -0.6, "accelYaw": 0.0},
                "accuracy": {"semiMajor": 9.3, "semiMinor": 12.05}, "transmission": "NEUTRAL",
                "speed": 9.7, "heading": 87.0, "size": {"width": 190, "length": 570},
            }},
        },
    },
    "etsi_cam": {
        "type": "cam", "origin": "self", "version": "1.1.3", "source_uuid": "uuid14",
        "timestamp": _TS * 1000 + 250,
        "message": {
            "protocol_version": 1, "station_id": 42, "generation_delta_time": 3,
            "basic_container": {
                "station_type": 5,
                "reference_position": {"latitude": _LAT7, "longitude": _LON7, "altitude": 780},
                "confidence": {"position_confidence_ellipse": {
                    "semi_major_confidence": 100, "semi_minor_confidence": 50,
                    "semi_major_orientation": 180,
                }, "altitude": 3},
            },
            "high_frequency_container": {
                "heading": 870, "speed": 970, "drive_direction": 0, "vehicle_length": 40,
                "curvature": 11, "acceleration_control": "0000010", "yaw_rate": 562,
            },
        },
    },
    "meshtastic": {
        "channel": 0, "from": 3935274544, "hops_away": 0, "id": 178295092, "rssi": -97,
        "payload": {"latitude_i": _LAT7, "longitude_i": _LON7, "altitude": 17, "time": _TS,
                    "ground_speed": 3, "precision_bits": 32, "sats_in_view": 9},
        "sender": "!ea8f8630", "timestamp": _TS, "to": 4294967295, "type": "position",
    },
    "ttn": {
        "end_device_ids": {
            "device_id": "cow-17", "application_ids": {"application_id": "herd"},
            "dev_eui": "00C82EFB6B82F3C3", "dev_addr": "2602136F",
        },
        "received_at": _ISO,
        "uplink_message": {
            "f_port": 1, "f_cnt": 5, "frm_payload": "LTEyMi4yNzU1Nyw=", "received_at": _ISO,
            "decoded_payload": {"latitude": _LAT, "longitude": _LON, "battery": 3.9},
            "rx_metadata": [{"gateway_ids": {"gateway_id": "roof"}, "rssi": -48, "snr": 9.2}],
        },
    },
    "ngsi_ld": {
        "id": "urn:ngsi-ld:Vehicle:17", "type": "Vehicle", "vehicleType": "lorry",
        "speed": {"type": "Property", "value": 36.0}, "bearing": {"type": "Property", "value": 87},
        "location": {
            "type": "GeoProperty", "observedAt": _ISO,
            "value": {"type": "Point", "coordinates": [_LON, _LAT]},
        },
    },
    "senml": [
        {"bn": "urn:dev:mac:0024befffe804ff1:", "bt": _TS, "n": "lat", "u": "lat", "v": _LAT},
        {"n": "lon", "u": "lon", "v": _LON}, {"n": "speed", "u": "m/s", "v": 9.7},
    ],
}  # fmt: skip


def messages(codec: str, n: int) -> list[bytes]:
    """Return `n` distinct messages of a codec, with one position each."""
    if codec == "msgpack":
        return [msgspec.msgpack.encode(json.loads(each)) for each in messages("native", n)]
    write = _protobuf if codec == "gtfs_rt" else _writer(_MESSAGES[codec])
    return [write(lat, lon) for lat, lon in _places(n)]


def batches(codec: str, n: int, *, of: int) -> list[bytes]:
    """Return `n` positions in a native format, `of` in a message, each of another device."""
    each = [
        {"device": f"device-{i}", **json.loads(payload)}
        for i, payload in enumerate(messages("native", n))
    ]
    encode = msgspec.msgpack.encode if codec == "msgpack" else msgspec.json.encode
    return [encode(each[i : i + of]) for i in range(0, n, of)]


def _places(n: int) -> Iterator[tuple[float, float]]:
    return ((ORIGIN_LAT + i * 1e-6, ORIGIN_LON - i * 1e-6) for i in range(n))


def _writer(message: Any) -> Writer:  # noqa: ANN401  JSON
    template = json.dumps(message)

    def write(lat: float, lon: float) -> bytes:
        text = template.replace(f'"{_LAT}"', f"{lat:.7f}").replace(f'"{_LON}"', f"{lon:.7f}")
        text = text.replace(f'"{_LAT7}"', f"{lat * 1e7:.0f}")
        return text.replace(f'"{_LON7}"', f"{lon * 1e7:.0f}").encode()

    return write


def _protobuf(lat: float, lon: float) -> bytes:
    feed = FeedMessage()
    feed.header.gtfs_realtime_version = "2.0"
    feed.header.timestamp = _TS
    entity = feed.entity.add()
    entity.id = "8916"
    entity.vehicle.vehicle.id = "8916"
    entity.vehicle.trip.trip_id = "1538443"
    entity.vehicle.position.latitude = lat
    entity.vehicle.position.longitude = lon
    encoded: bytes = feed.SerializeToString()
    return encoded
