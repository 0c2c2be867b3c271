"""Where generated networks lie: a plane in metres, laid onto the earth."""

import numpy as np

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.domain.arrays import FloatArray

ORIGIN_LAT, ORIGIN_LON = 60.1699, 24.9384
"""Helsinki Central Station, WGS84 degrees: a plausible place, where few test data are wrong by
being right (longitudes are half as wide as latitudes, and neither coordinate is near zero)."""


def lat_lon(x_m: FloatArray, y_m: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the positions of points in metres east and north of the origin.

    Equirectangular: distances are true at the origin and off by 1 % some 35 km north of it.
    """
    lat = ORIGIN_LAT + np.degrees(y_m / EARTH_RADIUS_M)
    lon = ORIGIN_LON + np.degrees(x_m / (EARTH_RADIUS_M * np.cos(np.radians(ORIGIN_LAT))))
    return lat, lon
