"""The state of a running stream: its open windows, its accounts and its statistics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from anonymizer.algorithms.windows import NEVER, Windows
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import BatchHistogram, StreamAccounts
from anonymizer.pipeline.records.anonymize_window import Closing
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.join import Joined, OpenRecords
from anonymizer.pipeline.records.multisource_model import WINDOW_MODELS
from anonymizer.pipeline.records.part_intake import PartIntake
from anonymizer.pipeline.records.store_port import PartRow, Recalled, Store, Taken
from anonymizer.pipeline.records.topics import Route
from anonymizer.pipeline.records.window_model import WindowModel
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


class StreamState:
    """The state of one stream, restored from the store.

    Parameters
    ----------
    stream, store, limits
        The stream, where it is stored, and the limits of a message.
    key
        Returns the key that stands for an id of a vehicle; empty if the id is not usable.
    at_s
        Seconds of a monotonic clock.
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
        stored = store.recall(settings.name, shape=stream.shape, n_sources=len(settings.sources))
        self.stream = stream
        self.model = WINDOW_MODELS[settings.model](stream)
        self.accounts = StreamAccounts(stored.counts)
        self.stats = StreamStats()
        self.next_message = stored.next_message
        self.n_waiting = stored.n_waiting
        """Number of classes that wait to be published."""
        self._n_unpublished = stored.n_unpublished
        self._n_closing = 0
        self._added: dict[int, PartRow] = {}
        self._replaced: list[tuple[int, int]] = []
        self.records = OpenRecords.of(settings)
        self.records.restore(stored.parts)
        self.windows = Windows(
            stream.rule,
            stored.newest,
            at_s=at_s,
            floor=_floor(stored, stream),
            opened=self.records.windows(),
        )
        self._intake = PartIntake(
            stream,
            limits,
            key=key,
            windows=self.windows,
            records=self.records,
            next_part=max((part.number for part in stored.parts), default=0) + 1,
        )

    @property
    def n_held(self) -> int:
        """Number of parts that are neither published nor settled."""
        return self.records.n_parts + self._n_closing + self._n_unpublished

    def place(self, messages: Sequence[tuple[Route, bytes]], *, now: float, at_s: float) -> None:
        """Join the parts in messages, and settle those that are not kept.

        Parameters
        ----------
        messages
            Route and payload of each, in order of arrival.
        now, at_s
            The wall clock in unix seconds, and the seconds of a monotonic clock.
        """
        settled = [
            outcome
            for route, payload in messages
            if (outcome := self._place(route, payload, now, at_s)) is not Outcome.HELD
        ]
        self.accounts.receive(len(messages))
        self.accounts.settle_all(np.array(settled, np.uint8))

    def _place(self, route: Route, payload: bytes, now: float, at_s: float) -> Outcome:
        outcome, added, gone = self._intake.place(route, payload, now=now, at_s=at_s)
        if added is not None:
            self._added[added.number] = added
            if gone and self._added.pop(gone, None) is None:
                self._replaced.append((added.window, gone))
        return outcome

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
        due = []
        for window in self.windows.due(at_s=at_s):
            joined = self.records.take_of(self.stream, window)
            self.stats.n_windows += 1
            if joined.n:
                self._n_closing += int(joined.n_parts.sum())
                due.append((window, joined))
        return due

    def in_window(self, values_of: Mapping[int, Sequence[str]]) -> tuple[Stream, WindowModel]:
        """Return stream and model with the values of the open columns in a window."""
        stream = self.stream.in_window(values_of)
        if stream is self.stream:
            return stream, self.model
        return stream, WINDOW_MODELS[stream.settings.model](stream)

    def settle(self, joined: Joined, closing: Closing) -> None:
        """Account for a closed window."""
        for outcome in set(closing.outcome.tolist()) - {Outcome.PUBLISHED.value}:
            n = int(joined.n_parts[closing.outcome == outcome].sum())
            self.accounts.settle(Outcome(outcome), n)
        self._n_closing -= int(joined.n_parts.sum())
        self._n_unpublished += sum(closing.n_parts)
        self.n_waiting += len(closing.messages)
        self.next_message += len(closing.messages)
        self.stats.close(closing)

    def end(self, outcome: Outcome, *, n_classes: int, n_parts: int) -> None:
        """Account for classes that have waited: published, or suppressed."""
        self.accounts.settle(outcome, n_parts)
        self._n_unpublished -= n_parts
        self.n_waiting -= n_classes
        self.stats.n_messages += n_classes if outcome == Outcome.PUBLISHED else 0


def _floor(stored: Recalled, stream: Stream) -> int:
    """Return the first window that accepts parts, so that no time is released twice.

    This holds across declarations: two releases of the same time would together promise less
    than each of them.
    """
    floor = NEVER if stored.floor is None else stored.floor
    if stored.released_until == -inf:
        return floor
    inside = stream.rule.window_of(stored.released_until)
    begins = stream.rule.span(inside)[0]
    return max(floor, inside + (begins < stored.released_until))
