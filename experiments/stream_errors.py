"""Errors of published streams of places, as the papers on private streams define them.

Devices are in the cells of a square grid at steps of equal length. A publication is the number of
devices in each cell at each step and, where it shows them, tracks: which cells some devices, real
or made up, were in one after the other.

References
----------
.. [1] Y. Hu et al., "Real-Time Trajectory Synthesis with Local Differential Privacy" (RetraSyn),
   ICDE 2024, section V: the eight measures.
.. [2] Y. Du et al., "LDPTrace: Locally Differentially Private Trajectory Synthesis", VLDB 2023.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.utility import density_error, divergence, popularity_tau
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

RANGE_STEPS = 20
"""Length of a query, of a search for hotspots, and of one for patterns: phi of [1]_."""
N_QUERIES = 100
N_RANGES = 20
"""Ranges in which hotspots and patterns are sought; [1]_ has 100."""
_N_HOTSPOTS, _N_PATTERNS, _LONGEST_PATTERN = 10, 100, 5
_QUERY_AREA = 1 / 9
"""Share of the map that a query covers."""
_SANITY = 0.01
"""A query error is relative to the answer, or to this share of all devices if that is more."""
_N_LENGTHS = 20


class Stream(NamedTuple):
    """Where devices are."""

    cell: IntArray
    """Cell of each device at each step, negative while it is away, shape (steps, devices); cell =
    row x side + column."""
    x: FloatArray
    y: FloatArray
    """`x`, `y`: its place in widths and heights of a cell, from the corner of the grid,
    likewise."""
    side: int
    """Rows and columns of the grid."""
    width_m: float = 1.0
    height_m: float = 1.0
    """`width_m`, `height_m`: size of a cell."""

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.side * self.side

    def counts(self) -> FloatArray:
        """Return the devices in each cell at each step, shape (steps, cells)."""
        return counted(self.cell, self.n_cells)

    def __repr__(self) -> str:
        """Reveal no place."""
        return f"Stream({self.cell.shape[0]} steps, {self.cell.shape[1]} devices)"


class Published(NamedTuple):
    """What is read in a publication of a stream."""

    n_at: FloatArray
    """Devices by step and cell, shape (steps, cells)."""
    tracks: IntArray | None = None
    """Cell of each track at each step, negative before its beginning and after its end, shape
    (steps, tracks). None: none are shown."""


@dataclass(frozen=True, slots=True)
class StreamErrors:
    """Errors of a publication. None: it has no tracks."""

    density: float
    """Jensen-Shannon divergence of the devices over the cells, mean over the steps, in bits."""
    query: float
    """Mean relative error of the devices in a square of a ninth of the map over `RANGE_STEPS`."""
    hotspots: float
    """NDCG of the ten fullest cells of a range, of which the i-th true one is worth 1 / i; 1 is
    best."""
    popularity: float
    """Kendall's tau of the cells by their devices over all steps; 1 is best."""
    transition: float | None = None
    """Divergence of the moves between two steps to the same or an adjacent cell, mean over
    steps."""
    pattern: float | None = None
    """F1 of the 100 most frequent sequences of 2 to 5 cells in a range; 1 is best."""
    trip: float | None = None
    """Divergence of the pairs of first and last cell of the tracks."""
    length: float | None = None
    """Divergence of the lengths of the tracks, in 20 classes."""


def stream_errors(stream: Stream, published: Published, *, seed: int) -> StreamErrors:
    """Return the errors of a publication; equal seeds ask the same queries.

    Notes
    -----
    Differences from [1]_: divergences are in bits (theirs, in nats, are .693 of these). Lengths are
    between the centres of cells on both sides, where [1]_ draws points in the published cells. A
    gain counts the hotspots in the range once. Tau is tau-b. Published devices are taken to be
    spread evenly over their cell, as in [1]_, but without drawing.
    """
    rng = np.random.default_rng(seed)
    n_steps = len(stream.cell)
    span = min(RANGE_STEPS, n_steps)
    starts = rng.integers(0, n_steps - span + 1, N_RANGES)
    true = stream.counts()
    found = StreamErrors(
        density=density_error(true, published.n_at),
        query=_query_error(stream, published.n_at, span, rng),
        hotspots=_hotspots(true, published.n_at, starts, span),
        popularity=popularity_tau(true, published.n_at),
    )
    if published.tracks is None:
        return found
    real, shown = (
        _Tracks(cell, beginnings(cell, stream.side), stream.side)
        for cell in (stream.cell, published.tracks)
    )
    return StreamErrors(
        density=found.density,
        query=found.query,
        hotspots=found.hotspots,
        popularity=found.popularity,
        transition=float(divergence(real.moves(), shown.moves()).mean()),
        pattern=_pattern_f1(real, shown, starts, span),
        trip=float(divergence(real.trips()[None], shown.trips()[None])[0]),
        length=_length_error(real.lengths(), shown.lengths()),
    )


def counted(cell: IntArray, n_cells: int) -> FloatArray:
    """Return the devices in each cell at each step, shape (steps, cells)."""
    return np.stack([np.bincount(now[now >= 0], minlength=n_cells) for now in cell]).astype(
        np.float64
    )


def beginnings(cell: IntArray, side: int) -> BoolArray:
    """Return where tracks begin: a device appears, or jumps farther than to an adjacent cell."""
    here = cell >= 0
    goes_on = np.zeros(cell.shape, np.bool_)
    goes_on[1:] = here[1:] & here[:-1] & _are_adjacent(cell[:-1], cell[1:], side)
    found: BoolArray = here & ~goes_on
    return found


def _are_adjacent(one: IntArray, other: IntArray, side: int) -> BoolArray:
    rows, columns = np.abs(one // side - other // side), np.abs(one % side - other % side)
    found: BoolArray = (rows <= 1) & (columns <= 1)
    return found


class _Tracks:
    """Tracks that move to adjacent cells alone."""

    def __init__(self, cell: IntArray, begins: BoolArray, side: int) -> None:
        self._cell = cell
        self._begins = begins
        self._here = cell >= 0
        self._side = side

    def _goes_on(self) -> BoolArray:
        found: BoolArray = self._here[1:] & ~self._begins[1:]
        return found

    def _codes(self, size: int) -> tuple[IntArray, BoolArray]:
        """Return the number of the sequence of so many cells from each step on; and where one is.

        Of more than two cells, none may follow itself.
        """
        n, n_cells = len(self._cell) - size + 1, self._side**2
        code = np.zeros((n, self._cell.shape[1]), np.int64)
        there = self._here[:n].copy()
        for i in range(size):
            step = slice(i, i + n)
            code = code * n_cells + self._cell[step]
            if i:
                there &= self._here[step] & ~self._begins[step]
                if size > 2:  # as in the paper's program
                    there &= self._cell[step] != self._cell[i - 1 : i - 1 + n]
        return code, there

    def moves(self) -> FloatArray:
        """Return the moves between each two steps, shape (steps - 1, cells * 9)."""
        before, after, side = self._cell[:-1], self._cell[1:], self._side
        rows, columns = after // side - before // side, after % side - before % side
        move = before * 9 + (rows + 1) * 3 + columns + 1
        goes_on = self._goes_on()
        return np.stack(
            [
                np.bincount(now[on], minlength=side * side * 9)
                for now, on in zip(move, goes_on, strict=True)
            ]
        ).astype(np.float64)

    def patterns(self, starts: IntArray, span: int) -> list[set[tuple[int, int]]]:
        """Return the most frequent sequences of cells in each range, as size and number."""
        found = []
        of_size = {size: self._codes(size) for size in range(2, min(_LONGEST_PATTERN, span) + 1)}
        for start in starts.tolist():
            parts = []
            for size, (code, there) in of_size.items():
                rows = slice(start, start + span - size + 1)
                each, n = np.unique(code[rows][there[rows]], return_counts=True)
                parts.append(np.stack([np.full(len(each), size), each, n]))
            sizes, codes, counts = np.concatenate(parts, axis=1)
            top = np.argsort(-counts, kind="stable")[:_N_PATTERNS]
            found.append(set(zip(sizes[top].tolist(), codes[top].tolist(), strict=True)))
        return found

    def _ends(self) -> BoolArray:
        """Return the last step of each track."""
        ends = self._here.copy()
        ends[:-1] &= ~self._goes_on()
        return ends

    def trips(self) -> FloatArray:
        """Return the tracks by first and last cell, shape (cells * cells,)."""
        n_cells = self._side**2
        # Steps of one device after the other: tracks then begin and end in turn.
        first = self._cell.T[self._begins.T]
        last = self._cell.T[self._ends().T]
        return np.bincount(first * n_cells + last, minlength=n_cells**2).astype(np.float64)

    def lengths(self) -> FloatArray:
        """Return how far each track goes, in cells."""
        rows, columns = np.divmod(self._cell, self._side)
        way = np.zeros(self._cell.shape)
        way[1:] = np.hypot(np.diff(rows, axis=0), np.diff(columns, axis=0))
        way[self._begins | ~self._here] = 0.0
        begins = np.flatnonzero(self._begins.T)
        if not len(begins):
            return np.zeros(0)
        return np.asarray(np.add.reduceat(way.T.ravel(), begins))


def _query_error(stream: Stream, n_at: FloatArray, span: int, rng: np.random.Generator) -> float:
    side, n_steps = stream.side, len(stream.cell)
    edge = side * np.sqrt(_QUERY_AREA)
    present = stream.cell >= 0
    least = _SANITY * present.sum() / n_steps * span
    errors = np.empty(N_QUERIES)
    for i in range(N_QUERIES):
        left, bottom = rng.random(2) * (side - edge)
        start = int(rng.integers(0, n_steps - span + 1))
        rows = slice(start, start + span)
        x, y = stream.x[rows], stream.y[rows]
        inside = (x >= left) & (x <= left + edge) & (y >= bottom) & (y <= bottom + edge)
        answer = float((inside & present[rows]).sum())
        share = np.outer(_overlap(bottom, edge, side), _overlap(left, edge, side)).ravel()
        errors[i] = abs(float((n_at[rows] @ share).sum()) - answer) / max(answer, least)
    return float(errors.mean())


def _overlap(low: float, edge: float, side: int) -> FloatArray:
    """Return the share of each row of cells between two edges."""
    at = np.arange(side)
    inside: FloatArray = np.minimum(at + 1, low + edge) - np.maximum(at, low)
    return np.maximum(inside, 0.0)


def _hotspots(true: FloatArray, n_at: FloatArray, starts: IntArray, span: int) -> float:
    n = min(_N_HOTSPOTS, true.shape[1])
    discount = 1 / np.log2(np.arange(2, n + 2))
    worth = 1 / np.arange(1, n + 1)
    gains = []
    for start in starts.tolist():
        rows = slice(start, start + span)
        best, chosen = (
            np.argsort(-table[rows].sum(axis=0), kind="stable")[:n] for table in (true, n_at)
        )
        value = np.zeros(true.shape[1])
        value[best] = worth
        gains.append(float((value[chosen] * discount).sum() / (worth * discount).sum()))
    return float(np.mean(gains))


def _pattern_f1(real: _Tracks, shown: _Tracks, starts: IntArray, span: int) -> float:
    pairs = zip(real.patterns(starts, span), shown.patterns(starts, span), strict=True)
    return float(np.mean([2 * len(a & b) / max(len(a) + len(b), 1) for a, b in pairs]))


def _length_error(real: FloatArray, shown: FloatArray) -> float:
    longest = max(real.max(initial=0.0), shown.max(initial=0.0), 1.0)
    real_n, shown_n = (
        np.histogram(each, _N_LENGTHS, (0.0, longest))[0].astype(np.float64)[None]
        for each in (real, shown)
    )
    return float(divergence(real_n, shown_n)[0])
