"""The regular grid of the seed's experiments."""

import re

import numpy as np

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks.construction import from_arcs
from anonymizer.networks.local import lat_lon
from anonymizer.networks.speeds import free_flow_mps

SPACING_M = 100.0
MAX_NODES = 5_000_000
"""Larger grids are a typing error."""


def grid(size: str) -> RoadNetwork:
    """Return the grid of a size such as `5x5`, rows first.

    Ids are row-major, row 0 in the north; neighbours stand in the order north, west, south,
    east, as in the seed's worked example. Roads are residential, 100 m long, two-way; the
    grid is centred on the origin of `anonymizer.networks.local`.
    """
    match = re.fullmatch(r"([1-9]\d{0,6})x([1-9]\d{0,6})", size)
    if match is None or int(match[1]) * int(match[2]) > MAX_NODES:
        raise InputError(f"a grid is ROWSxCOLUMNS, such as 5x5, of at most {MAX_NODES:,} nodes")
    n_rows, n_columns = int(match[1]), int(match[2])
    row, column = np.divmod(np.arange(n_rows * n_columns), n_columns)
    # Columns of these tables are the four sides, in the order of the adjacency.
    to_row = row[:, None] + np.array([-1, 0, 1, 0])
    to_column = column[:, None] + np.array([0, -1, 0, 1])
    inside = (to_row >= 0) & (to_row < n_rows) & (to_column >= 0) & (to_column < n_columns)
    tail, _ = np.nonzero(inside)
    head = (to_row * n_columns + to_column)[inside]
    lat, lon = lat_lon(
        (column - (n_columns - 1) / 2) * SPACING_M, ((n_rows - 1) / 2 - row) * SPACING_M
    )
    return from_arcs(
        node_id=row * n_columns + column,
        lat=lat,
        lon=lon,
        tail=tail,
        head=head,
        length_m=np.full(len(tail), SPACING_M),
        speed_mps=np.full(len(tail), free_flow_mps("residential", None)),
        drivable=np.ones(len(tail), dtype=np.bool_),
    )
