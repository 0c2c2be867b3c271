"""How long a fleet of which nobody is published waits for its first group, and what that tells."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.changing_ids import LASTS
from anonymizer.algorithms.positions.cloaks import Epochs
from anonymizer.algorithms.positions.operator import CloakingOperator
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from tests.algorithms.positions.cloaks.driving import session_cloak
from tests.examples import many
from tests.graphs import two_islands

CITY = load_network("city:400")
SHORE = two_islands()
K = 5
EPOCH_S, SETTLE_S = 60.0, 5.0
NOW = 1_800_000_000.0


class Fleet(NamedTuple):
    """Devices that report every so often from one node each, from the time at which they come."""

    node: Sequence[int]
    comes_s: FloatArray
    every_s: FloatArray
    ids_stay: bool

    def reporting(self, at_s: float) -> Int32Array:
        """Return who reports in this second."""
        age_s = at_s - self.comes_s
        return np.flatnonzero((age_s >= 0) & (age_s % self.every_s < 1)).astype(np.int32)


class First(NamedTuple):
    """When enough devices began to count for good, and when somebody was published, seconds."""

    enough_s: float
    published_s: float


def operator_on(network: RoadNetwork, *, n_cells: int = 8) -> CloakingOperator:
    pace = Pace(ttl_s=120.0, epoch_s=EPOCH_S, follows=True)
    rule = DensityRule(steps=(), values=(K,))
    cloak = session_cloak(
        network, rule=rule, epochs=Epochs(n_cells, SETTLE_S), pace=pace, beat_s=6.0
    )
    return CloakingOperator(network, cloak, pace=pace, k_floor=K)


def drive(
    fleet: Fleet, operator: CloakingOperator, *, start_s: float, among: Sequence[int], last_s: float
) -> First:
    """Let a fleet report until one of those devices is published."""
    first_at = np.full(len(fleet.node), np.inf)
    enough_s = np.inf
    for at_s in np.arange(start_s, last_s).tolist():
        slot = fleet.reporting(at_s)
        ts = np.full(len(slot), NOW + at_s)
        first_at[slot] = np.minimum(first_at[slot], ts)
        since = np.full(len(slot), LASTS) if fleet.ids_stay else first_at[slot]
        node = np.array(fleet.node, np.int32)[slot]
        tick = operator.tick(slot, ts, node, now=NOW + at_s, since=since)
        counts = np.flatnonzero(operator.density.counted_at >= 0)
        enough = np.isin(counts, among).sum() >= K
        enough_s = min(enough_s, at_s) if enough else np.inf
        if np.isin(tick.release.member, among).any():
            return First(enough_s, at_s)
    return First(enough_s, np.inf)


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Draw a fleet that starts at once, or in which the first one or the last one is alone."""
    n = draw(st.sampled_from([K, 20, 200]))
    every_s = np.full(n, draw(st.sampled_from([1.0, 7.0, 10.0, 30.0, 60.0])))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    late_s = draw(st.sampled_from([0.0, 20.0, 61.0, 200.0]))
    is_late = np.zeros(n, bool)
    is_late[draw(st.sampled_from([slice(0), slice(1, n), slice(K - 1, n)]))] = True
    comes_s = np.floor(rng.uniform(0, every_s)) + late_s * is_late
    comes_s[0] = 0.0
    return Fleet(rng.integers(0, CITY.n_nodes, n).tolist(), comes_s, every_s, draw(st.booleans()))


@many(3)
@given(fleets(), st.integers(0, 299))
def test_nobody_waits_longer_for_a_first_group_than_all_have_nor_than_an_epoch(
    fleet: Fleet, start_s: int
) -> None:
    fleet = fleet._replace(comes_s=fleet.comes_s + start_s)
    everybody = range(len(fleet.node))
    first = drive(fleet, operator_on(CITY), start_s=start_s, among=everybody, last_s=start_s + 600)
    most_s = min(max(SETTLE_S, first.enough_s - start_s), EPOCH_S)
    assert first.published_s <= first.enough_s + most_s + 1


@pytest.mark.parametrize("start_s", [0, 100, 250])
@pytest.mark.parametrize("every_s", [10.0, 250.0])
def test_a_fleet_that_comes_back_in_the_morning_waits_for_an_epoch_at_most(
    start_s: int, every_s: float
) -> None:
    evening, night_s, n = 40.0, 1000.0, 8
    node = list(range(0, 10 * n, 10))
    operator = operator_on(CITY)
    fleet = Fleet(node, start_s + np.linspace(0.0, n - 1, n), np.full(n, every_s), ids_stay=True)
    everybody = range(n)
    came = drive(fleet, operator, start_s=start_s, among=everybody, last_s=start_s + 200)
    assert came.published_s < start_s + evening
    back = fleet._replace(comes_s=fleet.comes_s + night_s)
    began_s = start_s + night_s
    # The first one has reported once: nobody knows how often the devices of this day will.
    back.comes_s[0] -= 100
    gone = drive(
        back, operator, start_s=int(came.published_s) + 1, among=[], last_s=int(began_s) - 101
    )
    assert gone.published_s == np.inf
    first = drive(back, operator, start_s=began_s - 101, among=everybody, last_s=began_s + 300)
    assert first.published_s <= first.enough_s + EPOCH_S + 1


@pytest.mark.parametrize("come_s", [130, 160, 199])
def test_who_comes_to_another_island_waits_an_epoch_while_a_crowd_has_reported_once(
    come_s: int,
) -> None:
    """Nobody knows then how often devices report."""
    n_here, n_crowd, n_there = 6, 20, 6
    node = np.repeat([0, 7, 5], [n_here, n_crowd, n_there]).tolist()
    comes_s = np.repeat([0.0, 70.0, come_s], [n_here, n_crowd, n_there])
    every_s = np.repeat([10.0, 250.0, 250.0], [n_here, n_crowd, n_there])
    fleet = Fleet(node, comes_s, every_s, ids_stay=True)
    there = range(n_here + n_crowd, len(node))
    first = drive(fleet, operator_on(SHORE), start_s=0, among=there, last_s=come_s + 400)
    assert first.enough_s == come_s
    assert first.published_s <= come_s + EPOCH_S + 1


# What the moment of the first group tells.


def tries(began_s: float, n: int) -> list[float]:
    """Return when groups would be formed after a first position, if nobody ever is in one."""
    epochs, at = Epochs(8, SETTLE_S), [began_s + SETTLE_S]
    while len(at) < n:
        at.append(epochs.next_try(at[-1], EPOCH_S, waited_s=at[-1] - began_s))
    return at


@many(1)
@given(st.floats(0, 2e9))
def test_the_times_between_tries_grow_with_the_time_that_has_passed_up_to_an_epoch(
    began_s: float,
) -> None:
    at = tries(began_s, 12)
    for before_s, now_s in list(pairwise(at))[1:]:
        slack = 1e-5
        assert now_s - before_s <= min(before_s - began_s, EPOCH_S) + slack
        assert now_s - before_s >= min((now_s - began_s) / 4, EPOCH_S / 2) - slack
    assert np.allclose(np.diff(at[-3:]), EPOCH_S)


@many(1)
@given(st.floats(NOW, NOW + 600))
def test_tries_are_at_times_of_the_clock_and_say_nothing_of_a_first_device_an_epoch_later(
    began_s: float,
) -> None:
    """Before, the time between them tells how long ago it came, though it may be in no group."""
    assert all(at % (EPOCH_S / 64) == 0 for at in tries(began_s, 14)[1:])
    assert all(at % EPOCH_S == 0 for at in tries(began_s, 14)[-3:])


def published_when_the_last_comes(comes_s: float) -> float:
    """Return when a fleet of k is published, of which the last one comes then."""
    comes = np.zeros(K)
    comes[-1] = comes_s
    fleet = Fleet(list(range(0, 10 * K, 10)), comes, np.ones(K), ids_stay=True)
    operator = operator_on(CITY)
    return drive(fleet, operator, start_s=0, among=range(K), last_s=400).published_s


def test_who_knows_all_others_learns_only_roughly_when_the_last_one_came() -> None:
    step_s = 3
    came_s = np.arange(10, 200, step_s)
    published_s = np.array([published_when_the_last_comes(float(at)) for at in came_s])
    for told in np.unique(published_s)[:-1]:
        possible = came_s[published_s == told]
        assert step_s * len(possible) >= min(possible[0] / 4, EPOCH_S / 2)
    # After an epoch no better than who joins a fleet that is published.
    assert np.unique(published_s[came_s > EPOCH_S]).tolist() == [120.0, 180.0, 240.0]
