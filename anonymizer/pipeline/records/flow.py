"""The records flow on top of its store: messages in, windows closed, classes out.

Every method that changes anything is one transaction of the store, and the state in memory
follows it. All methods must be called from one thread at a time, except `RecordFlow.anonymize`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import StreamAccounts, label_of
from anonymizer.pipeline.name_hashes import hash_of
from anonymizer.pipeline.packed_deliveries import PackedDeliveries, in_groups, receipts_of
from anonymizer.pipeline.records.anonymize_window import Closing, anonymize
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.inbox import Arrived
from anonymizer.pipeline.records.join import Joined
from anonymizer.pipeline.records.store_port import (
    ClosedWindow,
    Store,
    Taken,
    Waiting,
    forgotten_before,
)
from anonymizer.pipeline.records.stream_state import StreamState
from anonymizer.pipeline.records.topics import RecordRouter
from anonymizer.pipeline.records.window_models import seed_of
from anonymizer.settings import LimitSettings

UNMATCHED = ""
"""Name of the accounts of messages that belong to no stream."""
MOST_RECENT = 65_536
"""Most messages that a client can have in flight."""
_MAX_UNPUBLISHED = 1_000_000
"""Classes of a stream: about a gigabyte on the disk."""
_HASH_BYTES = 16


class RecentMessages:
    """Recognizes messages that the broker delivers again because it missed an acknowledgement.

    It remembers the last `MOST_RECENT` messages at least, and twice as many at most, as keyed
    hashes in memory only: whoever has hashes and their key can try out what the messages said.
    After a restart, a repeated part of an open window is recognized by the join, and one of a
    closed window is late.

    Notes
    -----
    A message is recognized by a hash of its topic and one of its payload, 62 bits each. That two
    different messages with one topic, or one payload, of 250 characters have both in common has a
    probability below 1e-14.
    """

    def __init__(self) -> None:
        self._now: set[bytes] = set()
        self._before: set[bytes] = set()

    def __len__(self) -> int:
        """Return the number of messages that it would recognize."""
        return len(self._now) + len(self._before)

    def repeated(self, messages: PackedDeliveries) -> list[bool]:
        """Return which messages repeat a recent one, and remember them; at QoS 0 none does."""
        bounds, receipt, _ = messages.columns
        stream = np.frombuffer(messages.stream, np.uint8)
        topic, payload = (hash_of(stream, np.ascontiguousarray(bounds[:, at:])) for at in (0, 2))
        hashes = np.stack([topic, payload], axis=1).tobytes()
        found = [False] * len(messages)
        for row in np.flatnonzero(receipt).tolist():
            this = hashes[_HASH_BYTES * row : _HASH_BYTES * (row + 1)]
            if this in self._now or this in self._before:
                found[row] = True
                continue
            if len(self._now) >= MOST_RECENT:
                self._before, self._now = self._now, set()
            self._now.add(this)
        return found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Due:
    """A window that is due to be closed, and its records."""

    stream: int
    window: int
    joined: Joined


class RecordFlow:
    """All streams of a gateway.

    A message that several streams read is received by each of them, and has an outcome in each.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        store: Store,
        limits: LimitSettings,
        *,
        at_s: float,
        max_unpublished: int = _MAX_UNPUBLISHED,
    ) -> None:
        self._store = store
        self._max_unpublished = max_unpublished
        self.unmatched = StreamAccounts(store.recall(UNMATCHED, shape="", n_sources=0).counts)
        self.router = RecordRouter(
            [stream.settings for stream in streams],
            secret=store.secret,
            max_id_chars=limits.max_device_id_chars,
            folds=store.folds_ids,
        )
        with store.at_once():
            self.states = [
                StreamState(stream, store, limits, key=partial(self.router.key, i), at_s=at_s)
                for i, stream in enumerate(streams)
            ]
        self._state_of = {state.stream.settings.name: state for state in self.states}
        self._recent = RecentMessages()

    @property
    def n_due(self) -> int:
        """Number of windows that `due` would return."""
        return sum(state.windows.n_due for state in self.states)

    def streams_of(self, topic: str) -> Sequence[int]:
        """Return the indices of the streams that read a topic, -1 alone if none does."""
        return [route.stream for route in self.router.routes_of(topic)] or [-1]

    def take(
        self,
        arrived: Arrived,
        *,
        now: float,
        at_s: float,
        places_of: Callable[[Sequence[int]], Mapping[str, int]] = lambda _: {},
    ) -> list[int]:
        """Store or settle a batch of messages; return the receipts that may be acknowledged.

        `now`: unix seconds; `at_s`: of a monotonic clock; `places_of` returns up to where the
        transport was read for messages with these receipts, which is stored with them.

        Raises `StoreError` if the batch could not be stored. The flow is then ahead of the store
        and must be made again from it.
        """
        self._store.check_space()
        self.router.forget(at_s=at_s)
        receipts: list[int] = []
        of: set[int] = set(arrived.refused)
        for messages, _ in in_groups(arrived.batches):
            receipts += receipts_of(messages)
            of |= self._place(messages, now=now, at_s=at_s)
        for stream, n in arrived.refused.items():
            self._settle(stream, Outcome.SUPPRESSED__OVERLOAD, n)
        taken = [self.states[i].taken() for i in sorted(of - {-1})]
        unmatched = Taken(UNMATCHED, (), (), (), None, self.unmatched.news())
        self._store.take([t for t in (*taken, unmatched) if t.news], places_of(receipts))
        return receipts

    def withdraw(self, said: Mapping[str, bool]) -> None:
        """Take in which vehicles take no part (true) and which do again.

        The parts of the former in open windows are erased, and further ones are refused.

        StoreError as for `take`.
        """
        for vehicle, takes_no_part in said.items():
            for number, state in enumerate(self.states):
                key = self.router.key(number, vehicle)
                if not takes_no_part:
                    state.readmit(key)
                elif key and (gone := state.withdraw(key)):
                    self._store.erase(state.stream.settings.name, gone, state.accounts.news())

    def due(self, *, at_s: float) -> list[Due]:
        """Return the windows that are due and not empty, oldest first."""
        self.router.forget(at_s=at_s)
        found = [
            Due(number, window, joined)
            for number, state in enumerate(self.states)
            for window, joined in state.due(at_s=at_s)
        ]
        return sorted(found, key=lambda due: self.states[due.stream].stream.rule.span(due.window))

    def memories(self, due: Due) -> Mapping[bytes, bytes]:
        """Return the stored histories of the vehicles of a window."""
        name = self.states[due.stream].stream.settings.name
        return self._store.memories(name, due.joined.vehicle)

    def anonymize(
        self,
        due: Due,
        memories: Mapping[bytes, bytes],
        *,
        time_left: Callable[[], float],
        clock: Callable[[], float],
    ) -> Closing:
        """Anonymize a window, which is slow; changes no state, so it may run in any thread."""
        state = self.states[due.stream]
        stream, model = state.in_window(due.joined.values_of)
        return anonymize(
            stream,
            model,
            due.joined,
            memories,
            span=state.stream.rule.span(due.window),
            first_message=state.next_message,
            seed=seed_of(self._store.secret, state.stream.settings.name, due.window),
            time_left=time_left,
            clock=clock,
        )

    def close_all(self, closed: Sequence[tuple[Due, Closing]], *, now: float) -> None:
        """Store the results of windows of several streams, all or none."""
        with self._store.at_once():
            for due, closing in closed:
                self.close(due, closing, now=now)

    def close(self, due: Due, closing: Closing, *, now: float) -> None:
        """Store the result of a window, and erase its parts."""
        state = self.states[due.stream]
        if state.n_waiting + len(closing.messages) > self._max_unpublished:
            closing = closing.withheld(Outcome.SUPPRESSED__UNDELIVERED)
        settings, (start, end) = state.stream.settings, state.stream.rule.span(due.window)
        state.close(due.joined, closing)
        self._store.close_window(
            ClosedWindow(
                stream=settings.name,
                window=due.window,
                start=start,
                end=end,
                at=now,
                messages=closing.messages,
                n_parts=closing.n_parts,
                memory=closing.memory,
                forget_before=forgotten_before(due.window, length_s=settings.window_s),
                newest=state.windows.newest_open,
                floor=state.windows.floor,
                news=state.accounts.news(),
                next_message=state.next_message,
                summary=closing.summary,
            )
        )

    def waiting(self, *, limit: int) -> list[Waiting]:
        """Return the classes that wait to be published, oldest first."""
        return self._store.waiting(limit=limit)

    def published(self, taken: Sequence[Waiting], *, now: float) -> None:
        """Settle the classes that the broker has accepted."""
        news = self._settle_classes(taken, Outcome.PUBLISHED)
        self._store.published([waiting.number for waiting in taken], news, at=now)

    def suppress(self, refused: Sequence[Waiting]) -> None:
        """Settle and erase classes that the broker will never accept."""
        news = self._settle_classes(refused, Outcome.SUPPRESSED__UNDELIVERED)
        self._store.suppressed([waiting.number for waiting in refused], news)

    def _settle_classes(
        self, classes: Sequence[Waiting], outcome: Outcome
    ) -> dict[str, Mapping[str, int]]:
        """Settle waiting classes; return what is to be added to the accounts, by stream."""
        news: dict[str, Mapping[str, int]] = {}
        n_parts_of: dict[str, list[int]] = {}
        for waiting in classes:
            n_parts_of.setdefault(waiting.stream, []).append(waiting.n_parts)
        for name, of_stream in n_parts_of.items():
            state = self._state_of.get(name)
            if state is None:  # no longer declared
                news[name] = {label_of(outcome): sum(of_stream)}
            else:
                state.end(outcome, n_classes=len(of_stream), n_parts=sum(of_stream))
                news[name] = state.accounts.news()
        return news

    def _place(self, messages: PackedDeliveries, *, now: float, at_s: float) -> set[int]:
        """Take in messages; return the streams of which any was, -1 for none."""
        repeated = self._recent.repeated(messages)
        parts, others = self.router.divided(messages, repeated=repeated)
        for (number, outcome), n in others.items():
            self._settle(number, outcome, n)
        for number, of_stream in parts.items():
            state = self.states[number]
            state.store(state.place(of_stream, now=now, at_s=at_s))
        return parts.keys() | {number for number, _ in others}

    def _settle(self, stream: int, outcome: Outcome, n: int = 1) -> None:
        accounts = self.unmatched if stream < 0 else self.states[stream].accounts
        accounts.receive(n)
        accounts.settle(outcome, n)
