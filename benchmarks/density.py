"""Benchmark of the density map: the cost of a move."""

from collections.abc import Sequence

import numpy as np

from anonymizer.algorithms.positions.density import DensityMap
from benchmarks.crowds import Crowd, Moves, network_named
from benchmarks.peers import PlainDensity
from benchmarks.tables import Table
from benchmarks.timing import agree, best_of, runs_for
from tests import naive

_TENTH = 10
_PEER_RUNS = 3


def density(cases: Sequence[tuple[str, int]]) -> list[Table]:
    """Time `DensityMap.advance` for networks and numbers of devices."""
    columns = (
        "network",
        "devices",
        "all move",
        "a tenth moves",
        "dicts",
        "dicts/all",
    )
    notes = (
        "all devices, or a random tenth, move to a neighbouring node in one batch.",
        "dicts: the same counts in plain Python over networkx.",
    )
    return [Table("Density map: µs a move", columns, [_row(*case) for case in cases], notes)]


def _row(source: str, n: int) -> tuple[str, int, float, float, float, float]:
    crowd = Crowd(network_named(source), n)
    plain = PlainDensity(naive.graph_of(crowd.network))

    def move_all(moves: Moves) -> None:
        for device, ts, node in zip(*(column.tolist() for column in moves), strict=True):
            plain.move(device, ts, node)

    theirs = best_of(move_all, crowd.steps(_PEER_RUNS)) / n * 1e6
    ours_map = crowd.density()
    move_all(Moves(*_everyone(ours_map, n)))
    agree(ours_map.n_near.tolist(), [plain.n_near[v] for v in range(crowd.network.n_nodes)])

    runs = runs_for(n)
    ours = best_of(lambda moves: ours_map.advance(*moves), crowd.steps(runs + 1)) / n * 1e6
    few = max(1, n // _TENTH)
    tenths = (crowd.moves(few) for _ in range(runs + 1))
    tenth = best_of(lambda moves: ours_map.advance(*moves), tenths) / few * 1e6
    return source, n, ours, tenth, theirs, theirs / ours


def _everyone(known: DensityMap, n: int) -> Moves:
    """Return the moves that put all devices at their current nodes."""
    return Moves(np.arange(n, dtype=np.int32), known.version_of[:n], known.node_of[:n])
