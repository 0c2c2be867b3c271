"""Short messages of every format, written for these tests, with the expected result of each."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import structs

from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

EMPTY = Outcome.INVALID__EMPTY
MALFORMED = Outcome.INVALID__MALFORMED
NO_FIX = Outcome.INVALID__NO_FIX
NOT_A_POSITION = Outcome.INVALID__NOT_A_POSITION
NULL_ISLAND = Outcome.INVALID__NULL_ISLAND
ENCRYPTED = Outcome.INVALID__ENCRYPTED
OUT_OF_RANGE = Outcome.INVALID__OUT_OF_RANGE
SCHEMA = Outcome.INVALID__SCHEMA
TIME_FORM = Outcome.INVALID__TIME_FORM
NOT_DEGREES = Outcome.INVALID__NOT_DEGREES


def plain(found: Iterable[Fix | Outcome]) -> list[Fix | Outcome]:
    """Return what was decoded without what is noted beside it: bad readings, a missing zone."""
    return [
        structs.replace(each, unusable=(), zoneless=False) if isinstance(each, Fix) else each
        for each in found
    ]


class Sample(NamedTuple):
    codec: str
    about: str
    message: Any
    expected: list[Fix | Outcome]

    @property
    def payload(self) -> bytes:
        return json.dumps(self.message).encode()


LOST: list[dict[str, Any]] = [
    {"fix": False}, {"gpsFix": 0}, {"GPS_valid": "false"}, {"fixFailed": True}, {"sats": 0},
    {"satellites": "0"}, {"hdop": -1}, {"hdop": "99.99"}, {"fix": "no fix"}, {"fixMode": 1},
]  # fmt: skip
"""What devices say beside a place when their receivers have none."""
FOUND: list[tuple[dict[str, Any], dict[str, float] | None]] = [
    ({"fix": True}, None),
    ({"valid": 1}, {"valid": 1.0}),
    ({"sats": 7}, {"sats": 7.0}),
    ({"hdop": 0.8}, {"hdop": 0.8}),
    ({"fixmode": 3}, {"fixmode": 3.0}),
    ({"nofix": False}, None),
    ({"fix": None}, None),
    ({"status": 0}, {"status": 0.0}),
    ({"f" + "-" * 63 + "ix": False}, None),
]
"""What says nothing of a fix, or that there is one; names of more than 64 characters are none."""
TIMES_OF_FIX: list[tuple[dict[str, Any], dict[str, float] | None]] = [
    ({"time": "2026-02-10T08:00:00Z"}, None),
    ({"time": "2026-02-10 08:00:00"}, None),
    ({"gpsTime": "1770710400"}, None),
    ({"ts": 1770710400000}, {"ts": 1770710400000.0}),
    ({"time": "2026-02-10T09:00:00Z", "fixTime": "2026-02-10T08:00:00Z"}, None),
]


def _native() -> list[tuple[str, Any, list[Fix | Outcome]]]:
    at = {"lat": 1.5, "lon": -2}
    return [
        ("bare", at, [Fix(1.5, -2.0)]),
        ("full", {**at, "ts": 9.5, "device": "a"}, [Fix(1.5, -2.0, 9.5, "a")]),
        ("nulls", {**at, "ts": None, "device": None}, [Fix(1.5, -2.0)]),
        ("extra", {**at, "speed": {"kmh": [1, "x"]}}, [Fix(1.5, -2.0)]),
        ("readings", {**at, "readings": {"pm2.5": 12, "Temp": -3.5}}, [
            Fix(1.5, -2.0, readings={"pm2.5": 12.0, "Temp": -3.5}),
        ]),
        ("bad readings", {**at, "readings": {
            "a": True, "b": "1", "c": None, "d": 10**400, "e": [1], "f": 4,
        }}, [Fix(1.5, -2.0, readings={"f": 4.0})]),
        ("no readings", {**at, "readings": {}}, [Fix(1.5, -2.0)]),
        ("null readings", {**at, "readings": None}, [Fix(1.5, -2.0)]),
        ("list of readings", {**at, "readings": [1, 2]}, [Fix(1.5, -2.0)]),
        ("bad readings alone", {**at, "readings": {"a": "x"}}, [Fix(1.5, -2.0)]),
        ("array with readings", [{**at, "readings": {"a": 1}}, {**at, "readings": 1}], [
            Fix(1.5, -2.0, readings={"a": 1.0}), Fix(1.5, -2.0),
        ]),
        ("integer id", {**at, "device": 7}, [Fix(1.5, -2.0, None, "7")]),
        ("empty id", {**at, "device": ""}, [Fix(1.5, -2.0)]),
        ("flag as id", {**at, "device": True}, [Fix(1.5, -2.0)]),
        ("fraction as id", {**at, "device": 1.5}, [Fix(1.5, -2.0)]),
        ("endless id", {**at, "device": 10**30}, [Fix(1.5, -2.0)]),
        ("word as latitude", {"lat": "north", "lon": 2}, [SCHEMA]),
        ("no word", {"lat": "unknown", "lon": "None"}, [NO_FIX]),
        ("negative accuracy", {**at, "accuracy_m": -1}, [NO_FIX]),
        ("negative accuracy among readings", {**at, "readings": {"accuracy_m": -1}}, [NO_FIX]),
        ("flag as latitude", {"lat": True, "lon": 2}, [SCHEMA]),
        ("no longitude", {"lat": 1}, [SCHEMA]),
        ("null longitude", {"lat": 1, "lon": None}, [NO_FIX]),
        ("text as time", {**at, "ts": "9"}, [Fix(1.5, -2.0, 9.0)]),
        ("iso time", {**at, "ts": "2026-02-10T08:00:00Z"}, [Fix(1.5, -2.0, 1770710400.0)]),
        ("word as time", {**at, "ts": "noon"}, [TIME_FORM]),
        ("a clock that was never set", {**at, "ts": 0}, [Fix(1.5, -2.0)]),
        ("milliseconds", {**at, "ts": 1800000000000}, [Outcome.INVALID__TIME_IN_MS]),
        ("beyond the pole", {"lat": 90.1, "lon": 0}, [OUT_OF_RANGE]),
        ("beyond the date line", {"lat": 0, "lon": -180.1}, [OUT_OF_RANGE]),
        ("corner", {"lat": -90, "lon": 180}, [Fix(-90.0, 180.0)]),
        ("null island", {"lat": 0, "lon": -0.0}, [NULL_ISLAND]),
        ("array", [at, {"lat": 1}, 3, {**at, "ts": 1}], [
            Fix(1.5, -2.0), SCHEMA, SCHEMA, Fix(1.5, -2.0, 1.0),
        ]),
        ("array of nothing", [], [EMPTY]),
        ("array in an array", [[at]], [SCHEMA]),
        ("a number", 3, [SCHEMA]),
        ("null", None, [SCHEMA]),
    ]  # fmt: skip


def _owntracks() -> list[tuple[str, Any, list[Fix | Outcome]]]:
    at = {"_type": "location", "lat": 51.5, "lon": -0.25}
    return [
        ("location", {**at, "tst": 1700000000, "tid": "ab"}, [Fix(51.5, -0.25, 1.7e9)]),
        ("no time", at, [Fix(51.5, -0.25)]),
        ("readings", {**at, "vel": 36, "cog": 90.5, "batt": 37}, [
            Fix(51.5, -0.25, readings={
                "speed_mps": 10.0, "heading_deg": 90.5, "battery_percent": 37.0,
            }),
        ]),
        ("bad readings", {**at, "vel": -1, "cog": "N", "batt": None}, [Fix(51.5, -0.25)]),
        ("readings in text", {**at, "cog": " 90.0"}, [
            Fix(51.5, -0.25, readings={"heading_deg": 90.0}),
        ]),
        ("by http", {**at, "topic": "owntracks/a/b"}, [Fix(51.5, -0.25, None, "owntracks/a/b")]),
        ("transition", {**at, "_type": "transition", "event": "enter"}, [NOT_A_POSITION]),
        ("waypoint", {**at, "_type": "waypoint", "rad": 5}, [NOT_A_POSITION]),
        ("will", {"_type": "lwt", "tst": 1}, [NOT_A_POSITION]),
        ("encrypted", {"_type": "encrypted", "data": "x"}, [ENCRYPTED]),
        ("other lat", {"_type": "cmd", "lat": "north"}, [NOT_A_POSITION]),
        ("half a location", {"_type": "location", "lat": 51.5}, [SCHEMA]),
        ("words", {**at, "lat": "north"}, [SCHEMA]),
        ("negative accuracy", {**at, "acc": -1}, [NO_FIX]),
        ("no type", {"lat": 51.5, "lon": -0.25}, [SCHEMA]),
        ("null island", {**at, "lat": 0, "lon": 0}, [NULL_ISLAND]),
    ]  # fmt: skip


def _hfp() -> list[tuple[str, Any, list[Fix | Outcome]]]:
    at = {"lat": 60.25, "long": 24.5, "tst": "2024-02-28T07:37:59.634Z", "tsi": 1709105879}
    return [
        ("position", {"VP": {**at, "oper": 12, "veh": 1825}}, [
            Fix(60.25, 24.5, 1709105879.634, "12/1825"),
        ]),
        ("readings", {"VP": {**at, "tst": None, "spd": 12.5, "hdg": 333, "acc": -1}}, [
            Fix(60.25, 24.5, 1709105879.0, None, {"speed_mps": 12.5, "heading_deg": 333.0}),
        ]),
        ("bad readings", {"VP": {**at, "tst": None, "spd": {}, "hdg": -1}}, [
            Fix(60.25, 24.5, 1709105879.0),
        ]),
        ("departure", {"DEP": at}, [Fix(60.25, 24.5, 1709105879.634)]),
        ("whole seconds", {"VP": {**at, "tst": None}}, [Fix(60.25, 24.5, 1709105879.0)]),
        ("no operator", {"VP": {**at, "oper": None, "veh": 9}}, [Fix(60.25, 24.5, 1709105879.634)]),
        ("empty vehicle", {"VP": {**at, "oper": 12, "veh": ""}}, [
            Fix(60.25, 24.5, 1709105879.634),
        ]),
        ("no position", {"VP": {**at, "lat": None, "long": None}}, [NO_FIX]),
        ("half a position", {"VP": {"lat": 60.25}}, [NO_FIX]),
        ("not available", {"VP": {**at, "loc": "N/A"}}, [NO_FIX]),
        ("odometer", {"VP": {**at, "loc": "ODO"}}, [Fix(60.25, 24.5, 1709105879.634)]),
        ("no time at all", {"VP": {"lat": 60.25, "long": 24.5}}, [Fix(60.25, 24.5)]),
        ("not a time", {"VP": {**at, "tst": "yesterday"}}, [TIME_FORM]),
        ("words", {"VP": {**at, "lat": "north"}}, [SCHEMA]),
        ("two events", {"VP": at, "DUE": at}, [SCHEMA]),
        ("no event", {}, [SCHEMA]),
        ("another format", {"_type": "location"}, [SCHEMA]),
    ]  # fmt: skip


def _traccar() -> list[tuple[str, Any, list[Fix | Outcome]]]:
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


def _home_assistant() -> list[tuple[str, Any, list[Fix | Outcome]]]:
    return [
        ("tracker", {"latitude": 2.0, "longitude": 1, "gps_accuracy": 60}, [
            Fix(2.0, 1.0, readings={"accuracy_m": 60.0}),
        ]),
        ("battery", {"latitude": 2, "longitude": 1, "battery_level": 37}, [
            Fix(2.0, 1.0, readings={"battery_percent": 37.0}),
        ]),
        ("bad battery", {"latitude": 2, "longitude": 1, "battery_level": "low"}, [Fix(2.0, 1.0)]),
        ("half", {"longitude": 1.0}, [SCHEMA]),
        ("words", {"latitude": "north", "longitude": 1}, [SCHEMA]),
        ("unknown", {"latitude": "unknown", "longitude": "unavailable"}, [NO_FIX]),
        ("negative accuracy", {"latitude": 2, "longitude": 1, "gps_accuracy": "-1"}, [NO_FIX]),
        ("service call", {"dev_id": "x", "gps": [10.0, 10.0]}, [SCHEMA]),
        ("out of range", {"latitude": 1e300, "longitude": 1}, [OUT_OF_RANGE]),
    ]  # fmt: skip


def _gtfs_rt_json() -> list[tuple[str, Any, list[Fix | Outcome]]]:
    at = {"latitude": 30.25, "longitude": -97.5}
    vehicle = {"position": at, "vehicle": {"id": "8916"}, "timestamp": "1454849104"}
    entity = {"id": "e", "vehicle": vehicle}
    fix = Fix(30.25, -97.5, 1454849104.0, "8916")
    feed = {"header": {"timestamp": 5}, "entity": [
        entity,
        {"id": "e", "vehicle": {"position": at, "timestamp": 0}},
        {"id": "e", "vehicle": {"position": {"latitude": 30.25}}},
        {**entity, "is_deleted": True},
        {"id": "e", "tripUpdate": {}},
        {"id": "e", "vehicle": {"vehicle": {"id": ""}}},
    ]}  # fmt: skip
    each: list[Fix | Outcome] = [
        fix, Fix(30.25, -97.5, None, "e"), SCHEMA, NOT_A_POSITION, NOT_A_POSITION, NO_FIX,
    ]  # fmt: skip
    return [
        ("feed", feed, each),
        ("proxied feed", {"status": "OK", "response": feed}, each),
        ("entity", entity, [fix]),
        ("readings", {"vehicle": {"position": {**at, "speed": 1.5, "bearing": 90}}}, [
            Fix(30.25, -97.5, readings={"speed_mps": 1.5, "heading_deg": 90.0}),
        ]),
        ("bad readings", {"vehicle": {"position": {**at, "speed": [], "bearing": "N"}}}, [
            Fix(30.25, -97.5),
        ]),
        ("entity, deleted", {**entity, "isDeleted": True}, [NOT_A_POSITION]),
        ("nameless entity", {"vehicle": {"position": at}}, [Fix(30.25, -97.5)]),
        ("empty names", {"id": "", "vehicle": {"position": at, "vehicle": {"id": ""}}}, [
            Fix(30.25, -97.5),
        ]),
        ("feed without time", {"header": {}, "entity": [{"vehicle": {"position": at}}]}, [
            Fix(30.25, -97.5),
        ]),
        ("feed without header", {"entity": [entity]}, [fix]),
        ("feed of nothing", {"header": {}}, [EMPTY]),
        ("proxied nothing", {"response": {"entity": []}}, [EMPTY]),
        ("time in words", {"vehicle": {**vehicle, "timestamp": "noon"}}, [TIME_FORM]),
        ("words", {"id": "e", "vehicle": {"position": {**at, "latitude": "N"}}}, [SCHEMA]),
        ("nothing", {}, [SCHEMA]),
    ]  # fmt: skip


def _bsm(core: dict[str, Any], recorded: str | None = "2018-05-01T16:04:23.694Z") -> dict[str, Any]:
    return {
        "metadata": {
            "recordGeneratedAt": recorded,
            "receivedMessageDetails": {"locationData": {"latitude": "1", "longitude": "1"}},
        },
        "payload": {"dataType": "us.dot.its.jpo.ode.plugin.j2735.J2735Bsm", "data": core},
    }


def _j2735() -> list[tuple[str, Any, list[Fix | Outcome]]]:
    def old(latitude: Any, longitude: Any, **core: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
        position = {"latitude": latitude, "longitude": longitude}
        return {"coreData": {"id": "31", "position": position, **core}}

    def new(lat: Any, long: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
        core = {"id": "31", "secMark": "23694", "lat": lat, "long": long, **more}
        return {"messageId": 20, "value": {"BasicSafetyMessage": {"coreData": core}}}

    def received(data: dict[str, Any], recorded: str = "") -> dict[str, Any]:
        message = _bsm(data, recorded)
        arrived = "2018-05-01T17:00:00Z" if recorded else "2018-05-01T16:04:23.694Z"
        message["metadata"]["odeReceivedAt"] = arrived
        return message

    recorded_s = 1525190663.694
    sent = Fix(40.5, -105.25, recorded_s - 0.1, "31")
    fix = Fix(40.5, -105.25, recorded_s, "31")
    wait = Fix(40.5, -105.25, recorded_s + 0.1, "31")
    tim = _bsm({"travelerdataframe": {}})
    tim["payload"]["dataType"] = "us.dot.its.jpo.ode.model.OdeTimPayload"
    return [
        ("degrees", _bsm(old(40.5, -105.25)), [fix]),
        ("degrees as text", _bsm(old("40.5", "-105.25")), [fix]),
        ("integers", _bsm(new(405000000, -1052500000)), [fix]),
        ("integers as text", _bsm(new("405000000", "-1052500000")), [fix]),
        ("readings", _bsm(old(40.5, -105.25, speed=0.14, heading="205.975")), [
            Fix(40.5, -105.25, recorded_s, "31", {"speed_mps": 0.14, "heading_deg": 205.975}),
        ]),
        ("readings in steps", _bsm(new(405000000, -1052500000, speed="100", heading=80)), [
            Fix(40.5, -105.25, recorded_s, "31", {"speed_mps": 2.0, "heading_deg": 1.0}),
        ]),
        ("readings unavailable", _bsm(old(40.5, -105.25, speed=163.82, heading=None)), [fix]),
        ("steps unavailable", _bsm(new(405000000, -1052500000, speed=8191, heading=28800)), [fix]),
        ("bad readings", _bsm(old(40.5, -105.25, speed="fast", heading=-1)), [fix]),
        ("java's time", _bsm(old(40.5, -105.25), "2018-05-01T16:04:23.694Z[UTC]"), [fix]),
        ("vehicle's clock", _bsm(old(40.5, -105.25, secMark=23794)), [wait]),
        ("clock unavailable", _bsm(old(40.5, -105.25, secMark=65535)), [fix]),
        ("clock before the minute", _bsm(old(40.5, -105.25, secMark=59000),
                                         "2018-05-01T16:04:00.500Z"), [
            Fix(40.5, -105.25, 1525190639.0, "31"),
        ]),
        ("clock after the minute", _bsm(old(40.5, -105.25, secMark=500),
                                        "2018-05-01T16:03:59.000Z"), [
            Fix(40.5, -105.25, 1525190640.5, "31"),
        ]),
        ("no time", _bsm(old(40.5, -105.25), None), [Fix(40.5, -105.25, None, "31")]),
        ("a frame alone", new(405000000, -1052500000), [Fix(40.5, -105.25, None, "31")]),
        ("its core alone", new(405000000, -1052500000)["value"]["BasicSafetyMessage"], [
            Fix(40.5, -105.25, None, "31"),
        ]),
        ("another frame", {"messageId": 31, "value": {"TravelerInformation": {}}}, [
            NOT_A_POSITION,
        ]),
        ("a frame of nothing", {"value": {"BasicSafetyMessage": {}}}, [SCHEMA]),
        ("empty time", _bsm(old(40.5, -105.25), ""), [Fix(40.5, -105.25, None, "31")]),
        ("received", received(old(40.5, -105.25)), [fix]),
        ("received, and sent before", received(old(40.5, -105.25, secMark=23594)), [sent]),
        ("a frame received", received(new("405000000", -1052500000)), [fix]),
        ("recorded long before", received(old(40.5, -105.25), "2018-05-01T16:04:23.694Z"), [fix]),
        ("no metadata", {"payload": _bsm(old(40.5, -105.25))["payload"]}, [
            Fix(40.5, -105.25, None, "31"),
        ]),
        ("not a time", _bsm(old(40.5, -105.25), "now"), [TIME_FORM]),
        ("latitude unavailable", _bsm(old(90.0000001, -105.25)), [NO_FIX]),
        ("longitude unavailable", _bsm(old(40.5, "180.0000001")), [NO_FIX]),
        ("raw unavailable", _bsm(old(900000001, 1800000001)), [NO_FIX]),
        ("integer unavailable", _bsm(new(900000001, 1800000001)), [NO_FIX]),
        ("null", _bsm(old(None, -105.25)), [NO_FIX]),
        ("null longitude", _bsm(old(40.5, None)), [NO_FIX]),
        ("another kind", tim, [NOT_A_POSITION]),
        ("no core", _bsm({"partII": []}), [SCHEMA]),
        ("no coordinates", _bsm({"coreData": {"id": "31", "lat": 1}}), [SCHEMA]),
        ("words", _bsm(old("north", "1")), [SCHEMA]),
        ("infinite text", _bsm(old("inf", "1")), [SCHEMA]),
        ("not an int32", _bsm(new(10**400, 1)), [SCHEMA]),
        ("no payload", {"metadata": {}}, [SCHEMA]),
        ("empty id", _bsm(old(40.5, -105.25, id="")), [
            Fix(40.5, -105.25, 1525190663.694),
        ]),
    ]  # fmt: skip


def _etsi_cam() -> list[tuple[str, Any, list[Fix | Outcome]]]:
    place = {"latitude": 485000000, "longitude": 22500000}

    def orange(at: Any = place, **more: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
        message = {"station_id": 7, "basic_container": {"reference_position": at}}
        return {"type": "cam", "timestamp": 1800000000250, "message": message | more}

    def vanetza(at: Any, station_type: int = 5, **fast: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
        parameters = {
            "basicContainer": {"stationType": station_type, "referencePosition": at},
            "highFrequencyContainer": {"basicVehicleContainerHighFrequency": fast},
        }
        cam = {"generationDeltaTime": 3, "camParameters": parameters}
        return {"timestamp": 1800000000.25, "fields": {"header": {"stationId": 7}, "cam": cam}}

    degrees = {"latitude": 48.5, "longitude": 2.25}
    fix = Fix(48.5, 2.25, 1800000000.25, "7")
    moving = {"speed_mps": 8.5, "heading_deg": 90.5}
    first = {"high_frequency_container": {"speed": 850, "heading": 905}}
    second = {"high_frequency_container": {"basic_vehicle_container_high_frequency": {
        "speed": {"value": 850, "confidence": 1}, "heading": {"value": 905},
    }}}  # fmt: skip
    third: dict[str, Any] = {"speed": {"speedValue": 8.5}, "heading": {"headingValue": 90.5}}
    bare = vanetza(degrees)["fields"]["cam"]
    return [
        ("its-client", orange(), [fix]),
        ("its-client, version 1", orange(**first), [fix_with(fix, moving)]),
        ("its-client, version 2", orange(**second), [fix_with(fix, moving)]),
        ("its-client, later name", {**orange(), "type": "cam", "message_type": "cam"}, [fix]),
        ("vanetza", vanetza(degrees, **third), [fix_with(fix, moving)]),
        ("vanetza in integers", vanetza(place), [fix]),
        ("standard", {"header": {"stationID": 7}, "cam": bare}, [Fix(48.5, 2.25, None, "7")]),
        ("inside", {**bare, "stationId": 7}, [Fix(48.5, 2.25, None, "7")]),
        ("nameless", bare, [Fix(48.5, 2.25)]),
        ("motion unavailable", orange(high_frequency_container={"speed": 16383, "heading": 3601}), [
            fix,
        ]),
        ("motion in words", orange(high_frequency_container={"speed": "fast"}), [fix]),
        ("unavailable", orange({"latitude": 900000001, "longitude": 1800000001}), [NO_FIX]),
        ("unavailable degrees", vanetza({"latitude": 90.0000001, "longitude": 2.25}), [NO_FIX]),
        ("null", orange({"latitude": None, "longitude": 1}), [NO_FIX]),
        ("roadside unit", vanetza(degrees, 15), [NOT_A_POSITION]),
        ("denm", {"type": "denm", "message": {}}, [NOT_A_POSITION]),
        ("denm of vanetza", {"fields": {"denm": {}}}, [NOT_A_POSITION]),
        ("half", orange({"latitude": 1}), [SCHEMA]),
        ("nothing", {}, [SCHEMA]),
        ("words", orange({"latitude": "north", "longitude": 1}), [SCHEMA]),
        ("not an integer of its", orange({"latitude": 10**400, "longitude": 1}), [SCHEMA]),
        ("beyond the pole", orange({"latitude": 900000009, "longitude": 1}), [OUT_OF_RANGE]),
    ]  # fmt: skip


def fix_with(fix: Fix, readings: dict[str, float]) -> Fix:
    return Fix(fix.lat, fix.lon, fix.ts, fix.device, readings)


def _meshtastic() -> list[tuple[str, Any, list[Fix | Outcome]]]:
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


def _ttn() -> list[tuple[str, Any, list[Fix | Outcome]]]:
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


def _ngsi_ld() -> list[tuple[str, Any, list[Fix | Outcome]]]:
    vehicle = {"id": "urn:v", "type": "Vehicle"}
    point = {"type": "Point", "coordinates": [-3.25, 40.5]}
    when = "2021-03-11T15:51:02+05:30"
    when_s = 1615458062.0
    fix = Fix(40.5, -3.25, when_s, "urn:v")
    geo = {"type": "GeoProperty", "value": point}
    line = {"type": "LineString", "coordinates": [[1, 2], [3, 4]]}
    stamped: dict[str, Any] = {"type": "Property", "value": {"@type": "DateTime", "@value": when}}
    observed = {**vehicle, "location": {**geo, "observedAt": when}}
    times: list[tuple[str, Any, list[Fix | Outcome]]] = [
        (f"time as {name}: {stated}", {**vehicle, "location": point, name: stated}, [fix])
        for name in ("dateObserved", "TimeInstant", "timestamp")
        for stated in (when, {"type": "DateTime", "value": when}, stamped)
    ]
    v2 = {
        **vehicle,
        "TimeInstant": {"type": "DateTime", "value": when},
        "location": {"type": "geo:point", "value": "40.5, -3.25"},
    }
    return [
        ("key-values", {**vehicle, "location": point, "observationDateTime": when}, [fix]),
        ("normalized", {**vehicle, "location": geo, "observationDateTime": stamped}, [fix]),
        ("plain value", {**vehicle, "location": geo, "observationDateTime": {"value": when}}, [
            fix,
        ]),
        ("own time", {**vehicle, "location": {**geo, "observedAt": "1970-01-01T00:00:09Z"},
                      "observationDateTime": stamped}, [Fix(40.5, -3.25, 9.0, "urn:v")]),
        ("concise", {**vehicle, "location": {"value": point, "observedAt": when}}, [fix]),
        ("readings", {**vehicle, "location": point, "speed": 36, "heading": 90, "battery": 0.25}, [
            Fix(40.5, -3.25, None, "urn:v", {
                "speed_mps": 10.0, "heading_deg": 90.0, "battery_percent": 25.0,
            }),
        ]),
        ("properties", {
            **vehicle, "location": point, "speed": {"type": "Property", "value": 36},
            "heading": {"value": 90, "unitCode": "DD"}, "battery": {"value": 1, "unitCode": "P1"},
        }, [Fix(40.5, -3.25, None, "urn:v", {"speed_mps": 10.0, "heading_deg": 90.0})]),
        ("bad readings", {
            **vehicle, "location": point, "speed": -1, "heading": {"value": "N"}, "battery": 1e308,
        }, [Fix(40.5, -3.25, None, "urn:v")]),
        ("empty property", {**vehicle, "location": point, "speed": {}}, [
            Fix(40.5, -3.25, None, "urn:v"),
        ]),
        ("altitude", {**vehicle, "location": {**point, "coordinates": [-3.25, 40.5, 600]},
                      "observationDateTime": when}, [fix]),
        ("several", [{**vehicle, "location": point}, {"id": "x"}], [
            Fix(40.5, -3.25, None, "urn:v"), SCHEMA,
        ]),
        ("line", {**vehicle, "location": line}, [NOT_A_POSITION]),
        ("no location", vehicle, [NOT_A_POSITION]),
        ("notification", {**vehicle, "type": "Notification", "data": []}, [NOT_A_POSITION]),
        ("property without value", {**vehicle, "location": {"type": "GeoProperty"}}, [SCHEMA]),
        ("no type", {**vehicle, "location": {"coordinates": [1, 2]}}, [SCHEMA]),
        ("one coordinate", {**vehicle, "location": {**point, "coordinates": [1]}}, [SCHEMA]),
        ("words", {**vehicle, "location": {**point, "coordinates": ["N", 2]}}, [SCHEMA]),
        *times,
        ("a period", {**vehicle, "location": point, "dateObserved": f"{when}/{when}"}, [
            Fix(40.5, -3.25, None, "urn:v"),
        ]),
        ("modified place", {**vehicle, "location": {**geo, "modifiedAt": when}}, [fix]),
        ("modified entity", {**vehicle, "location": geo, "modifiedAt": when}, [
            Fix(40.5, -3.25, None, "urn:v"),
        ]),
        ("the nearest time", {**vehicle, "dateObserved": "2026-01-01T00:00:00Z", "location": {
            **geo, "metadata": {"TimeInstant": {"type": "DateTime", "value": when}}}}, [fix]),
        ("notified", {"type": "Notification", "id": "n", "data": [observed, {"id": "x"}]}, [
            fix, SCHEMA,
        ]),
        ("notified by mqtt", {"metadata": {}, "body": {"type": "Notification", "id": "n",
                                                       "data": [observed]}}, [fix]),
        ("notified by version 2", {"subscriptionId": "s", "data": [v2]}, [fix]),
        ("version 2", v2, [fix]),
        ("version 2, geo:json", {**vehicle, "TimeInstant": when,
                                 "location": {"type": "geo:json", "value": point}}, [fix]),
        ("version 2, one number", {**v2, "location": {"type": "geo:point", "value": "1"}}, [
            SCHEMA,
        ]),
        ("swapped", {**vehicle, "location": {**point, "coordinates": [40, 100]}}, [OUT_OF_RANGE]),
        ("nameless", {**vehicle, "id": "", "location": point}, [Fix(40.5, -3.25)]),
        ("nothing", {}, [SCHEMA]),
    ]  # fmt: skip


def _senml() -> list[tuple[str, Any, list[Fix | Outcome]]]:
    base = {"bn": "urn:dev:mac:0024befffe804ff1:", "bt": 1.8e9}
    lat = {"n": "lat", "u": "lat", "v": 60.5}
    lon = {"n": "lon", "u": "lon", "v": 24.5}
    fix = Fix(60.5, 24.5, 1.8e9, "urn:dev:mac:0024befffe804ff1")
    named = {"n": "latitude", "v": 60.5}, {"n": "Longitude", "u": "deg", "v": 24.5}
    later = {"n": "lat", "t": 5, "v": 61.5}, {"n": "lon", "t": 5, "v": 25.5}
    return [
        ("pair", [base | lat, lon], [fix]),
        ("base record alone", [base, lat, lon], [fix]),
        ("names without units", [base | named[0], named[1]], [fix]),
        ("base value", [base | {"bv": 60} | lat | {"v": 0.5}, lon | {"bv": 24, "v": 0.5}], [fix]),
        ("track", [base | lat, lon, *later], [fix, Fix(61.5, 25.5, 1.8e9 + 5, fix.device)]),
        ("half of a track", [base | lat, lon, later[0]], [fix, SCHEMA]),
        ("whole names", [lat | {"n": "urn:a:lat"}, lon | {"n": "urn:a:lon"}], [
            Fix(60.5, 24.5, None, "urn:a"),
        ]),
        ("devices of a gateway", [
            {"bn": "gw/"}, lat | {"n": "a/lat"}, lon | {"n": "b/lon"}, lon | {"n": "a/lon"},
        ], [Fix(60.5, 24.5, None, "gw/a"), SCHEMA]),
        ("readings", [
            base | lat, lon, {"n": "Temp", "u": "Cel", "v": -3}, {"n": "s", "u": "m/s", "v": 9},
            {"n": "b", "u": "%EL", "v": 50}, {"n": "accuracy", "u": "m", "v": 4},
            {"n": "open", "vb": True}, {"n": "word", "vs": "x"}, {"n": "lost", "v": None},
        ], [Fix(60.5, 24.5, 1.8e9, fix.device, {
            "Temp": -3.0, "speed_mps": 9.0, "battery_percent": 50.0, "accuracy_m": 4.0,
        })]),
        ("labels of CBOR", [
            {"-2": "a:", "-3": 1.8e9, "0": "lat", "1": "lat", "2": 60.5},
            {"0": "lon", "1": "lon", "2": 24.5},
        ], [Fix(60.5, 24.5, 1.8e9, "a")]),
        ("no time", [{"bn": "a"} | lat, lon], [Fix(60.5, 24.5, None, "a")]),
        ("seconds ago", [{"bn": "a", "bt": -5} | lat, lon | {"t": 0}], [
            Fix(60.5, 24.5, -5.0, "a"),
        ]),
        ("an hour ago", [{"bn": "a"} | lat | {"t": -3600}, lon | {"t": -3600}], [
            Fix(60.5, 24.5, -3600.0, "a"),
        ]),
        ("seconds ahead", [{"bn": "a", "bt": 5} | lat, lon], [Outcome.INVALID__FUTURE_TIME]),
        ("long ago", [{"bn": "a", "bt": -(2.0**30)} | lat, lon], [
            Fix(60.5, 24.5, -(2.0**30), "a"),
        ]),
        ("milliseconds", [base | {"bt": 1.8e12} | lat, lon], [Outcome.INVALID__TIME_IN_MS]),
        ("in radians", [base | lat | {"u": "rad"}, lon | {"u": "rad"}], [NOT_A_POSITION]),
        ("two latitudes", [base | lat, lat, lon], [SCHEMA]),
        ("other times", [base | lat, lon | {"t": 1}], [SCHEMA, SCHEMA]),
        ("text", [base | lat | {"v": "north"}, lon], [SCHEMA]),
        ("no value", [base | {"n": "lat", "u": "lat", "bv": 60}, lon], [SCHEMA]),
        ("null", [base | lat | {"v": None}, lon], [NO_FIX]),
        ("beyond the pole", [base | lat | {"v": 91.5}, lon], [OUT_OF_RANGE]),
        ("null island", [base | lat | {"v": 0}, lon | {"v": 0}], [NULL_ISLAND]),
        ("to be understood", [base | lat, lon | {"scale_": 2}], [SCHEMA]),
        ("a version to come", [base | {"bver": 11} | lat, lon], [SCHEMA]),
        ("no place", [base | {"n": "Temp", "v": 3}], [NOT_A_POSITION]),
        ("text as time", [base | {"bt": "now"} | lat, lon], [SCHEMA]),
        ("a record alone", base | lat, [SCHEMA]),
        ("nothing", [], [EMPTY]),
    ]  # fmt: skip


SAMPLES = [
    Sample(codec, *sample)
    for codec, samples in [
        ("native", _native()),
        ("owntracks", _owntracks()),
        ("hfp", _hfp()),
        ("traccar", _traccar()),
        ("home_assistant", _home_assistant()),
        ("gtfs_rt_json", _gtfs_rt_json()),
        ("j2735", _j2735()),
        ("etsi_cam", _etsi_cam()),
        ("meshtastic", _meshtastic()),
        ("ttn", _ttn()),
        ("ngsi_ld", _ngsi_ld()),
        ("senml", _senml()),
    ]
    for sample in samples
]
