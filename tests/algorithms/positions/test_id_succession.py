"""Ids that change are noticed, and devices that come and go are not mistaken for them."""

from collections.abc import Callable

import numpy as np
import pytest

from anonymizer.algorithms.positions.id_succession import LEAST, Succession
from anonymizer.app.gateway.input_troubles import ChangingIds
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

TTL_S = 120
Named = tuple[IntArray, BoolArray]
"""The number of each vehicle's id at each second, and whether it reports, (seconds, vehicles)."""


def drive(n_vehicles: int, seconds: int, *, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return latitude and longitude of vehicles that wander through 20 km at 12 m/s."""
    rng = np.random.default_rng(seed)
    turn = np.cumsum(rng.normal(0, 0.05, (seconds, n_vehicles)), axis=0)
    way = turn + rng.uniform(0, 2 * np.pi, n_vehicles)
    place = rng.uniform(0, 20_000, (2, 1, n_vehicles))
    place = place + 12 * np.cumsum(np.stack([np.cos(way), np.sin(way)]), axis=1)
    lat = 60 + place[0] / 111_000
    return lat, 25 + place[1] / 111_000 / np.cos(np.radians(60))


def rotating(every_s: int) -> Callable[[int, int], Named]:
    def named(seconds: int, n: int) -> Named:
        phase = np.random.default_rng(1).integers(0, every_s, n)
        number = (np.arange(seconds)[:, None] + phase) // every_s
        return number, np.ones((seconds, n), bool)

    return named


def trips(seconds: int, n: int) -> Named:
    """Vehicles report while they drive, about 300 s, and then are silent; each trip has an id."""
    rng = np.random.default_rng(2)
    number, drives = np.zeros((seconds, n), np.int64), np.zeros((seconds, n), bool)
    for vehicle in range(n):
        at, trip = -int(rng.integers(300)), 0
        while at < seconds:
            end = at + 30 + int(rng.exponential(300))
            drives[max(at, 0) : max(end, 0), vehicle] = True
            number[max(at, 0) : max(end, 0), vehicle] = trip
            at, trip = end + 200 + int(rng.exponential(300)), trip + 1
    return number, drives


def watched(
    named: Callable[[int, int], Named],
    *,
    n: int = 200,
    seconds: int = 1500,
    interval_s: int = 10,
    seed: int = 3,
    ttl_s: float = TTL_S,
) -> Succession:
    lat, lon = drive(n, seconds, seed=seed)
    number, drives = named(seconds, n)
    phase = np.random.default_rng(4).integers(0, interval_s, n)
    slot_of: dict[tuple[int, int], int] = {}
    last_of: dict[int, int] = {}
    succession = Succession()
    for now in range(seconds):
        who = np.flatnonzero(drives[now] & ((now + phase) % interval_s == 0))
        slot = [slot_of.setdefault((v, int(number[now, v])), len(slot_of)) for v in who.tolist()]
        last_of.update(dict.fromkeys(slot, now))
        ts = np.full(len(who), float(now))
        succession.tick(
            np.array(slot, np.int32),
            ts,
            lat[now, who],
            lon[now, who],
            now=now,
            known_after_s=ttl_s + 60,
            ttl_s=ttl_s,
        )
        freed = [each for each, last in last_of.items() if last < now - ttl_s]
        for each in freed:
            del last_of[each]
        succession.free(np.array(freed, np.int32), silent_since=now - ttl_s)
    return succession


@pytest.mark.parametrize(("every_s", "interval_s"), [(60, 1), (60, 10), (300, 10), (300, 30)])
def test_ids_that_change_are_noticed(every_s: int, interval_s: int) -> None:
    assert watched(rotating(every_s), interval_s=interval_s).share > 0.6


@pytest.mark.parametrize("n_messages", [1, 2, 3])
@pytest.mark.parametrize(("n", "interval_s"), [(1, 1), (20, 2), (200, 10)])
def test_ids_of_one_message_or_of_a_few_are_noticed(
    n_messages: int, n: int, interval_s: int
) -> None:
    seconds = 900 if n == 1 else 540
    found = watched(rotating(n_messages * interval_s), n=n, interval_s=interval_s, seconds=seconds)
    assert found.ids_change


def test_a_fleet_of_twenty_takes_longer() -> None:
    assert not watched(rotating(300), n=20, seconds=900).ids_change
    assert watched(rotating(300), n=20, seconds=1800).ids_change


@pytest.mark.parametrize("seed", range(4))
def test_trips_that_end_and_begin_are_no_change_of_ids(seed: int) -> None:
    """The control: as many vehicles come and go, and each trip has an id of its own."""
    found = watched(trips, seed=seed)
    assert len(found._verdicts) >= LEAST
    assert abs(found.share) < 0.3


@pytest.mark.parametrize(
    ("n", "interval_s", "ttl_s"), [(60, 60, 40), (60, 150, 120), (60, 300, 120), (600, 300, 120)]
)
def test_devices_that_report_seldom_do_not_succeed_themselves(
    n: int, interval_s: int, ttl_s: float
) -> None:
    """Each expires before it reports again, at about the place where it was."""
    found = watched(rotating(10**6), n=n, interval_s=interval_s, ttl_s=ttl_s)
    assert len(found._verdicts) >= LEAST
    assert found.share < 0.3


def test_a_fleet_that_stays_says_nothing() -> None:
    found = watched(rotating(10**6))
    assert (found.share, found.ids_change) == (0.0, False)


def test_it_is_said_once_until_ids_stay_again() -> None:
    changing, staying = watched(rotating(60), interval_s=1, seconds=900), Succession()
    said = ChangingIds()
    looks = (staying, changing, changing, staying, changing)
    assert [said.see(each) for each in looks] == [False, True, False, False, True]
