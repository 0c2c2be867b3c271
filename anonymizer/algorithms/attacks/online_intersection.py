"""The intersection attack online: cheap enough to run on a sample within the live service.

The adversary knows where all devices are and follows one pseudonym: which devices were inside
every region published under it so far? The smaller that set compared with k, the less the
pseudonym hides.
"""

from dataclasses import dataclass

import numpy as np

from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.release import Release


@dataclass(slots=True, eq=False)
class _Watched:
    """A followed pseudonym, and the devices that it can still belong to."""

    version: int
    k: int
    candidates: BoolArray


class IntersectionWatch:
    """Follows the pseudonyms of a few devices.

    Parameters
    ----------
    slots
        The devices whose pseudonyms are followed.

    Notes
    -----
    A tick costs O(slots) for each followed pseudonym that publishes. A new device in a reused
    slot stays a candidate until it is outside a region, so the figures are too high by at most
    the number of such devices.
    """

    def __init__(self, slots: IntArray) -> None:
        self._slots = frozenset(slots.tolist())
        self._watched: dict[int, _Watched] = {}

    def see(self, release: Release, place_of: Int32Array, *, n_nodes: int) -> None:
        """Process a release.

        Parameters
        ----------
        release
            The release as published.
        place_of
            Node at which each slot is counted, negative for none.
        n_nodes
            Number of nodes in the network.
        """
        group_of = np.repeat(np.arange(release.n_groups), np.diff(release.first_member_of))
        for i in np.flatnonzero(np.isin(release.member, list(self._slots))).tolist():
            g, slot, version = int(group_of[i]), int(release.member[i]), int(release.version[i])
            inside = np.zeros(n_nodes + 1, bool)  # the last entry stands for no node
            inside[release.node[release.first_node_of[g] : release.first_node_of[g + 1]]] = True
            candidates = inside[np.where(place_of < 0, n_nodes, place_of)]
            known = self._watched.get(slot)
            if known is not None and known.version == version:
                before = known.candidates
                candidates[: len(before)] &= before
                candidates[len(before) :] = False
                k = max(known.k, int(release.k[g]))
            else:
                k = int(release.k[g])
            self._watched[slot] = _Watched(version, k, candidates)

    def hidden_among(self) -> tuple[IntArray, IntArray]:
        """Return the number of remaining candidates of each followed pseudonym, and its k."""
        watched = self._watched.values()
        n = np.array([int(w.candidates.sum()) for w in watched], np.int64)
        return n, np.array([w.k for w in watched], np.int64)
