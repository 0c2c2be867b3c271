"""NGSI-LD entities with a location, such as FIWARE's Vehicle: key-values, normalized or concise.

`location` is a GeoJSON Point (longitude first) or a GeoProperty whose value is one. A line or an
area is not a position. Neither is an entity without a location, or a notification, which wraps
entities. The time is the location's own `observedAt`, else `observationDateTime`. The device is
the entity's `id`.

Readings, as defined by FIWARE's Vehicle: `speed_mps` (`speed`, km/h), `heading_deg` (`heading`),
`battery_percent` (`battery`, 0 to 1), either plain or as the value of a property. A property
whose unit (`unitCode`) is not the model's is left out.

Source: https://github.com/smart-data-models/dataModel.Transportation, ETSI GS CIM 009
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Raw, field
from msgspec.json import Decoder

from anonymizer.codecs._fields import (
    MPS_PER_KMH,
    UNSTATED,
    Readings,
    Stated,
    StatedId,
    measured,
    one_or_many,
    read_part,
    stated_fix,
)
from anonymizer.codecs.coarse import CoarsePoint, iso8601
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

CONTEXT = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld"


class _Geometry(Stated):
    type: str | None = None
    coordinates: Raw = UNSTATED


class _Location(_Geometry):
    value: _Geometry | None = None
    observed_at: str | None = field(name="observedAt", default=None)


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
    speed: Raw = UNSTATED
    heading: Raw = UNSTATED
    battery: Raw = UNSTATED
    accuracy: Raw = UNSTATED


_PROPERTY = Decoder(_Property)
_POINT = Decoder(Annotated[list[float | None], Meta(min_length=2, max_length=3)] | None)


def _fix_of(entity: _Entity) -> Fix | Outcome:
    location = entity.location
    if location is None:
        return Outcome.INVALID__NOT_A_POSITION
    geometry = location if location.value is None else location.value
    if geometry.type in {None, "GeoProperty"}:  # empty, or a property without a value
        return Outcome.INVALID__SCHEMA
    if geometry.type != "Point":
        return Outcome.INVALID__NOT_A_POSITION
    if geometry.coordinates is UNSTATED:
        return Outcome.INVALID__SCHEMA
    point = read_part(_POINT, geometry.coordinates) or Outcome.INVALID__NO_FIX
    if isinstance(point, Outcome):
        return point
    time = location.observed_at
    if time is None:
        time = _text_of(entity.observed)
    return stated_fix(
        point[1], point[0], time=time, device=entity.id, readings=_readings_of(entity)
    )


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
    value = _value_of(part, "MTR")
    if value is UNSTATED and part is not UNSTATED:
        return _value_of(part, "KMT"), 1000.0
    return value, 1.0


def _text_of(when: str | _When | None) -> str | None:
    if isinstance(when, _When):
        return when.value.text if isinstance(when.value, _DateTime) else when.value
    return when


decode = one_or_many(_Entity, _fix_of, least=len('{"location":{"coordinates":[1,2]}},'))


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
