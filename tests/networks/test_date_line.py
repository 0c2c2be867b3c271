"""A town on the date line is as wide as it is elsewhere, wherever its width is told."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.app.gateway.coverage import coverage, trace_coverage
from anonymizer.client.cells import grid
from anonymizer.client.network import read_network
from anonymizer.domain.longitudes import unwrapped, west_east
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network
from anonymizer.networks.publication import parts
from anonymizer.pipeline.positions.out.region_shapes import shapes_of
from anonymizer.web.network_outline import Outline

HOME = load_network("grid:6x6")


def moved(to: float) -> RoadNetwork:
    """Return the town with its middle at a longitude."""
    lon = HOME.lon - HOME.lon.mean() + to
    return replace(HOME, lon=(lon + 180) % 360 - 180)


ACROSS = moved(180.0)


def test_the_town_lies_on_both_sides() -> None:
    assert ACROSS.lon.min() < -179
    assert ACROSS.lon.max() > 179


def test_its_coverage_is_that_of_the_town_elsewhere() -> None:
    here, there = (coverage(each, limit_m=100.0) for each in (moved(24.0), ACROSS))
    assert there.near_share == pytest.approx(here.near_share, abs=0.01)
    assert there.west > 179
    assert there.east < -179
    n = ACROSS.n_nodes
    trace = Trace(("a",), np.zeros(n, np.int64), np.zeros(n), ACROSS.lat, ACROSS.lon)
    assert trace_coverage(trace, ACROSS, limit_m=100.0) == (n, 0.0, 0.0, False)


def test_its_published_box_and_the_boxes_of_regions_are_narrow() -> None:
    about, _ = parts(ACROSS)
    assert (about.bbox[2] - about.bbox[0]) % 360 < 0.1
    box = shapes_of(ACROSS, "bbox").of(np.arange(ACROSS.n_nodes, dtype=np.int32)).bbox
    assert box == pytest.approx(about.bbox, abs=1e-6)


def test_cells_of_a_grid_are_as_many_as_elsewhere() -> None:
    there, here = (grid(read_network(each), 200.0) for each in (ACROSS, moved(24.0)))
    assert abs(len(there.name) - len(here.name)) <= 2


def test_the_map_draws_no_road_around_the_world() -> None:
    outline = Outline(ACROSS)
    assert outline.bounds.east - outline.bounds.west < 0.1


@given(st.lists(st.floats(-180, 180), min_size=1, max_size=8), st.floats(0, 360))
def test_no_other_box_is_narrower(lon: list[float], turn: float) -> None:
    """By a twin that tries to begin at each of the longitudes."""
    lons = (np.array(lon) + turn + 180) % 360 - 180
    west, east = west_east(lons)
    width = (east - west) % 360 if west > east else east - west
    assert (unwrapped(lons, west) - west <= width + 1e-9).all()
    least = min(float(((lons - each) % 360).max()) for each in lons)
    plain = float(lons.max() - lons.min())
    assert width == pytest.approx(plain if plain <= 180 else min(least, plain), abs=1e-9)
