"""Parts of records: `{"ts", attribute: value, ...}`, decoded to the codes of their values.

Attributes that are not declared are dropped. `ts` is unix seconds or ISO 8601 text; without an
offset, text is local time. About 1 µs, and 0.2 µs an attribute.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta, timezone
from math import isfinite
from struct import Struct
from typing import Any, TypeAlias

import msgspec
from msgspec.json import Decoder

from anonymizer.codecs._fields import Stated, read, unix_s
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.records import Attribute

Part: TypeAlias = tuple[float, bytes]
"""Event time in unix seconds, and the codes of the attributes as little-endian int32."""


@dataclass(frozen=True, slots=True, repr=False)
class ReportedValues:
    """An attribute that a source reports, and how its values are coded.

    Attributes
    ----------
    attribute
        Its domain, which includes a missing marker.
    step
        Distance between successive codes of a numeric attribute.
    marker
        The text that means "no value".
    from_time
        Whether it is the minute of the local day, derived from the time of the part.
    """

    attribute: Attribute
    step: float
    marker: str
    from_time: bool = False


class PartReader:
    """Reader of the parts of one source.

    Parameters
    ----------
    reported
        The attributes that the source reports.
    time
        Name of the time field in the payload.
    utc_offset_s
        How far local time is ahead of UTC.
    """

    def __init__(
        self, reported: Sequence[ReportedValues], *, time: str = "ts", utc_offset_s: float = 0.0
    ) -> None:
        self._zone = timezone(timedelta(seconds=utc_offset_s))
        names = {f"a{i}": r.attribute.name for i, r in enumerate(reported) if not r.from_time}
        fields: list[tuple[str, Any, Any]] = [
            (f"a{i}", float | str | None if r.attribute.numeric else str | None, None)
            for i, r in enumerate(reported)
            if not r.from_time
        ]
        part = msgspec.defstruct(
            "Part",
            [("ts", float | str), *fields],
            bases=(Stated,),
            rename=names | {"ts": time},
            gc=False,
        )
        self._decoder: Decoder[Any] = Decoder(part)
        self._coders = [
            ("ts", _minute_coder(utc_offset_s)) if r.from_time else (f"a{i}", _value_coder(r))
            for i, r in enumerate(reported)
        ]
        self._pack = Struct(f"<{len(reported)}i").pack

    def read(self, payload: bytes) -> Part | Outcome:
        """Return a part, or the reason why the payload is not one. Never raises."""
        stated = read(self._decoder, payload)
        if isinstance(stated, Outcome):
            return stated
        ts = unix_s(stated.ts, self._zone) if isinstance(stated.ts, str) else stated.ts
        if ts is None or not isfinite(ts):
            return Outcome.INVALID__SCHEMA
        stated.ts = ts
        codes = []
        for field, code in self._coders:
            value = code(getattr(stated, field))
            if isinstance(value, Outcome):
                return value
            codes.append(value)
        return ts, self._pack(*codes)


def _minute_coder(utc_offset_s: float) -> Callable[[Any], int | Outcome]:
    def minute(ts: float) -> int | Outcome:
        # The remainder of a float can be rounded up to the divisor itself.
        return min(int((ts + utc_offset_s) % 86_400 // 60), 1439)

    return minute


def _value_coder(reported: ReportedValues) -> Callable[[Any], int | Outcome]:
    missing, marker = reported.attribute.missing, reported.marker
    if not reported.attribute.numeric:
        code_of: dict[str | None, int] = {
            label: code for code, label in enumerate(reported.attribute.label)
        }
        code_of[None] = code_of[marker] = missing

        def category(value: str | None) -> int | Outcome:
            return code_of.get(value, Outcome.INVALID__OUT_OF_DOMAIN)

        return category

    lo, hi = map(float, reported.attribute.position[[0, missing - 1]])
    step = reported.step

    def number(value: float | str | None) -> int | Outcome:
        if value is None or value == marker:
            return missing
        if isinstance(value, str):
            return Outcome.INVALID__SCHEMA
        if not lo <= value <= hi:
            return Outcome.INVALID__OUT_OF_DOMAIN
        return round((value - lo) / step)

    return number
