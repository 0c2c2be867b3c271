"""Several networks as one: each stays what it was, and positions are found on their own."""

from pathlib import Path

import numpy as np
import pytest

from anonymizer.algorithms.positions.map_matching import OFF_GRAPH, LayeredLocator, NodeLocator
from anonymizer.domain.arrays import Int8Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks import load_network

BOX = "46.40,6.50,46.45,6.65"
BOATS, HIKERS = f"h3:8:{BOX}", f"h3:9:{BOX}"
TOWN = """<osm version="0.6">
<node id="1" lat="46.41" lon="6.51"/><node id="2" lat="46.42" lon="6.53"/>
<node id="3" lat="46.43" lon="6.52"/><node id="4" lat="46.44" lon="6.60"/>
<way id="7"><nd ref="1"/><nd ref="2"/><nd ref="3"/><tag k="highway" v="residential"/></way>
<way id="8"><nd ref="1"/><nd ref="4"/><tag k="highway" v="footway"/></way>
<way id="9"><nd ref="3"/><nd ref="4"/><tag k="highway" v="footway"/></way>
</osm>"""


@pytest.fixture
def town(tmp_path: Path) -> str:
    path = tmp_path / "town.osm"
    path.write_text(TOWN)
    return str(path)


def test_each_network_is_there_as_it_was_and_no_road_leads_to_another(town: str) -> None:
    sources = [town, f"walk:{town}", BOATS]
    whole = load_network(" + ".join(sources))
    assert [layer.source for layer in whole.layers] == sources
    layer_of = np.repeat(
        np.arange(3), [layer.nodes.stop - layer.nodes.start for layer in whole.layers]
    )
    tail = np.repeat(np.arange(whole.n_nodes), np.diff(whole.first_arc_of))
    assert (layer_of[tail] == layer_of[whole.neighbour_of]).all()
    assert whole.n_components == sum(load_network(each).n_components for each in sources)
    for number, (layer, source) in enumerate(zip(whole.layers, sources, strict=True), 1):
        was, now = load_network(source), whole.alone(layer)
        assert now.node_id.tolist() == [f"{number}/{name}" for name in was.node_id.tolist()]
        assert_same_roads(now, was)
    assert len(set(whole.node_id.tolist())) == whole.n_nodes, "though two have the same junctions"


def assert_same_roads(now: RoadNetwork, was: RoadNetwork) -> None:
    for name in ("lat", "lon", "first_arc_of", "neighbour_of", "length_m", "speed_mps"):
        assert np.array_equal(getattr(now, name), getattr(was, name)), name
    assert [each.tolist() for each in now.lines()] == [each.tolist() for each in was.lines()]
    assert now.reach_m == was.reach_m


def test_a_position_is_found_on_the_network_of_its_device(town: str) -> None:
    sources = [town, BOATS, HIKERS]
    whole, rng = load_network(" + ".join(sources)), np.random.default_rng(0)
    lat, lon = rng.uniform(46.40, 46.45, 600), rng.uniform(6.50, 6.65, 600)
    layer: Int8Array = rng.integers(-1, 3, 600).astype(np.int8)
    found = LayeredLocator(whole, limit_m=100).locate(lat, lon, None, layer)
    assert (found[layer < 0] == OFF_GRAPH).all()
    for number, (each, source) in enumerate(zip(whole.layers, sources, strict=True)):
        rows = layer == number
        expected = NodeLocator(load_network(source), limit_m=100).locate(lat[rows], lon[rows])
        assert (expected == OFF_GRAPH).any() == (number == 0), "each has a reach of its own"
        assert np.array_equal(
            found[rows], np.where(expected < 0, OFF_GRAPH, expected + each.nodes.start)
        )


def test_positions_of_unknown_kind_are_not_found_on_the_nearest_of_several() -> None:
    locator = LayeredLocator(load_network(f"{BOATS} + {HIKERS}"), limit_m=100)
    with pytest.raises(ValueError, match="cannot be told apart"):
        locator.locate(np.array([46.42]), np.array([6.55]))


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (f"{BOATS} + {BOATS}", "names a network twice"),
        (f"{BOATS} + h3:9:nowhere", "h3:9:nowhere: is RESOLUTION:AREA"),
        (f"{BOATS} + ", "is no network"),
        (" + ".join(f"h3:7:46.40,6.50,46.45,6.{i}" for i in range(60, 77)), "more than 16"),
    ],
)
def test_networks_that_cannot_be_joined_are_refused(source: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        load_network(source)


def test_networks_without_coordinates_cannot_be_joined(tmp_path: Path) -> None:
    path = tmp_path / "roads_edges.csv"
    path.write_text("u,v\n1,2\n2,3\n")
    with pytest.raises(InputError, match="must all have coordinates"):
        load_network(f"{BOATS} + {tmp_path / 'roads'}")
