"""Numbers alone, a message for each coordinate: `60.17` on `cars/a/latitude`, and another one.

Or `{"value": 60.17}`, as programs that read registers and signals publish them.

The last level of a topic says which coordinate it is, so each has a codec of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import nan

import msgspec

from anonymizer.codecs._fields import Codec, is_no_value
from anonymizer.codecs.degrees import (
    LAT_LETTERS,
    LON_LETTERS,
    coordinate_in,
    of_minutes,
    per_degree_of,
)
from anonymizer.codecs.position_paths import PositionPaths
from anonymizer.domain.fixes import Fix, checked_fix
from anonymizer.domain.outcomes import Outcome


def codecs_of(paths: PositionPaths) -> Mapping[str, Codec]:
    """Return the codecs of bare numbers, by the last level of their topic: one for each coordinate.

    A payload such as `60.17` is a half of a position, see `PositionPaths.halves`. About 1 µs.
    """
    per_degree = per_degree_of(paths.scale)

    def half(payload: bytes, *, is_lat: bool) -> Fix | Outcome:
        text = payload.decode("utf-8", "replace").partition("\0")[0].strip().strip('"')
        if text.startswith("{"):
            text = _value_in(text)
        if is_no_value(text):
            return Outcome.INVALID__NO_FIX if text else Outcome.INVALID__EMPTY
        letters = LAT_LETTERS if is_lat else LON_LETTERS
        value = coordinate_in(text, letters, plain=paths.scale == 1.0)
        if paths.scale == "ddmm" and isinstance(value, float):
            value = of_minutes(value)
        if value is None or value is Outcome.INVALID__SCHEMA:
            return Outcome.INVALID__MALFORMED
        if isinstance(value, Outcome):
            return value
        degrees = value / per_degree
        lat, lon = (degrees, nan) if is_lat else (nan, degrees)
        found = checked_fix(degrees, 1.0) if is_lat else checked_fix(1.0, degrees)
        return found if isinstance(found, Outcome) else Fix(lat, lon)

    return {
        str(path): partial(_alone, partial(half, is_lat=is_lat))
        for path, is_lat in ((paths.lat, True), (paths.lon, False))
    }


def _value_in(text: str) -> str:
    """Return the text of `value` in an object, `?` if there is none."""
    try:
        value = msgspec.json.decode(text, type=_Valued).value
    except (msgspec.DecodeError, RecursionError):
        return _UNREADABLE
    return "null" if value is None else str(value)


class _Valued(msgspec.Struct):
    value: float | str | None


_UNREADABLE = "?"
"""Is no number."""


def _alone(read_one: Callable[[bytes], Fix | Outcome], payload: bytes) -> Sequence[Fix | Outcome]:
    return [read_one(payload)]
