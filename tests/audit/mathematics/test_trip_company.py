"""What classes of trips tell of one of them: cases on paper."""

import numpy as np
import pytest

from anonymizer.algorithms.positions.trip_classes import CellSpan, TripClass, WindowTrips
from anonymizer.audit.mathematics.trip_company import (
    believed_destination,
    fewest_makers,
    read_classes,
)

N_CELLS = 4
NEAR = TripClass(CellSpan(0, 1), CellSpan(2, 3), CellSpan(0, 7), 4, np.array([0, 1, 2]))
FAR = TripClass(CellSpan(1, 1), CellSpan(0, 0), CellSpan(0, 3), 6, np.array([5]))


def test_a_destination_is_believed_by_the_devices_of_the_classes_that_fit() -> None:
    read = read_classes([NEAR, FAR], n_cells=N_CELLS)
    assert read.ends.tolist() == [[0, 0, 0.5, 0.5], [1, 0, 0, 0]]
    # Four devices over two cells and eight steps, and six over one cell and four steps.
    assert read.weight.tolist() == [4 / 16, 6 / 4]
    assert believed_destination(read, 0, 0).tolist() == [0, 0, 0.5, 0.5]
    assert believed_destination(read, 1, 7).tolist() == [0, 0, 0.5, 0.5]
    both = believed_destination(read, 1, 0)
    assert both == pytest.approx(np.array([1.5, 0, 0.125, 0.125]) / 1.75)
    assert believed_destination(read, 3, 0).tolist() == [1 / N_CELLS] * N_CELLS


def test_roads_that_lead_to_a_cell_of_the_destinations_say_that_some_went_there() -> None:
    # Arcs 0 and 1 end at cell 3, arc 2 at cell 2, and arc 5 at none.
    beside = np.array([3, 3, 2, -1, -1, -1])
    read = read_classes([NEAR, FAR], n_cells=N_CELLS, beside=beside)
    assert read.ends[0] == pytest.approx(np.array([0, 0, 1.1, 2.1]) / 3.2)
    assert read.ends[1].tolist() == [1, 0, 0, 0]


def test_makers_and_takers_are_distinct_devices() -> None:
    trips = WindowTrips(
        device=np.array([1, 1, 2, 3]),
        origin=np.array([0, 1, 1, 3]),
        destination=np.array([2, 3, 2, 2]),
        start=np.array([0, 0, 7, 0]),
        roads=[np.array([0, 1]), np.array([1]), np.array([1]), np.array([2])],
    )
    makers, takers = fewest_makers(trips, [NEAR, FAR])
    assert makers.tolist() == [2, 0]
    assert takers.tolist() == [1, 2, 0, 0]
