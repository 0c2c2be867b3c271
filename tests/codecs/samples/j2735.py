"""Messages of the codec `j2735`."""

from typing import Any

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


def _bsm(core: dict[str, Any], recorded: str | None = "2018-05-01T16:04:23.694Z") -> dict[str, Any]:
    return {
        "metadata": {
            "recordGeneratedAt": recorded,
            "receivedMessageDetails": {"locationData": {"latitude": "1", "longitude": "1"}},
        },
        "payload": {"dataType": "us.dot.its.jpo.ode.plugin.j2735.J2735Bsm", "data": core},
    }


def samples() -> list[Stated]:
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


typical = written(
    {
        "metadata": {
            "recordType": "bsmTx", "securityResultCode": "success", "schemaVersion": 6,
            "payloadType": "us.dot.its.jpo.ode.model.OdeBsmPayload", "odeReceivedAt": ISO,
            "recordGeneratedAt": ISO, "recordGeneratedBy": "OBU", "sanitized": False,
            "serialId": {"streamId": "801780cb", "bundleSize": 1, "recordId": 0},
        },
        "payload": {
            "dataType": "us.dot.its.jpo.ode.plugin.j2735.J2735Bsm",
            "data": {"coreData": {
                "msgCnt": 81, "id": "31325433", "secMark": 250,
                "position": {"latitude": LAT, "longitude": LON, "elevation": 17.8},
                "accelSet": {"accelLat": 0.0, "accelLong": -0.6, "accelYaw": 0.0},
                "accuracy": {"semiMajor": 9.3, "semiMinor": 12.05}, "transmission": "NEUTRAL",
                "speed": 9.7, "heading": 87.0, "size": {"width": 190, "length": 570},
            }},
        },
    }
)  # fmt: skip
