import csv
from itertools import product
from pathlib import Path

import pytest

from experiments import cells_experiment
from experiments.cells_experiment import OURS, PUBLISHED, CellsResults, run_cells, write_cells

TARGETS = (0.8, 0.95)
"""Two of eight, each of which takes four seconds."""


@pytest.fixture(scope="module")
def found() -> CellsResults:
    with pytest.MonkeyPatch.context() as few:
        few.setattr(cells_experiment, "TARGETS", TARGETS)
        return run_cells(ks=(3,), ls=(1, 3), repeats=1)


def test_every_promise_is_tried_by_both_procedures(found: CellsResults) -> None:
    tried = {(run.k, run.l, run.method) for run in found.runs}
    assert tried == set(product((3,), (1, 3), (PUBLISHED, OURS)))
    assert [run.target for run in found.minimized] == list(TARGETS)


def test_ours_deletes_nothing_and_the_published_procedure_some(found: CellsResults) -> None:
    of = {(run.k, run.l, run.method): run for run in found.runs}
    assert all(run.deleted == 0 for run in found.runs if run.method == OURS)
    assert of[3, 3, PUBLISHED].deleted > 0
    assert all(0.3 < run.score <= 1 for run in found.runs)


def test_the_files_hold_all_runs(found: CellsResults, tmp_path: Path) -> None:
    names = [path.name for path in write_cells(found, tmp_path, options={})]
    assert names == [
        "runs.csv", "minimizer.csv", "summary.json", "manifest.json",
        "over_k.png", "search.png", "minimizer.png",
    ]  # fmt: skip
    assert len(list(csv.DictReader((tmp_path / "runs.csv").read_text().splitlines()))) == len(
        found.runs
    )
