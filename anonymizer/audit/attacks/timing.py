"""The timing attack: the exact piece of a device whose reporting times are known.

A device that reports every few seconds can be predicted once some of its reports were seen. If a
group publishes when a member reports, it does so at these times, and the change of its region is
then due to this device.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.releases.pieces import PieceRegions, read_regions
from anonymizer.audit.attack import WITHOUT, Attack, Criterion, Question, Subject
from anonymizer.audit.case import Case
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.lives import Lives, no_lives, published_lives
from anonymizer.audit.mathematics.tracking import Schedule, track
from anonymizer.audit.mathematics.truth import TIME_SLACK_S
from anonymizer.audit.stretches import Stretch, horizons, motion_of_others, stretches
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

    `exact_*` is the share of targets whose smallest public piece is the most probable one, and
    `place_*` that of targets whose place is: the piece of their region, as large as it is made of.
    `chance` and `place_chance` are blind guesses within the region; `none` is an adversary without
    the release, who knows the first position and how devices move. The bar compares places with
    the better of these two.

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
    without = np.maximum(found["place_chance"], found["place_none"])
    within = [
        shares <= MOST_TIMES_CHANCE * without
        for name, shares in found.items()
        if name.startswith("place_")
    ]
    figures: dict[str, Figure] = {
        f"{name}_{minute}min": float(share)
        for name, shares in found.items()
        for minute, share in zip(minutes, shares.tolist(), strict=True)
    }
    return [
        Finding(
            attack="timing",
            figures={**figures, "n_tracks": len(chosen[0].targets), "step_s": step_s},
            bar=_BAR,
            holds=bool(np.all(within)),
        )
    ]


def _exact(
    case: Case, stretch: Stretch, piece_of: IntArray, step_s: float
) -> dict[str, FloatArray]:
    """Return the share of targets that each adversary finds, at each horizon."""
    observed, truth, network = case.observed, case.truth, case.network
    regions = case.pieces()
    motion = motion_of_others(observed, truth, network, [stretch], step_s=step_s)
    reports = _reports(case, stretch, step_s)
    phase = Schedule(
        reports[:, stretch.targets],
        motion_of_others(observed, truth, network, [stretch], step_s=case.reports.interval_s),
        _silence(case, stretch, reports, step_s),
    )
    unnamed, followed = (
        published_lives(observed, case.class_of, regions, steps_s=stretch.steps_s, follow=follow)
        for follow in (False, True)
    )
    finest = piece_of[0]
    true_node = stretch.place[stretch.at][:, stretch.targets].T.astype(np.int64)
    places = _Places.of(case, stretch, regions)
    found = {}
    for name, lives, schedule in (
        ("none", no_lives(len(stretch.steps_s)), None),
        ("pieces", unnamed, None),
        ("pieces_with_phase", unnamed, phase),
        ("followed", followed, None),
        ("followed_with_phase", followed, phase),
    ):
        tracks = track(
            lives,
            motion,
            n_present=(stretch.place >= 0).sum(axis=1),
            start=stretch.place[0, stretch.targets].astype(np.int64),
            at=stretch.at,
            schedule=schedule,
        )
        right = _likeliest(tracks.belief, finest) == finest[true_node]
        found[f"exact_{name}"] = right.mean(axis=0)
        found[f"place_{name}"] = places.found(tracks.belief, true_node)
    smallest = unnamed._replace(regions=read_regions(observed, finest))
    found["chance"] = np.full(len(stretch.at), _chance(smallest))
    found["place_chance"] = places.chance
    return found


class _Places(NamedTuple):
    """The region in which each target was published last, at each horizon, as its pieces.

    `region_of` is -1 for none, shape (targets, horizons).
    """

    regions: PieceRegions
    region_of: IntArray

    @classmethod
    def of(cls, case: Case, stretch: Stretch, regions: PieceRegions) -> "_Places":
        """Find the newest regions."""
        observed = case.observed
        device, time = case.device_of[observed.pseudonym_of], observed.time[observed.tick_of]
        region_of = np.full((len(stretch.targets), len(stretch.at)), -1, np.int64)
        order = np.lexsort((time, device))
        for k, now in enumerate(stretch.steps_s[stretch.at].tolist()):
            seen = order[time[order] <= now + TIME_SLACK_S]
            newest = np.full(case.truth.n_devices, -1, np.int64)
            newest[device[seen]] = observed.region_of[seen]  # the last one of a device stays
            region_of[:, k] = newest[stretch.targets]
        return cls(regions, region_of)

    @property
    def chance(self) -> FloatArray:
        """How often a blind guess among the pieces of its region is right, shape (horizons,)."""
        n_pieces = np.diff(self.regions.first_piece_of)[self.region_of]
        chance: FloatArray = np.where(self.region_of >= 0, 1 / n_pieces, 0.0).mean(axis=0)
        return chance

    def found(self, belief: FloatArray, true_node: IntArray) -> FloatArray:
        """Return how often the most probable piece of its region holds a target.

        `belief`: probability of each node, shape (targets, horizons, nodes); `true_node`: shape
        (targets, horizons).
        """
        right = np.zeros(self.region_of.shape)
        for target, k in np.argwhere(self.region_of >= 0).tolist():
            region = self.region_of[target, k]
            first_piece, end = self.regions.first_piece_of[region : region + 2]
            first = self.regions.first_node_of[first_piece : end + 1]
            node = self.regions.node[first[0] : first[-1]]
            by_piece = np.add.reduceat(belief[target, k, node], first[:-1] - first[0])
            # Without any belief in the region, or with equal ones, the guess is blind.
            best = np.flatnonzero(by_piece == by_piece.max())
            at = (
                np.searchsorted(
                    first - first[0], np.flatnonzero(node == true_node[target, k]), "right"
                )
                - 1
            )
            right[target, k] = np.isin(best, at).mean()
        share: FloatArray = right.mean(axis=0)
        return share


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


_BAR = f"place <= {MOST_TIMES_CHANCE:g} times that without a release"
ATTACK = Attack(
    "timing",
    Subject.POSITIONS,
    timing,
    (
        Question(
            "timing",
            Criterion.INFERENCE,
            "Do the times of messages tell where a device is?",
            tuple(
                f"place_{name}_5min"
                for name in ("pieces", "pieces_with_phase", "followed", "followed_with_phase")
            ),
            ("place_none_5min", "place_chance_5min"),
            "n_tracks",
            against=WITHOUT,
            bar=_BAR,
        ),
    ),
    needs_map=True,
)
