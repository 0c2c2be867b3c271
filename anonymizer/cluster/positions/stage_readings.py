"""Readings on their way from a source to the districts, and what each side remembers of them.

A source knows all readings of its devices. With every tick it sends all readings of the devices
that moved or reported to the districts in which they are, where they replace the former ones. A
district that a device has left is told that it has none, so that its readings count once.
"""

from collections.abc import Sequence

import numpy as np

from anonymizer.algorithms.positions.device_keys import KeyArray, Keys
from anonymizer.algorithms.positions.district_routing import NOWHERE, Router
from anonymizer.cluster.positions.stage_messages import Readings
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.release import Release
from anonymizer.pipeline.devices import NO_ROW, NO_SLOT, KeyRows
from anonymizer.pipeline.positions.tick.group_readings import (
    GroupReadings,
    GroupValues,
    ReadingsOfRows,
)
from anonymizer.settings import ReadingSettings


class SourceReadings(GroupReadings):
    """The readings of the devices of a source: noted as one process does, and sent to districts."""

    def __init__(self, declared: Sequence[ReadingSettings], keys: Keys) -> None:
        super().__init__(declared, keys)
        self._keys = keys
        self._changed: Int32Array = np.zeros(0, np.int32)
        """Devices whose readings have changed since the last tick."""

    def note(
        self,
        row: IntArray,
        attribute: IntArray,
        value: FloatArray,
        *,
        slot: Int32Array,
        ts: FloatArray,
    ) -> None:
        """Take in the readings of a tick, see `GroupReadings.note`."""
        super().note(row, attribute, value, slot=slot, ts=ts)
        self._change(slot[row])

    def forget(self, slot: Int32Array) -> None:
        """Forget the readings of these devices."""
        super().forget(slot)
        self._change(slot)

    def _change(self, slot: Int32Array) -> None:
        self._changed = np.union1d(self._changed, slot[slot != NO_SLOT]).astype(np.int32)

    def for_districts(
        self, moved: Int32Array, left: IntArray, router: Router, *, since: float
    ) -> dict[int, Readings]:
        """Return what each district is sent at the end of a tick.

        `moved`, `left`: devices that have moved, by their slots, and the district that each has
        left, see `Sent`. `router` has routed the tick. Readings older than `since` (unix seconds)
        are forgotten.
        """
        if not self.names:
            return {}
        slot = np.union1d(self._changed, moved)
        row = self._rows.find(slot)
        slot, row = slot[row != NO_ROW], row[row != NO_ROW]
        home = router.homes(slot)
        sent = {}
        for district in np.union1d(home, left).tolist():
            here, gone = home == district, moved[left == district]
            known = self._state.since(row[here], since)
            n_of = np.append(known.n_of, np.zeros(len(gone), np.int64))
            key = self._keys(np.append(slot[here], gone))
            sent[district] = Readings(key, known._replace(n_of=n_of))
        sent.pop(NOWHERE, None)
        self._changed = np.zeros(0, np.int32)
        self._drop_old(since=since)
        return sent


class LaneReadings(ReadingsOfRows):
    """The readings of the devices that a district may have in a group."""

    def __init__(self, declared: Sequence[ReadingSettings]) -> None:
        self._rows = KeyRows()
        super().__init__(declared, self._rows)

    def take(self, readings: Readings) -> None:
        """Take what a source has sent; its batches come in the order of ticks."""
        if len(readings.key):
            self._state.put(self._rows.of(readings.key), readings.known)

    def summarize(self, release: Release, key: KeyArray, *, since: float) -> GroupValues | None:
        """Return the published readings of a release; None if no attribute is declared.

        `key`: of the device of each member, shape (members,). Values older than `since` (unix
        seconds) count as missing, and are forgotten.
        """
        return self._summarized(self._rows.find(key), release, since=since)
