"""Compilation ahead: the jobs compile all that the first tick needs of their modules."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anonymizer.app import compilation
from anonymizer.pipeline import ports
from anonymizer.transport import packets

WARM_UP = """
def warm_up():
    network = load_network("city:100")
    for mode in ("session", "snapshot", "bfs"):
        tables = {
            "network": {"source": "city:100"},
            "region": {"mode": mode},
            "http": {"host": ""},
        }
        Gateway(Settings.model_validate(tables), network).warm_up()
"""
IMPORTS = """
import json
import sys

from numba.core import event

from anonymizer.algorithms import kernels
from anonymizer.algorithms.positions import adka
from anonymizer.app import compilation
from anonymizer.app.gateway.gateway import Gateway
from anonymizer.networks import load_network
from anonymizer.settings import Settings
"""
TYPES = """
def types():
    found = [kernel for module in compilation._JOBS for kernel in kernels._KERNELS_OF[module]]
    return {f"{one.__module__}.{one.__name__}": [str(s) for s in one.signatures] for one in found}


for job in compilation._JOBS.values():
    job()
ahead = types()
warm_up()
json.dump({"ahead": ahead, "all": types()}, sys.stdout)
"""
COLD = """
class Compiled(event.Listener):
    names = []

    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        self.names.append(f"{function.__module__}.{function.__qualname__}")

    def on_end(self, event):
        pass


if __name__ == "__main__":
    steps = []
    compilation.compile_kernels(lambda done, n: steps.append([done, n]))
    again = []
    compilation.compile_kernels(lambda done, n: again.append([done, n]))
    event.register("numba:compile", Compiled())
    warm_up()
    json.dump({"steps": steps, "again": again, "late": Compiled.names}, sys.stdout)
"""


def seen_by(folder: Path, *parts: str, **environ: str) -> dict[str, Any]:
    """Return what a program reports."""
    program = folder / "program.py"
    program.write_text("".join(parts))
    run = subprocess.run(
        [sys.executable, program],
        env=os.environ | {"NUMBA_DISABLE_JIT": "0"} | environ,
        capture_output=True,
        text=True,
        check=True,
    )
    seen: dict[str, Any] = json.loads(run.stdout)
    return seen


def test_the_first_tick_calls_no_kernel_with_types_that_the_jobs_have_not(tmp_path: Path) -> None:
    seen = seen_by(tmp_path, IMPORTS, WARM_UP, TYPES)
    assert seen["all"] == seen["ahead"]
    assert sum(map(bool, seen["ahead"].values())) > len(compilation._JOBS)


@pytest.mark.soak
def test_after_the_jobs_the_first_tick_compiles_nothing_of_their_modules(tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    seen = seen_by(tmp_path, IMPORTS, WARM_UP, COLD, **cache)
    n = len(compilation._JOBS)
    assert seen["steps"] == [[done, n] for done in range(n + 1)]
    assert seen["again"] == []
    assert [name for name in seen["late"] if name.startswith(tuple(compilation._JOBS))] == []
    assert seen["late"] != []  # the listener does hear what is compiled


def test_jobs_that_are_missing_are_done_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {ports.__name__, packets.__name__}
    monkeypatch.setattr(compilation, "is_compiled", lambda module: module not in missing)
    steps: list[tuple[int, int]] = []
    compilation.compile_kernels(lambda done, n: steps.append((done, n)))
    assert steps == [(0, 2), (1, 2), (2, 2)]
    missing.clear()
    compilation.compile_kernels(lambda done, n: steps.append((done, n)))
    assert len(steps) == 3
