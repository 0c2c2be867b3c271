"""OwnTracks messages, sent by phones over MQTT or HTTP.

Only `_type` "location" is a position of the device: a transition or a waypoint carries the
coordinates of a region, a will (lwt) carries none. The device id is `topic`, which is present in
messages sent over HTTP. `tid` is a two-letter label for maps; many devices may share it, so it
is not an id.

Encrypted messages are libsodium secret boxes, nonce first, in base64; the key is the user's secret,
filled up with zeros to 32 bytes. `decrypting` opens them; otherwise they are refused as encrypted.

Readings: `speed_mps` (`vel`, km/h), `heading_deg` (`cog`), `battery_percent` (`batt`),
`accuracy_m` (`acc`).

Source: https://owntracks.org/booklet/tech/json/, https://owntracks.org/booklet/features/encrypt/
"""

import binascii
from base64 import b64decode
from collections.abc import Sequence

import msgspec
from msgspec import Raw, field
from msgspec.json import Decoder

from anonymizer.codecs._fields import (
    MPS_PER_KMH,
    UNSTATED,
    Codec,
    Number,
    Readings,
    Stated,
    StatedId,
    measured,
    read,
    stated_fix,
)
from anonymizer.codecs.coarse import CoarsePoint
from anonymizer.codecs.format import Format
from anonymizer.codecs.layouts import Layout, Member, Role
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.extras import extra

KEY_BYTES = 32
"""Longest secret."""


class _Kind(Stated):
    type: str = field(name="_type")


class _Location(_Kind):
    lat: Number | None
    lon: Number | None
    tst: Number | None = None
    topic: StatedId = None
    vel: Raw = UNSTATED
    cog: Raw = UNSTATED
    batt: Raw = UNSTATED
    acc: Raw = UNSTATED


class _Encrypted(_Kind):
    data: str


_KIND = Decoder(_Kind)
_ENCRYPTED = Decoder(_Encrypted)
_LOCATION = Decoder(_Location)


def decode(payload: bytes) -> Sequence[Fix | Outcome]:
    """Decode one message. About 0.5 µs, 0.3 µs more for each reading."""
    location = read(_LOCATION, payload)
    if isinstance(location, _Location) and location.type == "location":
        return [
            stated_fix(
                location.lat,
                location.lon,
                time=location.tst,
                device=location.topic,
                readings=_readings_of(location),
            )
        ]
    # Messages of other types lack the fields of a location, or use them differently.
    kind = read(_KIND, payload)
    if isinstance(kind, _Kind):
        return [_UNUSABLE.get(kind.type, Outcome.INVALID__NOT_A_POSITION)]
    return [kind]


_UNUSABLE = {"location": Outcome.INVALID__SCHEMA, "encrypted": Outcome.INVALID__ENCRYPTED}
"""Why a message is refused, by its type."""


def encode(point: CoarsePoint) -> bytes:
    """Write a coarse point, not encrypted. The label of the map (`tid`) ends the pseudonym."""
    return msgspec.json.encode(
        {
            "_type": "location",
            "lat": point.lat,
            "lon": point.lon,
            "acc": point.radius_m,
            "tst": int(point.time),
            "tid": point.pseudonym[-2:],
            "topic": point.topic,
        }
    )


def decrypting(secrets: Sequence[bytes]) -> Codec:
    """Return a codec that also opens encrypted messages, trying each secret in turn.

    About 3 µs for each secret that is tried.

    Raises
    ------
    MissingExtraError
        If libsodium is not installed.
    ValueError
        If a secret is empty or longer than `KEY_BYTES`.
    """
    with extra("owntracks"):
        from nacl.exceptions import CryptoError  # noqa: PLC0415  an extra
        from nacl.secret import SecretBox  # noqa: PLC0415  likewise

    if not all(0 < len(secret) <= KEY_BYTES for secret in secrets):
        raise ValueError(f"a secret must have 1 to {KEY_BYTES} bytes")
    boxes = [SecretBox(secret.ljust(KEY_BYTES, b"\0")) for secret in secrets]

    def opened(payload: bytes) -> bytes | Outcome:
        message = read(_ENCRYPTED, payload)
        if isinstance(message, Outcome):
            return message
        try:
            sealed = b64decode(message.data, validate=True)
        except (binascii.Error, ValueError):
            return Outcome.INVALID__MALFORMED
        for box in boxes:
            try:
                return box.decrypt(sealed)
            except CryptoError:
                continue
        return Outcome.INVALID__ENCRYPTED

    def decode_any(payload: bytes) -> Sequence[Fix | Outcome]:
        found = decode(payload)
        if found[0] is not Outcome.INVALID__ENCRYPTED:
            return found
        plain = opened(payload)
        return [plain] if isinstance(plain, Outcome) else decode(plain)

    return decode_any


def _readings_of(location: _Location) -> Readings:
    stated = (location.vel, location.cog, location.batt, location.acc)
    if all(each is UNSTATED for each in stated):  # the common case, made cheap
        return None
    return measured(
        ("speed_mps", location.vel, MPS_PER_KMH),
        ("heading_deg", location.cog, 1.0),
        ("battery_percent", location.batt, 1.0),
        ("accuracy_m", location.acc, 1.0),
    )


_LAYOUT = Layout(
    {
        "_type": Member(Role.KIND),
        "lat": Member(Role.LAT),
        "lon": Member(Role.LON),
        "tst": Member(Role.TIME),
        "topic": Member(Role.DEVICE),
        "vel": Member(Role.READING, "speed_mps", MPS_PER_KMH),
        "cog": Member(Role.READING, "heading_deg"),
        "batt": Member(Role.READING, "battery_percent"),
        "acc": Member(Role.ACCURACY, "accuracy_m"),
    },
    kind="location",
)
FORMAT = Format(decode=decode, encode=encode, named_by_topic=True, layout=_LAYOUT)
