"""Messages of the codec `traccar`."""

from anonymizer.domain.fixes import Fix
from tests.codecs.sample import (
    ISO,
    LAT,
    LON,
    NO_FIX,
    NOT_A_POSITION,
    SCHEMA,
    TIME_FORM,
    Stated,
    written,
)


def samples() -> list[Stated]:
    at = {"latitude": 52.5, "longitude": 13.5, "deviceId": 7, "fixTime": "2026-02-10T08:00:00Z"}
    fix = Fix(52.5, 13.5, 1770710400.0, "7")
    device = {"id": 7, "uniqueId": "tracker"}
    return [
        ("of the api", {**at, "valid": True, "outdated": False}, [fix]),
        ("of the database", {
            "latitude": 52.5, "longitude": 13.5, "deviceid": 7, "valid": 1,
            "fixtime": "2026-02-10T08:00:00.000+0000",
        }, [fix]),
        ("readings", {**at, "speed": 10, "course": 90, "attributes": {
            "batteryLevel": 55.5, "fuelConsumption": 3, "speed_mps": 9, "PM2.5": 8, "hdop": "1",
            "motion": False, "a" * 65: 1,
        }}, [Fix(52.5, 13.5, 1770710400.0, "7", {
            "battery_percent": 55.5, "fuel_consumption": 3.0, "speed_mps": 10 * 1852 / 3600,
            "pm2_5": 8.0, "heading_deg": 90.0,
        })]),
        ("no satellites", {**at, "attributes": {"sat": 0}}, [NO_FIX]),
        ("negative accuracy", {**at, "accuracy": -1}, [NO_FIX]),
        ("attributes alone", {**at, "attributes": {"co2": 400}}, [
            Fix(52.5, 13.5, 1770710400.0, "7", {"co2": 400.0}),
        ]),
        ("bad readings", {**at, "speed": True, "attributes": [1]}, [fix]),
        ("local time", {**at, "fixTime": "2026-02-10T10:00:00+02:00"}, [fix]),
        ("no offset", {**at, "fixTime": "2026-02-10T08:00:00"}, [fix]),
        ("forwarded", {"position": at, "device": device}, [
            Fix(52.5, 13.5, 1770710400.0, "tracker"),
        ]),
        ("forwarded alone", {"position": at}, [fix]),
        ("answer of the api", [at, {**at, "valid": False}], [fix, NO_FIX]),
        ("bare", {"latitude": 52.5, "longitude": 13.5}, [Fix(52.5, 13.5)]),
        ("event", {"event": {"type": "alarm"}, "position": at}, [NOT_A_POSITION]),
        ("invalid", {**at, "valid": 0}, [NO_FIX]),
        ("outdated", {**at, "outdated": True}, [NO_FIX]),
        ("forwarded, invalid", {"position": {**at, "valid": False}, "device": device}, [NO_FIX]),
        ("odd flag", {**at, "valid": 2}, [SCHEMA]),
        ("not a time", {**at, "fixTime": "soon"}, [TIME_FORM]),
        ("nameless tracker", {"position": at, "device": {"uniqueId": ""}}, [
            Fix(52.5, 13.5, 1770710400.0),
        ]),
        ("null", {**at, "latitude": None}, [NO_FIX]),
        ("no position", {"devices": []}, [SCHEMA]),
        ("no longitude", {"latitude": 52.5}, [SCHEMA]),
    ]  # fmt: skip


typical = written(
    {
        "id": 81, "deviceId": 6, "protocol": "teltonika", "serverTime": ISO, "deviceTime": ISO,
        "fixTime": ISO, "outdated": False, "valid": True, "latitude": LAT, "longitude": LON,
        "altitude": 17.0, "speed": 11.2, "course": 104.0, "address": None, "accuracy": 0.0,
        "attributes": {"ignition": True, "motion": True, "totalDistance": 93126.4},
    }
)  # fmt: skip
