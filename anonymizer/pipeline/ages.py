"""How long published pseudonyms have been borne, told from the releases alone."""

import numpy as np

from anonymizer.domain.release import Release


class PseudonymAges:
    """Watches that pseudonyms are renewed, without asking those who renew them.

    Notes
    -----
    A slot that is given to another device under an equal number keeps the older birth: ages are
    never understated. O(members) a tick.
    """

    def __init__(self) -> None:
        self._version_of = np.zeros(0, np.int64)
        self._born_s = np.zeros(0, np.float64)
        self.oldest_s = 0.0
        """Age of the oldest pseudonym in the last release that held any."""

    def see(self, release: Release, *, now: float) -> None:
        """Take in a release at unix seconds `now`."""
        member = release.member
        if not len(member):
            return
        self._make_room(int(member.max()) + 1)
        fresh = (self._version_of[member] != release.version) | np.isnan(self._born_s[member])
        self._born_s[member[fresh]] = now
        self._version_of[member] = release.version
        self.oldest_s = now - float(self._born_s[member].min())

    def _make_room(self, n_slots: int) -> None:
        n_new = max(n_slots, 2 * len(self._born_s)) - len(self._born_s)
        if n_slots > len(self._born_s):
            self._version_of = np.append(self._version_of, np.zeros(n_new, np.int64))
            self._born_s = np.append(self._born_s, np.full(n_new, np.nan))
