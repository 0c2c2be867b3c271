"""Benchmark of the region modes: the cost of a tick, and the size of regions."""

import time
from collections.abc import Sequence

import numpy as np

from anonymizer.domain.network import RoadNetwork
from anonymizer.pipeline.positions.tick.factory import Operator, cloaking_operator
from anonymizer.settings import Settings
from benchmarks.crowds import Crowd, network_named
from benchmarks.tables import Table

_MODES = ("adka", "snapshot", "session")
_TICKS = 75
_FIRST = 10  # for settling, compiling and filling caches; the rest is more than one epoch


def regions(cases: Sequence[tuple[str, int]]) -> list[Table]:
    """Time ticks of the operator in each mode, for networks and numbers of devices."""
    columns = (
        "network",
        "devices",
        "mode",
        "µs a position",
        "to adka",
        "worst tick, ms",
        "nodes/region",
        "nodes, as devices see it",
    )
    notes = (
        "every device reports each second and moves along a random road every ten seconds.",
        "mean over an epoch, including density, grouping, regions and verification.",
    )
    rows = [row for source, n in cases for row in _rows(network_named(source), source, n)]
    return [Table("Regions: µs a position", columns, rows, notes)]


def _rows(
    network: RoadNetwork, source: str, n: int
) -> list[tuple[str, int, str, float, float, float, float, float]]:
    rows = []
    bfs_us = 0.0
    for mode in _MODES:
        seconds, sizes, weights = _measure(_operator(mode, network), network, n)
        mean_us = float(np.mean(seconds)) / n * 1e6
        bfs_us = bfs_us or mean_us
        by_device = float(np.average(sizes, weights=weights))
        worst_ms = max(seconds) * 1e3
        rows.append(
            (source, n, mode, mean_us, mean_us / bfs_us, worst_ms, float(sizes.mean()), by_device)
        )
    return rows


def districts(cases: Sequence[tuple[str, int, Sequence[int]]]) -> list[Table]:
    """Compare regions and ticks of `session` for several numbers of districts."""
    columns = (
        "network",
        "devices",
        "districts",
        "ms a tick",
        "nodes/region",
        "to the first",
        "waiting",
    )
    rows = []
    for source, n, numbers in cases:
        network = network_named(source)
        whole = None
        for number in numbers:
            operator = _operator("session", network, districts=number)
            seconds, sizes, _ = _measure(operator, network, n)
            mean = float(sizes.mean())
            whole = whole or mean
            tick_ms = float(np.mean(seconds)) * 1e3
            rows.append((source, n, number, tick_ms, mean, mean / whole, operator.n_waiting))
    return [Table("Districts: nodes a region", columns, rows, ("traffic as for the regions.",))]


def _operator(mode: str, network: RoadNetwork, *, districts: int = 1) -> Operator:
    region = {"mode": mode, "districts": districts}
    return cloaking_operator(Settings.model_validate({"region": region}), network)


def _measure(
    operator: Operator, network: RoadNetwork, n: int
) -> tuple[list[float], "np.ndarray[tuple[int], np.dtype[np.int64]]", list[int]]:
    """Return the seconds of each tick, and the nodes and members of all published groups."""
    seconds, n_nodes, n_members = [], [], []
    crowd = Crowd(network, n)
    slot, _, node = crowd.moves(n)
    for number in range(_TICKS):
        moved = crowd.moves(n // 10)
        node[moved.slot] = moved.node
        now = float(moved.ts[0])
        began = time.perf_counter()
        result = operator.tick(slot, np.full(n, now), node.copy(), now=now)
        if number >= _FIRST:
            seconds.append(time.perf_counter() - began)
            n_nodes.append(np.diff(result.release.first_node_of))
            n_members.append(np.diff(result.release.first_member_of))
    return seconds, np.concatenate(n_nodes), np.concatenate(n_members).tolist()
