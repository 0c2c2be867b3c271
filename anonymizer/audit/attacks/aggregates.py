"""Aggregates: trajectories recovered from counts, and whether a device is in them."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.releases.observed import tangent_plane
from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.case import Reports
from anonymizer.audit.counts_audit import CountsCase
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.aggregates import (
    membership_auc,
    recover_trajectories,
    recovered_share,
)
from anonymizer.audit.publications import counting_times, true_traffic
from anonymizer.audit.read_counts import NoisyCounts, exact_counts, read_safe
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.settings import CountSettings

MOST_DEVICES = 1000
"""Of more devices, so many random ones are attacked, and counts are made of these alone."""


N_GROUPS = 200


N_TARGETS = 50


RECOVERY_TIMES_BLIND = 1.5
"""Bar of recovery, in multiples of assigning at random, or assuming that nobody moves."""


MEMBERSHIP_AUC = 0.6
"""Bar of membership; 0.5 is chance."""


_Read: TypeAlias = Callable[[IntArray], FloatArray]
"""Publishes counts of devices, given their cells over time, and reads them by time and cell."""


def aggregates(case: CountsCase) -> list[Finding]:
    """Attack the counts that the settings publish."""
    return attack_counts(case.reports, case.network, case.counts, seed=case.seed)


def attack_counts(
    reports: Reports, network: RoadNetwork, settings: CountSettings, *, seed: int
) -> list[Finding]:
    """Attack the numbers of devices that `[counts]` publishes about reports, and exact ones.

    `reports`: the true positions, of two intervals at least; `settings`: what the counts promise,
    interval and cells; `seed`: of the choice of devices, groups and guesses, and of the noise.

    Returns
    -------
    findings
        `aggregate trajectories`: the share of true positions on the recovered trajectories, from
        exact counts and from those published, each also with habits; and from those published
        assigned at random (chance), and from those of the first interval alone (standing still).
        `aggregate membership`: the mean area under the curve of guessing whether a device is among
        the half of the devices that are counted. Means, flows and speeds are not used.

    InputError if the reports are of fewer than two intervals, or the network has no coordinates;
    MissingExtraError if the counts have differential privacy, and OpenDP is not installed.

    Notes
    -----
    The noise of differential privacy has the size that OpenDP computes. It is drawn from a rounded
    normal or Laplace distribution, so that equal seeds give equal findings.
    """
    if not network.has_coordinates:
        raise InputError("counts: the network has no coordinates")
    times = counting_times(reports.ts, every_s=settings.every_s)
    cell = _cells_over_time(reports, network, settings, times, np.random.default_rng(seed))
    read: _Read = lambda cell: read_safe(cell, settings)  # noqa: E731  one of two
    if settings.has_noise:
        read = NoisyCounts(settings, times, seed).read
    return [
        _trajectories(cell, network, settings, read, seed),
        _membership(cell, settings, read, seed),
    ]


def _cells_over_time(
    reports: Reports,
    network: RoadNetwork,
    settings: CountSettings,
    times: FloatArray,
    rng: np.random.Generator,
) -> IntArray:
    """Return the cell of each device in each interval, negative if it was not seen in it."""
    place = true_traffic(reports, network, times, present_s=settings.every_s).place.T
    cell_of = compact_parts(network, settings.cells).astype(np.int64)
    cell = np.where(place >= 0, cell_of[place], -1)
    return cell[np.sort(rng.permutation(len(cell))[:MOST_DEVICES])]


def _trajectories(
    cell: IntArray, network: RoadNetwork, settings: CountSettings, read: _Read, seed: int
) -> Finding:
    cell_of = compact_parts(network, settings.cells)
    n_nodes = np.maximum(np.bincount(cell_of, minlength=settings.cells), 1)
    x_m, y_m = (np.bincount(cell_of, at, settings.cells) / n_nodes for at in tangent_plane(network))
    exact = exact_counts(cell, settings.cells)
    seen = np.maximum(read(cell), 0.0)
    if settings.has_noise:
        # The adversary is given how many devices there are; the noise would add many.
        total = np.maximum(seen.sum(axis=1), 1.0)
        seen *= (exact.sum(axis=1) / total)[:, None]
    shown = np.stack([_whole(row) for row in seen])
    rng = np.random.default_rng(seed)
    recovered = {
        "recovered_exact": recover_trajectories(exact, x_m, y_m),
        "recovered_exact_habits": recover_trajectories(exact, x_m, y_m, habits=True),
        "recovered": recover_trajectories(shown, x_m, y_m),
        "recovered_habits": recover_trajectories(shown, x_m, y_m, habits=True),
        "recovered_chance": recover_trajectories(shown, x_m, y_m, rng=rng),
        "recovered_still": recover_trajectories(np.repeat(shown[:1], len(shown), axis=0), x_m, y_m),
    }
    shares = {name: recovered_share(each, cell) for name, each in recovered.items()}
    blind = max(shares["recovered_chance"], shares["recovered_still"])
    best = max(shares["recovered"], shares["recovered_habits"])
    return Finding(
        attack="aggregate trajectories",
        figures={**shares, "n_devices": len(cell), "n_intervals": cell.shape[1]},
        bar=_RECOVERY_BAR,
        holds=best <= RECOVERY_TIMES_BLIND * blind,
    )


def _whole(row: FloatArray) -> IntArray:
    """Return whole numbers with the same sum, as near to the row as can be."""
    up_to = np.rint(np.cumsum(row)).astype(np.int64)
    return np.diff(up_to, prepend=0)


def _membership(cell: IntArray, settings: CountSettings, read: _Read, seed: int) -> Finding:
    rng = np.random.default_rng(seed)
    n_devices = len(cell)
    is_in = rng.random((N_GROUPS, n_devices)) < 1 / 2
    exact = np.stack([exact_counts(cell[group], settings.cells) for group in is_in]).astype(
        np.float64
    )
    shown = np.stack([read(cell[group]) for group in is_in])
    time = np.arange(cell.shape[1])
    found: dict[str, list[float]] = {"auc_exact": [], "auc": []}
    for target in rng.permutation(n_devices)[:N_TARGETS].tolist():
        there = cell[target] >= 0
        if not there.any() or is_in[:, target].all() or not is_in[:, target].any():
            continue
        at = time[there], cell[target, there]
        for name, counts in (("auc_exact", exact), ("auc", shown)):
            found[name].append(membership_auc(counts[:, at[0], at[1]], is_in[:, target]))
    figures: dict[str, Figure] = {
        name: float(np.mean(each)) if each else None for name, each in found.items()
    }
    auc = figures["auc"]
    return Finding(
        attack="aggregate membership",
        figures={**figures, "n_targets": len(found["auc"]), "n_groups": N_GROUPS},
        bar=_MEMBERSHIP_BAR,
        holds=None if auc is None else auc <= MEMBERSHIP_AUC,
    )


_RECOVERY_BAR = f"recovered <= {RECOVERY_TIMES_BLIND:g} chance or standing still"
_MEMBERSHIP_BAR = f"area under the curve <= {MEMBERSHIP_AUC:g}; chance is 0.5"
ATTACK = Attack(
    "aggregates",
    Subject.COUNTS,
    aggregates,
    (
        Question(
            "aggregate trajectories",
            Criterion.INFERENCE,
            "Are paths recovered from counts?",
            ("recovered", "recovered_habits"),
            ("recovered_chance", "recovered_still"),
            "n_devices",
            bar=_RECOVERY_BAR,
        ),
        Question(
            "aggregate membership",
            Criterion.SINGLING_OUT,
            "Do counts tell whether a known device is among those counted? (area under the curve)",
            ("auc",),
            n="n_targets",
            chance=0.5,
            against="tossing a coin",
            bar=_MEMBERSHIP_BAR,
        ),
    ),
)
