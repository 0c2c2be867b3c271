"""What the tests of the command line share."""

import subprocess
from collections.abc import Mapping
from os import environ
from pathlib import Path

from tests.end_to_end import ANONYMIZER, DEADLINE_S


def anonymizer(
    *arguments: str | Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the console script to its end."""
    return subprocess.run(
        [ANONYMIZER, *arguments],
        env=environ | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
