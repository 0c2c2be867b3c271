"""Access to Kafka, and its topics."""

from pathlib import Path

import pytest

from anonymizer.cluster.kafka import ensure_topics, secret_of
from anonymizer.errors import SettingsError, TransportError
from anonymizer.settings import Settings
from tests.cluster.kafka import Kafka


def settings(address: str, prefix: str, **cluster: int) -> Settings:
    return Settings.model_validate({"cluster": {"kafka": address, "prefix": prefix, **cluster}})


def test_topics_are_created_once_and_other_partitions_are_refused(
    kafka: Kafka, prefix: str
) -> None:
    ensure_topics(settings(kafka.address, prefix, n_sources=2))
    ensure_topics(settings(kafka.address, prefix, n_sources=2))
    with pytest.raises(SettingsError, match=rf"{prefix}.sources has 2 partitions"):
        ensure_topics(settings(kafka.address, prefix, n_sources=3))


def test_a_kafka_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonymizer.cluster.kafka._ANSWER_S", 1.0)
    with pytest.raises(TransportError, match=r"cluster\.kafka"):
        ensure_topics(settings("127.0.0.1:1", "t"))


def test_a_secret_is_long_and_secret(tmp_path: Path) -> None:
    file = tmp_path / "key"
    with pytest.raises(SettingsError, match="cannot be read"):
        secret_of(file)
    file.write_bytes(b"x" * 31)
    file.chmod(0o640)
    with pytest.raises(SettingsError, match="at least 32"):
        secret_of(file)
    file.write_bytes(b"x" * 32)
    assert secret_of(file) == b"x" * 32
    file.chmod(0o644)
    with pytest.raises(SettingsError, match="others can read"):
        secret_of(file)
