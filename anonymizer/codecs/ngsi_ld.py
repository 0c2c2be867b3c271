"""NGSI-LD entities with a location, such as FIWARE's Vehicle: key-values, normalized or concise.

`location` is a GeoJSON Point (longitude first) or a GeoProperty whose value is one. A line or an
area is not a position. Neither is an entity without a location. Of NGSI v2, `geo:point` (text,
latitude first) and `geo:json` are read. A notification is read as the entities in its `data`, also
inside the `body` of what NGSI-LD brokers send by MQTT.

The time is the first of: the location's own `observedAt`, its metadata `TimeInstant` or
`timestamp`, `observationDateTime`, `dateObserved`, `TimeInstant`, `timestamp`, the location's
`modifiedAt`. When the entity was modified says nothing of its place. The device is the entity's
`id`.

Readings, as defined by FIWARE's Vehicle: `speed_mps` (`speed`, km/h), `heading_deg` (`heading`),
`battery_percent` (`battery`, 0 to 1), either plain or as the value of a property. A property
whose unit (`unitCode`) is not the model's is left out.

Source: https://github.com/smart-data-models/dataModel.Transportation, ETSI GS CIM 009
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, field
from msgspec.json import Decoder

from anonymizer.codecs._fields import (
    MPS_PER_KMH,
    UNSTATED,
    Number,
    Readings,
    Stated,
    StatedId,
    measured,
    one_or_many,
    read,
    read_part,
    stated_fix,
    time_of,
    too_many,
)
from anonymizer.codecs.coarse import CoarsePoint, iso8601
from anonymizer.codecs.format import Format
from anonymizer.codecs.times import StatedInstant
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

CONTEXT = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld"


class _Geometry(Stated):
    type: str | None = None
    coordinates: Raw = UNSTATED


class _Metadata(Stated):
    time_instant: Raw = field(name="TimeInstant", default=UNSTATED)
    timestamp: Raw = UNSTATED


class _Location(_Geometry):
    value: _Geometry | str | None = None
    observed_at: Number | None = field(name="observedAt", default=None)
    modified_at: Raw = field(name="modifiedAt", default=UNSTATED)
    metadata: _Metadata | None = None


class _DateTime(Stated):
    text: str = field(name="@value")


class _When(Stated):
    value: str | _DateTime


class _Property(Stated):
    value: Raw = UNSTATED
    unit_code: str | None = field(name="unitCode", default=None)


class _Entity(Stated):
    id: StatedId
    type: str | list[str]
    location: _Location | None = None
    observed: str | _When | None = field(name="observationDateTime", default=None)
    date_observed: Raw = field(name="dateObserved", default=UNSTATED)
    time_instant: Raw = field(name="TimeInstant", default=UNSTATED)
    timestamp: Raw = UNSTATED
    speed: Raw = UNSTATED
    heading: Raw = UNSTATED
    battery: Raw = UNSTATED
    accuracy: Raw = UNSTATED


class _Notification(Stated, rename="camel"):
    type: Raw = UNSTATED
    subscription_id: Raw = UNSTATED
    data: list[Raw] | None = None
    body: "_Notification | None" = None


_PROPERTY = Decoder(_Property)
_ENTITY = Decoder(_Entity)
_NOTIFICATION = Decoder(_Notification)
_TIME: Decoder[str | float | _When] = Decoder(str | float | _When)
_LEAST_BYTES = len('{"location":{"coordinates":[1,2]}},')
_POINT = Decoder(Annotated[list[Number | None], Meta(min_length=2, max_length=3)] | None)


def _fix_of(entity: _Entity) -> Fix | Outcome:
    location = entity.location
    if location is None:
        return Outcome.INVALID__NOT_A_POSITION
    geometry = location if location.value is None else location.value
    if isinstance(geometry, str):
        pair = geometry.split(",") if location.type == "geo:point" else ()
        return _fix_at(entity, location, *pair) if len(pair) == 2 else Outcome.INVALID__SCHEMA
    if geometry.type != "Point":
        is_empty = geometry.type in {None, "GeoProperty"}  # or a property without a value
        return Outcome.INVALID__SCHEMA if is_empty else Outcome.INVALID__NOT_A_POSITION
    if geometry.coordinates is UNSTATED:
        return Outcome.INVALID__SCHEMA
    point = read_part(_POINT, geometry.coordinates) or Outcome.INVALID__NO_FIX
    return point if isinstance(point, Outcome) else _fix_at(entity, location, point[1], point[0])


def _fix_at(
    entity: _Entity, location: _Location, lat: Number | None, lon: Number | None
) -> Fix | Outcome:
    time: Number | StatedInstant | None = location.observed_at
    if time is None:
        time = _time_of(entity, location)
    return stated_fix(lat, lon, time=time, device=entity.id, readings=_readings_of(entity))


def _time_of(entity: _Entity, location: _Location) -> Number | StatedInstant | None:
    metadata = location.metadata
    near = () if metadata is None else (metadata.time_instant, metadata.timestamp)
    text = _text_of(entity.observed)
    far = () if text else (entity.date_observed, entity.time_instant, entity.timestamp)
    last = () if text else (location.modified_at,)
    for part in near + far + last:
        if part is not UNSTATED and (time := _time_in(part)) is not None:
            return time
    return text


def _time_in(part: Raw) -> StatedInstant | float | None:
    """Return the time that a text, a number or a property states; None if it is a period."""
    stated = read_part(_TIME, part)
    if isinstance(stated, Outcome):
        return None
    plain = _text_of(stated) if isinstance(stated, _When) else stated
    found = None if plain is None else time_of(plain)
    return None if isinstance(found, Outcome) else found


def _readings_of(entity: _Entity) -> Readings:
    return measured(
        ("speed_mps", _value_of(entity.speed, "KMH"), MPS_PER_KMH),
        ("heading_deg", _value_of(entity.heading, "DD"), 1.0),
        ("battery_percent", _value_of(entity.battery, "C62"), 100.0),
        ("accuracy_m", *_length_of(entity.accuracy)),
    )


def _value_of(part: Raw, unit_code: str) -> Raw:
    """Return the value of a property, `UNSTATED` if it is in another unit (UN/CEFACT code).

    A part that is not a property is returned as it is.
    """
    if part is UNSTATED:
        return part
    stated = read_part(_PROPERTY, part)
    if isinstance(stated, Outcome):
        return part
    return stated.value if stated.unit_code in {None, unit_code} else UNSTATED


def _length_of(part: Raw) -> tuple[Raw, float]:
    """Return the value of a property, and how many metres its unit has."""
    if part is UNSTATED:
        return part, 1.0
    value = _value_of(part, "MTR")
    if value is UNSTATED:
        return _value_of(part, "KMT"), 1000.0
    return value, 1.0


def _text_of(when: str | _When | None) -> str | None:
    if isinstance(when, _When):
        return when.value.text if isinstance(when.value, _DateTime) else when.value
    return when


_decode_entities = one_or_many(_Entity, _fix_of, least=_LEAST_BYTES)


def decode(payload: bytes) -> Sequence[Fix | Outcome]:
    """Decode an entity, an array of them, or a notification of some."""
    found = _decode_entities(payload)
    if isinstance(found[0], Fix) or len(found) > 1 or found[0] not in _MAY_NOTIFY:
        return found
    message = read(_NOTIFICATION, payload)
    if isinstance(message, Outcome):
        return found
    notification = message.body or message
    is_one = notification.subscription_id is not UNSTATED or notification.type == _IS_NOTIFICATION
    if not (is_one and notification.data):
        return found
    if too_many(len(notification.data), len(payload), least=_LEAST_BYTES):
        return [Outcome.INVALID__SCHEMA]
    return [_fix_of_part(part) for part in notification.data]


def _fix_of_part(part: Raw) -> Fix | Outcome:
    entity = read_part(_ENTITY, part)
    return entity if isinstance(entity, Outcome) else _fix_of(entity)


_MAY_NOTIFY = frozenset({Outcome.INVALID__SCHEMA, Outcome.INVALID__NOT_A_POSITION})
_IS_NOTIFICATION = Raw(b'"Notification"')


def encode(point: CoarsePoint) -> bytes:
    """Write a coarse point as a Vehicle in normalized form, with its radius as `accuracy`."""
    at = iso8601(point.time)
    place = {"type": "Point", "coordinates": [point.lon, point.lat]}
    radius = {"type": "Property", "value": point.radius_m, "unitCode": "MTR", "observedAt": at}
    return msgspec.json.encode(
        {
            "@context": CONTEXT,
            "id": f"urn:ngsi-ld:Vehicle:{point.pseudonym}",
            "type": "Vehicle",
            "location": {"type": "GeoProperty", "value": place, "observedAt": at},
            "accuracy": radius,
        }
    )


FORMAT = Format(decode=decode, encode=encode)
