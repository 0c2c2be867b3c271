"""Basic safety messages, written after the form of the US DOT's Operational Data Environment."""

import json
from datetime import UTC, datetime
from typing import Any

_NO_SPEED = 8191


def bsm(
    device: str, lat: float, lon: float, *, at: float, speed_mps: float | None, heading: int = 0
) -> bytes:
    """Return a message that was received over the air: `recordGeneratedAt` is empty.

    Parameters
    ----------
    heading
        In steps of 0.0125 degrees.
    """
    received = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    core = {
        "msgCnt": 1,
        "id": device,
        "secMark": int(at * 1000) % 60_000,
        "lat": round(lat * 1e7),
        "long": round(lon * 1e7),
        "elev": 220,
        "accuracy": {"semiMajor": 40, "semiMinor": 40, "orientation": 0},
        "transmission": "forwardGears",
        "speed": _NO_SPEED if speed_mps is None else round(speed_mps / 0.02),
        "heading": heading,
        "angle": 0,
        "accelSet": {"long": 0, "lat": 0, "vert": 0, "yaw": 0},
        "brakes": {"wheelBrakes": "00", "traction": "off", "abs": "off", "scs": "off",
                   "brakeBoost": "unavailable", "auxBrakes": "unavailable"},
        "size": {"width": 190, "length": 480},
    }  # fmt: skip
    value = {"BasicSafetyMessage": {"coreData": core}}
    metadata = {
        "recordType": "bsmTx",
        "payloadType": "us.dot.its.jpo.ode.model.OdeMessageFramePayload",
        "odeReceivedAt": received.replace("+00:00", "Z"),
        "recordGeneratedAt": "",
        "sanitized": False,
        "originIp": "192.0.2.1",
    }
    kind = "us.dot.its.jpo.asn.j2735.r2024.BasicSafetyMessage.BasicSafetyMessageMessageFrame"
    payload = {"data": {"messageId": 20, "value": value}, "dataType": kind}
    return json.dumps({"metadata": metadata, "payload": payload}).encode()


def _whole(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_USED = {"enum": ["unavailable", "off", "on", "engaged"]}
_CORE = _object(
    msgCnt=_whole(0, 127),
    id={"type": "string", "pattern": "^[0-9A-F]{8}$"},
    secMark=_whole(0, 65535),
    lat=_whole(-900_000_000, 900_000_001),
    long=_whole(-1_799_999_999, 1_800_000_001),
    elev=_whole(-4096, 61439),
    accuracy=_object(
        semiMajor=_whole(0, 255), semiMinor=_whole(0, 255), orientation=_whole(0, 65535)
    ),
    transmission={"type": "string"},
    speed=_whole(0, 8191),
    heading=_whole(0, 28800),
    angle=_whole(-126, 127),
    accelSet=_object(
        long=_whole(-2000, 2001),
        lat=_whole(-2000, 2001),
        vert=_whole(-127, 127),
        yaw=_whole(-32767, 32767),
    ),
    brakes=_object(
        wheelBrakes={"type": "string", "pattern": "^[0-9A-F]{2}$"},
        traction=_USED,
        abs=_USED,
        scs=_USED,
        brakeBoost={"enum": ["unavailable", "off", "on"]},
        auxBrakes={"enum": ["unavailable", "off", "on", "reserved"]},
    ),
    size=_object(width=_whole(0, 1023), length=_whole(0, 4095)),
)
FRAME = _object(messageId={"const": 20}, value=_object(BasicSafetyMessage=_object(coreData=_CORE)))
"""JSON Schema of a frame with a basic safety message, after the ranges of SAE J2735."""
MESSAGE = _object(
    metadata=_object(
        payloadType={"const": "us.dot.its.jpo.ode.model.OdeMessageFramePayload"},
        sanitized={"type": "boolean"},
        odeReceivedAt={"type": "string"},
    ),
    payload=_object(data=FRAME, dataType={"type": "string"}),
)
"""And of what the privacy protection module reads: it drops what lacks any of this."""
