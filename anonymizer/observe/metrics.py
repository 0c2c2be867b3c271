"""Prometheus metrics of the positions flow, read from its counts at each scrape.

Nothing is incremented per message. Labels are outcomes, reasons and stages, never devices.
"""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from anonymizer.pipeline.accounting import BatchHistogram
from anonymizer.pipeline.positions.counts.private_counts import BUDGET, OVERLOAD, STORE
from anonymizer.pipeline.positions.counts.public_counts import Figures, exact_figures
from anonymizer.pipeline.positions.out.trips import UNVERIFIED
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox


class FlowCollector(Collector):
    """Prometheus collector of one positions flow.

    Parameters
    ----------
    flow, inbox
        The flow and its inbox.
    n_queued_ticks
        Returns the number of outputs that wait to be published.
    connected
        Returns whether the broker is connected.
    figures
        Returns the counts to export. None: the exact ones, for the operator.
    """

    def __init__(
        self,
        flow: PositionFlow,
        inbox: Inbox,
        *,
        n_queued_ticks: Callable[[], int],
        connected: Callable[[], bool],
        figures: Callable[[], Figures] | None = None,
    ) -> None:
        self._flow = flow
        self._inbox = inbox
        self._n_queued_ticks = n_queued_ticks
        self._connected = connected
        self._figures = figures or self._exact

    def _exact(self) -> Figures:
        flow = self._flow
        return exact_figures(flow, flow.ledger, n_waiting=self._inbox.n_waiting)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric of the flow."""
        figures = self._figures()
        yield from self._accounting(figures)
        yield from self._gauges(figures)
        yield from self._privacy(figures)
        yield from self._readings(figures)
        yield from self._histograms(figures)
        yield from self._density(figures)

    def _accounting(self, figures: Figures) -> Iterator[Metric]:
        received = CounterMetricFamily("anonymizer_received", "Positions received.")
        received.add_metric([], figures.n_received)
        yield received
        settled = CounterMetricFamily(
            "anonymizer_positions",
            "Positions by final outcome and reason.",
            labels=["outcome", "reason"],
        )
        for label, n in figures.n_of.items():
            settled.add_metric(label, n)
        yield settled
        refused = CounterMetricFamily(
            "anonymizer_input_refused",
            "Messages and positions that could not be used, by number of the input, from one.",
            labels=["input", "outcome", "reason"],
        )
        for (number, label), n in figures.refused.items():
            refused.add_metric([str(number), *label], n)
        yield refused
        yield GaugeMetricFamily(
            "anonymizer_held", "Positions received and not yet settled.", value=figures.n_held
        )
        yield GaugeMetricFamily(
            "anonymizer_accounting_imbalance",
            "received - settled - held: anything but 0 is a defect.",
            value=figures.imbalance,
        )
        for name, text, n in (
            ("ticks", "Ticks of the positions flow.", self._flow.stats.n_ticks),
            (
                "ticks_late",
                "Ticks that began more than an interval late; the inbox keeps the newest.",
                self._flow.stats.n_late_ticks,
            ),
        ):
            ticks = CounterMetricFamily(f"anonymizer_{name}", text)
            ticks.add_metric([], n)
            yield ticks
        messages = CounterMetricFamily("anonymizer_messages_out", "Cloaked messages published.")
        messages.add_metric([], self._flow.stats.n_messages_out)
        yield messages
        intervals = CounterMetricFamily(
            "anonymizer_counts_intervals",
            "Intervals of counts, hours of streets, by why they were suppressed; empty: published.",
            labels=["reason"],
        )
        for reason in ("", BUDGET, STORE, OVERLOAD, UNVERIFIED):
            intervals.add_metric([reason], self._flow.n_count_intervals(reason))
        yield intervals
        classes = CounterMetricFamily(
            "anonymizer_trip_classes",
            "Classes of trips, by why they were suppressed; empty: they were published.",
            labels=["reason"],
        )
        for reason in ("", UNVERIFIED):
            classes.add_metric([reason], self._flow.n_trip_classes(reason))
        yield classes

    def _gauges(self, figures: Figures) -> Iterator[Metric]:
        devices, on_graph = figures.n_devices, figures.n_devices_on_graph
        for name, text, value in (
            ("devices_present", "Devices that reported within their time to live.", devices),
            ("devices_on_graph", "Devices that count towards k.", on_graph),
            ("newcomers", "Devices on the graph that wait for a group.", figures.n_newcomers),
            ("fixed_devices", "Cloaked fixed devices present.", figures.n_fixed_devices),
            (
                "zones_left_out",
                "Devices that are hidden because there is no room for the zones that they state.",
                figures.n_without_room,
            ),
            (
                "statements_unmet",
                "Devices hidden because their statements are unmet, unusable or change too often.",
                figures.n_shut_out,
            ),
            ("inbox_messages", "Messages that wait for the next tick.", figures.n_waiting),
            ("queued_ticks", "Outputs that wait to be published.", self._n_queued_ticks()),
            ("broker_connected", "1 while the broker is connected.", int(self._connected())),
        ):
            if value is not None:
                yield GaugeMetricFamily(f"anonymizer_{name}", text, value=value)

    @staticmethod
    def _density(figures: Figures) -> Iterator[Metric]:
        labels = ["band", "part"]
        nodes = GaugeMetricFamily(
            "anonymizer_density_nodes",
            "Junctions, by part of the network and by the number of devices at and beside them.",
            labels=labels,
        )
        devices = GaugeMetricFamily(
            "anonymizer_density_devices",
            "Devices that count towards k at these junctions.",
            labels=labels,
        )
        found = figures.density
        for part, of_band in enumerate(found.n_nodes.tolist() if found else ()):
            for i, band in enumerate(found.bands if found else ()):
                nodes.add_metric([band, str(part)], of_band[i])
                devices.add_metric([band, str(part)], int(found.n_devices[part, i]) if found else 0)
        yield nodes
        yield devices

    def _privacy(self, figures: Figures) -> Iterator[Metric]:
        reached = GaugeMetricFamily(
            "anonymizer_k_reached_last",
            "Size of the anonymity sets of the last tick that published.",
            labels=["percentile"],
        )
        last = self._flow.stats.k_reached_last
        for percentile, value in zip(("0", "1", "50"), last, strict=True):
            reached.add_metric([percentile], value)
        yield reached
        for name, text, value in (
            ("audit_followed", "Pseudonyms that the light audit follows.", figures.n_followed),
            (
                "audit_hidden_to_k_least",
                "Least number of candidates for a followed pseudonym, divided by its k.",
                figures.hidden_to_k_least,
            ),
            (
                "audit_below_k",
                "Followed pseudonyms with fewer than k candidates left.",
                figures.n_below_k,
            ),
            (
                "pseudonym_age_seconds",
                "Age of the oldest pseudonym in the last release.",
                self._flow.view.oldest_s,
            ),
            (
                "pseudonym_age_limit_seconds",
                "Age at which a pseudonym is to be renewed, by the settings.",
                self._flow.age_limit_s,
            ),
            (
                "age_of_information_limit_seconds",
                "Longest age of information by the settings: a beat or epoch, or the time to live.",
                self._flow.information_limit_s,
            ),
        ):
            yield GaugeMetricFamily(f"anonymizer_{name}", text, value=value)

    def _readings(self, figures: Figures) -> Iterator[Metric]:
        attributes = self._flow.view.attributes
        for name, text, counts in (
            ("readings_clamped", "Readings outside their declared range.", figures.n_clamped),
            (
                "readings_left_out",
                "Groups without a published reading, because fewer than k members had one.",
                figures.n_left_out,
            ),
        ):
            family = CounterMetricFamily(f"anonymizer_{name}", text, labels=["attribute"])
            for attribute, n in zip(attributes, counts.tolist(), strict=True):
                family.add_metric([attribute], n)
            yield family

    def _histograms(self, figures: Figures) -> Iterator[Metric]:
        stats = self._flow.stats
        stages = HistogramMetricFamily(
            "anonymizer_stage_seconds", "Time a tick spends in each stage.", labels=["stage"]
        )
        for stage, histogram in figures.stage_s.items():
            stages.add_metric([stage], buckets(histogram), histogram.total)
        yield stages
        latency = HistogramMetricFamily(
            "anonymizer_latency_seconds",
            "Arrival to publication (to the broker's acknowledgement at QoS 1) of every published"
            " position, by what it waited for: the tick, or the beat of its group.",
            labels=["waited_for"],
        )
        for each, histogram in figures.latency_s.items():
            latency.add_metric([each], buckets(histogram), histogram.total)
        yield latency
        for name, text, histogram in (
            (
                "age_of_information_seconds",
                "Age of the newest region of each pseudonym that lives, sampled every second.",
                figures.age_s,
            ),
            ("region_metres", "Diagonal of each published region, in metres.", stats.region_metres),
            ("region_nodes", "Nodes of each published region.", stats.region_nodes),
            ("k_asked", "Required k of each group.", stats.k_asked),
            ("k_reached", "Size of the anonymity set of each group.", stats.k_reached),
        ):
            family = HistogramMetricFamily(f"anonymizer_{name}", text)
            family.add_metric([], buckets(histogram), histogram.total)
            yield family


def new_registry(*collectors: Collector) -> CollectorRegistry:
    """Return a registry of these collectors and of metrics of the process."""
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def buckets(histogram: BatchHistogram) -> list[tuple[str, float]]:
    """Return the cumulative counts of a histogram by upper edge, as for Prometheus."""
    names = [f"{edge:.6g}" for edge in histogram.edges] + ["+Inf"]
    return list(zip(names, histogram.cumulative(), strict=True))
