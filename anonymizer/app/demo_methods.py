"""What the demo shows beside positions: what became of the records of each method."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.request import urlopen

from anonymizer.app.live_map.rates import named
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.records.stream_state import StreamState

TOLLS = "/api/analytics/truck/exit-hourly-flow-k-anonymized?lang=en&limit=3"
_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSnapshot:
    """What became of the records of one stream."""

    name: str
    model: str
    k: int
    """`name`, `model`, `k`: as in the settings."""
    n_received: int
    n_published: int
    n_held: int
    """`n_received`, `n_published`, `n_held`: records received, those in published classes, and
    those that wait for the end of a window."""
    not_published: Mapping[str, int]
    """Records by every other outcome that occurred, as `outcome reason`."""
    n_windows: int
    n_classes: int
    """`n_windows`, `n_classes`: windows that are closed, and their classes."""
    last: Mapping[str, float]
    """The summary of the last window that was not empty."""

    @classmethod
    def of(cls, state: StreamState) -> "StreamSnapshot":
        """Return the counts of a stream at this moment."""
        settings, accounts = state.stream.settings, state.accounts
        return cls(
            name=settings.name,
            model=settings.model,
            k=settings.promise.k,
            n_received=accounts.n_received,
            n_published=accounts.n(Outcome.PUBLISHED),
            n_held=state.n_held,
            not_published=named({each.label: n for each, n in accounts.counts().items()}),
            n_windows=state.stats.n_windows,
            n_classes=state.stats.n_classes,
            last=dict(state.stats.last),
        )

    @property
    def n_unaccounted(self) -> int:
        """Records that no other number contains: anything but 0 is a defect."""
        return self.n_received - self.n_published - self.n_held - sum(self.not_published.values())


def toll_rows(url: str) -> Sequence[Mapping[str, Any]]:
    """Return the first rows of the toll API of the gateway at this address; none if it fails."""
    try:
        with urlopen(url + TOLLS, timeout=_PATIENCE_S) as answer:  # noqa: S310  our own gateway
            rows: Sequence[Mapping[str, Any]] = json.load(answer)["data"]
            return rows
    except (OSError, ValueError, KeyError):
        return ()
