"""Audit of counts: trajectories recovered from them, and whether a device is in them."""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.positions.safe_counts import SafeFigures, figures, tally
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.releases.observed import tangent_plane
from anonymizer.audit.case import Case, Reports
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.aggregates import (
    membership_auc,
    recover_trajectories,
    recovered_share,
)
from anonymizer.audit.mathematics.regions_and_counts import cells_given_counts
from anonymizer.audit.publications import counting_times, last_records, true_traffic
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.outputs.counts.gaussian_noise import LaplaceNoise
from anonymizer.outputs.counts.private_counts import noise_of
from anonymizer.settings import CountSettings

MOST_DEVICES = 1000
"""Of more devices, so many random ones are attacked, and counts are made of these alone."""
N_GROUPS = 200
N_TARGETS = 50
RECOVERY_TIMES_BLIND = 1.5
"""Bar of recovery, in multiples of assigning at random, or assuming that nobody moves."""
TOGETHER_TIMES = 1.5
"""Bar of positions read with counts, in multiples of the release alone."""
MEMBERSHIP_AUC = 0.6
"""Bar of membership; 0.5 is chance."""
_Read: TypeAlias = Callable[[IntArray], FloatArray]
"""Publishes counts of devices, given their cells over time, and reads them by time and cell."""


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


def positions_with_counts(case: Case) -> list[Finding]:
    """Read the release together with the safe counts that the same settings publish.

    The belief in the cell where a device is, beside that of the release alone and, as a control,
    that with the counts of another interval. All counts are made of the true positions.
    """
    counts = case.counts
    if counts is None or case.until is None or not case.network.has_coordinates:
        return []
    try:
        times = counting_times(case.reports.ts, every_s=counts.every_s)
    except InputError:  # of less than two intervals
        return []
    traffic = true_traffic(case.reports, case.network, times, present_s=counts.every_s)
    cell_of = compact_parts(case.network, counts.cells).astype(np.int64)
    cells = np.where(traffic.place >= 0, cell_of[traffic.place], -1)
    counted = [runs_counted(now, counts) for now in cells]
    observed = case.observed
    region = np.repeat(np.arange(observed.n_regions), observed.region_size)
    share = 1.0 / observed.region_size[region]
    shape = (observed.n_regions, counts.cells)
    shares = csr_array((share, (region, cell_of[observed.node])), shape=shape)
    shares.sum_duplicates()
    beliefs: list[FloatArray] = []
    for t, records in enumerate(last_records(observed, times, case.until)):
        record = records[records >= 0]
        device = case.device_of[observed.pseudonym_of[record]]
        true = cells[t, device]
        # Whoever is published for a silent device is not in the counts.
        record, device, true = (each[true >= 0] for each in (record, device, true))
        of, row, n = np.unique(observed.region_of[record], return_inverse=True, return_counts=True)
        if not len(of):
            continue
        other = counted[(t + len(counted) // 2) % len(counted)]
        read = [shares[of]] + [
            cells_given_counts(shares[of], n.astype(np.float64), *each)
            for each in (counted[t], other)
        ]
        at = [np.asarray(each[row.ravel(), true]).ravel() for each in read]
        beliefs.append(np.stack([device.astype(np.float64), *at]))
    return [_joint_finding(np.concatenate(beliefs, axis=1))] if beliefs else []


def runs_counted(cell: IntArray, settings: CountSettings) -> tuple[IntArray, FloatArray]:
    """Return the run of each cell in the safe counts of an interval, and its devices."""
    safe = _figures(cell, settings)
    run_of: IntArray = np.repeat(np.arange(len(safe.n_devices)), np.diff(safe.first_cell_of))
    if not len(run_of):  # too few devices to say anything
        return np.zeros(settings.cells, np.int64), np.zeros(1)
    counted: FloatArray = safe.n_devices.astype(np.float64) + (settings.k - 1) / 2
    return run_of, counted


def _joint_finding(beliefs: FloatArray) -> Finding:
    """Return the finding from device, belief alone, with counts, and with others, by trial."""
    _, victim = np.unique(beliefs[0], return_inverse=True)
    n = np.bincount(victim)
    alone, together, control = (np.bincount(victim, each) / n for each in beliefs[1:])
    most = np.argsort(-together, kind="stable")[: max(len(n) // 10, 1)]
    figures: dict[str, Figure] = {
        "belief_alone": float(alone.mean()),
        "belief_together": float(together.mean()),
        "belief_control": float(control.mean()),
        "tenth_together": float(together[most].mean()),
        "tenth_control": float(control[most].mean()),
        "n_victims": len(n),
    }
    return Finding(
        attack="positions with counts",
        figures=figures,
        bar=f"belief <= {TOGETHER_TIMES:g} that without counts",
        holds=bool(together.mean() <= TOGETHER_TIMES * max(alone.mean(), control.mean())),
    )


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


def exact_counts(cell: IntArray, n_cells: int) -> IntArray:
    """Return devices by time and cell."""
    return np.stack([np.bincount(now[now >= 0], minlength=n_cells) for now in cell.T])


def read_safe(cell: IntArray, settings: CountSettings) -> FloatArray:
    """Return safe counts by time and cell; those of a run of cells are spread evenly over it."""
    found = np.zeros((cell.shape[1], settings.cells))
    for t, now in enumerate(cell.T):
        safe = _figures(now, settings)
        n_cells = np.diff(safe.first_cell_of)
        found[t, : n_cells.sum()] = np.repeat(safe.n_devices / np.maximum(n_cells, 1), n_cells)
    return found


def _figures(cell: IntArray, settings: CountSettings) -> SafeFigures:
    """Return the safe counts of an interval, given the cell of each device, negative for none."""
    seen = cell[cell >= 0]
    nothing = np.full(len(seen), np.nan)
    counted = tally(
        seen,
        np.full(len(seen), -1),
        n_cells=settings.cells,
        speed_mps=nothing,
        dwell_s=nothing,
    )
    return figures(counted, settings.k)


class NoisyCounts:
    """Counts with differential privacy."""

    def __init__(self, settings: CountSettings, times: FloatArray, seed: int) -> None:
        self._settings = settings
        noise = noise_of(settings)
        rng = np.random.default_rng(seed)
        is_laplace = isinstance(noise, LaplaceNoise)
        self._draw = rng.laplace if is_laplace else rng.normal
        self._scale = noise.scale / math.sqrt(2) if is_laplace else noise.scale
        middle_s = times - settings.every_s / 2
        _, self._begins = np.unique(middle_s // settings.period_s, return_index=True)

    def read(self, cell: IntArray) -> FloatArray:
        """Count each device in its first intervals of a period; add the noise.

        With `w-event` there is no such bound: each device is counted in every interval.
        """
        seen = cell >= 0
        rank = np.concatenate(
            [part.cumsum(axis=1) for part in np.split(seen, self._begins[1:], axis=1)], axis=1
        )
        counted = seen & (rank <= self._settings.intervals_of_device)
        return self.with_noise(np.where(counted, cell, -1), self._settings.cells)

    def with_noise(self, cell: IntArray, n_cells: int) -> FloatArray:
        """Count devices by time and cell; add the noise."""
        return np.rint(self._draw(exact_counts(cell, n_cells), self._scale))


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
        bar=f"recovered <= {RECOVERY_TIMES_BLIND:g} chance or standing still",
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
        bar=f"area under the curve <= {MEMBERSHIP_AUC:g}; chance is 0.5",
        holds=None if auc is None else auc <= MEMBERSHIP_AUC,
    )
