"""Attacks of the frontier on publications that are no releases of regions.

The adversaries are those of the audit: the tracker knows one true position, and the linker knows
four. They attack places with names and noise, and counts, as they attack regions.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import softmax

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.algorithms.releases.pieces import PieceRegions
from anonymizer.audit import Case
from anonymizer.audit.attacks.tracking import HORIZONS_MIN, N_STARTS, N_TARGETS, close_to
from anonymizer.audit.mathematics.lives import Lives, no_lives
from anonymizer.audit.mathematics.motion import Motion
from anonymizer.audit.mathematics.tracking import track
from anonymizer.audit.mathematics.truth import TIME_SLACK_S
from anonymizer.audit.publications import Traffic, last_records
from anonymizer.audit.stretches import Stretch, horizons, motion_of_others, stretches
from anonymizer.domain.arrays import FloatArray, IntArray, starts_of
from experiments.baselines import NamedPlaces
from experiments.known_positions import likelihood_of_regions, linked
from experiments.noisy_tracking import NoisyPlaces, track_noisy

Counts: TypeAlias = Sequence[tuple[IntArray, float]]
"""Nodes of each area, and its devices."""
N_KNOWN = 4
"""True positions that the linker knows, a minute apart."""
N_LINKED = 100
SHORTEST_STEP_S = 10.0
_MISSING = -10.0
"""Log-likelihood of a name that publishes nothing at a known time: noise of ten scales."""
_ROUNDED_M = 1.0
"""Least noise of a place that was moved: a degree is not everywhere as long."""


class Tracker:
    """Follows the same targets as the audit, with other publications.

    Parameters
    ----------
    case
        A release of the same traffic, of which the truth is used.
    times
        When the others are published. The known positions are of some of these times, so that a
        place that is published then is one of them.
    seed
        Of the choice of targets.
    """

    def __init__(self, case: Case, times: FloatArray, *, seed: int) -> None:
        self._network = case.network
        step_s = max(case.reports.interval_s, SHORTEST_STEP_S)
        self.minutes = horizons(case.observed, HORIZONS_MIN)
        self._stretches = stretches(
            case.observed,
            case.truth,
            self.minutes,
            step_s=step_s,
            n_starts=N_STARTS,
            n_targets=N_TARGETS,
            rng=np.random.default_rng(seed),
            moments=times,
        )
        self._motion = motion_of_others(
            case.observed, case.truth, case.network, self._stretches, step_s=step_s
        )
        self.none = self._tracked([None] * len(self._stretches))

    def with_counts(self, times: FloatArray, counts: Sequence[Counts]) -> dict[int, float]:
        """Return the belief after some minutes of an adversary who reads counts."""
        lives = [
            counted_lives(steps_at(stretch, times), counts, len(stretch.steps_s))
            for stretch in self._stretches
        ]
        return self._at_least_none(self._tracked(lives))

    def with_noise(self, noise: NamedPlaces, times: FloatArray) -> dict[int, float]:
        """Return the belief after some minutes of an adversary who reads noisy places."""
        places = []
        for stretch in self._stretches:
            shape = (len(stretch.steps_s), noise.x_m.shape[1])
            found = NoisyPlaces(
                np.full(shape, np.nan),
                np.full(shape, np.nan),
                noise.scale_m,
                noise.node_x_m,
                noise.node_y_m,
            )
            for step, t in steps_at(stretch, times):
                found.x_m[step], found.y_m[step] = noise.x_m[t], noise.y_m[t]
            places.append(found)
        return self._at_least_none(self._tracked(places))

    def with_shifts(
        self, noise: NamedPlaces, times: FloatArray, *, change_m: float
    ) -> dict[int, float]:
        """Return the belief of one who takes a name to be moved as it was at the known position.

        `change_m`: scale of the noise that is new each minute.
        """
        return self._at_least_none(
            self._believed(
                shifted_back(stretch, noise, times, change_m) for stretch in self._stretches
            )
        )

    def _tracked(self, said: Sequence[Lives | NoisyPlaces | None]) -> dict[int, float]:
        return self._believed(
            _belief(stretch, self._motion, each)
            for stretch, each in zip(self._stretches, said, strict=True)
        )

    def _believed(self, beliefs: Iterable[FloatArray]) -> dict[int, float]:
        found = [np.zeros((0, len(self.minutes)))]
        for stretch, belief in zip(self._stretches, beliefs, strict=True):
            place = stretch.place[stretch.at][:, stretch.targets].T
            found.append(np.where(close_to(self._network, place), belief, 0.0).sum(axis=2))
        tracks = np.concatenate(found)
        mean = tracks.sum(axis=0) / max(len(tracks), 1)
        return dict(zip(self.minutes, mean.tolist(), strict=True))

    def _at_least_none(self, belief: dict[int, float]) -> dict[int, float]:
        """Return the belief of an adversary who ignores a misleading publication."""
        return {minute: max(each, self.none[minute]) for minute, each in belief.items()}


def _belief(stretch: Stretch, motion: Motion, said: Lives | NoisyPlaces | None) -> FloatArray:
    start = stretch.place[0, stretch.targets].astype(np.int64)
    if isinstance(said, NoisyPlaces):
        return track_noisy(said, motion, start=start, at=stretch.at)
    lives = no_lives(len(stretch.steps_s)) if said is None else said
    n_present = (stretch.place >= 0).sum(axis=1)
    return track(lives, motion, n_present=n_present, start=start, at=stretch.at).belief


def shifted_back(
    stretch: Stretch, noise: NamedPlaces, times: FloatArray, change_m: float
) -> FloatArray:
    """Return the belief in each node for each target, shape (targets, at, nodes).

    The known position tells by how much each name would be moved if it were the target's. Moved
    back by that, its places lie on nodes again, and others do not. A name says nothing while it
    publishes nothing, so the sum of a belief may be below 1.
    """
    nodes = np.stack([noise.node_x_m, noise.node_y_m], axis=1)
    belief = np.zeros((len(stretch.targets), len(stretch.at), len(nodes)))
    time_of = dict(steps_at(stretch, times))
    if 0 not in time_of or not noise.there[time_of[0]].any():
        return belief
    tree = cKDTree(nodes)
    xy_m = np.stack([noise.x_m, noise.y_m], axis=-1)[list(time_of.values())]
    for row, start in enumerate(stretch.place[0, stretch.targets].tolist()):
        shift = xy_m[0] - nodes[start]
        back = xy_m - shift
        there = np.isfinite(back[..., 0])
        nearest = tree.query(np.where(there[..., None], back, 0.0))
        off_m, node = np.asarray(nearest[0]), np.asarray(nearest[1])
        fit = np.where(there, -off_m / max(change_m, _ROUNDED_M), _MISSING)
        fit[0] = np.where(there[0], -np.hypot(*shift.T) / noise.scale_m, -np.inf)
        weight = np.where(there, softmax(np.cumsum(fit, axis=0), axis=1), 0.0)
        for i, step in enumerate(time_of):
            for k in np.flatnonzero(stretch.at == step).tolist():
                np.add.at(belief[row, k], node[i], weight[i])
    return belief


def steps_at(stretch: Stretch, times: FloatArray) -> list[tuple[int, int]]:
    """Return the steps in which something is published, and the index of its time."""
    step = np.searchsorted(stretch.steps_s, times - TIME_SLACK_S)
    inside = (step < len(stretch.steps_s)) & (times > stretch.steps_s[0] - TIME_SLACK_S)
    return [(int(step[t]), t) for t in np.flatnonzero(inside).tolist()]


def counted_lives(
    steps: Iterable[tuple[int, int]], counts: Sequence[Counts], n_steps: int
) -> Lives:
    """Return counts as lives of one step, each in a region of one piece."""
    areas = [(step, *area) for step, t in steps for area in counts[t]]
    step = np.array([step for step, _, _ in areas], np.int64)
    number = np.arange(len(areas))
    regions = PieceRegions(
        np.arange(len(areas) + 1),
        starts_of(np.array([len(nodes) for _, nodes, _ in areas], np.int64)),
        np.concatenate([np.zeros(0, np.int32), *(nodes for _, nodes, _ in areas)]).astype(np.int32),
    )
    size = np.array([n for _, _, n in areas], np.float64)
    first = starts_of(np.bincount(step, minlength=n_steps))
    return Lives(first, number, number, size, step, step, regions)


class Known(NamedTuple):
    """What the linker knows: devices, and when they were where."""

    device: IntArray
    """Shape (targets,)."""
    time: IntArray
    """Index into the times of counting of each known position, rising, shape (targets, known)."""
    node: IntArray
    """Likewise."""


def known_positions(traffic: Traffic, *, seed: int) -> Known:
    """Return the positions of random devices that are present for `N_KNOWN` minutes."""
    there = np.lib.stride_tricks.sliding_window_view(traffic.place >= 0, N_KNOWN, axis=0)
    first, device = np.nonzero(there.all(axis=-1))
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(first), min(N_LINKED, len(first)), replace=False)
    time = first[chosen, None] + np.arange(N_KNOWN)
    node = traffic.place[time, device[chosen, None]].astype(np.int64)
    return Known(device[chosen], time, node)


def link_regions(
    observed: Observed,
    device_of: IntArray,
    known: Known,
    times: FloatArray,
    until: FloatArray,
    *,
    n_nodes: int,
) -> float:
    """Return how often the linker finds the pseudonym of a device in a release."""
    records = np.stack(last_records(observed, times, until))
    likelihood = likelihood_of_regions(observed, records[known.time], known.node, n_nodes=n_nodes)
    return linked(likelihood, device_of == known.device[:, None])


def link_noisy(
    noise: NamedPlaces, known: Known, owner: IntArray, *, change_m: float | None = None
) -> float:
    """Return how often the linker finds a name of a device whose places have noise.

    `owner`: device of each name; `change_m`: scale of the noise that is new each minute, to one who
    takes a name to be moved as it was from the first known position; None: all is.
    """
    if not len(owner):
        return 0.0
    moved = np.stack(
        [
            noise.x_m[known.time] - noise.node_x_m[known.node][:, :, None],
            noise.y_m[known.time] - noise.node_y_m[known.node][:, :, None],
        ]
    )
    scale_m = np.full((N_KNOWN, 1), noise.scale_m)
    if change_m is not None:
        moved[:, :, 1:] -= moved[:, :, :1]
        scale_m[1:] = max(change_m, _ROUNDED_M)
    there = noise.there[known.time]
    likelihood = np.where(there, -np.hypot(*moved) / scale_m, _MISSING).sum(axis=1)
    likelihood[~there[:, 0]] = -np.inf
    return linked(likelihood, owner == known.device[:, None])
