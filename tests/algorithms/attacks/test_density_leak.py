import numpy as np
import pytest

from anonymizer.algorithms.attacks.region_center import band_accuracy

HALF = np.tile([0, 1], 50)


def test_a_size_of_its_own_for_each_band_gives_the_band_away() -> None:
    band = np.repeat([0, 1, 2, 2], 25)
    assert band_accuracy(10 + band, band, HALF) == 1.0
    assert band_accuracy(np.zeros(100, np.int64), band, HALF) == pytest.approx(0.5)


def test_what_is_learned_from_a_record_is_not_tried_on_it() -> None:
    # Every record has its own size: known by heart it would tell all, across halves nothing.
    band = np.repeat([0, 1], 50)
    assert band_accuracy(np.arange(100), band, HALF) == pytest.approx(0.5)


def test_a_size_not_seen_before_is_guessed_as_the_most_frequent_band() -> None:
    size, band = np.array([1, 1, 1, 2]), np.array([1, 1, 1, 1])
    assert band_accuracy(size, band, np.array([0, 1, 0, 1])) == 1.0


def test_without_records_there_is_no_accuracy() -> None:
    nothing = np.zeros(0, np.int64)
    assert band_accuracy(nothing, nothing, nothing) is None
