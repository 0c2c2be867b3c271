"""Coverage of a road network: where it is, and what share of real positions lies on it."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.map_matching import OFF_GRAPH, NodeLocator
from anonymizer.algorithms.positions.protection import Zones
from anonymizer.domain.fixes import on_earth
from anonymizer.domain.longitudes import west_east
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.protection import Circle, Polygon
from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError

_MOST_LATITUDE = 90.0
_LATTICE = 200
_MOST = 0.5
"""Points on each side of the bounding box whose distance to a road is measured."""


class Coverage(NamedTuple):
    """Where a network is, and how much of its bounding box it covers."""

    south: float
    west: float
    north: float
    east: float
    """`south`, `west`, `north`, `east`: bounding box of the nodes, WGS84 degrees; west is above
    east across the date line."""
    n_components: int
    largest_share: float
    """`n_components`, `largest_share`: connected parts, and the share of the nodes that the largest
    one has."""
    near_share: float
    """Share of the bounding box that is within the snapping limit of a road."""


def n_inside(shape: Circle | Polygon | None, network: RoadNetwork) -> int:
    """Return how many nodes of a network are in a shape; 0 without one."""
    if shape is None:
        return 0
    of = ([shape], []) if isinstance(shape, Circle) else ([], [shape])
    zones = Zones(circles=of[0], polygons=of[1])
    return int(zones.contains(network.lat, network.lon).sum())


def touches(shape: Circle | Polygon, network: RoadNetwork, *, limit_m: float) -> bool:
    """Return whether positions in a shape can be located on a network."""
    if n_inside(shape, network):
        return True
    reach_m = limit_m
    if isinstance(shape, Circle):
        lat, lon, reach_m = [shape.lat], [shape.lon], limit_m + shape.radius_m
    else:
        lat, lon = (list(column) for column in zip(*shape.corners, strict=True))
    locator = NodeLocator(network, limit_m=reach_m)
    found = locator.locate(np.array(lat, np.float64), np.array(lon, np.float64))
    return bool((found != OFF_GRAPH).any())


def exchanged(shape: Circle | Polygon) -> Circle | Polygon | None:
    """Return a shape with latitude and longitude exchanged; None if it is on no globe."""
    corners = [(shape.lat, shape.lon)] if isinstance(shape, Circle) else list(shape.corners)
    if any(abs(lon) > _MOST_LATITUDE for _, lon in corners):
        return None
    if isinstance(shape, Circle):
        return Circle(shape.lon, shape.lat, shape.radius_m)
    return Polygon(tuple((lon, lat) for lat, lon in corners))


class TraceCoverage(NamedTuple):
    """Shares of the positions of a trace that no road is near."""

    n_positions: int
    """Positions of the trace."""
    off_graph_share: float
    """Share that is farther from every road than the snapping limit."""
    outside_share: float
    """Share that is outside the bounding box of the network: they are off the graph, or nearly."""
    is_exchanged: bool
    """Whether most are off the graph, and most would be on it with latitude for longitude."""


def coverage(network: RoadNetwork, *, limit_m: float) -> Coverage:
    """Return where a network with coordinates is, and how much of it is near a road."""
    south, north = float(network.lat.min()), float(network.lat.max())
    west, east = west_east(network.lon)
    width = (east - west) % 360
    # The middles of equal cells, so that a network without any width is inside.
    step = (np.arange(_LATTICE) + 0.5) / _LATTICE
    lat = np.repeat(south + (north - south) * step, _LATTICE)
    lon = np.tile(west + width * step, _LATTICE)
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

    Raises `InputError` if the trace names nodes, or has no positions.
    """
    if trace.node is not None:
        raise InputError("the trace names nodes; a check needs lat and lon")
    if not trace.n_rows:
        raise InputError("the trace has no positions")
    node = NodeLocator(network, limit_m=limit_m).locate(trace.lat, trace.lon)
    inside = (network.lat.min() <= trace.lat) & (trace.lat <= network.lat.max())
    west, east = west_east(network.lon)
    inside &= (trace.lon - west) % 360 <= (east - west) % 360
    off = float((node == OFF_GRAPH).mean())
    return TraceCoverage(
        trace.n_rows,
        off,
        1 - float(inside.mean()),
        off > _MOST and _exchanged(trace, network, limit_m) > _MOST,
    )


def _exchanged(trace: Trace, network: RoadNetwork, limit_m: float) -> float:
    """Return which share would be on the graph with latitude and longitude exchanged."""
    can_be = on_earth(trace.lon, trace.lat)
    lat, lon = trace.lon[can_be], trace.lat[can_be]
    node = NodeLocator(network, limit_m=limit_m).locate(lat, lon)
    return float((node != OFF_GRAPH).sum()) / trace.n_rows
