"""Two releases of the same vehicles, attacked together: answers of paper."""

import numpy as np

from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.audit.mathematics.joint_releases import (
    JointReading,
    Side,
    left_alone,
    left_together,
)
from anonymizer.domain.arrays import BoolArray
from anonymizer.domain.records import Attribute


def labels(*runs: tuple[int, int]) -> ReleasedLabels:
    return ReleasedLabels.of([[run] for run in runs])


def test_what_is_left_of_a_shared_value_drops_candidates_and_what_they_alone_allow() -> None:
    known, shared, private = (Attribute(name, np.arange(10.0)) for name in "ksp")
    one = Side(
        [known, shared, private],
        [labels((0, 9), (0, 9)), labels((0, 4), (5, 9)), labels((0, 1), (2, 3))],
        np.array([[1, 3, 0]], np.int32),
        [1, 2],
    )
    other = Side([shared], [labels((3, 6), (3, 4))], np.array([[3]], np.int32), [0])
    assert left_alone(one)[2][0].tolist() == [True] * 4 + [False] * 6
    first, second = left_together(one, other, [(1, 0)])
    assert np.flatnonzero(first[1][0]).tolist() == [3, 4, 5, 6]
    narrow = Side([shared], [labels((3, 4))], np.array([[3]], np.int32), [0])
    first, second = left_together(one, narrow, [(1, 0)])
    assert np.flatnonzero(first[1][0]).tolist() == [3, 4]
    assert np.array_equal(first[1], second[0])
    assert np.flatnonzero(first[2][0]).tolist() == [0, 1]  # the second class is out
    apart, _ = left_together(one, narrow, [])
    assert np.array_equal(apart[2], left_alone(one)[2])


def test_victims_are_published_where_a_class_covers_them_in_everything() -> None:
    known, private = (Attribute(name, np.arange(10.0)) for name in "kp")
    side = Side(
        [known, private],
        [labels((0, 4), (5, 9)), labels((0, 1), (2, 3))],
        np.array([[0, 1], [0, 2], [9, 3]], np.int32),
        [1],
    )
    assert side.published().tolist() == [True, False, True]
    assert side.only(np.array([1])).published().tolist() == [False]


def leaves(*rows: str) -> BoolArray:
    return np.array([[each == "1" for each in row] for row in rows])


def test_values_that_last_are_read_over_all_windows_and_others_in_each() -> None:
    windows = [leaves("1110", "0011"), leaves("0110", "1111")]
    truth = np.array([1, 0], np.int32)
    found = {}
    for lasting in (False, True):
        reading = JointReading(lasting)
        for left in windows:
            reading.take([b"a", b"b"], left, truth)
        reading.end()
        found[lasting] = reading
    # In the first window the second vehicle's true value was not left, so nothing was read.
    assert (found[False].n_left_of, found[False].n_victims) == ({3: 1, 2: 1, 4: 1}, 4)
    assert (found[True].n_left_of, found[True].n_victims) == ({2: 1}, 2)
    assert [found[False].n_below(n) for n in (2, 3, 4, 5)] == [0, 1, 2, 3]
    assert found[False].mean_left == 3


def test_a_value_that_has_changed_is_read_anew_and_a_missing_one_never() -> None:
    reading = JointReading(lasting=True)
    reading.take([b"a"], leaves("110"), np.array([0], np.int32))
    reading.take([b"a"], leaves("011"), np.array([2], np.int32))
    reading.take([b"b"], leaves("010"), np.array([3], np.int32))
    reading.end()
    assert (reading.n_left_of, reading.n_victims) == ({2: 1}, 1)
    assert JointReading(lasting=True).mean_left == 0
