"""Paths are found in places with names, and the share that is found is counted right."""

import numpy as np
import pytest

from anonymizer.audit.attacks.tracking import HeardRelease
from anonymizer.networks import load_network
from experiments import reconstruction
from experiments.broken_releases import raw_release
from experiments.reconstruction import (
    Fleet,
    Paths,
    followed,
    found_share,
    paths_from_counts,
    paths_of,
)
from experiments.tracking_experiment import drive

CITY = load_network("city:300")


@pytest.fixture(scope="module")
def raw() -> Fleet:
    with pytest.MonkeyPatch.context() as few:
        few.setattr(reconstruction, "N_STARTS", 2)
        trace = drive(CITY, 60, seconds=500, seed=1)
        case, release = raw_release(trace, CITY, tick_s=1.0, name_s=500.0)
        heard = HeardRelease(case.observed, case.class_of, release.until)
        return followed(case, heard)


def test_paths_are_found_in_raw_places(raw: Fleet) -> None:
    paths = paths_of(raw)
    alone, smoothed = (
        np.nanmean(found_share(paths, paths.likely[name])) for name in ("none", "hindsight")
    )
    assert smoothed > 0.8
    assert smoothed > 1.5 * alone


def test_counts_are_read_by_the_same_filter(raw: Fleet) -> None:
    paths = paths_from_counts(raw)
    assert set(paths.likely) == {"none", "followed", "hindsight"}
    share = found_share(paths, paths.likely["hindsight"])
    assert 0 < np.nanmean(share) < 0.9


def test_the_share_of_a_path_is_that_of_as_many_guesses() -> None:
    visited = np.array([[True, True, False, False], [False] * 4])
    likely = np.array([[0.9, 0.1, 0.5, 0.2], [0.1] * 4])
    found = found_share(Paths(visited, {}, likely), likely)
    assert found[0] == 0.5
    assert np.isnan(found[1]), "who does not move has no path"
