"""One Kafka for all tests that do not kill it; each names its topics by a prefix of its own."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.brokers import broker, persistent_broker
from tests.cluster.kafka import Kafka, running_kafka
from tests.cluster.processes import Processes, processes

__all__ = ["broker", "persistent_broker"]

_KAFKA = {"kafka", "own_kafka"}
_DAY_MS = "86400000"
"""Recorded arrivals are of the past, and may be an hour old when the last test reads them."""


def pytest_itemcollected(item: pytest.Item) -> None:
    if _KAFKA.intersection(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.kafka)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    # Everybody may do everything, but for what a test denies.
    with running_kafka(
        tmp_path_factory.mktemp("kafka"),
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        allow_everyone_if_no_acl_found="true",
        log_retention_check_interval_ms=_DAY_MS,
    ) as running:
        yield running


@pytest.fixture
def prefix() -> str:
    """For topics and groups that no other test has."""
    return f"t{uuid4().hex[:12]}"


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as running:
        yield running


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[Kafka]:
    """For a test that kills it."""
    folder = tmp_path / "kafka"
    folder.mkdir()
    with running_kafka(folder, log_retention_check_interval_ms=_DAY_MS) as running:
        yield running
