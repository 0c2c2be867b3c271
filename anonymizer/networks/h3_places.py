"""H3 places: the cells of an area and their neighbours, for devices that are on no road.

Boats, hikers and drones go where no line leads. Cells with the neighbours that they touch are a
graph as roads are, so every promise and every attack is the same on it. Regions name H3 cells,
which analysts' databases read as they are.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import h3
import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks.construction import from_arrays

MAX_CELLS = 5_000_000
"""A larger area is taken for a mistake: its network would take more than 2 GB."""
FASTEST_MPS = 25.0
"""Nothing off the roads is taken to be faster: the attack by speed must rule out no place where a
drone or a motor boat may be."""

_EXPECTED = (
    "is RESOLUTION:AREA, such as 9:46.20,6.14,46.52,6.93 (south, west, north and east in degrees) "
    "or 9:lake.geojson"
)
_FINEST = 15
_CHILDREN = 7
"""Cells of the next resolution in one cell, in the mean."""
_ENOUGH = 50
"""So many cells tell how many an area has at finer resolutions."""


def h3_places(text: str) -> RoadNetwork:
    """Return the cells of an area as a network: nodes in their middles, joined to their neighbours.

    Parameters
    ----------
    text
        Resolution (0 to 15), a colon, and the area: a box, or a file of GeoJSON with polygons. A
        cell belongs to an area if its middle does.

    Raises
    ------
    InputError
        If the text or the file is not usable, or the area has no cell, or more than `MAX_CELLS`.

    Notes
    -----
    A position is located in the nearest cell, up to one cell beyond the outermost ones. About 5 µs
    a cell.
    """
    match = re.fullmatch(r"(\d{1,2}):(.+)", text)
    if match is None or int(match[1]) > _FINEST:
        raise InputError(_EXPECTED)
    names = np.array(_cells(_area(match[2]), int(match[1])), np.str_)
    lat, lon = np.array([h3.cell_to_latlng(name) for name in names.tolist()]).T
    u, v = _neighbours(names.tolist())
    network = from_arrays(
        node_id=names,
        lat=lat,
        lon=lon,
        u=u,
        v=v,
        length_m=haversine_m(lat[u], lon[u], lat[v], lon[v]),
        speed_mps=np.full(len(u), FASTEST_MPS),
        forward=np.ones(len(u), np.bool_),
        backward=np.ones(len(u), np.bool_),
    )
    return replace(network, reach_m=float(network.length_m.max(initial=0.0)))


def _area(text: str) -> dict[str, Any]:
    """Return the area of a box or a file, as GeoJSON."""
    if not text.endswith((".geojson", ".json")):
        return _box(text)
    try:
        polygons = _polygons(json.loads(Path(text).read_bytes()))
    except FileNotFoundError:
        raise InputError(f"there is no file {text}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{text} is not readable GeoJSON") from error
    if not polygons:
        raise InputError(f"{text} has no polygon")
    return {"type": "MultiPolygon", "coordinates": polygons}


def _polygons(found: Any) -> list[Any]:  # noqa: ANN401  of JSON
    """Return the coordinates of all polygons in a GeoJSON object."""
    match found:
        case {"type": "FeatureCollection", "features": [*features]}:
            return [each for feature in features for each in _polygons(feature)]
        case {"type": "Feature", "geometry": dict(geometry)}:
            return _polygons(geometry)
        case {"type": "Polygon", "coordinates": [*rings]}:
            return [rings]
        case {"type": "MultiPolygon", "coordinates": [*polygons]}:
            return polygons
    return []


def _box(text: str) -> dict[str, Any]:
    try:
        south, west, north, east = map(float, text.split(","))
    except ValueError:
        raise InputError(_EXPECTED) from None
    if not (-90 <= south < north <= 90 and -180 <= west < east <= 180):
        raise InputError("a box is south, west, north and east in degrees")
    corners = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [corners]}


def _cells(area: dict[str, Any], resolution: int) -> list[str]:
    """Return the names of the cells of an area, sorted; they are counted coarsely first."""
    cells: list[str] = []
    for coarse in range(resolution + 1):
        try:
            cells = h3.geo_to_cells(area, coarse)
        except (ValueError, TypeError, IndexError) as error:
            raise InputError("the area is not a polygon in degrees") from error
        expected = len(cells) * _CHILDREN ** (resolution - coarse)
        if len(cells) >= _ENOUGH and expected > MAX_CELLS:
            raise InputError(
                f"the area has about {expected:,} cells of resolution {resolution}, more than "
                f"{MAX_CELLS:,}; take a coarser one or a smaller area"
            )
    if not cells:
        raise InputError(f"the area has no cell of resolution {resolution}; take a finer one")
    return sorted(cells)


def _neighbours(cells: list[str]) -> tuple[IntArray, IntArray]:
    """Return each pair of cells that touch, as indices, the smaller one first."""
    number = {cell: i for i, cell in enumerate(cells)}
    pairs = [
        (i, j)
        for cell, i in number.items()
        for j in map(number.get, h3.grid_ring(cell, 1))
        if j is not None and i < j
    ]
    u, v = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    return u, v
