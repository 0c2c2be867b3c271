"""Counts as who attacks them reads them: safe ones, exact ones, and with noise."""

import math

import numpy as np

from anonymizer.algorithms.positions.safe_counts import SafeFigures, figures, tally
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.outputs.counts.gaussian_noise import LaplaceNoise
from anonymizer.outputs.counts.private_counts import noise_of
from anonymizer.settings import CountSettings


def runs_counted(cell: IntArray, settings: CountSettings) -> tuple[IntArray, FloatArray]:
    """Return the run of each cell in the safe counts of an interval, and its devices."""
    safe = _figures(cell, settings)
    run_of: IntArray = np.repeat(np.arange(len(safe.n_devices)), np.diff(safe.first_cell_of))
    if not len(run_of):  # too few devices to say anything
        return np.zeros(settings.cells, np.int64), np.zeros(1)
    counted: FloatArray = safe.n_devices.astype(np.float64) + (settings.k - 1) / 2
    return run_of, counted


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
        return self.with_noise(self.counted(cell), self._settings.cells)

    def counted(self, cell: IntArray) -> IntArray:
        """Return the cells of devices in the intervals in which they count, negative in others."""
        seen = cell >= 0
        rank = np.concatenate(
            [part.cumsum(axis=1) for part in np.split(seen, self._begins[1:], axis=1)], axis=1
        )
        return np.where(seen & (rank <= self._settings.intervals_of_device), cell, -1)

    def with_noise(self, cell: IntArray, n_cells: int) -> FloatArray:
        """Count devices by time and cell; add the noise."""
        return np.rint(self._draw(exact_counts(cell, n_cells), self._scale))
