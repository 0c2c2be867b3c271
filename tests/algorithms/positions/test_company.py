"""Company: how large the place of a member is, by how many devices share it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.atoms import (
    AREA_LEVEL,
    Company,
    cut_into_levels,
    lowest_shared_level,
)
from anonymizer.algorithms.positions.spanning_forest import spanning_forest
from anonymizer.networks import load_network
from tests.examples import many

CITY = load_network("grid:24x24")
SIZES = (1, 2, 4, 8, 16, 32, 48)
LEVELS = cut_into_levels(CITY, spanning_forest(CITY), min_nodes=4, sizes=SIZES, wider=1.5)
ASKED = Company(place_devices=3, area_devices=4)


def naive_level(where: list[int], node: int, asked: Company, *, few: bool) -> int:
    """Return the level of the place of a member at a node, of those in which it has company."""

    def company_at(level: int) -> int:
        at = LEVELS.at[level]
        others = {v for v in where if at[v] == at[node]} - {node}
        return where.count(node) + len(others)

    last = len(SIZES) if few else len(SIZES) - 1
    for level in range(last):
        area = max(level, AREA_LEVEL)
        if company_at(level) >= asked.place_devices and company_at(area) >= asked.area_devices:
            return level
    return last


@many(2)
@given(
    where=st.lists(st.integers(0, CITY.n_nodes - 1), min_size=1, max_size=40),
    few=st.booleans(),
    k_extra=st.integers(0, 2),
)
def test_a_place_is_the_smallest_in_which_a_member_has_enough_company(
    where: list[int], *, few: bool, k_extra: int
) -> None:
    place, asked = np.array(where, np.int32), ASKED.beyond(k_extra)
    n_at = np.bincount(place, minlength=CITY.n_nodes)
    level = lowest_shared_level(LEVELS, n_at, place, asked, few=few)
    assert level.tolist() == [naive_level(where, node, asked, few=few) for node in where]
