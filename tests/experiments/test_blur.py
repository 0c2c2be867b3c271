"""Public blurs are broken by the attacks on releases of others, and our regions are not."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from anonymizer.audit.foreign.release import BareRelease, CountRelease, PointRelease, plane_of
from anonymizer.networks import load_network
from experiments.blur_experiment import OURS, Blurred, run_blur
from experiments.blur_results import kept, page, write_results
from experiments.blur_schemes import FEWEST, NOISY, SCHEMES
from experiments.commuter_weeks import commuter_weeks

TOWN = load_network("city:900")
PEOPLE = replace(commuter_weeks(TOWN, 60, n_days=10, every_s=30.0, seed=2).trace, node=None)


@pytest.fixture(scope="module")
def found() -> list[Blurred]:
    return list(run_blur(PEOPLE, TOWN, tick_s=30.0, seed=2))


@pytest.mark.soak
def test_public_schemes_are_broken_and_ours_is_not(found: list[Blurred]) -> None:
    broken = {each.scheme for each in found if each.broken}
    assert len(broken - {OURS}) >= 8, broken
    assert not {OURS, NOISY.name} & broken
    (ours,) = (each for each in found if each.scheme == OURS)
    assert {"tracking", "linking"} <= {each.attack for each in ours.verdicts}


@pytest.mark.soak
def test_the_page_says_of_each_scheme_what_was_found(found: list[Blurred], tmp_path: Path) -> None:
    paths = write_results(found, {"seed": 2}, tmp_path)
    text = page(msgspec.json.decode(kept(found), type=list[Blurred]), folder="")
    assert text == (tmp_path / "blur.md").read_text()
    for each in found:
        assert each.headline in text
    for path in paths:
        if path.suffix == ".svg":
            assert path.name in text
            assert path.stat().st_size > 1000


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_a_scheme_does_what_it_says(scheme: object) -> None:
    (mine,) = (each for each in SCHEMES if each is scheme)
    release, owner = mine.publish(PEOPLE, np.random.default_rng(1))
    if isinstance(release, CountRelease):
        shown = release.count[~np.isnan(release.count)]
        assert shown.min() >= FEWEST
        assert np.isnan(release.count).any()
        return
    if isinstance(release, BareRelease):
        assert release.trace.n_rows == PEOPLE.n_rows
        assert len(set(release.trace.lat.tolist())) < 100, "cells"
        return
    assert isinstance(release, PointRelease)
    trace = release.trace
    assert trace.n_rows > 0
    who = trace.device_of if owner is None else owner[trace.device_of]
    true = set(zip(PEOPLE.device_of.tolist(), PEOPLE.ts.tolist(), strict=True))
    assert set(zip(who.tolist(), trace.ts.tolist(), strict=True)) <= true
    if trace.n_rows == PEOPLE.n_rows:
        plane = plane_of(PEOPLE)
        apart = plane.of(trace.lat, trace.lon) - plane.of(PEOPLE.lat, PEOPLE.lon)
        is_exact = mine.name == "ids rotated"
        assert (np.hypot(*apart.T).max() < 1) == is_exact
