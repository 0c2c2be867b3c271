"""Messages of the codec `ttn`."""

import json
from typing import Any

from anonymizer.codecs.coarse import CoarsePoint, iso8601
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.sample import (
    FOUND,
    ISO,
    LAT,
    LON,
    LOST,
    NO_FIX,
    NOT_A_POSITION,
    SCHEMA,
    TIMES_OF_FIX,
    Stated,
    written,
)


def samples() -> list[Stated]:
    ids = {"device_id": "cow"}
    heard = "2021-01-16T14:41:16.374448376Z"
    heard_s = 1610808076.374448
    gateway = [{"location": {"latitude": 1.0, "longitude": 1.0}}]

    def up(decoded: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
        return {"end_device_ids": ids, "uplink_message": {
            "decoded_payload": decoded, "received_at": heard, "rx_metadata": gateway, **more,
        }}  # fmt: skip

    spelled: list[tuple[str, Any, list[Fix | Outcome]]] = [
        (f"{lat}/{lon}", up({lat: 50.5, lon: 4}), [Fix(50.5, 4.0, heard_s, "cow")])
        for lat, lon in [
            ("latitude", "longitude"),
            ("lat", "lon"),
            ("lat", "lng"),
            ("lat", "long"),
            ("latitudeDeg", "longitudeDeg"),
            ("Latitude", "Longitude"),
        ]
    ]

    def near(
        members: dict[str, Any],
        expected: Fix | Outcome,
    ) -> tuple[str, Any, list[Fix | Outcome]]:
        return f"beside: {members}", up({"lat": 50.5, "lon": 4, **members}), [expected]

    signs = [
        *(near(sign, NO_FIX) for sign in LOST),
        *(near(sign, Fix(50.5, 4.0, heard_s, "cow", readings)) for sign, readings in FOUND),
        *(near(time, Fix(50.5, 4.0, 1770710400.0, "cow", of)) for time, of in TIMES_OF_FIX),
    ]
    channel = {"latitude": 50.5, "longitude": 4.0, "altitude": 1.0}
    remembered = {"user": {"latitude": 1.0, "longitude": 1.0, "source": "SOURCE_REGISTRY"}}
    return [
        *spelled,
        ("cayenne", up({"temperature_1": 20.5, "gps_3": channel}), [
            Fix(50.5, 4.0, heard_s, "cow", {"temperature_1": 20.5}),
        ]),
        ("readings", up({"lat": 50.5, "lng": 4, "airTemperature": -2, "CO2": 477, "ok": True}), [
            Fix(50.5, 4.0, heard_s, "cow", {"air_temperature": -2.0, "co2": 477.0}),
        ]),
        ("readings of one name", up({"lat": 50.5, "lon": 4, "co2": 1, "CO2": 2, "Co2": "x"}), [
            Fix(50.5, 4.0, heard_s, "cow", {"co2": 1.0}),
        ]),
        ("cayenne without", up({"gps_3": {}}), [SCHEMA]),
        ("cayenne, not an object", up({"gps_3": 5}), [SCHEMA]),
        ("outer time", {"received_at": heard, "uplink_message": {
            "decoded_payload": {"lat": 1, "lon": 2}}}, [Fix(1.0, 2.0, heard_s)]),
        ("gateway alone", up({"temperature": 20}), [NOT_A_POSITION]),
        ("remembered", up({"temperature": 20}, locations=remembered), [NOT_A_POSITION]),
        ("not decoded", up(None), [NOT_A_POSITION]),
        ("simulated", {**up({"lat": 1, "lon": 2}), "simulated": True}, [NOT_A_POSITION]),
        ("join", {"end_device_ids": ids, "join_accept": {}}, [NOT_A_POSITION]),
        ("no fix", up({"latitude": None, "longitude": None}), [NO_FIX]),
        ("half a fix", up({"latitude": 1.0, "longitude": None}), [NO_FIX]),
        ("half a pair", up({"latitude": 1.0}), [SCHEMA]),
        ("words", up({"latitude": "north", "longitude": 1.0}), [SCHEMA]),
        *signs,
        ("lost in a channel", up({"gps_3": {**channel, "fix": False}}), [NO_FIX]),
        ("time since the start", up({"lat": 50.5, "lon": 4, "time": 86400}), [
            Fix(50.5, 4.0, heard_s, "cow", {"time": 86400.0}),
        ]),
        ("an age beside", up({"lat": 50.5, "lon": 4, "fixAge": 60}), [
            Fix(50.5, 4.0, heard_s - 60, "cow", {"fix_age": 60.0}),
        ]),
        ("an age in milliseconds", up({"lat": 50.5, "lon": 4, "gps_age_ms": "1500"}), [
            Fix(50.5, 4.0, heard_s - 1.5, "cow"),
        ]),
        ("an age and a time", up({"lat": 50.5, "lon": 4, "age": 60, "time": 1770710400}), [
            Fix(50.5, 4.0, 1770710400.0, "cow", {"age": 60.0, "time": 1770710400.0}),
        ]),
        ("just now", up({"lat": 50.5, "lon": 4, "age": 0}), [
            Fix(50.5, 4.0, heard_s, "cow", {"age": 0.0}),
        ]),
        ("an age alone", {"uplink_message": {"decoded_payload": {
            "lat": 1, "lon": 2, "locationAge": 3600}}}, [
            Fix(1.0, 2.0, -3600.0, None, {"location_age": 3600.0}),
        ]),
        ("time of a channel", up({"gps_3": channel, "unix_time_4": 1770710400}), [
            Fix(50.5, 4.0, 1770710400.0, "cow", {"unix_time_4": 1770710400.0}),
        ]),
        ("nothing", {}, [SCHEMA]),
    ]  # fmt: skip


typical = written(
    {
        "end_device_ids": {
            "device_id": "cow-17", "application_ids": {"application_id": "herd"},
            "dev_eui": "00C82EFB6B82F3C3", "dev_addr": "2602136F",
        },
        "received_at": ISO,
        "uplink_message": {
            "f_port": 1, "f_cnt": 5, "frm_payload": "LTEyMi4yNzU1Nyw=", "received_at": ISO,
            "decoded_payload": {"latitude": LAT, "longitude": LON, "battery": 3.9},
            "rx_metadata": [{"gateway_ids": {"gateway_id": "roof"}, "rssi": -48, "snr": 9.2}],
        },
    }
)  # fmt: skip


def stated(point: CoarsePoint) -> bytes:
    uplink = {"decoded_payload": {"latitude": point.lat, "longitude": point.lon}}
    message = {"end_device_ids": {"device_id": point.pseudonym}, "uplink_message": uplink}
    return json.dumps(message | {"received_at": iso8601(point.time)}).encode()
