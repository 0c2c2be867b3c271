"""Weeks of commuters: people of several kinds, who drive where and when they usually do.

The traffic of `simulator` has no memory: its devices pick a destination at random. Here everybody
has a home, a place of work or none, and a few places of their own; days differ by kind of person,
weekday, illness and chance.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from simulator.shortest_paths import Router

DAY_S = 86_400.0
HOUR_S = 3600.0
MONDAY = 20_836
"""Days from 1970 to the first day of the weeks, a Monday."""
WORKING_DAYS = 5
KINDS = ("office", "shifts", "part time", "school run", "at home")
_SHARES = (0.45, 0.15, 0.12, 0.13, 0.15)
N_WORKPLACES, N_SCHOOLS, N_PLACES = 40, 8, 40
N_OWN = 4
"""Places that somebody goes to again and again: a shop, a gym, friends."""
LATE_S = 420.0
"""Standard deviation of how much later or earlier than usual somebody leaves."""
AWAY_SHARE = 0.03
"""Probability that an illness or holiday begins on a day; it takes one to five days."""
_AWAY_DAYS = 5
ERRAND_SHARE = 0.6
"""Share of the days without work on which somebody drives somewhere."""
STRANGE_SHARE = 0.2
"""Share of the errands that lead to a place where somebody seldom is."""
_SHIFTS_H = ((5.6, 14.2), (13.6, 22.2), (21.6, 30.2))
"""Hours at which somebody leaves for a shift, and at which it ends; it changes every week."""
_PACE = (0.7, 1.0)


class _Trip(NamedTuple):
    begins_s: float
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Weeks:
    """The trace of people over some weeks, and what they are."""

    trace: Trace
    """Reports while they drive; device d is person d."""
    kind: IntArray
    """Index into `KINDS`, shape (people,)."""
    home: IntArray
    """Node, shape (people,)."""
    drives: BoolArray
    """Who drives on which day, shape (people, days)."""


class _Town:
    """Where people go, and the ways there."""

    def __init__(self, network: RoadNetwork, rng: np.random.Generator) -> None:
        self._network, self._router = network, Router(network)
        strong = self._router.strong_of
        self.nodes = np.flatnonzero(strong == np.bincount(strong).argmax())
        n = (N_WORKPLACES, N_SCHOOLS, N_PLACES)
        self.goals = rng.choice(self.nodes, min(sum(n), len(self.nodes)), replace=False)
        self.works, self.schools, self.places = np.split(self.goals, np.cumsum(n[:2]))
        # Few places draw many people.
        popular = 1.0 / np.arange(1, len(self.works) + 1)
        self.popular = popular / popular.sum()
        self._arcs_to = {g: self._router.next_arcs_to(g) for g in self.goals.tolist()}
        self._ways: dict[tuple[int, int], tuple[IntArray, FloatArray]] = {}

    def way(self, start: int, end: int) -> tuple[IntArray, FloatArray]:
        """Return the nodes on the way and the seconds at each; home by the way that led there."""
        if (start, end) not in self._ways:
            if end in self._arcs_to:
                self._ways[start, end] = drive_along(
                    self._network, self._router, self._arcs_to[end], start
                )
            else:
                path, at_s = self.way(end, start)
                self._ways[start, end] = path[::-1], at_s[-1] - at_s[::-1]
        return self._ways[start, end]


def commuter_weeks(
    network: RoadNetwork, n_people: int, *, n_days: int, every_s: float, seed: int
) -> Weeks:
    """Return the days of some people, from a Monday on.

    Parameters
    ----------
    every_s
        Seconds between two reports. People report only while they drive.
    seed
        Equal arguments and seed give equal weeks.
    """
    rng = np.random.default_rng(seed)
    town = _Town(network, rng)
    home = rng.choice(town.nodes, n_people, replace=n_people > len(town.nodes))
    kind = rng.choice(len(KINDS), n_people, p=_SHARES)
    drives = np.zeros((n_people, n_days), bool)
    device, ts, node = [], [], []
    for person in range(n_people):
        someone = _Person(KINDS[kind[person]], int(home[person]), town, rng)
        for day, trips in enumerate(someone.days(n_days)):
            drives[person, day] = bool(trips)
            for trip in trips:
                path, passed_s = town.way(trip.start, trip.end)
                passed_s = passed_s / rng.uniform(*_PACE)
                seconds = np.append(np.arange(0.0, passed_s[-1], every_s), passed_s[-1])
                device.append(np.full(len(seconds), person))
                ts.append((MONDAY + day) * DAY_S + trip.begins_s + seconds)
                node.append(path[np.searchsorted(passed_s, seconds, "right") - 1])
    who, when, where = (np.concatenate(column) for column in (device, ts, node))
    order = np.argsort(when, kind="stable")
    trace = Trace(
        device_id=tuple(f"person-{p}" for p in range(n_people)),
        device_of=who[order],
        ts=when[order],
        lat=network.lat[where[order]],
        lon=network.lon[where[order]],
        node=network.node_id[where[order]],
    )
    return Weeks(trace, kind, home, drives)


class _Person:
    """Somebody of a kind, with places and times of their own."""

    def __init__(self, kind: str, home: int, town: _Town, rng: np.random.Generator) -> None:
        self._kind, self._home, self._town, self._rng = kind, home, town, rng
        self._work = int(rng.choice(town.works, p=town.popular))
        self._school = int(rng.choice(town.schools))
        self._own = rng.choice(town.places, N_OWN, replace=False)
        self._leaves_h, self._stays_h = float(rng.normal(7.8, 0.7)), float(rng.normal(8.6, 0.5))
        self._first_shift = int(rng.integers(len(_SHIFTS_H)))
        self._works_on, self._gym_on = rng.permutation(WORKING_DAYS)[:3], rng.permutation(5)[:2]

    def days(self, n_days: int) -> Iterator[list[_Trip]]:
        """Yield the trips of each day."""
        back_on = 0
        for day in range(n_days):
            if day >= back_on and self._rng.random() < AWAY_SHARE:
                back_on = day + 1 + int(self._rng.integers(_AWAY_DAYS))
            yield [] if day < back_on else self._trips(self._stops(*divmod(day, 7)))

    def _stops(self, week: int, weekday: int) -> list[tuple[float, int]]:
        """Return the hours at which somebody leaves, and where for."""
        works = weekday < WORKING_DAYS
        if self._kind == "shifts" and works:
            begin, end = _SHIFTS_H[(self._first_shift + week) % len(_SHIFTS_H)]
            return [(begin, self._work), (end, self._home)]
        if self._kind == "school run" and works:
            there = [(7.5, self._school), (7.8, self._work)]
            return [*there, (15.2, self._school), (15.6, self._home)]
        if self._kind == "part time" and weekday in self._works_on:
            return [(self._leaves_h, self._work), (self._leaves_h + 5.0, self._home)]
        if self._kind == "office" and works:
            back_h = self._leaves_h + self._stays_h
            back = [(back_h, self._home)]
            if weekday in self._gym_on:
                back = [(back_h, int(self._own[0])), (back_h + 1.4, self._home)]
            return [(self._leaves_h, self._work), *back]
        if self._kind == "shifts" or self._rng.random() > ERRAND_SHARE:
            return []
        return self._errand(works)

    def _errand(self, works: bool) -> list[tuple[float, int]]:  # noqa: FBT001  private
        rng = self._rng
        hour, stays_h = rng.normal(10.7, 1.0), 1.5
        if not works:
            hour, stays_h = rng.uniform(9.5, 17.0), rng.uniform(1.0, 4.0)
        place = rng.choice(self._town.places if rng.random() < STRANGE_SHARE else self._own)
        return [(float(hour), int(place)), (float(hour + stays_h), self._home)]

    def _trips(self, stops: list[tuple[float, int]]) -> list[_Trip]:
        """Return the trips between stops, each after the one before it."""
        trips, at, free_s = [], self._home, 0.0
        for hour, goal in stops:
            begins_s = max(hour * HOUR_S + float(self._rng.normal(0.0, LATE_S)), free_s)
            if goal != at:
                trips.append(_Trip(begins_s, at, goal))
                free_s = begins_s + float(self._town.way(at, goal)[1][-1]) / _PACE[0] + 60.0
            at = goal
        return trips


def drive_along(
    network: RoadNetwork, router: Router, next_arc_of: Int32Array, start: int
) -> tuple[IntArray, FloatArray]:
    """Return the nodes on the way to where no arc leads on, and the seconds at each."""
    path, at_s = [start], [0.0]
    while (arc := next_arc_of[path[-1]]) >= 0:
        path.append(int(network.neighbour_of[arc]))
        at_s.append(at_s[-1] + float(router.length_m[arc] / router.speed_mps[arc]))
    return np.array(path), np.array(at_s)
