"""Prometheus metrics of the outputs, read from their figures at each scrape."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from anonymizer.outputs.output import Figure


class OutputCollector(Collector):
    """Collector of the figures of all outputs; `figures` returns them, by reason."""

    def __init__(self, figures: Callable[[], Mapping[Figure, Mapping[str, int]]]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """Yield one counter for each figure."""
        for figure, n_of in self._figures().items():
            counter = CounterMetricFamily(
                f"anonymizer_{figure.name}", figure.text, labels=["reason"]
            )
            for reason, n in n_of.items():
                counter.add_metric([reason], n)
            yield counter
