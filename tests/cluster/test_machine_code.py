"""Machine code in the image (`tools.machine_code`): a new bridge or worker compiles nothing."""

import json
import os
import subprocess
import sys

import pytest

from tests.console import ROOT

PROGRAM = """
import gc
import json
import sys

from numba.core.dispatcher import Dispatcher

from anonymizer.cluster.positions.bridge_queue import BridgeQueue
from anonymizer.cluster.positions.device_routing import DeviceRouting
from anonymizer.cluster.records.stream_routing import StreamRouting
from anonymizer.pipeline.ports import Delivery
from anonymizer.settings import Settings
from benchmarks.record_stages import Windows, record_stages
from benchmarks.stages import Case, _Run
from tools.machine_code import call_all


def loaded():
    kernels = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
    return {
        f"{kernel.py_func.__module__}.{kernel.py_func.__name__}{sig}"
        for kernel in kernels
        if kernel.py_func.__module__.startswith("anonymizer.")
        for sig in kernel.overloads
    }


call_all()
ahead = loaded()
for routing in (DeviceRouting(Settings().inputs), StreamRouting([])):
    queue = BridgeQueue(2, max_payload_bytes=1000, parts_of=routing.parts_of)
    queue.put([Delivery("positions/a", b"{}", 0, False)], at_s=0.0)
_Run(Case("city:2500", 2000, 4, 2))
record_stages([Windows(stream, 400, 1) for stream in ("lasting", "changing")])
json.dump({"ahead": len(ahead), "late": sorted(loaded() - ahead)}, sys.stdout)
"""


@pytest.mark.compiled
@pytest.mark.soak
def test_a_bridge_and_a_worker_need_no_kernel_that_the_image_lacks() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["ahead"] > 0
    assert found["late"] == []
