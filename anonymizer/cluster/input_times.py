"""Stages that publish nothing because of the times of what comes in."""

import time
from collections.abc import Callable, Collection, Iterable, Sequence

from anonymizer.app.gateway.refused_parts import RefusedParts
from anonymizer.cluster.positions.source_stage import SourceStage
from anonymizer.cluster.records.stream_stage import StreamStage
from anonymizer.cluster.stage import Stage
from anonymizer.pipeline.ledger import Ledger


class InputTimes:
    """Looks each second if stages publish nothing because of the times of their inputs.

    `longest_s`: a bridge may be so far behind. `problems`: sentences for readiness.
    """

    def __init__(self, *, longest_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest_s, self._clock = longest_s, clock
        self._refused = RefusedParts(clock)
        self._owned: Collection[tuple[str, int]] = ()
        self.problems: list[str] = []

    def look(
        self,
        stages: Iterable[Stage],
        parts: Sequence[tuple[str, Ledger, int]],
        *,
        owned: Collection[tuple[str, int]],
    ) -> None:
        """Look at stages, and at the accounts of their streams; those of `owned` partitions."""
        if owned != self._owned:  # the accounts of stages that have left are missing
            self._owned, self._refused = owned, RefusedParts(self._clock)
        behind_s = max(
            (each.behind_s for each in stages if isinstance(each, SourceStage | StreamStage)),
            default=0.0,
        )
        named = [
            (f"stream {name}" if name else "records", ledger, n_held)
            for name, ledger, n_held in parts
        ]
        self.problems = self._refused.problems(named)
        if behind_s > self._longest_s:
            self.problems.append(
                f"nothing is published for {behind_s:.0f} s: a clock was ahead by as much; to go"
                " on sooner, set it, stop all bridges and workers, and run `anonymizer cluster"
                " erase` (Clocks in docs/operating.md)"
            )
