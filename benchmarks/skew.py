"""Skew of districts on recorded traces: the positions in the busiest one, by how it was cut.

`python -m benchmarks.skew NETWORK EARLIER LATER` cuts the network by the positions of one trace,
and counts those of the other: `san_francisco` of `$ANONYMIZER_DATA`, and two traces of its taxis.
"""

import sys
from collections.abc import Sequence

import numpy as np
from rich.console import Console

from anonymizer.algorithms.positions.districts import cut_into_districts, expected_load, tails
from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.files.traces import read_trace
from anonymizer.networks import load_network
from benchmarks.tables import Cell, Table, as_rich

_NUMBERS = (8, 16, 32, 64, 128)
_SNAP_M = 200.0
LEAST_NODES = 24
"""As the factory asks for, with the default settings."""


def skew(
    network: RoadNetwork, earlier: FloatArray, later: FloatArray, *, numbers: Sequence[int]
) -> Table:
    """Compare cuts of a network, given the positions at each node, earlier and later."""
    loads = {
        "nodes": np.ones(network.n_nodes),
        "junctions within 500 m": expected_load(network),
        "positions": earlier,
    }
    tail, rows = tails(network), list[tuple[Cell, ...]]()
    for n in numbers:
        for name, load in loads.items():
            of = cut_into_districts(network, n, load=load, least_nodes=LEAST_NODES).of_node
            carried = np.sort(np.bincount(of, weights=later, minlength=n))[::-1] / later.sum()
            crossed = int((of[tail] != of[network.neighbour_of]).sum()) // 2
            rows.append((n, name, carried[0] * n, carried[1] * n, carried[0], crossed))
    return Table(
        "Skew of districts",
        ("districts", "cut by", "busiest to mean", "second", "share of the busiest", "roads cut"),
        rows,
        (f"the busiest node has {later.max() / later.sum():.1%} of the positions.",),
    )


def main(network_file: str, earlier: str, later: str) -> None:
    """Print the table of two recorded traces."""
    network = load_network(network_file)
    nodes = NodeLocator(network, limit_m=_SNAP_M)

    def counted(file: str) -> FloatArray:
        trace = read_trace(file)
        node = nodes.locate(trace.lat, trace.lon, None)
        return np.bincount(node[node >= 0], minlength=network.n_nodes).astype(np.float64)

    table = skew(network, counted(earlier), counted(later), numbers=_NUMBERS)
    Console(width=160).print(as_rich(table))


if __name__ == "__main__":
    main(*sys.argv[1:])
