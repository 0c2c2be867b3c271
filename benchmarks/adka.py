"""Benchmark of ADKA: the regions of the devices that report."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from anonymizer.algorithms.positions.cloaks import AdkaCloak
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.arrays import Int32Array
from benchmarks.crowds import Crowd, network_named
from benchmarks.peers import MAX_NODES, RULE, PlainCloak
from benchmarks.tables import Table
from benchmarks.timing import agree, best_us, runs_for

_TENTH = 10
_SAMPLE = 1000


def adka(cases: Sequence[tuple[str, int]]) -> list[Table]:
    """Time `AdkaCloak` for networks and numbers of devices."""
    columns = (
        "network",
        "devices",
        "nodes/region",
        "all report",
        "a tenth reports",
        "networkx",
        "networkx/all",
    )
    notes = (
        "choice of k, regions and release, not density; devices at one node share a region.",
        f"networkx: `tests.naive`, one region for each position, on at most {_SAMPLE:,} positions.",
    )
    return [Table("ADKA: µs a position", columns, [_row(*case) for case in cases], notes)]


def _row(source: str, n: int) -> tuple[str, int, float, float, float, float, float]:
    crowd = Crowd(network_named(source), n)
    known = crowd.density()
    cloak = AdkaCloak(RULE, max_nodes=MAX_NODES, rotate_s=300)

    def regions_of(slot: Int32Array) -> None:
        cloak.cloak(known, slot, now=0.0)

    everyone = np.arange(n, dtype=np.int32)
    ours = best_us(regions_of, everyone, n_records=n, runs=runs_for(n))
    tenth = everyone[::_TENTH]
    few = best_us(regions_of, tenth, n_records=len(tenth), runs=runs_for(n))

    plain = plain_copy(known, n)
    population = plain.population()
    sample = everyone[:: max(1, n // _SAMPLE)][:_SAMPLE]
    roots = known.node_of[sample].tolist()

    release = cloak.cloak(known, sample, now=0.0).release
    regions = [release.node[i:j].tolist() for i, j in pairwise(release.first_node_of)]
    grown = [plain.region(root, population) for root in set(roots)]
    agree(sorted(regions), sorted(sorted(region) for region in grown if isinstance(region, list)))

    def grow_each(roots: list[int]) -> None:
        for root in roots:
            plain.region(root, population)

    theirs = best_us(grow_each, roots, n_records=len(roots))
    return source, n, len(release.node) / release.n_groups, ours, few, theirs, theirs / ours


def plain_copy(known: DensityMap, n: int) -> PlainCloak:
    """Return a peer that knows the same devices."""
    plain = PlainCloak(known.network)
    for device, node in enumerate(known.node_of[:n].tolist()):
        plain.density.move(device, 0.0, node)
    return plain
