"""The state of a running stream: its open windows, its accounts and its statistics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from anonymizer.algorithms.windows import NEVER, Windows
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.histograms import BatchHistogram
from anonymizer.pipeline.ledger import StreamAccounts
from anonymizer.pipeline.records.anonymize_window import Closing
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.join import Joined
from anonymizer.pipeline.records.open_stream import KeptPart, OpenStream
from anonymizer.pipeline.records.store_port import PartRow, Recalled, Store, Taken
from anonymizer.pipeline.records.window_model import WindowModel
from anonymizer.pipeline.records.window_models import WINDOW_MODELS
from anonymizer.settings import LimitSettings

_SECOND_EDGES = tuple(0.001 * 2 ** (i / 2) for i in range(35))  # 1 ms to 2 min
_SIZE_EDGES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 50, 75, 100, 200, 500, 1000)


@dataclass(slots=True)
class StreamStats:
    """Statistics of a stream; the counts only grow."""

    n_windows: int = 0
    """Closed windows."""
    n_classes: int = 0
    """Classes of all windows."""
    n_unverified: int = 0
    """Classes that independent verification refused."""
    n_messages: int = 0
    """Messages that the broker accepted."""
    close_s: BatchHistogram = field(default_factory=lambda: BatchHistogram(_SECOND_EDGES))
    """Time it took to anonymize a window."""
    class_size: BatchHistogram = field(default_factory=lambda: BatchHistogram(_SIZE_EDGES))
    """Number of vehicles in each class."""
    silent: frozenset[int] = frozenset()
    """Sources that were silent in the last closed window that was not empty."""
    last: dict[str, float] = field(default_factory=dict)
    """Summary of the last closed window that was not empty."""

    def close(self, closing: Closing) -> None:
        """Add the result of a window."""
        self.n_classes += len(closing.messages)
        self.n_unverified += closing.n_unverified
        self.close_s.observe(closing.seconds)
        self.class_size.observe(closing.sizes)
        self.silent = frozenset(closing.silent)
        self.last = dict(closing.summary)


class StreamState(OpenStream):
    """The state of one stream, restored from the store.

    `key` returns the key that stands for an id of a vehicle; empty if the id is not usable. `at_s`:
    monotonic.
    """

    def __init__(
        self,
        stream: Stream,
        store: Store,
        limits: LimitSettings,
        *,
        key: Callable[[str], bytes],
        at_s: float,
    ) -> None:
        settings = stream.settings
        stored = store.recall(
            settings.name,
            shape=stream.shape,
            n_sources=len(settings.sources),
            histories=stream.histories,
        )
        self.accounts = StreamAccounts(stored.counts)
        super().__init__(
            stream,
            limits,
            key=key,
            accounts=self.accounts,
            at_s=at_s,
            newest=stored.newest,
            floor=_floor(stored, stream),
            parts=stored.parts,
            released=[_windows_of(stream, *span) for span in stored.released],
        )
        self.model = WINDOW_MODELS[settings.model](stream)
        self.stats = StreamStats()
        self.next_message = stored.next_message
        self.n_waiting = stored.n_waiting
        """Number of classes that wait to be published."""
        self._n_unpublished = stored.n_unpublished
        self._added: dict[int, PartRow] = {}
        self._replaced: list[tuple[int, int]] = []

    @property
    def n_held(self) -> int:
        """Number of parts that are neither published nor settled."""
        return super().n_held + self._n_unpublished

    def store(self, kept: Sequence[KeptPart]) -> None:
        """Note parts that are to be stored, and those that they replace."""
        for part, gone in kept:
            self._added[part.number] = part
            if gone and self._added.pop(gone, None) is None:
                self._replaced.append((part.window, gone))

    def taken(self) -> Taken:
        """Return the changes since the last call."""
        added, self._added = self._added, {}
        replaced, self._replaced = self._replaced, []
        floor = self.windows.floor
        return Taken(
            self.stream.settings.name,
            added.values(),
            replaced,
            self.windows.newest_open,
            None if floor == NEVER else floor,
            self.accounts.news(),
        )

    def due(self, *, at_s: float) -> list[tuple[int, Joined]]:
        """Return the windows that are due and not empty, oldest first."""
        windows = self.windows.due(at_s=at_s)
        self.stats.n_windows += len(windows)
        due = ((window, self.take(window).meant()) for window in windows)
        return [(window, joined) for window, joined in due if joined.n]

    def in_window(self, values_of: Mapping[int, Sequence[str]]) -> tuple[Stream, WindowModel]:
        """Return stream and model with the values of the open columns in a window."""
        stream = self.stream.in_window(values_of)
        if stream is self.stream:
            return stream, self.model
        return stream, WINDOW_MODELS[stream.settings.model](stream)

    def close(self, joined: Joined, closing: Closing) -> None:
        """Account for a closed window: what has a class is settled when the broker has it."""
        left = closing.outcome != Outcome.PUBLISHED
        self.settle(joined.n_parts[left], closing.outcome[left])
        self.settle_silent(closing)
        n_published = sum(closing.n_parts)
        self._n_closing -= n_published
        self._n_unpublished += n_published
        self.n_waiting += len(closing.messages)
        self.next_message += len(closing.messages)
        self.stats.close(closing)

    def end(self, outcome: Outcome, *, n_classes: int, n_parts: int) -> None:
        """Account for classes that have waited: published, or suppressed."""
        self.accounts.settle(outcome, n_parts)
        self._n_unpublished -= n_parts
        self.n_waiting -= n_classes
        self.stats.n_messages += n_classes if outcome == Outcome.PUBLISHED else 0


def ahead_until(windows: Windows, *, now: float) -> float | None:
    """Return the time that windows begin at, if no clock that is right can have put it there.

    `now`: the wall clock in unix seconds. All parts of before that time are late.
    """
    until = windows.rule.span(windows.floor)[0]
    return until if until > now + windows.rule.max_ahead_s + windows.rule.length_s else None


def _windows_of(stream: Stream, start: float, end: float) -> range:
    """Return the windows that share more than an instant with a time span."""
    rule = stream.rule
    last = rule.window_of(end)
    return range(rule.window_of(start), last + (rule.span(last)[0] < end))


def _floor(stored: Recalled, stream: Stream) -> int:
    """Return the first window that accepts parts, so that no time is released twice.

    This holds across declarations: two releases of the same time would together promise less
    than each of them.
    """
    floor = NEVER if stored.floor is None else stored.floor
    if stored.released_until == -inf:
        return floor
    return max(floor, _windows_of(stream, stored.released_until, stored.released_until).stop)
