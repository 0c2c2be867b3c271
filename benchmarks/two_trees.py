"""CPU time of ticks in several work trees, one second of ticks each in turns.

```text
git worktree add /tmp/before HEAD~20
python -m benchmarks.two_trees /tmp/before . --devices 1000 --network city:10000
```

A process for each tree runs the same positions through the whole flow, from bytes to bytes, and
waits while the others do. Whatever else the machine does meets all of them alike, second by second:
ratios of runs one after the other differed by half, these by a hundredth. The last column tells
whether a tree publishes the same messages as the first.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

import numpy as np

from anonymizer.algorithms.positions.protection import Zones
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import Settings
from simulator.traffic import Traffic

_BEGIN_S = 1_800_000_000.0


class Second(NamedTuple):
    """What one second of ticks cost and published."""

    cpu_s: float
    """CPU time of this process."""
    n_positions: int
    n_messages: int
    """`n_positions`, `n_messages`: taken in, and published."""
    digest: str
    """Of all messages since the begin."""


def seconds_of(network: str, n_devices: int, n_seconds: int) -> Iterator[Second]:
    """Run a flow with the default settings, each device once a second; yield second by second."""
    roads, settings = load_network(network), Settings()
    flow = PositionFlow(
        settings,
        with_zones(roads, Zones()),
        Ledger(),
        secret=b"of a benchmark",
        monotonic=time.process_time,
    )
    traffic, digest = Traffic(roads, n_devices, seed=1), hashlib.blake2b(digest_size=8)
    tick_s = settings.tick.interval_s
    n_ticks = round(1.0 / tick_s)
    for second in range(n_seconds):
        lat, lon = (each.tolist() for each in traffic.advance(float(second)))
        cpu_s, n_messages = 0.0, 0
        for tick in range(n_ticks):
            now = _BEGIN_S + second + (tick + 1) * tick_s
            deliveries = [
                Delivery(
                    f"positions/device-{d}",
                    b'{"ts":%.3f,"lat":%.7f,"lon":%.7f}' % (now - 0.01, lat[d], lon[d]),
                    0,
                )
                for d in range(tick, n_devices, n_ticks)
            ]
            began = time.process_time()
            flow.ledger.receive(len(deliveries))
            output = flow.tick([Arrivals(began, deliveries)], now=now)
            flow.settle(output, [True] * len(output.messages), seconds=0.0)
            cpu_s += time.process_time() - began
            n_messages += len(output.messages)
            for message in output.messages:
                digest.update(message.payload)
        yield Second(cpu_s, n_devices, n_messages, digest.hexdigest())


def in_turns(
    trees: Sequence[Path], network: str, n_devices: int, n_seconds: int
) -> list[list[Second]]:
    """Run a flow in each tree; return its seconds, tree by tree."""
    size = [f"--network={network}", f"--devices={n_devices}", f"--seconds={n_seconds}"]
    environment = dict(os.environ, NUMBA_NUM_THREADS="1", OMP_NUM_THREADS="1")
    processes = [
        subprocess.Popen(  # noqa: S603  this file
            [sys.executable, "-P", str(Path(__file__).resolve()), "--one", str(tree), *size],
            cwd=tree,
            env=environment | {"PYTHONPATH": str(tree.resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for tree in trees
    ]
    found: list[list[Second]] = [[] for _ in trees]
    for second in range(n_seconds):
        for i in np.roll(np.arange(len(trees)), second).tolist():
            print(file=cast("IO[str]", processes[i].stdin), flush=True)
            told = cast("IO[str]", processes[i].stdout).readline()
            cpu_s, n_positions, n_messages, digest = told.split()
            found[i].append(Second(float(cpu_s), int(n_positions), int(n_messages), digest))
    for process in processes:
        process.communicate()
    return found


def lines(trees: Sequence[Path], found: Sequence[Sequence[Second]], *, warm: int) -> Iterator[str]:
    """Yield the table; the first `warm` seconds are left out."""
    yield "| tree | µs a position | messages | times the first | equal |\n|---|--:|--:|--:|---|"
    first = np.array([each.cpu_s for each in found[0][warm:]])
    for tree, seconds in zip(trees, found, strict=True):
        cpu_s = np.array([each.cpu_s for each in seconds[warm:]])
        n_positions, n_messages = (
            sum(column) for column in list(zip(*seconds[warm:], strict=True))[1:3]
        )
        times = float(np.median(cpu_s / first))
        equal = "yes" if seconds[-1].digest == found[0][-1].digest else "no"
        us = 1e6 * cpu_s.sum() / n_positions
        yield f"| {tree} | {us:.2f} | {n_messages} | {times:.3f} | {equal} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or run one of the trees."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--network", default="city:10000")
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=270)
    parser.add_argument(
        "--warm",
        type=int,
        default=150,
        help="seconds before the measurement; in the first minute nobody is known to move",
    )
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        # The next second begins when the others have had theirs.
        seconds = seconds_of(options.network, options.devices, options.seconds)
        for _, second in zip(sys.stdin, seconds, strict=False):
            print(*second, flush=True)
        return
    found = in_turns(options.trees, options.network, options.devices, options.seconds)
    for line in lines(options.trees, found, warm=options.warm):
        print(line)


if __name__ == "__main__":
    main()
