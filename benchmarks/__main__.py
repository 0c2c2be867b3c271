"""`python -m benchmarks [NAME ...] [--quick]`: run benchmarks and print their tables."""

import argparse
import gc
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.adka import adka
from benchmarks.decode import decode
from benchmarks.density import density
from benchmarks.end_to_end import Load, end_to_end
from benchmarks.kaca import kaca
from benchmarks.pipeline import pipeline
from benchmarks.records import best, records
from benchmarks.regions import regions
from benchmarks.snap import snap
from benchmarks.tables import Table, as_json, as_rich, document, machine
from benchmarks.verification import verification


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A function of sizes, with full sizes that show growth, and quick ones that show it works."""

    run: Callable[[Sequence[Any]], list[Table]]
    full: Sequence[Any]
    quick: Sequence[Any]


_SIZES = (1_000, 10_000, 100_000)
_CASES = [(network, n) for network in ("city:10000", "city:100000") for n in _SIZES]
_GROWTH = [*_CASES, ("grid:1000x1000", 100_000), ("grid:1000x1000", 1_000_000)]
_QUICK_CASES = [("city:400", 200), ("city:400", 1_000)]
_RATES = (1_000, 5_000, 20_000, 40_000)

BENCHMARKS = {
    "decode": Benchmark(decode, _SIZES, (100, 200)),
    "snap": Benchmark(snap, _CASES, _QUICK_CASES),
    "density": Benchmark(density, _CASES, _QUICK_CASES),
    "adka": Benchmark(adka, _CASES, _QUICK_CASES),
    "regions": Benchmark(regions, _GROWTH, _QUICK_CASES),
    "records": Benchmark(
        records,
        [("adult", 32_561), ("census", 300_000), ("census", 2_458_285)],
        [("adult", 300), ("census", 500)],
    ),
    "best": Benchmark(
        best,
        [(table, n, 5.0) for table in ("adult", "census") for n in _SIZES],
        [("adult", 300, 0.05), ("census", 500, 0.05)],
    ),
    "kaca": Benchmark(
        kaca,
        [(table, n) for n in (*_SIZES, 1_000_000) for table in ("toll", "weighed")],
        [("toll", 300), ("weighed", 300)],
    ),
    "verification": Benchmark(verification, _CASES, _QUICK_CASES),
    "pipeline": Benchmark(pipeline, _CASES, _QUICK_CASES),
    "end_to_end": Benchmark(
        end_to_end,
        [Load(rate, qos) for qos in (0, 1) for rate in _RATES],
        [Load(200, 1, seconds=1.0, settle_s=0.0, network="city:400", n_probes=2)],
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Run the chosen benchmarks; return the exit code."""
    options = _options(arguments)
    gc.freeze()  # imported modules are not garbage; without this the collector visits them
    facts = machine()
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(", ".join(f"{name} {fact}" for name, fact in facts.items()))
    tables = {}
    for name in options.names or BENCHMARKS:
        benchmark = BENCHMARKS[name]
        tables[name] = benchmark.run(benchmark.quick if options.quick else benchmark.full)
        for table in tables[name]:
            console.print(as_rich(table))
    if options.json:
        found = {name: list(map(as_json, each)) for name, each in tables.items()}
        text = json.dumps({"machine": facts, "benchmarks": found}, indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.markdown:
        command = " ".join(["python -m benchmarks", *arguments])
        options.markdown.write_text(document(tables, facts, command=command), encoding="utf-8")
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = ", ".join(BENCHMARKS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {known}; default: all")
    parser.add_argument(
        "--quick", action="store_true", help="use tiny sizes, to check that it works"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the results as JSON")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="file for the tables as Markdown"
    )
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in BENCHMARKS:
            parser.error(f"{name}: no such benchmark; there are {known}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
