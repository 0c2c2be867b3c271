"""The published road network, as an analyst reads it: places of nodes and lines of roads."""

import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.algorithms.uneven_density import AreaHalves, halve
from anonymizer.client.cells import Cells, grid, h3_cells, zones
from anonymizer.domain.arrays import FloatArray, IntArray, starts_of
from anonymizer.domain.network import NodeIndex, NodeNames, RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.errors import InputError
from anonymizer.extras import extra
from anonymizer.networks.node_ids import node_ids
from anonymizer.networks.roads import roads_of
from anonymizer.unfolding import UnfoldingError, parquet_source

Geometry: TypeAlias = dict[str, Any]
"""Of GeoJSON: `type` and `coordinates`."""
_WKB_LINE = 2


@dataclass(frozen=True, eq=False)
class Network:
    """A road network whose nodes are named by the regions of releases.

    Attributes
    ----------
    version
        Every message about a region names it.
    node_id
        Names of the nodes, shape (nodes,).
    lat, lon
        WGS84 degrees of the nodes, shape (nodes,).
    u, v
        Nodes at both ends of each road, shape (roads,).
    length_m, speed_mps
        Length and free-flow speed of each road, shape (roads,).
    line
        Longitude and latitude of the points of each road, from `u` to `v`.
    """

    version: str
    node_id: NodeNames
    lat: FloatArray
    lon: FloatArray
    u: IntArray
    v: IntArray
    length_m: FloatArray
    speed_mps: FloatArray
    line: tuple[Sequence[Sequence[float]], ...]

    def __repr__(self) -> str:
        """Return version and size."""
        return f"Network({self.version}, {self.n_nodes:,} nodes, {self.n_roads:,} roads)"

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_id)

    @property
    def n_roads(self) -> int:
        """Number of roads."""
        return len(self.u)

    @cached_property
    def halves(self) -> AreaHalves:
        """The areas of the network and their halves."""
        return halve(*self.plane_m)

    @cached_property
    def plane_m(self) -> tuple[FloatArray, FloatArray]:
        """Metres of each node to the east and to the north, shape (nodes,) each."""
        east = np.cos(np.radians(self.lat.mean()))
        return (
            EARTH_RADIUS_M * np.radians(self.lon) * east,
            EARTH_RADIUS_M * np.radians(self.lat),
        )

    def grid(self, size_m: float) -> Cells:
        """Return square cells of a grid over the network, `size_m` wide; those with a node."""
        return grid(self, size_m)

    def h3(self, resolution: int = 9) -> Cells:
        """Return the H3 cells that contain a node.

        Raises
        ------
        MissingExtraError
            If the extra `h3` is not installed.
        """
        return h3_cells(self, resolution)

    def zones(self, polygons: Any, *, name: str) -> Cells:  # noqa: ANN401  of geopandas
        """Return zones of one's own, for example districts.

        Parameters
        ----------
        polygons
            A path to GeoJSON in degrees, or a GeoDataFrame. Of polygons that overlap, a node is in
            the first one.
        name
            The property or column that names a zone.

        Raises
        ------
        InputError
            If they cannot be read, or lack that property.
        MissingExtraError
            If the extra `client` is not installed.
        """
        return zones(self, polygons, name=name)

    def node_weights(self, spread: str) -> FloatArray:
        """Return how likely a device is at each node, up to a factor, shape (nodes,).

        `nodes`: equally. `roads`: by the length of road that is nearer to it than to any other
        node, which is half of the roads that end there.
        """
        if spread == "nodes":
            return np.ones(self.n_nodes)
        if spread != "roads":
            raise InputError('spread: must be "nodes" or "roads"')
        ends = np.concatenate([self.u, self.v])
        return np.bincount(ends, np.tile(self.length_m / 2, 2), self.n_nodes).astype(np.float64)

    def roads_inside(self, first_node_of: IntArray, node: IntArray) -> csr_array:
        """Return which roads have both ends in a region, shape (regions, roads), 1 where so.

        Parameters
        ----------
        first_node_of, node
            The nodes of each region in compressed sparse rows.
        """
        n_regions, road = len(first_node_of) - 1, np.arange(self.n_roads)
        inside = csr_array(
            (np.ones(len(node), np.int8), node, first_node_of), shape=(n_regions, self.n_nodes)
        )
        ends = csr_array(
            (
                np.ones(2 * self.n_roads, np.int8),
                (np.concatenate([self.u, self.v]), np.concatenate([road, road])),
            ),
            shape=(self.n_nodes, self.n_roads),
        )
        found = (inside @ ends).tocsr()
        found.data = (found.data == 2).astype(np.float64)
        found.eliminate_zeros()
        return found

    def regions(self, first_node_of: IntArray, node: IntArray) -> list[Geometry]:
        """Return each region as a MultiLineString: the roads between two of its nodes.

        A node without such a road is a line of no length. Parameters as of `roads_inside`.
        """
        roads = self.roads_inside(first_node_of, node)
        found = []
        for i in range(len(first_node_of) - 1):
            road = roads.indices[roads.indptr[i] : roads.indptr[i + 1]]
            nodes = node[first_node_of[i] : first_node_of[i + 1]]
            alone = np.setdiff1d(nodes, np.concatenate([self.u[road], self.v[road]]))
            lines = [self.line[r] for r in road.tolist()]
            lines += [[self._place(v), self._place(v)] for v in alone.tolist()]
            found.append({"type": "MultiLineString", "coordinates": lines})
        return found

    def roads(self) -> list[Geometry]:
        """Return each road as a LineString."""
        return [{"type": "LineString", "coordinates": line} for line in self.line]

    def _place(self, node: int) -> list[float]:
        return [float(self.lon[node]), float(self.lat[node])]


def read_network(
    source: "str | PathLike[str] | RoadNetwork | Network", *, named: Collection[str | None] = ()
) -> Network:
    """Read a network: a file of `anonymizer network export`, or what the gateway itself reads.

    Parameters
    ----------
    source
        `*.geojson` or `*.parquet` as exported; else a source or a network of
        `anonymizer.load_network`, which takes more time and must be what the gateway loads.
    named
        Versions that releases name: of what the gateway reads, junctions alone are taken if one of
        these is theirs (mode adka).

    Raises
    ------
    InputError
        If it cannot be read, or has no coordinates.
    """
    if isinstance(source, Network):
        return source
    if not isinstance(source, RoadNetwork):
        name = fspath(source)
        if name.endswith(".geojson"):
            return _from_geojson(Path(name))
        if name.endswith(".parquet"):
            return _from_geoparquet(Path(name))
        from anonymizer.networks import load_network  # noqa: PLC0415  few analysts have the source

        source = load_network(name)
    if any(named) and network_version(source) not in named:
        from anonymizer.networks.as_loaded import as_loaded  # noqa: PLC0415  likewise

        junctions = as_loaded(source)
        source = junctions if network_version(junctions) in named else source
    if not source.has_coordinates:
        raise InputError("the network has no coordinates, so nothing can be placed")
    roads, lines = roads_of(source), source.lines()
    points = np.column_stack([lines.lon, lines.lat])
    cuts = lines.first_point_of[1:-1]
    return Network(
        network_version(source),
        source.node_id,
        source.lat,
        source.lon,
        roads.u,
        roads.v,
        roads.length_m,
        roads.speed_mps,
        tuple(line.tolist() for line in np.split(points, cuts)),
    )


class _Geometry(msgspec.Struct, frozen=True):
    coordinates: Any


class _Properties(msgspec.Struct, frozen=True):
    kind: str
    node: int | str | None = None
    u: int | str | None = None
    v: int | str | None = None
    length_m: float = 0.0
    speed_mps: float = 0.0


class _Feature(msgspec.Struct, frozen=True):
    geometry: _Geometry
    properties: _Properties


class _Collection(msgspec.Struct, frozen=True):
    network: str
    features: list[_Feature]


def from_parts(version: str, parts: Iterable[bytes]) -> Network:
    """Return the network that the retained parts make up.

    Raises
    ------
    InputError
        If a part is not one, or of another version.
    """
    features: list[_Feature] = []
    for part in parts:
        try:
            collection = msgspec.json.decode(part, type=_Collection)
        except (msgspec.MsgspecError, RecursionError):
            raise InputError("a part of the published network cannot be read") from None
        if collection.network != version:
            raise InputError("the parts of the published network have different versions")
        features += collection.features
    return _from_features(version, features)


def _from_geojson(path: Path) -> Network:
    try:
        collection = msgspec.json.decode(path.read_bytes(), type=_Collection)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, RecursionError):
        raise InputError(f"{path}: is not a file of `anonymizer network export`") from None
    return _from_features(collection.network, collection.features)


def _from_features(version: str, features: Sequence[_Feature]) -> Network:
    nodes = [each for each in features if each.properties.kind == "node"]
    roads = [each for each in features if each.properties.kind == "road"]
    places = np.array([each.geometry.coordinates for each in nodes], np.float64).reshape(-1, 2)
    return _network(
        version,
        names=[each.properties.node for each in nodes],
        places=places,
        ends=[(each.properties.u, each.properties.v) for each in roads],
        length_m=[each.properties.length_m for each in roads],
        speed_mps=[each.properties.speed_mps for each in roads],
        lines=[each.geometry.coordinates for each in roads],
    )


def _network(
    version: str,
    *,
    names: Sequence[object],
    places: FloatArray,
    ends: Sequence[tuple[object, object]],
    length_m: Sequence[float],
    speed_mps: Sequence[float],
    lines: Sequence[Sequence[Sequence[float]]],
) -> Network:
    node_id = node_ids(names)
    index = NodeIndex(node_id)
    u = index.find(node_ids([u for u, _ in ends]))
    v = index.find(node_ids([v for _, v in ends]))
    if (u < 0).any() or (v < 0).any():
        raise InputError("the published network has a road to a node that it lacks")
    return Network(
        version,
        node_id,
        places[:, 1].copy(),
        places[:, 0].copy(),
        u,
        v,
        np.array(length_m, np.float64),
        np.array(speed_mps, np.float64),
        tuple(lines),
    )


def _from_geoparquet(path: Path) -> Network:
    with extra("tables"):
        import polars as pl  # noqa: PLC0415  an extra

    try:
        frame = pl.read_parquet(parquet_source(path))
        with path.open("rb") as file:
            version = pl.read_parquet_metadata(file)["network"]
        nodes = frame.filter(pl.col("kind") == "node")
        roads = frame.filter(pl.col("kind") == "road")
        return _network(
            version,
            names=nodes["node"].to_list(),
            places=np.array([struct.unpack("<BIdd", each)[2:] for each in nodes["geometry"]]),
            ends=roads.select("u", "v").rows(),
            length_m=roads["length_m"].to_list(),
            speed_mps=roads["speed_mps"].to_list(),
            lines=[_points(each) for each in roads["geometry"]],
        )
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (pl.exceptions.PolarsError, UnfoldingError, KeyError, struct.error, ValueError):
        raise InputError(f"{path}: is not a file of `anonymizer network export`") from None


def _points(line: bytes) -> list[list[float]]:
    """Return the points of a line in well-known binary."""
    _, kind, n = struct.unpack_from("<BII", line)
    if kind != _WKB_LINE:
        raise ValueError("is not a line")
    points: list[list[float]] = np.frombuffer(line, "<f8", 2 * n, 9).reshape(-1, 2).tolist()
    return points


def region_nodes(
    network: Network, regions: Sequence[Sequence[int | str]]
) -> tuple[IntArray, IntArray]:
    """Return the nodes of regions in compressed sparse rows: the first of each, and all.

    Raises
    ------
    InputError
        If the network lacks a node.
    """
    first = starts_of(np.array([len(region) for region in regions], np.int64))
    node = NodeIndex(network.node_id).find(node_ids([v for region in regions for v in region]))
    if (node < 0).any():
        raise InputError(
            f"a region has a node that network {network.version} lacks: take the network that the "
            "gateway publishes, or `anonymizer network export` of the gateway's network"
        )
    return first, node
