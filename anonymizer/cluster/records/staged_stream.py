"""A stream in a stage: all that one process keeps of it on a disk, as the state of a stage."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import numpy as np

from anonymizer.cluster.records.searches_by_work import by_work
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.records.anonymize_window import Closing, anonymize
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.open_stream import OpenStream
from anonymizer.pipeline.records.store_port import forgotten_before
from anonymizer.pipeline.records.window_models import WINDOW_MODELS, seed_of
from anonymizer.settings import LimitSettings


class StagedStream(OpenStream):
    """One stream, from its parts to the classes of its windows.

    `secret` is the key of the seeds.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        key: Callable[[str], bytes],
        limits: LimitSettings,
        secret: bytes,
    ) -> None:
        self.ledger = Ledger()
        super().__init__(
            by_work(stream), limits, key=key, accounts=self.ledger, at_s=-inf, in_ticks=True
        )
        self._secret = secret
        self._due: list[int] = []
        """Windows that are over and not anonymized yet, the oldest first."""
        self._next_message = 1
        """Above the numbers of all messages of earlier windows."""
        self._memories: dict[bytes, tuple[int, bytes]] = {}
        """What is stored of each vehicle, and the window in which it was published last."""

    def pass_tick(self, *, at_s: float) -> list[int]:
        """Take it that all parts of a tick are there; return the windows that are over by it."""
        there = set(self.records.windows())
        over = [window for window in self.windows.due(at_s=at_s) if window in there]
        self._due += over
        return over

    def close(self, window: int) -> Closing | None:
        """Anonymize a window that is over; None: it is done already, or nobody is in it any more.

        Each of its records is settled then, and so is one of an older window that is still there:
        the stage failed at it, so nothing of it is verified.
        """
        if window not in self._due:
            return None
        for failed in self._due[: self._due.index(window)]:
            n_parts = self.take(failed).n_parts
            self.settle(n_parts, np.full(len(n_parts), Outcome.SUPPRESSED__UNVERIFIED, np.uint8))
        self._due = self._due[self._due.index(window) + 1 :]
        joined = self.take(window).meant()
        if not joined.n:
            return None
        stream, settings = self.stream.in_window(joined.values_of), self.stream.settings
        closing = anonymize(
            stream,
            WINDOW_MODELS[settings.model](stream),
            joined,
            {each: self._memories[each][1] for each in joined.vehicle if each in self._memories},
            span=stream.rule.span(window),
            first_message=self._next_message,
            seed=seed_of(self._secret, settings.name, window),
            time_left=lambda: 0.0,
            clock=lambda: 0.0,
        )
        self.settle(joined.n_parts - closing.n_silent, closing.outcome)
        self.settle_silent(closing)
        self._next_message += len(closing.messages)
        self._memories |= {who: (window, blob) for who, blob in closing.memory.items()}
        before = forgotten_before(window, length_s=settings.window_s)
        self._memories = {who: of for who, of in self._memories.items() if of[0] >= before}
        return closing

    def state(self) -> dict[str, Any]:
        """Return all that changes."""
        return {
            "name": self.stream.settings.name,
            "shape": self.stream.shape,
            "ledger": self.ledger.state(),
            "open": super().state(),
            "due": self._due,
            "next_message": self._next_message,
            "memories": [[who, *stored] for who, stored in self._memories.items()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state.

        Raises `ValueError` if it is of another stream, or this one was declared in another way.
        """
        if (state["name"], state["shape"]) != (self.stream.settings.name, self.stream.shape):
            raise ValueError("the stream was declared in another way")
        self.ledger.restore(state["ledger"])
        super().restore(state["open"])
        self._due, self._next_message = list(state["due"]), state["next_message"]
        self._memories = {who: (window, blob) for who, window, blob in state["memories"]}
