"""Every test has one name: on each machine, in each order, at each time."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COLLECT = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")


def collected(hash_seed: str) -> list[str]:
    """Return the ids of all tests, as a process with this seed of `hash()` collects them."""
    run = subprocess.run(
        [*COLLECT, "tests"],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in run.stdout.splitlines() if "::" in line]


def test_the_ids_of_tests_are_distinct_and_plain(request: pytest.FixtureRequest) -> None:
    ids = [item.nodeid for item in request.session.items]
    assert len(ids) == len(set(ids))
    assert [name for name in ids if not re.fullmatch(r"[ -~]{1,300}", name)] == []
    assert [name for name in ids if str(ROOT) in name or " at 0x" in name] == []


@pytest.mark.soak
def test_two_collections_find_the_same_tests_under_the_same_ids() -> None:
    # The workers of pytest-xdist refuse to start where these differ.
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(collected, ["1", "2"])
    assert first == second
