"""Positions that come in two messages, one with the latitude and one with the longitude."""

from math import inf, isnan, nan
from typing import Any, NamedTuple

from msgspec import structs

from anonymizer.domain.discreet import discreet
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

_MOST = 100_000
"""Devices of which halves are kept; beyond that, those whose last half is oldest are forgotten."""


@discreet
class _Kept(NamedTuple):
    """The newest latitude and longitude of a device, each with its time in unix seconds."""

    lat: float = nan
    lat_ts: float = -inf
    lon: float = nan
    lon_ts: float = -inf


class Halves:
    """The newest halves of devices: raw coordinates, until their devices are silent.

    Parameters
    ----------
    within_s
        How far apart the times of the two halves of a position may be.
    by_arrival
        Whether they state no times, so that those of their arrival count. These are of the clock
        of this process, and so no state outlives it.
    """

    def __init__(self, within_s: float, *, by_arrival: bool = False) -> None:
        self._within_s, self._by_arrival = within_s, by_arrival
        self._kept: dict[str, _Kept] = {}
        self._before: dict[str, _Kept] = {}
        self._turned_s = -inf

    def joined(self, device: str, fix: Fix, *, at_s: float = 0.0) -> Fix | Outcome:
        """Return the position that a message completes, with the time of the later half.

        A message that completes none counts as superseded: a later one tells where the device is.
        """
        ts = at_s if self._by_arrival else fix.ts
        if ts is None or ts < 0:  # how long ago does not order them
            return Outcome.INVALID__SCHEMA
        kept = self._kept.pop(device, None) or self._before.pop(device, _Kept())
        if not isnan(fix.lat) and ts >= kept.lat_ts:
            kept = kept._replace(lat=fix.lat, lat_ts=ts)
        if not isnan(fix.lon) and ts >= kept.lon_ts:
            kept = kept._replace(lon=fix.lon, lon_ts=ts)
        self._kept[device] = kept
        if len(self._kept) > _MOST:
            del self._kept[next(iter(self._kept))]
        is_newest = ts == max(kept.lat_ts, kept.lon_ts)
        if not is_newest or not abs(kept.lat_ts - kept.lon_ts) <= self._within_s:
            return Outcome.SUPPRESSED__SUPERSEDED
        if self._by_arrival:  # the next latitude may come before the next longitude
            del self._kept[device]
        return structs.replace(fix, lat=kept.lat, lon=kept.lon)

    def state(self) -> list[Any]:
        """Return all that changes."""
        kept: tuple[dict[str, _Kept], ...] = (
            ({}, {}) if self._by_arrival else (self._before, self._kept)
        )
        return [self._turned_s, *(list(each.items()) for each in kept)]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        self._turned_s, *kept = state
        self._before, self._kept = (
            {device: _Kept(*values) for device, values in each} for each in kept
        )

    def forget(self, *, at_s: float, kept_s: float) -> None:
        """Forget devices that are silent for `kept_s`, at the latest after twice that time."""
        if at_s - self._turned_s >= kept_s:
            self._before, self._kept, self._turned_s = self._kept, {}, at_s
