"""Layers of lines, as GIS programs keep roads: GeoPackage, GeoJSON and shapefile, by GeoPandas."""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.extras import extra
from anonymizer.networks.drawn_roads import MAX_SPACING_M
from anonymizer.networks.edge_accounts import NOWHERE
from anonymizer.networks.graphs import tag_values, way_number
from anonymizer.networks.osm_ways import OsmWays
from anonymizer.networks.speeds import DRIVE, Profile

LINE_ENDINGS = (".gpkg", ".geojson", ".shp")
_LAYERS = ("edges", "lines", "roads")
"""The layer of roads of OSMnx, of ogr2ogr and of people."""
_IDS = ("osm_id", "osm_way_id", "osmid", "way")
_OTHER_TAG = re.compile(r'"([^"]+)"=>"([^"]*)"')
_GEOFABRIK = {"F": "yes", "T": "-1", "B": "no"}
"""Its values of `oneway`: forward, to the beginning, both."""
_WGS84 = 4326
_Ends: TypeAlias = tuple[Any, Any]
_Place: TypeAlias = tuple[float, float]
_DIGITS = 7
"""Of degrees, a centimetre: lines that end so near to each other meet."""


def load_lines(
    path: Path, *, max_spacing_m: float = MAX_SPACING_M, profile: Profile = DRIVE
) -> RoadNetwork:
    """Load roads from a file of lines, which meet where they share a point.

    Of a file with several layers, the one that is named edges, lines or roads is read, or the only
    one. Columns, each optional: `highway` (or `fclass`; without it every line is a road), `oneway`,
    `maxspeed`, `junction`, `osm_id`; others may stand in `other_tags`, as ogr2ogr writes them.
    Integers `u` and `v`, as OSMnx has them, name the ends of a line. Coordinates of other reference
    systems are converted.

    Raises
    ------
    InputError
        If the file cannot be read or has no such layer, or as for `OsmWays.network`.
    MissingExtraError
        If the extra `client` is not installed.
    """
    with extra("client"):
        import geopandas as gpd  # noqa: PLC0415  an extra

    frame = _roads_of(gpd, path)
    if frame.crs is not None and frame.crs.to_epsg() != _WGS84:
        frame = frame.to_crs(_WGS84)
    n_all = len(frame)
    frame = frame[~(frame.geometry.isna() | frame.geometry.is_empty)]
    points = frame.geometry.get_coordinates()
    frame = frame.drop(index=points.index[~np.isfinite(points).all(axis=1)].unique())
    n_nowhere = n_all - len(frame)
    frame = frame.explode()
    frame = frame[frame.geom_type == "LineString"]
    lines, rows = frame.geometry.to_numpy(), frame.drop(columns=frame.geometry.name)
    ways = OsmWays(profile)
    drawn = [[(round(y, _DIGITS), round(x, _DIGITS)) for x, y, *_ in each.coords] for each in lines]
    records = rows.to_dict("records")
    named = _ends_as_drawn([(each.get("u"), each.get("v")) for each in records], drawn)
    for number, (row, ends, places) in enumerate(zip(records, named, drawn, strict=True), start=1):
        refs = [ways.point(*place) for place in places]
        for at, name in zip((0, -1), ends, strict=True):
            if isinstance(name, int):
                refs[at] = name
                ways.node(name, *places[at])
        ways.way(number, _tags(row, profile), refs, way=_id(row))
    left_out = {NOWHERE: n_nowhere}
    return ways.network(max_spacing_m=max_spacing_m, unit="line", left_out=left_out)


def _ends_as_drawn(ends: Sequence[_Ends], drawn: Sequence[Sequence[_Place]]) -> Iterator[_Ends]:
    """Yield the names of the first and the last point of each line.

    OSMnx's undirected edges may be drawn from `v` to `u`. A node is where most of its lines end.
    """
    n_ends: Counter[tuple[Any, _Place]] = Counter()
    for names, places in zip(ends, drawn, strict=True):
        n_ends.update((name, place) for name in names for place in (places[0], places[-1]))
    for (u, v), places in zip(ends, drawn, strict=True):
        first, last = places[0], places[-1]
        as_named = n_ends[u, first] + n_ends[v, last]
        yield (u, v) if as_named >= n_ends[u, last] + n_ends[v, first] else (v, u)


def _roads_of(gpd: Any, path: Path) -> Any:  # noqa: ANN401  a module and its frame, untyped
    """Return the layer of roads as a GeoDataFrame."""
    try:
        found = gpd.list_layers(path)
        drawn = found[found["geometry_type"].astype("str").str.contains("Line|Unknown")]
        names = drawn["name"].tolist()
        wanted = [name for name in _LAYERS if name in names] or names
        if not wanted or (len(wanted) > 1 and wanted == names):
            told = ", ".join(names) or "none"
            raise InputError(
                f"needs one layer of lines, or one named edges, lines or roads: {told}"
            )
        with np.errstate(invalid="ignore"):  # of NaN, which is counted
            return gpd.read_file(path, layer=wanted[0])
    except (RuntimeError, OSError, ValueError) as error:
        raise InputError(f"is not readable as {path.suffix[1:]}") from error


def _tags(row: Mapping[Hashable, Any], profile: Profile) -> dict[str, str]:
    """Return the tags of a line; without a column of classes it is a road."""
    tags = dict(_OTHER_TAG.findall(str(row.get("other_tags"))))
    for key in (profile.key, "fclass", "maxspeed", "oneway", "junction", "area"):
        values = tag_values(row.get(key))
        if values and values[0].lower() not in {"nan", "none", ""}:
            tags[key] = values[0]
    if "fclass" in row:
        tags[profile.key] = tags.pop("fclass", "")
        tags["oneway"] = _GEOFABRIK.get(tags.get("oneway", ""), "no")
    elif profile.key not in row:
        kinds = profile.speed_kmh
        tags.setdefault(profile.key, "road" if "road" in kinds else next(iter(kinds)))
    return tags


def _id(row: Mapping[Hashable, Any]) -> int:
    """Return the way of OpenStreetMap that a line states, else 0."""
    return next((way for way in (way_number(row.get(key)) for key in _IDS) if way), 0)
