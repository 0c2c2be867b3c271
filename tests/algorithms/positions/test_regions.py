"""Atoms and regions: connected, within bounds, dependent only on the set of atoms."""

from collections.abc import Sequence
from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.atoms import (
    Atoms,
    cut_into_atoms,
    cut_into_levels,
    stack_levels,
)
from anonymizer.algorithms.positions.regions import cover
from anonymizer.algorithms.positions.spanning_forest import road_metres, spanning_forest
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from tests import naive
from tests.examples import many
from tests.graphs import network_of, networks, two_islands

CITY = load_network("city:400")
MANY = 1000


def nodes_of(atoms: Atoms) -> list[set[int]]:
    return [set(atoms.node[a:b].tolist()) for a, b in pairwise(atoms.first_node_of.tolist())]


Member = tuple[int, int]
"""Level of the atom of a member, and its node."""


def regions_of_atoms(
    network: RoadNetwork,
    cuts: Sequence[Atoms],
    groups: Sequence[Sequence[Member]],
    *,
    max_nodes: int = MANY,
) -> list[list[int]]:
    members = np.array([m for group in groups for m in group], np.int64).reshape(-1, 2)
    first, node = cover(
        network,
        stack_levels(cuts, network, times=range(1, len(cuts) + 1)),
        np.cumsum([0, *map(len, groups)], dtype=np.int64),
        members[:, 1].astype(np.int32),
        members[:, 0].copy(),
        max_nodes=max_nodes,
    )
    return [node[a:b].tolist() for a, b in pairwise(first.tolist())]


def regions(
    network: RoadNetwork, atoms: Atoms, groups: Sequence[Sequence[int]], *, max_nodes: int = MANY
) -> list[list[int]]:
    """Return the regions of groups whose members are all told as atoms of one level."""
    members = [[(0, v) for v in group] for group in groups]
    return regions_of_atoms(network, [atoms], members, max_nodes=max_nodes)


World = tuple[RoadNetwork, list[Atoms], list[list[Member]]]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a network, its atoms at two levels, and groups of members in them."""
    network = draw(networks(max_nodes=11))
    forest, small = spanning_forest(network), draw(st.integers(1, 3))
    cuts = [cut_into_atoms(forest, min_nodes=small + more) for more in (0, draw(st.integers(1, 3)))]
    members = [(i, v) for i, cut in enumerate(cuts) for v in np.flatnonzero(cut.at >= 0).tolist()]
    if not members:
        return network, cuts, []
    group = st.lists(st.sampled_from(members), min_size=1, max_size=5)
    return network, cuts, draw(st.lists(group, max_size=4))


def atoms_in(cuts: Sequence[Atoms], group: Sequence[Member]) -> list[set[int]]:
    """Return the nodes of the atom of each member."""
    pieces = [nodes_of(cut) for cut in cuts]
    return [pieces[i][cuts[i].at[v]] for i, v in group]


@given(networks(), st.integers(1, 5))
def test_every_node_belongs_to_one_atom_or_its_component_is_too_small_for_one(
    network: RoadNetwork, min_nodes: int
) -> None:
    atoms = cut_into_atoms(spanning_forest(network), min_nodes=min_nodes)
    nodes = nodes_of(atoms)
    sizes = np.bincount(network.component_of)
    for v, a in enumerate(atoms.at.tolist()):
        assert (a < 0) == (sizes[network.component_of[v]] < min_nodes)
        assert a < 0 or v in nodes[a]


@given(networks(), st.integers(1, 5))
def test_an_atom_is_connected_and_enough_nodes_belong_to_it(
    network: RoadNetwork, min_nodes: int
) -> None:
    atoms = cut_into_atoms(spanning_forest(network), min_nodes=min_nodes)
    graph = naive.graph_of(network).to_undirected()
    for a, nodes in enumerate(nodes_of(atoms)):
        assert nx.is_connected(graph.subgraph(nodes))
        # A device at a node that is only a connector of this atom belongs to another atom.
        assert (atoms.at == a).sum() >= min_nodes


def test_an_atom_covers_as_much_road_as_required() -> None:
    metres = road_metres(CITY)
    atoms = cut_into_atoms(
        spanning_forest(CITY), min_nodes=2, metres_at=metres, min_metres=2 * metres.mean() * 4
    )
    assert all(metres[list(nodes)].sum() >= 8 * metres.mean() for nodes in nodes_of(atoms))
    assert (atoms.at >= 0).all()


@given(worlds())
@many(3)
def test_a_region_contains_the_atom_of_each_member_at_its_own_level_and_is_connected(
    world: World,
) -> None:
    network, cuts, groups = world
    graph = naive.graph_of(network).to_undirected()
    for group, region in zip(groups, regions_of_atoms(network, cuts, groups), strict=True):
        assert region == sorted(set(region))
        assert set(region) >= set().union(*atoms_in(cuts, group))
        components = {int(network.component_of[v]) for _, v in group}
        assert nx.number_connected_components(graph.subgraph(region)) == len(components)


@given(worlds())
def test_a_region_of_adjacent_or_overlapping_atoms_has_no_other_node(world: World) -> None:
    network, cuts, groups = world
    graph = naive.graph_of(network).to_undirected()
    for group, region in zip(groups, regions_of_atoms(network, cuts, groups), strict=True):
        ends = set().union(*atoms_in(cuts, group))
        if nx.is_connected(graph.subgraph(ends)):
            assert set(region) == ends


@given(worlds(), st.data())
@many(2)
def test_a_region_depends_only_on_the_set_of_atoms(world: World, data: st.DataObject) -> None:
    network, cuts, groups = world

    def otherwise(group: list[Member]) -> list[Member]:
        """Return other members in the same atoms, in another order."""
        inside = [
            [(i, w) for w in np.flatnonzero(cuts[i].at == cuts[i].at[v]).tolist()] for i, v in group
        ]
        first = [data.draw(st.sampled_from(members)) for members in inside]
        every = [member for members in inside for member in members]
        more = data.draw(st.lists(st.sampled_from(every), max_size=4))
        return data.draw(st.permutations([*first, *more]))

    others = [otherwise(group) for group in groups]
    assert regions_of_atoms(network, cuts, others) == regions_of_atoms(network, cuts, groups)


def test_the_connectors_do_not_reveal_which_member_is_in_which_atom() -> None:
    # There are many shortest paths of equal length; a search from elsewhere finds another.
    grid = load_network("grid:12x12")
    atoms = cut_into_atoms(spanning_forest(grid), min_nodes=4)
    rng = np.random.default_rng(5)
    for _ in range(50):
        group = rng.choice(144, 4, replace=False)
        assert regions(grid, atoms, [group.tolist()]) == regions(
            grid, atoms, [rng.permutation(group).tolist()]
        )


@given(worlds(), st.integers(1, 12))
def test_a_group_that_would_need_more_than_the_cap_gets_no_region(
    world: World, max_nodes: int
) -> None:
    network, cuts, groups = world
    whole = regions_of_atoms(network, cuts, groups)
    found = regions_of_atoms(network, cuts, groups, max_nodes=max_nodes)
    assert found == [region if len(region) <= max_nodes else [] for region in whole]


def test_the_search_for_a_connector_gives_up_beyond_a_distance() -> None:
    path = network_of(500, [(v, v + 1) for v in range(499)])
    atoms = cut_into_atoms(spanning_forest(path), min_nodes=1)
    assert regions(path, atoms, [[0, 499], [7]], max_nodes=3) == [[], [7]]
    assert regions(path, atoms, [[499, 0], [7]]) == [list(range(500)), [7]]


def test_members_in_several_components_give_a_region_of_as_many_parts() -> None:
    network = two_islands()
    atoms = cut_into_atoms(spanning_forest(network), min_nodes=2)
    [region] = regions(network, atoms, [[4, 6]])
    assert set(region) >= {4, 5, 6}
    assert 7 not in region


def test_adjacent_atoms_need_no_connector() -> None:
    path = network_of(8, [(v, v + 1) for v in range(7)])
    atoms = cut_into_atoms(spanning_forest(path), min_nodes=4)
    assert regions(path, atoms, [[0, 7]]) == [list(range(8))]


@given(worlds())
@many(3)
def test_connectors_are_within_the_bound_of_mehlhorn(world: World) -> None:
    network, cuts, groups = world
    graph = naive.graph_of(network).to_undirected()
    for group, region in zip(groups, regions_of_atoms(network, cuts, groups), strict=True):
        if len({int(network.component_of[v]) for _, v in group}) > 1:
            continue
        ends = set().union(*atoms_in(cuts, group))
        parts = nx.number_connected_components(graph.subgraph(ends))
        best = fewest_between(graph, ends)
        # Mehlhorn: a spanning tree of shortest paths has at most 2 (1 - 1 / parts) times the
        # links of the best tree. Each path may be longer by the one hop within a round.
        links = best + parts - 1
        assert len(region) - len(ends) <= 2 * (1 - 1 / parts) * links


def fewest_between(graph: "nx.Graph[int]", ends: set[int]) -> int:
    """Return the smallest number of nodes that joins pieces of a graph, by trying all sets."""
    others = sorted(set(graph) - ends)
    for n in range(len(others) + 1):
        for some in combinations(others, n):
            if nx.is_connected(graph.subgraph(ends | set(some))):
                return n
    raise AssertionError("the pieces are in one component")


@pytest.mark.parametrize("n_groups", [0, 2000])
def test_the_buffer_fits_no_group_and_many(n_groups: int) -> None:
    atoms = cut_into_atoms(spanning_forest(CITY), min_nodes=4)
    some = regions(CITY, atoms, [[v % 400, (7 * v) % 400] for v in range(n_groups)])
    assert len(some) == n_groups
    assert all(some)


def test_levels_whose_atoms_are_too_large_are_left_out_and_the_lowest_never_is() -> None:
    forest = spanning_forest(CITY)

    def times(max_nodes: float) -> list[float]:
        cut = cut_into_levels(CITY, forest, min_nodes=6, max_nodes=max_nodes, sizes=(1, 2, 4, 8))
        assert len(cut.at) == len(cut.times)
        return list(cut.times)

    # The highest level stands for all that were left out: who is told there may have no company.
    assert times(np.inf) == times(48) == [1, 2, 4, 8]
    assert times(24) == [1, 2, 8]
    assert times(23) == [1, 8]
    assert times(1) == [8]


def test_atoms_of_a_length_of_road_count_as_the_nodes_that_it_takes() -> None:
    metres = road_metres(CITY)
    cut = cut_into_levels(
        CITY,
        spanning_forest(CITY),
        min_nodes=6,
        metres_at=metres,
        min_metres=12 * float(metres.mean()),
        max_nodes=24,
        sizes=(1, 2, 4),
    )
    assert cut.times.tolist() == [1, 4]


@pytest.mark.parametrize(("level", "node"), [(2, 0), (10**6, 0), (-1, 0), (0, 400), (0, -1)])
def test_a_level_or_a_node_that_does_not_exist_is_an_error_and_no_crash(
    level: int, node: int
) -> None:
    cuts = [cut_into_atoms(spanning_forest(CITY), min_nodes=n) for n in (5, 10)]
    with pytest.raises(ValueError, match=r"out of range|no place"):
        regions_of_atoms(CITY, cuts, [[(0, 1), (1, 5), (level, node)]])
