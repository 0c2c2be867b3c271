"""Benchmark of verification: the independent check of groups before publishing."""

from collections.abc import Sequence

import numpy as np

from anonymizer.algorithms.positions.cloaks import AdkaCloak
from anonymizer.algorithms.positions.verification import groups_that_hold
from anonymizer.domain.arrays import BoolArray, Int32Array
from anonymizer.domain.release import Release
from benchmarks.crowds import Crowd, network_named
from benchmarks.peers import MAX_NODES, RULE, groups_hold
from benchmarks.tables import Table
from benchmarks.timing import agree, best_us, runs_for
from tests import naive

_TENTH = 10


def verification(cases: Sequence[tuple[str, int]]) -> list[Table]:
    """Time `groups_that_hold` on releases of ADKA, for networks and numbers of devices."""
    columns = (
        "network",
        "devices",
        "groups",
        "all report",
        "a tenth reports",
        "sets",
        "sets/all",
    )
    notes = ("sets: one pass over the same groups in plain Python.",)
    return [Table("Verification: µs a position", columns, [_row(*case) for case in cases], notes)]


def _row(source: str, n: int) -> tuple[str, int, int, float, float, float, float]:
    network = network_named(source)
    known = Crowd(network, n).density()
    node_of = known.node_of
    cloak = AdkaCloak(RULE, max_nodes=MAX_NODES, rotate_s=300)
    everyone: Int32Array = np.arange(n, dtype=np.int32)

    def verify(release: Release) -> BoolArray:
        return groups_that_hold(release, node_of, n_nodes=network.n_nodes, k_floor=RULE.floor)

    release = cloak.cloak(known, everyone, now=0.0).release
    ours = best_us(verify, release, n_records=n, runs=runs_for(n))
    tenth = cloak.cloak(known, everyone[::_TENTH], now=0.0).release
    few = best_us(verify, tenth, n_records=len(everyone[::_TENTH]), runs=runs_for(n))

    groups, places = _groups(release), node_of.tolist()
    agree(verify(release).tolist(), groups_hold(groups, places, RULE.floor))
    theirs = best_us(lambda g: groups_hold(g, places, RULE.floor), groups, n_records=n)
    return source, n, release.n_groups, ours, few, theirs, theirs / ours


def _groups(release: Release) -> list[naive.Group]:
    node, member = release.node.tolist(), release.member.tolist()
    first_node, first_member = release.first_node_of.tolist(), release.first_member_of.tolist()
    return [
        naive.Group(
            k,
            node[first_node[g] : first_node[g + 1]],
            member[first_member[g] : first_member[g + 1]],
        )
        for g, k in enumerate(release.k.tolist())
    ]
