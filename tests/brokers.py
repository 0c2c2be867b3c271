"""Fixtures: Mosquitto brokers, a new one for each test (each starts in about 20 ms)."""

import base64
import hashlib
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from anonymizer.settings import BrokerSettings
from anonymizer.transport.local_brokers import LocalBroker, mosquitto
from tests.end_to_end import DEADLINE_S

USER, PASSWORD = "gateway", "open sesame"


class QuickBrokerSettings(BrokerSettings):
    """Settings of a client that connects anew sooner than operators want it to."""

    longest_wait_s: float = 0.1

    @property
    def reconnect_max_s(self) -> float:
        """Longest wait before the next attempt to connect."""
        return self.longest_wait_s


@dataclass(frozen=True)
class Certificates:
    """Certificates made for one test run; `other_ca` signed none of them."""

    ca: Path
    other_ca: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def _authority(folder: Path, name: str) -> Path:
    certificate = folder / f"{name}.crt"
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _openssl(
        "req", "-x509", *new_key, "-keyout", folder / f"{name}.key", "-out", certificate,
        "-subj", f"/CN={name}", "-days", 2, "-addext", "keyUsage=critical,keyCertSign,cRLSign",
    )  # fmt: skip
    return certificate


def _signed(folder: Path, name: str) -> Path:
    request, certificate = folder / f"{name}.csr", folder / f"{name}.crt"
    extension = folder / f"{name}.ext"
    extension.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _openssl(
        "req", *new_key, "-keyout", folder / f"{name}.key", "-out", request, "-subj", f"/CN={name}"
    )
    _openssl(
        "x509", "-req", "-in", request, "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key",
        "-CAcreateserial", "-out", certificate, "-days", 2, "-extfile", extension,
    )  # fmt: skip
    return certificate


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Two certificate authorities, and certificates of the first for server and client."""
    folder = tmp_path_factory.mktemp("certificates")
    return Certificates(
        ca=_authority(folder, "ca"),
        other_ca=_authority(folder, "other"),
        server=_signed(folder, "server"),
        server_key=folder / "server.key",
        client=_signed(folder, "client"),
        client_key=folder / "client.key",
    )


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[LocalBroker]:
    """A broker that accepts any client."""
    started = mosquitto(tmp_path)
    await started.start()
    yield started
    await started.stop()


@pytest.fixture
async def persistent_broker(tmp_path: Path) -> AsyncIterator[LocalBroker]:
    """A broker whose sessions survive a restart."""
    # Killed before it has saved them, it would lose the sessions.
    started = mosquitto(tmp_path, persistence=True, stop_timeout_s=DEADLINE_S)
    await started.start()
    yield started
    await started.stop()


@pytest.fixture
async def password_broker(tmp_path: Path) -> AsyncIterator[LocalBroker]:
    """A broker that accepts only USER with PASSWORD, and only on `allowed/#`."""
    salt = b"twelve bytes"
    digest = hashlib.pbkdf2_hmac("sha512", PASSWORD.encode(), salt, 101)
    encoded = "$".join(base64.b64encode(part).decode() for part in (salt, digest))
    passwords, rules = tmp_path / "passwords", tmp_path / "acl"
    passwords.write_text(f"{USER}:$7$101${encoded}\n")
    rules.write_text(f"user {USER}\ntopic readwrite allowed/#\n")
    passwords.chmod(0o600)
    rules.chmod(0o600)
    started = mosquitto(
        tmp_path, "allow_anonymous false", f"password_file {passwords}", f"acl_file {rules}"
    )
    await started.start()
    yield started
    await started.stop()


@pytest.fixture
async def tls_broker(tmp_path: Path, certificates: Certificates) -> AsyncIterator[LocalBroker]:
    """A TLS broker that accepts only clients with a certificate of the same authority."""
    started = mosquitto(
        tmp_path,
        f"cafile {certificates.ca}",
        f"certfile {certificates.server}",
        f"keyfile {certificates.server_key}",
        "require_certificate true",
    )
    await started.start()
    yield started
    await started.stop()
