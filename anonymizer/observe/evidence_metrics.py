"""Prometheus metrics of the attacks that a gateway mounts on its own traffic."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

ENDS = ("done", "partial", "failed", "empty")
FIGURES = ("success", "low", "high", "control")


@dataclass(slots=True)
class EvidenceFigures:
    """What the last attacks found: figures alone."""

    found: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By criterion, and by figure: of the attack that gains most over its control; NaN: unknown."""
    n_broken: int = 0
    """Attacks that break a promise."""
    at_s: float = 0.0
    sample_s: float = 0.0
    """`at_s`, `sample_s`: unix seconds at which the attacked sample ended, and its length; 0: none
    was attacked yet."""
    n_failed: int = 0
    """Attacks of the last run that failed or were not reached."""
    is_overdue: bool = False
    """Whether the last run failed, or none has ended for two periods."""
    n_runs: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENDS, 0))
    """How often all attacks were mounted, by how that ended; `partial`: some attacks failed;
    `failed`: their process; `empty`: there was no release."""


class EvidenceCollector(Collector):
    """Prometheus collector of the attacks of one gateway."""

    def __init__(self, figures: Callable[[], EvidenceFigures]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """Yield every metric of the attacks."""
        now = self._figures()
        found = GaugeMetricFamily(
            "anonymizer_evidence",
            "Success, from 0 to 1, of the attack that gains most under each criterion, its interval"
            " of 95 %, and the success of the same attack by chance (control).",
            labels=["criterion", "figure"],
        )
        for criterion, figures in now.found.items():
            for name, value in figures.items():
                found.add_metric([criterion, name], value)
        yield found
        for name, text, value in (
            ("broken", "Attacks of the last sample that break a promise.", now.n_broken),
            ("timestamp_seconds", "Unix time at which the last attacked sample ended.", now.at_s),
            ("sample_seconds", "Length of the last attacked sample.", now.sample_s),
            ("attacks_failed", "Attacks of the last run without a result.", now.n_failed),
            ("overdue", "1: the last run failed, or none ended for two periods.", now.is_overdue),
        ):
            yield GaugeMetricFamily(f"anonymizer_evidence_{name}", text, value=value)
        runs = CounterMetricFamily(
            "anonymizer_evidence_runs",
            "How often all attacks were mounted, by how that ended.",
            labels=["ended"],
        )
        for ended, n in now.n_runs.items():
            runs.add_metric([ended], n)
        yield runs
