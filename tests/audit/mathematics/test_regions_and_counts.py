import numpy as np
import pytest
from scipy.sparse import csr_array

from anonymizer.audit.mathematics.regions_and_counts import cells_given_counts

EACH_ALONE = np.arange(3)
"""Every cell is counted by itself."""


def believed(
    shares: list[list[float]], n: list[float], counted: list[float], run_of: list[int] | None = None
) -> list[list[float]]:
    runs = EACH_ALONE if run_of is None else np.array(run_of)
    found = cells_given_counts(csr_array(np.array(shares)), np.array(n), runs, np.array(counted))
    assert np.asarray(found.sum(axis=1)).ravel() == pytest.approx(1)
    return [[round(x, 2) for x in row] for row in found.toarray().tolist()]


def test_counts_tell_which_cells_of_a_region_are_empty() -> None:
    assert believed([[0.5, 0.5, 0.0]], [4.0], [4.0, 0.0, 0.0]) == [[1.0, 0.0, 0.0]]


def test_counts_as_expected_tell_nothing() -> None:
    shares = [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]
    assert believed(shares, [4.0, 8.0], [2.0, 4.0, 6.0]) == shares


def test_the_other_region_explains_a_cell_first() -> None:
    # All of the second are in the last cell; what is counted in the middle is of the first.
    found = believed([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], [4.0, 5.0], [1.0, 3.0, 5.0])
    assert found == [[0.25, 0.75, 0.0], [0.0, 0.0, 1.0]]


def test_within_cells_that_are_counted_together_nothing_is_told() -> None:
    found = believed([[0.2, 0.6, 0.2]], [8.0], [0.0, 8.0], run_of=[0, 1, 1])
    assert found == [[0.0, 0.75, 0.25]]


def test_devices_in_no_region_may_be_anywhere() -> None:
    # Four of those counted are strangers: more may be in the second cell than the region says.
    [row] = believed([[0.5, 0.5, 0.0]], [4.0], [2.0, 4.0, 2.0])
    assert 0.5 < row[1] < 0.7


def test_counts_of_nobody_do_no_harm() -> None:
    assert believed([[0.5, 0.5, 0.0]], [4.0], [0.0, 0.0, 0.0]) == [[0.5, 0.5, 0.0]]
