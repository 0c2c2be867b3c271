from collections.abc import Sequence
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks import from_arrays
from anonymizer.networks.construction import MIN_LENGTH_M, UNKNOWN_LENGTH_M, index_of
from anonymizer.networks.node_ids import node_ids
from tests.networks.twins import arcs, as_digraph, as_graph, components, neighbours


class Road(NamedTuple):
    u: int
    v: int
    length_m: float = 1.0
    forward: bool = True
    backward: bool = True


def build(n_nodes: int, roads: Sequence[Road], **columns: Any) -> RoadNetwork:  # noqa: ANN401  any column
    given = {
        "node_id": np.arange(n_nodes),
        "lat": np.linspace(60.0, 60.1, n_nodes),
        "lon": np.linspace(24.0, 24.1, n_nodes),
        "u": np.array([road.u for road in roads], dtype=np.int64),
        "v": np.array([road.v for road in roads], dtype=np.int64),
        "length_m": np.array([road.length_m for road in roads], dtype=np.float64),
        "speed_mps": np.full(len(roads), 10.0),
        "forward": np.array([road.forward for road in roads], dtype=np.bool_),
        "backward": np.array([road.backward for road in roads], dtype=np.bool_),
    }
    return from_arrays(**(given | columns))


node = st.integers(0, 6)
networks = st.tuples(
    st.just(7),
    st.lists(
        st.builds(
            Road, node, node, st.sampled_from([100.0, 200.0, 350.0]), st.booleans(), st.booleans()
        ),
        max_size=15,
    ),
)


@given(networks)
def test_neighbours_stand_in_the_order_in_which_roads_first_name_them(
    source: tuple[int, list[Road]],
) -> None:
    network = build(*source)
    twin: nx.Graph[int] = nx.Graph()
    twin.add_nodes_from(range(network.n_nodes))
    twin.add_edges_from((road.u, road.v) for road in source[1] if road.u != road.v)
    for v in range(network.n_nodes):
        assert neighbours(network, v) == list(twin.adj[v])
    assert network.n_roads == twin.number_of_edges()


@given(networks)
def test_every_road_is_two_arcs_to_other_nodes_and_no_pair_comes_twice(
    source: tuple[int, list[Road]],
) -> None:
    pairs = [(u, v) for u, v, _, _ in arcs(build(*source))]
    assert sorted(pairs) == sorted((v, u) for u, v in pairs)
    assert len(set(pairs)) == len(pairs)
    assert all(u != v for u, v in pairs)


@given(networks)
def test_components_are_numbered_by_size_and_then_by_smallest_node(
    source: tuple[int, list[Road]],
) -> None:
    network = build(*source)
    expected = components(as_graph(network))
    assert network.component_of.tolist() == expected
    assert network.n_components == max(expected) + 1


@given(networks)
def test_driving_distances_are_those_of_the_roads_with_all_their_parallels(
    source: tuple[int, list[Road]],
) -> None:
    twin: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    twin.add_nodes_from(range(source[0]))
    for road in source[1]:
        if road.forward:
            twin.add_edge(road.u, road.v, weight=road.length_m)
        if road.backward:
            twin.add_edge(road.v, road.u, weight=road.length_m)
    driven = as_digraph(build(*source))
    for start in twin:
        assert nx.single_source_dijkstra_path_length(
            driven, start
        ) == nx.single_source_dijkstra_path_length(twin, start)


def test_the_shortest_of_parallel_roads_is_kept_where_none_is_closed() -> None:
    network = build(2, [Road(0, 1, 5.0), Road(1, 0, 3.0), Road(0, 1, 4.0)])
    assert arcs(network) == [(0, 1, 3.0, True), (1, 0, 3.0, True)]


def test_a_longer_road_that_may_be_driven_goes_before_a_shorter_one_that_may_not() -> None:
    network = build(2, [Road(0, 1, 2.0, backward=False), Road(0, 1, 9.0)])
    assert arcs(network) == [(0, 1, 2.0, True), (1, 0, 9.0, True)]


def test_two_opposite_one_way_roads_are_one_road_for_both_directions() -> None:
    network = build(2, [Road(0, 1, 2.0, backward=False), Road(1, 0, 3.0, backward=False)])
    assert arcs(network) == [(0, 1, 2.0, True), (1, 0, 3.0, True)]


def test_a_one_way_road_still_makes_its_ends_neighbours() -> None:
    network = build(2, [Road(0, 1, backward=False)])
    assert arcs(network) == [(0, 1, 1.0, True), (1, 0, 1.0, False)]


def test_an_unknown_length_is_the_great_circle() -> None:
    network = build(2, [Road(0, 1, np.nan)])
    np.testing.assert_allclose(network.length_m, haversine_m(60.0, 24.0, 60.1, 24.1))
    assert network.has_coordinates


def test_an_unknown_length_without_coordinates_counts_roads() -> None:
    nowhere = np.full(2, np.nan)
    network = build(2, [Road(0, 1, np.nan)], lat=nowhere, lon=nowhere)
    assert network.length_m.tolist() == [UNKNOWN_LENGTH_M] * 2
    assert not network.has_coordinates


def test_no_road_has_length_zero() -> None:
    assert build(2, [Road(0, 1, 0.0)]).length_m.tolist() == [MIN_LENGTH_M] * 2


def test_the_columns_of_the_caller_are_left_as_they_were() -> None:
    length_m = np.array([np.nan, 0.0])
    build(3, [Road(0, 1), Road(1, 2)], length_m=length_m)
    np.testing.assert_array_equal(length_m, [np.nan, 0.0])


def test_a_network_may_have_no_roads_and_even_no_nodes() -> None:
    assert build(3, []).component_of.tolist() == [0, 1, 2]
    empty = build(0, [])
    assert (empty.n_nodes, empty.n_roads, empty.n_components) == (0, 0, 0)


@pytest.mark.parametrize(
    ("column", "values", "complaint"),
    [
        ("node_id", [4, 4], "two nodes have the same id"),
        ("lat", [60.0, np.nan], "no latitude or longitude"),
        ("lon", [np.nan, np.nan], "no latitude or longitude"),
        ("lat", [60.0, np.inf], "no latitude or longitude"),
        ("lat", [60.0, 6_677_000.0], "EPSG:4326"),
        ("lon", [385_000.0, 24.0], "EPSG:4326"),
        ("length_m", [-1.0], "negative or infinite length"),
        ("length_m", [np.inf], "negative or infinite length"),
        ("speed_mps", [0.0], "no speed above 0"),
        ("speed_mps", [np.nan], "no speed above 0"),
    ],
)
def test_columns_that_cannot_be_a_network_are_refused(
    column: str, values: list[float], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        build(2, [Road(0, 1)], **{column: np.array(values)})


def test_the_message_about_a_position_does_not_tell_it() -> None:
    with pytest.raises(InputError) as refusal:
        build(2, [Road(0, 1)], lat=np.array([60.0, 123.456]))
    assert "123" not in str(refusal.value)


@pytest.mark.parametrize("names", [[3, 1, 2], ["3", "1", "2"], ["-9223372036854775808"]])
def test_ids_that_spell_integers_are_integers(names: list[object]) -> None:
    ids = node_ids(names)
    assert ids.dtype == np.int64
    assert ids.tolist() == [int(str(name)) for name in names]


@pytest.mark.parametrize(
    "names", [["007"], ["1", "a"], ["1_000"], ["9223372036854775808"], [(0, 1)], [1.5], [True]]
)
def test_all_other_ids_are_text_unchanged(names: list[object]) -> None:
    ids = node_ids(names)
    assert ids.dtype.kind == "U"
    assert ids.tolist() == [str(name) for name in names]


@given(st.lists(st.integers(-5, 5), unique=True, min_size=1), st.data())
def test_ids_are_found_where_they_stand(ids: list[int], data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.sampled_from(ids)))
    found = index_of(np.array(ids), np.array(wanted, dtype=np.int64))
    assert found.tolist() == [ids.index(name) for name in wanted]
    texts = np.array([str(name) for name in wanted], dtype=np.str_)
    assert index_of(np.array(ids), texts).tolist() == found.tolist()


def test_a_road_to_an_unknown_node_is_refused_by_name() -> None:
    for stranger in (0, 15, 99):
        with pytest.raises(InputError, match=f"node {stranger},"):
            index_of(np.array([10, 20]), np.array([20, stranger]))
