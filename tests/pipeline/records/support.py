"""A records flow with a store in a folder, driven step by step and checked after every step."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.flow import RecordFlow
from anonymizer.pipeline.records.inbox import Arrived
from anonymizer.pipeline.records.stream_state import StreamState
from anonymizer.settings import LimitSettings
from anonymizer.store import RecordStore
from tests.pipeline.records.made import Sent, stream

NOW = 2e9
SECRET = bytes(range(32))


class Rig:
    """A flow that can crash: `crash` loses everything except the file."""

    def __init__(
        self,
        folder: Path,
        *,
        max_unpublished: int = 10**6,
        limits: LimitSettings | None = None,
        others: Sequence[Stream] = (),
        **changes: Any,  # noqa: ANN401
    ) -> None:
        self.path = folder / "records.sqlite"
        self.stream: Stream = stream(**changes)
        self._others = others
        self.clock_s = 0.0
        self._max_unpublished = max_unpublished
        self._limits = limits or LimitSettings()
        self._receipts = itertools.count(1)
        self._open()

    def _open(self) -> None:
        self.store = RecordStore(self.path, keep_published_s=1e9)
        self.store.secret = SECRET  # every run draws the same
        self.flow = RecordFlow(
            [self.stream, *self._others],
            self.store,
            self._limits,
            max_unpublished=self._max_unpublished,
            at_s=self.clock_s,
        )

    @property
    def state(self) -> StreamState:
        return self.flow.states[0]

    def crash(self) -> None:
        self.store.close()
        self._open()
        self.check()

    def take(self, *parts: Sent, now: float = NOW, qos: int = 1) -> None:
        self.take_raw(
            [part.delivery(next(self._receipts) if qos else 0) for part in parts], now=now
        )

    def take_raw(self, deliveries: Sequence[Delivery], *, now: float = NOW) -> list[int]:
        receipts = self.flow.take(Arrived([deliveries]), now=now, at_s=self.clock_s)
        assert receipts == [d.receipt for d in deliveries if d.receipt]
        self.check()
        return receipts

    def close(self, *, silent: bool = False, crash_before_commit: bool = False) -> int:
        """Close the windows that are due (`silent`: all windows); return how many."""
        self.clock_s += 1000.0 if silent else 0.0
        windows = self.flow.due(at_s=self.clock_s)
        for due in windows:
            closing = self.flow.anonymize(
                due,
                self.flow.memories(due),
                time_left=lambda: 0.0,
                clock=lambda: 0.0,
            )
            if crash_before_commit:
                self.crash()
                return 0
            self.flow.close(due, closing, now=NOW)
            self.check()
        return len(windows)

    def publish(self, *, most: int = 10**6) -> list[bytes]:
        """Publish the waiting classes; return their payloads."""
        waiting = self.flow.waiting(limit=most)
        self.flow.published(waiting, now=NOW)
        self.check()
        return [w.message.payload for w in waiting]

    def classes(self) -> list[dict[str, Any]]:
        """Return all waiting classes without publishing them."""
        return [json.loads(w.message.payload) for w in self.flow.waiting(limit=10**6)]

    def accounts(self) -> dict[str, int]:
        return self.store.accounts().get(self.stream.settings.name, {})

    def check(self) -> None:
        """Assert that the accounts balance, and are equal in the store and in memory."""
        every = self.store.accounts()
        for state in self.flow.states:
            ledger = state.accounts
            assert ledger.n_received == ledger.n_settled + state.n_held
            stored = dict(every.get(state.stream.settings.name, {}))
            assert stored.pop("received", 0) == sum(stored.values()) + state.n_held
            assert sum(stored.values()) == ledger.n_settled
