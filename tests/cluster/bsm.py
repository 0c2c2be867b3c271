"""Basic safety messages, written after the form of the US DOT's Operational Data Environment."""

import json
from datetime import UTC, datetime

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
