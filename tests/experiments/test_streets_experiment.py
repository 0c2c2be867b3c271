"""Two exports tell more of a street than one, and positions beside them no more than without."""

import pytest

from anonymizer.files.traces import trace_of
from anonymizer.outputs.streets.street_hours import hour_passages
from anonymizer.settings import Settings
from experiments.morning_experiment import Morning
from experiments.streets_experiment import TwoExports, beside, two_exports
from tests.outputs.drives import HOUR, NETWORK, drives


@pytest.fixture(scope="module")
def found() -> dict[tuple[int, ...], TwoExports]:
    driven = hour_passages(trace_of(drives()), NETWORK, Settings(), every_s=HOUR)
    return {each.ks: each for each in two_exports(driven, [(5,), (5, 6)], n_targets=4)}


@pytest.mark.soak
def test_a_second_export_of_an_hour_tells_more(found: dict[tuple[int, ...], TwoExports]) -> None:
    one, two = found[5,], found[5, 6]
    assert one.blind <= one.belief <= two.belief
    assert one.noticed <= two.noticed
    assert (one.belief, one.noticed) < (two.belief, two.noticed)


def test_streets_beside_regions_are_read_with_and_without_the_device() -> None:
    settings = Settings.model_validate(
        {
            "counts": {"k": 5, "every_s": 300, "cells": 16},
            "adka": {"density_steps": [], "k_values": [5]},
        }
    )
    morning = Morning(trace_of(drives()), NETWORK, 0.0, settings)
    read = beside(morning, n_targets=20)
    assert read.n == 20
    assert 0.99 / NETWORK.n_roads <= read.region <= 1
    assert 0 < read.streets_control <= read.control_tenth <= 1
    assert read.streets <= 2 * read.streets_control
