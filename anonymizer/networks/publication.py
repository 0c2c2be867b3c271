"""Publication of a road network: GeoJSON and GeoParquet of its nodes and roads, and their parts.

Regions name nodes of the network; with these files a reader can draw them.

References
----------
.. [1] RFC 7946, "The GeoJSON Format", 2016.
.. [2] "GeoParquet Specification 1.1.0", Open Geospatial Consortium, 2024.
"""

import json
import struct
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from anonymizer.domain.longitudes import west_east
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.errors import InputError
from anonymizer.extras import extra
from anonymizer.networks.roads import roads_of
from anonymizer.pipeline.ports import PART_BYTES

_DIGITS = 7
"""Decimals of a coordinate, 1 cm."""
_POINT, _LINE = 1, 2
"""Types of geometries in well-known binary."""


class NetworkAbout(msgspec.Struct, frozen=True):
    """Description of a published network, as retained on the topic of the network."""

    v: int
    network: str
    """Version of the network; every message about a region names it."""
    n_nodes: int
    n_roads: int
    bbox: tuple[float, float, float, float]
    """West, south, east and north, in degrees."""
    parts: int
    """Number of parts on the topics behind this one; 0: they cannot be published."""
    problem: str | msgspec.UnsetType = msgspec.UNSET
    """Why there are no parts."""

    def encoded(self) -> bytes:
        """Return the description as JSON."""
        return msgspec.json.encode(self)


def features(network: RoadNetwork) -> Iterator[bytes]:
    """Yield a GeoJSON feature for each node and then for each road.

    Raises `InputError` if the network has no coordinates.
    """
    _check(network)
    names = network.node_id.tolist()
    place = _places(network)
    encode = msgspec.json.Encoder().encode
    for v, name in enumerate(names):
        yield encode(
            {
                "type": "Feature",
                "id": name,
                "geometry": {"type": "Point", "coordinates": place[v]},
                "properties": {"kind": "node", "node": name},
            }
        )
    columns: list[list[Any]] = [column.tolist() for column in roads_of(network)]
    for line, u, v, length_m, speed_mps, forward, backward, way in zip(
        _drawn(network), *columns, strict=True
    ):
        yield encode(
            {
                "type": "Feature",
                "geometry": {"type": "LineString", "coordinates": line},
                "properties": {
                    "kind": "road",
                    "u": names[u],
                    "v": names[v],
                    "length_m": round(length_m, 2),
                    "speed_mps": round(speed_mps, 2),
                    "forward": forward,
                    "backward": backward,
                    **({"way": way} if way else {}),
                },
            }
        )


def geojson(network: RoadNetwork) -> bytes:
    """Return the whole network as one GeoJSON FeatureCollection that names its version."""
    return _collection(list(features(network)), {"network": network_version(network)})


def parts(
    network: RoadNetwork, *, most_bytes: int = PART_BYTES
) -> tuple[NetworkAbout, list[bytes]]:
    """Return the description of a network, and FeatureCollections of limited size that make it up.

    `most_bytes`: largest size of a part, unless a single node or road needs more.

    Raises `InputError` if the network has no coordinates.
    """
    version = network_version(network)
    n_most = network.n_nodes + network.n_roads
    room = most_bytes - len(_collection([], _part_head(version, n_most, n_most)))
    groups: list[list[bytes]] = [[]]
    used = 0
    for feature in features(network):
        if groups[-1] and used + len(feature) + 1 > room:
            groups.append([])
            used = 0
        groups[-1].append(feature)
        used += len(feature) + 1
    about = NetworkAbout(
        v=1,
        network=version,
        n_nodes=network.n_nodes,
        n_roads=network.n_roads,
        bbox=_box(network),
        parts=len(groups),
    )
    return about, [
        _collection(group, _part_head(version, i, len(groups))) for i, group in enumerate(groups)
    ]


def geoparquet(network: RoadNetwork) -> bytes:
    """Return the whole network as GeoParquet: a row for each node, and then for each road.

    Columns: `kind` (node or road), `node`, `u`, `v` (names as text), `length_m`, `speed_mps`,
    `forward`, `backward`, `way` (if the source has ways of OpenStreetMap) and `geometry`
    (well-known binary); those that do not apply are null. The metadata of the file has the version
    under `network`.

    Raises
    ------
    InputError
        If the network has no coordinates.
    MissingExtraError
        If the extra `tables` is not installed.
    """
    _check(network)
    with extra("tables"):
        import polars as pl  # noqa: PLC0415  an extra

    names = network.node_id.astype(np.str_)
    roads = roads_of(network)
    place = _places(network)
    nodes_frame = pl.DataFrame(
        {
            "kind": ["node"] * network.n_nodes,
            "node": names.tolist(),
            "geometry": [_wkb_point(at) for at in place],
        }
    )
    roads_frame = pl.DataFrame(
        {
            "kind": ["road"] * network.n_roads,
            "u": names[roads.u].tolist(),
            "v": names[roads.v].tolist(),
            "length_m": roads.length_m.round(2),
            "speed_mps": roads.speed_mps.round(2),
            "forward": roads.forward,
            "backward": roads.backward,
            **(
                {}
                if network.way_of is None
                else {"way": [way or None for way in roads.way.tolist()]}
            ),
            "geometry": [_wkb_line(line) for line in _drawn(network)],
        }
    )
    frame = pl.concat([nodes_frame, roads_frame], how="diagonal")
    column = {
        "encoding": "WKB",
        "geometry_types": ["Point", "LineString"],
        "bbox": list(_box(network)),
    }
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    out = BytesIO()
    frame.write_parquet(out, metadata={"geo": json.dumps(geo), "network": network_version(network)})
    return out.getvalue()


def _check(network: RoadNetwork) -> None:
    if not network.has_coordinates:
        raise InputError("the network has no coordinates, so there is nothing to draw")


def _places(network: RoadNetwork) -> list[list[float]]:
    """Return longitude and latitude of each node."""
    places: list[list[float]] = np.column_stack([network.lon, network.lat]).round(_DIGITS).tolist()
    return places


def _drawn(network: RoadNetwork) -> Iterator[list[list[float]]]:
    """Yield the points of each road, in the order of `roads_of`."""
    lines = network.lines()
    points = np.column_stack([lines.lon, lines.lat]).round(_DIGITS).tolist()
    for start, end in pairwise(lines.first_point_of.tolist()):
        yield points[start:end]


def _box(network: RoadNetwork) -> tuple[float, float, float, float]:
    west, east = west_east(network.lon)
    corners = (west, network.lat.min(), east, network.lat.max())
    west, south, east, north = (round(float(corner), _DIGITS) for corner in corners)
    return west, south, east, north


def _part_head(version: str, part: int, n_parts: int) -> dict[str, Any]:
    """Return what tells parts of this cut of the network from those of another one."""
    return {"network": version, "part": part, "of": n_parts}


def _collection(found: Sequence[bytes], head: dict[str, Any]) -> bytes:
    fields = msgspec.json.encode({"type": "FeatureCollection", **head})
    return fields[:-1] + b',"features":[' + b",".join(found) + b"]}"


def _wkb_point(at: Sequence[float]) -> bytes:
    return struct.pack("<BIdd", 1, _POINT, *at)


def _wkb_line(points: Sequence[Sequence[float]]) -> bytes:
    numbers = [degrees for point in points for degrees in point]
    return struct.pack(f"<BII{len(numbers)}d", 1, _LINE, len(points), *numbers)
