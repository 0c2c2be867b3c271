"""Groups that last: what `session` knows of each until it ends."""

from dataclasses import dataclass

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, starts_of


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
