"""Who knows all positions but one finds less in `session` than in the smallest places."""

import numpy as np
import pytest

from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments.all_but_one import Left, nodes_left, published

CITY = load_network("city:1000")
N, N_VICTIMS = 60, 10


def found(place_devices: int) -> list[list[Left]]:
    """Return what is left of each victim after two looks."""
    forming = published(Settings.model_validate({"region": {"place_devices": place_devices}}), CITY)
    rng, rows = np.random.default_rng(5), []
    for victim in range(N_VICTIMS):
        first = rng.integers(0, CITY.n_nodes, N).astype(np.int32)
        moved = first + rng.integers(-3, 4, N)
        again = np.clip(moved, 0, CITY.n_nodes - 1).astype(np.int32)
        again[victim] = first[victim]
        rows.append(nodes_left(forming, CITY, [first, again], victim, n_sampled=60, rng=rng))
    return rows


def test_who_knows_all_others_finds_a_device_in_small_places_and_less_in_shared_ones() -> None:
    smallest, shared = (
        np.array([[look.belief for look in looks] for looks in found(place_devices)])
        for place_devices in (1, 4)
    )
    assert smallest[:, 0].mean() > 0.4  # so the attack is known to work
    assert shared[:, 0].mean() < smallest[:, 0].mean() / 2
    assert shared[:, 1].mean() > shared[:, 0].mean(), "another look tells more"


def test_the_true_place_is_never_ruled_out() -> None:
    assert all(look.belief > 0 and look.n_nodes >= 1 for row in found(4) for look in row)


@pytest.mark.parametrize("n_looks", [1, 3])
def test_a_release_that_says_nothing_leaves_every_node(n_looks: int) -> None:
    looks = [np.zeros(N, np.int32)] * n_looks
    left = nodes_left(lambda _: b"", CITY, looks, 0, n_sampled=10, rng=np.random.default_rng(1))
    for look in left:
        assert look.n_nodes == pytest.approx(CITY.n_nodes)
        assert look.belief == pytest.approx(look.blind)
