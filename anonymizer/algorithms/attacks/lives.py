"""Lives: what a tracking adversary reads in a release.

A life is a number of devices that publish the same regions; which devices these are is unknown. A
region is a set of pieces, each of which holds at least one of them. Adversaries differ only in what
they take for a life and for a piece:

- pseudonyms are followed, and those of identical regions are one life; or they are not, and every
  region of every step is a life of its own;
- a region is one piece; or, where it is made of public pieces of the network, each of these is one
  and the nodes that join them hold nobody;
- raw positions without names are lives of one step whose regions are the cells of a grid.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.attacks.observed import Observed
from anonymizer.algorithms.attacks.truth import TIME_SLACK_S
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.release import starts_of


class Regions(NamedTuple):
    """The pieces of each region, and the nodes of each piece, in compressed sparse rows.

    Attributes
    ----------
    first_piece_of
        Pieces of region r: `first_piece_of[r]` to `first_piece_of[r + 1]`, exclusive and never
        empty, shape (regions + 1,).
    first_node_of, node
        Nodes of piece p: `node[first_node_of[p]:first_node_of[p + 1]]`, never empty.
    """

    first_piece_of: IntArray
    first_node_of: IntArray
    node: Int32Array


class Lives(NamedTuple):
    """The records of a stretch of steps, by rising step, and the lives that they belong to.

    Attributes
    ----------
    first_record_of
        Records of step t: `first_record_of[t]` to `first_record_of[t + 1]`, shape (steps + 1,).
        Step 0 is that of the known position.
    life_of, region_of
        Life and region of each record, shape (records,).
    size, first_step_of, last_step_of
        Number of devices of each life, and its first and last step within the stretch, shape
        (lives,).
    regions
        What the regions are made of.
    """

    first_record_of: IntArray
    life_of: IntArray
    region_of: IntArray
    size: FloatArray
    first_step_of: IntArray
    last_step_of: IntArray
    regions: Regions

    @property
    def n_steps(self) -> int:
        """Number of steps in the stretch."""
        return len(self.first_record_of) - 1

    @property
    def n_alive(self) -> FloatArray:
        """Number of devices in lives at each step, shape (steps,)."""
        begun = np.bincount(self.first_step_of, self.size, self.n_steps + 1)
        ended = np.bincount(self.last_step_of + 1, self.size, self.n_steps + 1)
        alive: FloatArray = np.cumsum(begun - ended)[:-1].astype(np.float64)
        return alive


def read_regions(observed: Observed, piece_of: IntArray | None = None) -> Regions:
    """Return the published regions as sets of pieces.

    Parameters
    ----------
    piece_of
        Public piece of each node, negative if it is in none, shape (nodes,), or (levels, nodes) if
        there are pieces of several sizes. A region is made of pieces of one level: of that whose
        whole pieces have most of its nodes, the last one among equals. Its other nodes hold
        nobody, because an observer who knows how regions are made knows that they join the pieces.
        A region that contains no piece whole is one piece. None: all regions are.
    """
    n_regions, sizes = observed.n_regions, observed.region_size
    region = np.repeat(np.arange(n_regions), sizes)
    # Every region is one piece, unless more of its nodes than none are in whole ones of a level.
    label, inside, n_inside = region, np.ones(len(region), bool), np.zeros(n_regions, np.int64)
    for at in () if piece_of is None else np.atleast_2d(piece_of):
        # What is in no piece is a last piece, which is never whole.
        n_pieces = int(at.max(initial=-1)) + 1
        n_nodes_in = np.append(np.bincount(at[at >= 0], minlength=n_pieces), len(at) + 1)
        piece = np.where(at < 0, n_pieces, at)[observed.node]
        pair, pair_of, n_covered = np.unique(
            region * (n_pieces + 1) + piece, return_inverse=True, return_counts=True
        )
        whole = (n_covered == n_nodes_in[pair % (n_pieces + 1)])[pair_of]
        n_whole = np.bincount(region, whole, n_regions).astype(np.int64)
        better = (n_whole > 0) & (n_whole >= n_inside)
        label = np.where(better[region], pair_of, label)
        inside = np.where(better[region], whole, inside)
        n_inside = np.where(better, n_whole, n_inside)
    order = np.lexsort((label[inside], region[inside]))
    label, region = label[inside][order], region[inside][order]
    first = np.flatnonzero((np.diff(label, prepend=-1) != 0) | (np.diff(region, prepend=-1) != 0))
    return Regions(
        np.searchsorted(region[first], np.arange(n_regions + 1)),
        np.append(first, len(label)).astype(np.int64),
        observed.node[inside][order],
    )


def published_lives(
    observed: Observed,
    class_of: IntArray,
    regions: Regions,
    *,
    steps_s: FloatArray,
    follow: bool,
    until: FloatArray | None = None,
) -> Lives:
    """Return the lives in a release.

    Parameters
    ----------
    class_of
        Class of each pseudonym, from `indistinguishable_classes`.
    regions
        From `read_regions`.
    steps_s
        Unix seconds of the steps, equally spaced. A step has what was published since the one
        before it; of several regions of a pseudonym, the newest.
    follow
        Whether pseudonyms are followed.
    until
        Unix seconds until which each record holds, shape (records,): a life that is followed lasts
        as long as its last record, and lives do not share a step. None: it ends with its last
        record, or a step earlier if another life begins then.
    """
    _, chosen = np.unique(class_of, return_index=True)
    some, n_devices = observed.of_pseudonyms(chosen), np.bincount(class_of)
    step_s = steps_s[1] - steps_s[0] if len(steps_s) > 1 else 1.0
    number = np.ceil((some.time - steps_s[0] - TIME_SLACK_S) / step_s).astype(np.int64)
    step, pseudonym = number[some.tick_of], some.pseudonym_of
    # Records are sorted by pseudonym and time: the newest of a step is the last one in a row.
    last = np.diff(pseudonym, append=-1) != 0
    newest = last | (np.diff(step, append=-1) != 0)
    if follow and until is None:
        # Who ends a life may begin the next one in the same step: it then ends a step earlier.
        begun = np.isin(step, step[np.diff(pseudonym, prepend=-1) != 0])
        is_first = np.diff(pseudonym[newest], prepend=-1) != 0
        newest &= ~(last & begun) | is_first[np.cumsum(newest) - 1]
    rows = np.flatnonzero(newest & (step >= 0) & (step < len(steps_s)))
    life_of, region_of = pseudonym[rows], some.region_of[rows]
    step, size = step[rows], n_devices.astype(np.float64)
    if not follow:
        pair, pair_of = np.unique(step * observed.n_regions + region_of, return_inverse=True)
        step, region_of = np.divmod(pair, observed.n_regions)
        size = np.bincount(pair_of, size[life_of], len(pair)).astype(np.float64)
        life_of = np.arange(len(pair))
    lives = _lives(step, life_of, region_of, size, regions, n_steps=len(steps_s))
    if until is None or not follow:
        return lives
    ends_s = np.maximum.reduceat(until, observed.first_record_of[:-1])[chosen]
    return _lasting(lives, ends_s[np.unique(life_of)], steps_s, float(step_s))


class Handed(NamedTuple):
    """What an adversary may be told beyond the release: an upper bound of what one can infer.

    Attributes
    ----------
    level_of
        Level of the pieces as which each pseudonym is published, shape (pseudonyms,).
    place
        Node of each record's device when it was published, shape (records,).
    piece_of
        Public piece of each node at each level, shape (levels, nodes).
    """

    level_of: IntArray
    place: IntArray
    piece_of: IntArray


def handed_lives(
    observed: Observed,
    class_of: IntArray,
    handed: Handed,
    *,
    steps_s: FloatArray,
    until: FloatArray,
) -> Lives:
    """Return lives for an adversary who is told the pieces of each group, and their levels.

    The members of a group whose pieces are of one level are a life. Which of them is in which piece
    is not told. The parameters are those of `published_lives`.
    """
    n_levels, n_nodes = handed.piece_of.shape
    n_pieces = int(handed.piece_of.max()) + 1
    level_of = handed.level_of[observed.pseudonym_of]
    life = class_of[observed.pseudonym_of] * n_levels + level_of
    step_s = steps_s[1] - steps_s[0] if len(steps_s) > 1 else 1.0
    step = np.ceil((observed.time - steps_s[0] - TIME_SLACK_S) / step_s).astype(np.int64)
    step = step[observed.tick_of]
    rows = np.flatnonzero((step >= 0) & (step < len(steps_s)))
    # Of several regions of a life in one step, the newest.
    newest = np.zeros((len(steps_s), int(life.max(initial=0)) + 1), np.int64)
    np.maximum.at(newest, (step[rows], life[rows]), observed.tick_of[rows])
    rows = rows[newest[step[rows], life[rows]] == observed.tick_of[rows]]
    piece = level_of[rows] * n_pieces + handed.piece_of[level_of[rows], handed.place[rows]]
    key = step[rows] * newest.shape[1] + life[rows]
    record, record_of = np.unique(key, return_inverse=True)
    pair = np.unique(record_of * (n_levels * n_pieces) + piece)
    record_of, piece = np.divmod(pair, n_levels * n_pieces)
    by_piece = np.argsort(
        (handed.piece_of + n_pieces * np.arange(n_levels)[:, None]).ravel(), kind="stable"
    )
    all_pieces = (handed.piece_of + n_pieces * np.arange(n_levels)[:, None]).ravel()[by_piece]
    first, end = np.searchsorted(all_pieces, piece), np.searchsorted(all_pieces, piece, "right")
    sizes = end - first
    at = np.arange(sizes.sum()) + np.repeat(first - starts_of(sizes)[:-1], sizes)
    regions = Regions(
        np.searchsorted(record_of, np.arange(len(record) + 1)),
        starts_of(sizes),
        (by_piece[at] % n_nodes).astype(np.int32),
    )
    record_step, life_of = np.divmod(record, newest.shape[1])
    pseudonym_life = class_of * n_levels + handed.level_of
    size = np.bincount(pseudonym_life, minlength=newest.shape[1]).astype(np.float64)
    lives = _lives(
        record_step, life_of, np.arange(len(record)), size, regions, n_steps=len(steps_s)
    )
    ends_s = np.full(newest.shape[1], -np.inf)
    last_until = np.maximum.reduceat(until, observed.first_record_of[:-1])
    np.maximum.at(ends_s, pseudonym_life, last_until)
    return _lasting(lives, ends_s[np.unique(life_of)], steps_s, step_s)


def _lasting(lives: Lives, ends_s: FloatArray, steps_s: FloatArray, step_s: float) -> Lives:
    """Return lives that last until their regions hold no longer, unix seconds, shape (lives,)."""
    lasts = np.minimum((ends_s - steps_s[0] - TIME_SLACK_S) / step_s, len(steps_s))
    last_step_of = np.maximum(np.ceil(lasts).astype(np.int64) - 1, lives.last_step_of)
    return lives._replace(last_step_of=np.minimum(last_step_of, len(steps_s) - 1))


def rounded_lives(place: Int32Array, cell_of: IntArray) -> Lives:
    """Return the lives of raw positions without names, rounded to cells.

    Parameters
    ----------
    place
        Node of each device at each step, negative if absent, shape (steps, devices).
    cell_of
        Cell of each node, 0 to n - 1, none empty, shape (nodes,).
    """
    step, device = np.nonzero(place >= 0)
    n_cells = int(cell_of.max()) + 1
    pair, size = np.unique(step * n_cells + cell_of[place[step, device]], return_counts=True)
    regions = Regions(
        np.arange(n_cells + 1),
        starts_of(np.bincount(cell_of)),
        np.argsort(cell_of, kind="stable").astype(np.int32),
    )
    step, cell = np.divmod(pair, n_cells)
    life_of = np.arange(len(pair))
    return _lives(step, life_of, cell, size.astype(np.float64), regions, n_steps=len(place))


def no_lives(n_steps: int) -> Lives:
    """Return an empty release: the adversary has the motion model alone."""
    none = np.zeros(0, np.int64)
    regions = Regions(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32))
    return _lives(none, none, none, np.zeros(0), regions, n_steps=n_steps)


def pieces_held(
    observed: Observed, regions: Regions, place: Int32Array, *, ticks: IntArray
) -> tuple[int, int]:
    """Count the pieces of the regions published at some ticks, and those that hold a device.

    Parameters
    ----------
    place
        Node of each device at each tick, negative if absent, shape (ticks, devices).
    ticks
        The ticks to count at. A piece in several regions counts in each of them.
    """
    n_nodes = int(max(observed.node.max(), place.max())) + 1
    n_covered, n_held = 0, 0
    for t in ticks.tolist():
        held = np.zeros(n_nodes, bool)
        held[place[t][place[t] >= 0]] = True
        for r in np.unique(observed.region_of[observed.tick_of == t]).tolist():
            first = regions.first_node_of[regions.first_piece_of[r] : regions.first_piece_of[r + 1]]
            end = regions.first_node_of[regions.first_piece_of[r + 1]]
            n_held += int(
                np.logical_or.reduceat(held[regions.node[first[0] : end]], first - first[0]).sum()
            )
            n_covered += len(first)
    return n_covered, n_held


def _lives(
    step: IntArray,
    life_of: IntArray,
    region_of: IntArray,
    size: FloatArray,
    regions: Regions,
    *,
    n_steps: int,
) -> Lives:
    order = np.argsort(step, kind="stable")
    present, life_of = np.unique(life_of, return_inverse=True)
    first = np.full(len(present), n_steps, np.int64)
    last = np.full(len(present), -1, np.int64)
    np.minimum.at(first, life_of, step)
    np.maximum.at(last, life_of, step)
    return Lives(
        starts_of(np.bincount(step, minlength=n_steps)),
        life_of[order].astype(np.int64),
        region_of[order].astype(np.int64),
        size[present],
        first,
        last,
        regions,
    )
