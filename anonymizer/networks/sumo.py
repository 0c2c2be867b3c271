"""SUMO networks: the edges that are open to passenger cars."""

import zlib
from pathlib import Path
from xml.sax import SAXException

import numpy as np
import sumolib.net
from pyproj.exceptions import ProjError

from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks.construction import from_arrays
from anonymizer.networks.drawn_roads import (
    MAX_SPACING_M,
    Corners,
    Nodes,
    corners_of_lines,
    no_corners,
)
from anonymizer.networks.edge_accounts import accounted
from anonymizer.networks.markup import check_markup
from anonymizer.networks.node_ids import node_ids, text_ids


def load_sumo(path: Path, *, max_spacing_m: float = MAX_SPACING_M) -> RoadNetwork:
    """Load a `.net.xml` or `.net.xml.gz`, without the edges inside junctions.

    A SUMO edge has one direction; two opposite edges become one two-way road. Junctions without an
    edge for passenger cars are left out. Edges that are longer than `max_spacing_m` get nodes in
    between (0: none). A network without a geographic projection gets no coordinates.

    Raises `InputError` if the file is not a SUMO network.
    """
    net = _read(path)
    every = net.getEdges(withInternal=False)
    edges = [edge for edge in every if edge.allows("passenger")]
    became = {
        "open to passenger cars": len(edges),
        "closed to them": len(every) - len(edges),
    }
    ends = text_ids(
        [node.getID() for edge in edges for node in (edge.getFromNode(), edge.getToNode())]
    ).reshape(-1, 2)
    names, index = np.unique(ends, return_inverse=True)
    u, v = index.reshape(-1, 2).T
    nodes = Nodes(node_ids(names.tolist()), *_lat_lon(net, _junctions(net, names.tolist())))
    network = from_arrays(
        node_id=nodes.node_id,
        lat=nodes.lat,
        lon=nodes.lon,
        u=u,
        v=v,
        length_m=np.array([edge.getLength() for edge in edges], dtype=np.float64),
        speed_mps=np.array([edge.getSpeed() for edge in edges], dtype=np.float64),
        forward=np.ones(len(edges), dtype=np.bool_),
        backward=np.zeros(len(edges), dtype=np.bool_),
        corners=_corners(net, edges, nodes, index.reshape(-1, 2)),
        max_spacing_m=max_spacing_m,
    )
    return accounted(network, "edge", became)


def lat_lon_of(path: Path, xy: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return WGS84 degrees of positions in the plane of a network, shape (n, 2).

    Raises `InputError` if the file is not a SUMO network, or states no geographic projection.
    """
    try:
        lat, lon = _lat_lon(_read(path), xy)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if len(xy) and np.isnan(lat).all():
        raise InputError(f"{path}: states no geographic projection")
    return lat, lon


def _read(path: Path) -> sumolib.net.Net:
    check_markup(path)
    try:
        # The parser is fixed: with lxml, an optional one, other errors would come.
        return sumolib.net.readNet(str(path), withConnections=False, withFoes=False, lxml=False)
    except (SAXException, KeyError, ValueError, OSError, EOFError, zlib.error) as error:
        raise InputError("is not a SUMO network") from error


def _corners(
    net: sumolib.net.Net, edges: list[sumolib.net.edge.Edge], nodes: Nodes, ends: IntArray
) -> Corners:
    shapes = [edge.getShape() for edge in edges]
    points = np.array([point[:2] for shape in shapes for point in shape], dtype=np.float64)
    n_before = np.cumsum([0] + [len(shape) for shape in shapes])
    lat, lon = _lat_lon(net, points.reshape(-1, 2))
    if np.isnan(lat).any():
        return no_corners(len(edges))
    return corners_of_lines(n_before, lat, lon, nodes, ends)


def _junctions(net: sumolib.net.Net, names: list[str]) -> FloatArray:
    """Return where junctions lie in the plane of the network, shape (n, 2)."""
    try:
        xy = np.array([net.getNode(name).getCoord() for name in names], dtype=np.float64)
    except TypeError as error:
        raise InputError("an edge begins or ends at no junction") from error
    return xy.reshape(-1, 2)


def _lat_lon(net: sumolib.net.Net, xy: FloatArray) -> tuple[FloatArray, FloatArray]:
    x, y = xy.T.copy()
    try:
        if not net.hasGeoProj():
            return np.full(len(x), np.nan), np.full(len(y), np.nan)
        lon, lat = net.convertXY2LonLat(x, y)
    except (KeyError, ProjError) as error:
        raise InputError(
            "its location states no projection that is known: write that of its making"
            " (netconvert --proj) as projParameter"
        ) from error
    return lat, lon
