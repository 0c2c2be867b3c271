"""Accounts of a tick: outcomes are settled, and the positions that wait for a group remembered."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Release
from anonymizer.pipeline.ledger import NOT_THE_NEWEST, Ledger
from anonymizer.pipeline.ports import Outgoing


class Carried(NamedTuple):
    """The positions to be published with a release."""

    slot: Int32Array
    tag: FloatArray
    """`slot`, `tag`: device and tag of each, shape (n,); see `Positions`."""
    n_direct: int
    """The first so many are of this tick; the others had waited for a group."""


class TickPart(NamedTuple):
    """The messages of some devices in a tick."""

    messages: list[Outgoing]
    """To be published."""
    message_of: IntArray
    at_s: FloatArray
    """`message_of`, `at_s`: message that contains each position, and its monotonic arrival time,
    shape (n,)."""
    n_direct: int
    """The first so many positions arrived in this tick; the others had waited for a group."""
    n_told: IntArray
    """Devices of which each message tells, shape (messages,)."""


def part_of(
    messages: list[Outgoing], message_of_member: IntArray, release: Release, carried: Carried
) -> TickPart:
    """Return the messages of a release with the positions that they carry.

    Parameters
    ----------
    messages, message_of_member
        As returned by `ReleaseEncoder.encode`.
    release, carried
        The release, and the positions to be published with it, tagged with their arrival times.
    """
    n_slots = int(max(release.member.max(initial=-1), carried.slot.max(initial=-1))) + 1
    message_of_slot = np.full(n_slots, -1, np.int64)
    message_of_slot[release.member] = message_of_member
    n_told = np.bincount(message_of_member, minlength=len(messages))
    return TickPart(messages, message_of_slot[carried.slot], carried.tag, carried.n_direct, n_told)


def joined(parts: Sequence[TickPart]) -> TickPart:
    """Return all parts of a tick as one, with the positions that had waited at the end."""
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(len(part.messages) for part in parts)])
    message_of = [part.message_of + n for part, n in zip(parts, before.tolist(), strict=False)]
    cut = [part.n_direct for part in parts]
    return TickPart(
        [message for part in parts for message in part.messages],
        np.concatenate(
            [of[:n] for of, n in zip(message_of, cut, strict=True)]
            + [of[n:] for of, n in zip(message_of, cut, strict=True)]
        ),
        np.concatenate(
            [part.at_s[: part.n_direct] for part in parts]
            + [part.at_s[part.n_direct :] for part in parts]
        ),
        sum(cut),
        np.concatenate([part.n_told for part in parts]),
    )


class Accounts:
    """Settles the outcomes of a tick, and remembers the positions that wait for a group."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting = _WaitingRoom()

    @property
    def n_waiting(self) -> int:
        """Positions that wait, at most one per device."""
        return self._waiting.n

    def book(
        self,
        outcome: UInt8Array,
        slot: Int32Array,
        tag: FloatArray,
        *,
        grouped: Int32Array,
        lost: Int32Array,
    ) -> Carried:
        """Settle all final outcomes; return the positions to be published.

        Parameters
        ----------
        outcome, slot, tag
            Of each position of the tick, shape (n,). Tags are finite.
        grouped, lost
            Members of the release, and devices that will not be grouped where they were last.
        """
        newest = ~NOT_THE_NEWEST[outcome]
        displaced, _ = self._waiting.leave(slot[newest])
        self._ledger.settle(Outcome.SUPPRESSED__SUPERSEDED, len(displaced))
        out, waits = outcome == Outcome.PUBLISHED, outcome == Outcome.HELD
        self._waiting.enter(slot[waits], tag[waits])
        self._ledger.settle_all(outcome[~out & ~waits])
        grouped, grouped_tag = self._waiting.leave(grouped)
        gone, _ = self._waiting.leave(lost)
        self._ledger.settle(Outcome.SUPPRESSED__NEVER_GROUPED, len(gone))
        return Carried(
            np.concatenate([slot[out], grouped]),
            np.concatenate([tag[out], grouped_tag]),
            int(out.sum()),
        )

    def withdraw(self, slot: Int32Array) -> None:
        """Settle the positions that wait of devices that take no part any more."""
        gone, _ = self._waiting.leave(slot)
        self._ledger.settle(Outcome.SUPPRESSED__PRIVACY_ZONE, len(gone))

    def close(self) -> None:
        """Settle the positions that still wait: they will not be grouped."""
        self._ledger.settle(Outcome.SUPPRESSED__NEVER_GROUPED, self._waiting.close())

    def state(self) -> FloatArray:
        """Return the positions that wait."""
        return self._waiting.tag_of

    def restore(self, state: FloatArray) -> None:
        """Go on from a state."""
        self._waiting.restore(state)


class _WaitingRoom:
    """Tag of the waiting position of each device; NaN for none."""

    def __init__(self) -> None:
        self.n = 0
        self.tag_of = np.full(0, np.nan)

    def enter(self, slot: Int32Array, tag: FloatArray) -> None:
        """Add positions of devices that have none here."""
        if len(slot):
            more = int(slot.max()) + 1 - len(self.tag_of)
            if more > 0:
                room = np.full(max(more, len(self.tag_of)), np.nan)
                self.tag_of = np.concatenate([self.tag_of, room])
            self.tag_of[slot] = tag
            self.n += len(slot)

    def leave(self, slot: Int32Array) -> tuple[Int32Array, FloatArray]:
        """Remove the waiting positions of these devices; return their devices, rising, and tags."""
        if not self.n:
            return slot[:0], self.tag_of[:0]
        asked = np.zeros(len(self.tag_of), bool)  # to sort those that wait takes 20 times as long
        asked[slot[slot < len(asked)]] = True
        waiting = np.flatnonzero(asked & ~np.isnan(self.tag_of)).astype(np.int32)
        tag = self.tag_of[waiting]
        self.tag_of[waiting] = np.nan
        self.n -= len(waiting)
        return waiting, tag

    def restore(self, tag_of: FloatArray) -> None:
        """Replace all positions."""
        self.tag_of = tag_of.copy()
        self.n = int((~np.isnan(tag_of)).sum())

    def close(self) -> int:
        """Remove all positions; return how many waited."""
        n, self.n = self.n, 0
        self.tag_of[:] = np.nan
        return n
