"""Secrets that a gateway is given come out nowhere."""

import signal
from pathlib import Path

import httpx
import pytest

from anonymizer.transport.local_brokers import LocalBroker
from tests.brokers import PASSWORD, USER
from tests.end_to_end import serving

TOKEN = "swordfish and chips"  # noqa: S105  nobody's
WRONG = "close simsim"


@pytest.mark.parametrize(
    ("password", "tells", "in_files"),
    [(PASSWORD, "broker connected", True), (WRONG, "no broker", False)],
)
async def test_no_secret_is_in_a_log_line_or_an_answer(
    tmp_path: Path, password_broker: LocalBroker, *, password: str, tells: str, in_files: bool
) -> None:
    environment = {"ANONYMIZER__BROKER__USERNAME": USER}
    for table, key, secret in (("BROKER", "PASSWORD", password), ("HTTP", "TOKEN", TOKEN)):
        file = tmp_path / key
        file.write_text(f"{secret}\n")
        file.chmod(0o600)
        where, told = (f"{key}_FILE", str(file)) if in_files else (key, secret)
        environment[f"ANONYMIZER__{table}__{where}"] = told
    tables = {
        "network": {"source": "grid:5x5"},
        "broker": {"url": password_broker.url},
        "http": {"port": 0},
        "log": {"level": "debug"},
    }
    async with serving(tmp_path, tables, environment=environment) as gateway:
        await gateway.program.logged(tells)
        answers = [
            await gateway.get(path)
            for path in ("/", "/metrics", "/healthz", "/readyz", "/openapi.json", "/api/map")
        ]
        # Counts are for the scraper and health for the probes, who know no token.
        assert [answer.status_code for answer in answers[1:3]] == [200, 200]
        gateway.signal(signal.SIGTERM)
        await gateway.program.ended()
        said = [*gateway.program.lines, *map(everything, answers)]
    for secret in (password, TOKEN):
        assert not any(secret in line for line in said)


def everything(answer: httpx.Response) -> str:
    return f"{answer.headers}\n{answer.text}"
