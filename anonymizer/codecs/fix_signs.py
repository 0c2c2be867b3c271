"""Signs of no fix, times of the fix and its age, among members that devices name as they like.

Payload formatters and trackers repeat their last position when their receiver has lost it, and say
so beside it: a flag, a number of satellites, a dilution of precision. Names are compared without
case and separators, after an own `gps` or `gnss` in front: `gpsFix`, `GPS_FIX` and `fix` are one.
A member with another value than these signs have says nothing.

In flat formats, whose own members come first, only the usual spellings are looked for (`USUAL`):
`with_signs` adds them to the struct of a format, and they cost nothing where they are missing.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isnan
from typing import Any, cast

from msgspec import Raw, defstruct, json
from msgspec.json import Decoder

from anonymizer.codecs._fields import R, SignError, number_or_text, read_part
from anonymizer.codecs.times import (
    MOST_S,
    PER_SECOND,
    StatedInstant,
    ago,
    is_time_of_any_unit,
    stated_time,
)
from anonymizer.domain.outcomes import Outcome

_HAS = frozenset({
    "fix", "hasfix", "isfix", "fixok", "fixvalid", "validfix", "fixstatus", "fixquality", "fixtype",
    "valid", "isvalid", "gpslock", "gpsok", "positionvalid", "validposition",
    "locationvalid", "validlocation",
})  # fmt: skip
"""Members that are false, 0 or a word for no where there is no fix."""
_COUNTS = frozenset({
    "sat", "sats", "satellite", "satellites", "nsat", "nsats", "numsat", "numsats",
    "numsatellites", "satcount", "satellitecount", "satellitesused", "satsused",
})  # fmt: skip
"""Members that count satellites."""
_LACKS = frozenset({
    "nofix", "fixfailed", "fixlost", "invalid", "invalidfix", "invalidposition", "positioninvalid",
    "outdated", "stale", "stalefix", "stalelocation", "staleposition",
})  # fmt: skip
"""Members that are true where there is no fix."""
_MODES = frozenset({"fixmode", "navmode"})
"""Modes of NMEA 0183 (GSA) and gpsd: 1 is no fix."""
_DILUTIONS = frozenset({"hdop", "pdop"})
_MOST_DILUTION = 99.0
"""What receivers write that have none: 99.9 or 99.99."""
_HEMISPHERES = frozenset({
    "ns", "ew", "latdir", "londir", "latitudedir", "longitudedir", "latdirection", "londirection",
    "latitudedirection", "longitudedirection", "lathemisphere", "lonhemisphere",
    "latitudehemisphere", "longitudehemisphere", "latref", "lonref", "latituderef",
    "longituderef", "northsouth", "eastwest", "nsindicator", "ewindicator", "latns", "lonew",
})  # fmt: skip
"""Members whose letter is the sign of a number beside them."""
_NEGATIVE = frozenset({"s", "south", "w", "west"})
_TIMES = (
    "fixtime", "timeoffix", "fixtimestamp", "positiontime", "locationtime", "measuredat",
    "gpstime", "gnsstime", "gpstimestamp", "gnsstimestamp", "gpsdatetime", "datetime", "timestamp",
    "unixtime", "time", "utc", "ts",
)  # fmt: skip
"""When the place was measured, the most specific name first."""
_AGES = {
    f"{front}{name}{unit}": seconds
    for front in ("", "gps", "gnss")
    for name in ("age", "fixage", "positionage", "locationage", "ageoffix", "secondssincefix")
    for unit, seconds in (("", 1.0), ("s", 1.0), ("sec", 1.0), ("seconds", 1.0), ("ms", 1e-3))
}
"""How long ago the place was measured; seconds of the unit of each."""
_RANK_OF = {name: rank for rank, name in enumerate(_TIMES)} | dict.fromkeys(_AGES, len(_TIMES))
_MOST_CHARS = 64
"""Longer names say nothing, and are not remembered."""
_IN_FRONT = re.compile(r"^(?:gps|gnss)(?=.)")
_TEXT = Decoder(str)
_NO = frozenset(
    {"false", "no", "none", "off", "n", "v", "invalid", "void", "nofix", "lost", "nolock"}
)
_YES = frozenset({"true", "yes", "on", "y"})

_PRESENCE, _COUNT, _LACK, _MODE, _DILUTION, _HEMISPHERE = range(6)
_SIGNS = {
    name: sign
    for sign, names in enumerate((_HAS, _COUNTS, _LACKS, _MODES, _DILUTIONS, _HEMISPHERES))
    for name in names
}


USUAL = (
    "fix", "gps_fix", "gpsFix", "valid", "sats", "satellites", "hdop", "HDOP", "stale", "no_fix",
)  # fmt: skip
"""Spellings of signs beside the place in flat formats, and in `layouts`."""
HEMISPHERES = (
    "ns", "ew", "NS", "EW", "lat_dir", "lon_dir", "latHemisphere", "lonHemisphere",
)  # fmt: skip
"""Spellings of the letter of a hemisphere there."""
BESIDE = (*USUAL, *HEMISPHERES)


class _Sign:
    """A member that is a sign, as msgspec tells types of members apart."""

    name: str


TYPE_OF = {name: type(f"_Sign_{name}", (_Sign,), {"name": name}) for name in BESIDE}
"""By the spelling; `judged` is the hook for these types."""


def with_signs(record: type[R]) -> type[R]:
    """Return a struct with the usual signs as members, too; `judged` is their decoding hook."""
    fields: list[tuple[str, Any, Any]] = [
        (f"_{name}", TYPE_OF[name] | None, None) for name in BESIDE
    ]
    names = {f"_{name}": name for name in BESIDE}
    made: Any = defstruct(record.__name__, fields, bases=(record,), rename=names, gc=False)
    return cast("type[R]", made)


def judged(kind: type[_Sign], stated: Any) -> _Sign:  # noqa: ANN401  any JSON
    """Return a sign that says nothing.

    Raises `SignError` if it says that there is no fix, or that the number beside it lacks its sign.
    """
    if isinstance(stated, bool | int | float | str):
        try:
            part = Raw(json.encode(stated))
        except (OverflowError, ValueError):  # of an integer without end, or half a character
            return kind()
        why = refused({kind.name: part})
        if why is not None:
            raise SignError(why)
    return kind()


def said_of_fix(members: Mapping[str, Raw]) -> StatedInstant | Outcome | None:
    """Return that there is no fix, else when it was measured, or None: most say neither.

    See the functions below. About 0.1 µs a member.
    """
    for name in members:
        if len(name) <= _MOST_CHARS and _is_of_fix(name):
            why = refused(members)
            return time_of_fix(members) if why is None else why
    return None


def refused(members: Mapping[str, Raw]) -> Outcome | None:
    """Return why the place beside some members is none: no fix, or `S` or `W` beside a number."""
    for name, part in members.items():
        sign = _sign_of(name) if len(name) <= _MOST_CHARS else None
        if sign == _HEMISPHERE and _word(part) in _NEGATIVE:
            return Outcome.INVALID__NOT_DEGREES
        if sign is not None and _is_lost(sign, part):
            return Outcome.INVALID__NO_FIX
    return None


def says_no_fix(members: Mapping[str, Raw]) -> bool:
    """Return whether a member says that the device has no fix. About 0.1 µs a member."""
    for name, part in members.items():
        sign = _sign_of(name) if len(name) <= _MOST_CHARS else None
        if sign is not None and _is_lost(sign, part):
            return True
    return False


def time_of_fix(members: Mapping[str, Raw]) -> StatedInstant | None:
    """Return when a device says that it measured its place; None if it does not say so.

    Unix seconds in any unit, by their size, or texts, see `codecs.times`. What is no time since
    2001, such as the seconds since the device started, is none. Where only an age is stated, it is
    below 0, see `Fix.ts`.
    """
    found: list[tuple[int, StatedInstant]] = []
    for name, part in members.items():
        rank = _rank_of(name) if len(name) <= _MOST_CHARS else None
        if rank is None:
            continue
        time = _time_in(part) if rank < len(_TIMES) else _time_before(_name_of_time(name), part)
        if time is not None:
            found.append((rank, time))
    return min(found)[1] if found else None


def judge_of(names: Sequence[str]) -> Callable[[Sequence[Any]], Outcome | None] | None:
    """Return what says whether one of some members refuses the place; None: none can.

    It takes their values in order; what is no `Raw` is not stated.
    """
    signs = [(place, name) for place, name in enumerate(names) if is_sign(name)]
    if not signs:
        return None

    def judge(parts: Sequence[Any]) -> Outcome | None:
        stated = ((name, parts[place]) for place, name in signs)
        return refused({name: part for name, part in stated if isinstance(part, Raw)})

    return judge


def is_sign(name: str) -> bool:
    """Return whether a member of this name can say that there is no fix. About 0.05 µs."""
    return len(name) <= _MOST_CHARS and _sign_of(name) is not None


def _is_lost(sign: int, part: Raw) -> bool:
    value = number_or_text(part)
    word = _word(part) if isnan(value) else ""
    if sign == _LACK:
        return value > 0 or word in _YES
    if sign == _MODE:
        return value in {0.0, 1.0} or word in _NO
    if sign == _DILUTION:
        return value < 0 or value >= _MOST_DILUTION
    if sign == _HEMISPHERE:
        return False
    return value == 0 or (sign == _PRESENCE and (value < 0 or word in _NO))


def _word(part: Raw) -> str:
    """Return a flag, or a text without case, blanks and underscores."""
    text = bytes(part)
    if text[:1] != b'"':
        return text.decode() if text in {b"true", b"false"} else ""
    stated = read_part(_TEXT, part)
    return _plain(stated) if isinstance(stated, str) else ""


def _time_in(part: Raw) -> StatedInstant | None:
    value = number_or_text(part)
    if is_time_of_any_unit(value):
        per_second = next(each for each in PER_SECOND.values() if value / each < MOST_S)
        return StatedInstant(value / per_second)
    stated: str | Outcome = read_part(_TEXT, part)
    found = stated_time(stated) if isinstance(stated, str) else None
    if not isinstance(found, StatedInstant):
        return None
    return found if is_time_of_any_unit(found.unix_s) else None


def _time_before(age: str, part: Raw) -> StatedInstant | None:
    return ago(number_or_text(part) * _AGES[age])


def _plain(name: str) -> str:
    return re.sub(r"[^0-9a-z]+", "", name.lower())


@lru_cache(maxsize=1024)
def _is_of_fix(name: str) -> bool:
    return _sign_of(name) is not None or _rank_of(name) is not None


@lru_cache(maxsize=1024)
def _sign_of(name: str) -> int | None:
    plain = _plain(name)
    return _SIGNS.get(plain, _SIGNS.get(_IN_FRONT.sub("", plain)))


@lru_cache(maxsize=1024)
def _rank_of(name: str) -> int | None:
    return _RANK_OF.get(_name_of_time(name))


def _name_of_time(name: str) -> str:
    return re.sub(r"[0-9]+$", "", _plain(name))
