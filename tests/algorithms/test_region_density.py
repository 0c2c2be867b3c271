"""Density from regions: a piece holds one device, the others follow the density."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.region_density import estimate_density, shares
from anonymizer.algorithms.releases.pieces import PieceRegions
from anonymizer.domain.arrays import starts_of

N_NODES = 6
regions_of = st.lists(
    st.lists(st.lists(st.integers(0, N_NODES - 1), min_size=1, max_size=3, unique=True), min_size=1)
    .filter(lambda pieces: sum(map(len, pieces)) == len({v for piece in pieces for v in piece}))
    .map(lambda pieces: pieces[:3]),
    min_size=1,
    max_size=3,
)


def as_arrays(regions: list[list[list[int]]]) -> PieceRegions:
    pieces = [piece for region in regions for piece in region]
    return PieceRegions(
        starts_of(np.array([len(region) for region in regions])),
        starts_of(np.array([len(piece) for piece in pieces])),
        np.array([node for piece in pieces for node in piece], np.int32),
    )


def naive_shares(pieces: list[list[int]], n: float, density: list[float]) -> list[float]:
    """One device for each piece, if there are enough; the others by density, one by one."""
    found = {node: 0.0 for piece in pieces for node in piece}
    whole = sum(density[node] for node in found)
    each = min(1.0, n / len(pieces))
    for piece in pieces:
        inside = sum(density[node] for node in piece)
        for node in piece:
            found[node] += each * density[node] / inside
    for node in found:
        found[node] += (n - each * len(pieces)) * density[node] / whole
    return [found[node] / n for piece in pieces for node in piece]


@settings(max_examples=40)
@given(
    regions_of,
    st.lists(st.floats(0.5, 9), min_size=3, max_size=3),
    st.lists(st.floats(0.01, 1), min_size=N_NODES, max_size=N_NODES),
)
def test_shares_are_those_of_the_naive_twin(
    regions: list[list[list[int]]], n: list[float], density: list[float]
) -> None:
    n_devices = np.array(n[: len(regions)])
    found = shares(as_arrays(regions), n_devices, np.array(density))
    twin = [naive_shares(*each, density) for each in zip(regions, n, strict=False)]
    assert found == pytest.approx([share for region in twin for share in region])


def test_the_density_follows_where_most_pieces_are() -> None:
    """The node that two regions share as a piece of its own holds a device of each."""
    regions = as_arrays([[[0], [1, 2]], [[0], [3, 4]]])
    n = np.array([2.0, 2.0])
    density = estimate_density(regions, n, n, n_nodes=N_NODES)
    assert density.sum() == pytest.approx(1)
    assert density[0] == pytest.approx(1 / 2, abs=1e-6)
    assert density[1:5] == pytest.approx(1 / 8, abs=1e-6)
    assert 0 < density[5] < 1e-6  # no region covers it


def test_a_device_beyond_one_a_piece_goes_where_other_regions_say_that_devices_are() -> None:
    regions = as_arrays([[[0], [1]], [[0, 2]]])
    density = estimate_density(regions, np.array([3.0, 4.0]), np.array([3.0, 4.0]), n_nodes=3)
    # Without the second region, half of the third device would be at node 0.
    share = shares(regions, np.array([3.0, 4.0]), density)[0]
    assert share * 3 > 1.5
