"""Compilation ahead of the first window: a stage that compiles would outlast a transaction."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json
import sys

from numba.core import event

from anonymizer.pipeline.records.declaration import declare
from anonymizer.cluster.records.stream_stage import warm_up_stages
from tests.cluster.records import cluster
from tests.pipeline.records.made import fleet
from tests.cluster.records.test_stages_of_a_cluster import (
    KINDS,
    N_TICKS_OF_WINDOW,
    journeys,
)


class Compiled(event.Listener):
    names = []

    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        self.names.append(f"{function.__module__}.{function.__qualname__}")

    def on_end(self, event):
        pass


event.register("numba:compile", Compiled())
kinds = "cohorts", "changing", "kld", "best", "cells", "cells in cohorts", "closeness"
streams = [declare(fleet(**KINDS[kind])) for kind in kinds]
warm_up_stages(streams)
ahead, Compiled.names = Compiled.names, []
n_classes = []
for stream in streams:
    sent = journeys(n=60, n_windows=2, seed=1)
    arrivals = cluster.by_tick(sent, n_ticks=5 * N_TICKS_OF_WINDOW + 4)
    running = cluster.Cluster([stream], arrivals, cluster.settings_for())
    running.run()
    n_classes.append(len(running.out))
json.dump({"ahead": ahead, "late": Compiled.names, "classes": n_classes}, sys.stdout)
"""


@pytest.mark.soak
def test_after_the_warm_up_no_stage_compiles(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=root,
        env=os.environ | {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    seen = json.loads(run.stdout)
    # Kernels of other rooms are called by `compile_kernels`.
    assert [name for name in seen["late"] if name.startswith("anonymizer.algorithms.")] == []
    assert any(name.startswith("anonymizer.algorithms.records.") for name in seen["ahead"])
    assert min(seen["classes"]) > 0
