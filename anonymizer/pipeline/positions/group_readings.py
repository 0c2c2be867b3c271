"""Readings on their way: from the columns of a tick to what is told of each group."""

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
    """What a release says of its members' readings.

    Attributes
    ----------
    groups
        For each group, attribute -> statistic -> number.
    own
        Attribute -> each member's own value, for the attributes that are published so.
    """

    groups: Sequence[dict[str, dict[str, float]]]
    own: dict[str, list[float | None]]


class GroupReadings:
    """Keeps the newest readings of present devices and tells of them by group.

    Attributes
    ----------
    n_clamped, n_left_out
        Readings outside their declared range, and groups in which too few members had one,
        so far, shape (attributes,).
    """

    def __init__(self, declared: Sequence[ReadingSettings], *, ttl_s: float) -> None:
        self._state = ReadingsState([each.attribute for each in declared], ttl_s=ttl_s)
        self.names = tuple(self._state.index_of)
        self.n_clamped: IntArray = np.zeros(len(declared), np.int64)
        self.n_left_out: IntArray = np.zeros(len(declared), np.int64)

    @property
    def index_of(self) -> dict[str, int]:
        """The declared attributes; all others are dropped on arrival."""
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
            The position each came with, the index of what it is of, and its value (finite),
            shape (readings,).
        slot, ts
            Of each position, shape (positions,). One that was refused has no slot, and its
            readings leave no trace.
        """
        if len(row):
            ours = slot[row] != NO_SLOT
            row = row[ours]
            self.n_clamped += self._state.advance(slot[row], attribute[ours], value[ours], ts[row])

    def tell(self, release: Release, *, now: float) -> GroupValues | None:
        """Return what is told of a release; None where no attribute is declared."""
        if not self.names:
            return None
        value = self._state.current(release.member, now=now)
        summaries = summarize(
            value, release.first_member_of, release.k, attributes=self._state.attributes
        )
        self.n_left_out += summaries.n_left_out
        return GroupValues(summaries.published(), summaries.own_values(value, release.first_member_of))

    def forget(self, slot: Int32Array) -> None:
        """Clear slots that were set free."""
        self._state.forget(slot)
