from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from anonymizer.observe.metrics import new_registry
from anonymizer.observe.record_metrics import RecordCollector
from anonymizer.pipeline.ledger import FINAL
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.inbox import RecordInbox
from tests.observe.samples import Watched, samples
from tests.pipeline.records.made import traffic
from tests.pipeline.records.support import Rig


def records_registry(rig: Rig) -> CollectorRegistry:
    """Return a registry of a flow that has published, refused, and holds something."""
    rig.take(*traffic(n_vehicles=20, n_windows=1, seed=1))
    rig.take_raw([Delivery("elsewhere/secret", b"{}", 0), Delivery("records/profile/v", b"{", 0)])
    rig.close(silent=True)
    rig.publish(most=2)
    rig.take(*traffic(n_vehicles=5, n_windows=1, seed=1, start=6000.0))
    inbox = RecordInbox(9, streams_of=rig.flow.streams_of)
    return new_registry(RecordCollector(Watched(rig.flow, inbox)))


@pytest.fixture
def exposition(tmp_path: Path) -> Iterator[str]:
    rig = Rig(tmp_path)
    yield generate_latest(records_registry(rig)).decode()
    rig.store.close()


def test_what_is_out_of_date_is_not_exported_while_the_store_cannot_be_used(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path)
    inbox = RecordInbox(9, streams_of=rig.flow.streams_of)
    registry = new_registry(RecordCollector(Watched(rig.flow, inbox, usable=False)))
    value = samples(generate_latest(registry).decode())
    rig.store.close()
    assert value["anonymizer_records_store_usable",] == 0
    assert value["anonymizer_records_store_free_bytes",] == 10**9
    assert not any(len(name) > 1 for name in value)


def test_the_accounts_of_every_stream_are_exported_and_balance(exposition: str) -> None:
    value = samples(exposition)
    assert value["anonymizer_record_parts_received_total", "fleet"] == 76
    assert value["anonymizer_record_parts_total", "fleet", "invalid", "malformed"] == 1
    assert value["anonymizer_record_parts_total", "", "invalid", "unknown_topic"] == 1
    published = value["anonymizer_record_parts_total", "fleet", "published", ""]
    assert published > 0
    assert value["anonymizer_record_parts_held", "fleet"] == 75 - published
    assert value["anonymizer_record_parts_imbalance", "fleet"] == 0
    assert value["anonymizer_record_parts_imbalance", ""] == 0


def test_windows_classes_and_what_they_reach_are_exported(exposition: str) -> None:
    value = samples(exposition)
    assert value["anonymizer_records_open_windows", "fleet"] == 1
    assert value["anonymizer_records_open_records", "fleet"] == 5
    assert value["anonymizer_records_windows_total", "fleet"] == 1
    assert value["anonymizer_records_messages_out_total", "fleet"] == 2
    assert value["anonymizer_records_unverified_classes_total", "fleet"] == 0
    n_classes = value["anonymizer_records_classes_total", "fleet"]
    assert value["anonymizer_records_waiting_classes", "fleet"] == n_classes - 2
    assert value["anonymizer_records_class_size_sum", "fleet"] == 20
    assert value["anonymizer_records_last_window", "fleet", "k"] >= 4
    assert 0 < value["anonymizer_records_last_window", "fleet", "gcp"] < 1
    assert value["anonymizer_records_store_bytes",] == 4096
    assert value["anonymizer_records_connected",] == 1


def test_no_vehicle_and_no_value_is_exported(exposition: str) -> None:
    for word in ("veh-", "secret", "north", "brakes"):
        assert word not in exposition
    outcomes = {outcome.label for outcome in FINAL}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            assert sample.labels.get("stream", "") in {"", "fleet"}
            if "reason" in sample.labels:
                assert (sample.labels["outcome"], sample.labels["reason"]) in outcomes


def test_names_follow_the_rules_of_prometheus(exposition: str) -> None:
    families = [
        family
        for family in text_string_to_metric_families(exposition)
        if family.name.startswith("anonymizer_record")
    ]
    assert len(families) > 12
    for family in families:
        assert family.documentation.endswith(".")
        if family.type == "counter":
            assert {sample.name for sample in family.samples} <= {f"{family.name}_total"}
