"""Executors that die between the verification of a table and its writing, or amid the writing."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import polars as pl
import pyspark
import pytest

from anonymizer.spark import anonymize
from tests.spark.session import Session, local_spark

pytestmark = pytest.mark.timeout(900)

N = 4_000
_START_S = 300.0


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Spark with two executors, each a process of its own."""
    folder = tmp_path_factory.mktemp("spark")
    with local_spark(folder, master="local-cluster[2,1,1024]") as session:
        left = Path(pyspark.__file__).parent / "work" / session.sparkContext.applicationId
        yield session
    shutil.rmtree(left, ignore_errors=True)  # Spark has no setting for where this is


def executors() -> list[int]:
    """Return the executors of this machine that belong to this process."""
    found, parent_of = [], {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "status").read_text()
                command = (entry / "cmdline").read_bytes()
            except OSError:  # it has ended meanwhile
                continue
            parent_of[int(entry.name)] = int(status.partition("PPid:")[2].split()[0])
            if b"CoarseGrainedExecutorBackend" in command:
                found.append(int(entry.name))

    def is_ours(pid: int) -> bool:
        while pid > 1:
            if pid == os.getpid():
                return True
            pid = parent_of.get(pid, 0)
        return False

    return [pid for pid in found if is_ours(pid)]


def wait_until(happens: Callable[[], bool], what: str) -> None:
    deadline = monotonic() + _START_S
    while not happens():
        assert monotonic() < deadline, what
        sleep(0.01)


@pytest.mark.parametrize("amid_the_writing", [False, True])
def test_a_killed_executor_changes_no_class_that_was_verified_and_does_not_lose_the_job(
    spark: Session, tmp_path: Path, *, amid_the_writing: bool
) -> None:
    # Spark begins to work with the first one. It counts its driver among them.
    known, out = spark.sparkContext._jsc.sc(), tmp_path / "out"
    wait_until(lambda: known.getExecutorMemoryStatus().size() >= 3, "two executors")
    rng = np.random.default_rng(5)
    people = pl.DataFrame({"home": rng.integers(0, 30, N), "row": range(N)})
    people.write_parquet(tmp_path / "people.parquet")
    # In an order of Spark's own, which is another one when it is read again.
    frame = spark.read.parquet(str(tmp_path / "people.parquet")).repartition(4)
    asked: dict[str, Any] = {"qi": "home", "k": 5, "d": 1, "keep": "row", "time_budget_s": 0.2}
    with anonymize(frame, rows_per_range=100, **asked) as release, ThreadPoolExecutor(1) as beside:
        first = pl.DataFrame(pl.from_arrow(release.frame.toArrow())).sort("row")
        pids = executors()
        assert len(pids) == 2

        def kill() -> int:
            if amid_the_writing:
                wait_until(lambda: any(out.rglob("part-*")), "a part is written")
            os.kill(pids[0], signal.SIGKILL)
            return len(list(out.rglob("_SUCCESS")))

        killed = beside.submit(kill)
        if not amid_the_writing:
            killed.result()
        release.frame.write.parquet(str(out))
        assert killed.result() == 0, "it was killed before the end"
        written = pl.read_parquet(out / "*.parquet").sort("row")
    assert written.equals(first)
    assert len(written) == N == written["row"].n_unique()
    assert min(written.group_by("class_id").len()["len"]) >= 5
