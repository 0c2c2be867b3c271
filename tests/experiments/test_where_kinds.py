"""Who the most exposed are: kinds of victims on one small fleet."""

import numpy as np
import pytest

from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments.where_experiment import Scene, in_lots
from experiments.where_kinds import READERS, Victims, lines, victims_of

CITY = load_network("city:400")


@pytest.fixture(scope="module")
def found() -> Victims:
    (trace, victims), (other, _), (trained, _) = (in_lots(CITY, 60, 0.5, s) for s in (1, 2, 3))
    scene = Scene(trace, other, victims, trained)
    return victims_of(scene, CITY, Settings(), None, n_starts=1, n_targets=20, seed=0)[0]


@pytest.mark.soak
def test_each_victim_is_of_one_kind_by_company_by_place_and_by_how_far_it_went(
    found: Victims,
) -> None:
    n, *rest = (int(chosen.sum()) for _, chosen in found.kinds())
    assert n == 20
    assert [sum(rest[:3]), sum(rest[3:6]), sum(rest[6:])] == [n, n, n]


@pytest.mark.soak
def test_who_drives_among_parked_devices_has_them_in_its_groups(found: Victims) -> None:
    assert found.standing.max() > 0.2
    assert (found.standing < 1.0).all(), "the victim itself drives"
    assert (found.times >= 1).all()


def test_the_table_counts_the_most_exposed_tenth_once() -> None:
    belief = np.arange(20.0) / 20 + 0.01
    made = Victims(dict.fromkeys(READERS, belief), np.zeros(20), np.full(20, 9.0), np.ones(20))
    rows = list(lines(made))[2:]
    assert [row.split("|")[1:4] for row in rows] == [
        [f" {name} ", " 20 ", " 2 "]
        for name in (
            "all",
            "nobody in its groups stands",
            "place of 8 to 15 times",
            "moved less than 300 m",
        )
    ]
    assert all(row.endswith("| 1.00 |") for row in rows)
