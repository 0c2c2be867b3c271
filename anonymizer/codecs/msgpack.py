"""The native format in MessagePack: the same members, or an array of such maps.

`lat`, `lon` and `ts` are floats, integers or their text, `device` text or an integer, `accuracy_m`
a number, `readings` a map of numbers by name. Other members are ignored. About 0.6 µs a position.

Source: https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from collections.abc import Sequence
from math import isfinite, nan
from typing import TypeVar

import msgspec
from msgspec import Raw
from msgspec.msgpack import Decoder

from anonymizer.codecs._fields import (
    UNSTATED,
    Number,
    SignError,
    Stated,
    StatedId,
    stated_fix,
    too_many,
)
from anonymizer.codecs.coarse import CoarsePoint
from anonymizer.codecs.fix_signs import judged, with_signs
from anonymizer.codecs.format import Format
from anonymizer.codecs.mending import unreadable
from anonymizer.codecs.native import LAYOUT, record_of
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

T = TypeVar("T")
_LEAST_BYTES = 11
"""Of a record with nothing but whole coordinates."""


class _Record(Stated):
    lat: Number | None
    lon: Number | None
    ts: Number | None = None
    device: StatedId = None
    accuracy_m: Raw = UNSTATED
    readings: Raw = UNSTATED


_SIGNED = with_signs(_Record)
_RECORD = Decoder(_SIGNED, dec_hook=judged)
_MESSAGE: Decoder[_Record | list[Raw]] = Decoder(_SIGNED | list[Raw], dec_hook=judged)
_PARTS = Decoder(dict[str, Raw])
_NUMBER = Decoder(float)


def decode(payload: bytes) -> Sequence[Fix | Outcome]:
    """Decode one message. The records of an array are decoded one by one."""
    if not payload:
        return [Outcome.INVALID__EMPTY]
    n = _n_items(payload)
    if too_many(n, len(payload), least=_LEAST_BYTES):
        return [Outcome.INVALID__MALFORMED if n > len(payload) else Outcome.INVALID__SCHEMA]
    message = _read(_MESSAGE, payload)
    if isinstance(message, Outcome):
        return [_told(payload, message)]
    if isinstance(message, list):
        return [_fix_of_part(part) for part in message] or [Outcome.INVALID__EMPTY]
    return [_fix_of(message)]


def _n_items(payload: bytes) -> int:
    """Return how many items an array states, 0 for anything else."""
    kind = payload[0]
    n_bytes = {0xDC: 2, 0xDD: 4}.get(kind, 0)
    return int.from_bytes(payload[1 : 1 + n_bytes]) if n_bytes else (kind & 15) * (kind >> 4 == 9)


def _read(decoder: Decoder[T], payload: bytes | Raw) -> T | Outcome:
    try:
        return decoder.decode(payload)
    except msgspec.ValidationError:
        return Outcome.INVALID__SCHEMA
    except SignError as sign:
        return sign.why
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Outcome.INVALID__MALFORMED


def _told(payload: bytes, refused: Outcome) -> Outcome:
    """Return why a whole payload is refused: many a compressed one begins with a sound number."""
    why = unreadable(payload)
    return why if why is Outcome.INVALID__COMPRESSED else refused


def _fix_of_part(part: Raw) -> Fix | Outcome:
    record = _read(_RECORD, part)
    return _fix_of(record)


def _fix_of(record: _Record | Outcome) -> Fix | Outcome:
    if isinstance(record, Outcome):
        return record
    readings = None if record.readings is UNSTATED else _readings_of(record.readings)
    if record.accuracy_m is not UNSTATED:
        accuracy_m = _number(record.accuracy_m)
        readings = {"accuracy_m": accuracy_m} | (readings or {})
    return stated_fix(
        record.lat, record.lon, time=record.ts, device=record.device, readings=readings
    )


def _readings_of(part: Raw) -> dict[str, float] | None:
    parts = _read(_PARTS, part)
    if isinstance(parts, Outcome):
        return None
    return {name: _number(value) for name, value in parts.items()} or None


def _number(part: Raw) -> float:
    value = _read(_NUMBER, part)
    return nan if isinstance(value, Outcome) or not isfinite(value) else value


def encode(point: CoarsePoint) -> bytes:
    """Write a coarse point."""
    return msgspec.msgpack.encode(record_of(point))


FORMAT = Format(decode=decode, encode=encode, is_json=False, layout=LAYOUT._replace(msgpack=True))
