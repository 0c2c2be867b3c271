"""Benchmark of memory: bytes of a live device and of a node, and a tick at these sizes."""

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from anonymizer.algorithms.positions.protection import Zones
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.settings import Settings
from benchmarks.costs import lap, traffic
from benchmarks.tables import Table

_TICKS_PER_S = 10
_SETTLE_S = 15
"""Until all groups have published, and their members have pseudonyms."""


def memory(cases: Sequence[tuple[str, int]]) -> list[Table]:
    """Measure networks and numbers of devices, each in a process of its own."""
    columns = (
        "network",
        "nodes",
        "bytes a node",
        "devices",
        "bytes a device",
        "resident, MiB",
        "median tick, ms",
        "worst tick, ms",
        "µs a position",
    )
    notes = (
        "resident memory of a flow in `session` mode, by the operating system.",
        "a node: with its roads, the index of roads, and what regions are made of.",
        "a device: when all have reported, and their groups have published.",
        "ticks: ten a second at 1 Hz, in CPU time, once each device has reported.",
    )
    return [Table("Memory in `session` mode", columns, [_row(*case) for case in cases], notes)]


def _row(source: str, n: int) -> tuple[str | int | float, ...]:
    command = (sys.executable, "-m", "benchmarks.memory", source, str(n))
    ran = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  ourselves
    found: list[float] = json.loads(ran.stdout)
    n_nodes, of_node, of_device, *rest = found
    return source, int(n_nodes), of_node, n, of_device, *rest


def _measure(source: str, n: int) -> list[float]:
    """Return the number of nodes, and the figures of the table in order."""
    small = load_network("grid:5x5")
    PositionFlow(
        Settings(), with_zones(small, Zones()), Ledger(), secret=b"", monotonic=time.monotonic
    ).tick([], now=0.0)  # loads all kernels
    empty = _resident()
    network = load_network(source)
    # Names are forgotten by this clock. A real one would go on while the benchmark makes messages.
    clock = [0.0]
    tested = PositionFlow(
        Settings(), with_zones(network, Zones()), Ledger(), secret=b"", monotonic=lambda: clock[0]
    )

    def tick(now: float, deliveries: Sequence[Delivery]) -> float:
        clock[0] = now
        return lap(tested, now, deliveries)

    with_network = _resident()
    ticks = traffic(network, n)
    now, deliveries = next(ticks)
    named = _resident()  # with the devices of the benchmark, which are not the flow's
    for _ in range(_TICKS_PER_S):
        tick(now, deliveries)
        now, deliveries = next(ticks)
    for later_s in range(1, _SETTLE_S + 1):
        tick(now + later_s, [])
    full = _resident()
    laps = []
    for _ in range(_TICKS_PER_S):
        laps.append(tick(now + _SETTLE_S, deliveries))
        now, deliveries = next(ticks)
    laps.sort()
    median_s, worst_s = laps[len(laps) // 2], laps[-1]
    each_us = sum(laps) / n * 1e6
    return [
        network.n_nodes,
        (with_network - empty) / network.n_nodes,
        (full - named) / n,
        full / (1 << 20),
        median_s * 1e3,
        worst_s * 1e3,
        each_us,
    ]


def _resident() -> int:
    """Return the resident bytes of this process, without memory that is free to be used again."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]))))
