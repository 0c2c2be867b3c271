"""The runs of `make soak` that look for memory that is read before it is written, or beyond."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.console import ROOT

KERNELS = """
import numpy as np
from anonymizer.algorithms.kernels import kernel

@kernel
def unwritten(n, at):
    return np.empty(n)[at]

@kernel
def beyond(x, at):
    return x[at]

for _ in range(3):
    print(unwritten(3, 2), unwritten(100, 99), unwritten(1000, 500))
try:
    beyond(np.zeros(3), 3)
except IndexError:
    print("beyond")
"""
PLAIN = """
import numpy as np
import tests.poison
import numpy.ma
turned = np.zeros((2, 3)).T
found = [np.empty(3), np.empty_like(turned), np.empty(2, "i4,f8")["f1"], np.empty((2, 3), "i4").T]
print(*{float(array.max()) for array in found}, np.empty(0).sum(), np.empty(1, bool)[0])
"""


def printed(folder: Path, program: str, **environ: str) -> list[str]:
    path = folder / "program.py"
    path.write_text(program)
    environ |= {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(path)]
    return subprocess.check_output(command, env=os.environ | environ, text=True).split()


@pytest.mark.soak
def test_compiled_kernels_find_nonsense_where_nobody_has_written_and_stop_at_their_bounds(
    tmp_path: Path,
) -> None:
    makefile = (ROOT / "Makefile").read_text()
    [checked] = re.findall(r"^CHECKED +:= (.*)$", makefile, re.MULTILINE)
    environ = dict(each.split("=", 1) for each in checked.split())
    found = printed(tmp_path, KERNELS, NUMBA_DISABLE_JIT="0", **environ)
    assert all(float(value) < -1e50 for value in found[:9])
    assert found[-1] == "beyond"


def test_plain_python_finds_nonsense_where_nobody_has_written(tmp_path: Path) -> None:
    *found, none, is_set = printed(tmp_path, PLAIN)
    assert len(found) == 2
    assert all(float(value) < -1e8 for value in found)
    assert (float(none), is_set) == (0.0, "True")
