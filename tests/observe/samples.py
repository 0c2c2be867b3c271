"""Samples of metrics by name and label."""

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from anonymizer.pipeline.records.flow import RecordFlow
from anonymizer.pipeline.records.inbox import RecordInbox

LABELS = ("stream", "outcome", "reason", "figure", "le")


@dataclass
class Watched:
    """A records side as it is exported."""

    flow: RecordFlow
    inbox: RecordInbox
    connected: bool = True
    store_bytes: int = 4096
    free_bytes: int = 10**9
    usable: bool = True


def samples(exposition: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *(sample.labels[n] for n in LABELS if n in sample.labels)): sample.value
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
        if sample.name.startswith("anonymizer_record")
    }
