"""Age of information: how old the newest published region about each pseudonym is."""

import numpy as np
import pytest

from anonymizer.domain.arrays import starts_of
from anonymizer.domain.release import Release
from anonymizer.pipeline.histograms import BatchHistogram
from anonymizer.pipeline.positions.tick.flow_stats import InformationAges
from tests.pipeline.positions.tick.test_silence import Fleet


def release(*groups: list[int]) -> Release:
    sizes = np.array([len(group) for group in groups], np.int64)
    member = np.array([slot for group in groups for slot in group], np.int32)
    ones = np.ones(len(groups), np.int64)
    node = np.zeros(len(groups), np.int32)
    k = sizes.astype(np.int32)
    return Release(
        k, starts_of(ones), node, starts_of(sizes), member, np.zeros(len(member), np.int64)
    )


def last(ages: InformationAges, now: float) -> list[float]:
    """Return the ages of the last sample before a moment, without the parts of seconds."""
    return [float(age_s // 1) for age_s in ages.until(now)]


def test_ages_grow_between_releases_and_are_of_the_newest() -> None:
    ages = InformationAges(groups_last=True)
    ages.see(release([0, 1], [5]), np.array([110.0, 130.0]), event_s=100.0, now=100.0)
    ages.until(104.0)
    assert last(ages, 105.0) == [4, 4, 4]
    ages.see(release([0, 1]), np.array([120.0]), event_s=110.0, now=110.0)
    ages.until(112.0)
    assert last(ages, 113.0) == [2, 2, 12]


def test_a_beat_that_comes_late_is_age_for_one_more_beat_and_then_it_is_an_end() -> None:
    ages = InformationAges(groups_last=True)
    ages.see(release([0, 1]), np.array([110.0]), event_s=100.0, now=100.0)
    ages.until(118.0)
    assert last(ages, 119.0) == [18, 18]
    ages.until(121.0)
    assert last(ages, 125.0) == []
    once = InformationAges(groups_last=False)
    once.see(release([0]), np.array([110.0]), event_s=100.0, now=100.0)
    once.until(110.0)
    assert last(once, 120.0) == []


def test_a_delay_of_the_positions_is_part_of_their_age() -> None:
    ages = InformationAges(groups_last=True)
    ages.see(release([0]), np.array([110.0]), event_s=100.0, now=400.0)
    ages.until(401.0)
    assert last(ages, 402.0) == [301]


@pytest.mark.parametrize("tick_s", [0.1, 0.25, 1.0, 2.0, 10.0])
def test_ages_are_sampled_evenly_between_releases_whatever_their_distance(tick_s: float) -> None:
    ages = InformationAges(groups_last=False)
    found = []
    for tick in range(round(600 / tick_s)):
        now = 1000 + tick * tick_s
        found += ages.until(now).tolist()
        ages.see(release([0]), np.array([now + 20]), event_s=now, now=now)
    assert len(found) == pytest.approx(600, abs=11)
    assert np.mean(found) == pytest.approx(tick_s / 2, rel=0.05)
    assert np.quantile(found, 0.95) == pytest.approx(0.95 * tick_s, rel=0.05)


def test_of_groups_that_publish_every_six_seconds_the_mean_is_half_of_it() -> None:
    fleet = Fleet(200, every_s=2.0, region={"place_devices": 1})
    fleet.run(30)
    before = fleet.flow.stats.age_s.copy()
    fleet.run(240)
    age_s = fleet.flow.stats.age_s.since(before)
    assert age_s.mean == pytest.approx(3, rel=0.2)
    assert age_s.quantile(0.95) <= 7
    assert fleet.flow.information_limit_s == 60
    latency_s = fleet.flow.stats.latency_s
    assert latency_s["tick"].n + latency_s["group"].n > 1000


def test_two_histograms_are_added() -> None:
    one, other = BatchHistogram((1, 2)), BatchHistogram((1, 2))
    one.observe([1, 2, 5])
    other.observe([2])
    assert one.plus(other).cumulative() == [1, 3, 4]
    assert one.plus(other).total == 10
    assert one.cumulative() == [1, 2, 3]
