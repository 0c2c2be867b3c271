"""Prometheus metrics of the connections to the broker, read at each scrape."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from anonymizer.pipeline.ports import LinkCounts


class LinkCollector(Collector):
    """Prometheus collector of the links of a gateway.

    `drops`: returns the number of messages that the broker has dropped; None: not known.
    """

    def __init__(
        self, links: Mapping[str, LinkCounts], *, drops: Callable[[], int | None] = lambda: None
    ) -> None:
        self._links = links
        self._drops = drops

    def collect(self) -> Iterator[Metric]:
        """Yield every metric of the links."""
        connections = CounterMetricFamily(
            "anonymizer_broker_connections", "Connections to the broker.", labels=["link"]
        )
        lost = CounterMetricFamily(
            "anonymizer_broker_connections_lost",
            "Connections that ended, by cause; taken_over: another client has used the client id.",
            labels=["link", "cause"],
        )
        forgotten = CounterMetricFamily(
            "anonymizer_broker_sessions_lost",
            "Connections at which the broker had lost the session and what it had queued.",
            labels=["link"],
        )
        too_large = CounterMetricFamily(
            "anonymizer_broker_too_large",
            "Attempts to publish a message above the largest packet that the broker accepts.",
            labels=["link"],
        )
        quarantined = CounterMetricFamily(
            "anonymizer_broker_quarantined",
            "Packets skipped because they had ended three connections; they cannot be read.",
            labels=["link"],
        )
        for link, counts in self._links.items():
            too_large.add_metric([link], counts.n_too_large)
            quarantined.add_metric([link], counts.n_quarantined)
            connections.add_metric([link], counts.n_connections)
            forgotten.add_metric([link], counts.n_sessions_lost)
            for cause, n in counts.lost.items():
                lost.add_metric([link, cause.value], n)
        yield from (connections, lost, forgotten, too_large, quarantined)
        yield CounterMetricFamily(
            "anonymizer_broker_dropped",
            "Messages dropped by the broker since its start, by its own count.",
            value=self._drops(),
        )
