"""Measures of releases: heat map, flows and means by road, each with an error bar."""

from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.uncertain_counts import count_interval, least_moves, move_bounds
from anonymizer.client.cells import Cells
from anonymizer.client.network import Geometry, Network
from anonymizer.client.tables import Table, middle, times
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.errors import InputError

_QUARTILES_APART = 2 * NormalDist().inv_cdf(0.75)
"""Distance of the quartiles of a normal distribution, in standard deviations."""


def heat_map(
    cells: Cells,
    shares: csr_array,
    moments: Sequence[float],
    counts: Sequence[IntArray],
    *,
    level: float,
) -> Table:
    """Return the expected number of devices by moment and cell; see `Releases.heat_map`.

    Parameters
    ----------
    shares
        Probability that a device of each region is in each cell, shape (regions, cells + 1).
    counts
        Number of devices in each region, for each moment.
    """
    _check_level(level)
    when: list[float] = []
    cell: list[int] = []
    rows: list[tuple[float, float, int, int]] = []
    for at, n in zip(moments, counts, strict=True):
        region = np.flatnonzero(n)
        by_cell = shares[region].tocsc()
        for c in range(len(cells)):
            entry = slice(by_cell.indptr[c], by_cell.indptr[c + 1])
            p, n_here = by_cell.data[entry], n[region[by_cell.indices[entry]]]
            if n_here.sum():
                when.append(at)
                cell.append(c)
                rows.append(_estimate(p, n_here, level=level))
    return Table(
        {
            "time": times(np.array(when, np.float64)),
            "cell": [cells.name[c] for c in cell],
            **_columns(rows),
        },
        [cells.geometry[c] for c in cell],
    )


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
) -> Table:
    """Return the mean of a reading by road; see `Releases.speeds`.

    Parameters
    ----------
    roads
        Which roads each message covers, shape (messages, roads).
    mean, spread, n
        Mean and standard deviation of the reading within each message (NaN if unknown), and its
        number of devices, shape (messages,).
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
            "low": found - reach,
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


def _estimate(
    p: FloatArray, n: IntArray, *, level: float, bounds: FloatArray | None = None
) -> tuple[float, float, int, int]:
    """Return expectation, standard error and interval of a number of devices.

    Parameters
    ----------
    p, n
        `n[i]` devices count with probability `p[i]` each.
    bounds
        The smallest and largest that these probabilities may be, shape (i, 2); None: they are
        known.
    """
    low, high = count_interval(p if bounds is None else bounds[:, 0], n, level=level)
    if bounds is not None:
        high = count_interval(bounds[:, 1], n, level=level)[1]
    return float(n @ p), float(np.sqrt(n @ (p * (1 - p)))), low, high


def _columns(rows: Sequence[tuple[float, float, int, int]]) -> dict[str, FloatArray | IntArray]:
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
