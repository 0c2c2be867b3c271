"""Snapshots of a positions flow, and its rates over the last few seconds.

Nothing is counted for them: a snapshot copies the counts of the flow, and two snapshots are
subtracted.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.histograms import BatchHistogram
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
    """Counts of a positions flow up to a moment; after `since`, between two moments."""

    seconds: float
    """Time of the snapshot; after `since`, the length of the span."""
    n_received: int
    n_messages: int
    """`n_received`, `n_messages`: positions received, and messages published."""
    n_of: dict[Outcome, int]
    """Positions by final outcome."""
    n_held: int
    """Positions that are received and not settled, at the end."""
    n_told: int
    """Devices that the published messages told of, message by message."""
    n_devices: int
    """Devices on the graph, at the end."""
    latency_s: BatchHistogram
    """From arrival to publication of each position, including all waiting."""
    age_s: BatchHistogram
    """Ages of information, see `InformationAges`."""
    region_nodes: BatchHistogram
    k_reached: BatchHistogram
    """`region_nodes`, `k_reached`: nodes of each published region, and the size of its anonymity
    set."""
    silent: str
    """Why nothing is published at the end, for the operator; empty if there is nothing to say."""

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
            n_told=self.n_told - earlier.n_told,
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
        n_told=flow.public_figures.n_told,
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
    """Devices on the graph; of public figures, those that messages told of at one moment lately."""
    n_newcomers: int | None
    """Devices on the graph that wait for a group."""
    n_followed: int | None
    """Pseudonyms that the light audit follows with the intersection attack."""
    n_below_k: int | None
    """Of these, the number with fewer than k candidates left."""
    silent: str
    """Why positions arrive and none is published; empty if there is nothing to say."""


class RateMeter:
    """Compares the counts of a flow with those of a few seconds ago.

    `silent`: returns why nothing is published, as everybody may read it: then there is nothing but
    public figures. None: exact ones, for the operator.
    """

    def __init__(self, flow: PositionFlow, *, silent: Callable[[], str] | None = None) -> None:
        self._flow = flow
        self._silent = silent
        self._snapshots: deque[FlowSnapshot] = deque()

    def take(self, now_s: float) -> FlowRates:
        """Return the rates at a monotonic time."""
        now = take_snapshot(self._flow, seconds=now_s)
        while self._snapshots and self._snapshots[0].seconds < now_s - SPAN_S:
            self._snapshots.popleft()
        self._snapshots.append(now)
        span = now.since(self._snapshots[0])
        exact = _exact(self._flow, span, now) if self._silent is None else _NOTHING_EXACT
        least, _, median = self._flow.stats.k_reached_last
        shown: dict[str, Any] = {
            "rate_out": _rate(span.n_told, span),
            "messages_out": _rate(span.n_messages, span),
            "age_mean_s": _number(span.age_s.mean, digits=1),
            "age_p95_s": _number(span.age_s.quantile(0.95), digits=1),
            "region_mean": _number(span.region_nodes.mean, digits=1),
            "region_p90": _number(span.region_nodes.quantile(0.9)),
            "k_median": _number(median),
            "k_least": _number(least),
            "n_devices": self._flow.public_figures.shown.n_published_devices,
            "silent": now.silent if self._silent is None else self._silent(),
        }
        return FlowRates(**shown | exact)


_NOTHING_EXACT: dict[str, Any] = {
    "suppressed": {},
    **dict.fromkeys(("rate_in", "latency_p50_ms", "latency_p99_ms")),
    **dict.fromkeys(("n_newcomers", "n_followed", "n_below_k")),
}


def _exact(flow: PositionFlow, span: FlowSnapshot, now: FlowSnapshot) -> dict[str, Any]:
    """Return what nobody but the operator may see."""
    hidden = flow.view.hidden_to_k
    rates = {reason: _rate(n, span) for reason, n in span.not_published.items()}
    return {
        "rate_in": _rate(span.n_received, span),
        "rate_out": _rate(span.n_published, span),
        "latency_p50_ms": _number(1000 * span.latency_s.quantile(0.5), digits=2),
        "latency_p99_ms": _number(1000 * span.latency_s.quantile(0.99), digits=2),
        "suppressed": {reason: per_s for reason, per_s in rates.items() if per_s},
        "n_devices": now.n_devices,
        "n_newcomers": flow.view.n_newcomers,
        "n_followed": len(hidden),
        "n_below_k": int((hidden < 1).sum()),
    }


def _rate(n: int, span: FlowSnapshot) -> float | None:
    return round(n / span.seconds, 2) if span.seconds >= _LEAST_SPAN_S else None


def _number(value: float, *, digits: int | None = None) -> float | None:
    """Return a number for JSON, None for NaN."""
    if math.isnan(value):
        return None
    return value if digits is None else round(value, digits)
