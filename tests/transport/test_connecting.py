"""Connecting to a broker: address, client id, credentials, TLS and backoff."""

import random
import re
import socket
import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.errors import TransportError
from anonymizer.settings import BrokerSettings
from anonymizer.transport.connecting import backoff_s, client_id_of, read_access, reason_of
from tests.brokers import Certificates


@pytest.mark.parametrize(
    ("url", "host", "port", "tls"),
    [
        ("mqtt://localhost", "localhost", 1883, False),
        ("mqtts://broker.example", "broker.example", 8883, True),
        ("mqtt://[::1]:7", "::1", 7, False),
    ],
)
def test_the_url_determines_host_port_and_encryption(
    *, url: str, host: str, port: int, tls: bool
) -> None:
    access = read_access(BrokerSettings(url=url))
    assert (access.host, access.port, access.tls is not None) == (host, port, tls)


def test_tls_always_verifies_the_broker(certificates: Certificates) -> None:
    settings = BrokerSettings(
        url="mqtts://broker.example",
        ca_file=certificates.ca,
        cert_file=certificates.client,
        key_file=certificates.client_key,
    )
    context = read_access(settings).tls
    assert context is not None
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_the_password_is_the_first_line_of_its_file_at_every_attempt(tmp_path: Path) -> None:
    file = tmp_path / "password"
    settings = BrokerSettings(username="u", password_file=file)
    for password in ("first", "sécond with space "):
        file.write_text(f"{password}\r\nignored\n", encoding="utf-8")
        access = read_access(settings)
        assert access.password == password
        assert password not in repr(access)


def test_the_password_of_the_settings_is_used_if_there_is_no_file() -> None:
    settings = BrokerSettings.model_validate({"username": "u", "password": "p"})
    assert read_access(settings).password == "p"  # noqa: S105  nobody's
    assert read_access(BrokerSettings()).password is None


@pytest.mark.parametrize("key", ["password_file", "ca_file", "cert_file"])
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_a_file_that_cannot_be_used_is_named_by_its_setting(
    tmp_path: Path, key: str, content: bytes | None
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(TransportError, match=rf"^broker\.{key} "):
        read_access(BrokerSettings.model_validate({"url": "mqtts://b", key: file}))


@given(st.integers(1, 10_000), st.randoms(use_true_random=False))
def test_the_wait_stays_within_bounds_and_grows_no_faster_than_doubling(
    attempt: int, rng: random.Random
) -> None:
    settings = BrokerSettings(keepalive_s=30)
    assert (
        0.5 <= backoff_s(settings, attempt=attempt, rng=rng) <= min(30, 0.5 * 2 ** min(attempt, 9))
    )


def test_waits_spread_over_the_whole_range() -> None:
    settings = BrokerSettings(keepalive_s=9)
    rng = random.Random(1)  # noqa: S311  keeps no secret
    waits = [backoff_s(settings, attempt=50, rng=rng) for _ in range(200)]
    assert min(waits) < 0.65
    assert max(waits) > 8.5


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError(), "no answer in time"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (ConnectionResetError(), "Connection reset by peer"),
        (ssl.SSLError(), "TLS failed: unknown"),
        (TransportError("broker.ca_file cannot be used"), "broker.ca_file cannot be used"),
        (
            OSError(111, "Multiple exceptions: no route"),
            "Multiple exceptions: no route",
        ),
    ],
)
def test_every_failure_has_a_readable_reason(error: Exception, words: str) -> None:
    assert reason_of(error) == words


def test_a_client_id_lasts_with_its_key_and_cannot_be_guessed_without() -> None:
    broker = BrokerSettings(client_id="gateway")
    keys = [bytes([i]) * 32 for i in range(9)]
    ids = [client_id_of(broker, key=key, role="records") for key in keys]
    assert ids == [client_id_of(broker, key=key, role="records") for key in keys]
    assert all(re.fullmatch("gateway-records-[0-9a-f]{32}", each) for each in ids)
    assert len(set(ids)) == len(ids)


def test_connections_of_one_gateway_and_changed_settings_have_ids_with_nothing_in_common() -> None:
    key = bytes(32)
    ids = [
        client_id_of(BrokerSettings(client_id=name), key=key, role=role)
        for name in ("a", "b")
        for role in ("", "records")
    ]
    assert len({each.rpartition("-")[2] for each in ids}) == len(ids)


def test_a_client_id_of_the_settings_is_used_as_it_is_if_it_is_long() -> None:
    chosen = "0123456789abcdef" * 2
    broker = BrokerSettings(client_id=chosen)
    assert client_id_of(broker, key=bytes(32)) == chosen
    assert client_id_of(broker, key=bytes(32), role="records") == f"{chosen}-records"
    shorter = BrokerSettings(client_id=chosen[1:])
    assert client_id_of(shorter, key=bytes(32)).startswith(f"{chosen[1:]}-")
