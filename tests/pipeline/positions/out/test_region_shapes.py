"""Shapes of regions: true to the network, and a function of the nodes alone."""

import json
from typing import Any

import h3
import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.arrays import Int32Array
from anonymizer.networks import load_network
from anonymizer.pipeline.positions.out.region_shapes import RegionShapes, shapes_of

NETWORK = load_network("grid:6x6")
KINDS = ("nodes", "roads", "h3", "bbox")


def shapes(kind: str) -> RegionShapes:
    return shapes_of(NETWORK, kind)


def shape(kind: str, *nodes: int) -> dict[str, Any]:
    made = shapes(kind).of(np.array(nodes, np.int32))
    found: dict[str, Any] = json.loads(msgspec.json.encode(made))
    return found


def at(node: int) -> list[float]:
    return [round(float(NETWORK.lon[node]), 6), round(float(NETWORK.lat[node]), 6)]


def test_by_default_a_message_has_no_shape() -> None:
    assert shape("nodes", 1, 2) == {}


def test_the_roads_of_a_region_are_those_between_its_nodes() -> None:
    geometry = shape("roads", 0, 1, 6, 35)["geometry"]
    assert geometry["type"] == "MultiLineString"
    lines = [[at(0), at(1)], [at(0), at(6)], [at(35), at(35)]]
    assert sorted(geometry["coordinates"]) == sorted(lines)


def test_a_box_contains_all_nodes() -> None:
    west, south, east, north = shape("bbox", 0, 8, 4)["bbox"]
    assert [west, east] == sorted([at(0)[0], at(4)[0]])
    assert [south, north] == sorted([at(0)[1], at(8)[1]])


def test_the_cells_are_those_of_the_nodes() -> None:
    expected = {h3.latlng_to_cell(float(NETWORK.lat[v]), float(NETWORK.lon[v]), 9) for v in (0, 35)}
    assert shape("h3", 0, 35)["cells"] == sorted(expected)


regions = st.lists(st.integers(0, NETWORK.n_nodes - 1), min_size=1, max_size=12, unique=True)


@given(regions, st.data(), st.sampled_from(KINDS))
def test_a_shape_is_a_function_of_the_region_alone(
    region: list[int], data: st.DataObject, kind: str
) -> None:
    """Whatever was shown before, and in whatever order the nodes come, the text is the same."""
    used = shapes(kind)
    for other in data.draw(st.lists(regions, max_size=3)):
        used.of(np.array(other, np.int32))
    shuffled: Int32Array = np.array(data.draw(st.permutations(region)), np.int32)
    text = msgspec.json.encode(used.of(shuffled))
    assert text == msgspec.json.encode(shapes(kind).of(np.array(region, np.int32)))


@given(regions)
def test_every_node_of_a_region_is_on_its_roads_and_no_other(region: list[int]) -> None:
    lines = shape("roads", *region)["geometry"]["coordinates"]
    assert sorted({tuple(end) for line in lines for end in line}) == sorted(
        {tuple(at(v)) for v in region}
    )
