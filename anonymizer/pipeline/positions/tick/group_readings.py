"""Readings in the flow: from the columns of a tick to what is published about each group."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from anonymizer.algorithms.positions.district_operator import Keys, slots_as_keys
from anonymizer.algorithms.positions.readings import ReadingsState, summarize
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.readings import ReadingAttribute
from anonymizer.domain.release import Release
from anonymizer.pipeline.devices import NO_SLOT
from anonymizer.pipeline.positions.tick.device_rows import NO_ROW, DeviceRows, KeyRows

if TYPE_CHECKING:
    from anonymizer.settings import ReadingSettings


@dataclass(frozen=True, slots=True)
class GroupValues:
    """The published readings of a release.

    Attributes
    ----------
    groups
        For each group, attribute -> statistic -> number.
    own
        Attribute -> each member's own value, for attributes with `per_pseudonym`.
    """

    groups: Sequence[dict[str, dict[str, float]]]
    own: dict[str, list[float | None]]


def group_values(
    value: FloatArray, release: Release, *, attributes: Sequence[ReadingAttribute]
) -> tuple[GroupValues, IntArray]:
    """Return the published readings of a release.

    Parameters
    ----------
    value
        Of each member and attribute, NaN if missing, shape (members, attributes).

    Returns
    -------
    values, n_left_out
        The readings, and groups in which fewer than k members had one, shape (attributes,).
    """
    summaries = summarize(value, release.first_member_of, release.k, attributes=attributes)
    own = summaries.own_values(value, release.first_member_of)
    return GroupValues(summaries.published(), own), summaries.n_left_out


def drop_old(rows: DeviceRows | KeyRows, state: ReadingsState, *, since: float) -> None:
    """Forget the devices whose values are all older than unix seconds."""
    used = rows.used()
    old = used[state.are_older(used, since)]
    state.forget(old)
    rows.drop(old)


class GroupReadings:
    """Keeps the newest readings of the devices present, and summarizes them by group.

    Parameters
    ----------
    declared
        The readings that may be published.
    keys
        Returns a number for the device of each slot; by default for callers whose devices keep
        their slots.

    Attributes
    ----------
    n_clamped, n_left_out
        Readings outside their declared range, and groups in which fewer than k members had one,
        so far, shape (attributes,).

    Notes
    -----
    How long a reading holds does not depend on when the slot of its device is freed: see
    `DeviceRows`.
    """

    def __init__(self, declared: "Sequence[ReadingSettings]", keys: Keys = slots_as_keys) -> None:
        self._state = ReadingsState([each.attribute for each in declared])
        self._rows = DeviceRows(keys)
        self.names = tuple(self._state.index_of)
        self.n_clamped: IntArray = np.zeros(len(declared), np.int64)
        self.n_left_out: IntArray = np.zeros(len(declared), np.int64)

    @property
    def index_of(self) -> dict[str, int]:
        """Index of each declared attribute by name."""
        return self._state.index_of

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

        Parameters
        ----------
        row, attribute, value
            Row of the position that a reading came with, index of its attribute, and its value
            (finite), shape (readings,).
        slot, ts
            Device and time of each position, shape (positions,). Readings of a position without
            a slot are dropped: a rejected position must leave no trace.
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

        Parameters
        ----------
        since
            A value that is older, by unix seconds, counts as missing, and is forgotten.
        present
            Members whose readings count, shape (members,): each device once, see `TickResult`.
        """
        if not self.names:
            return None
        row = np.where(present, self._rows.find(release.member), NO_ROW)
        value = self._state.current(row, since=since)
        values, n_left_out = group_values(value, release, attributes=self._state.attributes)
        self.n_left_out += n_left_out
        drop_old(self._rows, self._state, since=since)
        return values

    def forget(self, slot: Int32Array) -> None:
        """Forget the readings of these devices."""
        if self.names:
            row = self._rows.find(slot)
            self._state.forget(row[row != NO_ROW])

    def free(self, slots: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._rows.free(slots)
