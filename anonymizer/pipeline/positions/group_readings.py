"""Readings in the flow: from the columns of a tick to what is published about each group."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.positions.readings import ReadingsState, summarize
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.release import Release
from anonymizer.pipeline.devices import NO_SLOT
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


class GroupReadings:
    """Keeps the newest readings of the devices present, and summarizes them by group.

    Attributes
    ----------
    n_clamped, n_left_out
        Readings outside their declared range, and groups in which fewer than k members had one,
        so far, shape (attributes,).
    """

    def __init__(self, declared: Sequence[ReadingSettings]) -> None:
        self._state = ReadingsState([each.attribute for each in declared])
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
                slot[row], attribute[accepted], value[accepted], ts[row]
            )

    def summarize(self, release: Release, *, since: float) -> GroupValues | None:
        """Return the published readings of a release; None if no attribute is declared.

        A value that is older than `since` (unix seconds) counts as missing.
        """
        if not self.names:
            return None
        value = self._state.current(release.member, since=since)
        summaries = summarize(
            value, release.first_member_of, release.k, attributes=self._state.attributes
        )
        self.n_left_out += summaries.n_left_out
        own = summaries.own_values(value, release.first_member_of)
        return GroupValues(summaries.published(), own)

    def forget(self, slot: Int32Array) -> None:
        """Clear freed slots."""
        self._state.forget(slot)
