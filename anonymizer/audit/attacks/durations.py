"""Durations: whether a device made a trip in an interval, and how long it took, from noisy numbers.

The adversary knows the trips of all other devices, takes them away from the numbers that are
published, and looks at what is left.
"""

import math
from typing import NamedTuple

import numpy as np

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.counts_audit import CountsCase
from anonymizer.audit.findings import Finding
from anonymizer.audit.read_counts import NoisyCounts, exact_counts
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.outputs.counts.trip_durations import N_DURATIONS
from anonymizer.settings import CountSettings

N_ERRORS = 3.0
"""Standard errors by which a share of right guesses may exceed the bar by chance."""
_LEFT = 0.5
"""Of a number from which all others were taken away, more is taken for a device, less for none."""


class _Guesses(NamedTuple):
    """Shares of right guesses about devices, on average over those with intervals of both kinds.

    `made`: whether it made a trip, as many intervals with as without; `nobody`: as `made`, of a
    device that is not there; `which`: which of two durations its trip had; `usual`: the duration
    that it has most.
    """

    made: float
    nobody: float
    which: float
    usual: float


def durations(case: CountsCase) -> list[Finding]:
    """Attack the numbers of devices by the duration of their trips, if they are published.

    Returns
    -------
    findings
        `trip durations`: shares of right guesses whether a device made a trip in an interval, also
        of a device that is not there (chance), and which of two durations it had. Reported besides:
        the duration that it has most, of all intervals.
    """
    timed = case.timed
    if timed is None:
        return []
    noisy = NoisyCounts(case.counts, timed.end_s, case.seed)
    told = noisy.counted(timed.duration)
    noise = noisy.with_noise(told, N_DURATIONS) - exact_counts(told, N_DURATIONS)
    rng, most = np.random.default_rng(case.seed), _most_right(case.counts)
    found = [_guesses(each, noise, rng) for each in told if (each >= 0).any() and (each < 0).any()]
    n_trips = int((told >= 0).sum())
    if not found:
        return []
    means = _Guesses(*np.mean(found, axis=0).tolist())
    return [
        Finding(
            attack="trip durations",
            figures={
                **means._asdict(),
                "most": most,
                "n_targets": len(found),
                "n_trips": n_trips,
            },
            bar=_BAR,
            holds=max(means.made, means.which) <= most + N_ERRORS / 2 / math.sqrt(n_trips),
        )
    ]


def _most_right(counts: CountSettings) -> float:
    """Return the share of right guesses between two worlds that the budget allows."""
    times = math.exp(min(counts.epsilon, 700.0))
    return min((times + counts.delta) / (times + 1.0), 1.0)


def _guesses(duration: IntArray, noise: FloatArray, rng: np.random.Generator) -> _Guesses:
    """Return the guesses about a device; when all others are taken away, it and the noise are left.

    `duration`: of the device by interval, negative without a trip; `noise`: by interval and
    duration.
    """
    went, stayed = np.flatnonzero(duration >= 0), np.flatnonzero(duration < 0)
    how_long = duration[went]
    usual = np.bincount(how_long, minlength=N_DURATIONS)
    still = float((noise[stayed, usual.argmax()] <= _LEFT).mean())
    there = noise[went, how_long] + 1.0
    other = (how_long + rng.integers(1, N_DURATIONS, len(went))) % N_DURATIONS
    of_all = noise.sum(axis=0) + usual
    return _Guesses(
        made=(float((there > _LEFT).mean()) + still) / 2,
        nobody=(float((there - 1.0 > _LEFT).mean()) + still) / 2,
        which=float(np.sign(there - noise[went, other]).mean() + 1.0) / 2,
        usual=float(usual[of_all.argmax()] == usual.max()),
    )


_BAR = "right <= (e^epsilon + delta) / (e^epsilon + 1), and three standard errors"
ATTACK = Attack(
    "durations",
    Subject.COUNTS,
    durations,
    (
        Question(
            "trip durations",
            Criterion.SINGLING_OUT,
            "Does who knows all other trips tell whether a device made one, and how long it took?",
            ("made", "which"),
            ("nobody",),
            "n_trips",
            against="a device that is not there",
            bar=_BAR,
        ),
    ),
)
