"""The intersection attack, light enough to run beside the live service on a sample.

The adversary knows where everybody is and follows one pseudonym: who was inside every region it
has published so far? The smaller that set against k, the less the pseudonym hides.
"""

from dataclasses import dataclass

import numpy as np

from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.release import Release


@dataclass(slots=True, eq=False)
class _Watched:
    """One pseudonym, and who can still be behind it."""

    version: int
    k: int
    candidates: BoolArray


class IntersectionWatch:
    """Follows the pseudonyms of a few devices.

    Parameters
    ----------
    slots
        The devices whose pseudonyms are followed, whichever they bear.

    Notes
    -----
    A tick costs O(slots) for each watched pseudonym that publishes. A device that takes a slot
    anew is nobody's candidate any more only once it was outside: that is on the adversary's
    side and makes the figures look better by no more than such devices are many.
    """

    def __init__(self, slots: IntArray) -> None:
        self._slots = frozenset(slots.tolist())
        self._watched: dict[int, _Watched] = {}

    def see(self, release: Release, place_of: Int32Array, *, n_nodes: int) -> None:
        """Take in a release.

        Parameters
        ----------
        release
            As it was published.
        place_of
            Node that each slot counts as being at, negative for nowhere.
        n_nodes
            Of the network.
        """
        group_of = np.repeat(np.arange(release.n_groups), np.diff(release.first_member_of))
        for i in np.flatnonzero(np.isin(release.member, list(self._slots))).tolist():
            g, slot, version = int(group_of[i]), int(release.member[i]), int(release.version[i])
            inside = np.zeros(n_nodes + 1, bool)  # the last stands for nowhere
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
        """Return how many candidates each watched pseudonym has left, and its k."""
        watched = self._watched.values()
        n = np.array([int(w.candidates.sum()) for w in watched], np.int64)
        return n, np.array([w.k for w in watched], np.int64)
