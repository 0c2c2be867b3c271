"""What operators state replaces what may be otherwise, and nothing that a promise rests on."""

from anonymizer.settings import KafkaSettings
from anonymizer.transport.kafka_clients import client_options, reading, writing
from anonymizer.transport.kafka_problems import Problems

STATED = {
    "compression.type": "zstd",
    "fetch.queue.backoff.ms": "50",
    "isolation.level": "read_uncommitted",
    "enable.auto.commit": "true",
    "group.id": "another",
    "acks": "0",
    "enable.idempotence": "false",
    "bootstrap.servers": "elsewhere:9092",
    "log_level": "7",
}


def test_an_operator_changes_what_may_be_otherwise_and_no_guarantee() -> None:
    options = client_options(KafkaSettings.model_validate({"servers": "k:9092"}))
    assert options == {"bootstrap.servers": "k:9092", "log_level": "0"}
    reads = reading(STATED, group="mine", problems=Problems())
    assert reads["fetch.queue.backoff.ms"] == "50"
    assert reads["group.id"] == "mine"
    assert reads["isolation.level"] == "read_committed"
    assert reads["enable.auto.commit"] is False
    writes = writing(STATED, problems=Problems())
    assert writes["compression.type"] == "zstd"
    assert writes["acks"] == "all"
    assert writes["enable.idempotence"] is True
