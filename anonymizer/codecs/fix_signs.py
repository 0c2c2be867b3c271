"""Signs of no fix, and times of the fix, among members that devices name as they like.

Payload formatters and trackers repeat their last position when their receiver has lost it, and say
so beside it: a flag, a number of satellites, a dilution of precision. Names are compared without
case and separators, after an own `gps` or `gnss` in front: `gpsFix`, `GPS_FIX` and `fix` are one.
A member with another value than these signs have says nothing.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from math import isnan

from msgspec import Raw
from msgspec.json import Decoder

from anonymizer.codecs._fields import number_or_text, read_part
from anonymizer.codecs.times import (
    MOST_S,
    PER_SECOND,
    StatedInstant,
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
_TIMES = (
    "fixtime", "timeoffix", "fixtimestamp", "positiontime", "locationtime", "measuredat",
    "gpstime", "gnsstime", "gpstimestamp", "gnsstimestamp", "gpsdatetime", "datetime", "timestamp",
    "unixtime", "time", "utc", "ts",
)  # fmt: skip
"""When the place was measured, the most specific name first."""
_RANK_OF = {name: rank for rank, name in enumerate(_TIMES)}
_MOST_CHARS = 64
"""Longer names say nothing, and are not remembered."""
_IN_FRONT = re.compile(r"^(?:gps|gnss)(?=.)")
_TEXT = Decoder(str)
_NO = frozenset(
    {"false", "no", "none", "off", "n", "v", "invalid", "void", "nofix", "lost", "nolock"}
)
_YES = frozenset({"true", "yes", "on", "y"})

_PRESENCE, _COUNT, _LACK, _MODE, _DILUTION = range(5)
_SIGNS = {
    name: sign
    for sign, names in enumerate((_HAS, _COUNTS, _LACKS, _MODES, _DILUTIONS))
    for name in names
}


def said_of_fix(members: Mapping[str, Raw]) -> StatedInstant | Outcome | None:
    """Return that there is no fix, else when it was measured, or None: most say neither.

    See the functions below. About 0.1 µs a member.
    """
    for name in members:
        if len(name) <= _MOST_CHARS and _is_of_fix(name):
            return Outcome.INVALID__NO_FIX if says_no_fix(members) else time_of_fix(members)
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
    2001, such as the seconds since the device started, is none.
    """
    found: list[tuple[int, StatedInstant]] = []
    for name, part in members.items():
        rank = _rank_of(name) if len(name) <= _MOST_CHARS else None
        if rank is not None and (time := _time_in(part)) is not None:
            found.append((rank, time))
    return min(found)[1] if found else None


def _is_lost(sign: int, part: Raw) -> bool:
    value = number_or_text(part)
    word = _word(part) if isnan(value) else ""
    if sign == _LACK:
        return value > 0 or word in _YES
    if sign == _MODE:
        return value in {0.0, 1.0} or word in _NO
    if sign == _DILUTION:
        return value < 0 or value >= _MOST_DILUTION
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
    return _RANK_OF.get(re.sub(r"[0-9]+$", "", _plain(name)))
