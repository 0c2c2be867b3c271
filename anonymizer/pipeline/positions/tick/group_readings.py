"""Readings in the flow: from the columns of a tick to what is published about each group."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymizer.algorithms.positions.device_keys import Keys, slots_as_keys
from anonymizer.algorithms.positions.readings import ReadingsState, summarize
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.release import Release
from anonymizer.pipeline.devices import NO_ROW, NO_SLOT, KeyRows
from anonymizer.pipeline.positions.tick.device_rows import DeviceRows

if TYPE_CHECKING:
    from anonymizer.settings import ReadingSettings


@dataclass(frozen=True, slots=True)
class GroupValues:
    """The published readings of a release.

    `groups`: for each group, attribute -> statistic -> number. `own`: attribute -> each member's
    own value, for attributes with `each`.
    """

    groups: Sequence[dict[str, dict[str, float]]]
    own: dict[str, list[float | None]]


class ReadingsOfRows:
    """The newest readings of devices by their rows, and what of them is published by group.

    `n_clamped` and `n_left_out` are readings outside their declared range, and groups in which
    fewer than k members had one, so far, shape (attributes,).
    """

    def __init__(self, declared: "Sequence[ReadingSettings]", rows: DeviceRows | KeyRows) -> None:
        self._state = ReadingsState([each.attribute for each in declared])
        self._all_rows = rows
        self.names = tuple(self._state.index_of)
        self.n_clamped: IntArray = np.zeros(len(declared), np.int64)
        self.n_left_out: IntArray = np.zeros(len(declared), np.int64)

    def _summarized(self, row: Int32Array, release: Release, *, since: float) -> GroupValues | None:
        """Return the published readings of a release; None if no attribute is declared.

        `row`: of each member, `NO_ROW` for none, shape (members,). A value older than `since` (unix
        seconds) is forgotten.
        """
        if not self.names:
            return None
        value = self._state.current(row, since=since)
        attributes = self._state.attributes
        summaries = summarize(value, release.first_member_of, release.k, attributes=attributes)
        self.n_left_out += summaries.n_left_out
        own = summaries.own_values(value, release.first_member_of)
        self._drop_old(since=since)
        return GroupValues(summaries.published(), own)

    def _drop_old(self, *, since: float) -> None:
        """Forget the devices whose values are all older than unix seconds."""
        used = self._all_rows.used()
        old = used[self._state.are_older(used, since)]
        self._state.forget(old)
        self._all_rows.drop(old)

    def state(self) -> dict[str, Any] | None:
        """Return what changes from tick to tick; None if no reading is declared."""
        if not self.names:
            return None
        counts = {"clamped": self.n_clamped, "left_out": self.n_left_out}
        return {"rows": self._all_rows.state(), "values": self._state.state()} | counts

    def restore(self, state: dict[str, Any] | None) -> None:
        """Go on from a state of the same readings, between two ticks."""
        if state is not None and self.names:
            self._all_rows.restore(state["rows"])
            self._state.restore(state["values"])
            self.n_clamped, self.n_left_out = state["clamped"], state["left_out"]


class GroupReadings(ReadingsOfRows):
    """Keeps the newest readings of the devices present, and summarizes them by group.

    Notes
    -----
    How long a reading holds does not depend on when the slot of its device is freed: see
    `DeviceRows`.
    """

    def __init__(self, declared: "Sequence[ReadingSettings]", keys: Keys = slots_as_keys) -> None:
        self._rows = DeviceRows(keys)
        super().__init__(declared, self._rows)

    @property
    def index_of(self) -> dict[str, int]:
        """Index of each declared attribute by name."""
        return self._state.index_of

    def are_outside(self, attribute: IntArray, value: FloatArray) -> BoolArray:
        """Return which readings are outside their declared range, same shape."""
        return self._state.are_outside(attribute, value)

    def note(
        self,
        row: IntArray,
        attribute: IntArray,
        value: FloatArray,
        *,
        slot: Int32Array,
        ts: FloatArray,
    ) -> None:
        """Take in the readings of a tick.

        Row of the position that a reading came with, index of its attribute, and its value
        (finite), shape (readings,); device and time of each position, shape (positions,). Readings
        of a position without a slot are dropped: a rejected position must leave no trace.
        """
        if len(row):
            accepted = slot[row] != NO_SLOT
            row = row[accepted]
            self.n_clamped += self._state.advance(
                self._rows.of(slot[row]), attribute[accepted], value[accepted], ts[row]
            )

    def summarize(
        self, release: Release, *, since: float, present: BoolArray
    ) -> GroupValues | None:
        """Return the published readings of a release; None if no attribute is declared.

        A value older than `since` (unix seconds) counts as missing, and is forgotten. `present`:
        members whose readings count, shape (members,): each device once, see `TickResult`.
        """
        if not self.names:
            return None
        row = np.where(present, self._rows.find(release.member), NO_ROW)
        return self._summarized(row, release, since=since)

    def forget(self, slot: Int32Array) -> None:
        """Forget the readings of these devices."""
        if self.names:
            row = self._rows.find(slot)
            self._state.forget(row[row != NO_ROW])

    def free(self, slots: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._rows.free(slots)
