"""What a flow did over the last few seconds. Nothing is counted for it: counts are compared.

A running gateway at a glance, in numbers a person reads.
"""

import math
from collections import deque
from dataclasses import dataclass

import msgspec

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import BatchHistogram
from anonymizer.pipeline.positions.flow import PositionFlow

SPAN_S = 5.0
"""What `the last few seconds` are."""
_LEAST_SPAN_S = 2.0
"""A rate over less would swing with the ticks."""


class FlowRates(msgspec.Struct, frozen=True):
    """Rates are a second, over the last few; None: nothing of the kind happened."""

    rate_in: float | None
    """Positions received."""
    rate_out: float | None
    """Positions published."""
    messages_out: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    region_mean: float | None
    """Nodes of a published region."""
    region_p90: float | None
    k_median: float | None
    """Devices among which the groups of the last tick hide theirs."""
    k_least: float | None
    suppressed: dict[str, float]
    """What is not published, by outcome and reason; no zeros."""
    n_devices: int
    """On the graph."""
    n_newcomers: int
    """On the graph, and waiting for a group."""
    n_followed: int
    """Pseudonyms that the light audit follows with the intersection attack."""
    n_below_k: int
    """Of those, how many have fewer than k candidates left."""


@dataclass(frozen=True, slots=True)
class _Counts:
    at_s: float
    n_received: int
    n_messages: int
    n_of: dict[Outcome, int]
    latency: list[int]
    region: list[int]
    n_nodes: float


class RateMeter:
    """Compares the counts of a flow with those of a few seconds ago, whenever it is asked."""

    def __init__(self, flow: PositionFlow) -> None:
        self._flow = flow
        self._counts: deque[_Counts] = deque()

    def take(self, now_s: float) -> FlowRates:
        """Return the pulse at a monotonic time."""
        flow, stats = self._flow, self._flow.stats
        now = _counts_of(flow, now_s)
        while self._counts and self._counts[0].at_s < now_s - SPAN_S:
            self._counts.popleft()
        self._counts.append(now)
        then = self._counts[0]
        span_s = now.at_s - then.at_s

        def rate(n: int) -> float | None:
            return round(n / span_s, 2) if span_s >= _LEAST_SPAN_S else None

        settled = {outcome: n - then.n_of[outcome] for outcome, n in now.n_of.items()}
        hidden = flow.audit.hidden_to_k()
        latency = _between(stats.end_to_end_s, then.latency, now.latency)
        region = _between(stats.region_nodes, then.region, now.region)
        least, _, median = stats.k_reached_last
        return FlowRates(
            rate_in=rate(now.n_received - then.n_received),
            rate_out=rate(settled.pop(Outcome.PUBLISHED)),
            messages_out=rate(now.n_messages - then.n_messages),
            latency_p50_ms=_ms(latency.within(0.5)),
            latency_p99_ms=_ms(latency.within(0.99)),
            region_mean=_mean(now.n_nodes - then.n_nodes, region.n[-1]),
            region_p90=region.at(0.9),
            k_median=None if math.isnan(median) else median,
            k_least=None if math.isnan(least) else least,
            suppressed={
                " ".join(filter(None, outcome.label)).replace("_", " "): per_s
                for outcome, n in settled.items()
                if n and (per_s := rate(n))
            },
            n_devices=flow.n_devices_on_graph,
            n_newcomers=flow.n_newcomers,
            n_followed=len(hidden),
            n_below_k=int((hidden < 1).sum()),
        )


def _counts_of(flow: PositionFlow, now_s: float) -> _Counts:
    stats = flow.stats
    return _Counts(
        at_s=now_s,
        n_received=flow.ledger.n_received,
        n_messages=stats.n_messages_out,
        n_of=flow.ledger.counts(),
        latency=stats.end_to_end_s.cumulative(),
        region=stats.region_nodes.cumulative(),
        n_nodes=stats.region_nodes.total,
    )


@dataclass(frozen=True, slots=True)
class _Spread:
    """How values lie below rising upper edges; `n` is cumulative, one longer than `edges`."""

    edges: tuple[float, ...]
    n: list[int]

    def at(self, q: float) -> float | None:
        """Return the upper edge under which a share `q` lies: for whole numbers."""
        i = self._place(q)
        return None if i is None else self.edges[min(i, len(self.edges) - 1)]

    def within(self, q: float) -> float | None:
        """Return about which value a share `q` lies under, the edges being powers of a base."""
        i = self._place(q)
        if i is None:
            return None
        if not 0 < i < len(self.edges):
            return self.edges[min(i, len(self.edges) - 1)]
        below, upto = self.n[i - 1], self.n[i]
        low, high = math.log(self.edges[i - 1]), math.log(self.edges[i])
        return math.exp(low + (high - low) * (q * self.n[-1] - below) / (upto - below))

    def _place(self, q: float) -> int | None:
        if self.n[-1] == 0:
            return None
        return next(i for i, count in enumerate(self.n) if count >= q * self.n[-1] and count)


def _between(histogram: BatchHistogram, then: list[int], now: list[int]) -> _Spread:
    return _Spread(histogram.edges, [b - a for a, b in zip(then, now, strict=True)])


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 2)


def _mean(total: float, n: int) -> float | None:
    return round(total / n, 1) if n else None


@dataclass(frozen=True, slots=True)
class FlowSummary:
    """The state of a positions flow since its start.

    Attributes
    ----------
    seconds
        Since the start.
    n_received, n_published, n_messages
        Positions in, positions out, messages they went out in.
    n_held
        Positions on their way.
    refused
        Every other outcome that occurred, by `outcome reason`.
    n_devices
        On the graph now.
    latency_p50_s, latency_p99_s
        Arrival to publication.
    region_p50, region_mean
        Nodes of a published region.
    k_reached_p50
        Distinct devices in a published region.
    """

    seconds: float
    n_received: int
    n_published: int
    n_messages: int
    n_held: int
    refused: dict[str, int]
    n_devices: int
    latency_p50_s: float
    latency_p99_s: float
    region_p50: float
    region_mean: float
    k_reached_p50: float

    @property
    def n_unaccounted(self) -> int:
        """Positions that are in no other number: anything but 0 is a defect."""
        return self.n_received - self.n_published - self.n_held - sum(self.refused.values())


def summarize_flow(flow: PositionFlow, *, n_waiting: int, seconds: float) -> FlowSummary:
    """Read the flow's counts."""
    stats, ledger = flow.stats, flow.ledger
    refused = {
        " ".join(filter(None, outcome.label)).replace("_", " "): n
        for outcome, n in ledger.counts().items()
        if n and outcome is not Outcome.PUBLISHED
    }
    regions = stats.region_nodes
    return FlowSummary(
        seconds=seconds,
        n_received=ledger.n_received,
        n_published=ledger.n(Outcome.PUBLISHED),
        n_messages=stats.n_messages_out,
        n_held=n_waiting + flow.n_held,
        refused=refused,
        n_devices=flow.n_devices_on_graph,
        latency_p50_s=stats.end_to_end_s.quantile(0.5),
        latency_p99_s=stats.end_to_end_s.quantile(0.99),
        region_p50=regions.quantile(0.5),
        region_mean=regions.total / regions.n if regions.n else float("nan"),
        k_reached_p50=stats.k_reached.quantile(0.5),
    )
