"""Meshtastic packets of radio mesh nodes, as their gateways publish them at `msh/.../json/...`.

Only `type` "position" states where a node is. "sendposition" is a command *to* a node;
telemetry, nodeinfo and text are other types. Coordinates are in integer units of 1e-7 degrees.
The device is `from`, the number of the node; `sender` is the gateway that heard it.

Readings: `speed_mps` (`ground_speed`, which the firmware writes in km/h, despite the comment in
its protocol definition). `ground_track` has no agreed unit and is not read.

Source: https://meshtastic.org/docs/software/integrations/mqtt/
"""

from collections.abc import Sequence

from msgspec import Raw, field
from msgspec.json import Decoder

from anonymizer.codecs._fields import (
    MPS_PER_KMH,
    UNSTATED,
    DeviceId,
    Int32,
    Stated,
    measured,
    read,
    read_part,
    stated_fix,
)
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome


class _Packet(Stated):
    type: str
    payload: Raw = Raw(b"null")
    node: DeviceId | None = field(name="from", default=None)
    timestamp: float | None = None


class _Position(Stated):
    latitude_i: Int32
    longitude_i: Int32
    time: float | None = None
    ground_speed: Raw = UNSTATED


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
    return [
        stated_fix(
            position.latitude_i / 1e7,
            position.longitude_i / 1e7,
            time=position.time or packet.timestamp or None,
            device=packet.node,
            readings=measured(("speed_mps", position.ground_speed, MPS_PER_KMH)),
        )
    ]
