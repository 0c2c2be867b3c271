"""Compilation ahead: the jobs compile all that the first tick needs of their modules."""

import json
import os
import subprocess
import sys
from pathlib import Path

from anonymizer.app import compilation

PROGRAM = """
import json
import sys

from numba.core import event

from anonymizer.algorithms.positions import adka
from anonymizer.app.compilation import compile_kernels
from anonymizer.app.gateway.gateway import Gateway
from anonymizer.networks import load_network
from anonymizer.settings import Settings


class Compiled(event.Listener):
    names = []

    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        self.names.append(f"{function.__module__}.{function.__qualname__}")

    def on_end(self, event):
        pass


if __name__ == "__main__":
    steps = []
    compile_kernels(lambda done, n: steps.append([done, n]))
    again = []
    compile_kernels(lambda done, n: again.append([done, n]))
    event.register("numba:compile", Compiled())
    network = load_network("city:100")
    for mode in ("session", "snapshot", "bfs"):
        tables = {
            "network": {"source": "city:100"},
            "region": {"mode": mode},
            "http": {"enabled": False},
        }
        Gateway(Settings.model_validate(tables), network).warm_up()
    json.dump({"steps": steps, "again": again, "late": Compiled.names}, sys.stdout)
"""


def test_after_the_jobs_the_first_tick_compiles_nothing_of_their_modules(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = subprocess.run(
        [sys.executable, program],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    seen = json.loads(run.stdout)
    n = len(compilation._JOBS)
    assert seen["steps"] == [[done, n] for done in range(n + 1)]
    assert seen["again"] == []
    assert [name for name in seen["late"] if name.startswith(tuple(compilation._JOBS))] == []
    assert seen["late"] != []  # the listener does hear what is compiled
