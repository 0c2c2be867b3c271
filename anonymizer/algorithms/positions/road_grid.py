"""Road grid: the straight pieces of all roads of a network, in square cells that are hashed."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import unit_vectors
from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.domain.arrays import FloatArray, Int8Array, Int32Array
from anonymizer.domain.network import RoadNetwork

ROUNDING = 1e-15
"""Added to cells and limits on the unit sphere (6 nm), so that rounding loses no segment."""
_CELL_SEGMENTS = 1.5
"""Side of a cell, in mean lengths of a segment: the fastest of those tried from 0.7 to 2.2."""


class Segments(NamedTuple):
    """Straight pieces of all roads, none longer than a cell of the grid."""

    start: FloatArray
    step: FloatArray
    normal: FloatArray
    """`start`, `step`, `normal`: unit vector of the beginning, the vector from there to the end,
    and the unit vector perpendicular to both (of segments without a length: zero), shape (segments,
    3)."""
    tail: Int32Array
    head: Int32Array
    """`tail`, `head`: nodes at the two ends of the road of each segment, int32."""
    split: FloatArray
    """Where the middle of the road is, in lengths of the segment from its beginning: what lies
    farther is nearer to the head. Not between 0 and 1 where it is in another segment."""
    way: Int8Array
    """1 where the road may be driven from tail to head alone, -1 from head to tail alone, else 0,
    int8."""


class Grid(NamedTuple):
    """Square cells of a plane that segments enter, in a hash table with open addressing."""

    x: Int32Array
    y: Int32Array
    """`x`, `y`: column and row of each cell, int32."""
    first_of: Int32Array
    """Where the entries of each cell begin in `Entries`, and the end of the last ones, int32."""
    slot: Int32Array
    """Cell in each slot of the table, negative for none; its length is a power of two."""


class Entries(NamedTuple):
    """The segments that enter each cell, cell by cell: a search reads memory in order."""

    line: FloatArray
    """Start, normal and step of each, see `Segments`, shape (entries, 9)."""
    tail: Int32Array
    head: Int32Array
    split: FloatArray
    way: Int8Array
    """`tail`, `head`, `split`, `way`: as of `Segments`."""


class RoadGrid(NamedTuple):
    """The roads of a network in a grid over the orthographic projection around its middle.

    That projection lengthens no distance, so a search that stops at a ring of cells farther than
    the best segment misses nothing: not at the poles, nor at the antimeridian, nor on a network
    around the world.
    """

    axes: FloatArray
    """Columns east, north and up at the middle, shape (3, 3): a unit vector times these is a place,
    and its first two numbers are its projection."""
    side: float
    """Side of a cell, on the unit sphere."""
    grid: Grid
    entries: Entries
    """`grid`, `entries`: the cells, and the segments in each."""


def road_grid(network: RoadNetwork) -> RoadGrid:
    """Return the grid of a network with coordinates. O(n log n).

    A node without a road is a segment without a length.
    """
    axes = _axes(unit_vectors(network.lat, network.lon))
    segments = _segments(network, axes)
    side = _CELL_SEGMENTS * _mean_length(segments)
    alone = np.flatnonzero(np.diff(network.first_arc_of) == 0).astype(np.int32)
    segments = _with_points(
        _cut(segments, side),
        unit_vectors(network.lat[alone], network.lon[alone]) @ axes,
        alone,
    )
    return RoadGrid(axes, side, *_grid(segments, side))


def _axes(place: FloatArray) -> FloatArray:
    """Return the columns east, north and up at the middle of the places, shape (3, 3)."""
    middle = place.sum(axis=0)
    up = middle / np.linalg.norm(middle) if np.abs(middle).max(initial=0.0) > 1e-6 else np.eye(3)[0]
    east = np.cross(np.eye(3)[np.argmin(np.abs(up))], up)
    east /= np.linalg.norm(east)
    return np.stack((east, np.cross(up, east), up), axis=1)


def _segments(network: RoadNetwork, axes: FloatArray) -> Segments:
    """Return the segments of all roads."""
    lines = network.lines()
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
    split = (total[line] / 2 - before) / np.where(length > 0, length, 1.0)
    way = _ways(network)[line]
    return Segments(start, step, step, lines.tail[line], lines.head[line], split, way)


def _ways(network: RoadNetwork) -> Int8Array:
    """Return `Segments.way` of each road, in the order of `RoadNetwork.lines`."""
    open_ = network.drivable.astype(np.int8)
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    return (open_ - open_[network.opposite_arcs()])[tail < network.neighbour_of]


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
        segments.split[whole] * n[whole] - part,
        segments.way[whole],
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
        np.concatenate((segments.way, np.zeros(len(node), np.int8))),
    )


def _grid(segments: Segments, side: float) -> tuple[Grid, Entries]:
    """Return the cells of a side that the segments enter, and the segments cell by cell."""
    a, b = segments.start[:, :2], segments.start[:, :2] + segments.step[:, :2]
    # Between its ends, an arc bulges by this much at most.
    bulge = (segments.step**2).sum(axis=1, keepdims=True) / 8 + ROUNDING
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
        segments.way[segment],
    )


@inner_kernel
def _hashed(x: int, y: int) -> int:
    """Return a number from which the slot of a cell follows (Teschner et al., 2003)."""
    return (int(x) * 73856093) ^ (int(y) * 19349663)  # items of numpy would wrap at 32 bits


@kernel
def _fill(x: Int32Array, y: Int32Array, slot: Int32Array) -> None:
    """Put every cell into a free slot."""
    for cell in range(len(x)):
        at = _hashed(x[cell], y[cell]) & (len(slot) - 1)
        while slot[at] >= 0:
            at = (at + 1) & (len(slot) - 1)
        slot[at] = cell


@inner_kernel
def entries_of(
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
