"""The release of one tick: groups of devices that share a cloaking region."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anonymizer.domain.arrays import (
    BoolArray,
    FloatArray,
    Int32Array,
    IntArray,
    UInt8Array,
    starts_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """Groups in compressed sparse rows; devices appear by slot only, never by name."""

    k: Int32Array
    """The k that each group was formed for, shape (groups,)."""
    first_node_of: IntArray
    node: Int32Array
    """`first_node_of`, `node`: region of group g: `node[first_node_of[g]:first_node_of[g + 1]]`,
    node indices."""
    first_member_of: IntArray
    member: Int32Array
    """`first_member_of`, `member`: members of group g: `member[first_member_of[g]:first_member_of[g
    + 1]]`, device slots."""
    version: IntArray
    """Version of each member's pseudonym, shape (members,): a new version is a new pseudonym."""
    until: FloatArray | None = None
    """Unix seconds until which the region of each group holds, shape (groups,): by then the group
    publishes again, or has ended. None: for as long as its members count as present."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.k)

    def only(self, chosen: BoolArray) -> "Release":
        """Return the release of only the chosen groups."""
        n_nodes, n_members = np.diff(self.first_node_of), np.diff(self.first_member_of)
        of_chosen = np.repeat(chosen, n_members)
        return Release(
            k=self.k[chosen],
            first_node_of=starts_of(n_nodes[chosen]),
            node=self.node[np.repeat(chosen, n_nodes)],
            first_member_of=starts_of(n_members[chosen]),
            member=self.member[of_chosen],
            version=self.version[of_chosen],
            until=None if self.until is None else self.until[chosen],
        )

    def at_nodes(self, nodes: Int32Array) -> "Release":
        """Return the release with its nodes named by what these are numbers of."""
        return replace(self, node=nodes[self.node])


def joined_releases(parts: Sequence[Release]) -> Release:
    """Return the groups of all parts, of which there is one at least."""
    ends = [part.until for part in parts if part.until is not None]
    return Release(
        k=np.concatenate([part.k for part in parts]),
        first_node_of=starts_of(np.concatenate([np.diff(part.first_node_of) for part in parts])),
        node=np.concatenate([part.node for part in parts]),
        first_member_of=starts_of(
            np.concatenate([np.diff(part.first_member_of) for part in parts])
        ),
        member=np.concatenate([part.member for part in parts]),
        version=np.concatenate([part.version for part in parts]),
        until=np.concatenate(ends) if len(ends) == len(parts) else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Cloaked:
    """The result of cloaking one tick."""

    release: Release
    """Groups and their regions; members may be devices that did not report."""
    outcome: UInt8Array
    """For each reporting device `PUBLISHED` if it is in the release, `HELD` if it waits for a later
    one, else the reason why it is suppressed."""
