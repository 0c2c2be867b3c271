"""Do new ids begin where others ended? Then ids change, and nobody has declared it.

An id that changes leaves a pair: a device falls silent for good, and soon after, near by, another
one is heard for the first time. Trips that end and begin leave such pairs by chance, but as many
with the end *after* the beginning. So each new device is compared with the nearest end before it
and the nearest end after it. How much more often the nearer one is before, as a share of all new
devices, estimates how many continue another one; it is about 0 wherever people come and go.

An id of one message ends where it begins, so ends after it are as near as those before. It is
compared with the end that was nearest to its place some time earlier: a vehicle that moves on was
not there yet. Those that stand still, with a new id in each message, are not noticed.
"""

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.arrays import FloatArray, Int32Array

WITHIN_S = 90.0
"""A new id begins at most so long after the last report of the former one."""
_REACH_MPS, _REACH_M = 40.0, 100.0
"""How far a vehicle gets until then, and how wrong positions are."""
_COST_MPS = 15.0
"""A second between two reports counts like so many metres."""
LEAST = 50
"""New devices that must have been judged before anything is said."""
MOST = 500
"""New devices that are remembered; the latest ones."""
SHARE = 0.5
"""Ids change if more than this share of the new devices continue others."""
_LOOK_EVERY_S = 10.0
_MOST_A_LOOK = 100
"""New devices that are judged in one look, evenly drawn: each costs a comparison with all ends."""


class Succession:
    """Follows the devices of a flow, and estimates how many of the new ones continue others.

    Notes
    -----
    O(reports) a tick; every ten seconds O(ends within minutes), a hundred times at most.
    """

    def __init__(self) -> None:
        # Unix seconds, degrees and number of a life: the last report of each slot, and the reports
        # with which devices began and ended.
        self._last = np.full((4, 0), -np.inf)
        self._began = self._ended = np.zeros((4, 0))
        self._n_lives = 0
        self._verdicts = np.zeros(0, np.int64)
        self._within_s = WITHIN_S
        self._looked_at = -np.inf
        self._began_at = np.inf

    @property
    def share(self) -> float:
        """Estimated share of the new devices that continue others; 0 while too few are known."""
        return float(self._verdicts.mean()) if len(self._verdicts) >= LEAST else 0.0

    @property
    def ids_change(self) -> bool:
        """Whether ids seem to change."""
        return self.share > SHARE

    def tick(
        self,
        slot: Int32Array,
        ts: FloatArray,
        lat: FloatArray,
        lon: FloatArray,
        *,
        now: float,
        known_after_s: float,
        ttl_s: float,
    ) -> None:
        """Take in the reports of a tick, of devices whose ids are said to stay.

        `slot`, `ts` (unix seconds), `lat`, `lon` in order of arrival, shape (n,). A device is freed
        between `ttl_s` and `known_after_s` after its last report; one that comes back later is new,
        and no successor of itself.
        """
        self._within_s = min(WITHIN_S, ttl_s)
        self._make_room(int(slot.max(initial=-1)) + 1)
        unknown = np.flatnonzero(self._last[0, slot] == -np.inf)
        # Those that are there at the start have not begun.
        self._began_at = min(self._began_at, now)
        if len(unknown):
            new = unknown[np.unique(slot[unknown], return_index=True)[1]]
            life = self._last[3, slot[new]] = self._n_lives + np.arange(len(new), dtype=float)
            self._n_lives += len(new)
            if now > self._began_at + known_after_s:
                self._began = np.hstack([self._began, [ts[new], lat[new], lon[new], life]])
        newer = ts >= self._last[0, slot]
        if not newer.all():
            slot, ts, lat, lon = slot[newer], ts[newer], lat[newer], lon[newer]
        self._last[:3, slot] = ts, lat, lon
        if not 0 <= now - self._looked_at < _LOOK_EVERY_S:
            self._looked_at = now
            self._judge(now - known_after_s - WITHIN_S)

    def free(self, slot: Int32Array, *, silent_since: float) -> None:
        """Forget devices; those not heard since a time, unix seconds, have ended.

        The others go on: when they are heard again, they continue nobody but themselves.
        """
        slot = slot[slot < self._last.shape[1]]
        last_s = self._last[0, slot]
        over = slot[(last_s > -np.inf) & (last_s < silent_since)]
        if len(over):
            self._ended = np.hstack([self._ended, self._last[:, over]])
        self._last[0, slot] = -np.inf

    def _judge(self, known_s: float) -> None:
        """Judge the devices that began until then: all ends around their beginning are known."""
        due = np.flatnonzero(self._began[0] <= known_s)
        due = due[:: len(due) // _MOST_A_LOOK + 1]
        verdicts = [self._verdict(*each) for each in self._began[:, due].T.tolist()]
        self._verdicts = np.append(self._verdicts, np.array(verdicts, np.int64))[-MOST:]
        self._began = self._began[:, self._began[0] > known_s]
        self._ended = self._ended[:, self._ended[0] > known_s - 2 * WITHIN_S]

    def _verdict(self, ts: float, lat: float, lon: float, life: float) -> int:
        """Return 1 if a device seems to continue another, -1 if rather not, 0: nothing is near."""
        ended_s, _, _, ended_life = self._ended
        if ((ended_life == life) & (ended_s == ts)).any():  # it has reported once, or at once
            before, earlier = (
                self._cost(at, lat, lon, life)[1] for at in (ts, ts - self._within_s)
            )
            return int(before < earlier) - int(earlier < before)
        after, before = self._cost(ts, lat, lon, life)
        return int(before < after) - int(after < before)

    def _cost(self, ts: float, lat: float, lon: float, life: float) -> tuple[float, float]:
        """Return how far the nearest end of another is, from a time on and before it; inf: none."""
        ended_s, _, _, ended_life = self._ended
        near = (np.abs(ended_s - ts) < self._within_s) & (ended_life != life)
        ended_s, ended_lat, ended_lon, _ = self._ended[:, near]
        gap_s, here = ended_s - ts, np.ones(len(ended_s))
        metres = haversine_m(lat * here, lon * here, ended_lat, ended_lon)
        reached = metres <= _REACH_M + _REACH_MPS * np.abs(gap_s)
        cost = np.where(reached, metres + _COST_MPS * np.abs(gap_s), np.inf)
        after = gap_s >= 0
        return cost[after].min(initial=np.inf), cost[~after].min(initial=np.inf)

    def _make_room(self, n_slots: int) -> None:
        more = n_slots - self._last.shape[1]
        if more > 0:
            more = max(more, self._last.shape[1])
            self._last = np.hstack([self._last, np.full((4, more), -np.inf)])
