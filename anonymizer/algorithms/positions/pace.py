"""Time to live and epoch length that follow how often devices report.

A group is formed of devices that will still be present when it ends. Devices that report rarely are
therefore never grouped, unless the time to live and the epoch grow with their reporting interval.
"""

from typing import Any

import numpy as np

from anonymizer.domain.arrays import FloatArray, Int32Array

STEPS_S = (30.0, 60.0, 120.0, 240.0, 300.0)
"""Reporting intervals that are told apart; anything slower counts as the last one. Few steps,
because every change of the epoch shifts the beginning of all later epochs."""
_SHARE = 0.9
"""The interval of the pace is that within which this share of the devices report again."""
_MISSED = 1.5
"""A device counts as present for so many intervals, so that a late report does not end it."""
_LOOK_EVERY_S = 5.0
_STATE = ("_gap_of", "_last_of", "_looked_at", "_interval_s", "_known_s")


class Pace:
    """How long devices count as present, and how long groups live.

    A device that is silent for longer than `ttl_s` is absent; `epoch_s` is the longest lifetime of
    a group, in `session` mode. `follows`: both grow with the reporting interval of the devices, and
    never shrink below the given values.

    Notes
    -----
    While most devices present have reported only once, nobody knows their interval, and the
    longest one is assumed: devices that expired before their second report would never show how
    slow they are. That alone makes no epoch longer: whoever waits for a group would wait for it,
    and all groups would end when the interval becomes known.
    """

    def __init__(self, *, ttl_s: float, epoch_s: float, follows: bool = False) -> None:
        self._least_ttl_s, self._least_epoch_s = ttl_s, epoch_s
        self._follows = follows
        self._gap_of: FloatArray = np.full(0, np.nan)
        self._last_of: FloatArray = np.full(0, -np.inf)
        self._looked_at = -np.inf
        self._interval_s = STEPS_S[-1] if follows else 0.0
        self._known_s = 0.0
        """The interval when it was last known; 0: it never was."""

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name in _STATE:
            setattr(self, name, state[name])

    @property
    def interval_s(self) -> float:
        """The step of the reporting interval, the longest if unknown; 0 if it is not followed."""
        return self._interval_s

    @property
    def epoch_s(self) -> float:
        """Longest lifetime of a group, seconds."""
        return max(self._least_epoch_s, self._known_s)

    @property
    def longest_epoch_s(self) -> float:
        """The longest epoch that there can be, seconds."""
        return max(self._least_epoch_s, STEPS_S[-1] if self._follows else 0.0)

    @property
    def ttl_s(self) -> float:
        """Seconds without a report after which a device is absent; above `epoch_s`."""
        return max(self._least_ttl_s, self.epoch_s + _MISSED * self._interval_s)

    @property
    def longest_ttl_s(self) -> float:
        """The longest time to live that there can be, seconds."""
        slowest_s = _MISSED * STEPS_S[-1] if self._follows else 0.0
        return max(self._least_ttl_s, self.longest_epoch_s + slowest_s)

    def advance(self, slot: Int32Array, ts: FloatArray, *, now: float) -> None:
        """Take in the newest reports of distinct devices, and look at the intervals now and then.

        `slot`, `ts` (unix seconds): device and time of each report, shape (n,).
        """
        if not self._follows:
            return
        if len(slot):
            more = int(slot.max()) + 1 - len(self._gap_of)
            if more > 0:
                more = max(more, len(self._gap_of))
                self._gap_of = np.concatenate([self._gap_of, np.full(more, np.nan)])
                self._last_of = np.concatenate([self._last_of, np.full(more, -np.inf)])
            gap = ts - self._last_of[slot]
            self._gap_of[slot] = np.where(np.isfinite(gap), gap, np.nan)
            self._last_of[slot] = ts
        if not 0 <= now - self._looked_at < _LOOK_EVERY_S:
            self._looked_at = now
            self._look()

    def forget(self, slot: Int32Array) -> None:
        """Forget devices that are absent."""
        known = slot[slot < len(self._gap_of)]
        self._gap_of[known] = np.nan
        self._last_of[known] = -np.inf

    def _look(self) -> None:
        gap = self._gap_of[~np.isnan(self._gap_of)]
        n_present = int((self._last_of > -np.inf).sum())
        if not n_present:
            return
        if 2 * len(gap) < n_present:
            self._interval_s = STEPS_S[-1]
            return
        step = int(np.searchsorted(STEPS_S, np.quantile(gap, _SHARE)))
        self._interval_s = self._known_s = STEPS_S[min(step, len(STEPS_S) - 1)]
