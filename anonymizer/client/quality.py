"""How good a release is for counting: the errors to expect, without the truth."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.uncertain_counts import count_distribution, least_moves
from anonymizer.algorithms.uneven_density import possible_weight
from anonymizer.client.cells import Cells
from anonymizer.client.measures import Placed, counts_of
from anonymizer.domain.arrays import FloatArray, IntArray

NORMAL = float(np.sqrt(2 / np.pi))
"""Mean absolute error of a normal distribution, in standard deviations."""
_DRIVEN, _DRAWS = 0.5, 8
"""How far devices drive, by what the speed of the roads allows; and how many truths are drawn."""


class Quality(NamedTuple):
    """How good a release is for counting devices in cells.

    Attributes
    ----------
    devices
        Number of published devices, mean over the moments. How many are not published, a release
        does not say.
    coverage
        Share of the cells in which a published device may be.
    age_mean_s, age_p95_s
        How long ago what is known of a device was current, as by `ages`.
    density_error
        Share of the devices that `heat_map` is expected to count in a wrong cell.
    flow_error
        The same of the moves of `flows` within half a minute; NaN if no pseudonym lasts so long.
    speed_error
        Expected difference of the speed of a device from the mean of its road by `speeds`, in the
        unit of the reading; NaN if none is published.
    """

    devices: float
    coverage: float
    age_mean_s: float
    age_p95_s: float
    density_error: float
    flow_error: float
    speed_error: float


def density_error(placed: Placed, n_cells: int) -> tuple[float, float, float]:
    """Return devices and cells of a heat map, and the expected sum of the errors of its cells."""
    devices, cells, error = 0.0, 0, 0.0
    for _, (p, n, shared_sd) in counts_of(placed, n_cells):
        first, probability = count_distribution(p, n, shared_sd=shared_sd)
        mean = float(n @ p)
        error += float(probability @ np.abs(first + np.arange(len(probability)) - mean))
        devices += mean
        cells += 1
    return devices, cells, error


def flow_error(
    cells: Cells,
    placed: Placed,
    pairs: tuple[IntArray, IntArray],
    nodes: tuple[IntArray, IntArray],
    *,
    seconds: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the share of devices that flows are expected to get wrong, and how many they follow.

    Parameters
    ----------
    pairs
        Regions before and after, and the devices that have them, as for `flows`.
    nodes
        The nodes of each region in compressed sparse rows.
    seconds
        How much later the regions after are.
    """
    (before, after), n = pairs
    shares, n_cells = placed.shares, len(cells) + 1
    published = np.zeros((n_cells, n_cells))
    for start, end, devices in zip(before.tolist(), after.tolist(), n.tolist(), strict=True):
        p, q = shares[[start]].toarray()[0], shares[[end]].toarray()[0]
        published += devices * least_moves(p, q)
    cell_of = np.where(cells.cell_of < 0, len(cells), cells.cell_of)
    # A distance whose probability falls by e in `reach_m` has the mean 2 x `reach_m` on a plane.
    reach_m = _DRIVEN * float(cells.network.speed_mps.mean()) * seconds / 2
    east_m, north_m = cells.network.plane_m
    first, node = nodes
    errors = []
    for _ in range(_DRAWS):
        weight = possible_weight(cells.network.halves, placed.fit, rng)
        true = np.zeros((n_cells, n_cells))
        for start, end, devices in zip(before.tolist(), after.tolist(), n.tolist(), strict=True):
            here = node[first[start] : first[start + 1]]
            there = node[first[end] : first[end + 1]]
            v = rng.choice(here, devices, p=weight[here] / weight[here].sum())
            for each in v.tolist():
                far_m = np.hypot(east_m[there] - east_m[each], north_m[there] - north_m[each])
                near = weight[there] * np.exp(-far_m / reach_m)
                at = np.searchsorted(np.cumsum(near), rng.uniform(0, near.sum()))
                true[cell_of[each], cell_of[there[min(at, len(there) - 1)]]] += 1
        errors.append(np.abs(true - published).sum() / 2)  # missed here, too many there
    followed = float(n.sum())
    return float(np.mean(errors)) / max(followed, 1.0), followed


def mean_error(error: FloatArray, n: FloatArray) -> float:
    """Return the mean error over devices, NaN if none is known.

    Parameters
    ----------
    error, n
        Error, NaN if unknown, and number of devices that it applies to, of equal shapes.
    """
    known = ~np.isnan(error) & (n > 0)
    return float(np.average(error[known], weights=n[known])) if known.any() else np.nan
