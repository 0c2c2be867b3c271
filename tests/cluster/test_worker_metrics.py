"""Metrics of a worker: its part of the accounts, for the operator alone."""

from collections import Counter

from anonymizer.cluster.resident import Input, Resident
from anonymizer.cluster.worker_metrics import Deletions, StageAccounts, WorkDone, WorkerCollector
from anonymizer.domain.outcomes import Outcome
from anonymizer.observe.metrics import new_registry
from anonymizer.pipeline.ledger import Ledger
from tests.cluster.residents import resident_of


def parts() -> Ledger:
    ledger = Ledger()
    ledger.receive(9)
    ledger.settle(Outcome.PUBLISHED, 6)
    return ledger


ACCOUNTS = StageAccounts(
    10,
    3,
    {Outcome.PUBLISHED: 5, Outcome.LATE: 1},
    {("source", "ticks"): 20, ("source", "late_messages"): 2},
    [("fleet", parts(), 2)],
)


def observed() -> WorkDone:
    def resident(at_s: float) -> Resident:
        made = resident_of()
        made.take(Input(4, b"a", at_s))
        return made

    return WorkDone(
        n_taken={"x.sources": 7},
        n_sent=Counter({"lane": 9}),
        owned=frozenset({("x.sources", 0), ("x.sources", 2)}),
        residents={
            ("x.sources", 2, b"source-2-0"): resident(1234.5),
            ("x.parts", 0, b"stream-2-0"): resident(7.5),
            ("x.parts", 0, b"stream-0-0"): resident(6.5),
        },
        lag={("x.sources", 2): 11},
        deletions=Deletions(5, 1),
        stands_still="inputs were deleted",
    )


def samples(*, exact: bool) -> dict[str, float]:
    registry = new_registry(WorkerCollector(observed(), lambda: ACCOUNTS, exact=exact))
    found = [
        (f"{sample.name}{sorted(sample.labels.values(), reverse=True)}", sample.value)
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name.startswith("anonymizer_")
    ]
    assert len(dict(found)) == len(found), "no series comes twice"
    return dict(found)


def test_the_operator_sees_the_accounts_and_others_the_imbalance() -> None:
    exact, public = samples(exact=True), samples(exact=False)
    assert exact["anonymizer_received_total[]"] == 10
    assert exact["anonymizer_held[]"] == 3
    assert exact["anonymizer_positions_total['published', '']"] == 5
    assert exact["anonymizer_accounting_imbalance[]"] == 1
    assert exact["anonymizer_record_parts_received_total['fleet']"] == 9
    assert exact["anonymizer_record_parts_held['fleet']"] == 2
    assert public["anonymizer_record_parts_imbalance['fleet']"] == 1
    assert public["anonymizer_worker_events_total['ticks', 'source']"] == 20
    hidden = exact.keys() - public.keys()
    assert {name.partition("[")[0] for name in hidden} == {
        "anonymizer_received_total",
        "anonymizer_positions_total",
        "anonymizer_held",
        "anonymizer_record_parts_received_total",
        "anonymizer_record_parts_total",
        "anonymizer_record_parts_held",
        "anonymizer_worker_events_total",
    }


def test_what_a_worker_does_is_seen_by_topic_and_partition() -> None:
    seen = samples(exact=False)
    assert seen["anonymizer_worker_partitions['x.sources']"] == 2
    assert seen["anonymizer_worker_lag['x.sources', '2']"] == 11
    assert seen["anonymizer_worker_input_timestamp_seconds['x.sources', '2']"] == 1234.5
    # Streams may share a partition.
    assert seen["anonymizer_worker_input_timestamp_seconds['x.parts', '0']"] == 7.5
    assert seen["anonymizer_worker_inputs_total['x.sources']"] == 7
    assert seen["anonymizer_worker_sent_total['lane']"] == 9
    assert seen["anonymizer_worker_deletions_total['done']"] == 5
    assert seen["anonymizer_worker_deletions_total['refused']"] == 1
    assert seen["anonymizer_worker_stands_still[]"] == 1
