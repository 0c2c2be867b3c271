"""The timing attack: the exact piece of a device whose phase is known.

A device that reports every few seconds does so at times that are known once they are seen. A group
that publishes when a member reports says so at each of these times, and the change of its region is
then the device's own.
"""

import numpy as np

from anonymizer.algorithms.attacks.lives import Lives, published_lives, read_regions
from anonymizer.algorithms.attacks.tracking import Schedule, track
from anonymizer.algorithms.attacks.truth import TIME_SLACK_S
from anonymizer.app.audit.case import Case
from anonymizer.app.audit.findings import Figure, Finding
from anonymizer.app.audit.stretches import Stretch, horizons, motion_of_others, stretches
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

HORIZONS_MIN = (5, 10, 20)
N_TARGETS = 40
STEPS_PER_INTERVAL = 10
FEWEST_STEPS = 3
"""A phase is told apart from another one if an interval has at least so many ticks."""
LONGEST_INTERVAL_S = 30.0
"""Devices that report less often jump so far that a step of the filter costs too much."""
MOST_TIMES_CHANCE = 1.5


def timing(case: Case) -> list[Finding]:
    """Track devices to their exact pieces, with and without knowing when they report.

    Nothing is found if regions are not made of public pieces, or if devices report in nearly every
    tick or less often than every `LONGEST_INTERVAL_S`.
    """
    minutes = horizons(case.observed, HORIZONS_MIN)
    interval_s = case.reports.interval_s
    possible = FEWEST_STEPS * case.tick_s <= interval_s <= LONGEST_INTERVAL_S
    if case.piece_of is None or not possible or not minutes:
        return []
    step_s = max(case.tick_s, case.reports.interval_s / STEPS_PER_INTERVAL)
    chosen = stretches(
        case.observed,
        case.truth,
        minutes,
        step_s=step_s,
        n_starts=1,
        n_targets=N_TARGETS,
        rng=np.random.default_rng(case.seed),
    )
    if not chosen or not len(chosen[0].targets):
        return []
    found = _exact(case, chosen[0], case.piece_of, step_s)
    within = [found[name] <= MOST_TIMES_CHANCE * found["chance"] for name in found]
    figures: dict[str, Figure] = {
        f"{name}_{minute}min": float(share)
        for name, shares in found.items()
        for minute, share in zip(minutes, shares.tolist(), strict=True)
    }
    return [
        Finding(
            attack="timing",
            figures={**figures, "n_tracks": len(chosen[0].targets), "step_s": step_s},
            bar=f"<= {MOST_TIMES_CHANCE:g} chance",
            holds=bool(np.all(within)),
        )
    ]


def _exact(
    case: Case, stretch: Stretch, piece_of: IntArray, step_s: float
) -> dict[str, FloatArray]:
    """Return the share of targets whose smallest piece each adversary finds, at each horizon."""
    observed, truth, network = case.observed, case.truth, case.network
    regions = read_regions(observed, piece_of)
    motion = motion_of_others(observed, truth, network, [stretch], step_s=step_s)
    reports = _reports(case, stretch, step_s)
    phase = Schedule(
        reports[:, stretch.targets],
        motion_of_others(observed, truth, network, [stretch], step_s=case.reports.interval_s),
        _silence(case, stretch, reports, step_s),
    )
    finest = piece_of[0]
    true_piece = finest[stretch.place[stretch.at][:, stretch.targets].T]
    found = {}
    for name, follow in (("pieces", False), ("followed", True)):
        lives = published_lives(
            observed, case.class_of, regions, steps_s=stretch.steps_s, follow=follow
        )
        for what, schedule in ((f"exact_{name}", None), (f"exact_{name}_with_phase", phase)):
            tracks = track(
                lives,
                motion,
                n_present=(stretch.place >= 0).sum(axis=1),
                start=stretch.place[0, stretch.targets].astype(np.int64),
                at=stretch.at,
                schedule=schedule,
            )
            right = _likeliest(tracks.belief, finest) == true_piece
            found[what] = right.mean(axis=0)
        found["chance"] = np.full(
            len(stretch.at), _chance(lives._replace(regions=read_regions(observed, finest)))
        )
    return found


def _reports(case: Case, stretch: Stretch, step_s: float) -> BoolArray:
    """Return in which steps each device reports, shape (steps, devices)."""
    return _marked(stretch, case.reports.ts, case.reports.device, step_s)


def _silence(case: Case, stretch: Stretch, reports: BoolArray, step_s: float) -> float:
    """Return how many times as often nothing is published about a device when it reports.

    The adversary knows the algorithm, and therefore this.
    """
    observed = case.observed
    device = case.device_of[observed.pseudonym_of]
    silent = ~_marked(stretch, observed.time[observed.tick_of], device, step_s)
    return float(silent[reports].mean() / silent.mean()) if silent.any() and reports.any() else 1.0


def _marked(stretch: Stretch, ts: FloatArray, device: IntArray, step_s: float) -> BoolArray:
    """Return in which steps each device has one of these moments, shape (steps, devices)."""
    step = np.ceil((ts - stretch.steps_s[0] - TIME_SLACK_S) / step_s).astype(np.int64)
    inside = (step >= 0) & (step < len(stretch.steps_s))
    marked = np.zeros(stretch.place.shape, bool)
    marked[step[inside], device[inside]] = True
    return marked


def _likeliest(belief: FloatArray, piece_of: IntArray) -> IntArray:
    """Return the most probable piece, shape of `belief` without its last axis, that of nodes."""
    order = np.argsort(piece_of, kind="stable")
    first = np.flatnonzero(np.diff(piece_of[order], prepend=np.iinfo(np.int64).min))
    by_piece = np.add.reduceat(belief[..., order], first, axis=-1)
    likeliest: IntArray = piece_of[order[first]][by_piece.argmax(axis=-1)]
    return likeliest


def _chance(lives: Lives) -> float:
    """Return how often a blind guess among the pieces of its region finds a published device."""
    n_pieces = np.diff(lives.regions.first_piece_of)[lives.region_of]
    size = lives.size[lives.life_of]
    return float((size / n_pieces).sum() / size.sum()) if len(size) else 1.0
