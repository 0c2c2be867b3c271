"""Cells for counting: a grid, H3, or zones of one's own, as sets of nodes of a network."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.longitudes import unwrapped, west_east
from anonymizer.errors import InputError
from anonymizer.extras import extra

if TYPE_CHECKING:
    from anonymizer.client.network import Geometry, Network


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells of a network.

    Attributes
    ----------
    network
        The network of the nodes.
    name
        Of each cell, shape (cells,).
    geometry
        Of each cell.
    cell_of
        Cell of each node, -1 for none, shape (nodes,).
    """

    network: "Network"
    name: tuple[str, ...]
    geometry: tuple["Geometry", ...]
    cell_of: IntArray

    def __repr__(self) -> str:
        """Return the number of cells."""
        return f"Cells({len(self):,} cells)"

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.name)

    @property
    def of_nodes(self) -> csr_array:
        """1 where a node is in a cell, shape (nodes, cells + 1); the last is outside of all."""
        n = len(self.cell_of)
        cell = np.where(self.cell_of < 0, len(self), self.cell_of)
        return csr_array((np.ones(n), (np.arange(n), cell)), shape=(n, len(self) + 1))


def grid(network: "Network", size_m: float) -> Cells:
    """Return the cells of a grid that have a node; see `Network.grid`."""
    if not size_m > 0:
        raise InputError("grid: size_m must be above 0")
    south, west = float(network.lat.min()), west_east(network.lon)[0]
    middle = np.radians((south + float(network.lat.max())) / 2)
    height = float(np.degrees(size_m / EARTH_RADIUS_M))
    width = height / max(float(np.cos(middle)), 1e-6)
    row = ((network.lat - south) / height).astype(np.int64)
    column = ((unwrapped(network.lon, west) - west) / width).astype(np.int64)
    place, cell_of = np.unique(np.stack([row, column]), axis=1, return_inverse=True)
    boxes = [
        _box(west + c * width, south + r * height, west + (c + 1) * width, south + (r + 1) * height)
        for r, c in place.T.tolist()
    ]
    names = tuple(f"r{r}c{c}" for r, c in place.T.tolist())
    return Cells(network, names, tuple(boxes), cell_of.astype(np.int64).ravel())


def h3_cells(network: "Network", resolution: int) -> Cells:
    """Return the H3 cells that have a node; see `Network.h3`."""
    with extra("h3"):
        import h3  # noqa: PLC0415  an extra

    if not 0 <= resolution <= 15:
        raise InputError("h3: the resolution must be 0 to 15")
    places = zip(network.lat.tolist(), network.lon.tolist(), strict=True)
    cells = [h3.latlng_to_cell(lat, lon, resolution) for lat, lon in places]
    names, cell_of = np.unique(np.array(cells, np.str_), return_inverse=True)
    outlines = [_ring([[lon, lat] for lat, lon in h3.cell_to_boundary(str(c))]) for c in names]
    return Cells(network, tuple(map(str, names)), tuple(outlines), cell_of.astype(np.int64))


def zones(network: "Network", polygons: Any, *, name: str) -> Cells:  # noqa: ANN401  of geopandas
    """Return zones of one's own; see `Network.zones`."""
    with extra("client"):
        import shapely  # noqa: PLC0415  an extra

    names, geometry = _read_zones(polygons, name)
    shapes = shapely.from_geojson([json.dumps(each) for each in geometry])
    cell_of = np.full(network.n_nodes, len(names), np.int64)
    node, zone = shapely.STRtree(shapes).query(
        shapely.points(network.lon, network.lat), predicate="intersects"
    )
    np.minimum.at(cell_of, node, zone)
    cell_of[cell_of == len(names)] = -1
    return Cells(network, tuple(names), tuple(geometry), cell_of)


def _read_zones(polygons: Any, name: str) -> "tuple[list[str], list[Geometry]]":  # noqa: ANN401
    if isinstance(polygons, str | PathLike):
        where = fspath(polygons)
        try:
            collection = json.loads(Path(where).read_bytes())
        except OSError as error:
            raise InputError(f"{where}: cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError):
            raise InputError(f"{where}: is not GeoJSON") from None
    else:
        where = "zones"
        if polygons.crs is not None and polygons.crs.to_epsg() != 4326:
            polygons = polygons.to_crs(4326)
        collection = json.loads(polygons.to_json())
    try:
        features = collection["features"]
        names = [str(each["properties"][name]) for each in features]
        geometry = [each["geometry"] for each in features]
    except (KeyError, TypeError):
        raise InputError(f"{where}: a zone has no property {name!r}") from None
    if not all(each and each["type"] in {"Polygon", "MultiPolygon"} for each in geometry):
        raise InputError(f"{where}: a zone is not a polygon")
    return names, geometry


def _box(west: float, south: float, east: float, north: float) -> "Geometry":
    return _ring([[west, south], [east, south], [east, north], [west, north]])


def _ring(corners: Sequence[Sequence[float]]) -> "Geometry":
    return {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
