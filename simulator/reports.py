"""Reports of devices, and the sources of reports that the publisher plays."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from anonymizer.domain.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from anonymizer.files.traces import TraceWriter


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """Positions in the order in which they are due; all arrays have the shape (m,).

    Attributes
    ----------
    device
        Index of the device.
    due_s
        When to publish, in seconds of playing.
    lat, lon
        WGS84 degrees.
    ts
        Unix seconds to state; None: the moment at which the report is due.
    """

    device: IntArray
    due_s: FloatArray
    lat: FloatArray
    lon: FloatArray
    ts: FloatArray | None = None

    def __len__(self) -> int:
        """Return the number of reports."""
        return len(self.device)

    def __repr__(self) -> str:
        """Reveal neither device nor place."""
        return f"Reports({len(self)})"


class Due(Protocol):
    """Items to publish, in the order in which they are due."""

    @property
    def device(self) -> IntArray:
        """Index of the device of each item."""

    @property
    def due_s(self) -> FloatArray:
        """When to publish, in seconds of playing."""

    @property
    def ts(self) -> FloatArray | None:
        """Unix seconds to state; None: the moment at which each item is due."""

    def __len__(self) -> int:
        """Return the number of items."""


D_co = TypeVar("D_co", bound=Due, covariant=True)


class Playable(Protocol[D_co]):
    """A source of due items, which depend only on how far it has been played."""

    device_id: tuple[str, ...]
    """Id of each device."""
    rate_per_s: float
    """Average number of items due in a second of playing."""
    n_total: int | None
    """Number of items from start to end; None: endless."""

    @property
    def next_due_s(self) -> float:
        """When the next item is due, in seconds of playing; infinite at the end."""

    def take(self, until_s: float, *, limit: int) -> D_co:
        """Return the items due up to a moment, at most the oldest `limit`."""


Source: TypeAlias = Playable[Reports]
"""A source of reports."""


class Recording:
    """A source that also writes its reports to a trace.

    Times in the trace count from the start of playing and do not depend on the clock, so that
    equal traffic gives an equal file.
    """

    def __init__(self, source: Source, writer: "TraceWriter") -> None:
        self.device_id = source.device_id
        self.rate_per_s = source.rate_per_s
        self.n_total = source.n_total
        self._source = source
        self._writer = writer

    @property
    def next_due_s(self) -> float:
        """When the next report is due, in seconds of playing; infinite at the end."""
        return self._source.next_due_s

    def take(self, until_s: float, *, limit: int) -> Reports:
        """Return the reports due up to a moment, and write them."""
        reports = self._source.take(until_s, limit=limit)
        self._writer.write(reports.device, reports.due_s, reports.lat, reports.lon)
        return reports
