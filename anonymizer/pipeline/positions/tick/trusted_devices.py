"""Trust in the flow: remembered by device, whatever slot it has and whenever that is freed."""

from typing import Any

import numpy as np

from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.algorithms.positions.trust import Claims, Trust
from anonymizer.domain.arrays import FloatArray, Int32Array, UInt8Array
from anonymizer.pipeline.positions.tick.device_rows import DeviceRows


class TrustedDevices:
    """Judges what devices claim by what they have said themselves, and by the time alone.

    `kept_s`: after so long without a position that is believed, a device is new: no group that it
    was in before lives any more.
    """

    def __init__(self, keys: Keys, *, kept_s: float) -> None:
        self._rows, self._trust = DeviceRows(keys), Trust(kept_s=kept_s)
        self._kept_s = kept_s
        self._slot_heard_s: FloatArray = np.zeros(0)
        self._all_heard_s = self._slots_heard_s = -np.inf
        """Since when all devices, and those with slots, have claimed something, or before: until
        then, none is looked for."""

    def judge(self, claims: Claims, *, max_mps: FloatArray, now: float) -> UInt8Array:
        """Return `HELD` or why each position is refused, shape (n,); see `Trust.judge`."""
        if now - self._kept_s > self._all_heard_s:
            unheard = self._trust.unheard(before=now - self._kept_s)
            used = self._rows.used()
            gone = used[np.isin(used, unheard)]
            self._trust.free(gone)
            self._rows.drop(gone)
            self._all_heard_s = min(self._trust.all_heard_s(), now)
        slot, *others = claims
        n_slots = int(slot.max(initial=-1)) + 1
        if n_slots > len(self._slot_heard_s):
            room = np.full(max(n_slots, 2 * len(self._slot_heard_s)), -np.inf)
            room[: len(self._slot_heard_s)] = self._slot_heard_s
            self._slot_heard_s = room
        self._slot_heard_s[slot] = now
        self._slots_heard_s = min(self._slots_heard_s, now)
        by_device = Claims._make((self._rows.of(slot), *others))
        return self._trust.judge(by_device, max_mps=max_mps, now=now)

    def unheard(self, *, before: float) -> Int32Array:
        """Return the slots of devices that have claimed something, but nothing since a time."""
        if before <= self._slots_heard_s:
            return np.zeros(0, np.int32)
        heard = self._slot_heard_s
        claimed = heard > -np.inf
        self._slots_heard_s = float(heard[claimed].min(initial=np.inf))
        return np.flatnonzero(claimed & (heard < before)).astype(np.int32)

    def forget(self, slot: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._slot_heard_s[slot[slot < len(self._slot_heard_s)]] = -np.inf
        self._rows.free(slot)

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick. It holds places: store it like raw positions."""
        return {
            "rows": self._rows.state(),
            "trust": self._trust.state(),
            "slot_heard_s": self._slot_heard_s,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._rows.restore(state["rows"])
        self._trust.restore(state["trust"])
        self._slot_heard_s = state["slot_heard_s"].copy()
        self._all_heard_s = self._slots_heard_s = -np.inf
