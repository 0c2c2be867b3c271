"""Figures of pycanon for releases: run by the Python of `make test-judge`, which has pycanon alone.

`python figures.py FOLDER`: `FOLDER/releases.json` lists releases as `{"file", "qi", "sa"}`; the
figures of each, in this order, are printed as JSON.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

pandas: Any = import_module("pandas")
anonymity: Any = import_module("pycanon.anonymity")


def figures(folder: Path, release: dict[str, Any]) -> dict[str, float]:
    """Return what pycanon finds in a release; nothing in it is a number or a missing value."""
    rows = pandas.read_csv(folder / release["file"], dtype=str, keep_default_na=False)
    qi, sa = release["qi"], release["sa"]
    found = {"n": len(rows), "k": anonymity.k_anonymity(rows, qi)}
    if sa:
        found["l"] = anonymity.l_diversity(rows, qi, sa)
        found["entropy_l"] = anonymity.entropy_l_diversity(rows, qi, sa)
        found["t"] = anonymity.t_closeness(rows, qi, sa)
    return {name: float(value) for name, value in found.items()}


if __name__ == "__main__":
    here = Path(sys.argv[1])
    told = json.loads((here / "releases.json").read_text())
    sys.stdout.write(json.dumps([figures(here, each) for each in told]))
