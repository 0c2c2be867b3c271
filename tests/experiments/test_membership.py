"""Membership: found in what is known to be broken, at no more than chance in noise."""

from collections.abc import Sequence

import numpy as np
import pytest

from anonymizer.algorithms.positions.trip_classes import CellSpan, TripClass, WindowTrips
from anonymizer.networks import load_network
from experiments import membership, membership_tables
from experiments.membership import (
    found_at,
    likelihood_ratio,
    run_membership,
    train,
)
from experiments.membership_tables import read_table, run_tables
from experiments.membership_trips import read_trips, run_trips
from experiments.scores import Score

CITY = load_network("city:200")


def rates(scores: Sequence[Score], release: str, what: str = "ratio") -> tuple[float, float]:
    """Return success and control at a false-positive rate of 1 %."""
    [row] = [
        s.row() for s in scores
        if s.release == release and s.attack == f"membership: {what}, at FPR 1 %"
    ]  # fmt: skip
    return row["success"], row["control"]


@pytest.fixture(scope="module")
def positions() -> Sequence[Score]:
    """Attack what needs no cloaking, which takes longest."""
    raw = membership.cloaked_and_raw(CITY)["raw, no names"]
    with pytest.MonkeyPatch.context() as few:
        few.setattr(membership, "cloaked_and_raw", lambda _network: {"raw, no names": raw})
        return list(run_membership(CITY, n_devices=50, n_shadows=20, seed=1))


@pytest.mark.parametrize("release", ["raw, no names", "exact counts"])
@pytest.mark.parametrize("what", ["ratio", "trained"])
def test_who_is_in_a_release_that_hides_nobody_is_found(
    positions: Sequence[Score], release: str, what: str
) -> None:
    success, control = rates(positions, release, what)
    assert success > 0.4
    assert control < 0.06


@pytest.mark.parametrize("release", ["counts, ε = 1 an hour", "trip counts, ε = 1 an hour"])
def test_noise_hides_who_is_in(positions: Sequence[Score], release: str) -> None:
    success, _ = rates(positions, release)
    assert success < 0.06


def test_whoever_knows_a_row_finds_it_in_a_raw_table_and_more_seldom_in_classes() -> None:
    with pytest.MonkeyPatch.context() as few:
        one = {"table, (k,d)": membership_tables.MODELS["table, (k,d)"]}
        few.setattr(membership_tables, "MODELS", one)
        scores = list(run_tables(n_rows=60, n_shadows=12, seed=1))
    raw, _ = rates(scores, "table, raw")
    hidden, control = rates(scores, "table, (k,d)")
    assert raw > 0.9
    assert control < 0.06
    assert hidden < raw / 2


def test_what_a_table_says_of_a_row_is_counted() -> None:
    ranges = np.array([[[1.0, 4.0]], [[1.0, 4.0]], [[5.0, 5.0]]])
    found = read_table(ranges, np.array([0, 1, 1]), np.array([[2.0], [5.0]]), np.array([1, 0]))
    assert found.tolist() == [[2, 0.5, 1, 0.25], [1, 1, 0, 0]]


def test_whoever_knows_trips_finds_them_one_by_one_and_seldom_in_classes() -> None:
    # A network of 200 nodes has eight cells: there, many trips are alike.
    scores = list(run_trips(load_network("city:1000"), n_people=120, n_shadows=20, seed=1))
    alone, control = rates(scores, "trips, one by one")
    hidden, _ = rates(scores, "trips")
    assert alone > 0.6
    assert control < 0.06
    assert hidden < alone / 4


def test_what_classes_say_of_a_trip_is_counted() -> None:
    half, all_steps = CellSpan(0, 1), CellSpan(0, 3)
    told = [TripClass(half, half, all_steps, 8, np.array([5]))]
    trips = WindowTrips(
        np.arange(2), np.array([0, 2]), np.array([1, 1]), np.zeros(2, np.int64),
        [np.array([5, 6]), np.array([5])],
    )  # fmt: skip
    assert read_trips(told, trips).tolist() == [[1, 0.5, 1 / 16, 0.5], [0, 0, 0, 0]]


def test_the_ratio_tells_targets_by_how_much_their_numbers_change() -> None:
    rng = np.random.default_rng(1)
    is_in = rng.random((40, 30)) < 1 / 2
    noise = rng.normal(size=(40, 30, 2))
    told = noise + 4 * is_in[:, :, None]
    for score in (likelihood_ratio(told, is_in), train(told, is_in)):
        assert np.nanmean(found_at(score, is_in, 0.01)) > 0.8
    for score in (likelihood_ratio(noise, is_in), train(noise, is_in)):
        assert np.nanmean(found_at(score, is_in, 0.01)) < 0.05


def test_scores_above_all_but_a_share_of_those_outside_are_found() -> None:
    score = np.concatenate([np.arange(200.0), [197.5, 198.5, 150.0]])[:, None]
    is_in = np.repeat([False, True], [200, 3])[:, None]
    assert found_at(score, is_in, 0.01)[0] == pytest.approx(2 / 3)
    assert found_at(score, is_in, 0.001)[0] == 0
