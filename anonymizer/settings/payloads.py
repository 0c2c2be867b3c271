"""Settings of payloads of any shape: paths into JSON, and the messages that count."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from anonymizer.codecs.paths import Conditions, JsonPath
from anonymizer.codecs.position_paths import PositionPaths
from anonymizer.codecs.times import TimeUnit, zone_of
from anonymizer.settings.base import FieldName, Group, Positive

_MOST_LEVELS = 32
_MOST_ARRAYS = 6
"""Each array on the way is read once more."""


def _is_path(stated: str | tuple[str | int, ...]) -> str | tuple[str | int, ...]:
    parts = JsonPath.of(stated).parts
    if len(parts) > _MOST_LEVELS:
        raise ValueError(f"must have at most {_MOST_LEVELS} parts")
    if sum(not isinstance(part, str) for part in parts) > _MOST_ARRAYS:
        raise ValueError(f"must lead through at most {_MOST_ARRAYS} arrays")
    return stated


_TWO = " + "
"""Between the paths of a number and of its letter, or of a date and of its time of day."""


def _are_one_or_two(stated: str | tuple[str | int, ...]) -> str | tuple[str | int, ...]:
    for each in _one_or_two(stated):
        if each is not None:
            _is_path(each)
    return stated


_Stated: TypeAlias = str | tuple[str | int, ...]


def _one_or_two(stated: _Stated | None) -> tuple[_Stated | None, _Stated | None]:
    """Return the path of a value, and that of what completes it."""
    if not isinstance(stated, str) or _TWO not in stated:
        return stated, None
    first, _, second = stated.partition(_TWO)
    return first.strip(), second.strip()


PayloadPath: TypeAlias = Annotated[
    Annotated[str, Field(min_length=1, max_length=1024)] | tuple[StrictStr | StrictInt, ...],
    AfterValidator(_is_path),
]
"""A path into a JSON payload; see `JsonPath`."""
PayloadPaths: TypeAlias = Annotated[
    Annotated[str, Field(min_length=1, max_length=1024)] | tuple[StrictStr | StrictInt, ...],
    AfterValidator(_are_one_or_two),
]
"""One such path, or two with ` + ` between them."""
_Value: TypeAlias = StrictBool | StrictInt | StrictFloat | StrictStr


def _by_path(stated: Any) -> Any:  # noqa: ANN401  whatever is in the file
    """Return conditions by path: TOML reads `gps.fix = 3` as a table in a table."""
    if not isinstance(stated, Mapping):
        return stated
    flat: dict[str, Any] = {}
    for key, value in stated.items():
        below = _by_path(value)
        if isinstance(value, Mapping):
            flat |= {f"{key}.{rest}": each for rest, each in below.items()}
        else:
            flat[key] = value
    return flat


def _are_paths(where: dict[str, Any]) -> dict[str, Any]:
    for path in where:
        _is_path(path)
    return where


Where: TypeAlias = Annotated[
    dict[str, _Value | Annotated[tuple[_Value, ...], Field(min_length=1)]],
    BeforeValidator(_by_path),
    AfterValidator(_are_paths),
]
"""Values of fields, by their paths: `{ "_type" = "location", "gps.fix" = [2, 3] }`."""


def conditions(where: Where) -> Conditions:
    """Return conditions as the codecs take them."""
    return {
        JsonPath.of(path): values if isinstance(values, tuple) else (values,)
        for path, values in where.items()
    }


def _is_zone(stated: str) -> str:
    zone_of(stated)
    return stated


class PayloadSettings(Group):
    """Where a position is in the payloads of an input with `codec = "json"`.

    A path is text with dots, `gps.latitude`, in which a number is a place in an array,
    `coordinates.1`, and brackets search an array, `data[key=Location].value`; or a list,
    `["gps.latitude"]`, for keys that contain dots; in `where` the list is a text.
    """

    lat: PayloadPaths | None = None
    """Path of the latitude, WGS84 degrees. With the path of a letter for north or south:
    `latitude + ns`. It may be left out only where `registry` says where devices stand."""
    lon: PayloadPaths | None = None
    """Path of the longitude, also `longitude + ew`."""
    scale: Annotated[float, Field(gt=0, le=1)] | Literal["radians", "ddmm"] = 1.0
    """What latitude and longitude are multiplied by to be degrees: 1e-7 for whole numbers such as
    601699000. Or `radians`, or `ddmm`: degrees with minutes, 6010.2 for 60° 10.2'."""
    time: PayloadPaths | None = None
    """Path of the time of the position, or of its date and its time of day, `date + clock`. None:
    the time of its arrival."""
    join_s: Positive | None = None
    """For latitude and longitude in separate messages: they are one position if their times, in
    seconds, are no farther apart. It needs `time`, or `bare`. A message that completes no position
    counts as superseded. None: every message states both."""
    bare: bool = False
    """Payloads are numbers alone, or `{"value": 60.17}`, and the last level of the topic says
    which: `lat = "latitude"` for `cars/{device}/latitude`, read by the topic `cars/{device}/+`.
    They have no times, so `join_s` is for those of arrival. Other levels are counted as
    `not_selected`."""
    time_unit: TimeUnit = "s"
    """`s`, `ms`, `us`, `ns`: seconds, milliseconds and so on since 1970. `iso8601`: text, or digits
    as 20270115080000. `ddmmyy`: the digits of a day and `hhmmss`, as of NMEA. `s_ago`: seconds
    before the message arrives, an age."""
    time_zone: Annotated[str, Field(max_length=64), AfterValidator(_is_zone)] | None = None
    """Of times without an offset, for `iso8601`: `+05:30`, or a name such as `Europe/Helsinki`.
    None: they are UTC, and counted as `no_zone` where that makes them too old, or ahead."""
    device: PayloadPath | None = None
    """Path of the device id, for `device_from = "payload"`."""
    readings: dict[FieldName, PayloadPath] = Field(default={})
    """Paths of numbers, by the names that `[[readings]]` declares."""
    positions: PayloadPath | None = None
    """Path of an array of positions in the message. The other paths then begin in each of them,
    or in the message if they begin with `$.`. `{device}` stands for the keys of an object that are
    the ids of devices: `data.{device}.points`. None: the payload is a position, or an array of
    them."""
    where: Where = Field(default={})
    """Only messages with these values count, by path: `{ "_type" = "location", "fix" = [2, 3] }`.
    The others are counted as `not_selected`."""
    accuracy: PayloadPath | None = None
    """Path of the accuracy in metres, for `inputs.max_accuracy_m`; `echo` writes the radius there.
    None: no field states it."""

    @model_validator(mode="after")
    def _declarations_fit_each_other(self) -> Self:
        if (self.lat is None) != (self.lon is None):
            raise ValueError("lat and lon must be given together")
        if (self.paths.lat_letter is None) != (self.paths.lon_letter is None):
            raise ValueError("lat and lon need a letter both, or a sign both")
        if self.lat is not None and self.paths.lat == self.paths.lon:
            raise ValueError("lat and lon have the same path, so no position is one")
        if self.time_zone is not None and self.time_unit not in {"iso8601", "ddmmyy"}:
            raise ValueError('time_zone is for time_unit = "iso8601" or "ddmmyy"')
        if self.paths.clock is not None and self.time_unit not in {"iso8601", "ddmmyy"}:
            raise ValueError(
                'time: a date and a time of day need time_unit = "iso8601" or "ddmmyy"'
            )
        if self.join_s is not None and self.paths.beside:
            raise ValueError("join_s is for values of one field each")
        if self.join_s is not None and self.time_unit == "s_ago":
            raise ValueError("join_s compares times, and an age is none")
        if self.bare and not self._are_two_keys_alone:
            raise ValueError("bare needs lat, lon and join_s alone, one key each")
        if self.join_s is not None and self.time is None and not self.bare:
            raise ValueError("join_s needs lat, lon and time, and is for mobile devices")
        return self

    @property
    def _are_two_keys_alone(self) -> bool:
        others = (self.time, self.device, self.positions, self.accuracy)
        has_others = bool(self.readings or self.where) or any(each is not None for each in others)
        keys = (self.paths.lat, self.paths.lon)
        plain = all(key is not None and len(key.parts) == 1 for key in keys)
        return plain and self.join_s is not None and not has_others

    @property
    def paths(self) -> PositionPaths:
        """The paths as the codec takes them."""

        def path(stated: _Stated | None) -> JsonPath | None:
            return None if stated is None else JsonPath.of(stated)

        (lat, ns), (lon, ew), (time, clock) = map(_one_or_two, (self.lat, self.lon, self.time))
        return PositionPaths(
            lat=path(lat),
            lon=path(lon),
            lat_letter=path(ns),
            lon_letter=path(ew),
            clock=path(clock),
            time=path(time),
            time_unit=self.time_unit,
            time_zone=None if self.time_zone is None else zone_of(self.time_zone),
            device=path(self.device),
            readings={name: JsonPath.of(stated) for name, stated in self.readings.items()},
            positions=path(self.positions),
            where=conditions(self.where),
            accuracy=path(self.accuracy),
            scale=self.scale,
            halves=self.join_s is not None,
        )
