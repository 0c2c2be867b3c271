"""What devices report, and when: the sources that the publisher plays."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from anonymizer.domain.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from anonymizer.files.traces import TraceWriter


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """Positions that are due, in that order, all of shape (m,).

    Attributes
    ----------
    device
        Index of the device.
    due_s
        When to publish, in seconds of playing.
    lat, lon
        Degrees.
    ts
        Unix seconds to state; None: the moment of publishing as it was due.
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
        """Say nothing of who or where."""
        return f"Reports({len(self)})"


class Due(Protocol):
    """Whatever is due to be published, in that order."""

    @property
    def device(self) -> IntArray:
        """Index of the device that each is of."""

    @property
    def due_s(self) -> FloatArray:
        """When to publish, in seconds of playing."""

    @property
    def ts(self) -> FloatArray | None:
        """Unix seconds to state; None: the moment of publishing as it was due."""

    def __len__(self) -> int:
        """Return how many there are."""


D_co = TypeVar("D_co", bound=Due, covariant=True)


class Playable(Protocol[D_co]):
    """A stream of what is due, a pure function of how far it has been played."""

    device_id: tuple[str, ...]
    """Name of each device."""
    rate_per_s: float
    """How many are due a second of playing, on average."""
    n_total: int | None
    """All there are to come, from the start; None: without end."""

    @property
    def next_due_s(self) -> float:
        """When the next one is due; infinite at the end."""

    def take(self, until_s: float, *, limit: int) -> D_co:
        """Return what is due up to a moment, the oldest `limit` of them at most."""


Source: TypeAlias = Playable[Reports]
"""A stream of reports."""


class Recording:
    """A source that writes what is taken from it; times count from the start of playing.

    The times do not depend on the clock, so that equal traffic is an equal file.
    """

    def __init__(self, source: Source, writer: "TraceWriter") -> None:
        self.device_id = source.device_id
        self.rate_per_s = source.rate_per_s
        self.n_total = source.n_total
        self._source = source
        self._writer = writer

    @property
    def next_due_s(self) -> float:
        """When the next report is due; infinite at the end."""
        return self._source.next_due_s

    def take(self, until_s: float, *, limit: int) -> Reports:
        """Return the reports due up to a moment, and write them."""
        reports = self._source.take(until_s, limit=limit)
        self._writer.write(reports.device, reports.due_s, reports.lat, reports.lon)
        return reports
