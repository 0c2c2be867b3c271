"""Longitudes on both sides of the date line."""

import numpy as np

from anonymizer.domain.arrays import FloatArray


def west_east(lon: FloatArray) -> tuple[float, float]:
    """Return the westernmost and easternmost of longitudes, shape (n,) with n > 0.

    West is above east where they lie on both sides of the date line, as RFC 7946 has it (section
    5.2): where the widest gap between them is within -180 to 180.
    """
    west, east = float(lon.min()), float(lon.max())
    if east - west <= 180:
        return west, east
    along = np.sort(lon)
    gap = np.diff(along)
    widest = int(gap.argmax())
    if gap[widest] <= 360 - (east - west):
        return west, east
    return float(along[widest + 1]), float(along[widest])


def unwrapped(lon: FloatArray, west: float) -> FloatArray:
    """Return longitudes from `west` up to 360 degrees east of it, same shape."""
    return np.where(lon < west, lon + 360.0, lon)
