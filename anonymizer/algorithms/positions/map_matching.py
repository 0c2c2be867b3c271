"""Map matching: the road that is nearest to a position, and that road's nearer end."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import chord_of_m, unit_vectors
from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.network import Lines, RoadNetwork

OFF_GRAPH = -1

_CELL_SEGMENTS = 1.5
"""Side of a cell, in mean lengths of a segment: the fastest of those tried from 0.7 to 2.2."""
_MOST_RINGS = 16
"""Rings of cells that are searched around a position; beyond them every segment is compared."""
_ROUNDING = 1e-15
"""Added to cells and limits on the unit sphere (6 nm), so that rounding loses no segment."""


class Segments(NamedTuple):
    """Straight pieces of all roads, none longer than a cell of the grid.

    Attributes
    ----------
    start, step, normal
        Unit vector of the beginning, the vector from there to the end, and the unit vector
        perpendicular to both (of segments without a length: zero), shape (segments, 3).
    tail, head
        Nodes at the two ends of the road of each segment, int32.
    split
        Share of the segment that is nearer to the tail than to the head, along the road, 0 to 1.
    """

    start: FloatArray
    step: FloatArray
    normal: FloatArray
    tail: Int32Array
    head: Int32Array
    split: FloatArray


class Grid(NamedTuple):
    """Square cells of a plane that segments enter, in a hash table with open addressing.

    Attributes
    ----------
    x, y
        Column and row of each cell, int32.
    first_of
        Where the entries of each cell begin in `Entries`, and the end of the last ones, int32.
    slot
        Cell in each slot of the table, negative for none; its length is a power of two.
    """

    x: Int32Array
    y: Int32Array
    first_of: Int32Array
    slot: Int32Array


class Entries(NamedTuple):
    """The segments that enter each cell, cell by cell: a search reads memory in order.

    Attributes
    ----------
    line
        Start, normal and step of each, see `Segments`, shape (entries, 9).
    tail, head, split
        As of `Segments`.
    """

    line: FloatArray
    tail: Int32Array
    head: Int32Array
    split: FloatArray


class NodeLocator:
    """Finds the nearest road of a network within a limit, and the node at its nearer end.

    Distances are those of great circles to the drawn line of each road, so a position is located
    by the road that it is on, however far the next junction is. *Nearer* is measured along the
    road. Nodes without a road are found by the distance to themselves.

    Segments lie in a grid over the orthographic projection around the middle of the network. That
    projection lengthens no distance, so a search that stops at a ring of cells farther than the
    best segment misses nothing: not at the poles, nor at the antimeridian, nor on a network around
    the world.

    Parameters
    ----------
    network
        A network with coordinates.
    limit_m
        A position farther than this from every road is off the graph.

    Raises
    ------
    ValueError
        If the network has no coordinates.

    Notes
    -----
    About 200 bytes for each segment, which enters two cells in the mean: a copy of it in each cell
    halves the time of a search. A road without a shape is one segment.
    """

    def __init__(self, network: RoadNetwork, *, limit_m: float) -> None:
        if not network.has_coordinates:
            raise ValueError("positions cannot be located on a network without coordinates")
        self._axes = _axes(unit_vectors(network.lat, network.lon))
        segments = _segments(network.lines(), self._axes)
        self._side = _CELL_SEGMENTS * _mean_length(segments)
        alone = np.flatnonzero(np.diff(network.first_arc_of) == 0).astype(np.int32)
        segments = _with_points(
            _cut(segments, self._side),
            unit_vectors(network.lat[alone], network.lon[alone]) @ self._axes,
            alone,
        )
        self._grid, self._entries = _grid(segments, self._side)
        self._bound = (chord_of_m(limit_m) + _ROUNDING) ** 2

    def locate(self, lat: FloatArray, lon: FloatArray) -> Int32Array:
        """Return the node of each position, or `OFF_GRAPH`.

        Parameters
        ----------
        lat, lon
            WGS84 degrees, shape (n,), finite.

        Notes
        -----
        O(n) for positions near roads, whatever the size of the network. Of several roads at the
        same distance, always the same one is taken.
        """
        place = unit_vectors(lat, lon) @ self._axes
        node = np.empty(len(place), np.int32)
        _locate(place, self._grid, self._entries, self._side, self._bound, node)
        return node


def _axes(place: FloatArray) -> FloatArray:
    """Return the columns east, north and up at the middle of the places, shape (3, 3)."""
    middle = place.sum(axis=0)
    up = middle / np.linalg.norm(middle) if np.abs(middle).max(initial=0.0) > 1e-6 else np.eye(3)[0]
    east = np.cross(np.eye(3)[np.argmin(np.abs(up))], up)
    east /= np.linalg.norm(east)
    return np.stack((east, np.cross(up, east), up), axis=1)


def _segments(lines: Lines, axes: FloatArray) -> Segments:
    """Return the segments of all lines."""
    place = unit_vectors(lines.lat, lines.lon) @ axes
    # The last point of a line begins no segment.
    begins = np.ones(len(place), np.bool_)
    begins[lines.first_point_of[1:] - 1] = False
    first = np.flatnonzero(begins)
    start, step = place[first], place[first + 1] - place[first]
    line = np.repeat(np.arange(len(lines.tail)), np.diff(lines.first_point_of) - 1)
    length = np.linalg.norm(step, axis=1)
    total = np.bincount(line, weights=length, minlength=len(lines.tail))
    before = np.cumsum(length) - length - (np.cumsum(total) - total)[line]
    share = (total[line] / 2 - before) / np.where(length > 0, length, 1.0)
    split = np.clip(share, 0.0, 1.0)
    return Segments(start, step, step, lines.tail[line], lines.head[line], split)


def _mean_length(segments: Segments) -> float:
    """Return the mean length of segments, at least half a metre, on the unit sphere."""
    length = np.linalg.norm(segments.step, axis=1)
    return max(float(length.sum()) / max(len(length), 1), 1e-7)


def _cut(segments: Segments, side: float) -> Segments:
    """Return the segments cut into equal parts no longer than a side, with their normals."""
    length = np.linalg.norm(segments.step, axis=1)
    n = np.maximum(np.ceil(length / side), 1.0).astype(np.int64)
    whole = np.repeat(np.arange(len(n)), n)
    part = np.arange(len(whole)) - (np.cumsum(n) - n)[whole]
    start, step = segments.start[whole], segments.step[whole]
    ends = [start + step * ((part + i) / n[whole])[:, None] for i in (0, 1)]
    # Back onto the sphere, from the chord.
    a, b = (end / np.linalg.norm(end, axis=1, keepdims=True) for end in ends)
    across = np.cross(a, b - a)
    size = np.linalg.norm(across, axis=1, keepdims=True)
    return Segments(
        a,
        b - a,
        across / np.where(size > 0, size, 1.0),
        segments.tail[whole],
        segments.head[whole],
        np.clip(segments.split[whole] * n[whole] - part, 0.0, 1.0),
    )


def _with_points(segments: Segments, place: FloatArray, node: Int32Array) -> Segments:
    """Return the segments, and one without a length for each node that has no road."""
    nothing = np.zeros_like(place)
    return Segments(
        np.concatenate((segments.start, place)),
        np.concatenate((segments.step, nothing)),
        np.concatenate((segments.normal, nothing)),
        np.concatenate((segments.tail, node)),
        np.concatenate((segments.head, node)),
        np.concatenate((segments.split, np.ones(len(node)))),
    )


def _grid(segments: Segments, side: float) -> tuple[Grid, Entries]:
    """Return the cells of a side that the segments enter, and the segments cell by cell."""
    a, b = segments.start[:, :2], segments.start[:, :2] + segments.step[:, :2]
    # Between its ends, an arc bulges by this much at most.
    bulge = (segments.step**2).sum(axis=1, keepdims=True) / 8 + _ROUNDING
    low = np.floor((np.minimum(a, b) - bulge) / side).astype(np.int64)
    n = np.floor((np.maximum(a, b) + bulge) / side).astype(np.int64) - low + 1
    segment = np.repeat(np.arange(len(n)), n.prod(axis=1))
    at = np.arange(len(segment)) - (np.cumsum(n.prod(axis=1)) - n.prod(axis=1))[segment]
    x, y = low[segment, 0] + at % n[segment, 0], low[segment, 1] + at // n[segment, 0]
    order = np.lexsort((segment, x, y))
    x, y = x[order], y[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(x) != 0) | (np.diff(y) != 0)
    first = np.flatnonzero(begins)
    grid = Grid(
        x[first].astype(np.int32),
        y[first].astype(np.int32),
        np.append(first, len(order)).astype(np.int32),
        np.full(1 << (2 * len(first)).bit_length(), -1, np.int32),
    )
    _fill(grid.x, grid.y, grid.slot)
    segment = segment[order]
    return grid, Entries(
        np.hstack((segments.start, segments.normal, segments.step))[segment],
        segments.tail[segment],
        segments.head[segment],
        segments.split[segment],
    )


@inner_kernel
def _hashed(x: int, y: int) -> int:
    """Return a number from which the slot of a cell follows (Teschner et al., 2003)."""
    return (x * 73856093) ^ (y * 19349663)


@kernel
def _fill(x: Int32Array, y: Int32Array, slot: Int32Array) -> None:
    """Put every cell into a free slot."""
    for cell in range(len(x)):
        at = _hashed(x[cell], y[cell]) & (len(slot) - 1)
        while slot[at] >= 0:
            at = (at + 1) & (len(slot) - 1)
        slot[at] = cell


@kernel
def _locate(
    place: FloatArray,
    grid: Grid,
    entries: Entries,
    side: float,
    bound: float,
    node: Int32Array,
) -> None:
    """Write the node of each place; see `NodeLocator.locate`. `bound` is a squared chord."""
    for i in range(len(place)):
        _, found, share = _nearest(place[i], grid, entries.line, side, bound)
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
                    first, last = _entries_of(grid.x, grid.y, grid.first_of, grid.slot, u, v)
                    best = _nearer(p[0], p[1], p[2], line, first, last, best)
    return _nearer(p[0], p[1], p[2], line, 0, len(line), best)


@inner_kernel
def _entries_of(
    cell_x: Int32Array, cell_y: Int32Array, first_of: Int32Array, slot: Int32Array, x: int, y: int
) -> tuple[int, int]:
    """Return the range of the entries of a cell; empty if no segment enters it."""
    at = _hashed(x, y) & (len(slot) - 1)
    while slot[at] >= 0:
        cell = slot[at]
        if cell_x[cell] == x and cell_y[cell] == y:
            return first_of[cell], first_of[cell + 1]
        at = (at + 1) & (len(slot) - 1)
    return 0, 0


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
