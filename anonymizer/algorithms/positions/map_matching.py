"""Map matching: the road that a position is on, and that road's nearer end."""

import numpy as np

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M, chord_of_m, unit_vectors
from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.positions.road_grid import (
    ROUNDING,
    Entries,
    Grid,
    entries_of,
    road_grid,
)
from anonymizer.domain.arrays import FloatArray, Int8Array, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork

OFF_GRAPH = -1

SPREAD_M = 4.07
"""Standard deviation of a position's distance from its road [1]_."""
SPREAD_DEG = 10.0
"""Standard deviation of a heading from the direction of its road [2]_."""
WORST_MISFIT = 2 * float(np.log(100.0))
"""Misfit of a heading that does not fit: as likely as one in a hundred [2]_, for a car that
reverses and a phone that lies across. A road that fits wins over one that does not if the squares
of their distances differ by less than this times the square of `SPREAD_M`: (12 m)²."""
_SPREAD = (SPREAD_M / EARTH_RADIUS_M) ** 2
_PRECISION = 1 / np.radians(SPREAD_DEG) ** 2
_MOST_RINGS = 16
"""Rings of cells that are searched around a position; beyond them every segment is compared."""


class NodeLocator:
    """Finds the road of each position within a limit, and the node at its nearer end.

    Distances are those of great circles to the drawn line of each road, so a position is located
    by the road that it is on, however far the next junction is. *Nearer* is measured along the
    road. Nodes without a road are found by the distance to themselves.

    A position without a heading is on the nearest road. With a heading, the most likely road is
    taken, of which the likelihood is that of the distance times that of the heading: of two roads
    at about the same distance, the one whose direction fits.

    Parameters
    ----------
    network
        A network with coordinates.
    limit_m
        A position farther than this, and than `network.reach_m`, from every road is off the graph.

    Raises
    ------
    ValueError
        If the network has no coordinates.

    Notes
    -----
    About 200 bytes for each segment, which enters two cells in the mean: a copy of it in each cell
    halves the time of a search. A road without a shape is one segment.

    Distances have a normal distribution with the deviation that [1]_ estimates. Headings have a von
    Mises distribution with the deviation of [2]_, and like there a least likelihood. On a road that
    is not one-way, a heading fits in both directions.

    References
    ----------
    .. [1] P. Newson and J. Krumm, "Hidden Markov map matching through noise and sparseness", 2009,
       section 5.1.
    .. [2] BMW Car IT, Barefoot, `Matcher.candidates`, 2015.
    """

    def __init__(self, network: RoadNetwork, *, limit_m: float) -> None:
        if not network.has_coordinates:
            raise ValueError("positions cannot be located on a network without coordinates")
        self._axes, self._side, self._grid, self._entries = road_grid(network)
        self._bound = (chord_of_m(max(limit_m, network.reach_m)) + ROUNDING) ** 2

    def locate(
        self, lat: FloatArray, lon: FloatArray, heading: FloatArray | None = None
    ) -> Int32Array:
        """Return the node of each position, or `OFF_GRAPH`.

        `lat`, `lon`: WGS84 degrees, finite, shape (n,); `heading`: degrees clockwise from north,
        NaN for none.

        Notes
        -----
        O(n log n) for positions near roads, whatever the size of the network. Of several roads that
        are equally likely, always the same one is taken. Positions are searched cell by cell, as
        the roads are stored: in order of arrival the search waits for memory most of the time.
        """
        place = unit_vectors(lat, lon) @ self._axes
        order = np.argsort(self._cell(place))
        toward = np.zeros((0, 3))
        if heading is not None:
            toward = (_directions(lat, lon, heading) @ self._axes)[order]
        found = np.empty(len(place), np.int32)
        _locate(place[order], toward, self._grid, self._entries, self._side, self._bound, found)
        node = np.empty_like(found)
        node[order] = found
        return node

    def _cell(self, place: FloatArray) -> IntArray:
        """Return a number for the cell of each place, rising as in `Entries`, shape (n,)."""
        column, row = np.floor(place[:, :2].T / self._side).astype(np.int64)
        number: IntArray = (row << 32) + column
        return number


class LayeredLocator:
    """Finds positions on a network, and where it consists of several, on that of their device.

    Parameters
    ----------
    network, limit_m
        See `NodeLocator`.
    """

    def __init__(self, network: RoadNetwork, *, limit_m: float) -> None:
        self._layers = network.layers
        alone = [network.alone(layer) for layer in network.layers] or [network]
        self._locators = [NodeLocator(each, limit_m=limit_m) for each in alone]

    def locate(
        self,
        lat: FloatArray,
        lon: FloatArray,
        heading: FloatArray | None = None,
        layer: Int8Array | None = None,
    ) -> Int32Array:
        """Return the node of each position, or `OFF_GRAPH`; see `NodeLocator.locate`.

        Parameters
        ----------
        layer
            Index of the network of each device, shape (n,), negative for none: it is off the graph.

        Raises
        ------
        ValueError
            If there are several networks, and nobody says which is whose.
        """
        if not self._layers:
            return self._locators[0].locate(lat, lon, heading)
        if layer is None:
            raise ValueError("positions on several networks cannot be told apart")
        node = np.full(len(lat), OFF_GRAPH, np.int32)
        for number, (each, locator) in enumerate(zip(self._layers, self._locators, strict=True)):
            rows = np.flatnonzero(layer == number)
            toward = None if heading is None else heading[rows]
            found = locator.locate(lat[rows], lon[rows], toward)
            node[rows] = np.where(found == OFF_GRAPH, OFF_GRAPH, found + np.int32(each.nodes.start))
        return node


def _directions(lat: FloatArray, lon: FloatArray, heading: FloatArray) -> FloatArray:
    """Return the unit vectors of headings at their places, in degrees, shape (n, 3)."""
    phi, lam, turn = np.radians(lat), np.radians(lon), np.radians(heading)
    north = -np.sin(phi) * np.cos(lam), -np.sin(phi) * np.sin(lam), np.cos(phi)
    east = -np.sin(lam), np.cos(lam), np.zeros(len(lam))
    return np.stack(
        [np.cos(turn) * n + np.sin(turn) * e for n, e in zip(north, east, strict=True)], axis=1
    )


@kernel
def _locate(
    place: FloatArray,
    toward: FloatArray,
    grid: Grid,
    entries: Entries,
    side: float,
    bound: float,
    node: Int32Array,
) -> None:
    """Write the node of each place; see `NodeLocator.locate`. `bound` is a squared chord."""
    for i in range(len(place)):
        gap, found, share = _nearest(place[i], grid, entries.line, side, bound)
        if found >= 0 and len(toward) and not np.isnan(toward[i, 0]):
            found, share = _fitting(
                place[i], toward[i], grid, entries.line, entries.way, side, bound, gap, found, share
            )
        if found < 0:
            node[i] = OFF_GRAPH
        elif share <= entries.split[found]:
            node[i] = entries.tail[found]
        else:
            node[i] = entries.head[found]


@inner_kernel
def _nearest(
    p: FloatArray, grid: Grid, line: FloatArray, side: float, bound: float
) -> tuple[float, int, float]:
    """Return squared chord, entry (negative if none is in bounds) and share of the nearest one."""
    x, y = p[0] / side, p[1] / side
    column, row = int(np.floor(x)), int(np.floor(y))
    to_border = min(x - column, column + 1 - x, y - row, row + 1 - y)
    best = (bound, OFF_GRAPH, 0.0)
    for ring in range(_MOST_RINGS):
        reach = max(ring - 1 + to_border, 0.0) * side if ring else 0.0
        if reach * reach > best[0]:
            return best
        for v in range(row - ring, row + ring + 1):
            stride = 1 if abs(v - row) == ring else 2 * ring
            for u in range(column - ring, column + ring + 1, max(stride, 1)):
                dx = max(u - x, x - u - 1, 0.0) * side
                dy = max(v - y, y - v - 1, 0.0) * side
                if dx * dx + dy * dy <= best[0]:
                    first, last = entries_of(grid.x, grid.y, grid.first_of, grid.slot, u, v)
                    best = _nearer(p[0], p[1], p[2], line, first, last, best)
    return _nearer(p[0], p[1], p[2], line, 0, len(line), best)


@inner_kernel
def _fitting(
    p: FloatArray,
    toward: FloatArray,
    grid: Grid,
    line: FloatArray,
    way: Int8Array,
    side: float,
    bound: float,
    gap: float,
    found: int,
    share: float,
) -> tuple[int, float]:
    """Return entry and share of the likeliest segment, given the nearest one and its gap.

    The likeliest has the least sum of squared chord and misfit. A segment whose squared chord alone
    is above the least sum so far cannot be it, so few cells are searched.
    """
    x, y = p[0] / side, p[1] / side
    column, row = int(np.floor(x)), int(np.floor(y))
    to_border = min(x - column, column + 1 - x, y - row, row + 1 - y)
    best = gap + _misfit(toward, line, way, found)
    for ring in range(_MOST_RINGS):
        reach = max(ring - 1 + to_border, 0.0) * side if ring else 0.0
        if reach * reach > min(best, bound):
            break
        for v in range(row - ring, row + ring + 1):
            stride = 1 if abs(v - row) == ring else 2 * ring
            for u in range(column - ring, column + ring + 1, max(stride, 1)):
                dx = max(u - x, x - u - 1, 0.0) * side
                dy = max(v - y, y - v - 1, 0.0) * side
                if dx * dx + dy * dy > min(best, bound):
                    continue
                first, last = entries_of(grid.x, grid.y, grid.first_of, grid.slot, u, v)
                for k in range(first, last):
                    none = (min(best, bound), OFF_GRAPH, 0.0)
                    square, at, along = _nearer(p[0], p[1], p[2], line, k, k + 1, none)
                    if at >= 0:
                        square += _misfit(toward, line, way, k)
                        if square < best:
                            best, found, share = square, k, along
    return found, share


@inner_kernel
def _misfit(toward: FloatArray, line: FloatArray, way: Int8Array, k: int) -> float:
    """Return how badly a heading fits a segment, as a squared chord."""
    ex, ey, ez = line[k, 6], line[k, 7], line[k, 8]
    length = np.sqrt(ex * ex + ey * ey + ez * ez)
    if length == 0.0:  # a node without a road has no direction
        return _SPREAD * WORST_MISFIT
    cosine = (toward[0] * ex + toward[1] * ey + toward[2] * ez) / length
    cosine = cosine * way[k] if way[k] else abs(cosine)
    misfit: float = _SPREAD * min(2 * (1 - cosine) * _PRECISION, WORST_MISFIT)
    return misfit


@inner_kernel
def _nearer(
    px: float,
    py: float,
    pz: float,
    line: FloatArray,
    first: int,
    last: int,
    best: tuple[float, int, float],
) -> tuple[float, int, float]:
    """Return the nearest to a place of some entries and of the best one so far.

    With q the vector from the start a to the place p, e the step, and b = a + e the end: p is
    abeam of the arc if p.(b - a (a.b)) and p.(a - b (a.b)) are above 0, and the sine of its
    distance is then that of its angle from the plane of the arc. All are written in differences,
    because products of whole unit vectors keep only a tenth of a millimetre.
    """
    least, found, at = best
    for k in range(first, last):
        qx, qy, qz = px - line[k, 0], py - line[k, 1], pz - line[k, 2]
        sine = qx * line[k, 3] + qy * line[k, 4] + qz * line[k, 5]
        if sine * sine >= least:
            continue
        ex, ey, ez = line[k, 6], line[k, 7], line[k, 8]
        qq = qx * qx + qy * qy + qz * qz
        ee = ex * ex + ey * ey + ez * ez
        qe = qx * ex + qy * ey + qz * ez
        rr = qq - 2 * qe + ee
        from_start = qe - ee * qq / 4
        to_end = ee - qe - ee * rr / 4
        if from_start <= 0.0:
            gap, share = qq, 0.0
        elif to_end <= 0.0:
            gap, share = rr, 1.0
        else:
            gap = 2 * sine * sine / (1.0 + np.sqrt(1.0 - sine * sine))
            share = from_start / (from_start + to_end)
        if gap < least:
            least, found, at = gap, k, share
    return least, found, at
