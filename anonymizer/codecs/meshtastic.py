"""Meshtastic packets of radio mesh nodes, as their gateways publish them at `msh/.../json/...`.

Only `type` "position" states where a node is. "sendposition" is a command *to* a node;
telemetry, nodeinfo and text are other types. Coordinates are in integer units of 1e-7 degrees.
The device is `from`, the number of the node; `sender` is the gateway that heard it.

Readings: `speed_mps` (`ground_speed`, which the firmware writes in km/h, despite the comment in
its protocol definition), `accuracy_m` (from `precision_bits`, which default channels cut to
kilometres). `ground_track` has no agreed unit and is not read.

Source: https://meshtastic.org/docs/software/integrations/mqtt/
"""

from collections.abc import Sequence
from math import floor, log2

import msgspec
from msgspec import Raw, field
from msgspec.json import Decoder

from anonymizer.codecs._fields import (
    MPS_PER_KMH,
    UNSTATED,
    Digits,
    Int32,
    Number,
    Readings,
    Stated,
    StatedId,
    measured,
    number_or_text,
    read,
    read_part,
    stated_fix,
)
from anonymizer.codecs.coarse import CoarsePoint, message_id, short_id
from anonymizer.codecs.format import Format
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

_BROADCAST = 2**32 - 1
_ALL_BITS = 32
_STEP_M = 0.0111319
"""Metres of 1e-7 degrees along a meridian."""


class _Packet(Stated):
    type: str
    payload: Raw = Raw(b"null")
    node: StatedId = field(name="from", default=None)
    timestamp: Number | None = None


class _Position(Stated):
    latitude_i: Int32 | Digits | None
    longitude_i: Int32 | Digits | None
    time: Number | None = None
    ground_speed: Raw = UNSTATED
    precision_bits: Raw = UNSTATED


_PACKET = Decoder(_Packet)
_POSITION = Decoder(_Position)


def decode(payload: bytes) -> Sequence[Fix | Outcome]:
    """Decode one packet. About 1.1 µs.

    The time is the node's own, else when its gateway heard it; 0 means a clock that was never set.
    """
    packet = read(_PACKET, payload)
    if isinstance(packet, Outcome):
        return [packet]
    if packet.type != "position":
        return [Outcome.INVALID__NOT_A_POSITION]
    position = read_part(_POSITION, packet.payload)
    if isinstance(position, Outcome):
        return [position]
    if position.latitude_i is None or position.longitude_i is None:
        return [Outcome.INVALID__NO_FIX]
    return [
        stated_fix(
            int(position.latitude_i) / 1e7,
            int(position.longitude_i) / 1e7,
            time=packet.timestamp if _is_unset(position.time) else position.time,
            device=packet.node,
            readings=_readings_of(position),
        )
    ]


def _is_unset(time: Number | None) -> bool:
    return not time or time == "0"


def _readings_of(position: _Position) -> Readings:
    readings = measured(("speed_mps", position.ground_speed, MPS_PER_KMH))
    bits = number_or_text(position.precision_bits)
    if not 0 < bits <= _ALL_BITS:
        return readings
    # The bits that do not hold are those of a square around the position.
    accuracy = {"accuracy_m": 2.0 ** (_ALL_BITS - bits) / 2 * _STEP_M}
    return accuracy | (readings or {})


def encode(point: CoarsePoint) -> bytes:
    """Write a coarse point; `precision_bits` say how many bits of a coordinate hold."""
    node = short_id(point.pseudonym)
    payload = {
        "latitude_i": round(point.lat * 1e7),
        "longitude_i": round(point.lon * 1e7),
        "time": int(point.time),
        "precision_bits": max(1, min(32, floor(32 - log2(2 * point.radius_m / _STEP_M)))),
    }
    return msgspec.json.encode(
        {
            "channel": 0,
            "from": node,
            "id": message_id(point),
            "payload": payload,
            "sender": f"!{node:08x}",
            "timestamp": int(point.time),
            "to": _BROADCAST,
            "type": "position",
        }
    )


FORMAT = Format(decode=decode, encode=encode)
