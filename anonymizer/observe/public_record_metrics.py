"""Metrics of the records flow that anybody may read: what the published classes show anyway.

An exact count tells that one vehicle reported, and a coarse one tells it to whoever has brought the
count to an edge. So every metric that a vehicle can change which is in no class is left out.
"""

from collections.abc import Iterator

from prometheus_client.core import Metric, Sample
from prometheus_client.registry import Collector

from anonymizer.observe.record_metrics import RecordCollector, Recorded

_OF_CLASSES = frozenset(
    f"anonymizer_{name}"
    for name in (
        *("record_parts_imbalance", "records_connected", "records_store_usable"),
        *("records_unprotected", "records_waiting_classes", "records_classes"),
        *("records_unverified_classes", "records_messages_out", "records_class_size"),
    )
)
_OF_LAST_WINDOW = frozenset({"anonymizer_records_source_silent", "anonymizer_records_last_window"})
"""These stay as they are when a window ends without a class, which is no public event."""
_FIGURES = frozenset(
    {None, "published", "promised_k", "classes", "k", "d", "l", "gcp", "silent_sources"}
)
"""Figures of the last window; None: the metric has none."""


class PublicRecordCollector(Collector):
    """Prometheus collector of the public metrics of all streams."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._exact = RecordCollector(recorded)
        self._last: dict[str, list[Sample]] = {}
        """Of the newest window with a class of each stream, by metric."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that may be shown now."""
        states = self._recorded.flow.states
        without = {s.stream.settings.name for s in states if not s.stats.last.get("classes")}
        for metric in self._exact.collect():
            if metric.name in _OF_LAST_WINDOW:
                before = self._last.get(metric.name, [])
                metric.samples = [s for s in before if s.labels["stream"] in without] + [
                    s
                    for s in metric.samples
                    if s.labels["stream"] not in without and s.labels.get("figure") in _FIGURES
                ]
                self._last[metric.name] = metric.samples
            elif metric.name not in _OF_CLASSES:
                continue
            yield metric
