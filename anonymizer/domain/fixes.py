"""One decoded position, before it is located on the network."""

import msgspec

from anonymizer.domain.outcomes import Outcome


class Fix(msgspec.Struct, frozen=True, gc=False):
    """A position as a device stated it.

    Attributes
    ----------
    lat, lon
        WGS84 degrees, finite, on the earth, not 0, 0: a codec returns no other.
    ts
        Unix seconds by the device's clock, or None when the message carries no time.
    device
        Device id stated inside the payload, or None. Believed only where an input is
        configured so; a device is otherwise who the *topic* says it is.
    readings
        What the device sensed there: finite numbers under the names its format gives them, or
        None. Names and numbers as stated: nothing of it is published unless declared.
    """

    lat: float
    lon: float
    ts: float | None = None
    device: str | None = None
    readings: dict[str, float] | None = None

    def __repr__(self) -> str:
        """Say nothing of where, who or what."""
        return "Fix(...)"


def checked_fix(
    lat: float,
    lon: float,
    ts: float | None = None,
    device: str | None = None,
    readings: dict[str, float] | None = None,
) -> Fix | Outcome:
    """Return the fix, or the reason why these coordinates cannot be one.

    NaN and infinities are out of range. Time is judged later, against the gateway's clock.
    """
    if not (-90.0 <= lat <= 90.0 and -180.0 <= lon <= 180.0):
        return Outcome.INVALID__OUT_OF_RANGE
    if lat == 0.0 and lon == 0.0:
        return Outcome.INVALID__NULL_ISLAND
    return Fix(lat, lon, ts, device, readings)
