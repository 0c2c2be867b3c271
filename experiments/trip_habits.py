"""Habits against published trips: whose trip it is, where it went, and whether somebody was there.

The adversary knows the true trips of everybody for two weeks, and reads the classes of trips of a
third one. How often somebody makes a trip from one cell to another at a time of the day is a
mixture, as in the audit's `habits`: of their own trips at that time, of their own trips at any
time, of everybody's, and of an even spread; its weights are those that explain days that were held
out. Each device of a class is then somebody with the probability that this person, of all people,
makes such trips.

Trips are those of the code that publishes them. In the release that is known to be broken each is
published alone, from its cell to its cell, without a name.
"""

import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.positions.trip_classes import (
    N_STARTS,
    CellSpan,
    TripClass,
    WindowTrips,
    n_cells_of,
    trip_classes,
)
from anonymizer.audit.attacks.trips import true_windows
from anonymizer.audit.case import Reports, TripsCase
from anonymizer.audit.mathematics.habits import is_weekend
from anonymizer.audit.stream_case import reports_of
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings
from experiments.commuter_weeks import DAY_S, MONDAY, commuter_weeks
from experiments.scores import Score

N_DAYS, KNOWN_DAYS = 21, 14
REPORT_S = 30.0
EVERY_S = 3600.0
K = 10
"""Devices in a class: `counts.k` by default."""
N_TARGETS = 200
_STEPS = N_STARTS // 2
"""Steps of starts in a window."""
_DAY = round(DAY_S / EVERY_S) * _STEPS
_LATE = ((-1, 0.25), (0, 0.5), (1, 0.25))
"""How much earlier or later than usual somebody leaves, in steps, and the share of such days."""
_ROUNDS = 30
_LEAST_WEIGHT = 1e-3

Told: TypeAlias = list[TripClass]


class Window(NamedTuple):
    """The trips that ended in a window, and its number since 1970."""

    number: int
    trips: WindowTrips
    end_s: FloatArray

    @property
    def day(self) -> int:
        """Day since 1970."""
        return int(self.number * EVERY_S // DAY_S)

    @property
    def first_step(self) -> int:
        """Step since 1970 at which the first of its trips may have begun."""
        return (self.number - 1) * _STEPS


def by_classes(window: Window, n_cells: int) -> Told:
    """Return what the gateway publishes about a window."""
    return trip_classes(window.trips, K, n_cells=n_cells)


def one_by_one(window: Window, _n_cells: int) -> Told:
    """Return each trip from its cell to its cell."""
    trips = window.trips
    at = zip(trips.origin.tolist(), trips.destination.tolist(), trips.start.tolist(), strict=True)
    return [
        TripClass(CellSpan(o, o), CellSpan(d, d), CellSpan(s, s), 1, np.unique(roads))
        for (o, d, s), roads in zip(at, trips.roads, strict=True)
    ]


RELEASES: dict[str, Callable[[Window, int], Told]] = {
    "trips": by_classes,
    "raw trips, no names": one_by_one,
}


class Weeks(NamedTuple):
    """The true trips of some weeks."""

    network: RoadNetwork
    n_people: int
    cell_of: IntArray
    """Of each node."""
    n_cells: int
    known: list[Window]
    later: list[Window]
    """`known`, `later`: windows of the days that are known, and of those that are attacked."""
    reports: Reports
    """The true positions."""
    gap_s: float
    """A silence that ends a trip."""

    def targets(self, seed: int) -> IntArray:
        """Return some people, rising."""
        rng = np.random.default_rng(seed)
        return np.sort(rng.permutation(self.n_people)[:N_TARGETS])


def trip_weeks(network: RoadNetwork, n_people: int, seed: int) -> Weeks:
    """Return the trips of simulated commuters."""
    trace = commuter_weeks(network, n_people, n_days=N_DAYS, every_s=REPORT_S, seed=seed).trace
    settings = Settings()
    rule, n_cells = settings.trips.published_rule, n_cells_of(network, K)
    reports = reports_of(trace, network, settings)
    case = TripsCase(rule, EVERY_S, K, n_cells, reports)
    windows = [
        Window(int(each.end_s[0] // EVERY_S), *each)
        for each in true_windows(case, network)
        if len(each.end_s)
    ]
    begins = MONDAY + KNOWN_DAYS
    return Weeks(
        network,
        n_people,
        compact_parts(network, n_cells).astype(np.int64),
        n_cells,
        [each for each in windows if each.day < begins],
        [each for each in windows if each.day >= begins],
        reports,
        rule.gap_s,
    )


class Box(NamedTuple):
    """Trips from some cells to some cells that began in some steps since 1970."""

    origin: CellSpan
    destination: CellSpan
    first_step: int
    n_steps: int

    @property
    def n_cells(self) -> int:
        """Pairs of cells."""
        return (self.origin.last - self.origin.first + 1) * (
            self.destination.last - self.destination.first + 1
        )


def box_of(window: Window, each: TripClass) -> Box:
    """Return where and when the trips of a class are."""
    n_steps = each.start.last - each.start.first + 1
    return Box(each.origin, each.destination, window.first_step + each.start.first, n_steps)


class TripHabits:
    """How often each person makes which trips, from the days that are known.

    Parameters
    ----------
    windows
        Of the known days.
    weight
        Of own trips at that time, own trips at any time, everybody's at that time, and an even
        spread. None: those that explain the last third of the days best.
    """

    def __init__(
        self,
        windows: list[Window],
        *,
        n_people: int,
        n_cells: int,
        weight: FloatArray | None = None,
    ) -> None:
        self.n_people, self.n_cells = n_people, n_cells
        self.device = np.concatenate([each.trips.device for each in windows])
        self.origin = np.concatenate([each.trips.origin for each in windows])
        self.destination = np.concatenate([each.trips.destination for each in windows])
        self._step = np.concatenate([each.first_step + each.trips.start for each in windows])
        self._weekend = is_weekend(self._step // _DAY)
        self._days = np.unique([each.day for each in windows])
        self._n_of_kind = np.maximum(np.bincount(is_weekend(self._days), minlength=2), 1)
        self.weight = self._explaining(windows) if weight is None else weight

    @cached_property
    def _usual(self) -> float:
        """Trips of a person on a day."""
        return len(self.device) / self.n_people / len(self._days)

    def rows(self, box: Box) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the known trips that lead where a box's do: how many at that time and at any."""
        (o, o_last), (d, d_last), first, n_steps = box
        at = np.flatnonzero(
            (self.origin >= o)
            & (self.origin <= o_last)
            & (self.destination >= d)
            & (self.destination <= d_last)
        )
        weekend = int(is_weekend(np.array([first // _DAY]))[0])
        timely = np.zeros(len(at))
        for late, share in _LATE:
            timely += share * ((self._step[at] + late - first) % _DAY < n_steps)
        timely *= (self._weekend[at] == weekend) / self._n_of_kind[weekend]
        ever = np.full(len(at), n_steps / _DAY / len(self._days))
        return at, timely, ever

    def of_each(self, box: Box) -> FloatArray:
        """Return how many trips of a box each person is expected to make, shape (people,)."""
        at, timely, ever = self.rows(box)
        own = self.weight[0] * timely + self.weight[1] * ever
        anybody = self._of_anybody(float(timely.sum()), box)
        mine: FloatArray = np.bincount(self.device[at], own, self.n_people).astype(np.float64)
        return mine + anybody

    def by_destination(self, box: Box) -> tuple[FloatArray, Callable[[int], FloatArray]]:
        """Return the same of all people together by destination, and of each, shape (cells,)."""
        at, timely, ever = self.rows(box)
        own = self.weight[0] * timely + self.weight[1] * ever
        span = np.zeros(self.n_cells)
        span[box.destination.first : box.destination.last + 1] = 1.0
        anybody = self.weight[2] * np.bincount(
            self.destination[at], timely, self.n_cells
        ) / self.n_people + span / span.sum() * self._even(box)
        total = np.bincount(self.destination[at], own, self.n_cells) + self.n_people * anybody

        def of(person: int) -> FloatArray:
            mine = self.device[at] == person
            where = self.destination[at][mine]
            found: FloatArray = np.bincount(where, own[mine], self.n_cells) + anybody
            return found

        return total, of

    def _of_anybody(self, timely: float, box: Box) -> float:
        return float(self.weight[2] * timely / self.n_people) + self._even(box)

    def _even(self, box: Box) -> float:
        share = box.n_cells / self.n_cells**2 * box.n_steps / _DAY
        return float(self.weight[3]) * self._usual * share

    def _explaining(self, windows: list[Window]) -> FloatArray:
        """Return the weights that make the trips of the last third of the days most probable."""
        held_from = self._days[len(self._days) - len(self._days) // 3]
        held = [each for each in windows if each.day >= held_from]
        before = TripHabits(
            [each for each in windows if each.day < held_from],
            n_people=self.n_people,
            n_cells=self.n_cells,
            weight=np.ones(4),
        )
        parts = []
        for window in held:
            trips = window.trips
            for i, each in enumerate(one_by_one(window, self.n_cells)):
                box = box_of(window, each)
                at, timely, ever = before.rows(box)
                mine = before.device[at] == trips.device[i]
                parts.append([
                    timely[mine].sum(), ever[mine].sum(), timely.sum() / self.n_people,
                    before._even(box),
                ])  # fmt: skip
        likely = np.array(parts).T
        n_held = np.bincount(is_weekend(np.unique([w.day for w in held])), minlength=2)
        timely_all = np.bincount(before._weekend, minlength=2) / before._n_of_kind @ n_held
        ever_all = len(before.device) / len(before._days) * n_held.sum()
        expected = np.array([timely_all, ever_all, timely_all, ever_all])
        weight = np.full(4, 0.25)
        for _ in range(_ROUNDS):
            share = weight[:, None] * likely
            share /= np.maximum(share.sum(axis=0), 1e-300)
            weight = share.sum(axis=1) / np.maximum(expected, 1e-300)
        found: FloatArray = np.maximum(weight, _LEAST_WEIGHT)
        return found


class Release(NamedTuple):
    """The classes of all windows that are attacked, and how likely each holds a trip of each."""

    window_of: IntArray
    """Position in `Weeks.later` of each class, shape (classes,)."""
    told: Told
    """The classes."""
    expected: FloatArray
    """Devices of each class that each person is expected to be, shape (people, classes)."""
    holds: BoolArray
    """Whether a trip of each person is in it, likewise."""
    n_devices: IntArray
    """True distinct devices of each class."""


def release_of(weeks: Weeks, habits: TripHabits, publish: Callable[[Window, int], Told]) -> Release:
    """Publish the later days, and read the classes with habits."""
    window_of, told, expected, members = [], [], [], []
    for number, window in enumerate(weeks.later):
        for each in publish(window, weeks.n_cells):
            mine = habits.of_each(box_of(window, each))
            window_of.append(number)
            told.append(each)
            expected.append(each.n_devices * mine / mine.sum())
            members.append(np.unique(window.trips.device[each.holds(window.trips)]))
    holds = np.zeros((weeks.n_people, len(told)), bool)
    for i, devices in enumerate(members):
        holds[devices, i] = True
    score = np.stack(expected, axis=1) if expected else np.zeros((weeks.n_people, 0))
    return Release(np.array(window_of, np.int64), told, score, holds, holds.sum(axis=0))


def run_trip_habits(
    weeks: Weeks, *, seed: int, progress: Callable[[str], None] = lambda _what: None
) -> Iterator[Score]:
    """Attack the trips of the third week of simulated commuters with the habits of two weeks."""
    habits = TripHabits(weeks.known, n_people=weeks.n_people, n_cells=weeks.n_cells)
    targets = weeks.targets(seed)
    for name, publish in RELEASES.items():
        progress(f"habits: {name}")
        begun = time.process_time()
        release = release_of(weeks, habits, publish)
        (hit, right), (other_hit, other_right) = _named(weeks, release, targets)
        there, other = _present(weeks, release, targets)
        went, placebo, alone = _destinations(weeks, habits, release, targets)
        cpu_s = time.process_time() - begun
        promised = 1 / K if publish is by_classes else None
        yield Score("habits: whose trip", name, right, other_right, cpu_s, promised)
        yield Score("habits: class of a trip", name, hit, other_hit, cpu_s)
        yield Score("habits: where it went", name, went, alone, cpu_s)
        yield Score("habits: where it went, placebo", name, placebo, alone, cpu_s)
        yield Score("habits: there on a day", name, there, other, cpu_s)


def _named(
    weeks: Weeks, release: Release, targets: IntArray
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Guess one class of each day on which a trip of a target is published.

    Returns how often it holds a trip of the target, and how often one of its trips that is guessed
    is the target's: by the habits of the target, and by those of somebody else.
    """
    days = np.array([window.day for window in weeks.later])[release.window_of]
    holds, other = release.holds[targets], np.roll(targets, 1)
    total, n = np.zeros((2, 2, len(targets))), np.zeros(len(targets))
    for day in np.unique(days).tolist():
        at = np.flatnonzero(days == day)
        there = holds[:, at].any(axis=1)
        n += there
        for i, whose in enumerate((targets, other)):
            best = at[release.expected[np.ix_(whose, at)].argmax(axis=1)]
            hit = holds[np.arange(len(targets)), best] & there
            total[i, 0] += hit
            total[i, 1] += hit / release.n_devices[best]
    with np.errstate(invalid="ignore"):
        share = total / n
    return (share[0, 0], share[0, 1]), (share[1, 0], share[1, 1])


def _present(weeks: Weeks, release: Release, targets: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return how often a day with trips of a target is told from one without, of the same kind.

    By the habits of the target, and by those of somebody else; a half is chance.
    """
    every = np.unique([window.day for window in weeks.later])
    of_class = np.array([window.day for window in weeks.later])[release.window_of]
    drove = np.zeros((weeks.n_people, len(every)), bool)
    for window in weeks.later:
        drove[window.trips.device, np.searchsorted(every, window.day)] = True
    total = np.stack([release.expected[:, of_class == day].sum(axis=1) for day in every], axis=1)
    found = np.full((2, len(targets)), np.nan)
    for i, target in enumerate(targets.tolist()):
        there = drove[target]
        pairs = is_weekend(every[there])[:, None] == is_weekend(every[~there])
        for j, whose in enumerate((target, targets[i - 1])):
            if pairs.any():
                more = np.sign(total[whose, there][:, None] - total[whose, ~there])[pairs]
                found[j, i] = (more.mean() + 1) / 2
    return found[0], found[1]


def _destinations(
    weeks: Weeks, habits: TripHabits, release: Release, targets: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the belief in the cell where a trip of each target ended, given in which window.

    With the release, with that of another day of the same kind at that time, and without one.
    """
    is_target = np.zeros(weeks.n_people, bool)
    is_target[targets] = True
    total, n = np.zeros((3, weeks.n_people)), np.zeros(weeks.n_people)
    everywhere = CellSpan(0, weeks.n_cells - 1)
    told_in = _classes_by_window(weeks, release)
    for number, window in enumerate(weeks.later):
        rows = np.flatnonzero(is_target[window.trips.device])
        placebo = _another_day(weeks, told_in, number)
        if not told_in[number] or placebo is None or not len(rows):
            continue
        people = np.unique(window.trips.device[rows]).tolist()
        whole = [TripClass(everywhere, everywhere, CellSpan(0, N_STARTS - 1), 1, rows[:0])]
        for i, told in enumerate((told_in[number], told_in[placebo], whole)):
            belief = _believed(habits, window, told, people)
            for row in rows.tolist():
                who = int(window.trips.device[row])
                total[i, who] += belief[who][window.trips.destination[row]]
        np.add.at(n, window.trips.device[rows], 1)
    with np.errstate(invalid="ignore"):
        mean = (total / n)[:, targets]
    return mean[0], mean[1], mean[2]


def _believed(
    habits: TripHabits, window: Window, told: Told, people: list[int]
) -> dict[int, FloatArray]:
    """Return the belief of each of some people's habits in where a trip of a window ended."""
    found = {who: np.zeros(habits.n_cells) for who in people}
    for each in told:
        everybody, of = habits.by_destination(box_of(window, each))
        ratio = each.n_devices / everybody.sum()
        for who in people:
            found[who] += ratio * of(who)
    return {who: belief / belief.sum() for who, belief in found.items()}


def _classes_by_window(weeks: Weeks, release: Release) -> list[Told]:
    told: list[Told] = [[] for _ in weeks.later]
    for number, each in zip(release.window_of.tolist(), release.told, strict=True):
        told[number].append(each)
    return told


def _another_day(weeks: Weeks, told_in: list[Told], number: int) -> int | None:
    """Return the window at the same time of the nearest other day of the same kind."""
    here, n_of_day = weeks.later[number], round(DAY_S / EVERY_S)
    kind = is_weekend(np.array([here.day]))
    others = [
        (abs(each.day - here.day), i)
        for i, each in enumerate(weeks.later)
        if i != number
        and told_in[i]
        and each.number % n_of_day == here.number % n_of_day
        and is_weekend(np.array([each.day])) == kind
    ]
    return min(others)[1] if others else None
