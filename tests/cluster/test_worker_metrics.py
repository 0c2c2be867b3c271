"""Metrics of a worker: its part of the accounts, for the operator alone."""

from collections import Counter
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from anonymizer.cluster.bridge import Bridge
from anonymizer.cluster.resident import Input, Resident
from anonymizer.cluster.worker import Worker
from anonymizer.cluster.worker_metrics import (
    Deletions,
    StageAccounts,
    WorkDone,
    WorkerCollector,
    public_of_worker,
)
from anonymizer.domain.outcomes import Outcome
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.observe.metrics import public_registry
from anonymizer.pipeline.ledger import Ledger
from anonymizer.settings import Settings, zones_of
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


def samples(
    *, exact: bool, seen: WorkDone | None = None, accounts: StageAccounts = ACCOUNTS
) -> dict[str, float]:
    own = WorkerCollector(seen or observed(), lambda: accounts)
    registry = public_registry(own if exact else public_of_worker(own))
    found = [
        (f"{sample.name}{sorted(sample.labels.values(), reverse=True)}", sample.value)
        for metric in registry.collect()
        for sample in metric.samples
    ]
    assert len(dict(found)) == len(found), "no series comes twice"
    return dict(found)


def test_the_operator_sees_the_accounts() -> None:
    exact = samples(exact=True)
    assert exact["anonymizer_received_total[]"] == 10
    assert exact["anonymizer_held[]"] == 3
    assert exact["anonymizer_positions_total['published', '']"] == 5
    assert exact["anonymizer_accounting_imbalance[]"] == 1
    assert exact["anonymizer_record_parts_received_total['fleet']"] == 9
    assert exact["anonymizer_record_parts_held['fleet']"] == 2


def test_others_see_whether_it_works() -> None:
    public = samples(exact=False)
    assert public["anonymizer_accounting_imbalance[]"] == 1
    assert public["anonymizer_record_parts_imbalance['fleet']"] == 1
    assert public["anonymizer_worker_events_total['ticks', 'source']"] == 20
    assert public["anonymizer_worker_partitions['x.sources']"] == 2
    assert public["anonymizer_worker_stands_still[]"] == 1
    assert public.items() <= samples(exact=True).items()


def test_no_message_changes_what_others_see() -> None:
    """A topic of Kafka is read message by message, and each count of them tells of one device."""
    more = parts()
    more.receive(3)
    more.settle(Outcome.LATE, 2)
    seen = observed()
    seen.n_taken["x.sources"] += 1
    seen.n_sent["lane"] += 2
    seen.lag["x.sources", 2] = seen.read_lag["raw", 0] = 1
    seen.counts.n_snapshots += 1
    seen.counts.n_again += 1
    seen.deletions.n_done += 1
    seen.residents["x.sources", 2, b"source-2-0"].take(Input(5, b"a", 1235.5))
    events = {**ACCOUNTS.n_events, ("stream", "windows"): 1, ("stream", "records"): 4}
    accounts = StageAccounts(
        17, 4, {Outcome.PUBLISHED: 8, Outcome.LATE: 4}, events, [("fleet", more, 3)]
    )
    assert samples(exact=True) != samples(exact=True, seen=seen, accounts=accounts)
    assert samples(exact=False) == samples(exact=False, seen=seen, accounts=accounts)


async def test_others_do_not_see_the_process(tmp_path: Path) -> None:
    """So Prometheus finds out by the process whether it shows the token."""
    settings = Settings()
    zoned = with_zones(load_network("grid:5x5"), zones_of(settings.zones))
    worker = Worker(settings, zoned, [], bytes(range(1, 33)), name="a", state_dir=tmp_path)
    for each in (worker, Bridge(settings, name="a")):
        assert b"process_start_time_seconds" in generate_latest(each.registry(exact=True))
        public = generate_latest(each.registry(exact=False)).decode()
        names = {family.name for family in text_string_to_metric_families(public)}
        assert {name.partition("_")[0] for name in names} == {"anonymizer"}


def test_what_a_worker_does_is_seen_by_topic_and_partition() -> None:
    seen = samples(exact=True)
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
