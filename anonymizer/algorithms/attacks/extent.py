"""How large regions are on the ground."""

import numpy as np

from anonymizer.algorithms.attacks.observed import Observed
from anonymizer.algorithms.geodesy import EARTH_RADIUS_M, unit_vectors
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network import RoadNetwork

_N_DIRECTIONS = 16


def extent_m(observed: Observed, network: RoadNetwork) -> FloatArray:
    """Return the largest distance between two nodes of each region, metres, shape (regions,).

    NaN where the network has no coordinates.

    Notes
    -----
    The widest of 16 projections of the tangent plane in the network's middle: at most 0.5 %
    short of the largest distance, in O(nodes) a region. The plane itself is true within 0.1 % up to
    280 km from its middle.
    """
    x_m, y_m = _tangent_plane(network)
    first = observed.first_node_of[:-1]
    widest = np.zeros(observed.n_regions)
    for angle in np.arange(_N_DIRECTIONS) * np.pi / _N_DIRECTIONS:
        along = (np.cos(angle) * x_m + np.sin(angle) * y_m)[observed.node]
        width = np.maximum.reduceat(along, first) - np.minimum.reduceat(along, first)
        widest = np.maximum(widest, width)
    return widest


def _tangent_plane(network: RoadNetwork) -> tuple[FloatArray, FloatArray]:
    """Return metres along two perpendicular axes of the plane, shape (nodes,) each."""
    vectors = unit_vectors(network.lat, network.lon)
    middle = vectors.mean(axis=0)
    # The axis of the sphere least along the middle is never parallel to it.
    east = np.cross(np.eye(3)[np.abs(middle).argmin()], middle)
    north = np.cross(middle, east)
    scale = EARTH_RADIUS_M
    return (
        scale * vectors @ (east / np.linalg.norm(east)),
        scale * vectors @ (north / np.linalg.norm(north)),
    )
