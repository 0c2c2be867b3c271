"""Plan of large clusters, from measured costs: how many workers, partitions, brokers, and memory.

The model is first compared with the runs of four workers that are stored beside it. They come from
`python -m benchmarks stages cluster --json benchmarks/cluster.json`, and what copies cost from
`python -m benchmarks followers --json benchmarks/followers.json`.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from benchmarks.cluster_model import PROGRAMS, Costs, Layout, Row, simulate
from benchmarks.followers import share_of_follower
from benchmarks.slices import BUSY, MQTT, N_COPIES, Slice, cores_to_have
from benchmarks.tables import Cell, Table

STORED = Path(__file__).with_name("cluster.json")
OTHERS = ("broker", "simulator", "analyst")
SIZES = (100_000, 1_000_000, 10_000_000)
"""Fleets of which the manual speaks."""
_STAGE_S = 0.25
"""Most work of one stage in a tick, in seconds, so that a tick passes within the next one."""
_BUSIEST = {8: 0.140, 16: 0.106, 32: 0.066, 64: 0.057}
"""Share of the positions in the busiest of so many districts that are cut by load: taxis of San
Francisco, by `python -m benchmarks.skew`. More districts do not divide the busiest place."""
_KEPT_S = 3600.0
"""How long topics keep messages, see `anonymizer.cluster.kafka`."""
_BROKER_CORES = 4
_HOPS_S, _FINER_S = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1), 0.01
_WARM_UP = 4
"""Runs in which Kafka's code was being compiled: it then took up to four times as much CPU."""
_LOAD = 5_000
"""Positions per second of the runs whose delay is compared."""
_FITTED = 2
"""Most workers of the runs that the costs come from: one does not tell what another adds."""
_RUNS = 5
"""Simulations of one run: workers commit at other moments in each."""


class Stored(NamedTuple):
    """Measurements of one machine."""

    runs: Sequence[Row]
    sizes: Sequence[Row]
    """`runs`, `sizes`: rows of the tables of the benchmark `cluster`."""
    stages: Row
    bytes_of: Row
    """`stages`, `bytes_of`: the last rows of those of the benchmark `stages`."""
    n_cores: int
    """Of the machine."""
    follower: float
    """See `share_of_follower`."""

    @classmethod
    def read(cls, file: Path = STORED) -> "Stored":
        """Return what is stored."""
        found = json.loads(file.read_text(encoding="utf-8"))
        runs, sizes = (table["rows"] for table in found["benchmarks"]["cluster"])
        times, kinds, *_ = (table["rows"] for table in found["benchmarks"]["stages"])
        n_cores = int(found["machine"]["cores"])
        return cls(runs, sizes, times[-1], kinds[-1], n_cores, share_of_follower())

    @property
    def slices(self) -> list[Slice]:
        """What a position costs alone in a message, and with many others; one copy of Kafka."""
        rows = [row for row in self.runs[_WARM_UP:] if row["replicas"] == 1]
        return [Slice.of(rows, n) for n in sorted({row["positions a message"] for row in rows})]

    @property
    def copying(self) -> float:
        """Times the CPU of one broker that three take with all copies, at a rate of both."""
        alone = [row for row in self.runs if row["positions a message"] == row["workers"] == 1]
        three = [r for r in alone if r["replicas"] == N_COPIES and r["kept up"] == "yes"]
        fastest = max(float(row["asked/s"]) for row in three)
        # The last ones: in those before them Kafka's code was being compiled.
        [*_, last] = [row for row in three if row["asked/s"] == fastest]
        [*_, one] = [r for r in alone if r["replicas"] == 1 and r["asked/s"] == fastest]
        return float(last["kafka, µs"] / one["kafka, µs"])

    @property
    def single(self) -> list[Row]:
        """The runs with one position in a message, and one broker of Kafka."""
        alone = [row for row in self.runs if row["positions a message"] == 1]
        return [row for row in alone if row["replicas"] == 1]

    @property
    def warm(self) -> list[Row]:
        """Those in which Kafka's code was compiled: their CPU time can be compared."""
        return self.single[_WARM_UP:]

    @property
    def kept_up(self) -> list[Row]:
        """Those whose delay can be compared."""
        return [row for row in self.single if row["kept up"] == "yes" and row["asked/s"] >= _LOAD]

    def delay_s(self, costs: Costs, row: Row) -> float:
        """Return the median delay that the simulation has for a run.

        Programs outside of the benchmark are taken to yield: whoever works beside it is asked to
        start them with `nice`.
        """
        layout = Layout.of(row)
        runs = [
            simulate(costs, layout, n_cores=self.n_cores, n_ticks=10, seed=i) for i in range(_RUNS)
        ]
        return float(np.median(np.concatenate([run.delay_s for run in runs])))

    @property
    def share_of_sources(self) -> float:
        """Share of a worker's work that sources do."""
        sources = self.stages["source, ticks"] + self.stages["source, reports"]
        return float(sources / (sources + self.stages["lanes"]))


def costs_of(stored: Stored) -> Costs:
    """Return the costs that the runs of one and two workers show, with single positions."""
    return Costs.fitted(
        [row for row in stored.warm if row["workers"] <= _FITTED],
        share_of_sources=stored.share_of_sources,
        given=OTHERS,
    )


def with_hop(stored: Stored, costs: Costs) -> Costs:
    """Return costs with the time of a hop that has the median delays of one worker."""
    seen = [row for row in stored.kept_up if row["workers"] == 1]

    def error(hop_s: float) -> float:
        hopping = costs._replace(hop_s=hop_s)
        ratios = [stored.delay_s(hopping, row) * 1e3 / float(row["p50, ms"]) for row in seen]
        return sum(abs(ratio - 1.0) for ratio in ratios)

    error_of = {hop_s: error(hop_s) for hop_s in _HOPS_S}
    near = min(error_of, key=lambda hop_s: error_of[hop_s])
    error_of |= {hop_s: error(hop_s) for hop_s in (near - _FINER_S, near + _FINER_S) if hop_s >= 0}
    return costs._replace(hop_s=min(error_of, key=lambda hop_s: error_of[hop_s]))


class Compared(NamedTuple):
    """A figure of a run that the model has not seen, and what it predicts."""

    what: str
    n_workers: int
    rate_per_s: float
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """By how much the prediction is off, as a share of what was measured."""
        return self.predicted / self.measured - 1


def compared(stored: Stored, costs: Costs) -> Iterator[Compared]:
    """Yield what the model predicts for more workers than it has seen, and what was measured."""
    several = [row for row in stored.warm if row["workers"] > _FITTED]
    for row in several:
        layout = Layout.of(row)
        at = (row["workers"], row["sent/s"])
        for program in ("workers", "kafka"):
            figure = f"{program}, µs"
            yield Compared(figure, *at, costs.us(program, layout), row[figure])
        measured = sum(row[f"{program}, µs"] for program in (*PROGRAMS, *OTHERS))
        everything = costs.all_cores(layout) / layout.rate_per_s * 1e6
        yield Compared("everything, µs", *at, everything, measured)
    # The work of a bridge does not depend on the workers: its runs are compared as one.
    rate_per_s = float(np.mean([row["sent/s"] for row in several]))
    used = sum(row["bridge, µs"] * row["sent/s"] for row in several)
    layout = Layout.of(several[0])._replace(rate_per_s=rate_per_s)
    measured_us = used / sum(row["sent/s"] for row in several)
    yield Compared("bridge, µs", 0, rate_per_s, costs.us("bridge", layout), measured_us)


def delays(stored: Stored, costs: Costs) -> Iterator[Compared]:
    """Yield the median delays that a simulation has for several workers, and the measured."""
    for row in stored.kept_up:
        if row["workers"] > 1:
            at = (row["workers"], row["sent/s"])
            yield Compared("p50, ms", *at, stored.delay_s(costs, row) * 1e3, row["p50, ms"])


def highest_rate(costs: Costs, layout: Layout, *, n_cores: float) -> float:
    """Return the positions per second with which everything together uses so many cores."""
    fixed = costs.all_cores(layout._replace(rate_per_s=0.0))
    return (n_cores - fixed) / (costs.all_cores(layout._replace(rate_per_s=1.0)) - fixed)


class Sized(NamedTuple):
    """A cluster that is large enough."""

    layout: Layout
    cores: Mapping[str, float]
    """`layout`, `cores`: how many there are of each, and the cores that each kind of program
    uses."""
    p99_s: float
    """Time from the end of a tick until it is published."""
    busiest_s: float
    """Work of the busiest district in a tick."""


def sized(costs: Costs, n_devices: int) -> Sized:
    """Return a cluster for so many devices that report once a second; two of each at least."""
    position_s = float(costs.of["workers"][-1])
    n_sources = max(4, math.ceil(n_devices * position_s * costs.share_of_sources / _STAGE_S))
    n_districts = 8
    while n_devices * position_s * (1 - costs.share_of_sources) / n_districts > _STAGE_S:
        n_districts *= 2  # the settings take powers of two
    layout = Layout(n_devices, n_sources, n_districts, n_workers=2, n_bridges=2)
    while True:
        needed = layout._replace(
            n_workers=math.ceil(costs.cores("workers", layout) / BUSY),
            n_bridges=math.ceil(costs.cores("bridge", layout) / BUSY),
        )
        if needed.n_workers <= layout.n_workers and needed.n_bridges <= layout.n_bridges:
            break
        layout = needed._replace(
            n_workers=max(needed.n_workers, layout.n_workers),
            n_bridges=max(needed.n_bridges, layout.n_bridges),
        )
    cores = {name: costs.cores(name, layout) for name in PROGRAMS}
    cores["mqtt"] = costs.given_s["broker"] * n_devices
    simulated = simulate(costs, layout, n_cores=math.inf, n_ticks=12)
    share = _BUSIEST.get(n_districts, min(_BUSIEST.values()))
    busiest_s = share * n_devices * position_s * (1 - costs.share_of_sources)
    return Sized(layout, cores, float(np.quantile(simulated.delay_s, 0.99)), busiest_s)


def _memory(stored: Stored) -> tuple[float, float]:
    """Return the memory of a worker without devices, and of a device, in MiB."""
    rows = [row for row in stored.sizes if row["positions a message"] == 1]
    terms = np.array([[row["workers"], row["asked/s"]] for row in rows], np.float64)
    used = np.array([row["workers, MiB"] for row in rows])
    base, each = nnls(terms / used[:, None], np.ones(len(rows)))[0].tolist()
    return base, each


def plan(sizes: Sequence[int]) -> list[Table]:
    """Compare the model with stored measurements; plan clusters of these numbers of devices."""
    stored = Stored.read()
    costs = with_hop(stored, costs_of(stored))
    return [
        Table(
            "Model of a cluster: what it predicts for several workers from runs of fewer",
            ("workers", "positions/s", "figure", "predicted", "measured", "off"),
            [
                (
                    c.n_workers or "all",
                    round(c.rate_per_s),
                    c.what,
                    c.predicted,
                    c.measured,
                    f"{c.error:+.0%}",
                )
                for c in (*compared(stored, costs), *delays(stored, costs))
            ],
            (
                "µs: CPU time for each position; p50: from the end of the tick to the analyst.",
                f"a hop over Kafka, fitted to runs of one worker: {costs.hop_s * 1e3:.0f} ms.",
            ),
        ),
        _costs_table(costs, stored),
        _rates_table(costs, stored),
        plan_table(costs, stored, sizes),
        slices_table(costs, stored),
    ]


def _costs_table(costs: Costs, stored: Stored) -> Table:
    names = {
        "bridge": ("a bridge", "a position"),
        "workers": ("a worker", "a stage", "a message", "a position"),
        "kafka": ("itself", "a worker", "a partition that somebody writes to", "a position"),
    }
    rows: list[tuple[Cell, ...]] = [
        (program, name, float(cost) * 1e6)
        for program in PROGRAMS
        for name, cost in zip(names[program], costs.of[program], strict=True)
    ]
    rows += [("MQTT broker", "a position", costs.given_s["broker"] * 1e6)]
    sent = sum(stored.bytes_of[kind] for kind in ("raw", "batches", "reports", "out"))
    return Table(
        "Costs that the model has fitted",
        ("program", "for each", "µs"),
        rows,
        (
            "all but positions and messages: µs of CPU in each second, whatever there is to do.",
            "messages between stages: batches, reports and what bridges send.",
            f"bytes a position in all messages, not compressed: {sent:.0f}.",
        ),
    )


def _rates_table(costs: Costs, stored: Stored) -> Table:
    row = stored.single[0]
    layouts = [Layout.of(row)._replace(n_workers=n) for n in (1, 2, 4)]
    return Table(
        "Highest rate that the model expects on this machine, with nothing else on it",
        ("workers", "positions/s"),
        [
            (each.n_workers, round(highest_rate(costs, each, n_cores=stored.n_cores)))
            for each in layouts
        ],
        ("single positions, devices and MQTT broker included.",),
    )


def plan_table(costs: Costs, stored: Stored, sizes: Sequence[int]) -> Table:
    """Return clusters that are large enough for these numbers of devices at 1 Hz."""
    base_mib, device_mib = _memory(stored)
    bytes_each = float(np.median([row["Kafka's disk, bytes a position"] for row in stored.sizes]))
    rows: list[tuple[Cell, ...]] = []
    for n_devices in sizes:
        found = sized(costs, n_devices)
        layout, cores = found.layout, found.cores
        partitions = 2 * layout.n_sources + layout.n_districts
        brokers_cores = cores["kafka"] * stored.copying
        rows.append(
            (
                n_devices,
                layout.n_bridges,
                layout.n_workers,
                layout.n_sources,
                layout.n_districts,
                partitions + layout.n_sources + layout.n_districts,
                cores["workers"],
                layout.messages_per_s / 1e3,
                max(N_COPIES, math.ceil(brokers_cores / _BROKER_CORES / BUSY)),
                brokers_cores,
                bytes_each * n_devices * 8 / 1e9,
                bytes_each * n_devices * _KEPT_S * N_COPIES / 1e12,
                (base_mib * layout.n_workers + device_mib * n_devices) / 1024,
                cores["mqtt"],
                cores["bridge"] + cores["workers"] + brokers_cores + cores["mqtt"],
                found.p99_s,
                found.busiest_s,
            )
        )
    return Table(
        "Plan: devices that report once a second",
        (
            "devices", "bridges", "workers", "sources", "districts", "partitions",
            "workers' cores", "1,000 messages/s", "brokers", "brokers' cores",
            "into Kafka, Gbit/s", "disk, TB", "workers' memory, GiB", "MQTT brokers' cores",
            "cores in all", "p99, s", "busiest district, s",
        ),
        rows,
        (
            f"a worker and a bridge are one core each, {BUSY:.0%} busy.",
            f"brokers of Kafka have {_BROKER_CORES} cores each, as busy.",
            f"no source, and no district on the mean, works longer than {_STAGE_S} s in a tick.",
            "busiest district: its work in a tick, with the shares of taxis in San Francisco.",
            f"{N_COPIES} replicas: {_copies(stored)}.",
            "cores: used, all replicas; in all: with bridges and MQTT brokers.",
            "partitions: with those of the changelogs, without replicas.",
            "into Kafka: from all writers, compressed; readers take as much, and each replica.",
            "disk: an hour of all topics, all replicas.",
            "p99: from the end of the tick to MQTT, simulated, machines without other work.",
        ),
    )  # fmt: skip


def _copies(stored: Stored) -> str:
    """Return what copies cost."""
    return (
        f"all take {stored.copying:.1f} times the CPU of one; a follower alone"
        f" {stored.follower:.2f} times its leader's"
    )


def slices_table(costs: Costs, stored: Stored, *, n_devices: int = 1_000_000) -> Table:
    """Return what a position costs in a slice, and the cores for so many devices at 1 Hz."""
    layout = sized(costs, n_devices).layout
    rows: list[tuple[Cell, ...]] = []
    for each in stored.slices:
        used = each.cores(costs, layout, copying=stored.copying)
        us = each.us_of
        rows.append(
            (
                each.per_message,
                round(each.from_per_s),
                round(each.to_per_s),
                us["bridge"],
                us["workers"],
                us["kafka"],
                us[MQTT],
                used["bridge"],
                used["workers"],
                used["kafka"],
                used[MQTT],
                sum(used.values()),
                cores_to_have(used),
            )
        )
    programs = ("bridges", "workers", "Kafka", "Mosquitto")
    return Table(
        f"Arithmetic of a slice: {n_devices:,} devices that report once a second",
        (
            *("positions a message", "from/s", "to/s"),
            *(f"{program}, µs" for program in programs),
            *(f"{program}, cores" for program in programs),
            *("cores used", "cores to have"),
        ),
        rows,
        (
            "µs: CPU for each position between two runs of one worker; Kafka's of one copy.",
            f"Kafka, cores: {N_COPIES} replicas; {_copies(stored)}.",
            "with what the stages of the plan cost that have nothing to do.",
            f"cores to have: {BUSY:.0%} busy; bridges and workers have whole ones.",
        ),
    )
