"""Maps of the US DOT's privacy protection module: the roads around which its geofence lies.

A line is `edge,ID,POINT:POINT,way_type=motorway:way_id=CO-470`, where a point is
`ID;LATITUDE;LONGITUDE`. Ids of points may be used again for other places, so places count.

References
----------
.. [1] https://github.com/usdot-jpo-ode/jpo-cvdp, docs/configuration.md, "Map Files".
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks.construction import from_arrays
from anonymizer.networks.drawn_roads import MAX_SPACING_M, no_corners
from anonymizer.networks.speeds import free_flow_mps

_N_COLUMNS = 4
_Place = tuple[float, float]


class _Road(NamedTuple):
    """A straight stretch of road between two places, WGS84 degrees."""

    ends: tuple[_Place, _Place]
    kind: str


def load_edges(path: Path, *, max_spacing_m: float = MAX_SPACING_M) -> RoadNetwork:
    """Load a map; its nodes are numbered in the order in which edges name them.

    Every road is two-way. Roads longer than `max_spacing_m` get nodes in between (0: none).

    Raises
    ------
    InputError
        If the file is no such map, or has shapes that are not roads.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InputError("cannot be read") from None
    roads = [road for i, line in enumerate(lines[1:], start=2) for road in _roads_of(line, i)]
    number: dict[_Place, int] = {}
    ends = [[number.setdefault(place, len(number)) for place in road.ends] for road in roads]
    u, v = np.array(ends, np.int64).reshape(-1, 2).T
    lat, lon = np.array(list(number), np.float64).reshape(-1, 2).T
    both = np.ones(len(roads), np.bool_)
    return from_arrays(
        node_id=np.arange(len(number)),
        lat=lat,
        lon=lon,
        u=u,
        v=v,
        length_m=np.full(len(roads), np.nan),
        speed_mps=np.array([free_flow_mps(road.kind, None) for road in roads], np.float64),
        forward=both,
        backward=both,
        corners=no_corners(len(roads)),
        max_spacing_m=max_spacing_m,
    )


def _roads_of(line: str, number: int) -> Iterator[_Road]:
    """Yield the roads of a line."""
    if not line.strip():
        return
    parts = line.split(",")
    if len(parts) != _N_COLUMNS:
        raise InputError(f"line {number}: has {len(parts)} columns in place of {_N_COLUMNS}")
    shape, _, geography, attributes = parts
    if shape != "edge":
        raise InputError(f"line {number}: only edges are roads, not shapes of another kind")
    kind = dict(each.partition("=")[::2] for each in attributes.split(":")).get("way_type", "")
    try:
        places = [(float(lat), float(lon)) for _, lat, lon in _points(geography)]
    except ValueError:
        raise InputError(f"line {number}: is no row of points") from None
    for ends in pairwise(places):
        yield _Road(ends, kind)


def _points(geography: str) -> Iterator[list[str]]:
    return (point.split(";") for point in geography.split(":"))
