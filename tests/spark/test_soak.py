"""Fifty million rows on one machine: accounting, memory, and the loss against whole tables.

`make test-cluster ARGS="-m soak --timeout=14400 -s"`; `ANONYMIZER_SPARK_ROWS` sets another number
of rows.
"""

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonymizer import anonymize as anonymize_in_memory
from anonymizer.spark import anonymize
from tests.spark.session import local_spark

N = int(os.environ.get("ANONYMIZER_SPARK_ROWS", "50_000_000"))
N_WHOLE = min(N, 500_000)
"""Rows that are anonymized as a whole, too."""
MOST_GB = 6.0
PER_FILE = 1_000_000
OPTIONS: dict[str, Any] = {
    "qi": ["home", "age", "work", "sex"],
    "sa": "illness",
    "k": 10,
    "model": "kld",
    "method": "hilbert",
}


def some_people(n: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    home = rng.gamma(2.0, 1_200.0, n).astype(np.int32).clip(0, 9_999)
    age = (20 + 25 * rng.beta(2, 4, n) + home / 400).astype(np.int32).clip(0, 99)
    work = np.array(["clerk", "nurse", "driver", "cook"])
    return pl.DataFrame(
        {
            "home": home,
            "age": age,
            "work": work[rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])],
            "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
            "illness": np.array(list("rstuvwxyz"))[(age // 12 + rng.integers(0, 5, n)) % 9],
        }
    )


def resident_gb() -> float:
    """Memory of this process and its descendants, shared pages counted once for each."""
    parent_of, kb_of = {}, {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:
            continue  # it has ended
        pid = int(fields["Pid"])
        parent_of[pid], kb_of[pid] = (
            int(fields["PPid"]),
            int(fields.get("VmRSS", "0 kB").split()[0]),
        )
    mine = {os.getpid()}
    while more := {pid for pid, parent in parent_of.items() if parent in mine} - mine:
        mine |= more
    return sum(kb_of.get(pid, 0) for pid in mine) / 2**20


@pytest.mark.soak
def test_fifty_million_rows_fit_in_six_gigabytes_and_lose_as_little_as_whole_tables(
    tmp_path: Path,
) -> None:
    table = tmp_path / "table"
    table.mkdir()
    for number, first in enumerate(range(0, N, PER_FILE)):
        n = min(PER_FILE, N - first)
        some_people(n, number).write_parquet(table / f"{number}.parquet")
    some = some_people(N_WHOLE, 0)
    some.write_parquet(tmp_path / "some.parquet")
    whole = anonymize_in_memory(some, **OPTIONS).report.gcp.range
    peak, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(1.0):
            peak[0] = max(peak[0], resident_gb())

    watching = threading.Thread(target=watch)
    with local_spark(tmp_path / "spark", memory="2g") as spark:
        frame = spark.read.parquet(str(tmp_path / "some.parquet"))
        with anonymize(frame, rows_per_range=N_WHOLE // 5, **OPTIONS) as release:
            parts = release.report.gcp["range"]
        watching.start()
        try:
            with anonymize(spark.read.parquet(str(table)), **OPTIONS) as release:
                release.frame.write.parquet(str(tmp_path / "release"))
                report = release.report
                n_written = spark.read.parquet(str(tmp_path / "release")).count()
        finally:
            ended.set()
            watching.join()
    print(f"{N} rows: {report.seconds}, {peak[0]:.1f} GB, loss {parts / whole:.4f} of the whole")  # noqa: T201
    assert report.n == N == report.n_published + sum(report.suppressed.values())
    assert n_written == report.n_published
    assert report.k >= OPTIONS["k"]
    assert parts <= 1.01 * whole
    assert peak[0] <= MOST_GB
