"""A fix: one decoded position, before it is located on the network."""

from collections.abc import Mapping
from math import isfinite, isnan
from typing import TypeAlias, overload

import msgspec
import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, UInt8Array
from anonymizer.domain.discreet import discreet
from anonymizer.domain.outcomes import Outcome

Places: TypeAlias = Mapping[str, tuple[float, float]]
"""Latitude and longitude of fixed devices, WGS84 degrees, by device id."""

HEADING, SPEED = MOTION = ("heading_deg", "speed_mps")
"""Names of the readings that say how a device moves: degrees clockwise from north, and m/s."""
ACCURACY = "accuracy_m"
"""Name of the reading that says how far from its position a device may be, metres."""


@discreet
class Fix(msgspec.Struct, frozen=True, gc=False):
    """A position as stated by a device."""

    lat: float
    lon: float
    """`lat`, `lon`: WGS84 degrees, finite, on the earth, and not 0, 0. Both are NaN if the payload
    states no position, which only the codecs for registered devices accept (`codecs.placeless`)."""
    ts: float | None = None
    """Unix seconds by the device's clock; below 0: so many seconds before the message arrives; None
    if it carries no time."""
    device: str | None = None
    """Device id stated in the payload, or None. Used only where an input is configured to trust it;
    otherwise the *topic* identifies the device."""
    readings: dict[str, float] | None = None
    """What the device sensed there: finite numbers under the names of its format, or None. Names
    and numbers are as stated; none is published unless it is declared."""
    zoneless: bool = False
    """Whether nobody said in which zone the time is, so that it was taken for UTC."""
    unusable: tuple[str, ...] = ()
    """Names of readings that are stated, and no numbers that could be used."""


def checked_fix(
    lat: float,
    lon: float,
    ts: float | None = None,
    device: str | None = None,
    readings: dict[str, float] | None = None,
    *,
    zoneless: bool = False,
) -> Fix | Outcome:
    """Return the fix, or the reason why its coordinates are invalid.

    Readings that are NaN are unusable. A negative accuracy marks a position that is not valid (as
    iOS states it), and so there is no fix. The time is checked later, against the gateway's clock.
    """
    # `check_coordinates` for one position, inlined: calls would cost a tenth of decoding.
    if not (-90.0 <= lat <= 90.0 and -180.0 <= lon <= 180.0):
        return outside(lat, lon)
    if lat == 0.0 and lon == 0.0:
        return Outcome.INVALID__NULL_ISLAND
    if readings and readings.get(ACCURACY, 0.0) < 0.0:
        return Outcome.INVALID__NO_FIX
    readings, lost = usable(readings)
    return Fix(lat, lon, ts, device, readings, zoneless, lost)


def usable(
    readings: dict[str, float] | None,
) -> tuple[dict[str, float] | None, tuple[str, ...]]:
    """Return the readings that are numbers, and the names of those that are NaN."""
    if not readings or not isnan(sum(readings.values())):
        return readings or None, ()
    lost = tuple([name for name, value in readings.items() if isnan(value)])
    return {name: value for name, value in readings.items() if not isnan(value)} or None, lost


_NO_LAT = (91.0, 90.0000001, 214.7483647, -214.7483648)
_NO_LON = (181.0, 180.0000001, 214.7483647, -214.7483648)
_NINES = tuple(10.0**n - 1 for n in range(3, 16))


def outside(lat: float, lon: float) -> Outcome:
    """Return why a position that is not on the earth is refused: it is a mark of no fix, or wrong.

    Marks are NaN, infinities, and what formats write in both coordinates for *not available*: 91
    and 181 in AIS, one step beyond in ETSI ITS and J2735, the largest and the smallest integer of
    32 bits, and -999 or 9999 and so on.
    """
    if not (isfinite(lat) and isfinite(lon)):
        return Outcome.INVALID__NO_FIX
    are_marks = (lat in _NO_LAT or abs(lat) in _NINES) and (lon in _NO_LON or abs(lon) in _NINES)
    return Outcome.INVALID__NO_FIX if are_marks else Outcome.INVALID__OUT_OF_RANGE


def check_coordinates(lat: FloatArray, lon: FloatArray) -> UInt8Array:
    """Return the outcome of each position, `HELD` where its coordinates are valid, shape (n,).

    Coordinates 0, 0 are what receivers state when they have no position.
    """
    outcome = np.full(len(lat), Outcome.INVALID__OUT_OF_RANGE, np.uint8)
    outcome[on_earth(lat, lon)] = Outcome.HELD
    outcome[(lat == 0.0) & (lon == 0.0)] = Outcome.INVALID__NULL_ISLAND
    return outcome


@overload
def on_earth(lat: float, lon: float) -> bool: ...
@overload
def on_earth(lat: FloatArray, lon: FloatArray) -> BoolArray: ...
def on_earth(lat: float | FloatArray, lon: float | FloatArray) -> bool | BoolArray:
    """Return whether WGS84 degrees are in range; NaN and infinities are not. Shapes as given."""
    return (lat >= -90.0) & (lat <= 90.0) & (lon >= -180.0) & (lon <= 180.0)
