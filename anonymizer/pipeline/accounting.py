"""Accounting of both flows: ledgers of outcomes, accounts of a tick, and histograms.

received = published + suppressed{reason} + invalid{reason} + late + duplicate + held holds at
every moment for positions, and after every transaction of the store for parts of records. `held`
is counted where things are held, not derived as the difference, so that anything lost shows as
an imbalance.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Release
from anonymizer.pipeline.ports import Outgoing

FINAL = tuple(outcome for outcome in Outcome if outcome is not Outcome.HELD)
_FINAL: IntArray = np.array(FINAL, np.int64)


class Ledger:
    """Counts of what was received, and of its final outcomes. Counts only grow."""

    def __init__(self) -> None:
        self.n_received = 0
        self._n_of: IntArray = np.zeros(256, np.int64)

    def receive(self, n: int) -> None:
        """Count arrivals. A message counts as one position until it is decoded."""
        self.n_received += n

    def settle(self, outcome: Outcome, n: int = 1) -> None:
        """Count `n` with this final outcome."""
        self._n_of[outcome] += n

    def settle_all(self, outcome: UInt8Array) -> None:
        """Count a batch of final outcomes."""
        self._n_of += np.bincount(outcome, minlength=256)

    def add(self, other: "Ledger") -> None:
        """Add the counts of another ledger, which stay there as well."""
        self.n_received += other.n_received
        self._n_of += other._n_of  # noqa: SLF001  of the same class

    def absorb(self, other: "Ledger") -> None:
        """Move the counts of another ledger to this one."""
        self.add(other)
        other.n_received = 0
        other._n_of[:] = 0  # noqa: SLF001  of the same class

    def state(self) -> dict[str, Any]:
        """Return all counts."""
        return {"received": self.n_received, "of": self._n_of}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.n_received, self._n_of = state["received"], state["of"]

    def n(self, outcome: Outcome) -> int:
        """Return the count of an outcome."""
        return int(self._n_of[outcome])

    @property
    def n_settled(self) -> int:
        """Sum of the counts of all final outcomes."""
        return int(self._n_of.sum())

    def counts(self) -> dict[Outcome, int]:
        """Return the count of every final outcome, in order, zeros included."""
        return dict(zip(FINAL, self._n_of[_FINAL].tolist(), strict=True))


class BatchHistogram:
    """Histogram that takes whole batches: counts of values by upper edge, as in Prometheus.

    Parameters
    ----------
    edges
        Rising upper edges, inclusive; values beyond the last count towards infinity.
    interpolate
        Whether values may lie anywhere between two edges (> 0), as durations do. Quantiles are
        then interpolated, evenly in the logarithm. Otherwise a quantile is an upper edge, which
        is exact for whole numbers with edges at each.
    """

    def __init__(self, edges: Sequence[float], *, interpolate: bool = False) -> None:
        self.edges = tuple(edges)
        self._edges = np.array(self.edges, np.float64)
        self.total = 0.0
        self._interpolate = interpolate
        self.counts: IntArray = np.zeros(len(self.edges) + 1, np.int64)

    def observe(self, values: ArrayLike) -> None:
        """Take in a batch of values, any shape."""
        batch = np.asarray(values, np.float64).ravel()
        self.total += float(batch.sum())
        # To sort 400 values and look edges up takes a quarter of the time of looking values up.
        n_up_to = np.sort(batch).searchsorted(self._edges, side="right")
        self.counts[:-1] += n_up_to
        self.counts[1:] -= n_up_to
        self.counts[-1] += len(batch)

    @property
    def n(self) -> int:
        """Number of values taken in."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Mean of all values; NaN if there are none."""
        return self.total / self.n if self.n else math.nan

    def cumulative(self) -> list[int]:
        """Return how many values are at or below each edge; the last item is for infinity."""
        counts: list[int] = np.cumsum(self.counts).tolist()
        return counts

    def quantile(self, q: float) -> float:
        """Return the value at or below which a share `q` of the values lies; NaN if empty.

        Beyond the last edge it is that edge, as in Prometheus.
        """
        counts = self.cumulative()
        n = counts[-1]
        if n == 0:
            return math.nan
        at = next(i for i, count in enumerate(counts) if count and count >= q * n)
        if not (self._interpolate and 0 < at < len(self.edges)):
            return self.edges[min(at, len(self.edges) - 1)]
        low, high = self.edges[at - 1], self.edges[at]
        share = (q * n - counts[at - 1]) / (counts[at] - counts[at - 1])
        return float(low * (high / low) ** share)

    def copy(self) -> "BatchHistogram":
        """Return a histogram with the same values."""
        return self.since(BatchHistogram(self.edges))

    def since(self, earlier: "BatchHistogram") -> "BatchHistogram":
        """Return a histogram of the values taken in after `earlier`, a copy of this one."""
        rest = BatchHistogram(self.edges, interpolate=self._interpolate)
        rest.total = self.total - earlier.total
        rest.counts = self.counts - earlier.counts
        return rest

    def plus(self, other: "BatchHistogram") -> "BatchHistogram":
        """Return a histogram of the values of both, which have the same edges."""
        both = self.copy()
        both._interpolate = self._interpolate  # noqa: SLF001  of the same class
        both.total += other.total
        both.counts = both.counts + other.counts
        return both


RECEIVED = "received"


def label_of(outcome: Outcome) -> str:
    """Return the label of an outcome in the stored accounts: `late`, `suppressed/overload`."""
    return "/".join(filter(None, outcome.label))


_LABEL_OF = {outcome: label_of(outcome) for outcome in Outcome}
_OUTCOME_OF = {label: outcome for outcome, label in _LABEL_OF.items()}


class StreamAccounts(Ledger):
    """The ledger of one stream, which continues the stored accounts; it counts parts of records.

    Parameters
    ----------
    stored
        Counts by label.
    """

    def __init__(self, stored: Mapping[str, int]) -> None:
        super().__init__()
        self.receive(stored.get(RECEIVED, 0))
        for label, n in stored.items():
            if label != RECEIVED:
                self.settle(_OUTCOME_OF[label], n)
        self._booked = self._all()

    def news(self) -> dict[str, int]:
        """Return the counts since the previous call, to be added to the stored accounts."""
        now, before = self._all(), self._booked
        self._booked = now
        return {
            label: n - before.get(label, 0) for label, n in now.items() if n != before.get(label)
        }

    def _all(self) -> dict[str, int]:
        counts = {_LABEL_OF[outcome]: n for outcome, n in self.counts().items() if n}
        return {RECEIVED: self.n_received} | counts if self.n_received else counts


def among(outcomes: Iterable[Outcome]) -> BoolArray:
    """Return whether each outcome is one of these, shape (256,)."""
    chosen = np.zeros(256, bool)  # to be indexed: of a few outcomes, isin takes 50 times as long
    chosen[list(outcomes)] = True
    return chosen


NOT_THE_NEWEST = among((Outcome.LATE, Outcome.DUPLICATE, Outcome.SUPPRESSED__SUPERSEDED))
"""Whether each outcome is one of positions than which a newer one is known, shape (256,)."""
NOT_PUBLISHED = among(
    outcome
    for outcome in Outcome
    if outcome.label[0] == "suppressed" and outcome is not Outcome.SUPPRESSED__SUPERSEDED
)
"""Whether each is one of positions in place of which nothing newer was published either."""


class Carried(NamedTuple):
    """The positions to be published with a release.

    Attributes
    ----------
    slot, tag
        Device and tag of each, shape (n,); see `Positions`.
    n_direct
        The first so many are of this tick; the others had waited for a group.
    """

    slot: Int32Array
    tag: FloatArray
    n_direct: int


class TickPart(NamedTuple):
    """The messages of some devices in a tick.

    Attributes
    ----------
    messages
        To be published.
    message_of, at_s
        Message that contains each position, and its monotonic arrival time, shape (n,).
    n_direct
        The first so many positions arrived in this tick; the others had waited for a group.
    n_told
        Devices of which each message tells, shape (messages,).
    """

    messages: list[Outgoing]
    message_of: IntArray
    at_s: FloatArray
    n_direct: int
    n_told: IntArray


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
