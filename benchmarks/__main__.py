"""`python -m benchmarks [NAME ...] [--quick]`: run benchmarks and print their tables.

Ends with 1 if a ratio is 20 % worse than the stored one.
"""

import argparse
import gc
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import ratios
from benchmarks.adka import adka
from benchmarks.bus import Backlog as BusBacklog
from benchmarks.bus import bus
from benchmarks.cluster import Climb as ClusterClimb
from benchmarks.cluster import cluster
from benchmarks.costs import Case as CostsCase
from benchmarks.costs import costs
from benchmarks.decode import decode
from benchmarks.density import density
from benchmarks.durable import Backlog, durable
from benchmarks.end_to_end import GATEWAY, Climb, end_to_end
from benchmarks.followers import Load, followers
from benchmarks.freshness import Fleet, freshness
from benchmarks.gaps import Blows, gaps
from benchmarks.kaca import kaca
from benchmarks.memory import memory
from benchmarks.newcomers import newcomers
from benchmarks.pipeline import pipeline
from benchmarks.plan import SIZES, plan
from benchmarks.record_stages import Windows
from benchmarks.records import best, records
from benchmarks.regions import districts, regions
from benchmarks.relays import RELAYS
from benchmarks.snap import snap
from benchmarks.stages import Case, stages
from benchmarks.streams import streams
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
_LIVE_RATES = {0: (20_000, 55_000, 70_000, 85_000, 100_000), 1: (20_000, 30_000, 40_000, 55_000)}
"""By QoS; positions a second, each in a message."""
_BATCH_RATES = (100_000, 200_000, 350_000, 500_000)
_FLEETS = (200, 2_000, 20_000)
_STAGES = ((4, 8), (8, 1), (1, 1))

BENCHMARKS = {
    "decode": Benchmark(decode, _SIZES, (100, 200)),
    "snap": Benchmark(snap, _CASES, _QUICK_CASES),
    "density": Benchmark(density, _CASES, _QUICK_CASES),
    "adka": Benchmark(adka, _CASES, _QUICK_CASES),
    "regions": Benchmark(regions, _GROWTH, _QUICK_CASES),
    "districts": Benchmark(
        districts, [("city:100000", 100_000, (1, 64))], [("city:400", 300, (1, 4))]
    ),
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
    "streams": Benchmark(streams, [("hilbert", 500, 40), ("best", 500, 40)], [("hilbert", 30, 2)]),
    "kaca": Benchmark(
        kaca,
        [(table, n) for n in (*_SIZES, 1_000_000) for table in ("toll", "weighed")],
        [("toll", 300), ("weighed", 300)],
    ),
    "verification": Benchmark(verification, _CASES, _QUICK_CASES),
    "pipeline": Benchmark(pipeline, _CASES, _QUICK_CASES),
    "newcomers": Benchmark(
        newcomers, [("city:10000", n) for n in (10_000, 100_000, 1_000_000)], _QUICK_CASES
    ),
    "costs": Benchmark(
        costs,
        [
            *(CostsCase("city:100000", n, 40) for n in (10_000, 100_000)),
            CostsCase("city:100000", 100_000, 12, hz=5, batch=100),
        ],
        [CostsCase("city:400", 1_000, 2), CostsCase("city:400", 1_000, 2, hz=5, batch=100)],
    ),
    "memory": Benchmark(
        memory,
        [("city:100000", 100_000), ("grid:1000x1000", 1_000_000)],
        [("city:400", 1_000)],
    ),
    "stages": Benchmark(
        stages,
        [
            *(Case("city:100000", n, d, 4) for n, d in ((10_000, 16), (100_000, 64))),
            *(Windows(stream, 20_000, n) for n in (1, 8) for stream in ("changing", "lasting")),
            Windows("toll", 20_000, 1),
            Windows("lasting", 200_000, 1),
        ],
        [Case("city:400", 300, 2, 2), Windows("lasting", 200, 2)],
    ),
    "durable": Benchmark(
        durable, [Backlog(200_000), Backlog(200_000, window_s=60.0)], [Backlog(2_000)]
    ),
    "cluster": Benchmark(
        cluster,
        [
            # Kafka compiles its code in the first four; `plan` leaves their CPU time out.
            *(ClusterClimb(n, 1, (10_000,)) for n in (1, 1, 2, 4)),
            *(ClusterClimb(n, 1, (30_000,)) for n in (1, 2, 4)),
            # What stages cost that have nothing to do.
            *(ClusterClimb(1, 1, (1_000,), n_sources=s, n_districts=d) for s, d in _STAGES),
            *(ClusterClimb(n, 1, (40_000, 50_000, 60_000)) for n in (1, 2, 4)),
            *(ClusterClimb(n, 100, (50_000, 100_000, 150_000, 200_000)) for n in (1, 2, 4)),
            # Copies of all that Kafka has; the first two runs compile its code again.
            *(ClusterClimb(1, 1, (r,), n_replicas=3) for r in (10_000, 10_000, 10_000, 1_000)),
        ],
        [ClusterClimb(2, 1, (300,), n_districts=2, settle_s=1.0, seconds=5.0, network="city:400")],
    ),
    "followers": Benchmark(
        followers,
        [Load(1, (2_000, 1_000, 5_000)), Load(100, (5_000, 10_000))],
        [Load(1, (300,), warm_s=1.0, settle_s=1.0, seconds=5.0, network="city:400")],
    ),
    "bus": Benchmark(
        bus,
        [
            BusBacklog("native", 4_000_000),
            BusBacklog("native", 4_000_000, n_gateways=2),
            BusBacklog("native", 10_000_000, per_message=100),
            BusBacklog("j2735", 1_000_000),
            BusBacklog("j2735", 1_000_000, n_gateways=2),
        ],
        [BusBacklog("native", 2_000, n_devices=200, network="city:400")],
    ),
    "gaps": Benchmark(gaps, [Blows(20, 7)], [Blows(1, 1, n_devices=200, network="city:400")]),
    "plan": Benchmark(plan, SIZES, SIZES[:1]),
    "end_to_end": Benchmark(
        end_to_end,
        [
            *(Climb(GATEWAY, qos, rates) for qos, rates in _LIVE_RATES.items()),
            *(Climb("bare", qos, rates, settle_s=3.0) for qos, rates in _LIVE_RATES.items()),
            *(Climb("reads", qos, rates[1:2], settle_s=3.0) for qos, rates in _LIVE_RATES.items()),
            *(Climb("paho", qos, (5_000, 10_000), settle_s=3.0) for qos in _LIVE_RATES),
            *(Climb("aiomqtt", qos, (2_000, 5_000), settle_s=3.0) for qos in _LIVE_RATES),
            Climb(GATEWAY, 0, _BATCH_RATES, batch=100),
            Climb("bare", 0, _BATCH_RATES, batch=100, settle_s=3.0),
        ],
        [
            # The first groups of a gateway form within five seconds.
            Climb(name, 1, [200], seconds=3.0, settle_s=s, network="city:400", n_lanes=2)
            for name, s in ((GATEWAY, 6.0), *((each, 1.0) for each in RELAYS))
        ],
    ),
    "freshness": Benchmark(
        freshness,
        [Fleet(mode, n) for n in _FLEETS for mode in ("session", "snapshot", "adka")],
        [Fleet("snapshot", 100, network="city:400", settle_s=0.0, seconds=3.0)],
    ),
    "sustained": Benchmark(
        end_to_end,
        [
            Climb(GATEWAY, 0, (80_000,), seconds=120.0),
            *(Climb(name, 0, (80_000,), settle_s=3.0) for name in ("bare", "reads")),
            Climb(GATEWAY, 1, (55_000,), seconds=120.0),
            Climb("bare", 1, (30_000, 40_000), settle_s=3.0),
            Climb("reads", 1, (40_000,), settle_s=3.0),
            Climb(GATEWAY, 0, (500_000,), batch=100, seconds=60.0),
        ],
        [Climb(GATEWAY, 0, (200,), seconds=3.0, settle_s=6.0, network="city:400", n_lanes=2)],
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
    shown, code = None, 0
    if not options.quick:
        shown, code = outcome_of([table for each in tables.values() for table in each])
    if shown is not None:
        tables["ratios"] = [shown]
        console.print(as_rich(shown))
    if options.store:
        ratios.store({k: v for each in tables.values() for t in each for k, v in t.ratios.items()})
    if options.json:
        found = {name: list(map(as_json, each)) for name, each in tables.items()}
        text = json.dumps({"machine": facts, "benchmarks": found}, indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.markdown:
        command = " ".join(["python -m benchmarks", *arguments])
        options.markdown.write_text(document(tables, facts, command=command), encoding="utf-8")
    return 0 if options.store else code


def outcome_of(tables: Iterable[Table], file: Path = ratios.STORED) -> tuple[Table | None, int]:
    """Return the table that compares the ratios of a run, if it has any, and the exit code."""
    found = {name: ratio for table in tables for name, ratio in table.ratios.items()}
    if not found:
        return None, 0
    stored = ratios.read(file)
    return ratios.compared(found, stored), int(bool(ratios.worse(found, stored)))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = ", ".join(BENCHMARKS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {known}; default: all")
    parser.add_argument(
        "--quick", action="store_true", help="use tiny sizes, to check that it works"
    )
    parser.add_argument(
        "--store", action="store_true", help="store the ratios of this run, to compare others with"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the results as JSON")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="file for the tables as Markdown"
    )
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in BENCHMARKS:
            parser.error(f"{name}: no such benchmark; there are {known}")
    if options.store and options.quick:
        parser.error("--store: the ratios of tiny sizes say nothing")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
