"""Groups that live for an epoch, and when epochs end."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, starts_of


@dataclass(frozen=True, slots=True)
class Epochs:
    """When groups end and new ones are formed.

    `n_cells`: cells with phases of their own, a power of two; 1: all groups end together.
    `settle_s`: how long after the first position the first groups are formed, so that they are not
    made of only the first few devices.
    """

    n_cells: int = 8
    settle_s: float = 5.0

    def ends(self, now: float, length_s: float) -> FloatArray:
        """Return the next end of each cell's epoch after `now`, unix seconds, shape (cells,)."""
        phase = np.arange(self.n_cells) / self.n_cells
        ends = (np.floor(now / length_s - phase) + 1 + phase) * length_s
        # Because of rounding, an end that has just come can be computed as the next one.
        return np.where(ends > now, ends, ends + length_s)

    def next_try(self, now: float, length_s: float, *, waited_s: float) -> float:
        """Return when groups are formed next while nobody is in one, unix seconds.

        `waited_s`: time since the first position. Nobody waits longer than has been waited since
        then, nor longer than an epoch.

        Notes
        -----
        That somebody begins to be published tells that enough devices count now, and that too few
        did at the try before: who knows all others learns to within the time between two tries when
        the last one came. An epoch after the first position this time is an epoch, as for everybody
        who joins a fleet that is published. Before, it is the largest half, quarter and so on of
        one that is not above `waited_s`, so it grows with the time in which the last one can have
        come. Tries every `settle_s` would tell when the last vehicle of a small fleet sets off each
        morning, and so from where.

        The times are those of a clock, and divide each other, so no two of them are close together.
        The first device may be in no group, and still the time between two tries tells whether it
        came a quarter, a half or a whole epoch before the first group. Once an epoch has passed
        since it came, tries say nothing of it.
        """
        step_s = length_s
        while step_s > max(waited_s, 1.0):
            step_s /= 2
        return float(self.ends(now, step_s)[0])


class Serials(NamedTuple):
    """Numbers of groups: `first`, `first + step` and so on."""

    first: int = 0
    step: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class LastingGroups:
    """Living groups, with their members (slots) in compressed sparse rows.

    `k`, `serial`, `ends_at` (unix seconds), `due_at` (when it publishes next; inf if nothing more)
    and `beat_s` have the shape (groups,). Members of group g are
    `member[first_member_of[g]:first_member_of[g + 1]]`, device slots; `level` is that of the atom
    as which each is published, shape (members,).
    """

    k: Int32Array
    ends_at: FloatArray
    due_at: FloatArray
    beat_s: FloatArray
    serial: IntArray
    first_member_of: IntArray
    member: Int32Array
    level: IntArray

    def only(self, chosen: BoolArray) -> "LastingGroups":
        """Return the chosen groups."""
        sizes = np.diff(self.first_member_of)
        of_chosen = np.repeat(chosen, sizes)
        return LastingGroups(
            self.k[chosen],
            self.ends_at[chosen],
            self.due_at[chosen],
            self.beat_s[chosen],
            self.serial[chosen],
            starts_of(sizes[chosen]),
            self.member[of_chosen],
            self.level[of_chosen],
        )

    def without(self, gone: BoolArray) -> "LastingGroups":
        """Return these groups without the members whose slots are gone, shape (slots,)."""
        stays = ~gone[self.member]
        columns = {name: getattr(self, name) for name in LastingGroups.__slots__}
        columns["first_member_of"] = starts_of(stays.astype(np.int64))[self.first_member_of]
        columns["member"], columns["level"] = self.member[stays], self.level[stays]
        return LastingGroups(**columns)

    def joined(self, other: "LastingGroups") -> "LastingGroups":
        """Return these groups and then the others."""
        sizes = np.concatenate([np.diff(self.first_member_of), np.diff(other.first_member_of)])
        return LastingGroups(
            np.concatenate([self.k, other.k]),
            np.concatenate([self.ends_at, other.ends_at]),
            np.concatenate([self.due_at, other.due_at]),
            np.concatenate([self.beat_s, other.beat_s]),
            np.concatenate([self.serial, other.serial]),
            starts_of(sizes),
            np.concatenate([self.member, other.member]),
            np.concatenate([self.level, other.level]),
        )


NO_GROUPS = LastingGroups(
    np.zeros(0, np.int32),
    np.zeros(0),
    np.zeros(0),
    np.zeros(0),
    np.zeros(0, np.int64),
    np.zeros(1, np.int64),
    np.zeros(0, np.int32),
    np.zeros(0, np.int64),
)
