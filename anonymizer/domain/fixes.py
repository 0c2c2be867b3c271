"""A fix: one decoded position, before it is located on the network."""

from collections.abc import Mapping
from typing import TypeAlias, overload

import msgspec
import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, UInt8Array
from anonymizer.domain.outcomes import Outcome

Places: TypeAlias = Mapping[str, tuple[float, float]]
"""Latitude and longitude of fixed devices, WGS84 degrees, by device id."""

HEADING, SPEED = MOTION = ("heading_deg", "speed_mps")
"""Names of the readings that say how a device moves: degrees clockwise from north, and m/s."""
ACCURACY = "accuracy_m"
"""Name of the reading that says how far from its position a device may be, metres."""


class Fix(msgspec.Struct, frozen=True, gc=False):
    """A position as stated by a device.

    Attributes
    ----------
    lat, lon
        WGS84 degrees, finite, on the earth, and not 0, 0. Both are NaN if the payload states no
        position, which only the codecs for registered devices accept (`codecs.placeless`).
    ts
        Unix seconds by the device's clock, or None if the message carries no time.
    device
        Device id stated in the payload, or None. Used only where an input is configured to
        trust it; otherwise the *topic* identifies the device.
    readings
        What the device sensed there: finite numbers under the names of its format, or None.
        Names and numbers are as stated; none is published unless it is declared.
    """

    lat: float
    lon: float
    ts: float | None = None
    device: str | None = None
    readings: dict[str, float] | None = None

    def __repr__(self) -> str:
        """Reveal neither place, device nor readings."""
        return "Fix(...)"


def checked_fix(
    lat: float,
    lon: float,
    ts: float | None = None,
    device: str | None = None,
    readings: dict[str, float] | None = None,
) -> Fix | Outcome:
    """Return the fix, or the reason why its coordinates are invalid.

    NaN and infinities are out of range. The time is checked later, against the gateway's clock.
    """
    # `check_coordinates` for one position, inlined: calls would cost a tenth of decoding.
    if not (-90.0 <= lat <= 90.0 and -180.0 <= lon <= 180.0):
        return Outcome.INVALID__OUT_OF_RANGE
    if lat == 0.0 and lon == 0.0:
        return Outcome.INVALID__NULL_ISLAND
    return Fix(lat, lon, ts, device, readings)


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
