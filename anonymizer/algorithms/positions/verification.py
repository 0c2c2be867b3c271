"""Independent verification of a release before publishing, at one instant and over time.

The code shares nothing with the code that forms groups. `groups_that_hold` recomputes the promise
of each group from the newest position of each device, not from the counts of the density map.
`Transcripts` sees only the releases: it keeps a running hash for every pseudonym of all that was
published under it, with the times and the number of other members.
"""

from typing import Any

import numpy as np

from anonymizer.algorithms.kernels import inlined_kernel, kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.release import Release


def groups_that_hold(
    release: Release, node_of: Int32Array, *, n_nodes: int, k_floor: int
) -> BoolArray:
    """Return which groups keep the promise: at least k distinct devices in every region.

    `node_of`: newest node of each device slot, negative off the graph. The result has the shape
    (groups,). A group keeps the promise if its k is not below `k_floor`, its region consists of
    distinct nodes of the network with at least k devices, and its members are distinct, in no other
    group, and inside the region.

    Notes
    -----
    O(devices + nodes + region nodes + members).
    """
    devices_at = np.bincount(node_of[node_of >= 0], minlength=n_nodes)
    return _holds(
        release.k,
        release.first_node_of,
        release.node,
        release.first_member_of,
        release.member,
        node_of,
        devices_at,
        k_floor,
    )


@kernel
def _holds(
    k: Int32Array,
    first_node_of: IntArray,
    node: Int32Array,
    first_member_of: IntArray,
    member: Int32Array,
    node_of: Int32Array,
    devices_at: IntArray,
    k_floor: int,
) -> BoolArray:
    n_groups = len(k)
    holds = np.zeros(n_groups, np.bool_)
    region_at = np.full(len(devices_at), -1, np.int64)
    group_of = np.full(len(node_of), -1, np.int64)
    for g in range(n_groups):
        good = k[g] >= k_floor and first_member_of[g] < first_member_of[g + 1]
        n_devices = 0
        for v in node[first_node_of[g] : first_node_of[g + 1]]:
            if v < 0 or v >= len(devices_at) or region_at[v] == g:
                good = False
            else:
                region_at[v] = g
                n_devices += devices_at[v]
        for s in member[first_member_of[g] : first_member_of[g + 1]]:
            if s < 0 or s >= len(node_of):
                good = False
            elif group_of[s] >= 0:
                holds[group_of[s]] = False
                good = False
            else:
                group_of[s] = g
                good = good and node_of[s] >= 0 and region_at[node_of[s]] == g
        holds[g] = good and n_devices >= k[g]
    return holds


def groups_of_vehicles(
    release: Release, since_of: FloatArray, last_of: FloatArray, *, slack_s: float
) -> BoolArray:
    """Return which groups count no vehicle twice by two of its ids, shape (groups,).

    `since_of`, `last_of`: unix seconds of the first and the last report of each slot, shape
    (slots,); -inf for the first if its id does not change. A vehicle's next id begins at most
    `slack_s` before the last report of the one before.

    Notes
    -----
    A group holds if all members whose ids change were first heard before any of them was heard
    last: then all were on the air at one instant, and a vehicle has one id at a time. Once this is
    true of a group it stays true.
    """
    group_of = np.repeat(np.arange(release.n_groups), np.diff(release.first_member_of))
    changes = since_of[release.member] > -np.inf
    member, group_of = release.member[changes], group_of[changes]
    begun, ended = np.full(release.n_groups, -np.inf), np.full(release.n_groups, np.inf)
    np.maximum.at(begun, group_of, since_of[member])
    np.minimum.at(ended, group_of, last_of[member])
    holds: BoolArray = begun + slack_s < ended
    return holds


_NEVER = -1
_STATE = ("_version_of", "_hash_of", "_n_sharing")


class Transcripts:
    """Transcripts of what has been published under each pseudonym, as running hashes."""

    def __init__(self) -> None:
        self._version_of = np.full(0, _NEVER, np.int64)
        self._hash_of = np.zeros(0, np.uint64)
        self._n_sharing = np.zeros(0, np.int64)

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name in _STATE:
            setattr(self, name, state[name])

    def unbroken(self, release: Release, *, now: float, n_slots: int) -> BoolArray:
        """Record a release; return which groups keep the promise over time, shape (groups,).

        A group keeps the promise if it has at least k pseudonyms, all of them born at the same
        tick, all with the same publications ever since, and exactly as many as at birth.

        Notes
        -----
        O(region nodes + members). The hashes have 64 bits: two different transcripts are taken
        for equal with a probability of 2^-64 a comparison.
        """
        more = n_slots - len(self._version_of)
        if more > 0:
            self._version_of = np.concatenate([self._version_of, np.full(more, _NEVER)])
            self._hash_of = np.concatenate([self._hash_of, np.zeros(more, np.uint64)])
            self._n_sharing = np.concatenate([self._n_sharing, np.zeros(more, np.int64)])
        with np.errstate(over="ignore"):  # hashes wrap around; without numba numpy would warn
            return _unbroken(
                release.k,
                release.first_node_of,
                release.node,
                release.first_member_of,
                release.member,
                release.version,
                self._version_of,
                self._hash_of,
                self._n_sharing,
                np.float64(now).view(np.uint64),
            )


@inlined_kernel
def _mix(h: np.uint64, value: np.uint64) -> np.uint64:
    """Return a hash of a hash and a value (the finalizer of splitmix64)."""
    h = np.uint64((h ^ value) + np.uint64(0x9E3779B97F4A7C15))
    h = np.uint64((h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    h = np.uint64((h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB))
    return np.uint64(h ^ (h >> np.uint64(31)))


@kernel
def _unbroken(
    k: Int32Array,
    first_node_of: IntArray,
    node: Int32Array,
    first_member_of: IntArray,
    member: Int32Array,
    version: IntArray,
    version_of: IntArray,
    hash_of: "np.ndarray[tuple[int], np.dtype[np.uint64]]",
    n_sharing: IntArray,
    now: np.uint64,
) -> BoolArray:
    good = np.zeros(len(k), np.bool_)
    for g in range(len(k)):
        start, end = first_member_of[g], first_member_of[g + 1]
        if start == end:
            continue
        n = end - start
        published = _mix(now, np.uint64(n))
        for v in node[first_node_of[g] : first_node_of[g + 1]]:
            published = _mix(published, np.uint64(v))
        first = member[start]
        born = version_of[first] != version[start]
        before = np.uint64(0) if born else hash_of[first]
        # Equal hashes mean as many members: it suffices to look at the first.
        alike = n >= k[g] and (born or n_sharing[first] == n)
        for i in range(start, end):
            s = member[i]
            alike = alike and version[i] == version[start]
            alike = alike and (version_of[s] != version[i]) == born
            alike = alike and (born or hash_of[s] == before)
        good[g] = alike
        after = _mix(before, published)
        for i in range(start, end):
            s = member[i]
            if born or not alike:
                version_of[s] = version[i]
                n_sharing[s] = n
            # A broken group is not published: its transcripts must never match any others again.
            hash_of[s] = after if alike else _mix(_mix(hash_of[s], published), np.uint64(i))
    return good
