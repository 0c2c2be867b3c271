"""What is measured of a stream beside its accounts."""

from dataclasses import dataclass, field

from anonymizer.pipeline.histogram import BatchHistogram
from anonymizer.pipeline.records.anonymize_window import Closing

_SECOND_EDGES = tuple(0.001 * 2 ** (i / 2) for i in range(35))  # 1 ms to 2 min
_SIZE_EDGES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 50, 75, 100, 200, 500, 1000)


@dataclass(slots=True)
class StreamStats:
    """Counts grow; what is `last` is of the last window that closed with anything in it."""

    n_windows: int = 0
    """Closed."""
    n_classes: int = 0
    """Of all windows."""
    n_unverified: int = 0
    """Classes that independent verification refused."""
    n_messages: int = 0
    """Taken by the broker."""
    close_s: BatchHistogram = field(default_factory=lambda: BatchHistogram(_SECOND_EDGES))
    """Time it took to anonymize a window."""
    class_size: BatchHistogram = field(default_factory=lambda: BatchHistogram(_SIZE_EDGES))
    """Vehicles of each class."""
    last: dict[str, float] = field(default_factory=dict)
    """Summary of the last window."""

    def close(self, closing: Closing) -> None:
        """Take in what became of a window."""
        self.n_classes += len(closing.messages)
        self.n_unverified += closing.n_unverified
        self.close_s.observe(closing.seconds)
        self.class_size.observe(closing.sizes)
        self.last = dict(closing.summary)
