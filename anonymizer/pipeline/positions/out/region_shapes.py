"""Shapes of regions: what a message says of a region's place, besides the names of its nodes.

A shape is a function of the nodes of the region and of the public network alone, so it tells
nothing that the nodes do not.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec
import numpy as np

from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.longitudes import west_east
from anonymizer.domain.network import RoadNetwork
from anonymizer.extras import extra

CellOf: TypeAlias = Callable[[float, float], str]
"""Returns the name of the cell at a latitude and longitude."""
_H3_RESOLUTION = 9
_DIGITS = 6
"""Decimals of a coordinate, 11 cm."""


class Shape(msgspec.Struct, frozen=True, gc=False):
    """The place of a region in one of several forms; the others are left out."""

    geometry: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """GeoJSON MultiLineString: the roads between two nodes of the region."""
    cells: Sequence[str] | msgspec.UnsetType = msgspec.UNSET
    """H3 cells that hold a node of the region, sorted."""
    bbox: tuple[float, float, float, float] | msgspec.UnsetType = msgspec.UNSET
    """West, south, east and north of the region, in degrees."""


NO_SHAPE = Shape()


class RegionShapes(Protocol):
    """Makes the shapes of regions."""

    def of(self, node: Int32Array) -> Shape:
        """Return the shape of a region, given its nodes."""


def shapes_of(network: RoadNetwork, kind: str) -> RegionShapes:
    """Return what makes the shapes of regions in a network with coordinates.

    `kind`: `nodes`, `roads`, `bbox`, `h3`, or `h3:` and a resolution.

    Raises `MissingExtraError` if `kind` is `h3` and the extra of this name is not installed.
    """
    if kind == "roads":
        return _Roads(network)
    if kind == "bbox":
        return _Boxes(network)
    name, _, resolution = kind.partition(":")
    if name == "h3":
        return _Cells(network, h3_cells(int(resolution or _H3_RESOLUTION)))
    return _Nothing()


def h3_cells(resolution: int) -> CellOf:
    """Return what finds the H3 cell of a place.

    Raises `MissingExtraError` if the extra `h3` is not installed.
    """
    with extra("h3"):
        import h3  # noqa: PLC0415  an extra

    return lambda lat, lon: str(h3.latlng_to_cell(lat, lon, resolution))


class _Nothing:
    """The names of the nodes are enough."""

    def of(self, node: Int32Array) -> Shape:  # noqa: ARG002  the protocol's
        return NO_SHAPE


class _Roads:
    """The roads inside a region, as lines.

    A node without a road inside its region is a line of no length.
    """

    def __init__(self, network: RoadNetwork) -> None:
        self._network = network
        self._lines = network.lines()
        tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
        # Each road is drawn once: with the arc from its smaller node.
        self._line_of = np.cumsum(tail < network.neighbour_of) - 1
        self._text_of: dict[int, str] = {}

    def of(self, node: Int32Array) -> Shape:
        inside = np.sort(node.astype(np.int64))
        tail, head, line = self._inner_roads(inside)
        alone = np.setdiff1d(inside, np.concatenate([tail, head]))
        drawn = [self._line(number) for number in line.tolist()]
        drawn += [self._point(v) for v in alone.tolist()]
        text = f'{{"type":"MultiLineString","coordinates":[{",".join(drawn)}]}}'
        return Shape(geometry=msgspec.Raw(text.encode()))

    def _inner_roads(self, inside: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return both ends and the line of each road inside; `inside` is sorted."""
        first = self._network.first_arc_of[inside].astype(np.int64)
        n_arcs = self._network.first_arc_of[inside + 1] - first
        tail = np.repeat(inside, n_arcs)
        within = np.arange(len(tail)) - np.repeat(np.cumsum(n_arcs) - n_arcs, n_arcs)
        arc = np.repeat(first, n_arcs) + within
        head = self._network.neighbour_of[arc].astype(np.int64)
        place = np.minimum(np.searchsorted(inside, head), len(inside) - 1)
        kept = (inside[place] == head) & (tail < head)
        return tail[kept], head[kept], self._line_of[arc[kept]]

    def _line(self, number: int) -> str:
        """Return the points of a line; a position of GeoJSON is longitude and latitude."""
        text = self._text_of.get(number)
        if text is None:
            lines = self._lines
            points = slice(*lines.first_point_of[number : number + 2].tolist())
            places = zip(lines.lon[points].tolist(), lines.lat[points].tolist(), strict=True)
            text = f"[{','.join(_position(lon, lat) for lon, lat in places)}]"
            self._text_of[number] = text
        return text

    def _point(self, node: int) -> str:
        place = _position(float(self._network.lon[node]), float(self._network.lat[node]))
        return f"[{place},{place}]"


def _position(lon: float, lat: float) -> str:
    return f"[{round(lon, _DIGITS)},{round(lat, _DIGITS)}]"


class _Cells:
    """The H3 cells of the nodes of a region."""

    def __init__(self, network: RoadNetwork, cell_of: CellOf) -> None:
        self._network = network
        self._cell_of = cell_of
        self._name_of: dict[int, str] = {}

    def of(self, node: Int32Array) -> Shape:
        return Shape(cells=sorted({self._name(v) for v in node.tolist()}))

    def _name(self, node: int) -> str:
        name = self._name_of.get(node)
        if name is None:
            place = float(self._network.lat[node]), float(self._network.lon[node])
            name = self._name_of[node] = self._cell_of(*place)
        return name


class _Boxes:
    """The box around the nodes of a region."""

    def __init__(self, network: RoadNetwork) -> None:
        self._lat, self._lon = network.lat, network.lon

    def of(self, node: Int32Array) -> Shape:
        lat, lon = self._lat[node], self._lon[node]
        west, east = west_east(lon)
        corners = (west, lat.min(), east, lat.max())
        west, south, east, north = (round(float(corner), _DIGITS) for corner in corners)
        return Shape(bbox=(west, south, east, north))
