"""The intersection attack: which devices were inside every region of a pseudonym so far.

The adversary knows where all devices are. There are two variants. The bold one assumes that a
device is on the air whenever its pseudonym publishes, so a candidate was present and inside every
time. The careful one does not, and keeps a device as a candidate until it is seen outside.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.truth import Truth
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray

Bits: TypeAlias = NDArray[np.uint64]

NEVER = -1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intersection:
    """The candidates that remain after each pseudonym's whole life."""

    below_k_at: IntArray
    """First tick at which fewer candidates remained than the largest k stated so far, or `NEVER`,
    shape (pseudonyms,)."""
    alone_at: IntArray
    """First tick at which at most one candidate remained, or `NEVER`, shape (pseudonyms,)."""
    candidates: Bits
    """Sets of devices that were inside to the end: bit d % 64 of word d // 64 is device d, shape
    (pseudonyms, words)."""


def intersect(
    observed: Observed, truth: Truth, *, n_nodes: int, assume_on_air: bool
) -> Intersection:
    """Intersect the sets of devices inside the regions of each pseudonym.

    Parameters
    ----------
    observed
        The release. Pseudonyms with equal lives have equal results, so one of each is enough.
    truth
        Where all devices were. A ghost is at its last known node.
    assume_on_air
        Whether a device that is not on the air is ruled out; otherwise it stays a candidate.

    Notes
    -----
    O(records * devices / 64 + ticks * devices); the sets take devices / 8 bytes a pseudonym.
    """
    order = np.argsort(observed.tick_of, kind="stable")
    return Intersection(
        *_intersect(
            observed.tick_of[order],
            observed.pseudonym_of[order],
            observed.region_of[order],
            observed.k[order],
            observed.n_pseudonyms,
            observed.first_node_of,
            observed.node,
            truth.place,
            truth.on_air,
            assume_on_air,
            n_nodes,
        )
    )


def members(candidates: Bits, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """Return the chosen sets as pairs of index into `chosen` (rising) and device."""
    octets = candidates[chosen].astype("<u8").view(np.uint8)
    row, device = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    return row, device


@kernel
def _intersect(
    tick: IntArray,
    pseudonym: IntArray,
    region: IntArray,
    k: IntArray,
    n_pseudonyms: int,
    first_node_of: IntArray,
    node: Int32Array,
    place: Int32Array,
    on_air: BoolArray,
    assume_on_air: bool,  # noqa: FBT001  a kernel takes no keywords
    n_nodes: int,
) -> tuple[IntArray, IntArray, Bits]:
    n_devices = place.shape[1]
    n_words = (n_devices + 63) // 64
    below_k_at = np.full(n_pseudonyms, NEVER, np.int64)
    alone_at = np.full(n_pseudonyms, NEVER, np.int64)
    candidates = np.full((n_pseudonyms, n_words), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64)
    largest_k = np.zeros(n_pseudonyms, np.int64)
    first_device_at = np.full(n_nodes, -1, np.int32)  # devices at a node: a linked list
    next_device = np.full(n_devices, -1, np.int32)
    off_air = np.zeros(n_words, np.uint64)  # devices that the careful adversary cannot rule out
    possible = np.zeros(n_words, np.uint64)
    now = -1
    for i in range(len(tick)):
        if tick[i] != now:
            now = tick[i]
            _list_devices(place[now], first_device_at, next_device)
            off_air[:] = 0
            if not assume_on_air:
                _add_all(off_air, ~on_air[now])
        p = pseudonym[i]
        possible[:] = off_air
        for v in node[first_node_of[region[i]] : first_node_of[region[i] + 1]]:
            d = first_device_at[v]
            while d >= 0:
                _add(possible, d)
                d = next_device[d]
        n_left = 0
        for w in range(n_words):
            candidates[p, w] &= possible[w]
            n_left += _n_bits(candidates[p, w])
        largest_k[p] = max(largest_k[p], k[i])
        if n_left < largest_k[p] and below_k_at[p] == NEVER:
            below_k_at[p] = now
        if n_left <= 1 and alone_at[p] == NEVER:
            alone_at[p] = now
    return below_k_at, alone_at, candidates


@kernel
def _list_devices(place: Int32Array, first_device_at: Int32Array, next_device: Int32Array) -> None:
    first_device_at[:] = -1
    for d in range(len(place)):
        if place[d] >= 0:
            next_device[d] = first_device_at[place[d]]
            first_device_at[place[d]] = d


@kernel
def _add_all(bits: Bits, chosen: BoolArray) -> None:
    for d in range(len(chosen)):
        if chosen[d]:
            _add(bits, d)


@kernel
def _add(bits: Bits, d: int) -> None:
    bits[d // 64] |= np.uint64(1) << np.uint64(d % 64)


@kernel
def _n_bits(word: np.uint64) -> int:
    """Count the set bits: sum pairs, groups of four and bytes, then the bytes."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    x += x >> np.uint64(8)
    x += x >> np.uint64(16)
    x += x >> np.uint64(32)
    return int(x & np.uint64(0x7F))
