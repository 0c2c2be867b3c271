"""Benchmark of map matching: the nearest road of a position."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.spatial import cKDTree

from anonymizer.algorithms.geodesy import chord_of_m, unit_vectors
from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from benchmarks.crowds import Crowd, network_named
from benchmarks.tables import Table
from benchmarks.timing import agree, best_of, best_us, runs_for

_LIMIT_M = 100.0
_DISTANCES = 1_000_000
_SINGLE = 500


def snap(cases: Sequence[tuple[str, int]]) -> list[Table]:
    """Time `NodeLocator.locate` for networks and batch sizes."""
    columns = (
        "network",
        "positions",
        "batched",
        "k-d tree of nodes",
        "batched/k-d tree",
        "with headings/batched",
        "one by one",
        "brute force",
        "brute force/batched",
    )
    notes = (
        "k-d tree of nodes: SciPy's, the nearest node; roads are found by their whole length.",
        "brute force: numpy, the distance to every road, for a sample of the positions.",
        "one by one: the same grid of roads, one call for each position.",
        "with headings: every position states one, drawn at random.",
    )
    return [Table("Nearest road: µs a position", columns, [_row(*case) for case in cases], notes)]


def _row(source: str, n: int) -> tuple[str, int, float, float, float, float, float, float, float]:
    network = network_named(source)
    crowd = Crowd(network, n)
    locator = NodeLocator(network, limit_m=_LIMIT_M)
    tree, bound = cKDTree(unit_vectors(network.lat, network.lon)), chord_of_m(_LIMIT_M)
    batches = [crowd.positions(moves.node) for moves in crowd.steps(runs_for(n) + 1)]
    ours = best_of(lambda batch: locator.locate(*batch), batches) / n * 1e6
    heading = np.random.default_rng(0).uniform(0, 360, n)
    headed = best_of(lambda batch: locator.locate(*batch, heading), batches) / n * 1e6
    nodes = best_of(
        lambda batch: tree.query(unit_vectors(*batch), distance_upper_bound=bound), batches
    )
    nodes *= 1e6 / n

    lat, lon = crowd.positions(crowd.moves(n).node)
    few = min(n, max(1, _DISTANCES // network.n_roads))
    sample = lat[:few], lon[:few]
    agree(locator.locate(*sample).tolist(), _nearest(network, *sample).tolist())
    brute = best_us(lambda at: _nearest(network, *at), sample, n_records=few)
    some = min(n, _SINGLE)
    alone = best_us(partial(_one_by_one, locator), (lat[:some], lon[:some]), n_records=some)
    return source, n, ours, nodes, ours / nodes, headed / ours, alone, brute, brute / ours


def _nearest(network: RoadNetwork, lat: FloatArray, lon: FloatArray) -> IntArray:
    """Return the nearer end of the nearest road, on a network without shapes, by chords."""
    lines = network.lines()
    a = unit_vectors(network.lat[lines.tail], network.lon[lines.tail])
    step = unit_vectors(network.lat[lines.head], network.lon[lines.head]) - a
    q = unit_vectors(lat, lon)[:, None] - a
    share = np.clip((q * step).sum(axis=2) / (step**2).sum(axis=1), 0.0, 1.0)
    road = ((q - share[:, :, None] * step) ** 2).sum(axis=2).argmin(axis=1)
    first = share[np.arange(len(road)), road] <= 0.5
    node: IntArray = np.where(first, lines.tail[road], lines.head[road]).astype(np.int64)
    return node


def _one_by_one(locator: NodeLocator, at: tuple[FloatArray, FloatArray]) -> None:
    lat, lon = at
    for i in range(len(lat)):
        locator.locate(lat[i : i + 1], lon[i : i + 1])
