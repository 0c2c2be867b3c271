"""Regions and classes of the same vehicles, attacked together: answers of paper."""

import numpy as np

from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.audit.mathematics.joint_releases import Side, left_alone, left_together
from anonymizer.audit.mathematics.places_of_records import seen_in, side_of_positions
from anonymizer.domain.records import Attribute

SECTION = Attribute("section", np.arange(3.0))


def test_a_value_is_seen_in_all_cells_in_which_its_vehicles_were() -> None:
    cells = np.array([[True, False], [False, True], [True, False], [True, True]])
    seen = seen_in(np.array([0, 0, 1, -1], np.int32), cells, 3)
    assert seen.tolist() == [[True, True], [True, False], [False, False]]


def test_a_region_narrows_the_values_of_a_class_and_the_class_the_cells_of_a_region() -> None:
    # Section i is paid in cell i. Both groups may be the victim's, who is at node 5.
    seen = np.eye(3, dtype=np.bool_)
    positions = side_of_positions(
        regions=[np.array([5, 6]), np.array([4, 5]), np.array([9])],
        cells=np.array([[True, True, False], [False, False, True], [True, True, True]]),
        known=np.array([5], np.int32),
        last_cell=np.array([1], np.int32),
        attributes=[(SECTION, seen, np.array([1], np.int32))],
        n_nodes=10,
    )
    alone = left_alone(positions)
    assert alone[1][0].tolist() == alone[2][0].tolist() == [True, True, True]
    known = Attribute("type", np.arange(2.0))
    classes = [[[(0, 0)], [(1, 1)]], [[(1, 1)], [(0, 2)]]]
    records = Side(
        [known, SECTION],
        [ReleasedLabels.of(runs) for runs in classes],
        np.array([[0, 1]], np.int32),
        [1],
    )
    first, second = left_together(records, positions, [(1, 2)])
    assert first[1][0].tolist() == [False, True, False]
    # The group that is never in cell 1 is out, and with it cell 2.
    assert second[1][0].tolist() == [True, True, False]
