"""Networks in two tables, PREFIX_nodes and PREFIX_edges, as parquet or csv."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import NodeNames, RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks.construction import from_arrays, index_of
from anonymizer.networks.drawn_roads import (
    MAX_SPACING_M,
    Corners,
    Nodes,
    corners_of_lines,
    read_wkt,
)
from anonymizer.networks.edge_accounts import ISLAND, accounted, edges_became, with_odd_directions
from anonymizer.networks.implausible import without_null_island
from anonymizer.networks.node_ids import text_ids
from anonymizer.networks.speeds import (
    BACKWARD_ONLY,
    FORWARD_ONLY,
    KMH,
    free_flow_mps,
    is_odd_direction,
)
from anonymizer.steady_files import steady
from anonymizer.unfolding import (
    UnfoldingError,
    check_csv,
    check_frame,
    check_unfolding,
    parquet_source,
    polars_source,
)

_READ = {
    ".parquet": lambda path: pl.scan_parquet(parquet_source(path)),
    ".csv": lambda path: pl.scan_csv(polars_source(path), infer_schema=False),
}
_NODES = {"node_id": True, "lat": True, "lon": True, "load": False}
_EDGES = {
    "u": True,
    "v": True,
    "length_m": False,
    "oneway": False,
    "highway": False,
    "maxspeed": False,
    "speed_kmh": False,
    "geometry_wkt": False,
    "osm_way_id": False,
}
"""The columns that are read, and whether they are required. Others are ignored."""
_MOST_SHOWN = 20
"""Columns of a table in a message, and characters of each."""


def load_tables(
    edges_path: Path, nodes_path: Path | None, *, max_spacing_m: float = MAX_SPACING_M
) -> RoadNetwork:
    """Load a network from its table of edges and, if there is one, its table of nodes.

    Nodes have `node_id`, `lat`, `lon` and may have `load`, the devices expected there. Edges have
    `u`, `v` and may have `length_m`, `oneway` (as in OpenStreetMap, or boolean, in the direction u
    to v), `speed_kmh`, or else `maxspeed` and `highway`, `osm_way_id`, the way of OpenStreetMap,
    and `geometry_wkt`, a LINESTRING of longitude and latitude. If any edge has one, the others are
    straight, and roads longer than `max_spacing_m` get nodes in between (0: none). Every row is a
    road, whatever its class. Without `oneway`, every road is two-way. Without a table of nodes, the
    nodes are those that edges name, sorted, and the network has no coordinates. For missing lengths
    see `from_arrays`.

    Raises `InputError` if a file cannot be read, a column is missing or has values of another kind,
    or as for `from_arrays`.
    """
    edges = _read(edges_path, _EDGES)
    ends = _ids(edges["u"], edges["v"])
    nodes, load = _nodes(nodes_path, ends)
    placed = without_null_island(nodes, index_of(nodes.node_id, ends).reshape(2, -1).T)
    edges, nodes = edges.filter(pl.Series(placed.kept)), placed.nodes
    load = None if load is None else load[placed.node]
    u, v = placed.ends.T
    forward, backward = (each.to_numpy() for each in _directions(edges["oneway"]))
    corners = _corners(edges["geometry_wkt"], nodes, placed.ends)
    network = from_arrays(
        node_id=nodes.node_id,
        lat=nodes.lat,
        lon=nodes.lon,
        u=u,
        v=v,
        length_m=_numbers(edges["length_m"]),
        speed_mps=_speeds_mps(edges),
        forward=forward,
        backward=backward,
        corners=corners,
        max_spacing_m=max_spacing_m,
        way=_ways(edges["osm_way_id"]),
        load=load,
    )
    as_driven = np.where(forward[:, None], placed.ends, placed.ends[:, ::-1])
    became = edges_became(
        nodes, as_driven, corners, forward != backward, max_spacing_m=max_spacing_m
    )
    became[ISLAND] = int((~placed.kept).sum())
    n_odd = sum(map(is_odd_direction, edges["oneway"].cast(pl.String).to_list()))
    return with_odd_directions(accounted(network, "edge", became), n_odd)


def _ways(column: pl.Series) -> IntArray | None:
    """Return the way of each road, 0 for none; None if the table has no ways."""
    if column.null_count() == len(column):
        return None
    way: IntArray = column.cast(pl.Int64, strict=False).fill_null(0).to_numpy()
    return np.maximum(way, 0)


def _corners(geometry: pl.Series, nodes: Nodes, ends: IntArray) -> Corners | None:
    """Return the corners of all roads; None if the table draws none."""
    if geometry.null_count() == len(geometry):
        return None
    lines = geometry.cast(pl.String).fill_null("").to_list()
    return corners_of_lines(*read_wkt(lines), nodes, ends)


def _nodes(path: Path | None, named: NDArray[Any]) -> tuple[Nodes, FloatArray | None]:
    """Return the nodes of the table, else those that roads name, and the load at each if stated."""
    if path is None:
        node_id = np.unique(named)
        nowhere = np.full(len(node_id), np.nan)
        return Nodes(node_id, nowhere, nowhere), None
    nodes = _read(path, _NODES)
    load = None if nodes["load"].null_count() == len(nodes) else _numbers(nodes["load"])
    return Nodes(_ids(nodes["node_id"]), _numbers(nodes["lat"]), _numbers(nodes["lon"])), load


def _advice(present: Sequence[str], columns: Iterable[str]) -> str:
    """Return what is there where a column is missing, and what to do."""
    other = next((each for each in ";\t|" if len(present) == 1 and each in present[0]), None)
    if other is None:
        there = ", ".join(name[:_MOST_SHOWN] for name in present[:_MOST_SHOWN])
        return f": it has {there}; rename what means {', '.join(columns)}"
    return f": its columns are separated by {other!r}; write commas, and numbers with points"


def _read(path: Path, columns: dict[str, bool]) -> pl.DataFrame:
    """Return exactly the requested columns; missing optional ones are filled with nulls."""
    try:
        with steady(path):
            return _columns(path, columns)
    except UnfoldingError as error:
        raise InputError(f"{path.name} {error}") from None
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path.name} is not readable as {path.suffix[1:]}") from error


def _columns(path: Path, columns: dict[str, bool]) -> pl.DataFrame:
    check_unfolding(path, columns)
    if path.suffix == ".csv":
        check_csv(path)
    table = _READ[path.suffix](path)
    present = table.collect_schema().names()
    needed = [name for name, required in columns.items() if required]
    missing = [name for name in needed if name not in present]
    if missing:
        raise InputError(f"{path.name} has no column {missing[0]!r}{_advice(present, needed)}")
    read = [
        pl.col(name) if name in present else pl.lit(None, dtype=pl.String).alias(name)
        for name in columns
    ]
    return check_frame(table.select(read).collect())


def _ids(*columns: pl.Series) -> NodeNames:
    """Return the ids of columns, one after the other, as numbers where all of them are integers.

    Else they are text, see `node_ids`.
    """
    for column in columns:
        if column.null_count():
            raise InputError(f"column {column.name!r} has empty cells")
    # Also of categories, which no other cast takes.
    texts = pl.concat([column.cast(pl.String).alias("") for column in columns])
    numbers = texts.cast(pl.Int64, strict=False)
    if (numbers.cast(pl.String) == texts).fill_null(value=False).all():
        return numbers.to_numpy()
    return text_ids(texts.to_numpy())


def _numbers(column: pl.Series) -> FloatArray:
    try:
        return column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    except pl.exceptions.PolarsError as error:
        raise InputError(f"column {column.name!r} is not a number everywhere") from error


def _directions(oneway: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return whether each road may be driven from u to v, and from v to u."""
    tag = oneway.cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("no")
    return ~tag.is_in(BACKWARD_ONLY), ~tag.is_in(FORWARD_ONLY)


def _speeds_mps(edges: pl.DataFrame) -> FloatArray:
    tags = zip(edges["highway"].cast(pl.String), edges["maxspeed"].cast(pl.String), strict=True)
    by_tags = np.fromiter((free_flow_mps(*tag) for tag in tags), np.float64, len(edges))
    stated = _numbers(edges["speed_kmh"]) * KMH
    return np.where(np.isfinite(stated) & (stated > 0), stated, by_tags)
