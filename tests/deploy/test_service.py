"""The systemd unit, by systemd's own judgement."""

import re
import subprocess
from pathlib import Path

import pytest

from anonymizer.settings import load_settings
from tests.deploy.files import DEPLOY
from tests.end_to_end import ANONYMIZER

UNIT = (DEPLOY / "anonymizer.service").read_text()
MOST_EXPOSED = 1.5
"""Of 10; a service that says nothing is at 9.6."""


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with the program of this checkout."""
    file = tmp_path / "anonymizer.service"
    assert "/opt/anonymizer/bin/anonymizer" in UNIT
    file.write_text(UNIT.replace("/opt/anonymizer/bin/anonymizer", str(ANONYMIZER)))
    return file


def test_systemd_finds_no_fault_with_the_unit(unit: Path) -> None:
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_systemd_finds_the_unit_hardened(unit: Path) -> None:
    ran = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", ran.stdout)
    assert found, ran.stderr
    assert float(found[1]) <= MOST_EXPOSED


def test_the_unit_waits_for_the_drain_and_hands_over_its_secrets_as_files() -> None:
    told = dict(re.findall(r"^Environment=(ANONYMIZER__\w+)=(.*)$", UNIT, re.MULTILINE))
    settings = load_settings(DEPLOY / "gateway.toml", told)
    [stop_s] = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert settings.tick.drain_s < int(stop_s)
    credentials = re.findall(r"^LoadCredential=([^:]+):", UNIT, re.MULTILINE)
    handed_over = [settings.broker.password_file, settings.http.token_file]
    assert list(map(str, handed_over)) == [f"%d/{each}" for each in credentials]
    assert not re.search(r"(PASSWORD|TOKEN)=", UNIT)
