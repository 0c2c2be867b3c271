"""Prometheus metrics of the positions flow, read from its counts at each scrape.

Nothing is incremented per message. Labels are outcomes, reasons and stages, never devices.
"""

import math
from collections.abc import Callable, Collection, Iterator

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    Sample,
)
from prometheus_client.registry import Collector

from anonymizer.crashes import CRASHES
from anonymizer.pipeline.histograms import BatchHistogram
from anonymizer.pipeline.positions.counts.figures import Exact, Figures, exact_figures
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox


class FlowCollector(Collector):
    """Prometheus collector of one positions flow.

    Parameters
    ----------
    n_queued_ticks
        Returns the number of outputs that wait to be published.
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
        """Yield every metric of the flow that may be shown."""
        figures = self._figures()
        yield from self._counters(figures)
        yield from self._privacy()
        yield from self._readings(figures)
        yield from self._histograms()
        if figures.exact is not None:
            yield from self._exact_counts(figures.exact)
            yield from self._exact_audit(figures.exact)
            yield from self._exact_times(figures.exact)
            yield from self._density(figures.exact)

    def _counters(self, figures: Figures) -> Iterator[Metric]:
        settled = CounterMetricFamily(
            "anonymizer_positions",
            "Positions by final outcome and reason; without the token, devices, in steps of k.",
            labels=["outcome", "reason"],
        )
        for label, n in figures.n_of.items():
            settled.add_metric(label, n)
        yield settled
        refused = CounterMetricFamily(
            "anonymizer_input_refused",
            "Messages and positions that could not be used, by number of the input, from one;"
            " without the token, devices, in steps of k.",
            labels=["input", "outcome", "reason"],
        )
        for (number, label), n in figures.refused.items():
            refused.add_metric([str(number), *label], n)
        yield refused
        yield GaugeMetricFamily(
            "anonymizer_published_devices",
            "Devices that the published messages told of at one moment lately, in steps of k.",
            value=figures.n_published_devices,
        )
        stats = self._flow.stats
        late = "Ticks that began more than an interval late; the inbox keeps the newest."
        for name, text, n in (
            ("ticks", "Ticks of the positions flow.", stats.n_ticks),
            ("ticks_late", late, stats.n_late_ticks),
            ("messages_out", "Cloaked messages published.", stats.n_messages_out),
        ):
            yield CounterMetricFamily(f"anonymizer_{name}", text, value=n)

    def _exact_counts(self, exact: Exact) -> Iterator[Metric]:
        view, received = exact.view, "Positions received."
        yield CounterMetricFamily("anonymizer_received", received, value=exact.n_received)
        for name, text, value in (
            ("held", "Positions received and not yet settled.", exact.n_held),
            (
                "accounting_imbalance",
                "received - settled - held: anything but 0 is a defect.",
                exact.imbalance,
            ),
            (
                "devices_present",
                "Devices that reported within their time to live.",
                view.n_devices,
            ),
            ("devices_on_graph", "Devices that count towards k.", view.n_devices_on_graph),
            ("newcomers", "Devices on the graph that wait for a group.", view.n_newcomers),
            ("fixed_devices", "Cloaked fixed devices present.", view.n_fixed_devices),
            (
                "zones_left_out",
                "Devices that are hidden because there is no room for the zones that they state.",
                exact.n_without_room,
            ),
            (
                "statements_unmet",
                "Devices hidden because their statements are unmet, unusable or change too often.",
                view.n_shut_out,
            ),
            ("inbox_messages", "Messages that wait for the next tick.", exact.n_waiting),
            ("queued_ticks", "Outputs that wait to be published.", self._n_queued_ticks()),
        ):
            yield GaugeMetricFamily(f"anonymizer_{name}", text, value=value)

    @staticmethod
    def _density(exact: Exact) -> Iterator[Metric]:
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
        found = exact.density
        for part, of_band in enumerate(found.n_nodes.tolist() if found else ()):
            for i, band in enumerate(found.bands if found else ()):
                nodes.add_metric([band, str(part)], of_band[i])
                devices.add_metric([band, str(part)], int(found.n_devices[part, i]) if found else 0)
        yield nodes
        yield devices

    def _privacy(self) -> Iterator[Metric]:
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
            ("broker_connected", "1 while the broker is connected.", int(self._connected())),
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

    @staticmethod
    def _exact_audit(exact: Exact) -> Iterator[Metric]:
        found = exact.view.hidden_to_k
        least = "Least number of candidates for a followed pseudonym, divided by its k."
        below = "Followed pseudonyms with fewer than k candidates left."
        for name, text, value in (
            ("audit_followed", "Pseudonyms that the light audit follows.", len(found)),
            ("audit_hidden_to_k_least", least, found.min() if len(found) else math.nan),
            ("audit_below_k", below, (found < 1).sum()),
        ):
            yield GaugeMetricFamily(f"anonymizer_{name}", text, value=value)

    def _readings(self, figures: Figures) -> Iterator[Metric]:
        attributes, unusable = self._flow.view.attributes, []
        if figures.exact is not None:
            unusable = [
                (
                    "readings_unusable",
                    "Readings without a usable number: null, NaN, text, negative.",
                    self._flow.view.n_unusable,
                )
            ]
        for name, text, counts in (
            *unusable,
            ("readings_clamped", "Readings outside their declared range.", figures.n_clamped),
            (
                "readings_left_out",
                "Groups without a published reading, because fewer than k members had one.",
                self._flow.view.n_left_out,
            ),
        ):
            family = CounterMetricFamily(f"anonymizer_{name}", text, labels=["attribute"])
            for attribute, n in zip(attributes, counts.tolist(), strict=True):
                family.add_metric([attribute], n)
            yield family

    def _histograms(self) -> Iterator[Metric]:
        stats = self._flow.stats
        for name, text, histogram in (
            (
                "age_of_information_seconds",
                "Age of the newest region of each pseudonym that lives, sampled every second.",
                stats.age_s,
            ),
            ("region_metres", "Diagonal of each published region, in metres.", stats.region_metres),
            ("region_nodes", "Nodes of each published region.", stats.region_nodes),
            ("k_asked", "Required k of each group.", stats.k_asked),
            ("k_reached", "Size of the anonymity set of each group.", stats.k_reached),
        ):
            family = HistogramMetricFamily(f"anonymizer_{name}", text)
            family.add_metric([], buckets(histogram), histogram.total)
            yield family

    @staticmethod
    def _exact_times(exact: Exact) -> Iterator[Metric]:
        stages = HistogramMetricFamily(
            "anonymizer_stage_seconds", "Time a tick spends in each stage.", labels=["stage"]
        )
        for stage, histogram in exact.stage_s.items():
            stages.add_metric([stage], buckets(histogram), histogram.total)
        yield stages
        latency = HistogramMetricFamily(
            "anonymizer_latency_seconds",
            "Arrival to publication (to the broker's acknowledgement at QoS 1) of every published"
            " position, by what it waited for: the tick, or the beat of its group.",
            labels=["waited_for"],
        )
        for each, histogram in exact.latency_s.items():
            latency.add_metric([each], buckets(histogram), histogram.total)
        yield latency


class CrashCollector(Collector):
    """Prometheus collector of the crashes of this service."""

    def collect(self) -> Iterator[Metric]:
        """Yield their number."""
        text = "Crashes in compiled code, over all restarts of this service."
        yield CounterMetricFamily("anonymizer_crashes", text, value=CRASHES.n)


class PublicCollector(Collector):
    """Those metrics of a collector that anybody may read: a new one is for the operator alone.

    Parameters
    ----------
    names
        The names of these metrics, as the families have them.
    shows
        Whether a sample of them may be read.
    """

    def __init__(
        self,
        exact: Collector,
        names: Collection[str],
        *,
        shows: Callable[[Sample], bool] = lambda _: True,
    ) -> None:
        self._exact, self._names, self._shows = exact, names, shows

    def collect(self) -> Iterator[Metric]:
        """Yield what may be shown now."""
        for metric in self._exact.collect():
            if metric.name in self._names:
                metric.samples = [each for each in metric.samples if self._shows(each)]
                yield metric


def public_registry(*collectors: Collector) -> CollectorRegistry:
    """Return a registry of these collectors alone.

    How much memory and time a process takes tells of each message that arrives.
    """
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    return registry


def new_registry(*collectors: Collector) -> CollectorRegistry:
    """Return a registry of these collectors and of metrics of the process."""
    registry = public_registry(*collectors, CrashCollector())
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def buckets(histogram: BatchHistogram) -> list[tuple[str, float]]:
    """Return the cumulative counts of a histogram by upper edge, as for Prometheus."""
    names = [f"{edge:.6g}" for edge in histogram.edges] + ["+Inf"]
    return list(zip(names, histogram.cumulative(), strict=True))
