"""Departures that counts show to somebody who owns some of the devices.

The adversary owns up to `k_extra` devices, knows the settings and where everybody else is, but not
the secret of the thresholds. In each interval it has as many devices of its own in the area as make
the next one that leaves change the figures, as far as it can compute them. A departure is *seen* if
the figures of its interval differ with the device and without it. The control owns nothing, among
the same devices.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.safe_counts import figures, tally
from anonymizer.algorithms.positions.secret_thresholds import SecretThresholds
from anonymizer.algorithms.positions.street_hours import Passages, stretches_of
from anonymizer.algorithms.positions.trip_classes import N_STARTS, WindowTrips, trip_classes
from anonymizer.domain.arrays import IntArray

Figure = Callable[[IntArray, int, SecretThresholds], tuple[int, ...]]
"""Returns what is told of areas, given the area of each device, k and the thresholds."""
N_AREAS = 4
_MOVES = 20
"""One device in so many moves in an interval."""


class Seen(NamedTuple):
    """How many real departures there were, and how many of them a figure showed."""

    n_departures: int
    n_seen: int


def of_counts(area: IntArray, k: int, thresholds: SecretThresholds) -> tuple[int, ...]:
    """Safe counts by cell, with the devices that stayed as flows."""
    none = np.full(len(area), np.nan)
    counted = tally(area, area, n_cells=N_AREAS, speed_mps=none, dwell_s=none)
    safe = figures(counted, k, thresholds)
    return (*safe.first_cell_of.tolist(), *safe.n_devices.tolist(), *safe.n_flow.tolist())


def of_streets(area: IntArray, k: int, thresholds: SecretThresholds) -> tuple[int, ...]:
    """Traffic by street: each area is a road."""
    device = np.arange(len(area))
    passages = Passages(np.zeros(len(area), np.int64), area, device, np.full(len(area), np.nan))
    safe = stretches_of(passages, N_AREAS, k, thresholds)
    return (*safe.stretch_of.tolist(), *safe.n_devices.tolist())


def of_trips(area: IntArray, k: int, thresholds: SecretThresholds) -> tuple[int, ...]:
    """Trips from one area to itself."""
    start, roads = np.zeros(len(area), np.int64), [np.zeros(0, np.int64)] * len(area)
    trips = WindowTrips(np.arange(len(area)), area, area, start % N_STARTS, roads)
    found = trip_classes(trips, k, n_cells=N_AREAS, thresholds=thresholds)
    return tuple(n for each in found for n in (*each.origin, *each.destination, each.n_devices))


def of_counters(area: IntArray, k: int, thresholds: SecretThresholds) -> tuple[int, ...]:
    """Public counters: one for each area, to which its devices contribute."""
    n = np.bincount(area, minlength=N_AREAS)
    return tuple(thresholds.advances([(each,) for each in range(N_AREAS)], n, k).tolist())


FIGURES: dict[str, Figure] = {
    "counts": of_counts,
    "streets": of_streets,
    "trips": of_trips,
    "counters": of_counters,
}


def departures_seen(
    figure: Figure,
    *,
    n_devices: int,
    k: int,
    n_own: int,
    n_intervals: int,
    secret: bytes | None,
    rng: np.random.Generator,
) -> Seen:
    """Return what an adversary with `n_own` devices sees of one area in so many intervals.

    Devices come and go: in each interval one in twenty moves to another area. `secret`: of the
    thresholds; None: they are sharp.
    """
    area = rng.integers(0, N_AREAS, n_devices)
    n_departures = n_seen = 0
    for interval in range(n_intervals):
        moves = rng.random(n_devices) < 1 / _MOVES
        after = np.where(moves, rng.integers(0, N_AREAS, n_devices), area)
        gone = np.flatnonzero((area == 0) & (after != 0))
        guess = SecretThresholds(None if secret is None else b"a guess", interval=interval)
        own = _own_devices(figure, after, n_own, k, guess)
        thresholds = SecretThresholds(secret, interval=interval)
        told = figure(np.append(after, own), k, thresholds)
        for device in gone.tolist():
            stayed = after.copy()
            stayed[device] = 0
            n_departures += 1
            n_seen += figure(np.append(stayed, own), k, thresholds) != told
        area = after
    return Seen(n_departures, n_seen)


def _own_devices(
    figure: Figure, area: IntArray, n_own: int, k: int, guess: SecretThresholds
) -> IntArray:
    """Return own devices in the area that show one device more, by what the adversary computes."""
    for n in range(n_own + 1):
        own = np.zeros(n, np.int64)
        there = np.append(area, own)
        if figure(there, k, guess) != figure(np.append(there, 0), k, guess):
            return own
    return np.zeros(0, np.int64)


def rows(*, n_intervals: int, seed: int) -> Iterator[dict[str, object]]:
    """Yield how many departures are seen, by figure, fleet, own devices and thresholds."""
    for name, figure in FIGURES.items():
        for n_devices in (60, 200, 800):
            for n_own, secret in ((0, None), (5, None), (5, b"secret")):
                seen = departures_seen(
                    figure,
                    n_devices=n_devices,
                    k=15,
                    n_own=n_own,
                    n_intervals=n_intervals,
                    secret=secret,
                    rng=np.random.default_rng(seed),
                )
                yield {
                    "figure": name,
                    "devices": n_devices,
                    "own": n_own,
                    "thresholds": "sharp" if secret is None else "secret",
                    "departures": seen.n_departures,
                    "seen": seen.n_seen,
                }
