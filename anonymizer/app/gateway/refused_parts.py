"""Streams that take parts in and keep none, because all of them are dated wrong."""

from collections.abc import Callable, Iterable, Mapping

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger

_PATIENCE_S = 30.0
_CAUSES: Mapping[Outcome, str] = {
    Outcome.LATE: (
        "are late: their times lie in windows that have closed, also before the last start. If a"
        " clock was ahead then, see Clocks in docs/operating.md"
    ),
    Outcome.INVALID__FUTURE_TIME: (
        "are dated in the future: look at this machine's clock, and if they are texts without an"
        " offset at streams.utc_offset_h, which knows no summer time"
    ),
    Outcome.INVALID__ANCIENT_TIME: "are dated before 1970: look at the senders' clocks",
}


class RefusedParts:
    """Looks at the accounts of streams now and then."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[str, tuple[float, dict[Outcome, int]]] = {}
        """When a part of a stream was last kept, as far as was seen, and the counts of then."""

    def problems(self, ledgers: Iterable[tuple[str, Ledger, int]]) -> list[str]:
        """Return a sentence for each stream of which nothing but wrong times has come for long.

        `ledgers`: name, accounts and held parts of each.
        """
        found, now = [], self._clock()
        for name, ledger, _ in ledgers:
            counts = {**ledger.counts()}
            kept = ledger.n_received - sum(counts[each] for each in _CAUSES)
            since_s, before = self._since.setdefault(name, (now, counts | {Outcome.HELD: kept}))
            if kept > before[Outcome.HELD]:
                self._since[name] = now, counts | {Outcome.HELD: kept}
                continue
            n_of = {each: counts[each] - before[each] for each in _CAUSES}
            worst = max(n_of, key=n_of.__getitem__)
            if n_of[worst] and now - since_s >= _PATIENCE_S:
                found.append(
                    f"{name}: nothing is published; all parts of the last {now - since_s:.0f} s"
                    f" {_CAUSES[worst]}"
                )
        return found
