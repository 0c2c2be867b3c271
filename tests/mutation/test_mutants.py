"""Every mutant of the code that keeps the promises is noticed by the tests of its module."""

import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.mutation.mutants import MODULES, Module

ROOT = Path(__file__).parents[2]
SEED = 13
LONGEST_TEST_S = 300
"""A test that a mutant holds up fails."""
PASSED, FAILED = 0, 1
"""Exit codes of pytest."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the package and its tests, with what is compiled of them."""
    folder = tmp_path_factory.mktemp("mutants")
    for name in ("anonymizer", "simulator", "tests", "docs"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy2(ROOT / "pyproject.toml", folder)
    return folder


def run(copy: Path, module: Module) -> subprocess.CompletedProcess[str]:
    """Run the tests of a module on the copy, until the first failure."""
    # One module of the same size, written in the same second, must not be taken for the other.
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    if "@kernel" in (copy / "anonymizer" / module.path).read_text():
        environment["NUMBA_DISABLE_JIT"] = "1"  # compiling takes longer than most tests
    options = (
        "-x",
        "-q",
        "-n0",
        "-p",
        "no:cacheprovider",
        "--hypothesis-profile=mutants",
        f"--timeout={LONGEST_TEST_S}",
        "-m",
        "not soak and not compiled",
    )
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(f"tests/{name}" for name in module.tests)],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def end_what_is_left(of: Path) -> None:
    """Kill the programs of a copy that a mutant has left behind, some of which would spin."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if os.fsencode(of) in command.read_bytes():
                os.kill(int(command.parent.name), signal.SIGKILL)


def test_every_change_can_be_made() -> None:
    for module in MODULES:
        text = (ROOT / "anonymizer" / module.path).read_text()
        for before, after in module.changes:
            assert text.count(before) == 1, f"{module.path}: {before!r}"
            compile(text.replace(before, after), module.path, "exec")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)
def test_no_mutant_survives(copy: Path, module: Module) -> None:
    unchanged = run(copy, module)
    assert unchanged.returncode == PASSED, unchanged.stdout
    file = copy / "anonymizer" / module.path
    text = file.read_text()
    changes = list(module.changes)
    random.Random(SEED).shuffle(changes)  # noqa: S311  an order, no secret
    survivors = []
    try:
        for before, after in changes:
            file.write_text(text.replace(before, after))
            done = run(copy, module)
            end_what_is_left(copy)
            assert done.returncode in {PASSED, FAILED}, done.stdout
            if done.returncode == PASSED:
                survivors.append(f"{before!r} -> {after!r}")
    finally:
        file.write_text(text)
    assert not survivors
