"""The same release on a quiet machine and on a busy one: a budget is work, not time."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from benchmarks.growth_of_tables import MODELS
from benchmarks.made_people import made
from tests.app.test_anonymize import people
from tests.end_to_end import ANONYMIZER

LEVELS = ("--hierarchy", "job=job.csv", "--hierarchy", "city=city.csv")
"""Where most columns have hierarchies, a search begins with full-domain levels."""


@contextmanager
def busy(n: int) -> Iterator[None]:
    """Leave others a small share of the cores."""
    spin = "while True: pass"
    processes = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.soak
@pytest.mark.parametrize(
    "asked",
    [
        ("--model", "kd", "-d", "2", "--method", "best"),
        ("--model", "kld", "-d", "2", "-l", "2", "--sa", "illness", "--suppress", "0.05"),
        ("--model", "kaca", "--sa", "illness"),
        ("--model", "cells", "--sa", "illness", "--target", "illness"),
        ("--model", "kd", "-d", "1", "--cost", "taxonomy", *LEVELS),
    ],
    ids=["best", "sensitive", "kaca", "cells", "levels"],
)
def test_a_release_is_the_same_under_load(tmp_path: Path, asked: tuple[str, ...]) -> None:
    table = tmp_path / "people.csv"
    frame = people(n=800).frame.with_columns(pl.int_range(pl.len()).alias("name"))
    frame.write_csv(table)
    for name in ("job", "city"):
        values = frame[name].unique().sort().to_list()
        lines = [f"{value};{i % 2};*\n" for i, value in enumerate(values)]
        (tmp_path / f"{name}.csv").write_text("".join(lines))

    def release(name: str, *before: str) -> bytes:
        out = tmp_path / name
        command = ["anonymize", "--qi", "age,job,city", "--id", "name", "-k", "5", *asked]
        budget = ("--time-budget", "0.3", "--seed", "1")
        subprocess.run(
            [*before, ANONYMIZER, *command, *budget, "--out", out, table],
            check=True,
            capture_output=True,
            cwd=tmp_path,
        )
        return out.read_bytes()

    quiet = release("quiet.csv")
    with busy(4):
        assert release("busy.csv", "nice", "-n", "5") == quiet


@pytest.mark.soak
@pytest.mark.parametrize("model", MODELS)
def test_a_hundred_thousand_rows_are_released_the_same_at_load_0_and_at_load_20(
    tmp_path: Path, model: str
) -> None:
    frame = made(100_000)
    frame.write_parquet(tmp_path / "people.parquet")
    qis = ",".join(name for name in frame.columns if name != "illness")
    asked = ["--model", model, "-k", "10", "--qi", qis, "--sa", "illness"]
    for name, value in MODELS[model].items():
        asked += [f"-{name}" if len(name) == 1 else f"--{name}", str(value)]

    def release(name: str) -> tuple[bytes, dict[str, object]]:
        out, report = tmp_path / f"{name}.csv", tmp_path / f"{name}.json"
        files = ["--out", str(out), "--report", str(report), str(tmp_path / "people.parquet")]
        subprocess.run([ANONYMIZER, "anonymize", *asked, *files], check=True, capture_output=True)
        return out.read_bytes(), json.loads(report.read_text()) | {"seconds": {}}

    quiet = release("quiet")
    with busy(20):
        assert release("busy") == quiet
