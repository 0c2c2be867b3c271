"""Programs on a machine that has compiled no kernel."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def told_cold(folder: Path, program: str) -> Any:  # noqa: ANN401  JSON
    """Run a program that finds no machine code; return the JSON that it prints."""
    path = folder / "program.py"
    path.write_text(program)
    run = subprocess.run(
        [sys.executable, path],
        env=os.environ | {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)
