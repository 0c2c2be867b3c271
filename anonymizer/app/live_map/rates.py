"""Snapshots of a positions flow, and its rates over the last few seconds.

Nothing is counted for them: a snapshot copies the counts of the flow, and two snapshots are
subtracted.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import BatchHistogram
from anonymizer.pipeline.positions.counts.public_counts import OTHER, join
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.flow_stats import GROUP, TICK

SPAN_S = 5.0
"""Rates are taken over this many seconds."""
_LEAST_SPAN_S = 2.0
"""Over fewer seconds a rate would vary with the ticks."""


def named(n_of: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Return the counts of what was not published, as `outcome reason`; without zeros."""
    return {
        " ".join(filter(None, label)).replace("_", " "): n
        for label, n in n_of.items()
        if n and label != Outcome.PUBLISHED.label
    }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FlowSnapshot:
    """Counts of a positions flow up to a moment; after `since`, between two moments.

    Attributes
    ----------
    seconds
        Time of the snapshot; after `since`, the length of the span.
    n_received, n_messages
        Positions received, and messages published.
    n_of
        Positions by final outcome.
    n_held, n_in_trips
        Positions that are received and not settled, at the end; those of them that wait for their
        trip to go on, see `Figures`.
    n_devices
        Devices on the graph, at the end.
    latency_s
        From arrival to publication of each position, including all waiting. age_s Ages of
        information, see `InformationAges`. region_nodes, k_reached Nodes of each published region,
        and the size of its anonymity set. silent Why nothing is published at the end, for the
        operator; empty if there is nothing to say.
    """

    seconds: float
    n_received: int
    n_messages: int
    n_of: dict[Outcome, int]
    n_held: int
    n_in_trips: int
    n_devices: int
    latency_s: BatchHistogram
    age_s: BatchHistogram
    region_nodes: BatchHistogram
    k_reached: BatchHistogram
    silent: str

    @property
    def n_published(self) -> int:
        """Positions published."""
        return self.n_of[Outcome.PUBLISHED]

    @property
    def not_published(self) -> dict[str, int]:
        """Positions by every other outcome that occurred, as `outcome reason`."""
        return named({outcome.label: n for outcome, n in self.n_of.items()})

    @property
    def n_unaccounted(self) -> int:
        """Positions that no other number contains: anything but 0 is a defect."""
        return self.n_received - self.n_held - sum(self.n_of.values())

    def since(self, earlier: "FlowSnapshot") -> "FlowSnapshot":
        """Return the counts between an earlier snapshot and this one."""
        return FlowSnapshot(
            seconds=self.seconds - earlier.seconds,
            n_received=self.n_received - earlier.n_received,
            n_messages=self.n_messages - earlier.n_messages,
            n_of={outcome: n - earlier.n_of[outcome] for outcome, n in self.n_of.items()},
            n_held=self.n_held,
            n_in_trips=self.n_in_trips - earlier.n_in_trips,
            n_devices=self.n_devices,
            latency_s=self.latency_s.since(earlier.latency_s),
            age_s=self.age_s.since(earlier.age_s),
            region_nodes=self.region_nodes.since(earlier.region_nodes),
            k_reached=self.k_reached.since(earlier.k_reached),
            silent=self.silent,
        )


def take_snapshot(flow: PositionFlow, *, seconds: float, n_waiting: int = 0) -> FlowSnapshot:
    """Return the counts of a flow; `n_waiting` positions are in its inbox."""
    stats, ledger, view = flow.stats, flow.ledger, flow.view
    return FlowSnapshot(
        seconds=seconds,
        n_received=ledger.n_received,
        n_messages=stats.n_messages_out,
        n_of=ledger.counts(),
        n_held=n_waiting + flow.n_held,
        n_in_trips=flow.n_in_trips,
        n_devices=view.n_devices_on_graph,
        latency_s=stats.latency_s[TICK].plus(stats.latency_s[GROUP]),
        age_s=stats.age_s.copy(),
        region_nodes=stats.region_nodes.copy(),
        k_reached=stats.k_reached.copy(),
        silent="" if view.silent is None else view.silent.text,
    )


class FlowRates(msgspec.Struct, frozen=True):
    """Rates per second over the last few seconds. None: nothing to measure."""

    rate_in: float | None
    """Positions received."""
    rate_out: float | None
    """Positions published."""
    messages_out: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    age_mean_s: float | None
    age_p95_s: float | None
    """Age of information: of the newest region of each pseudonym that lives."""
    region_mean: float | None
    """Nodes of a published region."""
    region_p90: float | None
    k_median: float | None
    """Size of the anonymity sets of the last tick that published."""
    k_least: float | None
    suppressed: dict[str, float]
    """Positions not published, by outcome and reason; without zeros."""
    n_devices: int
    """Devices on the graph."""
    n_newcomers: int
    """Devices on the graph that wait for a group."""
    n_followed: int
    """Pseudonyms that the light audit follows with the intersection attack."""
    n_below_k: int
    """Of these, the number with fewer than k candidates left."""
    silent: str
    """Why positions arrive and none is published; empty if there is nothing to say."""


class RateMeter:
    """Compares the counts of a flow with those of a few seconds ago.

    Parameters
    ----------
    step
        Counts are rounded to multiples of this, and reasons joined, as in `public_counts`; 1: they
        are exact, with all reasons.
    share
        Positions of one device in `SPAN_S` seconds, at most; see `public_share`.
    silent
        Returns why nothing is published, as everybody may read it.
    """

    def __init__(
        self,
        flow: PositionFlow,
        *,
        step: int = 1,
        share: int = 1,
        silent: Callable[[], str] = str,
    ) -> None:
        self._flow = flow
        self._step = step
        self._by_k = step * share
        self._silent = silent
        self._snapshots: deque[FlowSnapshot] = deque()

    def take(self, now_s: float) -> FlowRates:
        """Return the rates at a monotonic time."""
        flow = self._flow
        now = take_snapshot(flow, seconds=now_s)
        while self._snapshots and self._snapshots[0].seconds < now_s - SPAN_S:
            self._snapshots.popleft()
        self._snapshots.append(now)
        span = now.since(self._snapshots[0])

        def down(n: int) -> int:
            return n - n % self._step

        def rate(n: int) -> float | None:
            return round(down(n) / span.seconds, 2) if span.seconds >= _LEAST_SPAN_S else None

        refused, n_received = span.not_published, span.n_received
        if self._step > 1:
            joined = join({outcome.label: n for outcome, n in span.n_of.items()})
            unshown = joined.get(OTHER, 0) % self._by_k
            n_received = max(0, n_received - span.n_in_trips - unshown)
            refused = named(joined | {OTHER: joined.get(OTHER, 0) - unshown})
        view = flow.view
        hidden = view.hidden_to_k
        latency_s = span.latency_s.in_steps(self._step)
        least, _, median = flow.stats.k_reached_last
        return FlowRates(
            rate_in=rate(n_received),
            rate_out=rate(span.n_published),
            messages_out=rate(span.n_messages),
            latency_p50_ms=_number(1000 * latency_s.quantile(0.5), digits=2),
            latency_p99_ms=_number(1000 * latency_s.quantile(0.99), digits=2),
            age_mean_s=_number(span.age_s.mean, digits=1),
            age_p95_s=_number(span.age_s.quantile(0.95), digits=1),
            region_mean=_number(span.region_nodes.mean, digits=1),
            region_p90=_number(span.region_nodes.quantile(0.9)),
            k_median=_number(median),
            k_least=_number(least),
            suppressed={reason: per_s for reason, n in refused.items() if (per_s := rate(n))},
            n_devices=down(now.n_devices),
            n_newcomers=down(view.n_newcomers),
            n_followed=down(len(hidden)),
            n_below_k=down(int((hidden < 1).sum()) + self._step - 1),
            silent=now.silent if self._step == 1 else self._silent(),
        )


def _number(value: float, *, digits: int | None = None) -> float | None:
    """Return a number for JSON, None for NaN."""
    if math.isnan(value):
        return None
    return value if digits is None else round(value, digits)
