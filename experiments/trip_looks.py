"""Paths and looks against published trips: which way one went, and which class it is in.

*Paths*: the adversary knows where and when somebody set out, and everybody's trips of two weeks but
this person's. It weighs the classes that hold such trips, their destinations, the shortest ways to
these, and the roads that are told. *Looks*: it sees where somebody is at some moments of a trip, or
knows other trips of the day, and guesses the class. Nobody's next look is worth more than the
beginning and the end: each trip is in one class, and its places and its time tell which.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from anonymizer.algorithms.positions.trip_classes import N_STARTS, CellSpan, TripClass
from anonymizer.algorithms.releases.observed import tangent_plane
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from experiments.scores import Score
from experiments.trip_habits import (
    EVERY_S,
    RELEASES,
    Box,
    K,
    Told,
    TripHabits,
    Weeks,
    Window,
    box_of,
    by_classes,
)
from simulator.shortest_paths import Router

MOST_LOOKS = 4
MOST_TRIPS = 2
"""Trips of a day that are known."""
_STEP_S = 2 * EVERY_S / N_STARTS
_PACE = 0.85
"""Usual pace, of what the roads allow."""
_DETOUR_S = 60.0
"""Ways that take so much longer than the shortest are e times less likely."""
_SLIP = 1e-3
"""How likely a trip is that does not fit, beside one that does."""
_TOLD = 2.0
"""What a road that is told weighs beside one that is guessed."""
_HOME = 0.8
"""Share of the trips that are taken to lead to where the first one of the day began."""


class Ways(NamedTuple):
    """Shortest ways between cells."""

    away_s: FloatArray
    """Seconds from the middle of each cell to each node, shape (cells, nodes)."""
    on_way: BoolArray
    """Whether a node is on the way from the middle of a cell to that of another one, shape (cells,
    cells, nodes)."""
    middle: IntArray
    """The node in the middle of each cell."""


def ways_of(weeks: Weeks) -> Ways:
    """Return the shortest ways between the cells of a town; O(cells^2 nodes) of memory."""
    network, router = weeks.network, Router(weeks.network)
    arc = np.flatnonzero(network.drivable)
    travel_s = (router.length_m / router.speed_mps)[arc]
    second = csr_array(
        (travel_s, (router.tail_of[arc], network.neighbour_of[arc])),
        shape=(network.n_nodes, network.n_nodes),
    )
    x_m, y_m = tangent_plane(network)
    middle = np.empty(weeks.n_cells, np.int64)
    for cell in range(weeks.n_cells):
        at = np.flatnonzero(weeks.cell_of == cell)
        middle[cell] = at[np.hypot(x_m[at] - x_m[at].mean(), y_m[at] - y_m[at].mean()).argmin()]
    away_s, before = dijkstra(second, indices=middle, return_predecessors=True)
    on_way = np.zeros((weeks.n_cells, weeks.n_cells, network.n_nodes), bool)
    for origin in range(weeks.n_cells):
        at, cells = middle.copy(), np.arange(weeks.n_cells)
        while len(cells):
            on_way[origin, cells, at] = True
            at = before[origin, at]
            cells, at = cells[at >= 0], at[at >= 0]
    return Ways(away_s, on_way, middle)


def run_trip_paths(
    weeks: Weeks, *, seed: int, progress: Callable[[str], None] = lambda _what: None
) -> Iterator[Score]:
    """Find the ways of trips of the third week of simulated commuters, known at their start."""
    habits = TripHabits(weeks.known, n_people=weeks.n_people, n_cells=weeks.n_cells)
    ways, targets = ways_of(weeks), weeks.targets(seed)
    for name, publish in RELEASES.items():
        progress(f"paths: {name}")
        begun = time.process_time()
        found, alone = _paths_found(weeks, habits, ways, targets, publish)
        yield Score("paths: a known start", name, found, alone, time.process_time() - begun)


def _paths_found(
    weeks: Weeks,
    habits: TripHabits,
    ways: Ways,
    targets: IntArray,
    publish: Callable[[Window, int], Told],
) -> tuple[FloatArray, FloatArray]:
    """Return how much of their paths is found, with the release and without, shape (targets,)."""
    is_target = np.zeros(weeks.n_people, bool)
    is_target[targets] = True
    total, n = np.zeros((2, weeks.n_people)), np.zeros(weeks.n_people)
    usual, reader = Usual(habits), _Reader(weeks, ways)
    for window in weeks.later:
        told = publish(window, weeks.n_cells)
        if not told:
            continue
        trips = window.trips
        population = [usual.of_all(box_of(window, each)) for each in told]
        for row in np.flatnonzero(is_target[trips.device]).tolist():
            path = reader.nodes_of(trips.roads[row])
            if not len(path):
                continue
            who, origin = int(trips.device[row]), int(trips.origin[row])
            start = int(trips.start[row])
            prior = usual.destinations(window, origin, start, without=who)
            weight = np.array([
                each.n_devices / everybody if _begins(each, origin, start) else 0.0
                for each, everybody in zip(told, population, strict=True)
            ])  # fmt: skip
            likely = reader.likely(told, weight, prior, origin)
            alone = prior @ ways.on_way[origin]
            for i, each in enumerate((likely, alone)):
                guessed = np.where(weeks.cell_of == origin, 0.0, each)
                best = np.argsort(-guessed, kind="stable")[: len(path)]
                total[i, who] += np.isin(path, best).mean()
            n[who] += 1
    with np.errstate(invalid="ignore"):
        share = (total / n)[:, targets]
    return share[0], share[1]


class Usual:
    """What everybody does, from the days that are known."""

    def __init__(self, habits: TripHabits) -> None:
        self._habits = habits

    def of_all(self, box: Box) -> float:
        """Return how many trips of a box all people are expected to make."""
        return float(self._habits.by_destination(box)[0].sum())

    def destinations(self, window: Window, origin: int, start: int, *, without: int) -> FloatArray:
        """Return where all others go who set out from a cell in a step, shape (cells,)."""
        here, everywhere = CellSpan(origin, origin), CellSpan(0, self._habits.n_cells - 1)
        box = Box(here, everywhere, window.first_step + start, 1)
        everybody, of = self._habits.by_destination(box)
        others = np.maximum(everybody - of(without), 0.0)
        found: FloatArray = others / others.sum()
        return found


def _begins(each: TripClass, origin: int, start: int) -> bool:
    return (
        each.origin.first <= origin <= each.origin.last
        and each.start.first <= start <= each.start.last
    )


class _Reader:
    """Reads from classes which nodes a trip passed whose start is known."""

    def __init__(self, weeks: Weeks, ways: Ways) -> None:
        self._weeks, self._ways = weeks, ways
        self._head = weeks.network.neighbour_of
        self._tail = Router(weeks.network).tail_of

    def nodes_of(self, arcs: IntArray) -> IntArray:
        """Return both ends of arcs, each once."""
        return np.unique(np.concatenate([self._tail[arcs], self._head[arcs]])).astype(np.int64)

    def likely(
        self, told: Sequence[TripClass], weight: FloatArray, prior: FloatArray, origin: int
    ) -> FloatArray:
        """Return how surely each node is passed.

        Parameters
        ----------
        weight
            Of each class, 0 if it holds no such start.
        prior
            Where trips with such a start end, without a release, shape (cells,).
        """
        if not weight.any():
            return np.asarray(prior @ self._ways.on_way[origin])
        cell = np.arange(self._weeks.n_cells)
        parts = np.zeros((len(told), self._weeks.n_cells))
        for i in np.flatnonzero(weight).tolist():
            ends = (told[i].destination.first <= cell) & (cell <= told[i].destination.last)
            parts[i] = weight[i] * prior * ends
        parts /= parts.sum()
        of_class, on_road = parts.sum(axis=1), np.zeros(self._weeks.network.n_nodes)
        for i in np.flatnonzero(of_class).tolist():
            took = min(K, told[i].n_devices) / told[i].n_devices
            on_road[self.nodes_of(told[i].roads)] += of_class[i] * took
        found: FloatArray = parts.sum(axis=0) @ self._ways.on_way[origin] + _TOLD * on_road
        return found


class _Trip(NamedTuple):
    """A trip that is looked at: its window and row, and its positions."""

    window: int
    row: int
    ts: FloatArray
    node: IntArray
    """`ts`, `node`: in order, shape (positions,)."""


def run_trip_moments(
    weeks: Weeks, *, seed: int, progress: Callable[[str], None] = lambda _what: None
) -> Iterator[Score]:
    """Find the class of a trip of the third week by looks, and by other trips of the day."""
    looks, targets = _Looks(weeks, ways_of(weeks)), weeks.targets(seed)
    for name, publish in RELEASES.items():
        progress(f"moments: {name}")
        told = [publish(window, weeks.n_cells) for window in weeks.later]
        chosen = _chosen(weeks, told, targets, seed)
        promised = 1 / K if publish is by_classes else None
        ways = {
            "moments: {} at random": partial(
                looks.found, told, chosen, ends_first=False, seed=seed
            ),
            "moments: {} ends first": partial(
                looks.found, told, chosen, ends_first=True, seed=seed
            ),
            "trips: {} before it that day": partial(_by_other_trips, weeks, told, targets),
        }
        for what, find in ways.items():
            begun = time.process_time()
            hit, right = find(of_others=False)
            cpu_s = time.process_time() - begun
            other_hit, other_right = find(of_others=True)
            for n in range(hit.shape[1]):
                attack = what.format(n + 1)
                yield Score(
                    f"{attack}: whose trip", name, right[:, n], other_right[:, n], cpu_s, promised
                )
                yield Score(f"{attack}: class of a trip", name, hit[:, n], other_hit[:, n], cpu_s)


def _chosen(
    weeks: Weeks, told: Sequence[Told], targets: IntArray, seed: int
) -> list[tuple[_Trip, _Trip]]:
    """Return a random published trip of each target, and one of somebody else that ended then."""
    rng = np.random.default_rng(seed)
    positions = Positions(weeks)
    found = []
    for target in targets.tolist():
        windows = [
            i
            for i, window in enumerate(weeks.later)
            if told[i] and (window.trips.device == target).any()
        ]
        if not windows:
            continue
        number = int(rng.choice(windows))
        device = weeks.later[number].trips.device
        own, others = np.flatnonzero(device == target), np.flatnonzero(device != target)
        if len(others):
            found.append(
                (
                    positions.of(number, int(rng.choice(own))),
                    positions.of(number, int(rng.choice(others))),
                )
            )
    return found


class Positions:
    """The positions on each trip."""

    def __init__(self, weeks: Weeks) -> None:
        self._weeks = weeks
        device, ts, node = weeks.reports
        order = np.lexsort((ts, device))
        self._device, self._ts, self._node = device[order], ts[order], node[order]
        self._first = np.searchsorted(self._device, np.arange(weeks.n_people + 1))

    def of(self, number: int, row: int) -> _Trip:
        """Return a trip of a window, with its positions."""
        window = self._weeks.later[number]
        who = int(window.trips.device[row])
        first, end = self._first[who : who + 2]
        ts = self._ts[first:end]
        begins_s = (window.first_step + int(window.trips.start[row])) * _STEP_S
        upto = int(np.searchsorted(ts, window.end_s[row], "right"))
        since = int(np.searchsorted(ts, begins_s))
        stops = np.flatnonzero(np.diff(ts[since:upto]) > self._weeks.gap_s)
        rows = slice(first + since + int(stops.max(initial=-1)) + 1, first + upto)
        return _Trip(number, row, self._ts[rows], self._node[rows].astype(np.int64))


class _Looks:
    """How likely positions are on the trips of a class."""

    def __init__(self, weeks: Weeks, ways: Ways) -> None:
        self._weeks, self._ways = weeks, ways
        between = ways.away_s[:, ways.middle]
        self._direct_s = between
        self._n_on_way = np.stack([
            np.exp(-self._detour_s(ways.away_s[o, None], ways.away_s, row[:, None])).sum(axis=1)
            for o, row in enumerate(between)
        ])  # fmt: skip

    @staticmethod
    def _detour_s(there: FloatArray, on: FloatArray, direct: FloatArray) -> FloatArray:
        """Return by how much a way over a node is longer, in units of `_DETOUR_S`."""
        detour: FloatArray = np.maximum(there + on - direct, 0.0) / _DETOUR_S
        return detour

    def passing(self, window: Window, each: TripClass, ts: float, node: int) -> float:
        """Return how likely somebody on a trip of a class is at a node at a moment."""
        o, d = (
            slice(each.origin.first, each.origin.last + 1),
            slice(each.destination.first, each.destination.last + 1),
        )
        there, on = self._ways.away_s[o, node], self._ways.away_s[d, node]
        detour = self._detour_s(there[:, None], on[None, :], self._direct_s[o, d])
        step = (ts - there / _PACE) / _STEP_S - window.first_step
        fits = (each.start.first - 0.5 <= step) & (step <= each.start.last + 1.5)
        by_pair = np.exp(-detour) / self._n_on_way[o, d] * np.where(fits, 1.0, _SLIP)[:, None]
        return float(by_pair.mean()) + _SLIP / self._weeks.network.n_nodes

    def found(
        self,
        told: Sequence[Told],
        chosen: Sequence[tuple[_Trip, _Trip]],
        *,
        of_others: bool,
        ends_first: bool,
        seed: int,
    ) -> tuple[FloatArray, FloatArray]:
        """Return how often the class of a trip is found by each number of looks, and the trip.

        Parameters
        ----------
        chosen
            Trips to find, each with that of somebody else, who is looked at with `of_others`.
        ends_first
            Whether the first two looks are at the beginning and at the end; the others are random.

        Returns
        -------
        hit, right
            Shape (trips, `MOST_LOOKS`).
        """
        rng = np.random.default_rng(seed)
        hit, right = np.zeros((2, len(chosen), MOST_LOOKS))
        for i, (own, other) in enumerate(chosen):
            window, classes = self._weeks.later[own.window], told[own.window]
            seen = other if of_others else own
            weight = np.log([float(each.n_devices) for each in classes])
            for look in range(MOST_LOOKS):
                if ends_first and look < 2:
                    weight += self._of_end(window, classes, seen, is_first=not look)
                else:
                    at = int(rng.integers(len(seen.ts)))
                    ts, node = float(seen.ts[at]), int(seen.node[at])
                    weight += np.log([self.passing(window, each, ts, node) for each in classes])
                hit[i, look], right[i, look] = _guessed(weight, classes, window, own.row)
        return hit, right

    def _of_end(self, window: Window, classes: Told, trip: _Trip, *, is_first: bool) -> FloatArray:
        """Return how likely a beginning or an end is of each class, as a logarithm."""
        found = []
        for each in classes:
            n_steps = each.start.last - each.start.first + 1
            if is_first:
                span, n = each.origin, n_steps * (each.origin.last - each.origin.first + 1)
                cell = int(self._weeks.cell_of[trip.node[0]])
                step = int(trip.ts[0] // _STEP_S) - window.first_step
                fits = _begins(each, cell, min(max(step, 0), N_STARTS - 1))
            else:
                span, n = each.destination, each.destination.last - each.destination.first + 1
                cell = int(self._weeks.cell_of[trip.node[-1]])
                fits = span.first <= cell <= span.last
            found.append((1.0 if fits else _SLIP) / n)
        return np.log(found)


def _guessed(weight: FloatArray, classes: Told, window: Window, row: int) -> tuple[float, float]:
    """Return how often the likeliest class holds a trip, and is that trip; ties are guessed."""
    best = np.flatnonzero(weight >= weight.max() - 1e-9).tolist()
    hit = right = 0.0
    for each in best:
        rows = classes[each].holds(window.trips)
        if row in rows:
            hit += 1 / len(best)
            right += 1 / len(best) / len(np.unique(window.trips.device[rows]))
    return hit, right


class _Made(NamedTuple):
    """A published trip of a target: when it began, its ends and its class."""

    step: int
    origin: int
    destination: int
    number: int


def _by_other_trips(
    weeks: Weeks, told: Sequence[Told], targets: IntArray, *, of_others: bool
) -> tuple[FloatArray, FloatArray]:
    """Return how often the class of the next trip of a day is found by those before it.

    The next trip begins where the last one ended, and mostly leads to where the first one began.
    Shapes (targets, `MOST_TRIPS`), NaN for a target who makes no more trips.
    """
    hit, right, n = np.zeros((3, len(targets), MOST_TRIPS))
    for day in sorted({window.day for window in weeks.later}):
        classes = [
            (i, each)
            for i, window in enumerate(weeks.later)
            if window.day == day
            for each in told[i]
        ]
        made = _made(weeks, classes, targets)
        for i, own in enumerate(made):
            for known in range(1, min(len(own), MOST_TRIPS + 1)):
                others = next(
                    (each for each in made[i + 1 :] + made[:i] if len(each) >= known), None
                )
                seen = others if of_others else own
                if seen is None:
                    continue
                weight = np.array([
                    _next_trip(weeks, i, each, seen[:known]) for i, each in classes
                ])  # fmt: skip
                best = np.flatnonzero(weight >= weight.max() - 1e-12)
                found = float((best == own[known].number).sum()) / len(best)
                number, each = classes[own[known].number]
                trips = weeks.later[number].trips
                hit[i, known - 1] += found
                right[i, known - 1] += found / len(np.unique(trips.device[each.holds(trips)]))
                n[i, known - 1] += 1
    with np.errstate(invalid="ignore"):
        return hit / n, right / n


def _made(
    weeks: Weeks, classes: Sequence[tuple[int, TripClass]], targets: IntArray
) -> list[list[_Made]]:
    """Return the trips of each target in these classes of a day, as they began."""
    found: dict[int, list[_Made]] = {target: [] for target in targets.tolist()}
    for number, (i, each) in enumerate(classes):
        window = weeks.later[i]
        trips = window.trips
        for row in each.holds(trips).tolist():
            if (who := int(trips.device[row])) in found:
                step = window.first_step + int(trips.start[row])
                ends = int(trips.origin[row]), int(trips.destination[row])
                found[who].append(_Made(step, *ends, number))
    return [sorted(each) for each in found.values()]


def _next_trip(weeks: Weeks, number: int, each: TripClass, known: Sequence[_Made]) -> float:
    """Return how likely the next trip is in a class, up to a factor."""
    first_step = weeks.later[number].first_step
    if first_step + each.start.last < known[-1].step:
        return 0.0
    origin, end, start = each.origin, each.destination, each.start
    begins = origin.first <= known[-1].destination <= origin.last
    leads_home = end.first <= known[0].origin <= end.last
    n_of_end = end.last - end.first + 1
    n = (origin.last - origin.first + 1) * (start.last - start.first + 1)
    to = _HOME * leads_home / n_of_end + (1 - _HOME) / weeks.n_cells
    return each.n_devices / n * (1.0 if begins else _SLIP) * to
