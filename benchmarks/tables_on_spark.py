"""`.venv-spark/bin/python -m benchmarks.tables_on_spark`: a table on Spark beside one process.

The made people of `growth_of_tables`, with the defaults of kd and k = 10. CPU of all processes from
the start of Python to the last row written as Parquet: of Spark, the driver, its Java and its
workers. The report of one process, which has attacks too, is made afterwards.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.made_people import made

_POLL_S = 0.2
Figures = dict[str, float]


class ProcessTimes:
    """CPU of this process and of all that descend from it, also of those that have ended."""

    def __init__(self) -> None:
        self._s_of: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def total_s(self) -> float:
        """Return the CPU so far, and watch no longer."""
        self._ended.set()
        self._thread.join()
        self._look()
        return sum(self._s_of.values())

    def _watch(self) -> None:
        while not self._ended.wait(_POLL_S):
            self._look()

    def _look(self) -> None:
        parent_of, ticks_of = {}, {}
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                field = entry.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            parent_of[int(entry.parent.name)] = int(field[1])
            ticks_of[int(entry.parent.name)] = int(field[11]) + int(field[12])
        mine = {os.getpid()}
        while more := {pid for pid, parent in parent_of.items() if parent in mine} - mine:
            mine |= more
        tick = os.sysconf("SC_CLK_TCK")
        self._s_of |= {pid: ticks_of[pid] / tick for pid in mine if pid in ticks_of}


def in_one_process(table: Path, out: Path, options: Mapping[str, Any]) -> Callable[[], Figures]:
    """Make a release in this process; return what tells its figures."""
    from anonymizer import anonymize  # noqa: PLC0415  its import is a part of what is measured

    release = anonymize(pl.read_parquet(table / "*.parquet"), **options)
    release.frame.write_parquet(out)
    return lambda: {"gcp": release.report.gcp.range, "rows": len(release.frame)}


def on_spark(
    table: Path, out: Path, options: Mapping[str, Any], *, rows_per_range: int
) -> Callable[[], Figures]:
    """Make a release on Spark on two cores; return what tells its figures."""
    from anonymizer.spark import anonymize  # noqa: PLC0415  likewise
    from tests.spark.session import local_spark  # noqa: PLC0415  likewise

    with local_spark(out.parent / "spark", memory="2g") as spark:
        frame = spark.read.parquet(str(table))
        with anonymize(frame, rows_per_range=rows_per_range, **options) as release:
            release.frame.write.parquet(str(out))
            found = release.report
    figures = {"gcp": found.gcp["range"], "ranges": found.n_ranges, **found.seconds}
    return lambda: figures | {"rows": len(pl.read_parquet(out / "*.parquet"))}


def main(arguments: Sequence[str]) -> None:
    """Make one release and print its figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables_on_spark")
    parser.add_argument("rows", type=int)
    parser.add_argument("--rows-per-range", type=int, metavar="N", help="on Spark")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "table", Path(folder) / "out"
        table.mkdir()
        people = made(asked.rows)
        for part in range(4):
            people[part::4].write_parquet(table / f"{part}.parquet")
        qi = [name for name in people.columns if name != "illness"]
        del people
        options = {"qi": qi, "sa": "illness", "k": 10}
        times, before, began = ProcessTimes(), time.process_time(), time.monotonic()
        if asked.rows_per_range:
            figures = on_spark(table, out, options, rows_per_range=asked.rows_per_range)
        else:
            figures = in_one_process(table, out, options)
        used = {"s": time.monotonic() - began, "cpu_s": times.total_s() - before}
        found = {"n": asked.rows, **used, **figures()}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
