"""How long the trips of small fleets take: what counts answer, how near it is, and who is found.

`python -m experiments.trip_times` publishes noisy counts with `trip_durations`, reads the median
with the client, and compares it with that of all trips, also those that no interval holds. Beside
it stands the exponential mechanism, which draws a median for each day or week [1]_. An adversary
who knows everything but one thing asks for that.

References
----------
.. [1] A. Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC
   2011: a quantile by the exponential mechanism.
"""

from collections.abc import Sequence
from math import exp
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.live_trips import LiveTrips
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network
from anonymizer.outputs.counts.private_counts import noise_of
from anonymizer.outputs.counts.trip_durations import N_DURATIONS
from anonymizer.settings import Settings
from experiments.commuter_weeks import DAY_S, commuter_weeks
from experiments.small_fleets import REPORT_S, Fleet, Published, count, publish

FLEETS = (
    Fleet("three people", 3, 364, 21_600.0, 2, trip_durations=True),
    Fleet("five people", 5, 364, 21_600.0, 2, trip_durations=True),
    Fleet("ten people", 10, 56, 21_600.0, 2, trip_durations=True),
    Fleet("forty vans", 40, 28, 21_600.0, 2, trip_durations=True),
)
WAITS_DAYS = (14, 28, 56, 364)
N_DRAWS = 40
NEAR = 0.2
"""An answer is near if it is at most this part of the truth away from it."""
_LOG_S = np.linspace(np.log(30.0), np.log(4 * 3600.0), 400)
"""Medians among which the exponential mechanism draws, on the scale of the client."""


class Told(NamedTuple):
    """How near the median of the trips is after some days."""

    n: int
    """Device-intervals with a trip."""
    error: float
    near: float
    """`error`, `near`: mean error, as part of the truth; share of answers that are within
    `NEAR`."""
    held: float
    """Share of the intervals of 95 % with the truth in them."""


def median_of_trips(trace: Trace) -> float:
    """Return the median duration of all trips, in seconds."""
    trips = LiveTrips(Settings().trips.rule, begins_s=-np.inf)
    row, nodes = trace.device_of.astype(np.int32), np.zeros(len(trace.ts), np.int32)
    ended = trips.tick(row, trace.ts, trace.lat, trace.lon, nodes) + trips.silent(np.inf)[0]
    return float(np.median([each.end_s - each.start_s for each in ended]))


def told(draws: Sequence[Published], true_s: float, *, days: int) -> Told:
    """Return how near the client's medians are, from the first days of each draw."""
    ends = draws[0].counts.ends
    end = ends[0] + days * DAY_S - 1
    found = np.array([each.counts.median_duration(start=0, end=end) for each in draws])
    off = np.abs(found[:, 0] / true_s - 1)
    held = (found[:, 1] <= true_s) & (true_s <= found[:, 2])
    n = int((draws[0].duration[np.array(ends) <= end] >= 0).sum())
    return Told(n, float(off.mean()), float((off <= NEAR).mean()), float(held.mean()))


def drawn_medians(
    seconds: Sequence[FloatArray], *, epsilon: float, rng: np.random.Generator
) -> FloatArray:
    """Return a median of each batch of durations, by the exponential mechanism.

    A duration that is added moves the ranks of all medians by a half at most, and so changes the
    probability of each by no more than `epsilon`.
    """
    found = []
    for batch in seconds:
        below = np.searchsorted(np.sort(np.log(batch)), _LOG_S)
        likely = -np.abs(below - len(batch) / 2)
        weight = np.exp(epsilon * (likely - likely.max()))
        found.append(float(np.exp(rng.choice(_LOG_S, p=weight / weight.sum()))))
    return np.array(found)


def _drawn_error(
    seconds: Sequence[Sequence[float]],
    true_s: float,
    fleet: Fleet,
    *,
    days: int,
    batch_days: int,
    rng: np.random.Generator,
) -> float:
    """Return the mean error of the middle one of medians that are drawn for some days each.

    The promise is that of the counts, with half of the budget: a device that is left out is in as
    many intervals as a batch has.
    """
    n_intervals, n_all = (round(n * DAY_S / fleet.every_s) for n in (batch_days, days))
    batches = [
        np.concatenate([np.zeros(0), *seconds[first : min(first + n_intervals, n_all)]])
        for first in range(0, n_all, n_intervals)
    ]
    epsilon = fleet.settings.counts.epsilon / 2 / n_intervals
    drawn = [np.median(drawn_medians(batches, epsilon=epsilon, rng=rng)) for _ in range(N_DRAWS)]
    return float(np.abs(np.array(drawn) / true_s - 1).mean())


def _first(found: Published, n: int) -> Published:
    """Return the numbers of the first intervals."""
    columns = (found.noisy, found.cell, found.timed, found.duration)
    return Published(found.counts, *(each[:n] for each in columns))


class Guesses(NamedTuple):
    """Share of right guesses about somebody by who knows all that the others did."""

    out: float
    which: float
    """`out`, `which`: whether somebody was out in one interval, by the likelihoods of all numbers;
    which of two durations the trip had."""
    nobody: float
    """As `out`, about somebody who is not there: by chance a half."""
    usual: float
    usual_chance: float
    """`usual`, `usual_chance`: the duration that somebody has most, of all days; the others' most
    usual one, instead."""


def guesses(found: Published, *, noise_sd: float, rng: np.random.Generator) -> Guesses:
    """Attack the counts and the durations together; noise of Laplace."""
    width = noise_sd / np.sqrt(2)
    rows = []
    for person in range(found.cell.shape[1]):
        where, how_long = found.cell[:, person], found.duration[:, person]
        others = np.delete(found.cell, person, axis=1), np.delete(found.duration, person, axis=1)
        cells = found.noisy - _counted(others[0], found.noisy.shape[1])
        times = found.timed - _counted(others[1], N_DURATIONS)
        went = np.flatnonzero(how_long >= 0)
        still = np.flatnonzero(where < 0)
        if not len(went) or not len(still):
            continue
        usual = np.bincount(where[went]).argmax(), np.bincount(how_long[went]).argmax()
        with_it = _favours(cells[went, where[went]], width)
        with_it += _favours(times[went, how_long[went]], width)
        without = _favours(cells[still, usual[0]], width) + _favours(times[still, usual[1]], width)
        gone = _favours(cells[went, where[went]] - 1, width)
        gone += _favours(times[went, how_long[went]] - 1, width)
        other = (how_long[went] + rng.integers(1, N_DURATIONS, len(went))) % N_DURATIONS
        pair = times[went, how_long[went]], times[went, other]
        rows.append(
            (
                _right(with_it, without),
                float(_sign(_favours(pair[0], width) - _favours(pair[1], width)).mean()),
                _right(gone, without),
                float(times.sum(axis=0).argmax() == usual[1]),
                float(np.bincount(others[1][others[1] >= 0]).argmax() == usual[1]),
            )
        )
    return Guesses(*np.mean(rows, axis=0).tolist())


def _favours(left: IntArray, width: float) -> FloatArray:
    """Return by how much what is left of a number is likelier from one device than from none."""
    likelier: FloatArray = (np.abs(left) - np.abs(left - 1)) / width
    return likelier


def _sign(score: FloatArray) -> FloatArray:
    """Return 1 where a score is above 0, a half where it says nothing."""
    return (np.sign(score) + 1) / 2


def _right(there: FloatArray, not_there: FloatArray) -> float:
    return float(_sign(there).mean() + 1 - _sign(not_there).mean()) / 2


def _counted(place: IntArray, n: int) -> IntArray:
    return np.stack([np.bincount(now[now >= 0], minlength=n) for now in place])


def main() -> None:
    """Print the answers, the other mechanism and the attacks, in Markdown."""
    network = load_network("city:1000")
    lines = [
        "| fleet | days | trips | error | within 20 % | intervals that hold | daily | weekly |"
    ]
    lines.append("|---|--:|--:|--:|--:|--:|--:|--:|")
    attacks = ["| fleet | days | out | which | nobody | usual | by the others |"]
    attacks.append("|---|--:|--:|--:|--:|--:|--:|")
    for fleet in FLEETS:
        weeks = commuter_weeks(
            network, fleet.n_devices, n_days=fleet.n_days, every_s=REPORT_S, seed=fleet.n_devices
        )
        true_s = median_of_trips(weeks.trace)
        counted = count(weeks.trace, network, fleet.settings)
        draws = [publish(counted, network, fleet.settings) for _ in range(N_DRAWS)]
        noise_sd, rng = noise_of(fleet.settings.counts).scale, np.random.default_rng(0)
        for days in WAITS_DAYS:
            if days > fleet.n_days:
                continue
            n, error, near, held = told(draws, true_s, days=days)
            row = f"| {fleet.name} | {days} | {n} | {error:.0%} | {near:.0%} | {held:.0%} |"
            daily, weekly = (
                _drawn_error(counted.seconds, true_s, fleet, days=days, batch_days=n, rng=rng)
                for n in (1, 7)
            )
            lines.append(f"{row} {daily:.0%} | {weekly:.0%} |")
            first = [_first(each, round(days * DAY_S / fleet.every_s)) for each in draws]
            rows = [guesses(each, noise_sd=noise_sd, rng=rng) for each in first]
            shares = " | ".join(f"{x:.0%}" for x in np.mean(rows, axis=0))
            attacks.append(f"| {fleet.name} | {days} | {shares} |")
    most = exp(1) / (1 + exp(1))
    print("\n".join([*lines, "", *attacks, "", f"No guess may be right more than {most:.0%}"]))  # noqa: T201


if __name__ == "__main__":
    main()
