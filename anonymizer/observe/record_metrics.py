"""Prometheus metrics of the records flow, read at each scrape. No label names a vehicle."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from anonymizer.observe.metrics import buckets
from anonymizer.pipeline.histograms import BatchHistogram
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.records.flow import UNMATCHED, RecordFlow
from anonymizer.pipeline.records.inbox import RecordInbox
from anonymizer.pipeline.records.stream_state import StreamState


class Recorded(Protocol):
    """The interface of a recorder."""

    flow: RecordFlow
    inbox: RecordInbox

    @property
    def connected(self) -> bool:
        """Whether the broker is connected."""

    @property
    def store_bytes(self) -> int:
        """Size of the store, in bytes."""

    @property
    def free_bytes(self) -> int:
        """Free space on the disk of the store, in bytes."""

    @property
    def usable(self) -> bool:
        """Whether the store can be used; if not, the flow is out of date."""


def parts_accounting(accounts: Iterable[tuple[str, Ledger, int]]) -> Iterator[Metric]:
    """Yield the accounts of parts, of streams by name: their ledger, and the parts held."""
    received = CounterMetricFamily(
        "anonymizer_record_parts_received", "Parts of records received.", labels=["stream"]
    )
    settled = CounterMetricFamily(
        "anonymizer_record_parts",
        "Parts of records by final outcome and reason.",
        labels=["stream", "outcome", "reason"],
    )
    imbalance = GaugeMetricFamily(
        "anonymizer_record_parts_imbalance",
        "received - settled - held: anything but 0 is a defect.",
        labels=["stream"],
    )
    held = GaugeMetricFamily(
        "anonymizer_record_parts_held",
        "Parts in open windows, and in classes that wait for the broker.",
        labels=["stream"],
    )
    for stream, ledger, n_held in accounts:
        received.add_metric([stream], ledger.n_received)
        held.add_metric([stream], n_held)
        imbalance.add_metric([stream], ledger.n_received - ledger.n_settled - n_held)
        for outcome, n in ledger.counts().items():
            settled.add_metric([stream, *outcome.label], n)
    yield from (received, settled, held, imbalance)


class RecordCollector(Collector):
    """Prometheus collector of all streams; the accounts are those of the store, across restarts."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded

    def collect(self) -> Iterator[Metric]:
        """Yield every metric of the streams."""
        yield from self._gauges()
        if self._recorded.usable:
            yield from self._accounting()
            yield from self._stream_gauges()
            yield from self._windows()
            yield from self._histograms()

    def _accounting(self) -> Iterator[Metric]:
        flow = self._recorded.flow
        accounts = [
            (state.stream.settings.name, state.accounts, state.n_held) for state in flow.states
        ]
        yield from parts_accounting([*accounts, (UNMATCHED, flow.unmatched, 0)])

    def _gauges(self) -> Iterator[Metric]:
        recorded = self._recorded
        for name, text, value in (
            ("connected", "1 while the broker is connected for records.", int(recorded.connected)),
            ("inbox_messages", "Messages that wait to be stored.", recorded.inbox.n_waiting),
            ("store_bytes", "Size of the store, in bytes.", recorded.store_bytes),
            (
                "store_free_bytes",
                "Free space on the disk of the store, in bytes.",
                recorded.free_bytes,
            ),
            (
                "store_usable",
                "0 while the store cannot be used: records wait, and streams have no metrics.",
                int(recorded.usable),
            ),
        ):
            yield GaugeMetricFamily(f"anonymizer_records_{name}", text, value=value)

    def _stream_gauges(self) -> Iterator[Metric]:
        for name, text, of in _GAUGES:
            family = GaugeMetricFamily(f"anonymizer_records_{name}", text, labels=["stream"])
            for state in self._recorded.flow.states:
                family.add_metric([state.stream.settings.name], of(state))
            yield family

    def _windows(self) -> Iterator[Metric]:
        states = self._recorded.flow.states
        for name, text, of in _COUNTERS:
            family = CounterMetricFamily(f"anonymizer_records_{name}", text, labels=["stream"])
            for state in states:
                family.add_metric([state.stream.settings.name], of(state))
            yield family
        silent = GaugeMetricFamily(
            "anonymizer_records_source_silent",
            "1 if the attributes of the source were withheld in the last closed window.",
            labels=["stream", "source"],
        )
        for state in states:
            for s, source in enumerate(state.stream.settings.sources):
                is_silent = s in state.stats.silent
                silent.add_metric([state.stream.settings.name, source.name], is_silent)
        yield silent
        last = GaugeMetricFamily(
            "anonymizer_records_last_window",
            "The last closed window: sizes, achieved k, d and l, and the information loss (gcp).",
            labels=["stream", "figure"],
        )
        for state in states:
            for figure, value in state.stats.last.items():
                last.add_metric([state.stream.settings.name, figure], value)
        yield last

    def _histograms(self) -> Iterator[Metric]:
        for name, text, of in _HISTOGRAMS:
            family = HistogramMetricFamily(f"anonymizer_records_{name}", text, labels=["stream"])
            for state in self._recorded.flow.states:
                histogram = of(state)
                family.add_metric([state.stream.settings.name], buckets(histogram), histogram.total)
            yield family


def _lag_s(state: StreamState) -> float:
    return time.time() - state.windows.watermark(at_s=time.monotonic())


_GAUGES: tuple[tuple[str, str, Callable[[StreamState], float]], ...] = (
    ("open_windows", "Open windows.", lambda state: state.windows.n_open),
    (
        "open_records",
        "Records in open windows.",
        lambda state: state.records.n_records,
    ),
    ("watermark_lag_seconds", "Seconds by which the watermark is behind the clock.", _lag_s),
    (
        "unprotected",
        "1 if attributes last, and windows together may reveal them (cumulative).",
        lambda state: state.stream.settings.unprotected,
    ),
    ("waiting_classes", "Classes that wait to be published.", lambda state: state.n_waiting),
)
_COUNTERS: tuple[tuple[str, str, Callable[[StreamState], float]], ...] = (
    ("windows", "Windows closed since the start.", lambda state: state.stats.n_windows),
    ("classes", "Classes formed since the start.", lambda state: state.stats.n_classes),
    (
        "unverified_classes",
        "Classes rejected by verification: anything but 0 is a defect.",
        lambda state: state.stats.n_unverified,
    ),
    ("messages_out", "Classes published since the start.", lambda state: state.stats.n_messages),
)
_HISTOGRAMS: tuple[tuple[str, str, Callable[[StreamState], BatchHistogram]], ...] = (
    ("close_seconds", "Time to anonymize a window.", lambda state: state.stats.close_s),
    ("class_size", "Vehicles of each published class.", lambda state: state.stats.class_size),
)
