"""The subtraction attack: what is left of a region without the nodes that hardly ever change.

A device that stands still is covered at the same nodes for the whole life of its group. The
adversary knows that the target moves, and subtracts from each region of a pseudonym the nodes
that all its regions contain, or most of them. If the company stands still, the target remains.

Where groups publish only once in their lives, nothing can be subtracted within a pseudonym. Who
keeps the whole release subtracts the nodes that some group covers at all times.
"""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.presence import OUTSIDE, slot_in_region
from anonymizer.audit.mathematics.truth import Truth
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Remainder:
    """What is left of the region of each record, all of shape (records,)."""

    n_nodes: IntArray
    """Nodes that are left; all nodes of the region if no node would be left."""
    n_devices: IntArray
    """Distinct devices at these nodes."""
    holds_device: BoolArray
    """Whether the device of the pseudonym is at one of them."""


def subtract_unchanged(
    observed: Observed,
    truth: Truth,
    *,
    device_of: IntArray,
    n_nodes: int,
    least_share: float = 1.0,
) -> Remainder:
    """Subtract from each region the nodes that the other regions of its pseudonym contain, too.

    Parameters
    ----------
    device_of
        Device of each pseudonym, shape (pseudonyms,).
    least_share
        Share of a pseudonym's regions that contain a node that is subtracted, above 0. 1: all.
        With less, a receiver's noise does not hide that a device stands still, but a target
        that waits somewhere is missed.

    Notes
    -----
    The adversary knows the whole life of a pseudonym, also what follows the record. If nothing
    would be left of a region, nothing is subtracted: the target is somewhere.
    O(records * nodes of a region + devices * ticks).
    """
    first_of, unchanged = _unchanged(
        observed.first_record_of,
        observed.region_of,
        observed.first_node_of,
        observed.node,
        n_nodes,
        least_share,
    )
    return Remainder(
        *_remainders(
            np.argsort(observed.tick_of, kind="stable"),
            observed.tick_of,
            observed.pseudonym_of,
            observed.region_of,
            observed.first_node_of,
            observed.node,
            first_of,
            unchanged,
            device_of,
            truth.place,
            n_nodes,
        )
    )


def covered_throughout(observed: Observed, n_nodes: int, *, every_s: float) -> BoolArray:
    """Return the nodes that some region contains in every stretch of a release, shape (nodes,).

    Parameters
    ----------
    every_s
        Length of a stretch. The first one does not count, because devices have yet to appear, nor
        does the last one if it is not whole. With fewer than two others there is no such node.

    Notes
    -----
    O(records + stretches * nodes of all regions).
    """
    stretch_of = ((observed.time - observed.time[0]) // every_s).astype(np.int64)[observed.tick_of]
    n_whole = int((observed.time[-1] - observed.time[0]) // every_s)
    region_of_entry = np.repeat(np.arange(observed.n_regions), observed.region_size)
    always = np.full(n_nodes, n_whole > 2)
    for stretch in range(1, n_whole):
        published = np.zeros(observed.n_regions, bool)
        published[observed.region_of[stretch_of == stretch]] = True
        covered = np.zeros(n_nodes, bool)
        covered[observed.node[published[region_of_entry]]] = True
        always &= covered
    return always


def subtract_nodes(
    observed: Observed, *, subtracted: BoolArray, true_node: Int32Array
) -> tuple[IntArray, BoolArray]:
    """Subtract the same nodes from the region of each record.

    Parameters
    ----------
    subtracted
        Which nodes, shape (nodes,).
    true_node
        Node of the device of each record, negative if it is absent, shape (records,).

    Returns
    -------
    n_nodes, holds_device
        As in `Remainder`.
    """
    region_of_entry = np.repeat(np.arange(observed.n_regions), observed.region_size)
    n_left_of = np.bincount(
        region_of_entry[~subtracted[observed.node]], minlength=observed.n_regions
    )
    nothing_left = n_left_of == 0
    n_left = np.where(nothing_left, observed.region_size, n_left_of)[observed.region_of]
    inside = slot_in_region(observed, true_node, region=observed.region_of) != OUTSIDE
    holds_device: BoolArray = inside & (
        nothing_left[observed.region_of] | ~subtracted[np.maximum(true_node, 0)]
    )
    return n_left, holds_device


@kernel
def _unchanged(
    first_record_of: IntArray,
    region_of: IntArray,
    first_node_of: IntArray,
    node: Int32Array,
    n_nodes: int,
    least_share: float,
) -> tuple[IntArray, Int32Array]:
    """Return the nodes that so large a share of the regions of each pseudonym contains."""
    n_pseudonyms = len(first_record_of) - 1
    first_of = np.zeros(n_pseudonyms + 1, np.int64)
    unchanged = [np.int32(0) for _ in range(0)]
    n_seen = np.zeros(n_nodes, np.int64)
    for p in range(n_pseudonyms):
        regions = region_of[first_record_of[p] : first_record_of[p + 1]]
        for r in regions:
            for v in node[first_node_of[r] : first_node_of[r + 1]]:
                n_seen[v] += 1
        for r in regions:
            for v in node[first_node_of[r] : first_node_of[r + 1]]:
                if n_seen[v] >= least_share * len(regions):
                    unchanged.append(v)
                n_seen[v] = 0
        first_of[p + 1] = len(unchanged)
    return first_of, np.array(unchanged, np.int32)


@kernel
def _remainders(
    by_tick: IntArray,
    tick_of: IntArray,
    pseudonym_of: IntArray,
    region_of: IntArray,
    first_node_of: IntArray,
    node: Int32Array,
    first_of: IntArray,
    unchanged: Int32Array,
    device_of: IntArray,
    place: Int32Array,
    n_nodes: int,
) -> tuple[IntArray, IntArray, BoolArray]:
    n_left = np.zeros(len(by_tick), np.int64)
    n_devices = np.zeros(len(by_tick), np.int64)
    holds_device = np.zeros(len(by_tick), np.bool_)
    devices_at = np.zeros(n_nodes, np.int64)
    subtracted_for = np.full(n_nodes, -1, np.int64)
    now = -1
    for i in by_tick:
        if tick_of[i] != now:
            now = tick_of[i]
            devices_at[:] = 0
            for v in place[now]:
                if v >= 0:
                    devices_at[v] += 1
        p = pseudonym_of[i]
        region = node[first_node_of[region_of[i]] : first_node_of[region_of[i] + 1]]
        for v in unchanged[first_of[p] : first_of[p + 1]]:
            subtracted_for[v] = i
        nothing_left = True
        for v in region:
            nothing_left &= subtracted_for[v] == i
        true_node = place[now, device_of[p]]
        for v in region:
            if nothing_left or subtracted_for[v] != i:
                n_left[i] += 1
                n_devices[i] += devices_at[v]
                holds_device[i] |= v == true_node
    return n_left, n_devices, holds_device
