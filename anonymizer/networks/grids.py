"""Grid networks, and the map projection of all generated networks."""

import re

import numpy as np

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks.construction import from_arcs
from anonymizer.networks.speeds import free_flow_mps

ORIGIN_LAT, ORIGIN_LON = 60.1699, 24.9384
"""Helsinki Central Station, WGS84 degrees. Errors show there: a degree of longitude is half as long
as one of latitude, and neither coordinate is near zero."""
SPACING_M = 100.0
MAX_NODES = 5_000_000
"""A larger grid is taken for a typing error."""


def lat_lon(x_m: FloatArray, y_m: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return latitudes and longitudes of points given in metres east and north of the origin.

    Equirectangular: distances are exact at the origin and off by 1 % about 35 km north of it.
    """
    lat = ORIGIN_LAT + np.degrees(y_m / EARTH_RADIUS_M)
    lon = ORIGIN_LON + np.degrees(x_m / (EARTH_RADIUS_M * np.cos(np.radians(ORIGIN_LAT))))
    return lat, lon


def grid(size: str) -> RoadNetwork:
    """Return the grid of a size such as `5x5`, rows first.

    Ids are row-major, with row 0 in the north; neighbours are in the order north, west, south,
    east, as in the published example. Roads are residential, 100 m long and two-way; the grid is
    centred on the origin.
    """
    match = re.fullmatch(r"([1-9]\d{0,6})x([1-9]\d{0,6})", size)
    if match is None or int(match[1]) * int(match[2]) > MAX_NODES:
        raise InputError(f"a grid is ROWSxCOLUMNS, such as 5x5, of at most {MAX_NODES:,} nodes")
    n_rows, n_columns = int(match[1]), int(match[2])
    row, column = np.divmod(np.arange(n_rows * n_columns), n_columns)
    # The columns of these tables are the four directions, in the order of adjacency.
    to_row = row[:, None] + np.array([-1, 0, 1, 0])
    to_column = column[:, None] + np.array([0, -1, 0, 1])
    inside = (to_row >= 0) & (to_row < n_rows) & (to_column >= 0) & (to_column < n_columns)
    tail, _ = np.nonzero(inside)
    head = (to_row * n_columns + to_column)[inside]
    lat, lon = lat_lon(
        (column - (n_columns - 1) / 2) * SPACING_M, ((n_rows - 1) / 2 - row) * SPACING_M
    )
    return from_arcs(
        node_id=row * n_columns + column,
        lat=lat,
        lon=lon,
        tail=tail,
        head=head,
        length_m=np.full(len(tail), SPACING_M),
        speed_mps=np.full(len(tail), free_flow_mps("residential", None)),
        drivable=np.ones(len(tail), dtype=np.bool_),
    )
