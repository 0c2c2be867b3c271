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

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.algorithms.releases.pieces import PieceRegions
from anonymizer.audit.mathematics.truth import TIME_SLACK_S
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, starts_of

_USUAL_LEVELS = 3.0
"""Pseudonyms that are added to those of each area, of levels as they are everywhere."""


class Lives(NamedTuple):
    """The records of a stretch of steps, by rising step, and the lives that they belong to."""

    first_record_of: IntArray
    """Records of step t: `first_record_of[t]` to `first_record_of[t + 1]`, shape (steps + 1,). Step
    0 is that of the known position."""
    life_of: IntArray
    region_of: IntArray
    """`life_of`, `region_of`: life and region of each record, shape (records,)."""
    size: FloatArray
    first_step_of: IntArray
    last_step_of: IntArray
    """`size`, `first_step_of`, `last_step_of`: number of devices of each life, and its first and
    last step within the stretch, shape (lives,)."""
    regions: PieceRegions
    """What the regions are made of."""

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


def published_lives(
    observed: Observed,
    class_of: IntArray,
    regions: PieceRegions,
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
    """What an adversary may be told beyond the release: an upper bound of what one can infer."""

    level_of: IntArray
    """Level of the pieces as which each pseudonym is published, shape (pseudonyms,)."""
    place: IntArray
    """Node of each record's device when it was published, shape (records,)."""
    piece_of: IntArray
    """Public piece of each node at each level, shape (levels, nodes)."""

    def shares(self, observed: Observed) -> FloatArray:
        """Return how likely each level is for a device at each node, shape (levels, nodes).

        Counted over the pseudonyms of a release in each of the largest pieces, and, as if by a few
        more, in all of them.
        """
        n_levels, area_of = len(self.piece_of), self.piece_of[-1]
        n_areas = int(area_of.max()) + 1
        area = area_of[self.place[observed.first_record_of[:-1]]]
        n_in = np.bincount(self.level_of * n_areas + area, minlength=n_levels * n_areas)
        n_in = n_in.reshape(n_levels, n_areas)
        usual = (n_in.sum(axis=1) + 1.0) / (n_in.sum() + n_levels)
        share = (n_in + _USUAL_LEVELS * usual[:, None]) / (n_in.sum(axis=0) + _USUAL_LEVELS)
        by_node: FloatArray = share[:, area_of]
        return by_node


def handed_lives(
    observed: Observed,
    class_of: IntArray,
    handed: Handed,
    *,
    steps_s: FloatArray,
    until: FloatArray,
) -> tuple[Lives, IntArray]:
    """Return lives and their levels for an adversary who is told the pieces of each group.

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
    regions = PieceRegions(
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
    present = np.unique(life_of)
    return _lasting(lives, ends_s[present], steps_s, float(step_s)), present % n_levels


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
    regions = PieceRegions(
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
    regions = PieceRegions(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32))
    return _lives(none, none, none, np.zeros(0), regions, n_steps=n_steps)


def _lives(
    step: IntArray,
    life_of: IntArray,
    region_of: IntArray,
    size: FloatArray,
    regions: PieceRegions,
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
