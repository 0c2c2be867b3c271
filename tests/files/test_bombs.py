"""No generated file takes more than 2.5 GiB to be read, or ends in anything but a sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.files.bombs import FORMATS

MOST_KIB = int(2.5 * 2**20)


def read_all(form: str, folder: Path, first: int, last: int) -> None:
    """Read bombs of a format in a process of its own, whose most memory the system measures."""
    which = (form, str(folder), str(first), str(last))
    command = [sys.executable, "-m", "tests.files.bombs", "read", *which]
    subprocess.run([*command[:3], "make", *which], check=True)
    said = folder / "said"
    with said.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, said.read_text()[-2000:]
    assert len(said.read_text().splitlines()) == (last - first) * len(FORMATS[form][1])
    assert used.ru_maxrss <= MOST_KIB, said.read_text()


@pytest.mark.parametrize("form", ["geojson", "json", "parquet"])
def test_a_generated_file_is_read_or_refused_in_little_memory(form: str, tmp_path: Path) -> None:
    read_all(form, tmp_path, 0, 1)


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMATS)
def test_two_hundred_generated_files_are_read_or_refused_in_little_memory(
    form: str, tmp_path: Path
) -> None:
    read_all(form, tmp_path, 0, 14)
