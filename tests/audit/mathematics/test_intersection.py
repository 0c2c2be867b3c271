"""The intersection attack against its naive twin, for both adversaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.intersection import NEVER, intersect, members
from anonymizer.audit.mathematics.truth import Truth
from tests.audit.mathematics import naive
from tests.audit.mathematics.made import GRID, observed_of, random_release


@given(seed=st.integers(0, 10_000), on_air=st.booleans(), n_devices=st.sampled_from([6, 64, 70]))
def test_the_candidates_are_the_devices_that_were_inside_every_time(
    *, seed: int, on_air: bool, n_devices: int
) -> None:
    made = random_release(seed, n_devices=n_devices)
    observed = made.observed
    found = intersect(observed, made.truth, n_nodes=GRID.n_nodes, assume_on_air=on_air)
    everyone = np.arange(observed.n_pseudonyms)
    row, device = members(found.candidates, everyone)
    for p in everyone.tolist():
        steps = naive.candidates(made.lines, observed.time.tolist(), made.truth, p, on_air=on_air)
        assert set(device[row == p].tolist()) == steps[-1][1]
        below = [tick for tick, left, k in steps if len(left) < k]
        alone = [tick for tick, left, _ in steps if len(left) <= 1]
        assert found.below_k_at[p] == (below[0] if below else NEVER)
        assert found.alone_at[p] == (alone[0] if alone else NEVER)


def test_only_the_bold_adversary_rules_out_devices_that_are_off_the_air() -> None:
    # Device 0 stays inside, 1 is silent at second 1, 2 is seen outside there.
    place = np.array([[0, 0, 0], [0, -1, 9]], np.int32)
    truth = Truth(place, place >= 0, None)
    observed = observed_of([(0, 0, (0,), 2), (0, 1, (0,), 2)])
    bold = intersect(observed, truth, n_nodes=GRID.n_nodes, assume_on_air=True)
    careful = intersect(observed, truth, n_nodes=GRID.n_nodes, assume_on_air=False)
    assert members(bold.candidates, np.array([0]))[1].tolist() == [0]
    assert members(careful.candidates, np.array([0]))[1].tolist() == [0, 1]
    assert (bold.below_k_at[0], careful.below_k_at[0]) == (1, NEVER)


@pytest.mark.parametrize("assume_on_air", [True, False])
def test_a_ghost_counts_at_its_last_known_node(*, assume_on_air: bool) -> None:
    truth = Truth(np.array([[3, 3]], np.int32), np.array([[True, False]]), None)
    observed = observed_of([(0, 0, (3,), 2)])
    found = intersect(observed, truth, n_nodes=GRID.n_nodes, assume_on_air=assume_on_air)
    assert found.below_k_at.tolist() == [NEVER]
