"""Benchmark of map matching: the nearest node of a position."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from benchmarks.crowds import Crowd, network_named
from benchmarks.tables import Table
from benchmarks.timing import agree, best_of, best_us, runs_for

_LIMIT_M = 150.0
_DISTANCES = 1_000_000
_SINGLE = 500


def snap(cases: Sequence[tuple[str, int]]) -> list[Table]:
    """Time `NodeLocator.locate` for networks and batch sizes."""
    columns = (
        "network",
        "positions",
        "batched",
        "one by one",
        "brute force",
        "brute force/batched",
    )
    notes = (
        "brute force: numpy, the haversine distance to every node, for a sample of the positions.",
        "one by one: the same k-d tree, one call for each position.",
    )
    return [Table("Nearest node: µs a position", columns, [_row(*case) for case in cases], notes)]


def _row(source: str, n: int) -> tuple[str, int, float, float, float, float]:
    network = network_named(source)
    crowd = Crowd(network, n)
    locator = NodeLocator(network, limit_m=_LIMIT_M)
    batches = (crowd.positions(moves.node) for moves in crowd.steps(runs_for(n) + 1))
    ours = best_of(lambda batch: locator.locate(*batch), batches) / n * 1e6

    lat, lon = crowd.positions(crowd.moves(n).node)
    few = min(n, max(1, _DISTANCES // network.n_nodes))
    sample = lat[:few], lon[:few]
    agree(locator.locate(*sample).tolist(), _nearest(network, *sample).tolist())
    brute = best_us(lambda at: _nearest(network, *at), sample, n_records=few)
    some = min(n, _SINGLE)
    alone = best_us(partial(_one_by_one, locator), (lat[:some], lon[:some]), n_records=some)
    return source, n, ours, alone, brute, brute / ours


def _nearest(network: RoadNetwork, lat: FloatArray, lon: FloatArray) -> IntArray:
    distance = haversine_m(lat[:, None], lon[:, None], network.lat, network.lon)
    nearest: IntArray = np.argmin(distance, axis=1)
    return nearest


def _one_by_one(locator: NodeLocator, at: tuple[FloatArray, FloatArray]) -> None:
    lat, lon = at
    for i in range(len(lat)):
        locator.locate(lat[i : i + 1], lon[i : i + 1])
