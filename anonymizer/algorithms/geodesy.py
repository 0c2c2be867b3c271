"""Geodesy: great-circle distances and unit vectors for arrays of positions."""

import numpy as np
from numpy.typing import ArrayLike

from anonymizer.domain.arrays import FloatArray

EARTH_RADIUS_M = 6_371_008.8
"""Mean radius of the earth (IUGG); the sphere differs from the ellipsoid by at most 0.6 %."""


def haversine_m(
    lat_a: ArrayLike, lon_a: ArrayLike, lat_b: ArrayLike, lon_b: ArrayLike
) -> FloatArray:
    """Return the great-circle distance in metres from each a to its b.

    Parameters
    ----------
    lat_a, lon_a, lat_b, lon_b
        Degrees, shapes that broadcast together. NaN gives NaN.

    Notes
    -----
    The haversine formula [1]_ keeps its precision for points a few centimetres apart, where the
    arc cosine of a dot product has none left.

    References
    ----------
    .. [1] R. W. Sinnott, "Virtues of the Haversine", Sky and Telescope 68(2), 1984.
    """
    phi_a, phi_b = np.radians(lat_a), np.radians(lat_b)
    half_dlon = (np.radians(lon_b) - np.radians(lon_a)) / 2
    h = np.sin((phi_b - phi_a) / 2) ** 2 + np.cos(phi_a) * np.cos(phi_b) * np.sin(half_dlon) ** 2
    # For antipodes h can be rounded above 1, where arcsin is undefined.
    distance: FloatArray = 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.minimum(h, 1.0)))
    return distance


def unit_vectors(lat: ArrayLike, lon: ArrayLike) -> FloatArray:
    """Return points on the unit sphere, shape (n, 3), for positions in degrees, shape (n,).

    The nearest point by chord is the nearest by great circle, so a k-d tree of these vectors
    answers nearest-node queries everywhere, including the date line and the poles.
    """
    phi, lam = np.radians(lat), np.radians(lon)
    cos_phi = np.cos(phi)
    return np.stack((cos_phi * np.cos(lam), cos_phi * np.sin(lam), np.sin(phi)), axis=-1)


def chord_of_m(distance_m: float) -> float:
    """Return the length of the chord on the unit sphere that spans a great-circle distance."""
    return float(2 * np.sin(min(distance_m / EARTH_RADIUS_M, np.pi) / 2))
