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
from anonymizer.algorithms.uneven_density import DensityFit
from anonymizer.client.cells import Cells
from anonymizer.client.network import Geometry, Network
from anonymizer.client.tables import Table, middle, times
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.errors import InputError

_Row: TypeAlias = tuple[float, float, int, int]
"""Expectation, standard error, low and high."""
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
