"""Families of payloads in the field, each declared with what the page of formats says, and read."""

import base64
import gzip
import json
import struct
from typing import Any

import pytest

from anonymizer.domain.outcomes import Outcome
from tests.pipeline.positions.decode.test_field_payloads import AT, MALFORMED, NOW, SCHEMA, Read

LAT, LON = AT
S, MS = int(NOW), int(NOW) * 1000
UTC_TEXT = "2027-01-15T08:00:00Z"


def declared(topic: str = "x/{device}", codec: str = "json", **keys: Any) -> dict[str, Any]:  # noqa: ANN401  settings
    """Return an input; with a path of the device it is from the payload."""
    payload = {key: value for key, value in keys.items() if key != "unpack"}
    table: dict[str, Any] = {
        "topic": topic,
        "codec": codec,
        **({"unpack": keys["unpack"]} if "unpack" in keys else {}),
    }
    if payload:
        table["payload"] = payload
    if "device" in payload or "{device}" in str(payload.get("positions")):
        table |= {"topic": "x", "device_from": "payload"}
    return table


FAMILIES: dict[str, tuple[dict[str, Any], Any]] = {
    "Teltonika: state.reported with latlng as text of two": (
        declared(
            lat="state.reported.lat",
            lon="state.reported.lng",
            time="state.reported.ts",
            time_unit="ms",
        ),
        {"state": {"reported": {"lat": LAT, "lng": LON, "ts": MS, "sp": 40, "ang": 90, "239": 1}}},
    ),
    "a tracker with numbers as text and unix seconds": (
        declared(lat="lat", lon="lng", time="t", device="imei"),
        {
            "imei": "352093081429150",
            "lat": "60.170000",
            "lng": "24.940000",
            "t": str(S),
            "alt": "12.0",
        },
    ),
    "a bus: nested, ISO times, an array inside": (
        declared(
            positions="Siri.VehicleActivity",
            lat="MonitoredVehicleJourney.VehicleLocation.Latitude",
            lon="MonitoredVehicleJourney.VehicleLocation.Longitude",
            time="RecordedAtTime",
            time_unit="iso8601",
            device="MonitoredVehicleJourney.VehicleRef",
        ),
        {
            "Siri": {
                "VehicleActivity": [
                    {
                        "RecordedAtTime": UTC_TEXT,
                        "MonitoredVehicleJourney": {
                            "VehicleRef": "HSL_1069",
                            "VehicleLocation": {"Latitude": LAT, "Longitude": LON},
                        },
                    }
                ]
            }
        },
    ),
    "scooters: GBFS free bikes": (
        declared(
            positions="data.bikes", lat="lat", lon="lon", time="last_reported", device="bike_id"
        ),
        {
            "last_updated": S,
            "ttl": 0,
            "data": {
                "bikes": [
                    {
                        "bike_id": "e1",
                        "lat": LAT,
                        "lon": LON,
                        "is_reserved": False,
                        "last_reported": S,
                    }
                ]
            },
        },
    ),
    "scooters: MDS, a GeoJSON feature": (
        declared(
            lat="telemetry.gps.lat",
            lon="telemetry.gps.lng",
            time="telemetry.timestamp",
            time_unit="ms",
            device="telemetry.device_id",
        ),
        {
            "telemetry": {
                "device_id": "5f7a",
                "timestamp": MS,
                "gps": {"lat": LAT, "lng": LON, "speed": 3.2},
            }
        },
    ),
    "GeoJSON: longitude first": (
        declared(
            lat="geometry.coordinates.1",
            lon="geometry.coordinates.0",
            time="properties.time",
            time_unit="iso8601",
            device="properties.id",
        ),
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [LON, LAT]},
            "properties": {"id": 7, "time": UTC_TEXT},
        },
    ),
    "a feature collection": (
        declared(
            positions="features",
            lat="geometry.coordinates.1",
            lon="geometry.coordinates.0",
            time="properties.t",
            device="properties.id",
        ),
        {
            "type": "FeatureCollection",
            "features": [
                {"geometry": {"coordinates": [LON, LAT]}, "properties": {"id": "a", "t": S}}
            ],
        },
    ),
    "AIS of a decoder, speed in knots": (
        declared(
            lat="lat",
            lon="lon",
            time="rxtime",
            time_unit="iso8601",
            device="mmsi",
            readings={"speed_knots": "speed"},
        ),
        {
            "class": "AIS",
            "type": 1,
            "mmsi": 230123456,
            "lat": LAT,
            "lon": LON,
            "speed": 11.3,
            "rxtime": "20270115080000",
        },
    ),
    "AIS of Digitraffic: the vessel in the topic": (
        declared("x/{device}/location", lat="lat", lon="lon", time="time"),
        {"time": S, "sog": 10.7, "cog": 326.6, "navStat": 0, "lon": LON, "lat": LAT},
    ),
    "a CAN gateway: signals by name in an array": (
        declared(
            lat="signals[name=GPS_Lat].value",
            lon="signals[name=GPS_Lon].value",
            time="ts",
            time_unit="us",
            device="vin",
        ),
        {
            "vin": "WVWZZZ",
            "ts": MS * 1000,
            "signals": [
                {"name": "RPM", "value": 900},
                {"name": "GPS_Lat", "value": LAT},
                {"name": "GPS_Lon", "value": LON},
            ],
        },
    ),
    "Geotab: log records": (
        declared(
            positions="result.data",
            lat="latitude",
            lon="longitude",
            time="dateTime",
            time_unit="iso8601",
            device="device.id",
        ),
        {
            "result": {
                "data": [
                    {
                        "latitude": LAT,
                        "longitude": LON,
                        "speed": 54,
                        "dateTime": "2027-01-15T08:00:00.000Z",
                        "device": {"id": "b1"},
                        "id": "b3F9",
                    }
                ],
                "toVersion": "00",
            }
        },
    ),
    "Samsara: one of several places, miles an hour": (
        declared(
            positions="data",
            lat="gps.latitude",
            lon="gps.longitude",
            time="gps.time",
            time_unit="iso8601",
            device="id",
            readings={"speed_mph": "gps.speedMilesPerHour"},
        ),
        {
            "data": [
                {
                    "id": "2811",
                    "name": "Truck",
                    "gps": {
                        "time": UTC_TEXT,
                        "latitude": LAT,
                        "longitude": LON,
                        "headingDegrees": 120,
                        "speedMilesPerHour": 48.3,
                    },
                }
            ]
        },
    ),
    "a whole-number place, ten millionths": (
        declared(lat="la", lon="lo", time="t", scale=1e-7),
        {"la": 601700000, "lo": 249400000, "t": S},
    ),
    "a logger: local time, its zone declared": (
        declared(lat="lat", lon="lon", time="t", time_unit="iso8601", time_zone="Europe/Helsinki"),
        {"lat": LAT, "lon": LON, "t": "2027-01-15 10:00:00"},
    ),
    "an array of arrays": (
        declared(positions="pts", lat="1", lon="2", time="0"),
        {"pts": [[S, LAT, LON]]},
    ),
    "keyed by the vehicle": (
        declared(positions="vehicles.{device}", lat="pos.lat", lon="pos.lon", time="ts"),
        {"vehicles": {"tram-7": {"pos": {"lat": LAT, "lon": LON}, "ts": S}}},
    ),
    "gzip around JSON": (
        declared(lat="lat", lon="lon", time="t", unpack="gzip"),
        gzip.compress(json.dumps({"lat": LAT, "lon": LON, "t": S}).encode()),
    ),
    "a struct of C, whole numbers": (
        declared(lat="lat", lon="lon", time="time", scale=1e-7, unpack="struct <iiI lat lon time"),
        struct.pack("<iiI", 601700000, 249400000, S),
    ),
    "keys with dots, flattened": (
        declared(lat=["gps.lat"], lon=["gps.lon"], time=["gps.ts"], time_unit="ms"),
        {"gps.lat": LAT, "gps.lon": LON, "gps.ts": MS},
    ),
    "Sparkplug-like metrics as JSON": (
        declared(
            lat="metrics[name=Latitude].value",
            lon="metrics[name=Longitude].value",
            time="timestamp",
            time_unit="ms",
        ),
        {
            "timestamp": MS,
            "seq": 4,
            "metrics": [{"name": "Latitude", "value": LAT}, {"name": "Longitude", "value": LON}],
        },
    ),
    "SenML, relative names and times": (
        {"topic": "x", "codec": "senml", "device_from": "payload"},
        [
            {"bn": "urn:dev:mac:0024befffe804ff1:", "bt": S - 5, "n": "lat", "v": LAT, "t": 5},
            {"n": "lon", "u": "lon", "v": LON, "t": 5},
        ],
    ),
    "CloudEvents around it": (
        declared(
            lat="data.lat", lon="data.lon", time="time", time_unit="iso8601", device="subject"
        ),
        {
            "specversion": "1.0",
            "id": "1",
            "source": "/f",
            "type": "p",
            "subject": "car-1",
            "time": UTC_TEXT,
            "data": {"lat": LAT, "lon": LON},
        },
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_page_of_formats_declares_is_read(family: str) -> None:
    table, body = FAMILIES[family]
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    topic = table["topic"].replace("{device}", "a")
    found = Read(table, (topic, payload))
    assert (found.positions, found.refused) == ([(*AT, NOW)], {})
    assert len(found.devices) == 1


@pytest.mark.parametrize(
    ("table", "payload", "why"),
    [
        (declared(codec="gtfs_rt_json"), b"\n\r\n\x032.0\x10\x01", MALFORMED),
        (declared(lat="lat", lon="lon"), b"\x08\x01\x12\x05tram7\x1d\x00\x00pB", MALFORMED),
        (declared(lat="0", lon="1"), b"tram-7,60.17,24.94,1800000000", MALFORMED),
        (
            declared(lat="lat", lon="lon"),
            json.dumps({"lat": "6010.2000N", "lon": "02456.4000E"}).encode(),
            Outcome.INVALID__NOT_DEGREES,
        ),
        (
            declared(lat="data.lat", lon="data.lon"),
            json.dumps({"data": base64.b64encode(b"{}").decode()}).encode(),
            SCHEMA,
        ),
    ],
    ids=["protobuf as JSON", "protobuf", "csv", "degrees and minutes", "base64 in JSON"],
)
def test_what_cannot_be_declared_is_refused_with_its_reason(
    table: dict[str, Any], payload: bytes, why: Outcome
) -> None:
    assert Read(table, ("x/a", payload)).refused.keys() == {why}
