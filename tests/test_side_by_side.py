"""Tests that run side by side are all run and reported, whatever becomes of a process."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALIKE = """
import os
import pytest

@pytest.fixture(scope="module")
def process():
    yield (pid := os.getpid())
    assert pid == os.getpid()

@pytest.mark.parametrize("i", range(9))
def test_a_file_stays_in_one_process(process, i, tmp_path):
    assert process == os.getpid()

def test_what_is_captured(capfd):
    print("a word")
    assert capfd.readouterr().out == "a word\\n"
"""
OTHERS = """
import pytest

@pytest.fixture
def broken():
    raise OSError("broken")

def test_that_cannot_begin(broken):
    pass

def test_that_is_left_out():
    pytest.skip("for a reason")

def test_that_fails():
    print("said before")
    assert 1 == 2
"""
DEADLY = """
import os

def test_that_ends_its_process():
    os._exit(0)
"""


def outcome(folder: Path, *options: str) -> tuple[int, list[str]]:
    """Run the tests of a folder; return the exit code, and all lines in order of the alphabet."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return run.returncode, sorted(line.split(" in ")[0] for line in run.stdout.splitlines())


def test_what_is_found_side_by_side_is_what_one_process_finds(tmp_path: Path) -> None:
    for name, text in (("one", ALIKE), ("two", OTHERS), ("three", ALIKE)):
        (tmp_path / f"test_{name}.py").write_text(text)
    alone = outcome(tmp_path)
    assert alone[0] == 1
    assert any("said before" in line for line in alone[1])
    beside = outcome(tmp_path, "-p", "tests.side_by_side", "--side-by-side", "2")
    # The marks of what passes come in the order of time.
    assert beside[0] == 1
    assert [line for line in beside[1] if "%" not in line] == [x for x in alone[1] if "%" not in x]


def test_a_test_that_ends_its_process_fails_the_run_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_deadly.py").write_text(DEADLY)
    (tmp_path / "test_one.py").write_text(ALIKE)
    code, lines = outcome(tmp_path, "-p", "tests.side_by_side", "--side-by-side", "2")
    assert code == 1
    assert any("test_that_ends_its_process ended its process" in line for line in lines)
