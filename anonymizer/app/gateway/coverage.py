"""Coverage of a road network: where it is, and what share of real positions lies on it."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.map_matching import OFF_GRAPH, NodeLocator
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError

_LATTICE = 200
"""Points on each side of the bounding box whose distance to a road is measured."""


class Coverage(NamedTuple):
    """Where a network is, and how much of its bounding box it covers.

    Attributes
    ----------
    south, west, north, east
        Bounding box of the nodes, WGS84 degrees. It spans no antimeridian: a network across it
        seems to reach around the world.
    n_components, largest_share
        Connected parts, and the share of the nodes that the largest one has.
    near_share
        Share of the bounding box that is within the snapping limit of a road.
    """

    south: float
    west: float
    north: float
    east: float
    n_components: int
    largest_share: float
    near_share: float


class TraceCoverage(NamedTuple):
    """Shares of the positions of a trace that no road is near.

    Attributes
    ----------
    n_positions
        Positions of the trace.
    off_graph_share
        Share that is farther from every road than the snapping limit.
    outside_share
        Share that is outside the bounding box of the network: they are off the graph, or nearly.
    """

    n_positions: int
    off_graph_share: float
    outside_share: float


def coverage(network: RoadNetwork, *, limit_m: float) -> Coverage:
    """Return where a network with coordinates is, and how much of it is near a road."""
    south, north = float(network.lat.min()), float(network.lat.max())
    west, east = float(network.lon.min()), float(network.lon.max())
    # The middles of equal cells, so that a network without any width is inside.
    step = (np.arange(_LATTICE) + 0.5) / _LATTICE
    lat = np.repeat(south + (north - south) * step, _LATTICE)
    lon = np.tile(west + (east - west) * step, _LATTICE)
    # Rows near a pole are shorter, so their points stand for less.
    weight = np.cos(np.radians(lat))
    near = NodeLocator(network, limit_m=limit_m).locate(lat, lon) != OFF_GRAPH
    return Coverage(
        south,
        west,
        north,
        east,
        network.n_components,
        float((network.component_of == 0).mean()),
        float(np.average(near, weights=weight)),
    )


def trace_coverage(trace: Trace, network: RoadNetwork, *, limit_m: float) -> TraceCoverage:
    """Return which shares of a trace are off the graph.

    Raises
    ------
    InputError
        If the trace names nodes, or has no positions.
    """
    if trace.node is not None:
        raise InputError("the trace names nodes; a check needs lat and lon")
    if not trace.n_rows:
        raise InputError("the trace has no positions")
    node = NodeLocator(network, limit_m=limit_m).locate(trace.lat, trace.lon)
    inside = (network.lat.min() <= trace.lat) & (trace.lat <= network.lat.max())
    inside &= (network.lon.min() <= trace.lon) & (trace.lon <= network.lon.max())
    return TraceCoverage(trace.n_rows, float((node == OFF_GRAPH).mean()), 1 - float(inside.mean()))
