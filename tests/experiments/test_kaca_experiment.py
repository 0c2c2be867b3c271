import csv
import json
from pathlib import Path

import pytest

from experiments.kaca_experiment import KacaRun, mean_rows, run_kaca, write_kaca

KS, RECORDS = (5, 20), (50, 100)


@pytest.fixture(scope="module")
def runs() -> list[KacaRun]:
    return run_kaca(ks=KS, records=RECORDS, repeats=2)


def test_each_method_forms_classes_of_every_case(runs: list[KacaRun]) -> None:
    cases = {(run.method, run.k, run.records, run.repeat) for run in runs}
    assert len(cases) == len(runs) == 3 * 2 * (len(KS) + len(RECORDS))
    assert all(0 <= run.gcp <= 1 and run.squares >= 0 for run in runs)
    assert all(run.classes <= run.records / run.k for run in runs)


def test_the_fast_method_does_not_lose_more_than_k_means(runs: list[KacaRun]) -> None:
    of = {(row["method"], row["k"], row["records"]): row["squares"] for row in mean_rows(runs)}
    for k in KS:
        assert of["fast", k, 2000] <= 1.02 * of["K-Means, 1 start", k, 2000]


def test_the_files_hold_all_runs(runs: list[KacaRun], tmp_path: Path) -> None:
    report = {"means": mean_rows(runs)}
    formats = ("svg", "pdf")
    paths = write_kaca(runs, report, tmp_path / "out", options={"seed": 1}, formats=formats)
    assert [path.name for path in paths] == [
        "runs.csv", "summary.json", "manifest.json",
        *(f"over_{what}.{kind}" for kind in formats for what in ("k", "records")),
    ]  # fmt: skip
    assert len(list(csv.DictReader(paths[0].read_text().splitlines()))) == len(runs)
    assert json.loads(paths[1].read_text()) == report
    manifest = json.loads(paths[2].read_text())
    assert (manifest["options"], manifest["input"]) == ({"seed": 1}, {})
    assert manifest["versions"].keys() >= {"python", "scikit-learn", "numba"}
    assert all(path.stat().st_size > 1000 for path in paths[3:])
