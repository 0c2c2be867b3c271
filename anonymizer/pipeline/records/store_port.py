"""Ports of the records flow: the store of its state, and the store of its releases.

Every method of `Store` is one transaction, and its changes are durable when it returns, or those of
many are together (`Store.at_once`).
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple, Protocol

from anonymizer.domain.discreet import discreet
from anonymizer.pipeline.ports import Outgoing

_FORGET_AFTER = 1000
_FORGET_AFTER_S = 366 * 86_400.0


def forgotten_before(window: int, *, length_s: float) -> int:
    """Return the window since which a vehicle must have been published to be remembered in this.

    Who comes later is a newcomer, whose new cover leaves fewer values together with the earlier
    one. So it takes a year, and 1,000 windows: a weekend has 4,000 of a minute.
    """
    return window - max(_FORGET_AFTER, ceil(_FORGET_AFTER_S / length_s))


@discreet
class PartRow(NamedTuple):
    """The newest part of one source of one vehicle in one window.

    `number` is unique among the stored parts of its stream.
    """

    number: int
    window: int
    vehicle: bytes
    source: int
    ts: float
    cells: bytes


class Waiting(NamedTuple):
    """A class that waits to be published."""

    number: int
    stream: str
    n_parts: int
    message: Outgoing


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recalled:
    """The stored state of one stream."""

    newest: Sequence[float]
    """Newest event time of each source, -inf for none; see `Windows.newest_open`."""
    floor: int | None
    """Windows before this one are closed; None: no window is closed."""
    parts: Sequence[PartRow]
    """Parts of the open windows."""
    counts: Mapping[str, int]
    """The accounts, including `RECEIVED`."""
    n_waiting: int
    n_unpublished: int
    """`n_waiting`, `n_unpublished`: number of classes that wait to be published, and of the parts
    in them."""
    next_message: int
    """Number of the stream's next message."""
    released_until: float = -inf
    """End of the last closed window, under any declaration, but for `released`; -inf: none."""
    released: Sequence[tuple[float, float]] = ()
    """Start and end of times that were closed by a clock that was ahead, see `Store.go_on`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Taken:
    """The changes to one stream by a batch of messages.

    `replaced` has the window and number of each part that a newer one replaces; `news` is added to
    the accounts.
    """

    stream: str
    parts: Iterable[PartRow]
    replaced: Sequence[tuple[int, int]]
    newest: Sequence[float]
    floor: int | None
    news: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClosedWindow:
    """The changes of closing a window, which are made all or not at all.

    `start`, `end`: event time in unix seconds; `at`: when it is closed. `messages`: one for each
    class, to be published; `n_parts`: parts in each. `memory`: new histories of vehicles across
    windows, by key; those not published since `forget_before` are forgotten. `news`: counts to add
    to the accounts. `newest`, `floor`, `next_message`: as in `Recalled`, after the window is
    closed. `summary`: sizes and measures; no value of a record.
    """

    stream: str
    window: int
    start: float
    end: float
    at: float
    messages: Sequence[Outgoing]
    n_parts: Sequence[int]
    memory: Mapping[bytes, bytes]
    forget_before: int
    newest: Sequence[float]
    floor: int
    news: Mapping[str, int]
    next_message: int
    summary: Mapping[str, float]


class Store(Protocol):
    """Stores records from acknowledgement to publication. Used by one thread at a time.

    Every method raises StoreError if the store cannot be used at present; it has changed nothing
    then.
    """

    @property
    def secret(self) -> bytes:
        """The key that was generated when the store was created."""

    @property
    def folds_ids(self) -> bool:
        """Whether its vehicles have one key for all writings of an id (`vehicle_key`).

        Stores of earlier versions go on with a key for each plain form: histories have no ids.
        """

    def at_once(self) -> AbstractContextManager[None]:
        """Make all changes of the block, or none: a disk takes 20 ms each time that it is asked."""

    def recall(self, stream: str, *, shape: str, n_sources: int, histories: str = "") -> Recalled:
        """Return the stored state of a stream.

        If its declaration has changed, the parts of its open windows have lost their meaning:
        they are erased and settled as redeclared. So are the histories of its vehicles, unless
        `histories` says that they mean the same.
        """

    def check_space(self) -> None:
        """Raise StoreError if so little space is left that no more records should be stored.

        Open windows can still be closed and published.
        """

    def take(self, batches: Sequence[Taken], places: Mapping[str, int]) -> None:
        """Store the changes of a batch of messages, and how far a transport was read for them.

        `places` has the offset behind the last message of each partition; see `kept_places`.
        """

    def erase(self, stream: str, parts: Sequence["PartRow"], news: Mapping[str, int]) -> None:
        """Erase parts of open windows, so that nothing of them is left on the disk.

        `news` is added to the accounts of the stream.
        """

    def kept_places(self) -> Mapping[str, int]:
        """Return the place from which each partition is to be read, by its name."""

    def memories(self, stream: str, vehicles: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the histories of vehicles, by key; unknown vehicles are left out."""

    def close_window(self, closed: ClosedWindow) -> None:
        """Close a window and erase its parts, so that nothing of them is left on the disk."""

    def go_on(self, stream: str, *, floor: int, starts: float) -> int:
        """Let a stream whose windows were closed by a clock that was ahead go on.

        It accepts parts from the window `floor` on, which begins at `starts`, but for windows of
        later times that are closed already. The parts of open windows have their times from that
        clock: they are erased, and settled as late. Return their number.
        """

    def waiting(self, *, limit: int) -> list[Waiting]:
        """Return the classes that wait to be published, oldest first."""

    def published(
        self, numbers: Sequence[int], news: Mapping[str, Mapping[str, int]], *, at: float
    ) -> None:
        """Mark classes as accepted by the broker; `news`, by stream, is added to the accounts."""

    def suppressed(self, numbers: Sequence[int], news: Mapping[str, Mapping[str, int]]) -> None:
        """Erase classes that will not be published; `news` as for `published`."""


@dataclass(frozen=True, slots=True)
class PublishedWindow:
    """A published window: one whose classes have all been published. Times are unix seconds."""

    stream: str
    window: int
    start: float
    end: float
    closed_at: float
    summary: Mapping[str, float]

    @property
    def k(self) -> int:
        """The k that every class guarantees."""
        return int(self.summary.get("promised_k", self.summary["k"]))

    @property
    def n_records(self) -> int:
        """Number of records in the window, published or not."""
        return int(self.summary["records"])

    @property
    def n_published(self) -> int:
        """Number of records in its classes."""
        return int(self.summary["published"])

    @property
    def n_classes(self) -> int:
        """Number of its classes."""
        return int(self.summary["classes"])


class ReleaseStore(Protocol):
    """Stores releases; every call may come from another thread."""

    def within(
        self, stream: str, *, start: float, end: float, limit: int
    ) -> Sequence[PublishedWindow]:
        """Return the releases whose windows are within a time span, oldest first."""

    def newest(
        self, streams: Sequence[str], *, limit: int, offset: int
    ) -> Sequence[PublishedWindow]:
        """Return the releases of some streams, newest first."""

    def count(self, streams: Sequence[str]) -> int:
        """Return the number of releases of some streams."""

    def classes(self, release: PublishedWindow, *, limit: int = -1) -> Sequence[bytes]:
        """Return the published payloads of a release, or the first; fewer if some are erased."""
