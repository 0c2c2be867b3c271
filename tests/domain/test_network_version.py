from dataclasses import replace

import numpy as np
import pytest

from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.networks import load_network
from tests.graphs import two_islands

GRID = load_network("grid:3x3")


def test_the_version_is_that_of_the_content() -> None:
    assert network_version(GRID) == network_version(load_network("grid:3x3"))
    assert len(network_version(GRID)) == 16
    assert network_version(two_islands()) == network_version(two_islands())  # no coordinates


@pytest.mark.parametrize(
    "other",
    [
        load_network("grid:3x4"),
        replace(GRID, node_id=GRID.node_id[::-1].copy()),
        replace(GRID, lat=GRID.lat + 1e-6),
        replace(GRID, length_m=GRID.length_m + 0.02),
    ],
    ids=["nodes", "names", "coordinates", "lengths"],
)
def test_what_regions_can_mean_changes_the_version(other: RoadNetwork) -> None:
    assert network_version(other) != network_version(GRID)


def test_noise_below_a_centimetre_does_not() -> None:
    near = replace(GRID, lat=np.round(GRID.lat, 7) + 1e-9)
    assert network_version(near) == network_version(replace(GRID, lat=np.round(GRID.lat, 7)))
