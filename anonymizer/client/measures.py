"""Measures of releases: heat map, flows and means by road, each with an error bar."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.uncertain_counts import (
    count_distribution,
    count_interval,
    interval_of,
    least_moves,
    move_bounds,
)
from anonymizer.algorithms.uneven_density import DensityFit, possible_weight
from anonymizer.client.cells import Cells
from anonymizer.client.network import Geometry, Network
from anonymizer.client.tables import Table, middle, times
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.errors import InputError

_Row: TypeAlias = tuple[float, float, int, int]
"""Expectation, standard error, low and high."""
NORMAL = float(np.sqrt(2 / np.pi))
"""Mean absolute error of a normal distribution, in standard deviations."""
_DRIVEN, _DRAWS = 0.5, 8
"""How far devices drive, by what the speed of the roads allows; and how many truths are drawn."""
_SURE = 1e-9
"""A number of devices with a smaller variance by chance has no error."""
_QUARTILES_APART = 2 * NormalDist().inv_cdf(0.75)
"""Distance of the quartiles of a normal distribution, in standard deviations."""


class Placed(NamedTuple):
    """Where devices may be at a moment.

    Attributes
    ----------
    moment
        Unix seconds.
    shares
        Probability that a device of each region is in each cell, shape (regions, cells + 1).
    n
        Number of devices in each region, shape (regions,).
    variance
        Of the number of devices in each cell, by what is not known of the density, shape
        (cells + 1,).
    fit
        What is known of the density.
    """

    moment: float
    shares: csr_array
    n: IntArray
    variance: FloatArray
    fit: DensityFit


def heat_map(cells: Cells, placed: Iterable[Placed], *, level: float) -> Table:
    """Return the expected number of devices by moment and cell; see `Releases.heat_map`."""
    _check_level(level)
    when: list[float] = []
    cell: list[int] = []
    rows: list[_Row] = []
    for at in placed:
        for c, (p, n, shared_sd) in counts_of(at, len(cells)):
            when.append(at.moment)
            cell.append(c)
            first, probability = count_distribution(p, n, shared_sd=shared_sd)
            mean = float(n @ p)
            numbers = first + np.arange(len(probability))
            se = float(np.sqrt(probability @ (numbers - mean) ** 2))
            rows.append((mean, se, *interval_of(first, probability, level=level)))
    return Table(
        {
            "time": times(np.array(when, np.float64)),
            "cell": [cells.name[c] for c in cell],
            **_columns(rows),
        },
        [cells.geometry[c] for c in cell],
    )


def counts_of(
    placed: Placed, n_cells: int
) -> Iterator[tuple[int, tuple[FloatArray, IntArray, float]]]:
    """Yield each cell where a device may be, with the parameters of `count_distribution`."""
    region = np.flatnonzero(placed.n)
    by_cell = placed.shares[region].tocsc()
    for c in range(n_cells):
        entry = slice(by_cell.indptr[c], by_cell.indptr[c + 1])
        p, n = by_cell.data[entry], placed.n[region[by_cell.indices[entry]]]
        if n.sum():
            chance = float(n @ (p * (1 - p)))
            sd = np.sqrt(placed.variance[c]) / chance if chance > _SURE else 0.0
            yield c, (p, n, float(sd))


def flows(cells: Cells, shares: csr_array, pairs: IntArray, n: IntArray, *, level: float) -> Table:
    """Return the moves from cell to cell; see `Releases.flows`.

    Parameters
    ----------
    shares
        As for `heat_map`.
    pairs, n
        Region before and after, shape (2, pairs), and the number of devices that have them.
    """
    _check_level(level)
    n_cells = len(cells) + 1
    parts: list[FloatArray] = []
    for start, end, devices in zip(*pairs.tolist(), n.tolist(), strict=True):
        p, q = shares[[start]].toarray()[0], shares[[end]].toarray()[0]
        here = np.flatnonzero((p > 0) | (q > 0))
        least, (low, high) = least_moves(p[here], q[here]), move_bounds(p[here], q[here])
        move = (here[:, None] * n_cells + here[None, :]).ravel()
        many = np.full(len(move), devices)
        part = np.stack([move, least.ravel(), low.ravel(), high.ravel(), many], axis=1)
        parts.append(part[part[:, 3] > 0])
    every = np.concatenate(parts) if parts else np.zeros((0, 5))
    every = every[np.argsort(every[:, 0], kind="stable")]
    move, first = np.unique(every[:, 0], return_index=True)
    origin, destination = (move // n_cells).astype(np.int64), (move % n_cells).astype(np.int64)
    inside = (origin < len(cells)) & (destination < len(cells))
    of_move = np.split(every, first[1:]) if len(move) else []
    kept = [
        (a, b, _estimate(part[:, 1], part[:, 4].astype(np.int64), level=level, bounds=part[:, 2:4]))
        for a, b, within, part in zip(
            origin.tolist(), destination.tolist(), inside.tolist(), of_move, strict=True
        )
        if within
    ]
    kept = [each for each in kept if each[2][0] > 0 or each[2][3] > 0]
    middles = [list(middle(each)) for each in cells.geometry]
    lines: list[Geometry] = [
        {"type": "LineString", "coordinates": [middles[a], middles[b]]} for a, b, _ in kept
    ]
    return Table(
        {
            "origin": [cells.name[a] for a, _, _ in kept],
            "destination": [cells.name[b] for _, b, _ in kept],
            **_columns([row for _, _, row in kept]),
        },
        lines,
    )


def by_road(
    network: Network,
    roads: csr_array,
    *,
    mean: FloatArray,
    spread: FloatArray,
    n: FloatArray,
    level: float,
    least: float = -np.inf,
) -> Table:
    """Return the mean of a reading by road; see `Releases.speeds`.

    Parameters
    ----------
    roads
        Which roads each message covers, shape (messages, roads).
    mean, spread, n
        Mean and standard deviation of the reading within each message (NaN if unknown), and its
        number of devices, shape (messages,).
    least
        Smallest possible value.
    """
    _check_level(level)
    weight = roads.multiply(network.length_m[None, :]).tocsr()
    length = np.maximum(np.asarray(weight.sum(axis=1)).ravel(), 1e-9)
    weight = weight.multiply((n / length)[:, None]).tocsr()
    total = weight.T @ np.ones(len(n))
    road = np.flatnonzero(total)
    weight, total = weight[:, road], total[road]
    found = (weight.T @ mean) / total
    # Of the mixture: within the messages, and between them.
    square = (weight.T @ (spread**2 + mean**2)) / total - found**2
    se = np.sqrt(np.maximum(square, 0.0))
    reach = -NormalDist().inv_cdf((1 - level) / 2) * se
    lines = network.roads()
    return Table(
        {
            "u": network.node_id[network.u[road]].astype(object),
            "v": network.node_id[network.v[road]].astype(object),
            "mean": found,
            "se": se,
            "low": np.maximum(found - reach, least),
            "high": found + reach,
            "devices": total,
        },
        [lines[r] for r in road.tolist()],
    )


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


def spread_of(statistics: Mapping[str, float]) -> float:
    """Return the standard deviation of a reading in a group; NaN if it does not follow.

    From the quartiles, as if it were normal; else half of the range, which is never less.
    """
    if "p25" in statistics and "p75" in statistics:
        return (statistics["p75"] - statistics["p25"]) / _QUARTILES_APART
    if "min" in statistics and "max" in statistics:
        return (statistics["max"] - statistics["min"]) / 2
    return float("nan")


def _estimate(p: FloatArray, n: IntArray, *, level: float, bounds: FloatArray) -> _Row:
    """Return expectation, standard error and interval of a number of devices.

    Parameters
    ----------
    p, n
        `n[i]` devices count with probability `p[i]` each.
    bounds
        The smallest and largest that these probabilities may be, shape (i, 2).
    """
    low = count_interval(bounds[:, 0], n, level=level)[0]
    high = count_interval(bounds[:, 1], n, level=level)[1]
    return float(n @ p), float(np.sqrt(n @ (p * (1 - p)))), low, high


def _columns(rows: Sequence[_Row]) -> dict[str, FloatArray | IntArray]:
    values = np.array(rows, np.float64).reshape(-1, 4)
    return {
        "devices": values[:, 0],
        "se": values[:, 1],
        "low": values[:, 2].astype(np.int64),
        "high": values[:, 3].astype(np.int64),
    }


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError("level must be between 0 and 1")
