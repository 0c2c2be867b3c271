"""Positions in JSON of any shape: the settings say where their parts are.

A number may also be written as text. A missing latitude or longitude is a wrong
schema; null, and texts such as "nan", mean that the device has no fix. The payload is an object, or
an array of objects of which each is a position.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from math import nan
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, structs
from msgspec.json import Decoder

from anonymizer.codecs._fields import (
    Codec,
    Number,
    Readings,
    StatedId,
    device_id,
    is_no_value,
    number_or_text,
    read,
    read_part,
    time_of_text,
    too_many,
)
from anonymizer.codecs.coarse import CoarsePoint, Encoder, iso8601
from anonymizer.codecs.degrees import (
    LAT_LETTERS,
    LON_LETTERS,
    Scale,
    coordinate_in,
    numeral,
    of_minutes,
    per_degree_of,
    signed,
)
from anonymizer.codecs.mending import starts_array
from anonymizer.codecs.paths import ArraySearch, JsonPath, PathReader, Selector, written
from anonymizer.codecs.position_paths import DEVICE_LEVEL, PositionPaths
from anonymizer.codecs.times import (
    HYPHENS,
    PADDING,
    PER_SECOND,
    StatedInstant,
    TimeUnit,
    ago,
    calendar_number,
    dated,
    day_first,
    in_seconds,
    is_time_of_any_unit,
    is_unset,
    stated_time,
)
from anonymizer.domain.fixes import ACCURACY, Fix, checked_fix, usable
from anonymizer.domain.outcomes import Outcome

_ANY = Decoder(Raw)
_PARTS = Decoder(list[Raw])
_LEAST_OF_NAMES = 4
_LEAST_BYTES, _LEAST_OF_ID, _LEAST_OF_CALENDAR, _LEAST_OF_SEARCH = 20, 12, 32, 24
"""Of a position among many, or of a device: two coordinates of five decimals are no less. An id,
times of the calendar, each search, and names have further ones."""
_BY_KEY = Decoder(dict[str, Raw])
_Time: TypeAlias = StatedInstant | Outcome | None


def codec_of(paths: PositionPaths) -> Codec:
    """Return the codec of these paths; about 1.4 µs a position, and 0.3 µs a reading.

    Raises `ValueError` if the paths do not fit each other, see `PathReader`.
    """
    if paths.positions is None:
        return _whole_codec(_Position(paths, of_message=None))
    if paths.keyed:
        return _Keyed(paths, paths.positions).decode
    return _array_codec(paths, paths.positions)


def encoder_of(paths: PositionPaths) -> Encoder:
    """Return what writes coarse points as messages that the codec of these paths reads.

    Besides the declared paths, a message has what `where` asks for, the first value of several.

    Raises `ValueError` if there is no place for a position, or the paths do not fit each other, or
    time is stated as an age: when what is written will be read is not known.
    """
    if paths.time is not None and paths.time_unit == "s_ago":
        raise ValueError("an age cannot be written")
    if paths.beside or isinstance(paths.scale, str) or paths.time_unit == "ddmmyy":
        raise ValueError("only degrees and times that are one value each can be written")
    if paths.lat is None or paths.lon is None:
        raise ValueError("there are no paths of a latitude and a longitude")
    shape = CoarsePoint(1.5, 2.5, 1, 3.5, "p", "t")
    _message(paths, shape)  # paths that do not fit each other are found here
    return lambda point: msgspec.json.encode(_message(paths, point))


def _message(paths: PositionPaths, point: CoarsePoint) -> Any:  # noqa: ANN401  any JSON
    values: list[tuple[JsonPath | None, Any]] = [
        *((path, allowed[0]) for path, allowed in paths.where.items()),
        (paths.lat, _written_degrees(point.lat, paths.scale)),
        (paths.lon, _written_degrees(point.lon, paths.scale)),
        (paths.time, _written_time(point.time, paths.time_unit)),
        (paths.device, point.pseudonym),
        (paths.accuracy, point.radius_m),
    ]
    stated = [(path, value) for path, value in values if path is not None]
    if paths.positions is None:
        return written(stated)
    inside = [(path, value) for path, value in stated if not path.of_message]
    around = [(path, value) for path, value in stated if path.of_message]
    if not paths.keyed:
        return written([*around, (paths.positions, [written(inside)])])
    parts = [point.pseudonym if part == DEVICE_LEVEL else part for part in paths.positions.parts]
    return written([*around, (JsonPath(tuple(parts)), [written(inside)])])


def _written_degrees(degrees: float, scale: Scale) -> float:
    per_degree = per_degree_of(scale)
    return degrees if per_degree == 1.0 else round(degrees * per_degree)


def _written_time(unix_s: float, unit: TimeUnit) -> float | str:
    match unit:
        case "iso8601" | "s_ago" | "ddmmyy":  # the last two have been refused before
            return iso8601(unix_s)
        case "s":
            return unix_s
        case _:
            return round(unix_s * PER_SECOND[unit])


def _whole_codec(position: "_Position") -> Codec:
    def decode(payload: bytes) -> Sequence[Fix | Outcome]:
        if not starts_array(payload):
            return [position.read(payload)]
        array = read(_ANY, payload)
        if isinstance(array, Outcome):
            return [array]
        return position.read_array(array) or [Outcome.INVALID__EMPTY]

    return decode


def _array_codec(paths: PositionPaths, positions: JsonPath) -> Codec:
    position = _Position(paths, of_message=False)
    shared = _Position(paths, of_message=True, also=positions)

    def decode(payload: bytes) -> Sequence[Fix | Outcome]:
        message = shared.values(payload)
        if isinstance(message, Outcome):
            return [message]
        array = message[-1]
        if (refused := _no_positions(array)) is not None:
            return [refused]
        known = message if shared.has_paths else None
        return position.read_array(array, known=known) or [Outcome.INVALID__EMPTY]

    return decode


def _no_positions(part: Any) -> Outcome | None:  # noqa: ANN401  Raw, UNSET or None
    """Return why there are none in a part of a message: it is missing, or null."""
    if part is UNSET:
        return Outcome.INVALID__SCHEMA
    return Outcome.INVALID__NO_FIX if part is None or _begin(part) == b"n" else None


def _begin(part: Raw) -> bytes:
    return bytes(memoryview(part)[:1])


class _Keyed:
    """Codec of objects whose keys are the ids of devices."""

    def __init__(self, paths: PositionPaths, positions: JsonPath) -> None:
        at = positions.parts.index(DEVICE_LEVEL)
        above, below = positions.parts[:at], positions.parts[at + 1 :]
        if DEVICE_LEVEL in below:
            raise ValueError(f"{DEVICE_LEVEL} can stand for one level alone")
        self._around = JsonPath(above) if above else None
        self._position = _Position(paths, of_message=False)
        self._shared = _Position(
            paths, of_message=True, also=self._around, also_kind=dict[str, Raw]
        )
        self._inside = PathReader([(JsonPath(below), Raw)]) if below else None
        self._least_bytes = _LEAST_BYTES + _LEAST_OF_NAMES + _LEAST_OF_ID

    def decode(self, payload: bytes) -> Sequence[Fix | Outcome]:
        """Decode the positions of each device; a bad one spoils no other."""
        message = self._shared.values(payload)
        if isinstance(message, Outcome):
            return [message]
        devices: Any = message[-1]
        if self._around is None:
            devices = read(_BY_KEY, payload)
        if devices is UNSET or devices is None:
            return [Outcome.INVALID__NO_FIX if devices is None else Outcome.INVALID__SCHEMA]
        if isinstance(devices, Outcome):
            return [devices]
        if too_many(len(devices), len(payload), least=self._least_bytes):
            return [Outcome.INVALID__SCHEMA]
        known = message if self._shared.has_paths else None
        found: list[Fix | Outcome] = []
        for device, below in devices.items():
            part = self._part_of(below)
            if isinstance(part, Outcome):
                found.append(part)
            elif _begin(part) == b"[":
                found += self._position.read_array(part, known=known, device=device)
            else:
                found.append(self._position.read_part(part, known=known, device=device))
        return found or [Outcome.INVALID__EMPTY]

    def _part_of(self, part: Any) -> Raw | Outcome:  # noqa: ANN401  Raw, UNSET or None
        """Return what has the positions of one device."""
        if self._inside is not None:
            values = self._inside.read_part(part)
            if isinstance(values, Outcome):
                return values
            part = values[0]
        refused = _no_positions(part)
        return part if refused is None else refused


class _Position:
    """Reads one position, or what the positions of a message share.

    Parameters
    ----------
    of_message
        Of which paths: those from the message, those inside a position; None: all.
    also, also_kind
        One further path, and the type of what is there.
    """

    def __init__(
        self,
        paths: PositionPaths,
        *,
        of_message: bool | None,
        also: JsonPath | None = None,
        also_kind: Any = Raw,  # noqa: ANN401  a type
    ) -> None:
        number_or_text: Any = float | str
        sensed = dict(paths.readings)
        if paths.accuracy is not None:
            sensed.setdefault(ACCURACY, paths.accuracy)
        named: list[tuple[JsonPath | None, Any]] = [
            (paths.lat, number_or_text),
            (paths.lon, number_or_text),
            (paths.time, number_or_text),
            (paths.device, StatedId),
            *((path, Raw) for path in sensed.values()),
            *((path, number_or_text) for path in paths.beside),
        ]
        wanted = [
            (path if path and of_message in {None, path.of_message} else None, kind)
            for path, kind in named
        ]
        beside, hook = _signs_beside(wanted[0][0])
        self._reader = PathReader([*wanted, (also, also_kind)], beside=beside, dec_hook=hook)
        where = {
            path: allowed
            for path, allowed in paths.where.items()
            if of_message in {None, path.of_message}
        }
        self._selector = Selector(where) if where else None
        self._has_place = paths.lat is not None and paths.lon is not None
        self._halves = paths.halves
        self._names = tuple(sensed)
        self._no_readings = [UNSET] * len(sensed)
        self._refused = _judge_of(sensed) if sensed and self._has_place else None
        steps = {part for path, _ in wanted if path is not None for part in path.parts}
        n_searches = sum(isinstance(part, ArraySearch) for part in steps)
        self._least_bytes = (
            _LEAST_BYTES
            + n_searches * _LEAST_OF_SEARCH
            + (_LEAST_OF_NAMES if paths.lat and isinstance(paths.lat.parts[0], str) else 0)
            + (_LEAST_OF_CALENDAR if paths.time and paths.time_unit == "iso8601" else 0)
        )
        self.has_paths = any(path is not None for path, _ in wanted)
        self._per_degree = per_degree_of(paths.scale)
        self._in_degrees, self._in_minutes = paths.scale == 1.0, paths.scale == "ddmm"
        self._paths, self._n_beside = paths, len(paths.beside)
        self._time = _time_reader(paths.time_unit, paths.time_zone)

    def values(self, payload: bytes) -> list[Any] | Outcome:
        """Return the stated values, UNSET for those elsewhere; `also` comes last."""
        if self._selector and (refused := self._selector.refuses(payload)) is not None:
            return refused
        return self._reader.read(payload)

    def read(self, payload: bytes) -> Fix | Outcome:
        """Return the position in a payload."""
        values = self.values(payload)
        return values if isinstance(values, Outcome) else self._fix(values)

    def read_array(
        self, array: Raw, *, known: list[Any] | None = None, device: str | None = None
    ) -> Sequence[Fix | Outcome]:
        """Return the positions in the items of an array; a bad one spoils no other."""
        of_item: Callable[..., Fix | Outcome] = self._read_item
        items: list[Any] | Outcome = Outcome.INVALID__SCHEMA
        if self._selector is None:
            items = self._reader.read_items(array)
        if isinstance(items, Outcome) and items is not Outcome.INVALID__MALFORMED:
            # Of an item, if not of all.
            of_item = self.read_part
            parts: list[Raw] | Outcome = read_part(_PARTS, array)
            items = parts
        if isinstance(items, Outcome):
            return [items]
        if too_many(len(items), len(memoryview(array)), least=self._least_bytes):
            return [Outcome.INVALID__SCHEMA]
        return [of_item(each, known=known, device=device) for each in items]

    def _read_item(
        self,
        item: Any,  # noqa: ANN401  of a type made there
        *,
        known: list[Any] | None = None,
        device: str | None = None,
    ) -> Fix | Outcome:
        values = self._reader.values_of(item, known=known)
        return values if isinstance(values, Outcome) else self._fix(values, device)

    def read_part(
        self, part: Raw, *, known: list[Any] | None = None, device: str | None = None
    ) -> Fix | Outcome:
        """Return the position in a part of a payload, given what is stated outside."""
        if self._selector and (refused := self._selector.refuses_part(part)) is not None:
            return refused
        values = self._reader.read_part(part, known=known)
        return values if isinstance(values, Outcome) else self._fix(values, device)

    def _fix(self, values: Sequence[Any], of: str | None = None) -> Fix | Outcome:
        if self._n_beside:
            values = self._joined(values)
        lat, lon, time, id_, *readings, _ = values
        when = None if time is UNSET or time is None else self._time(time)
        if not isinstance(when, Outcome) and self._refused is not None:
            when = self._refused(readings) or when
        if isinstance(when, Outcome):
            return when
        ts, zoneless = when or (None, False)
        stated_id = id_ if of is None else of
        device = None if stated_id is UNSET else device_id(stated_id)
        named = self._readings(readings) if self._names else None
        if not self._has_place:
            numbers, lost = usable(named)
            fix = Fix(nan, nan, ts, device, numbers, zoneless, lost)
            return Outcome.INVALID__NO_FIX if numbers is None else fix
        no_lat, no_lon = self._halves and lat is UNSET, self._halves and lon is UNSET
        if no_lat and no_lon:
            return Outcome.INVALID__SCHEMA
        if type(lat) is float and type(lon) is float and not self._in_minutes:
            lat, lon = lat / self._per_degree, lon / self._per_degree
        else:
            lat = 0.0 if no_lat else self._coordinate(lat, LAT_LETTERS)
            lon = 0.0 if no_lon else self._coordinate(lon, LON_LETTERS)
            wrong = lat if isinstance(lat, Outcome) else lon
            if isinstance(wrong, Outcome):
                return wrong
        found = checked_fix(lat, lon, ts, device, named, zoneless=zoneless)
        if isinstance(found, Outcome) or not (no_lat or no_lon):
            return found
        return structs.replace(found, **{"lat" if no_lat else "lon": nan})

    def _joined(self, values: Sequence[Any]) -> list[Any]:
        """Return the values without those that stand beside others, which they complete."""
        *stated, also = values
        stated, more = stated[: -self._n_beside], stated[-self._n_beside :]
        paths = self._paths
        for place, path, letters in (
            (0, paths.lat_letter, LAT_LETTERS),
            (1, paths.lon_letter, LON_LETTERS),
        ):
            if path is not None:
                letter, *more = more
                number = _number(stated[place]) if isinstance(stated[place], Number) else None
                if number is not None:
                    stated[place] = signed(number, letter, letters)
        if more and not stated[2] is more[0] is UNSET:
            stated[2] = dated(stated[2], more[0])
        return [*stated, also]

    def _coordinate(self, stated: Any, letters: str) -> float | Outcome:  # noqa: ANN401  as decoded
        if stated is UNSET:
            return Outcome.INVALID__SCHEMA
        value: float | Outcome | None = stated
        if isinstance(stated, str):
            value = numeral(stated)  # first, as nearly all are plain numbers
            if (
                value is not None
                and not self._in_minutes
                and (stated[0] > "0" or "0" not in stated[:2])
            ):
                return value / self._per_degree
            value = coordinate_in(stated, letters, plain=self._in_degrees)
        if value is None:
            return Outcome.INVALID__NO_FIX
        if self._in_minutes and not isinstance(value, Outcome):
            value = of_minutes(value)
        return value if isinstance(value, Outcome) else value / self._per_degree

    def _readings(self, parts: Sequence[Any]) -> Readings:
        if parts == self._no_readings:
            return None
        readings = {}
        for name, part in zip(self._names, parts, strict=True):
            if part is UNSET or part is None:
                continue
            readings[name] = number_or_text(part)
        return readings or None


def _judge_of(
    sensed: Mapping[str, JsonPath],
) -> Callable[[Sequence[Any]], Outcome | None] | None:
    """Return what says of readings that there is no fix, by the keys where they are; None: none."""
    from anonymizer.codecs.fix_signs import judge_of  # noqa: PLC0415  few inputs need it

    return judge_of([str(path.parts[-1]) for path in sensed.values()])


def _signs_beside(
    lat: JsonPath | None,
) -> tuple[Mapping[JsonPath, Any], Callable[[type, Any], Any] | None]:
    """Return the paths beside a latitude at which a usual sign may stand, and what judges it.

    Flat names keep what is in front of their last dot: `position.valid` for `position.latitude`.
    """
    if lat is None or not isinstance(lat.parts[-1], str):
        return {}, None
    from anonymizer.codecs.fix_signs import TYPE_OF, judged  # noqa: PLC0415  see above

    front, dot, _ = lat.parts[-1].rpartition(".")
    above = lat.parts[:-1]
    return {JsonPath((*above, front + dot + name)): kind for name, kind in TYPE_OF.items()}, judged


def _number(value: Any) -> float | None:  # noqa: ANN401  as decoded: a number or text
    return numeral(value.strip(PADDING)) if isinstance(value, str) else value


def _time_reader(unit: TimeUnit, zone: tzinfo | None) -> Callable[[float | str], _Time]:
    """Return a function from a stated time to when it is."""
    if unit == "iso8601":
        return lambda value: _calendar_time(value, zone)
    if unit == "ddmmyy":
        return lambda value: day_first(value, zone)
    if unit == "s_ago":
        return _time_before

    def from_number(value: float | str) -> _Time:
        if isinstance(value, str) and value[HYPHENS] == "--":
            return stated_time(value, zone)
        stated = _number(value)
        if stated is None:
            return time_of_text(str(value), zone)
        seconds = in_seconds(stated, unit)
        return StatedInstant(seconds) if isinstance(seconds, float) else seconds

    return from_number


def _time_before(value: float | str) -> _Time:
    """Return the time of an age in seconds; none is not known, and one below 0 in the future."""
    age_s = _number(value)
    if age_s is None:
        return None if is_no_value(str(value)) else Outcome.INVALID__TIME_FORM
    return ago(age_s) if age_s >= 0 else Outcome.INVALID__FUTURE_TIME


def _calendar_time(value: float | str, zone: tzinfo | None) -> _Time:
    """Return the time of a text, or of a number with the digits of a date and a time."""
    if isinstance(value, str):
        if value[HYPHENS] == "--":
            return stated_time(value, zone)
        if is_no_value(value):
            return None
    number = _number(value)
    found = stated_time(str(value), zone) if number is None else calendar_number(number, zone)
    if isinstance(found, StatedInstant):
        return None if is_unset(found.unix_s) else found
    if number is None:
        return found
    if number > 0 and not is_time_of_any_unit(number):
        return Outcome.INVALID__TIME_FORM
    seconds = in_seconds(number)
    return Outcome.INVALID__TIME_IN_S if isinstance(seconds, float) else seconds
