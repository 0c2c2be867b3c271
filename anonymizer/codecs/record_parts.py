"""Parts of records: JSON objects with a time and attributes, decoded to the codes of their values.

Attributes that are not declared are dropped. The time is unix seconds or a smaller unit, told by
its size, or ISO 8601 text; without an offset, text is local time. About 1.5 µs, and 0.3 µs an
attribute.

A value of an open domain has no code before the window is complete: it stays text until then.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta, timezone
from math import isfinite
from struct import Struct
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET
from msgspec.json import Decoder

from anonymizer.codecs._fields import DeviceId
from anonymizer.codecs.degrees import numeral
from anonymizer.codecs.paths import Conditions, JsonPath, PathReader, Selector
from anonymizer.codecs.times import MOST_S, calendar_number, unix_s
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.plain_forms import no_value_among, plain_form
from anonymizer.domain.records import Attribute
from anonymizer.domain.spellings import NO_VALUE

Part: TypeAlias = tuple[float, bytes]
"""Event time in unix seconds, and the values of the attributes: their codes as little-endian int32,
then the texts of those with an open domain; see `texts_of`."""

_says_no_value = no_value_among(NO_VALUE)
MAX_TEXT_CHARS = 64
"""Longest value of an open domain."""
_TEXTS = Decoder(list[str | None])
_VEHICLE, _TIME = -2, -1
"""Where the vehicle and the time of a part are among its values."""
_TS = JsonPath(("ts",))
_NO_CODE_YET = 0
_UNITS = ((MOST_S * 1e6, 1e9), (MOST_S * 1e3, 1e6), (MOST_S, 1e3))
"""Sizes from which on a time is in a smaller unit, and how many of it are a second: 1e11 s are of
the year 5138, so many milliseconds of 1973."""
_Coder: TypeAlias = Callable[[Any], int | str | Outcome | None]
"""From a stated value to its code, or to the text of an open domain; None: it has no value."""


@dataclass(frozen=True, slots=True, repr=False)
class ReportedValues:
    """An attribute that a source reports, and how its values are coded."""

    attribute: Attribute
    """Its domain, which includes a missing marker."""
    step: float
    """Distance between successive codes of a numeric attribute."""
    marker: str
    """The text that means "no value"."""
    from_time: bool = False
    """Whether it is the minute of the local day: of the time at `path`, else of the part."""
    path: JsonPath | None = None
    """Where it is in the payload; None: under its name."""
    is_open: bool = False
    """Whether any text is a value. The codes in parts are then 0."""
    means: Callable[[str], Hashable] = str.casefold
    """Returns what a text means, equal for all writings of one value."""


@dataclass(frozen=True, slots=True)
class PartFormat:
    """The form of the payloads of one source."""

    time: JsonPath = _TS
    """Where the time is: text, or a number of seconds, of milliseconds from 1e11 on, of
    microseconds from 1e14 and of nanoseconds from 1e17."""
    utc_offset_s: float = 0.0
    """How far local time is ahead of UTC."""
    where: Conditions = field(default_factory=dict)
    """The messages that count."""
    vehicle: JsonPath | None = None
    """Where the id of the vehicle is; None: not in the payload."""


_FORMAT = PartFormat()


class PartReader:
    """Reader of the parts of one source.

    Parameters
    ----------
    reported
        The attributes that the source reports.
    format_
        The form of its payloads.

    Raises
    ------
    ValueError
        If the paths do not fit each other, see `PathReader`.
    """

    def __init__(self, reported: Sequence[ReportedValues], format_: PartFormat = _FORMAT) -> None:
        self._zone = timezone(timedelta(seconds=format_.utc_offset_s))
        self._selector = Selector(format_.where) if format_.where else None
        wanted: list[tuple[JsonPath | None, Any]] = [
            (
                r.path if r.from_time else r.path or JsonPath((r.attribute.name,)),
                float | str if r.attribute.numeric else DeviceId,
            )
            for r in reported
        ]
        if format_.vehicle is not None:
            wanted.append((format_.vehicle, DeviceId))
        self._reader = PathReader([*wanted, (format_.time, float | str)])
        minute = _minute_coder(format_.utc_offset_s)

        def minute_at(stated: Any) -> int | Outcome:  # noqa: ANN401  as decoded
            seconds = self._seconds(stated)
            return Outcome.INVALID__SCHEMA if seconds is None else minute(seconds)

        self._coders: list[tuple[int, _Coder]] = []
        for slot, r in enumerate(reported):
            if r.from_time:
                self._coders.append((_TIME, minute) if r.path is None else (slot, minute_at))
            else:
                self._coders.append((slot, _value_coder(r)))
        self._is_open = any(r.is_open for r in reported)
        self._pack = Struct(f"<{len(reported)}i").pack

    def read(self, payload: bytes) -> Part | Outcome:
        """Return a part, or the reason why the payload is not one. Never raises."""
        values = self._stated(payload)
        return values if isinstance(values, Outcome) else self._part(values)

    def read_named(self, payload: bytes) -> tuple[str, Part] | Outcome:
        """Return the id of the vehicle as well, for a format that has one. Never raises."""
        values = self._stated(payload)
        if isinstance(values, Outcome):
            return values
        vehicle = values[_VEHICLE]
        if vehicle is UNSET or vehicle is None:
            return Outcome.INVALID__NO_DEVICE
        part = self._part(values)
        return part if isinstance(part, Outcome) else (str(vehicle), part)

    def _stated(self, payload: bytes) -> list[Any] | Outcome:
        if self._selector and (refused := self._selector.refuses(payload)) is not None:
            return refused
        return self._reader.read(payload)

    def _part(self, values: list[Any]) -> Part | Outcome:
        ts = values[_TIME] = self._seconds(values[_TIME])
        if ts is None:
            return Outcome.INVALID__SCHEMA
        codes: list[int] = []
        texts: list[str | None] = []
        for slot, code in self._coders:
            value = code(values[slot])
            if isinstance(value, Outcome):
                return value
            if isinstance(value, int):
                codes.append(value)
            else:
                codes.append(_NO_CODE_YET)
                texts.append(value)
        cells = self._pack(*codes)
        return ts, cells + msgspec.json.encode(texts) if self._is_open else cells

    def _seconds(self, stated: Any) -> float | None:  # noqa: ANN401  as decoded
        if isinstance(stated, str):
            found = numeral(stated)
            if found is None:
                return unix_s(stated, self._zone)
            stated = found
        if stated is UNSET or stated is None or not isfinite(stated):
            return None
        calendar = calendar_number(stated, self._zone)
        if calendar is not None:
            return calendar.unix_s
        per_second = next((n for least, n in _UNITS if stated >= least), 1.0)
        seconds: float = stated / per_second
        return seconds


def texts_of(cells: bytes, *, n_attributes: int) -> list[str | None]:
    """Return the values of the open domains in a part, in the order of the attributes.

    None is the missing marker. Only for parts of a source with such an attribute.
    """
    return _TEXTS.decode(cells[4 * n_attributes :])


def _minute_coder(utc_offset_s: float) -> Callable[[float], int]:
    def minute(ts: float) -> int:
        # The remainder of a float can be rounded up to the divisor itself.
        return min(int((ts + utc_offset_s) % 86_400 // 60), 1439)

    return minute


def _value_coder(reported: ReportedValues) -> _Coder:
    if reported.is_open:
        return _text_coder(reported.marker)
    if reported.attribute.numeric:
        return _number_coder(reported)
    missing = reported.attribute.missing
    code_of = _CodeOf(reported.attribute.label, missing, reported.means)
    code_of[None] = code_of[UNSET] = code_of[reported.marker] = missing

    def category(value: str | int | None) -> int:
        return code_of[str(value) if type(value) is int else value]

    return category


class _CodeOf(dict[Any, int]):
    """Codes by label, and of a text that is none, of the one label that means the same."""

    def __init__(
        self, label: Sequence[str], missing: int, means: Callable[[str], Hashable]
    ) -> None:
        super().__init__({each: code for code, each in enumerate(label)})
        self._missing, self._meant = missing, means
        values = [each for code, each in enumerate(label) if code != missing]
        meant = [means(each) for each in values]
        self._means = {
            key: self[each]
            for key, each in zip(meant, values, strict=True)
            if meant.count(key) == 1
        }

    def __missing__(self, label: object) -> int | Outcome:
        """Return the code of another writing, or the reason why there is none."""
        if not isinstance(label, str) or len(label) > MAX_TEXT_CHARS:
            return Outcome.INVALID__OUT_OF_DOMAIN
        found = self._means.get(self._meant(label))
        if found is None and _says_no_value(plain_form(label)):
            return self._missing
        return Outcome.INVALID__OUT_OF_DOMAIN if found is None else found


def _text_coder(marker: str) -> _Coder:
    def text(value: Any) -> str | Outcome | None:  # noqa: ANN401  as decoded
        if value is None or value is UNSET or value == marker:
            return None
        stated = str(value)
        if len(stated) > MAX_TEXT_CHARS:
            return Outcome.INVALID__OUT_OF_DOMAIN
        stated = plain_form(stated)
        if (
            _says_no_value(stated) and stated != "None"
        ):  # the window knows whether others say `none`
            return None
        usable = len(stated) <= MAX_TEXT_CHARS and stated.isprintable()
        return stated if usable else Outcome.INVALID__OUT_OF_DOMAIN

    return text


def _number_coder(reported: ReportedValues) -> _Coder:
    missing, marker = reported.attribute.missing, reported.marker
    lo, hi = map(float, reported.attribute.position[[0, missing - 1]])
    step = reported.step

    def number(value: Any) -> int | Outcome:  # noqa: ANN401  as decoded
        if type(value) is float:
            if not lo <= value <= hi:
                return Outcome.INVALID__OUT_OF_DOMAIN
            code: int = round((value - lo) / step)
            return code
        if value is None or value is UNSET or value == marker:
            return missing
        found = numeral(value)
        if found is None and len(value) <= MAX_TEXT_CHARS:
            plain = plain_form(value)
            if _says_no_value(plain):
                return missing
            found = numeral(plain)
        return Outcome.INVALID__SCHEMA if found is None else number(found)

    return number
