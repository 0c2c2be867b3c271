"""Pieces: how an observer who knows the algorithm reads a region.

A region is a set of pieces of the network, each of which holds a device; which pieces there may be
is public. The nodes that join the pieces hold nobody.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.releases.observed import Observed
from anonymizer.domain.arrays import Int32Array, IntArray

_EXPLAINS = 0.9
"""Pieces of one level are believed if they explain so much of what pieces of several levels do."""


class PieceRegions(NamedTuple):
    """The pieces of each region, and the nodes of each piece, in compressed sparse rows."""

    first_piece_of: IntArray
    """Pieces of region r: `first_piece_of[r]` to `first_piece_of[r + 1]`, exclusive and never
    empty, shape (regions + 1,)."""
    first_node_of: IntArray
    node: Int32Array
    """`first_node_of`, `node`: nodes of piece p: `node[first_node_of[p]:first_node_of[p + 1]]`,
    never empty."""


def read_regions(observed: Observed, piece_of: IntArray | None = None) -> PieceRegions:
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
    return _regions(region, label, observed.node[inside][order], n_regions)


def read_pieces(observed: Observed, class_of: IntArray, piece_of: IntArray | None) -> PieceRegions:
    """Return the published regions as sets of pieces, as whoever knows the algorithm reads them.

    The pieces of a region may be of several levels, and it has no more of them than devices: the
    pseudonyms of the largest class that publishes it, where they are published in groups that can
    be followed, else those that publish it at one tick, or its k if that is more.

    Parameters
    ----------
    class_of
        Class of each pseudonym, from `indistinguishable_classes`.
    piece_of
        As in `read_regions`.
    """
    if piece_of is None or piece_of.ndim == 1:
        return read_regions(observed, piece_of)
    n_members = np.zeros(observed.n_regions, np.int64)
    if in_groups(observed, class_of):
        np.maximum.at(n_members, observed.region_of, _n_alike(observed, class_of))
    else:
        together, n = np.unique(
            observed.tick_of * observed.n_regions + observed.region_of, return_counts=True
        )
        np.maximum.at(n_members, together % observed.n_regions, n)
        np.maximum.at(n_members, observed.region_of, observed.k)
    return read_mixed_regions(observed, piece_of, n_members)


def in_groups(observed: Observed, class_of: IntArray) -> bool:
    """Return whether pseudonyms are published in groups, which can be followed."""
    return bool((_n_alike(observed, class_of) >= observed.k).mean() > 0.5)


def _n_alike(observed: Observed, class_of: IntArray) -> IntArray:
    """Return how many pseudonyms are in the class of each record's."""
    n_alike: IntArray = np.bincount(class_of)[class_of][observed.pseudonym_of]
    return n_alike


def read_mixed_regions(observed: Observed, piece_of: IntArray, n_members: IntArray) -> PieceRegions:
    """Return the published regions as sets of pieces that may be of different levels.

    Parameters
    ----------
    piece_of
        As in `read_regions`, shape (levels, nodes), the smallest pieces first.
    n_members
        Number of devices that publish each region: it has no more pieces, shape (regions,).

    Notes
    -----
    A region is read as by `read_regions` if that leaves little of it unexplained. If not, whole
    pieces are taken from large to small, each of which explains more than half of its nodes: a
    large piece contains small ones, and seldom happens to be filled by others. What a piece larger
    than it covers is not seen, nor which piece is whose. O(levels * nodes of the regions).
    """
    one, n_regions = read_regions(observed, piece_of), observed.n_regions
    label = large_to_small(
        observed.first_node_of, observed.node, np.ascontiguousarray(piece_of, np.int64), n_members
    )
    region = np.repeat(np.arange(n_regions), observed.region_size)
    n_explained = np.bincount(region, label >= 0, n_regions)
    n_pieces_of_one = np.diff(one.first_piece_of)
    piece_of_row = np.repeat(np.arange(len(one.first_node_of) - 1), np.diff(one.first_node_of))
    region_of_row = np.repeat(np.arange(n_regions), n_pieces_of_one)[piece_of_row]
    too_little = np.bincount(region_of_row, minlength=n_regions) < _EXPLAINS * n_explained
    mixed = (n_explained > 0) & (too_little | (n_pieces_of_one > n_members))
    here, there = mixed[region] & (label >= 0), ~mixed[region_of_row]
    region = np.concatenate([region[here], region_of_row[there]])
    piece = np.concatenate([label[here], piece_of_row[there]])
    node = np.concatenate([observed.node[here], one.node[there]])
    order = np.lexsort((piece, region))
    return _regions(region[order], piece[order], node[order], n_regions)


def _regions(region: IntArray, piece: IntArray, node: Int32Array, n_regions: int) -> PieceRegions:
    """Return regions from their nodes, by rising region and piece."""
    new = (np.diff(piece, prepend=-1) != 0) | (np.diff(region, prepend=-1) != 0)
    first = np.flatnonzero(new)
    return PieceRegions(
        np.searchsorted(region[first], np.arange(n_regions + 1)),
        np.append(first, len(node)).astype(np.int64),
        node,
    )


@kernel
def large_to_small(
    first_node_of: IntArray, node: Int32Array, piece_of: IntArray, n_members: IntArray
) -> IntArray:
    """Return the number of the piece that explains each node of each region, negative for none.

    Parameters
    ----------
    first_node_of, node
        Nodes of the regions in compressed sparse rows.
    piece_of, n_members
        As in `read_mixed_regions`.
    """
    n_levels, n_nodes = piece_of.shape
    size = np.zeros((n_levels, n_nodes), np.int64)
    for level in range(n_levels):
        for p in piece_of[level]:
            if p >= 0:
                size[level, p] += 1
    # By piece: its nodes in the region, those of them without a number, and its own number.
    held, fresh = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    number = np.full(n_nodes, -1, np.int64)
    label = np.full(len(node), -1, np.int64)
    for r in range(len(n_members)):
        n, rows = 0, slice(first_node_of[r], first_node_of[r + 1])
        for level in range(n_levels - 1, -1, -1):
            piece = piece_of[level][node[rows]]
            n = _take_whole(piece, size[level], n, n_members[r], label[rows], held, fresh, number)
    return label


@inner_kernel
def _take_whole(
    piece: IntArray,
    size: IntArray,
    n: int,
    most: int,
    label: IntArray,
    held: IntArray,
    fresh: IntArray,
    number: IntArray,
) -> int:
    """Give numbers to the pieces of a level that explain a region; return how many have one."""
    for i, p in enumerate(piece):
        if p >= 0:
            held[p] += 1
            fresh[p] += label[i] < 0
    for p in piece:
        if p >= 0 and number[p] < 0 and n < most and held[p] == size[p] and 2 * fresh[p] > size[p]:
            number[p] = n
            n += 1
    for i, p in enumerate(piece):
        if p >= 0 and label[i] < 0:
            label[i] = number[p]
    for p in piece:
        if p >= 0:
            held[p] = fresh[p] = 0
            number[p] = -1
    return n


def pieces_held(
    observed: Observed, regions: PieceRegions, place: Int32Array, *, ticks: IntArray
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
