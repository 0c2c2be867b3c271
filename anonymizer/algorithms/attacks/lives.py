"""Lives: how a tracking adversary reads a release.

A life is a number of devices that publish the same regions from its first record to its last one;
which device of the crowd begins it is unknown. Adversaries differ only in the lives that they
distinguish:

- without following pseudonyms, every region of every tick is a life of its own, or every atom that
  a region contains whole;
- with it, pseudonyms of identical regions are one life, and who ends one may begin the next one;
- raw positions without names are lives of one tick whose regions are the cells of a grid.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.attacks.indistinguishability import instants_of
from anonymizer.algorithms.attacks.observed import Observed
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.release import starts_of

CROWD = -1


class Lives(NamedTuple):
    """The records of a stretch of ticks, by rising tick, and the lives that they belong to.

    Attributes
    ----------
    first_record_of
        Records of tick t: `first_record_of[t]` to `first_record_of[t + 1]`, shape (ticks + 1,).
        Tick 0 is that of the known position.
    life_of, region_of
        Life and region of each record, shape (records,).
    first_tick_of, last_tick_of
        First and last tick of each life within the stretch, shape (lives,).
    size
        Number of devices of each life, shape (lives,).
    first_node_of, node
        Regions in compressed sparse rows, as in `Observed`.
    odds
        Odds of each entry of `node` to hold a member of its region, relative to the other entries,
        shape of `node`; see `odds_of_whole_atoms`.
    """

    first_record_of: IntArray
    life_of: IntArray
    region_of: IntArray
    first_tick_of: IntArray
    last_tick_of: IntArray
    size: FloatArray
    first_node_of: IntArray
    node: Int32Array
    odds: FloatArray

    @property
    def n_ticks(self) -> int:
        """Number of ticks in the stretch."""
        return len(self.first_record_of) - 1


def unlinked_lives(observed: Observed, *, ticks: slice, odds: FloatArray | None = None) -> Lives:
    """Return the lives for an adversary who does not follow pseudonyms, over a range of ticks.

    `odds` are those of `observed.node`, by default all equal.
    """
    instants = instants_of(observed)
    size = np.bincount(instants.instant_of).astype(np.float64)
    there = _within(instants.tick, ticks)
    return _lives(
        instants.tick[there] - ticks.start,
        np.arange(int(there.sum())),
        instants.region[there],
        size[there],
        n_ticks=ticks.stop - ticks.start,
        first_node_of=observed.first_node_of,
        node=observed.node,
        odds=odds,
    )


def linked_lives(
    observed: Observed, class_of: IntArray, *, ticks: slice, odds: FloatArray | None = None
) -> Lives:
    """Return the lives for an adversary who follows pseudonyms, over a range of ticks.

    `class_of` is that of `indistinguishable_classes`, `odds` as in `unlinked_lives`.
    """
    chosen = np.unique(class_of, return_index=True)[1]
    some = observed.of_pseudonyms(chosen)
    there = _within(some.tick_of, ticks)
    alive, life_of = np.unique(some.pseudonym_of[there], return_inverse=True)
    return _lives(
        some.tick_of[there] - ticks.start,
        life_of,
        some.region_of[there],
        np.bincount(class_of).astype(np.float64)[alive],
        n_ticks=ticks.stop - ticks.start,
        first_node_of=observed.first_node_of,
        node=observed.node,
        odds=odds,
    )


def occupied_atom_lives(
    observed: Observed, atom_of: IntArray, place: Int32Array, *, ticks: slice
) -> Lives:
    """Return the lives for an adversary who reads a release as a map of occupied atoms.

    Each atom that a region contains whole is taken to hold an equal part of its devices, whoever
    they are. As many devices as usual are taken to be elsewhere.

    Parameters
    ----------
    atom_of
        Atom of each node, negative if it is in none, shape (nodes,).
    place
        Node of each device to learn from at each tick of the release, negative if absent, shape
        (ticks, devices): how many are usually in one of these atoms.
    """
    found, instants = _covered_atoms(observed, atom_of), instants_of(observed)
    size = np.bincount(instants.instant_of).astype(np.float64)
    n_atoms = int(atom_of.max()) + 1
    there = np.flatnonzero(_within(instants.tick, ticks))
    whole = np.flatnonzero(found.is_whole)
    first = np.searchsorted(found.region[whole], np.arange(observed.n_regions + 1))
    n_whole = np.diff(first)[instants.region[there]]
    rows = starts_of(n_whole)
    slot = np.arange(rows[-1]) + np.repeat(first[instants.region[there]] - rows[:-1], n_whole)
    key = np.repeat(instants.tick[there], n_whole) * n_atoms + found.atom[whole[slot]]
    occupied, life_of = np.unique(key, return_inverse=True)
    share = np.repeat(size[there] / np.maximum(n_whole, 1), n_whole)
    tick, device = np.nonzero(place[ticks] >= 0)
    atom = atom_of[place[ticks][tick, device]]
    within = (atom >= 0) & np.isin((tick + ticks.start) * n_atoms + atom, occupied)
    usual = (within.sum() + 1) / (len(within) + 2)
    return _lives(
        occupied // n_atoms - ticks.start,
        np.arange(len(occupied)),
        occupied % n_atoms,
        usual * np.bincount(life_of, share, len(occupied)),
        n_ticks=ticks.stop - ticks.start,
        first_node_of=starts_of(np.bincount(atom_of + 1, minlength=n_atoms + 1)[1:]),
        node=np.argsort(atom_of, kind="stable")[(atom_of < 0).sum() :].astype(np.int32),
    )


def rounded_lives(place: Int32Array, cell_of: IntArray) -> Lives:
    """Return the lives of raw positions without names, rounded to cells.

    Parameters
    ----------
    place
        Node of each device at each tick of the stretch, negative if absent, shape
        (ticks, devices).
    cell_of
        Cell of each node, 0 to n - 1, none empty, shape (nodes,).
    """
    tick, device = np.nonzero(place >= 0)
    n_cells = int(cell_of.max()) + 1
    pair, size = np.unique(tick * n_cells + cell_of[place[tick, device]], return_counts=True)
    return _lives(
        pair // n_cells,
        np.arange(len(pair)),
        pair % n_cells,
        size.astype(np.float64),
        n_ticks=len(place),
        first_node_of=starts_of(np.bincount(cell_of)),
        node=np.argsort(cell_of, kind="stable").astype(np.int32),
    )


def no_lives(n_ticks: int) -> Lives:
    """Return an empty release: the adversary has the motion model alone."""
    none = np.zeros(0, np.int64)
    return _lives(
        none,
        none,
        none,
        np.zeros(0),
        n_ticks=n_ticks,
        first_node_of=np.zeros(1, np.int64),
        node=np.zeros(0, np.int32),
    )


def odds_of_whole_atoms(
    observed: Observed, place: Int32Array, atom_of: IntArray, *, ticks: IntArray
) -> FloatArray:
    """Learn how much more often the whole atoms of a region hold a device than its other nodes.

    A region made of atoms contains those of its members whole, and parts of others between them.
    Who knows the atoms, which are public, can tell them apart.

    Parameters
    ----------
    place
        Node of each device to learn from at each tick, negative if absent, shape
        (ticks, devices).
    atom_of
        Atom of each node, negative if it is in none, shape (nodes,).
    ticks
        The ticks to learn from.

    Returns
    -------
    odds
        Mean number of devices at an entry of its kind, shape of `observed.node`.
    """
    found = _covered_atoms(observed, atom_of)
    whole = (atom_of[observed.node] < 0) | found.is_whole[found.pair_of]
    instants = instants_of(observed)
    n_entries, n_devices = np.ones(2), np.ones(2)
    for t in ticks.tolist():
        n_at = np.bincount(place[t][place[t] >= 0], minlength=len(atom_of))
        first, last = np.searchsorted(instants.tick, (t, t + 1))
        for r in instants.region[first:last].tolist():
            entries = slice(observed.first_node_of[r], observed.first_node_of[r + 1])
            n_entries += np.bincount(whole[entries], minlength=2)
            n_devices += np.bincount(whole[entries], n_at[observed.node[entries]], 2)
    odds: FloatArray = (n_devices / n_entries)[whole.astype(np.int64)]
    return odds


def pieces_held(observed: Observed, place: Int32Array, *, ticks: IntArray) -> tuple[int, int]:
    """Count the covered pieces of some ticks, and those of them that hold a device.

    A piece (atom) is a largest set of nodes that every region of the release covers together or
    not at all: the finest resolution at which the release says anything.

    Parameters
    ----------
    place
        Node of each device at each tick, negative if absent, shape (ticks, devices).
    ticks
        The ticks to count in, rising.

    Notes
    -----
    Pieces are found by adding up 64 random bits of each region at its nodes, so two pieces are
    taken for one with a probability of about n^2 / 2^64. O(nodes of the regions + devices *
    ticks).
    """
    n_nodes = int(max(observed.node.max(), place.max())) + 1
    bits = np.random.default_rng(0).integers(2**63, size=observed.n_regions, dtype=np.uint64)
    of_node = np.zeros(n_nodes, np.uint64)
    np.add.at(of_node, observed.node, np.repeat(bits, observed.region_size))
    piece_of = np.unique(of_node, return_inverse=True)[1].astype(np.int64)
    instants = instants_of(observed)
    n_covered, n_held = 0, 0
    for t in ticks.tolist():
        covered = np.zeros(n_nodes, np.bool_)
        first, last = np.searchsorted(instants.tick, (t, t + 1))
        for region in np.unique(instants.region[first:last]).tolist():
            piece = observed.node[
                observed.first_node_of[region] : observed.first_node_of[region + 1]
            ]
            covered[piece_of[piece]] = True
        there = place[t][place[t] >= 0]
        held = np.zeros(n_nodes, np.bool_)
        held[piece_of[there]] = True
        n_covered += int(covered.sum())
        n_held += int((covered & held).sum())
    return n_covered, n_held


class _CoveredAtoms(NamedTuple):
    """Distinct pairs of a region and an atom of which it has nodes, by region.

    `pair_of` is the pair of each entry of `observed.node`; nodes without an atom have a pair with
    atom 0.
    """

    region: IntArray
    atom: IntArray
    is_whole: BoolArray
    pair_of: IntArray


def _covered_atoms(observed: Observed, atom_of: IntArray) -> _CoveredAtoms:
    n_nodes_in = np.bincount(atom_of + 1)[1:]
    atom = atom_of[observed.node]
    region = np.repeat(np.arange(observed.n_regions), observed.region_size)
    pairs, pair_of = np.unique(region * len(n_nodes_in) + np.maximum(atom, 0), return_inverse=True)
    n_covered = np.bincount(pair_of, atom >= 0, len(pairs))
    region, atom = np.divmod(pairs, len(n_nodes_in))
    return _CoveredAtoms(region, atom, n_covered >= n_nodes_in[atom], pair_of)


def _within(tick: IntArray, ticks: slice) -> BoolArray:
    inside: BoolArray = (tick >= ticks.start) & (tick < ticks.stop)
    return inside


def _lives(
    tick: IntArray,
    life_of: IntArray,
    region_of: IntArray,
    size: FloatArray,
    *,
    n_ticks: int,
    first_node_of: IntArray,
    node: Int32Array,
    odds: FloatArray | None = None,
) -> Lives:
    order = np.argsort(tick, kind="stable")
    first = np.full(len(size), n_ticks, np.int64)
    last = np.full(len(size), -1, np.int64)
    np.minimum.at(first, life_of, tick)
    np.maximum.at(last, life_of, tick)
    return Lives(
        starts_of(np.bincount(tick, minlength=n_ticks)),
        life_of[order].astype(np.int64),
        region_of[order].astype(np.int64),
        first,
        last,
        size,
        first_node_of.astype(np.int64),
        node,
        np.ones(len(node)) if odds is None else odds,
    )
