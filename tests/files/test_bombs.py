"""No generated file takes more than 2.5 GiB to be read, or ends in anything but a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.files.bombs import FORMATS

MOST_KIB = int(2.5 * 2**20)


def read_all(form: str, folder: Path, first: int, last: int) -> None:
    """Read bombs of a format in a process of its own, which says how much memory it took."""
    which = (form, str(folder), str(first), str(last))
    command = [sys.executable, "-m", "tests.files.bombs"]
    subprocess.run([*command, "make", *which], check=True)
    ended = subprocess.run([*command, "read", *which], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-2000:]
    *said, most_kib = ended.stdout.splitlines()
    assert len(said) == (last - first) * len(FORMATS[form][1])
    assert int(most_kib) <= MOST_KIB, ended.stdout


@pytest.mark.parametrize("form", ["geojson", "json", "parquet"])
def test_a_generated_file_is_read_or_refused_in_little_memory(form: str, tmp_path: Path) -> None:
    read_all(form, tmp_path, 0, 1)


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMATS)
def test_two_hundred_generated_files_are_read_or_refused_in_little_memory(
    form: str, tmp_path: Path
) -> None:
    read_all(form, tmp_path, 0, 14)
