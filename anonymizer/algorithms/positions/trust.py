"""Trust: which positions may be where their devices are, judged by what the device said before.

Who is not trusted is company for nobody, and changes nothing for others: its position is refused
before the fleet hears of it. Two things make a position doubtful.

- **Its place cannot be reached** from the last trusted one at the speed of the fastest mover: a
  wrong fix, or a device that lies. What is refused does not keep a device present. One that stays
  at the far place therefore falls silent for the fleet, leaves with its group, and is believed
  there as if it were new: a group never covers both places.
- **It is hearsay of unknown age**: somebody else says it of the device, and states no time, or one
  that other devices share to the digit and that is newer than all others: that is when somebody
  asked, not when it was measured. A vehicle that nobody has heard of for a day would be fresh at
  every poll. Such a position counts only when its place differs from the one before.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.discreet import discreet
from anonymizer.domain.outcomes import Outcome

SLACK_M = 1000.0
"""Metres that a device may be away from where its times put it. Fleets deliver what was queued with
the times of arrival: with 200 m San Francisco's taxis lose .17 % of their positions, with this .06
(without five ids that two vehicles share)."""

_HELD = int(Outcome.HELD)
_JUMP = int(Outcome.SUPPRESSED__IMPLAUSIBLE_JUMP)
_AGELESS = int(Outcome.SUPPRESSED__AGE_UNKNOWN)
_LAT, _LON, _TS, _HEARD = range(_COLUMNS := 4)
_RADIANS = math.pi / 180.0
_M_PER_DEGREE = EARTH_RADIUS_M * _RADIANS


@discreet
class Claims(NamedTuple):
    """What devices claim, in order of arrival; all of shape (n,)."""

    slot: Int32Array
    """Of each device."""
    ts: FloatArray
    """Unix seconds; those that were not stated are times of arrival."""
    lat: FloatArray
    lon: FloatArray
    """`lat`, `lon`: WGS84 degrees."""
    undated: BoolArray
    """Which state no time."""
    hearsay: BoolArray | None
    """Which somebody else says of the device: nothing but a payload names it. None: none, as in a
    recorded trace."""
    message: IntArray
    """Number of the message that each came in."""

    def only(self, rows: IntArray) -> "Claims":
        """Return some of the claims."""
        return Claims(
            self.slot[rows],
            self.ts[rows],
            self.lat[rows],
            self.lon[rows],
            self.undated[rows],
            None if self.hearsay is None else self.hearsay[rows],
            self.message[rows],
        )


class Trust:
    """Remembers where each device was last, and whether that is believed.

    `kept_s`: after so long without a position that is believed, a device may be anywhere.
    """

    def __init__(self, *, kept_s: float = math.inf) -> None:
        self._kept_s = kept_s
        # Columns: latitude, longitude (NaN: unknown), time of the last trusted position (-inf:
        # none), and when a position was last judged.
        self._last: FloatArray = np.zeros((0, _COLUMNS))

    def judge(self, claims: Claims, *, max_mps: FloatArray, now: float) -> UInt8Array:
        """Return `HELD` or why each position is refused, shape (n,); remember those believed.

        `max_mps`: fastest speed of each device's kind, m/s, shape (n,); `now`: unix seconds. O(n),
        and O(n log n) in those that repeat a place.
        """
        slot = claims.slot
        if not len(slot):
            return np.zeros(0, np.uint8)
        self._make_room(int(slot.max()) + 1)
        ageless = np.zeros(len(slot), np.bool_)
        if claims.hearsay is not None and claims.hearsay.any():
            ageless = self._of_unknown_age(claims, claims.hearsay)
        columns = claims.ts, claims.lat, claims.lon
        return _judged(self._last, slot, *columns, ageless, max_mps, now, self._kept_s)

    def _of_unknown_age(self, claims: Claims, hearsay: BoolArray) -> BoolArray:
        """Return which hearsay is of unknown age, unless it moves its device, shape (n,)."""
        slot, ageless = claims.slot, claims.undated & hearsay
        # What a device repeats within a tick is superseded anyway.
        before = self._last[slot, _LAT]
        maybe = np.flatnonzero((before == claims.lat) | np.isnan(before))
        before = self._last[slot[maybe], _LON]
        rests = maybe[(before == claims.lon[maybe]) | np.isnan(before)]
        if len(rests):
            ageless[rests] |= (_times_of_polls(claims) & hearsay)[rests]
        return ageless

    def unheard(self, *, before: float) -> Int32Array:
        """Return the slots whose devices have claimed something, but nothing since a time."""
        heard = self._last[:, _HEARD]
        return np.flatnonzero((heard > -np.inf) & (heard < before)).astype(np.int32)

    def all_heard_s(self) -> float:
        """Return since when all devices have claimed something; infinite if there are none."""
        heard = self._last[:, _HEARD]
        return float(heard[heard > -np.inf].min(initial=math.inf))

    def free(self, slot: Int32Array) -> None:
        """Forget the devices of these slots."""
        self._last[slot[slot < len(self._last)]] = _UNKNOWN

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick. It holds places: store it like raw positions."""
        return {str(name): self._last[:, name] for name in range(_COLUMNS)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._last = np.column_stack([state[str(name)] for name in range(_COLUMNS)])

    def _make_room(self, n_slots: int) -> None:
        have = len(self._last)
        if n_slots > have:
            wider = np.empty((max(n_slots, 2 * have), _COLUMNS))
            wider[:have], wider[have:] = self._last, _UNKNOWN
            self._last = wider


_UNKNOWN = (np.nan, np.nan, -np.inf, -np.inf)


def _times_of_polls(claims: Claims) -> BoolArray:
    """Return which times several devices share, and none is newer, shape (n,).

    Whole seconds are shared by chance, so they are compared within a message.
    """
    slot, ts = claims.slot, claims.ts
    group = np.where(ts == np.floor(ts), claims.message, -1)
    order = np.lexsort((slot, ts, group))
    group, at, who = group[order], ts[order], slot[order]
    begin = np.flatnonzero(np.append(True, (at[1:] != at[:-1]) | (group[1:] != group[:-1])))
    last = np.append(begin[1:], len(slot)) - 1
    is_newest = np.append(group[last[:-1]] != group[begin[1:]], True)
    polled = np.empty(len(slot), np.bool_)
    polled[order] = np.repeat((who[begin] != who[last]) & is_newest, last - begin + 1)
    return polled


@kernel
def _judged(
    last: FloatArray,
    slot: Int32Array,
    ts: FloatArray,
    lat: FloatArray,
    lon: FloatArray,
    ageless: BoolArray,
    max_mps: FloatArray,
    now: float,
    kept_s: float,
) -> UInt8Array:
    """Return the outcome of each position, in order; set the columns of those believed."""
    outcome = np.empty(len(slot), np.uint8)
    for i in range(len(slot)):
        s = slot[i]
        old_lat, old_lon, old_ts = last[s, _LAT], last[s, _LON], last[s, _TS]
        last[s, _HEARD] = now
        outcome[i] = _HELD
        moves = old_lat != lat[i] or old_lon != lon[i]
        if ageless[i] and (math.isnan(old_lat) or not moves):
            outcome[i] = _AGELESS
            last[s, _LAT], last[s, _LON] = lat[i], lon[i]
            continue
        if ts[i] - old_ts <= kept_s and old_ts > -np.inf:
            allowed_m = SLACK_M + max_mps[i] * abs(ts[i] - old_ts)
            north_m = abs(lat[i] - old_lat) * _M_PER_DEGREE
            turn = abs(lon[i] - old_lon)
            east_m = min(turn, 360.0 - turn) * _M_PER_DEGREE
            # Most are near; a degree of longitude is nowhere longer than one of latitude.
            if north_m + east_m > allowed_m:
                east_m *= math.cos(0.5 * (lat[i] + old_lat) * _RADIANS)
                if north_m * north_m + east_m * east_m > allowed_m * allowed_m:
                    outcome[i] = _JUMP
                    continue
        if ts[i] >= old_ts:
            last[s, _LAT], last[s, _LON], last[s, _TS] = lat[i], lon[i], ts[i]
    return outcome
