"""Groups under `region.max_nodes`: who cannot be published is left out before groups are formed."""

from collections import Counter
from itertools import islice, pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.atoms import Company, Levels, cut_into_levels
from anonymizer.algorithms.positions.cloaks import Epochs
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.spanning_forest import spanning_forest
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from tests.algorithms.positions.cloaks.driving import Drive, Shared, session_cloak, traffic
from tests.examples import many
from tests.graphs import networks
from tests.naive import graph_of

GRID = load_network("grid:12x12")
CITY = load_network("city:2000")
RULE = DensityRule(steps=(4, 10), values=(8, 5, 2))
CAP = 240
N = 120


def cut(network: RoadNetwork, cap: int, *, min_nodes: int = 4) -> Levels:
    forest = spanning_forest(network)
    return cut_into_levels(network, forest, min_nodes=min_nodes, cap=cap)


def windows(levels: Levels) -> list[set[int]]:
    """Return the nodes of each window, connectors included."""
    first = levels.first_node_of[levels.first_atom_of[-1] :].tolist()
    return [set(levels.node[a:b].tolist()) for a, b in pairwise(first)]


def sent(seed: int, *, without: int = -1, beat_s: float = 6.0, k_extra: int = 0) -> Drive:
    """Return what is sent about a fleet of which one device is not there."""
    cloak = session_cloak(
        CITY,
        rule=RULE,
        epochs=Epochs(4, 2.0),
        min_nodes=4,
        max_nodes=CAP,
        pace=Pace(ttl_s=40, epoch_s=20),
        beat_s=beat_s,
        k_extra=k_extra,
        company=Company(3, 4),
        sizes=(1, 2, 4, 8, 16, 32),
    )
    drive = Drive(CITY, cloak, ttl_s=40)
    for now, where in enumerate(islice(traffic(CITY, N, seed=seed, says=0.8), 65)):
        drive.tick({d: v for d, v in where.items() if d != without}, now=now)
    return drive


def members(released: list[Shared]) -> set[int]:
    return {member for group in released for member in group.members}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("beat_s", "k_extra"), [(6.0, 0), (0.0, 2)])
def test_a_device_that_the_cap_keeps_from_being_published_changes_nothing_that_is_sent(
    seed: int, beat_s: float, k_extra: int
) -> None:
    whole = sent(seed, beat_s=beat_s, k_extra=k_extra)
    never = sorted(set(range(N)) - members(whole.released))
    assert len(whole.released) > 20
    assert never, "the case is empty"
    for device in never[:3]:
        one_less = sent(seed, without=device, beat_s=beat_s, k_extra=k_extra)
        assert one_less.released == whole.released


@pytest.mark.parametrize("seed", range(3))
def test_every_group_is_published_as_it_is_formed_and_stays_below_the_cap(seed: int) -> None:
    drive = sent(seed)
    assert max(len(group.region) for group in drive.released) <= CAP
    formed = Counter(group.versions[0] for group in drive.released)
    serials = sorted(formed)
    begin = {s: min(g.now for g in drive.released if g.versions[0] == s) for s in serials}
    of_second = Counter(int(now) for now in begin.values())
    for serial in serials:
        assert serial >> 20 == begin[serial], "its first release is of the second of its forming"
        assert serial % (1 << 20) < of_second[int(begin[serial])], "and no number is missing"


@many(3)
@given(networks(max_nodes=60), st.integers(4, 70), st.integers(1, 4))
def test_windows_are_connected_cover_the_network_and_keep_the_cap_where_places_do(
    network: RoadNetwork, cap: int, min_nodes: int
) -> None:
    levels = cut(network, cap, min_nodes=min_nodes)
    if cap >= network.n_nodes:
        assert np.array_equal(levels.at, cut(network, network.n_nodes, min_nodes=min_nodes).at)
        return
    found = windows(levels)
    assert set().union(*found) == set(range(network.n_nodes))
    graph = nx.Graph(graph_of(network))
    for window in found:
        assert nx.is_connected(graph.subgraph(window))
    smallest = np.diff(cut(network, network.n_nodes, min_nodes=min_nodes).first_node_of)
    if smallest[: len(np.unique(levels.at[0]))].max() <= cap:
        assert max(map(len, found)) <= cap


def test_windows_of_a_city_are_half_as_large_as_the_cap_at_least() -> None:
    for cap in (60, 100, 300, 700):
        sizes = np.bincount(cut(CITY, cap).at[-1])
        assert cap / 2 <= sizes.mean() <= cap


def test_a_group_that_outgrows_the_cap_is_retired_for_all_its_members_at_once() -> None:
    drive = Drive(GRID, session_cloak(GRID, max_nodes=12, pace=Pace(ttl_s=100, epoch_s=60)))
    here, there, *_ = map(sorted, windows(cut(GRID, 12, min_nodes=1)))
    [born, other] = drive.tick({0: here[0], 1: here[1], 2: there[0], 3: there[1]}, now=0)
    assert sorted(born.members + other.members) == [0, 1, 2, 3]
    far = 143 if here[0] < 70 else 0
    [left] = drive.tick({0: here[0], 1: far, 2: there[0], 3: there[1]}, now=1)
    assert set(left.members) == {2, 3}, "and the other group lives on"
    assert drive.outcomes == ["SUPPRESSED__REGION_TOO_LARGE"] * 2 + ["PUBLISHED"] * 2
    [left] = drive.tick({0: here[0], 1: here[1], 2: there[0]}, now=2)
    assert set(left.members) == {2, 3}, "it does not come back when it would fit"
    again = drive.tick({0: here[0], 1: here[1], 2: there[0], 3: there[1]}, now=60)
    assert members(again) == {0, 1, 2, 3}
    assert not {life for g in again for life in g.lives} & {*born.lives, *other.lives}


def test_who_has_too_little_company_below_the_cap_is_told_that_it_is_the_cap() -> None:
    here, there, *_ = map(sorted, windows(cut(GRID, 12, min_nodes=1)))
    drive = Drive(GRID, session_cloak(GRID, max_nodes=12))
    [group] = drive.tick({0: here[0], 1: here[1], 2: there[0]}, now=0)
    assert group.members == (0, 1)
    assert drive.outcomes == ["PUBLISHED", "PUBLISHED", "SUPPRESSED__REGION_TOO_LARGE"]


def test_where_no_place_is_below_the_cap_nobody_is_published() -> None:
    drive = Drive(GRID, session_cloak(GRID, min_nodes=20, max_nodes=19))
    assert drive.tick({0: 0, 1: 0, 2: 1}, now=0) == []
    assert set(drive.outcomes) == {"SUPPRESSED__REGION_TOO_LARGE"}
