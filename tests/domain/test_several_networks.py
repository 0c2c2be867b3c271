"""A network that consists of several: each alone, and which of them a trace is about."""

from dataclasses import replace

import numpy as np
import pytest

from anonymizer.algorithms.positions.map_matching import OFF_GRAPH, LayeredLocator
from anonymizer.domain.network_version import network_version
from anonymizer.domain.trace import Trace, check_one_network, layers_of
from anonymizer.errors import InputError
from anonymizer.networks import load_network

ROADS, PATHS = "grid:5x5", "grid:5x7"
BOTH = load_network(f"{ROADS} + {PATHS}")


def trace(*networks: str, device_of: tuple[int, ...] = (0, 1)) -> Trace:
    nowhere = np.zeros(len(device_of))
    return Trace(
        device_id=("a", "b"),
        device_of=np.array(device_of),
        ts=np.arange(float(len(device_of))),
        lat=nowhere,
        lon=nowhere,
        network=np.array(networks) if networks else None,
    )


def test_each_layer_alone_is_the_network_that_it_was() -> None:
    for layer, source in zip(BOTH.layers, (ROADS, PATHS), strict=True):
        alone, own = BOTH.alone(layer), load_network(source)
        assert layer.source == source
        assert (alone.n_nodes, alone.n_roads) == (own.n_nodes, own.n_roads)
        assert alone.neighbour_of.tolist() == own.neighbour_of.tolist()
        assert alone.lat.tolist() == own.lat.tolist()
        assert not alone.layers
    assert network_version(BOTH) != network_version(BOTH.alone(BOTH.layers[0]))


def test_a_layer_keeps_the_corners_of_its_own_roads() -> None:
    drawn = load_network("city:50 + city:60")
    for layer, source in zip(drawn.layers, ("city:50", "city:60"), strict=True):
        alone, own = drawn.alone(layer), load_network(source)
        assert (alone.shapes is None) == (own.shapes is None)
        if alone.shapes is not None and own.shapes is not None:
            assert alone.shapes.first_corner_of.tolist() == own.shapes.first_corner_of.tolist()
            assert alone.shapes.lat.tolist() == own.shapes.lat.tolist()


def test_a_position_is_found_on_the_network_of_its_device_alone() -> None:
    locator = LayeredLocator(BOTH, limit_m=30)
    lat, lon = np.repeat(BOTH.lat[[0]], 3), np.repeat(BOTH.lon[[0]], 3)
    node = locator.locate(lat, lon, np.full(3, 90.0), np.array([0, 1, -1], np.int8))
    assert node[0] == 0
    assert BOTH.layers[1].nodes.start <= node[1] < BOTH.layers[1].nodes.stop
    assert node[2] == OFF_GRAPH
    assert locator.locate(lat, lon, None, np.ones(3, np.int8)).tolist() == [node[1]] * 3
    with pytest.raises(ValueError, match="cannot be told apart"):
        locator.locate(lat, lon)
    one = LayeredLocator(load_network(ROADS), limit_m=30)
    assert one.locate(lat, lon).tolist() == [0, 0, 0]


def test_a_trace_says_on_which_network_its_devices_move() -> None:
    found = layers_of(trace(ROADS, PATHS), BOTH)
    assert found is not None
    assert found.tolist() == [0, 1]
    assert layers_of(trace(), load_network(ROADS)) is None
    check_one_network(load_network(ROADS))


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (trace(), "needs a column network"),
        (trace(ROADS, "city:100"), "none of grid:5x5, grid:5x7"),
        (trace(ROADS, PATHS, PATHS, device_of=(0, 1, 0)), "two networks for a device"),
    ],
)
def test_a_trace_that_does_not_say_it_is_refused(wrong: Trace, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        layers_of(wrong, BOTH)
    with pytest.raises(InputError, match="several networks"):
        check_one_network(replace(BOTH))
