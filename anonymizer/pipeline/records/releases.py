"""What was published of windows, as it can be asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


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
