"""What Kafka's client calls back: errors in it, and what it calls while a worker disconnects."""

import pytest
from confluent_kafka import TopicPartition

from anonymizer.cluster import transactions
from anonymizer.cluster.transactions import Places, Transactions
from anonymizer.transport.kafka_problems import KafkaLostError

PLACE = ("t", 0)


def member(assigned: list[tuple[Places, Places]]) -> Transactions:
    """Return a member of a group that has committed something, and of a Kafka that is dead."""
    made = Transactions(
        {"bootstrap.servers": "127.0.0.1:1"},
        group="g",
        name="a",
        silent_s=240.0,
        assigned=lambda places, same: assigned.append((places, same)),
        revoked=lambda: None,
        statistics=lambda _: None,
    )
    made._committed[PLACE] = 1
    return made


def test_what_is_assigned_while_a_worker_disconnects_is_left_alone() -> None:
    assigned: list[tuple[Places, Places]] = []
    link = member(assigned)
    link.close()
    link._on_assign(link._consumer, [TopicPartition(*PLACE)])
    assert not assigned


def test_kafka_that_is_lost_while_partitions_are_assigned_is_lost_and_nothing_worse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions, "_ANSWER_S", 0.1)
    link = member([])
    with pytest.raises(KafkaLostError):
        link._on_assign(link._consumer, [TopicPartition(*PLACE)])
    link.close()
