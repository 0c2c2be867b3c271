"""What a worker does, and its Prometheus metrics.

The accounts of all workers add up: each source and stream has one owner at a time. They are exact,
as is what stages take and send: for the operator alone. Anybody may see whether all works.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, Sample
from prometheus_client.registry import Collector

from anonymizer.cluster.resident import Resident, StageEvents
from anonymizer.domain.outcomes import Outcome
from anonymizer.observe.metrics import PublicCollector
from anonymizer.observe.record_metrics import parts_accounting
from anonymizer.outputs.output import UNVERIFIED
from anonymizer.pipeline.ledger import Ledger


@dataclass
class Deletions:
    """How often inputs of a partition were deleted, and how often Kafka refused to."""

    n_done: int = 0
    n_refused: int = 0


@dataclass
class WorkDone:
    """What a worker has done, for its metrics."""

    n_taken: dict[str, int] = field(default_factory=dict)
    n_sent: Counter[str] = field(default_factory=Counter)
    """`n_taken`, `n_sent`: inputs taken and messages sent, by topic."""
    n_assigned: int = 0
    """How often partitions were assigned."""
    owned: frozenset[tuple[str, int]] = frozenset()
    """Partitions now assigned, as topic and number."""
    residents: dict[tuple[str, int, bytes], Resident] = field(default_factory=dict)
    """The stages in memory, by topic, number of the partition, and key."""
    counts: StageEvents = field(default_factory=StageEvents)
    """What happened to the stages."""
    deletions: Deletions = field(default_factory=Deletions)
    """Of inputs that are not needed any more."""
    stands_still: str = ""
    """Why the stages do not go on until the operator acts; empty: they do."""
    restoring_s: float = 0.0
    """Time spent on restoring stages and taking inputs again."""
    lag: dict[tuple[str, int], int] = field(default_factory=dict)
    """Messages that wait, by topic and number of the partition."""
    read: frozenset[tuple[str, int]] = frozenset()
    read_lag: dict[tuple[str, int], int] = field(default_factory=dict)
    """`read`, `read_lag`: the same of the topics that are read besides: partitions, and messages
    that wait."""
    taking_since: float | None = None
    """When the stage at work got its input, seconds of the monotonic clock; None: none works."""
    polled_at: float = field(default_factory=time.monotonic)
    connected_at: float = field(default_factory=time.monotonic)
    """`polled_at`, `connected_at`: when Kafka's client last ran in the main thread, and was last
    seen to have a connection, seconds of the monotonic clock."""
    waits: str = ""
    """Why the worker has begun again and has no partitions yet; empty: it has."""


_PUBLIC = frozenset(
    {
        "anonymizer_accounting_imbalance",
        "anonymizer_record_parts_imbalance",
        *(f"anonymizer_worker_{name}" for name in ("assignments", "begun_anew", "events")),
        *(f"anonymizer_worker_{name}" for name in ("partitions", "restored", "stands_still")),
    }
)
_PUBLIC_EVENTS = frozenset({"ticks", "incomplete_ticks"})
"""Those that no position and no record changes, besides what failed the check before publishing:
none ever should."""


class StageAccounts(NamedTuple):
    """Accounts of the stages that a worker owns, at one moment."""

    n_received: int
    n_held: int
    """`n_received`, `n_held`: positions received, and those not settled."""
    n_of: Mapping[Outcome, int]
    """Positions by final outcome."""
    n_events: Mapping[tuple[str, str], int]
    """What happened in the stages, by their kind and the name of the event."""
    parts: Sequence[tuple[str, Ledger, int]] = ()
    """Name of a stream, ledger of the parts of its records, and how many are not settled."""

    @property
    def imbalance(self) -> int:
        """Positions that no count contains: anything but 0 is a defect."""
        return self.n_received - sum(self.n_of.values()) - self.n_held


def public_of_worker(exact: "WorkerCollector") -> PublicCollector:
    """Return those metrics of a worker that anybody may read."""

    def shows(sample: Sample) -> bool:
        event = sample.labels.get("event")
        return event is None or event in _PUBLIC_EVENTS or event.startswith(UNVERIFIED)

    return PublicCollector(exact, _PUBLIC, shows=shows)


class WorkerCollector(Collector):
    """Metrics of a worker."""

    def __init__(self, observed: WorkDone, accounts: Callable[[], StageAccounts]) -> None:
        self._observed, self._accounts = observed, accounts

    def collect(self) -> Iterator[Metric]:
        """Yield every metric of the worker."""
        accounts = self._accounts()
        yield GaugeMetricFamily(
            "anonymizer_accounting_imbalance",
            "received - settled - held: anything but 0 is a defect.",
            value=accounts.imbalance,
        )
        yield from parts_accounting(accounts.parts)
        yield from _of_accounts(accounts)
        events = CounterMetricFamily(
            "anonymizer_worker_events",
            "What happened in the stages that the worker owns now.",
            labels=["stage", "event"],
        )
        for (stage, event), n in sorted(accounts.n_events.items()):
            events.add_metric([stage, event], n)
        yield events
        yield from self._counters()
        yield from self._gauges()

    def _counters(self) -> Iterator[Metric]:
        seen, counts = self._observed, self._observed.counts
        for name, text, n in (
            ("assignments", "How often Kafka assigned partitions.", seen.n_assigned),
            ("snapshots", "Snapshots of stages that were stored.", counts.n_snapshots),
            ("restored", "How often a stage went back to a snapshot.", counts.n_restored),
            ("taken_again", "Inputs that a stage took again after a crash.", counts.n_again),
            (
                "begun_anew",
                "How often a stage lost its state because Kafka had deleted inputs.",
                counts.n_anew,
            ),
            ("restoring_seconds", "Time in which inputs were taken again.", seen.restoring_s),
        ):
            yield CounterMetricFamily(f"anonymizer_worker_{name}", text, value=n)
        deletions = {"done": seen.deletions.n_done, "refused": seen.deletions.n_refused}
        for name, label, text, n_of in (
            (
                "dropped",
                "reason",
                "What was dropped: inputs that no stage took, and outputs too large for a topic.",
                counts.n_dropped,
            ),
            (
                "deletions",
                "result",
                "How often inputs that snapshots contain were deleted in a partition.",
                deletions,
            ),
            ("inputs", "topic", "Inputs that stages took.", seen.n_taken),
            ("sent", "to", "Messages that stages sent.", seen.n_sent),
        ):
            counter = CounterMetricFamily(f"anonymizer_worker_{name}", text, labels=[label])
            for key, n in sorted(n_of.items()):
                counter.add_metric([key], n)
            yield counter

    def _gauges(self) -> Iterator[Metric]:
        seen = self._observed
        owned = GaugeMetricFamily(
            "anonymizer_worker_partitions", "Partitions assigned to the worker.", labels=["topic"]
        )
        for topic in sorted(seen.n_taken):
            owned.add_metric([topic], sum(name == topic for name, _ in seen.owned | seen.read))
        yield owned
        yield GaugeMetricFamily(
            "anonymizer_worker_stands_still",
            "1 if a stage cannot go on until the operator acts; /readyz says why.",
            value=int(bool(seen.stands_still)),
        )
        of_partition = ["topic", "partition"]
        lag = GaugeMetricFamily(
            "anonymizer_worker_lag", "Messages that wait in Kafka.", labels=of_partition
        )
        for (topic, partition), n in sorted((seen.lag | seen.read_lag).items()):
            lag.add_metric([topic, str(partition)], n)
        yield lag
        at = GaugeMetricFamily(
            "anonymizer_worker_input_timestamp_seconds",
            "When the last input that stages took was written, unix time.",
            labels=of_partition,
        )
        newest: dict[tuple[str, int], float] = {}
        for (topic, partition, _), resident in dict(seen.residents).items():
            place = topic, partition
            newest[place] = max(newest.get(place, 0.0), resident.at_s)
        for (topic, partition), at_s in sorted(newest.items()):
            at.add_metric([topic, str(partition)], at_s)
        yield at


def _of_accounts(accounts: StageAccounts) -> Iterator[Metric]:
    received = "Positions received."
    yield CounterMetricFamily("anonymizer_received", received, value=accounts.n_received)
    settled = CounterMetricFamily(
        "anonymizer_positions",
        "Positions by final outcome and reason.",
        labels=["outcome", "reason"],
    )
    for outcome, n in accounts.n_of.items():
        settled.add_metric(outcome.label, n)
    yield settled
    yield GaugeMetricFamily(
        "anonymizer_held", "Positions received and not yet settled.", value=accounts.n_held
    )
