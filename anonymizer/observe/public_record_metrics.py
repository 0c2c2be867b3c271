"""Metrics of the records flow that anybody may read.

An exact count tells that one vehicle reported. Public counts therefore move in steps of what k
vehicles send in a window, and are one interval late. Whatever a single vehicle can change is left
out, such as the watermark, and so is every metric that is not listed here.
"""

import math
from collections.abc import Iterator, Mapping
from enum import Enum, auto

from prometheus_client.core import Metric, Sample
from prometheus_client.registry import Collector

from anonymizer.domain.outcomes import Outcome
from anonymizer.observe.record_metrics import RecordCollector, Recorded
from anonymizer.pipeline.records.flow import UNMATCHED
from anonymizer.settings import StreamSettings
from anonymizer.settings.streams import MOST_OF_A_VEHICLE


class _Unit(Enum):
    """What a metric counts, which determines its step."""

    EXACT = auto()
    """Nothing that fewer than k vehicles can change."""
    RECORDS = auto()
    PARTS = auto()
    BYTES = auto()


_UNIT_OF = {
    "anonymizer_record_parts_received": _Unit.PARTS,
    "anonymizer_record_parts": _Unit.PARTS,
    "anonymizer_record_parts_held": _Unit.PARTS,
    "anonymizer_record_parts_imbalance": _Unit.EXACT,
    "anonymizer_records_connected": _Unit.EXACT,
    "anonymizer_records_inbox_messages": _Unit.PARTS,
    "anonymizer_records_store_bytes": _Unit.BYTES,
    "anonymizer_records_store_free_bytes": _Unit.BYTES,
    "anonymizer_records_store_usable": _Unit.EXACT,
    "anonymizer_records_open_records": _Unit.RECORDS,
    "anonymizer_records_unprotected": _Unit.EXACT,
    "anonymizer_records_waiting_classes": _Unit.EXACT,
    "anonymizer_records_classes": _Unit.EXACT,
    "anonymizer_records_unverified_classes": _Unit.EXACT,
    "anonymizer_records_messages_out": _Unit.EXACT,
    "anonymizer_records_class_size": _Unit.EXACT,
    "anonymizer_records_source_silent": _Unit.EXACT,
    "anonymizer_records_last_window": _Unit.EXACT,
}
_OF_LAST_WINDOW = frozenset({"anonymizer_records_source_silent", "anonymizer_records_last_window"})
"""These stay as they are when a window ends without a class, which is no public event."""
_FIGURES = {
    "records": _Unit.RECORDS,
    **dict.fromkeys(("published", "promised_k", "classes", "k", "d", "l", "gcp"), _Unit.EXACT),
    "silent_sources": _Unit.EXACT,
}
"""Figures of the last window; the classes show the exact ones to everybody."""
_NO_STREAM = UNMATCHED
"""Label, and step, of what belongs to no stream."""
_PART_BYTES = 2**12
"""More than a part takes in the store."""
_LEAST_BYTES_STEP = 2**20
"""The store grows by pages, and not only because of parts."""
_DEFECT = Outcome.SUPPRESSED__UNVERIFIED.label
"""Rounded up, because a defect must be seen."""


def _steps(stream: StreamSettings) -> dict[_Unit, int]:
    """Return the steps of a stream: what k vehicles send in a window at most."""
    by_vehicle = stream.per == "vehicle"
    records = stream.promise.k * (1 if by_vehicle else MOST_OF_A_VEHICLE)
    parts = records * len(stream.sources)
    return {
        _Unit.EXACT: 1,
        _Unit.RECORDS: records,
        _Unit.PARTS: parts,
        _Unit.BYTES: max(_LEAST_BYTES_STEP, parts * _PART_BYTES),
    }


class PublicRecordCollector(Collector):
    """Prometheus collector of the public metrics of all streams.

    Parameters
    ----------
    recorded
        The records side of a gateway.

    Notes
    -----
    A vehicle that sends more parts than its share, for example malformed ones, can move the counts
    by itself.
    """

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._exact = RecordCollector(recorded)
        self._shown = self._next = self._coarse({})

    def turn(self) -> None:
        """Show the metrics of the previous call from now on, and keep the present ones."""
        self._shown, self._next = self._next, self._coarse(self._next)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that may be shown now."""
        yield from self._shown.values()

    def _coarse(self, before: Mapping[str, Metric]) -> dict[str, Metric]:
        """Return the public metrics of this moment by name; `before` are the previous ones."""
        states = {state.stream.settings.name: state for state in self._recorded.flow.states}
        steps = {name: _steps(state.stream.settings) for name, state in states.items()}
        steps[_NO_STREAM] = {unit: max(of[unit] for of in steps.values()) for unit in _Unit}
        without_class = {n for n, state in states.items() if not state.stats.last.get("classes")}
        public: dict[str, Metric] = {}
        for metric in self._exact.collect():
            if metric.name not in _UNIT_OF:
                continue
            earlier = before[metric.name].samples if metric.name in before else []
            unchanged = without_class if metric.name in _OF_LAST_WINDOW else set()
            least = {_key(s): s.value for s in earlier} if metric.type == "counter" else {}
            metric.samples = [s for s in earlier if _stream(s) in unchanged] + [
                s._replace(value=max(_rounded(s, steps[_stream(s)][unit]), least.get(_key(s), 0)))
                for s in metric.samples
                if (unit := _unit(metric, s)) and _stream(s) not in unchanged
            ]
            public[metric.name] = metric
        return public


def _key(sample: Sample) -> tuple[str, ...]:
    return sample.name, *sample.labels.values()


def _stream(sample: Sample) -> str:
    return sample.labels.get("stream", _NO_STREAM)


def _unit(metric: Metric, sample: Sample) -> _Unit | None:
    """Return what a sample counts; None: it is not public."""
    figure = sample.labels.get("figure")
    return _UNIT_OF[metric.name] if figure is None else _FIGURES.get(figure)


def _rounded(sample: Sample, step: int) -> float:
    """Return the value of a sample, rounded down to a multiple of the step; defects up."""
    if step == 1:
        return sample.value
    if (sample.labels.get("outcome"), sample.labels.get("reason")) == _DEFECT:
        return math.ceil(sample.value / step) * step
    return sample.value // step * step
