"""LoRaWAN uplinks of The Things Network (The Things Stack v3).

Only what the *device* sent is its position: `uplink_message.decoded_payload`, in the common
spellings of payload formatters or as a Cayenne LPP channel `gps_<n>`. `rx_metadata[].location`
is the position of a gateway. `uplink_message.locations` is the position that the server has
stored, from an earlier uplink or from the device's registration, and is ignored.

The device is `device_id`, which is unique within its application; a login sees one application.
The time is that of the fix where the payload states it, else when the network server received
the uplink. What says that there is no fix, and which names a time of the fix has, see `fix_signs`.

Readings: the numbers of `decoded_payload`, such as `temperature`, `humidity` or `co2`, under
their own names in snake case, and `accuracy` as `accuracy_m`, too, as TTN Mapper has it. Only the
payload formatter knows the other units.

Source: https://www.thethingsindustries.com/docs/integrations/data-formats/
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Raw
from msgspec.json import Decoder

from anonymizer.codecs._fields import (
    Number,
    Stated,
    StatedId,
    named_numbers,
    read,
    read_part,
    stated_fix,
)
from anonymizer.codecs.fix_signs import said_of_fix
from anonymizer.codecs.format import Format
from anonymizer.codecs.times import StatedInstant, unix_s
from anonymizer.domain.fixes import ACCURACY, Fix
from anonymizer.domain.outcomes import Outcome

_SPELLINGS = (
    ("latitude", "longitude"),
    ("lat", "lon"),
    ("lat", "lng"),
    ("lat", "long"),
    ("latitudeDeg", "longitudeDeg"),
    ("Latitude", "Longitude"),
)
_COORDINATES = frozenset(key for pair in _SPELLINGS for key in pair)
_Pair: TypeAlias = tuple[Number, Number]
_Place: TypeAlias = tuple[_Pair, Mapping[str, Raw] | None]
"""Latitude and longitude as stated, and the members of the channel that has them, if one does."""


class _DeviceIds(Stated):
    device_id: StatedId = None


class _Uplink(Stated):
    decoded_payload: dict[str, Raw] | None = None
    received_at: str | None = None


class _Message(Stated):
    end_device_ids: _DeviceIds | None = None
    uplink_message: _Uplink | None = None
    received_at: str | None = None
    simulated: bool = False


_MESSAGE = Decoder(_Message)
_OBJECT = Decoder(dict[str, Raw])
_NUMBER: Decoder[Number | None] = Decoder(float | str | None)


def decode(payload: bytes) -> Sequence[Fix | Outcome]:
    """Decode one message. About 2 µs."""
    message = read(_MESSAGE, payload)
    return [message if isinstance(message, Outcome) else _fix_of(message)]


def readings_of(payload: bytes) -> tuple[float | None, StatedId, dict[str, float]] | None:
    """Return time, device and readings of an uplink without a position; None if it is none."""
    message = read(_MESSAGE, payload)
    if isinstance(message, Outcome) or message.uplink_message is None or message.simulated:
        return None
    ids, uplink = message.end_device_ids, message.uplink_message
    decoded = uplink.decoded_payload or {}
    if _place_in(decoded) is not Outcome.INVALID__NOT_A_POSITION:
        return None
    time = message.received_at if uplink.received_at is None else uplink.received_at
    device = None if ids is None else ids.device_id
    return None if time is None else unix_s(time), device, named_numbers(decoded)


def _fix_of(message: _Message) -> Fix | Outcome:
    ids, uplink = message.end_device_ids, message.uplink_message
    if uplink is None:
        # Join and downlink events name their device.
        return Outcome.INVALID__SCHEMA if ids is None else Outcome.INVALID__NOT_A_POSITION
    if message.simulated or uplink.decoded_payload is None:
        return Outcome.INVALID__NOT_A_POSITION
    place = _place_in(uplink.decoded_payload)
    if isinstance(place, Outcome):
        return place
    (lat, lon), channel = place
    sensed = {k: v for k, v in uplink.decoded_payload.items() if k not in _COORDINATES}
    time: str | StatedInstant | None = uplink.received_at or message.received_at
    for members in (sensed,) if channel is None else (sensed, channel):
        said = said_of_fix(members)
        if isinstance(said, Outcome):
            return said
        time = said if said and said.unix_s > 0 else _before(time, said)
    readings = named_numbers(sensed)
    if "accuracy" in readings:
        readings.setdefault(ACCURACY, readings["accuracy"])
    return stated_fix(
        lat,
        lon,
        time=time,
        device=None if ids is None else ids.device_id,
        readings=readings or None,
    )


def _before(
    time: str | StatedInstant | None, said: StatedInstant | None
) -> str | StatedInstant | None:
    """Return the time that is so long before another one as the age of a fix says."""
    if said is None or isinstance(time, StatedInstant):
        return time
    heard_s = None if time is None else unix_s(time)
    return said if heard_s is None else StatedInstant(heard_s + said.unix_s)


def _place_in(decoded: dict[str, Raw]) -> _Place | Outcome:
    pair = _pair_in(decoded)
    if pair is not None:
        return pair if isinstance(pair, Outcome) else (pair, None)
    for key, part in decoded.items():
        if key.startswith("gps_"):
            channel = read_part(_OBJECT, part)
            if isinstance(channel, Outcome):
                return channel
            pair = _pair_in(channel) or Outcome.INVALID__SCHEMA
            return pair if isinstance(pair, Outcome) else (pair, channel)
    return Outcome.INVALID__NOT_A_POSITION


def _pair_in(fields: dict[str, Raw]) -> _Pair | Outcome | None:
    for lat_key, lon_key in _SPELLINGS:
        if lat_key in fields and lon_key in fields:
            return _position_of(fields[lat_key], fields[lon_key])
    return None if _COORDINATES.isdisjoint(fields) else Outcome.INVALID__SCHEMA


def _position_of(lat_part: Raw, lon_part: Raw) -> _Pair | Outcome:
    lat, lon = read_part(_NUMBER, lat_part), read_part(_NUMBER, lon_part)
    if type(lat) is float and type(lon) is float:  # nearly all are
        return lat, lon
    if isinstance(lat, Outcome) or isinstance(lon, Outcome):
        return Outcome.INVALID__SCHEMA
    if lat is None or lon is None:
        return Outcome.INVALID__NO_FIX
    return lat, lon


FORMAT = Format(decode=decode, readings_of=readings_of)
