"""Habits, paths and looks find trips that are published alone, and no one of k in classes."""

from collections.abc import Sequence

import numpy as np
import pytest

from anonymizer.algorithms.positions.trip_classes import CellSpan, TripClass, WindowTrips
from anonymizer.networks import load_network
from experiments import trip_habits
from experiments.scores import Score
from experiments.trip_habits import (
    Box,
    K,
    TripHabits,
    Weeks,
    Window,
    box_of,
    by_classes,
    one_by_one,
    run_trip_habits,
    trip_weeks,
)
from experiments.trip_looks import Positions, run_trip_moments, run_trip_paths, ways_of

CITY = load_network("city:1000")
N_PEOPLE = 150
RAW, CLASSES = "raw trips, no names", "trips"


@pytest.fixture(scope="module")
def weeks() -> Weeks:
    return trip_weeks(CITY, N_PEOPLE, 1)


@pytest.fixture(scope="module")
def scores(weeks: Weeks) -> Sequence[Score]:
    return [
        score
        for run in (run_trip_habits, run_trip_paths, run_trip_moments)
        for score in run(weeks, seed=1)
    ]


def of(scores: Sequence[Score], attack: str, release: str) -> dict[str, float]:
    [found] = [s for s in scores if (s.attack, s.release) == (attack, release)]
    return found.row()


@pytest.mark.parametrize(
    ("attack", "least"),
    [
        ("habits: whose trip", 0.6),
        ("habits: where it went", 0.6),
        ("habits: there on a day", 0.65),
        ("paths: a known start", 0.6),
        ("moments: 2 ends first: whose trip", 0.9),
        ("moments: 4 at random: whose trip", 0.6),
        ("trips: 1 before it that day: whose trip", 0.4),
    ],
)
def test_trips_that_are_published_alone_are_found(
    scores: Sequence[Score], attack: str, least: float
) -> None:
    row = of(scores, attack, RAW)
    assert row["success"] > least
    assert row["low"] > 1.25 * row["control"]


def test_no_knowledge_finds_one_of_the_trips_of_a_class(scores: Sequence[Score]) -> None:
    asked = [s for s in scores if s.release == CLASSES and s.attack.endswith("whose trip")]
    assert len(asked) > 5
    for score in asked:
        assert np.nanmax(score.success) <= 1 / K, score.attack


@pytest.mark.parametrize(
    "attack", ["habits: where it went", "paths: a known start", "habits: there on a day"]
)
def test_classes_add_little_to_what_habits_tell(scores: Sequence[Score], attack: str) -> None:
    row = of(scores, attack, CLASSES)
    assert row["success"] < 1.2 * row["control"]


def test_the_release_of_another_day_tells_nothing(scores: Sequence[Score]) -> None:
    placebo = of(scores, "habits: where it went, placebo", RAW)
    assert placebo["success"] < 1.1 * placebo["control"]


def test_both_ends_and_the_time_of_a_trip_tell_its_class(scores: Sequence[Score]) -> None:
    for release in (RAW, CLASSES):
        assert of(scores, "moments: 2 ends first: class of a trip", release)["success"] == 1


def test_classes_are_those_that_are_published(weeks: Weeks) -> None:
    told = [each for window in weeks.later for each in by_classes(window, weeks.n_cells)]
    assert told
    assert min(each.n_devices for each in told) >= K
    window = weeks.later[0]
    assert len(one_by_one(window, weeks.n_cells)) == len(window.trips.device)


def test_expected_trips_are_those_of_the_people_who_make_them() -> None:
    """Two people: one goes from cell 0 to cell 1 at eight each day, the other one back."""
    n_days = 6
    windows = []
    for day in range(n_days):
        trips = WindowTrips(
            np.array([0, 1]), np.array([0, 1]), np.array([1, 0]), np.array([4, 4]),
            [np.zeros(0, np.int64)] * 2,
        )  # fmt: skip
        windows.append(Window((20_836 + day) * 24 + 8, trips, np.zeros(2)))
    habits = TripHabits(windows, n_people=2, n_cells=2)
    there = TripClass(CellSpan(0, 0), CellSpan(1, 1), CellSpan(4, 4), 1, np.zeros(0, np.int64))
    box = box_of(windows[0], there)
    mine, others = habits.of_each(box)
    assert mine > 10 * others
    later = box._replace(first_step=box.first_step + 40)
    assert habits.of_each(later)[0] < mine / 5, "not at that time"
    everybody, of = habits.by_destination(Box(*there[:2], *box[2:]))
    assert everybody.sum() == pytest.approx(habits.of_each(box).sum())
    assert of(0).sum() == pytest.approx(mine)
    assert everybody[0] == 0, "no trip of the box ends there"


def test_habits_explain_days_by_who_makes_their_trips(weeks: Weeks) -> None:
    habits = TripHabits(weeks.known, n_people=N_PEOPLE, n_cells=weeks.n_cells)
    own, ever, everybody, _ = habits.weight
    assert own > ever > everybody
    n_days = len({window.day for window in weeks.known})
    whole = CellSpan(0, weeks.n_cells - 1)
    first_step = weeks.known[0].day * trip_habits._DAY
    day = habits.of_each(Box(whole, whole, first_step, trip_habits._DAY)).sum()
    assert day == pytest.approx(len(habits.device) / n_days, rel=0.35)


def test_positions_of_a_trip_lead_from_its_origin_to_its_destination(weeks: Weeks) -> None:
    positions = Positions(weeks)
    for number in (3, 10, 20):
        trips = weeks.later[number].trips
        for row in range(len(trips.device)):
            trip = positions.of(number, row)
            cells = weeks.cell_of[trip.node]
            assert (cells[0], cells[-1]) == (trips.origin[row], trips.destination[row])
            assert (np.diff(trip.ts) > 0).all()
            assert trip.ts[-1] == weeks.later[number].end_s[row]


def test_ways_lead_from_middle_to_middle(weeks: Weeks) -> None:
    ways = ways_of(weeks)
    cells = np.arange(weeks.n_cells)
    assert (weeks.cell_of[ways.middle] == cells).all()
    for origin in (0, 5):
        for end in (3, 9):
            on_way = np.flatnonzero(ways.on_way[origin, end])
            assert {ways.middle[origin], ways.middle[end]} <= set(on_way.tolist())
            away_s = np.sort(ways.away_s[origin, on_way])
            assert away_s[-1] == ways.away_s[origin, ways.middle[end]]
