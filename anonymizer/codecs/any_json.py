"""Positions in JSON of any shape: the settings say where their parts are.

A number may also be written as text. A missing latitude or longitude is a wrong
schema; null means that the device has no fix. A bad reading is left out. The payload is an object,
or an array of objects of which each is a position.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw
from msgspec.json import Decoder

from anonymizer.codecs._fields import Codec, DeviceId, Readings, numeral, read, read_part, unix_s
from anonymizer.codecs.coarse import CoarsePoint, Encoder, iso8601
from anonymizer.codecs.paths import Conditions, JsonPath, PathReader, Selector, written
from anonymizer.domain.fixes import ACCURACY, Fix, checked_fix
from anonymizer.domain.outcomes import Outcome

TimeUnit: TypeAlias = Literal["s", "ms", "iso8601"]

_PER_SECOND: Mapping[TimeUnit, float] = {"s": 1.0, "ms": 1000.0}
_PARTS = Decoder(list[Raw])


@dataclass(frozen=True, slots=True)
class PositionPaths:
    """Where the parts of a position are.

    Attributes
    ----------
    lat, lon
        WGS84 degrees. None, only for devices whose place a registry lists: there are none.
    time, time_unit
        When it was measured; an ISO 8601 time without an offset is UTC. None: not stated.
    device
        The id of the device; None: not stated.
    readings
        Numbers, by the names under which they are known.
    positions
        An array of positions, which the other paths begin in unless they are `of_message`. None:
        the payload itself is the position or an array of them.
    where
        The messages, or positions, that count.
    accuracy
        How far from the position the device may be, metres: a reading `accuracy_m`. None: not
        stated.
    scale
        What stated coordinates are multiplied by to be degrees.
    halves
        Whether a message may state one coordinate alone; the other one is NaN then.
    """

    lat: JsonPath | None = None
    lon: JsonPath | None = None
    time: JsonPath | None = None
    time_unit: TimeUnit = "s"
    device: JsonPath | None = None
    readings: Mapping[str, JsonPath] = field(default_factory=dict)
    positions: JsonPath | None = None
    where: Conditions = field(default_factory=dict)
    accuracy: JsonPath | None = None
    scale: float = 1.0
    halves: bool = False


def codec_of(paths: PositionPaths) -> Codec:
    """Return the codec of these paths; about 1.4 µs a position, and 0.3 µs a reading.

    Raises
    ------
    ValueError
        If the paths do not fit each other, see `PathReader`.
    """
    if paths.positions is None:
        return _whole_codec(_Position(paths, of_message=None))
    return _array_codec(paths, paths.positions)


def encoder_of(paths: PositionPaths) -> Encoder:
    """Return what writes coarse points as messages that the codec of these paths reads.

    Besides the declared paths, a message has what `where` asks for, the first value of several.

    Raises
    ------
    ValueError
        If there is no place for a position, or the paths do not fit each other.
    """
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
    return written([*around, (paths.positions, [written(inside)])])


def _written_degrees(degrees: float, scale: float) -> float:
    per_degree = _per_degree(scale)
    return degrees if per_degree == 1.0 else round(degrees * per_degree)


def _per_degree(scale: float) -> float:
    """Return the steps in a degree: whole where the scale says so, 1e7 for 1e-7."""
    per_degree = 1.0 / scale
    whole = float(round(per_degree))
    return whole if abs(per_degree - whole) < 1e-6 * whole else per_degree


def _written_time(unix_s: float, unit: TimeUnit) -> float | str:
    if unit == "iso8601":
        return iso8601(unix_s)
    return round(unix_s * 1000) if unit == "ms" else unix_s


def _whole_codec(position: "_Position") -> Codec:
    def decode(payload: bytes) -> Sequence[Fix | Outcome]:
        if not payload.lstrip().startswith(b"["):
            return [position.read(payload)]
        parts = read(_PARTS, payload)
        if isinstance(parts, Outcome):
            return [parts]
        return [position.read_part(part) for part in parts] or [Outcome.INVALID__EMPTY]

    return decode


def _array_codec(paths: PositionPaths, positions: JsonPath) -> Codec:
    position = _Position(paths, of_message=False)
    shared = _Position(paths, of_message=True, also=positions)

    def decode(payload: bytes) -> Sequence[Fix | Outcome]:
        message = shared.values(payload)
        if isinstance(message, Outcome):
            return [message]
        parts = message[-1]
        if parts is UNSET:
            return [Outcome.INVALID__SCHEMA]
        if parts is None:
            return [Outcome.INVALID__NO_FIX]
        found = [position.read_part(part, known=message) for part in parts]
        return found or [Outcome.INVALID__EMPTY]

    return decode


class _Position:
    """Reads one position, or what the positions of a message share.

    Parameters
    ----------
    of_message
        Of which paths: those from the message, those inside a position; None: all.
    also
        One further path, to an array.
    """

    def __init__(
        self, paths: PositionPaths, *, of_message: bool | None, also: JsonPath | None = None
    ) -> None:
        number: Any = float | str
        sensed = dict(paths.readings)
        if paths.accuracy is not None:
            sensed.setdefault(ACCURACY, paths.accuracy)
        named: list[tuple[JsonPath | None, Any]] = [
            (paths.lat, number),
            (paths.lon, number),
            (paths.time, str if paths.time_unit == "iso8601" else number),
            (paths.device, DeviceId),
            *((path, Raw) for path in sensed.values()),
        ]
        wanted = [
            (path if path and of_message in {None, path.of_message} else None, kind)
            for path, kind in named
        ]
        self._reader = PathReader([*wanted, (also, list[Raw])])
        where = {
            path: allowed
            for path, allowed in paths.where.items()
            if of_message in {None, path.of_message}
        }
        self._selector = Selector(where) if where else None
        self._has_place = paths.lat is not None and paths.lon is not None
        self._halves = paths.halves
        self._names = tuple(sensed)
        self._per_degree = _per_degree(paths.scale)
        self._reading: Decoder[Any] = Decoder(number)
        self._time = _time_reader(paths.time_unit)

    def values(self, payload: bytes) -> list[Any] | Outcome:
        """Return the stated values, UNSET for those elsewhere; `also` comes last."""
        if self._selector and (refused := self._selector.refuses(payload)) is not None:
            return refused
        return self._reader.read(payload)

    def read(self, payload: bytes) -> Fix | Outcome:
        """Return the position in a payload."""
        values = self.values(payload)
        return values if isinstance(values, Outcome) else self._fix(values)

    def read_part(self, part: Raw, *, known: list[Any] | None = None) -> Fix | Outcome:
        """Return the position in a part of a payload, given the values that are stated outside."""
        if self._selector and (refused := self._selector.refuses_part(part)) is not None:
            return refused
        values = self._reader.read_part(part, known=known)
        return values if isinstance(values, Outcome) else self._fix(values)

    def _fix(self, values: Sequence[Any]) -> Fix | Outcome:
        lat, lon, time, device, *readings, _ = values
        ts = None if time is UNSET or time is None else self._time(time)
        if isinstance(ts, Outcome):
            return ts
        device = None if device is UNSET or device is None else str(device)
        if device == "":
            return Outcome.INVALID__NO_DEVICE
        named = self._readings(readings) if self._names else None
        if not self._has_place:
            return Outcome.INVALID__NO_FIX if named is None else Fix(nan, nan, ts, device, named)
        return self._placed(lat, lon, Fix(nan, nan, ts, device, named))

    def _placed(self, lat: Any, lon: Any, fix: Fix) -> Fix | Outcome:  # noqa: ANN401  as decoded
        """Return a fix at the stated place; NaN is a half that is not stated, where it may be."""
        lacks_lat, lacks_lon = (self._halves and each is UNSET for each in (lat, lon))
        if lacks_lat and lacks_lon:
            return Outcome.INVALID__SCHEMA
        lat = 0.0 if lacks_lat else self._coordinate(lat)
        lon = 0.0 if lacks_lon else self._coordinate(lon)
        for each in (lat, lon):
            if isinstance(each, Outcome):
                return each
        found = checked_fix(lat, lon, fix.ts, fix.device, fix.readings)
        if isinstance(found, Outcome) or not (lacks_lat or lacks_lon):
            return found
        lat, lon = nan if lacks_lat else found.lat, nan if lacks_lon else found.lon
        return Fix(lat, lon, fix.ts, fix.device, fix.readings)

    def _coordinate(self, stated: Any) -> float | Outcome:  # noqa: ANN401  as decoded
        if stated is None:
            return Outcome.INVALID__NO_FIX
        value = None if stated is UNSET else _number(stated)
        return Outcome.INVALID__SCHEMA if value is None else value / self._per_degree

    def _readings(self, parts: Sequence[Any]) -> Readings:
        readings = {}
        for name, part in zip(self._names, parts, strict=True):
            if part is UNSET or part is None:
                continue
            value = read_part(self._reading, part)
            number = None if isinstance(value, Outcome) else _number(value)
            if number is not None:
                readings[name] = number
        return readings or None


def _number(value: Any) -> float | None:  # noqa: ANN401  as decoded: a number or text
    return numeral(value) if isinstance(value, str) else value


def _time_reader(unit: TimeUnit) -> Callable[[Any], float | Outcome]:
    """Return a function from a stated time to unix seconds."""
    if unit == "iso8601":

        def from_text(value: Any) -> float | Outcome:  # noqa: ANN401  as decoded: text
            seconds = unix_s(value)
            return Outcome.INVALID__SCHEMA if seconds is None else seconds

        return from_text
    per_second = _PER_SECOND[unit]

    def from_number(value: Any) -> float | Outcome:  # noqa: ANN401  as decoded
        seconds = _number(value)
        return Outcome.INVALID__SCHEMA if seconds is None else seconds / per_second

    return from_number
