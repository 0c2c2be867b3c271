"""What the records flow asks of a store: every method is one transaction, durable on return.

What was published of windows, as it can be asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Protocol

from anonymizer.pipeline.ports import Outgoing

MOST_RECENT = 65_536
"""Messages whose digests are kept: no client can have more of them on their way to it."""
DIGEST_BYTES = 8


class PartRow(NamedTuple):
    """The newest part of one source of one vehicle in one window.

    `number` tells it from all other parts of its stream that are stored.
    """

    number: int
    window: int
    vehicle: bytes
    source: int
    ts: float
    cells: bytes

    def __repr__(self) -> str:
        """Say nothing of who or what."""
        return "PartRow(...)"


class Waiting(NamedTuple):
    """A class that waits for the broker."""

    number: int
    stream: str
    n_parts: int
    message: Outgoing


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recalled:
    """What is stored of one stream.

    Attributes
    ----------
    newest
        Newest event time of each source; empty: the stream is new, or declared anew.
    floor
        Windows before this one are closed; None: none is.
    parts
        Of the open windows.
    counts
        The accounts, `RECEIVED` included.
    n_waiting, n_unpublished
        Classes that wait for the broker, and the parts in them.
    next_message
        Number of the stream's next message.
    released_until
        End of the last window that is stored as closed, under whatever declaration; -inf: none.
    """

    newest: Sequence[float]
    floor: int | None
    parts: Sequence[PartRow]
    counts: Mapping[str, int]
    n_waiting: int
    n_unpublished: int
    next_message: int
    released_until: float = -inf


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Taken:
    """What a batch of arrivals changes in one stream.

    `replaced` are the numbers of parts that newer ones replace; `news` is added to the accounts.
    """

    stream: str
    parts: Iterable[PartRow]
    replaced: Sequence[int]
    newest: Sequence[float]
    floor: int | None
    news: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClosedWindow:
    """What closing a window changes: all of it or nothing.

    Attributes
    ----------
    stream, window, start, end
        Which one.
    at
        Unix seconds.
    messages
        One for each class, to be published.
    n_parts
        Parts in each class, shape as `messages`.
    memory
        What is remembered of vehicles across windows, by key.
    forget_before
        Vehicles not published since this window are forgotten.
    news
        What is added to the accounts.
    floor, next_message
        As in `Recalled`, after it.
    summary
        What is known of the window: sizes and measures, no value of a record.
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
    floor: int
    news: Mapping[str, int]
    next_message: int
    summary: Mapping[str, float]


class Store(Protocol):
    """Keeps records from acknowledgement to publication. Used from one thread at a time."""

    @property
    def secret(self) -> bytes:
        """A key that was drawn when the store was made."""

    def recall(self, stream: str, *, shape: str, n_sources: int) -> Recalled:
        """Return what is stored of a stream.

        Where it was declared otherwise, the parts of its open windows mean nothing any more: they
        are erased and settled as redeclared.
        """

    def recent(self) -> Sequence[bytes]:
        """Return the digests of the last messages taken, oldest first."""

    def take(self, batches: Sequence[Taken], digests: bytes) -> None:
        """Keep what a batch of arrivals changes."""

    def memories(self, stream: str, vehicles: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return what is remembered of vehicles, by key; the unknown are left out."""

    def close_window(self, closed: ClosedWindow) -> None:
        """Close a window and erase its parts."""

    def waiting(self, *, limit: int) -> list[Waiting]:
        """Return the classes that wait for the broker, oldest first."""

    def published(
        self, numbers: Sequence[int], news: Mapping[str, Mapping[str, int]], *, at: float
    ) -> None:
        """Mark classes as taken by the broker; `news`, by stream, is added to the accounts."""


@dataclass(frozen=True, slots=True)
class Release:
    """One window that was anonymized, and of which every class was published.

    Attributes
    ----------
    stream, window
        Which one.
    start, end
        Unix seconds of event time.
    closed_at
        When it was anonymized, unix seconds.
    summary
        Sizes and measures; no value of a record.
    """

    stream: str
    window: int
    start: float
    end: float
    closed_at: float
    summary: Mapping[str, float]

    @property
    def k(self) -> int:
        """The k that each of its classes keeps."""
        return int(self.summary.get("promised_k", self.summary["k"]))

    @property
    def n_records(self) -> int:
        """Records of the window, published or not."""
        return int(self.summary["records"])

    @property
    def n_published(self) -> int:
        """Records in its classes."""
        return int(self.summary["published"])

    @property
    def n_classes(self) -> int:
        """Its classes."""
        return int(self.summary["classes"])


class ReleaseStore(Protocol):
    """Where releases are; every call may come from another thread."""

    def within(self, stream: str, *, start: float, end: float, limit: int) -> Sequence[Release]:
        """Return the releases whose windows lie within a time, oldest first."""

    def newest(self, streams: Sequence[str], *, limit: int, offset: int) -> Sequence[Release]:
        """Return releases of streams, newest first."""

    def count(self, streams: Sequence[str]) -> int:
        """Return how many releases of streams there are."""

    def classes(self, release: Release) -> Sequence[bytes]:
        """Return the classes of a release, as published; fewer when it is being erased."""
