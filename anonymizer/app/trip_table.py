"""Trips of a recorded trace as a table: what `anonymizer anonymize` takes."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.algorithms.positions.protection import Zones
from anonymizer.algorithms.positions.recorded_trips import Trips, trips_of
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.positions.trip_routes import route_arcs
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.protection import TripRule
from anonymizer.domain.trace import Trace, check_one_network
from anonymizer.errors import InputError
from anonymizer.pipeline.positions.decode.headings import headings_in

_DIGITS = 5
"""Of a degree: a metre, which is more than a receiver knows."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TripTable:
    """True trips, to be anonymized."""

    frame: pl.DataFrame
    """`device_id`, `start` (text, UTC), `duration_s`, `from_lat`, `from_lon`, `to_lat`, `to_lon`
    and `length_m`, by time; on a network also `from_cell`, `to_cell` and `roads`."""
    n_devices: int
    """How many devices have a trip."""
    n_cut: int
    n_private: int
    """`n_cut`, `n_private`: trips left out: cut by the recording, and with an end in a privacy
    zone."""


@dataclass(frozen=True, slots=True)
class OnNetwork:
    """How trips are described by cells and roads, too."""

    network: RoadNetwork
    """With coordinates."""
    limit_m: float
    """Positions farther than this from every road have no node."""
    n_cells: int
    """Cells into which the network is cut, as for the trips that a gateway publishes. Halves of one
    area follow each other, so that a range of cells is a place."""


def trip_table(
    trace: Trace, rule: TripRule, zones: Zones, on: OnNetwork | None = None
) -> TripTable:
    """Return the trips of a trace; see `trips_of`.

    Raises `InputError` if the trace names nodes, which are no places by themselves.
    """
    if trace.node is not None:
        raise InputError("trips: the trace must have lat and lon")
    if on is not None:
        check_one_network(on.network)
    trips = trips_of(trace, rule)
    ends = np.concatenate([trips.first, trips.last])
    private = zones.contains(trace.lat[ends], trace.lon[ends]).reshape(2, -1).any(axis=0)
    first, last = trips.first[~private], trips.last[~private]
    device_of = trace.device_of[first]
    placed = {} if on is None else _placed(trace, trips, np.flatnonzero(~private), on)
    frame = pl.DataFrame(
        {
            "device_id": np.array(trace.device_id, np.str_)[device_of],
            "start": (trace.ts[first] * 1000).astype("datetime64[ms]"),
            "duration_s": np.rint(trace.ts[last] - trace.ts[first]).astype(np.int64),
            "from_lat": trace.lat[first].round(_DIGITS),
            "from_lon": trace.lon[first].round(_DIGITS),
            "to_lat": trace.lat[last].round(_DIGITS),
            "to_lon": trace.lon[last].round(_DIGITS),
            "length_m": np.rint(trips.length_m[~private]).astype(np.int64),
            **placed,
        },
        schema_overrides={"device_id": pl.String},
    ).with_columns(pl.col("start").dt.to_string("%Y-%m-%dT%H:%M:%SZ"))
    return TripTable(
        frame.sort("start", maintain_order=True),
        n_devices=len(np.unique(device_of)),
        n_cut=trips.n_cut,
        n_private=int(private.sum()),
    )


def _placed(
    trace: Trace, trips: Trips, chosen: IntArray, on: OnNetwork
) -> dict[str, list[int | None] | list[str]]:
    """Return the cells of the ends of some trips, and their roads as `from>to from>to`."""
    network = on.network
    node = NodeLocator(network, limit_m=on.limit_m).locate(trace.lat, trace.lon, headings_in(trace))
    cell_at = compact_parts(network, on.n_cells).tolist()
    ends = {"from_cell": trips.first[chosen], "to_cell": trips.last[chosen]}
    cells = {
        name: [cell_at[at] if at >= 0 else None for at in node[rows].tolist()]
        for name, rows in ends.items()
    }
    order = np.lexsort((trace.ts, trace.device_of))
    place_of = np.empty(len(order), np.int64)
    place_of[order] = np.arange(len(order))
    spans = zip(*(place_of[rows].tolist() for rows in ends.values()), strict=True)
    routes = [_roads(network, node[order[first : last + 1]]) for first, last in spans]
    return {**cells, "roads": routes}


def _roads(network: RoadNetwork, node: Int32Array) -> str:
    arcs = route_arcs(network, node)
    tail = np.searchsorted(network.first_arc_of, arcs, "right") - 1
    ends = (network.node_id[tail].tolist(), network.node_id[network.neighbour_of[arcs]].tolist())
    return " ".join(f"{a}>{b}" for a, b in zip(*ends, strict=True))
