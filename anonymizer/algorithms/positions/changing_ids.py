"""Ids that change: which of them are surely different vehicles.

A vehicle that changes its id is heard as two devices: the old id counts as present for a while,
beside the new one. If both were in one group, the vehicle would be its own company.

An id is *on the air* from its first report to its last one. A vehicle uses one id at a time and
takes none up again, so all ids that were on the air at one instant are different vehicles. Only
such ids count: for groups, for density and for company. A new id counts as soon as the instant has
passed its first report; one that has fallen silent stops counting when the instant passes its last.
Ids that never change are different vehicles anyway. Until it has outlived the time for which silent
devices count, nobody knows that of an id, unless somebody has said so: an id for each message, or
for a few, is company for nobody.

The vehicle's own clock decides what was first and last, and needs to be right for nothing else.
"""

from typing import Any

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray

LASTS = -np.inf
"""In place of the time since when an id is heard: ids like this one do not change."""
LAGS_S = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 240.0, 300.0, 450.0)
"""The instant may be so long ago: a second for vehicles that report ten times a second."""
_NEARLY_ALL = 0.9
_LOOK_EVERY_S = 1.0
_STATE = ("_lag_s", "_looked_at")


def on_air(since: FloatArray, last: FloatArray, *, at: float, slack_s: float) -> BoolArray:
    """Return which ids count at an instant, same shape: those on the air, and those that last.

    `since` and `last` are unix seconds of the first and the last report of each id (`LASTS` for the
    first if it does not change), `at` is the instant. By `slack_s` the first report of an id may
    seem to be before the last one of the vehicle's former id: a clock was put back, or messages
    state no time.
    """
    counts: BoolArray = (since == LASTS) | ((since < at - slack_s) & (last >= at))
    return counts


class Instant:
    """Chooses the instant: the latest one at which nearly all were on the air.

    It stays the same until it is chosen again: if it moved on with the time, who has not reported
    since would not count for a moment, and a small fleet would miss the tick that forms groups.

    Notes
    -----
    Whichever instant is chosen, no vehicle counts twice. An early one lets new ids wait for long
    and counts ids that have ended; at a late one, most ids are between two reports.
    """

    def __init__(self, *, slack_s: float) -> None:
        self.slack_s = slack_s
        self._lag_s = LAGS_S[0]
        self._looked_at = -np.inf

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name in _STATE:
            setattr(self, name, state[name])

    def counted(self, since: FloatArray, last: FloatArray, *, now: float) -> BoolArray:
        """Return which ids count now, see `on_air`. O(ids)."""
        changes = np.flatnonzero(since > LASTS)
        counts = np.ones(len(since), bool)
        since, last = since[changes], last[changes]
        if not 0 <= now - self._looked_at < _LOOK_EVERY_S:
            self._looked_at = now
            self._look(since, last, now)
        at = self._looked_at - self._lag_s
        counts[changes] = on_air(since, last, at=at, slack_s=self.slack_s)
        return counts

    def _look(self, since: FloatArray, last: FloatArray, now: float) -> None:
        n = [
            int(on_air(since, last, at=now - lag_s, slack_s=self.slack_s).sum()) for lag_s in LAGS_S
        ]
        self._lag_s = next(
            lag_s for lag_s, each in zip(LAGS_S, n, strict=True) if each >= _NEARLY_ALL * max(n)
        )
