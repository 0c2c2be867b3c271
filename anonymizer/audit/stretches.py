"""Stretches of a release: which devices the tracking attacks follow, when, and in which steps."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.motion import Motion, learn_motion
from anonymizer.audit.mathematics.truth import TIME_SLACK_S, Truth
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork


class Stretch(NamedTuple):
    """Some targets, followed from one moment on.

    `steps_s`: unix seconds of the steps, from that of the known positions to the last of `at` or
    later; `at`: those at which the belief is measured; `place`: node of each device, negative if
    absent, shape (steps, devices); `targets`: devices that are present at the first step and at all
    of `at`.
    """

    steps_s: FloatArray
    at: IntArray
    place: Int32Array
    targets: IntArray


def horizons(observed: Observed, minutes: tuple[int, ...]) -> tuple[int, ...]:
    """Return those numbers of minutes that a release is long enough for."""
    return tuple(m for m in minutes if 60 * m <= observed.time[-1] - observed.time[0])


def stretches(
    observed: Observed,
    truth: Truth,
    minutes: tuple[int, ...],
    *,
    step_s: float,
    n_starts: int,
    n_targets: int,
    rng: np.random.Generator,
    before_s: float = 0.0,
    ahead_s: float = 0.0,
    moments: FloatArray | None = None,
    victims: BoolArray | None = None,
    most_share: float = 0.5,
) -> list[Stretch]:
    """Return random stretches of the release, and random targets.

    `minutes`: from `horizons`; if there is none, there is no stretch. At most `n_starts` stretches,
    and `n_targets` of each. `ahead_s`: how long they go on after the last of `minutes`, as far as
    the release does; `before_s`: how long before a stretch the release is read. Where the release
    lacks part of either no stretch begins, unless it is too short for `n_starts` others. `moments`:
    unix seconds, rising, at which they may begin; by default the ticks of the release. `victims`:
    which devices may be targets, shape (devices,). At most `most_share` of the devices are targets
    of one or another.
    """
    if not minutes:
        return []
    end = observed.time[-1] + TIME_SLACK_S
    moments = observed.time if moments is None else moments
    possible = moments[moments + 60 * minutes[-1] <= moments[-1] + TIME_SLACK_S]
    whole = possible[
        (possible - before_s >= observed.time[0] - TIME_SLACK_S)
        & (possible + 60 * minutes[-1] + ahead_s <= end)
    ]
    n_starts = min(n_starts, len(possible))
    possible = whole if len(whole) >= n_starts else possible
    starts = np.sort(rng.choice(possible, n_starts, replace=False))
    if most_share < 1.0:
        most = int(most_share * truth.n_devices) // max(len(starts), 1)
        n_targets = min(n_targets, max(1, most))
    at = np.round(60.0 * np.array(minutes) / step_s).astype(np.int64)
    found = []
    for start in starts.tolist():
        n_steps = int(min(60.0 * minutes[-1] + ahead_s, end - start) / step_s)
        steps_s = start + step_s * np.arange(max(n_steps, at[-1]) + 1)
        place = truth.place[tick_at(observed, steps_s)]
        possible_targets = (place[np.append(at, 0)] >= 0).all(axis=0)
        if victims is not None:
            possible_targets &= victims
        present = np.flatnonzero(possible_targets)
        found.append(Stretch(steps_s, at, place, rng.permutation(present)[:n_targets]))
    return found


def motion_of_others(
    observed: Observed,
    truth: Truth,
    network: RoadNetwork,
    chosen: list[Stretch],
    *,
    step_s: float,
    every: int = 1,
) -> Motion:
    """Learn how devices that are no targets move in `every` steps of `step_s` seconds."""
    others = np.ones(truth.n_devices, bool)
    for stretch in chosen:
        others[stretch.targets] = False
    times = np.arange(observed.time[0], observed.time[-1] + TIME_SLACK_S, step_s)
    place = truth.place[tick_at(observed, times)]
    return learn_motion(network, place, learned_from=others, tick_s=step_s, every=every)


def tick_at(observed: Observed, moments: FloatArray) -> IntArray:
    """Return the last tick up to each moment, the first one if there is none."""
    tick = np.searchsorted(observed.time, moments + TIME_SLACK_S, "right") - 1
    return np.maximum(tick, 0)
