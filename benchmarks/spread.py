"""How evenly the stages of a large cluster divide the work of real taxis among its workers.

`python -m benchmarks.spread NETWORK EARLIER LATER`: as `benchmarks.skew`. The network is cut by the
positions of the earlier trace. Of the later one each taxi is another device in each hour, and all
report once a second, from where they are between two fixes. For records they are divided among a
hundred streams, and each sends one in each of some windows: its speed and its square kilometre.

All stages run in this process, on messages as they are in Kafka, so what a worker would take is
known for any number of workers, however few cores there are: the sum over its stages, which Kafka's
`range` assignor gives it.
"""

import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.algorithms.positions.protection import Zones
from anonymizer.cluster.positions.device_routing import DeviceRouting
from anonymizer.cluster.positions.lane_stage import lane_stages
from anonymizer.cluster.positions.raw_batches import Raw, encode_raw
from anonymizer.cluster.positions.source_stage import source_stages
from anonymizer.cluster.records.stream_routing import StreamRouting
from anonymizer.cluster.records.stream_stage import stream_stages
from anonymizer.cluster.stage import Send, Stage
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.files.traces import read_trace
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.pipeline.records.declaration import declare
from anonymizer.settings import Settings, StreamSettings
from benchmarks.tables import Cell, Table, as_rich

_SECRET = b"of a benchmark, and nothing else"
_START = 1_800_000_000
_SNAP_M = 200.0
_HOUR_S = 3600.0
_FROM_S = 1200.0
"""Where in the hour the ticks are."""
_WARM, _TICKS = 6, 12
_WINDOW_S, _WINDOWS, _FIRST = 300, 4, 2
_WORKERS = (1, 2, 4, 8, 16, 32)
_N_PARTS, _N_DISTRICTS, _N_STREAMS = 32, 64, 100
_KM_PER_DEGREE = 111.2
_STREAM: dict[str, Any] = {
    "window_s": _WINDOW_S,
    "lateness_s": 5.0,
    "max_records": 1_000_000,
    "model": "kd",
    "promise": {"k": 5, "d": 2},
    "attributes": [
        {"name": "speed_kmh", "lo": 0, "hi": 150},
        {"name": "north_km", "lo": 0, "hi": 60},
        {"name": "east_km", "lo": 0, "hi": 60},
    ],
}
Load = Mapping[tuple[str, int], float]
"""CPU seconds of each stage, by its kind and number."""


class Moving(NamedTuple):
    """Devices between two fixes: an hour of a taxi each, by number, in order of time."""

    device: IntArray
    second: FloatArray
    lat: FloatArray
    lon: FloatArray

    @classmethod
    def of(cls, trace: Trace) -> "Moving":
        """Return the devices of a trace."""
        hour, second = np.divmod(trace.ts, _HOUR_S)
        pair = trace.device_of.astype(np.int64) << 32 | hour.astype(np.int64)
        device = np.unique(pair, return_inverse=True)[1]
        order = np.lexsort((second, device))
        return cls(device[order], second[order], trace.lat[order], trace.lon[order])

    def at(self, second: float) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
        """Return who has a fix before and after a second of the hour, where, and the km/h."""
        time_of = self.device * _HOUR_S + self.second
        who = np.unique(self.device)
        after = np.searchsorted(time_of, who * _HOUR_S + second)
        who, after = (each[(after > 0) & (after < len(time_of))] for each in (who, after))
        there = (self.device[after] == who) & (self.device[after - 1] == who)
        who, after = who[there], after[there]
        gap_s = np.maximum(self.second[after] - self.second[after - 1], 1.0)
        share = (second - self.second[after - 1]) / gap_s
        north, east = (x[after] - x[after - 1] for x in (self.lat, self.lon))
        lat, lon = self.lat[after - 1] + share * north, self.lon[after - 1] + share * east
        km = np.hypot(north, east * np.cos(np.radians(lat))) * _KM_PER_DEGREE
        return who, lat, lon, np.clip(km / gap_s * 3600, 0, 150).astype(np.int64)


def of_positions(network: RoadNetwork, moving: Moving, *, n_districts: int) -> tuple[Load, int]:
    """Return what each stage of positions takes, and for how many positions."""
    settings = Settings.model_validate(
        {
            "region": {"districts": n_districts},
            "cluster": {"n_parts": _N_PARTS},
            "tick": {"interval_s": 1.0},
        }
    )
    zoned = with_zones(network, Zones())
    source = source_stages(settings, zoned, secret=_SECRET)
    lane = lane_stages(settings, zoned, secret=_SECRET)
    run = _Run(DeviceRouting(settings.inputs).parts_of)
    run.stages |= {("source", i): source(i) for i in range(_N_PARTS)}
    run.stages |= {("lane", i): lane(i) for i in range(n_districts)}
    n = 0
    for tick in range(_WARM + _TICKS):
        if tick == _WARM:
            run.load.clear()
            n = 0
        device, lat, lon, _ = moving.at(_FROM_S + tick)
        n += len(device)
        now = _START + tick
        said = [
            (f"positions/{who}", b'{"ts":%d.5,"lat":%.6f,"lon":%.6f}' % (now, *where))
            for who, *where in zip(device.tolist(), lat.tolist(), lon.tolist(), strict=True)
        ]
        run.send("source", said, tick=now, at_s=now + 1.0)
    return run.load, n


def of_records(moving: Moving, *, n_streams: int) -> tuple[Load, int]:
    """Return what each stage of records takes, and for how many records."""
    settings = Settings.model_validate({"cluster": {"n_parts": _N_PARTS}})
    tells = ["speed_kmh", "north_km", "east_km"]
    tables = [
        StreamSettings.model_validate(
            _STREAM | {"name": f"fleet{i}", "sources": [{"name": f"f{i}", "tells": tells}]}
        )
        for i in range(n_streams)
    ]
    streams = list(map(declare, tables))
    stage = stream_stages(settings, streams, secret=_SECRET)
    run = _Run(StreamRouting(tables).parts_of)
    run.stages |= {("stream", i): stage(i) for i in range(n_streams)}
    middle = float(np.median(moving.lat)), float(np.median(moving.lon))
    n = 0
    for window in range(_WINDOWS + 1):
        if window == _FIRST:  # the one before it is closed by what comes now
            run.load.clear()
        device, lat, lon, speed = moving.at(_FROM_S + _WINDOW_S * window)
        n += len(device) if window >= _FIRST else 0
        north = 30 + (lat - middle[0]) * _KM_PER_DEGREE
        east = 30 + (lon - middle[1]) * _KM_PER_DEGREE * np.cos(np.radians(lat))
        now = _START + _WINDOW_S * window
        columns = (device, speed, *(np.clip(km, 0, 60).astype(np.int64) for km in (north, east)))
        said = [
            (
                f"records/f{who % n_streams}/taxi-{who}",
                b'{"ts":%d,"speed_kmh":%d,"north_km":%d,"east_km":%d}' % (now + 1, *tells_),
            )
            for who, *tells_ in zip(*(each.tolist() for each in columns), strict=True)
        ]
        run.send("stream", said, tick=window, at_s=now + _WINDOW_S)
    if not run.n_published:
        raise RuntimeError("no class was published")
    return run.load, n


class _Run:
    """Stages in one process, and what each takes."""

    def __init__(self, parts_of: Callable[[PackedDeliveries, int], IntArray]) -> None:
        self._parts_of = parts_of
        self.stages: dict[tuple[str, int], Stage] = {}
        self.load: defaultdict[tuple[str, int], float] = defaultdict(float)
        self.n_published = 0

    def send(self, kind: str, said: Sequence[tuple[str, bytes]], *, tick: int, at_s: float) -> None:
        """Send to the stages of a kind what a bridge does in a tick."""
        messages = PackedDeliveries.of([Delivery(*each, 0, False) for each in said])
        n_stages = sum(of == kind for of, _ in self.stages)
        part_of = self._parts_of(messages, n_stages)
        for number in range(n_stages):
            arrivals = [Arrivals(at_s - 0.1, messages.copied(np.flatnonzero(part_of == number)))]
            self._take(kind, number, encode_raw(Raw("bridge", tick, False, arrivals)), at_s)

    def _take(self, kind: str, number: int, value: bytes, at_s: float) -> None:
        """Let a stage take a message, and others what it sends."""
        waiting = deque([Send(kind, number, value)])
        while waiting:
            send = waiting.popleft()
            stage = self.stages.get((send.to, send.number))
            self.n_published += send.to == "out"
            if stage is not None:
                began = time.thread_time()
                waiting += stage.take(send.value, at_s=at_s)
                self.load[send.to, send.number] += time.thread_time() - began


def stages_table(name: str, load: Load, n: int) -> Table:
    """Return the CPU time of each kind of stage, and that of the busiest beside the mean."""
    kinds = dict.fromkeys(kind for kind, _ in load)
    rows = []
    for kind in kinds:
        of_kind = sorted((s for (other, _), s in load.items() if other == kind), reverse=True)
        mean = sum(of_kind) / len(of_kind)
        second = of_kind[1] if len(of_kind) > 1 else of_kind[0]
        us = sum(of_kind) / n * 1e6
        rows.append((kind, len(of_kind), us, of_kind[0] / mean, second / mean))
    head = ("stage", "number", f"µs a {name}", "busiest to mean", "second")
    return Table(f"Stages of {name}s: load of the busiest", head, rows, ())


def workers_table(name: str, load: Load, n: int, partitions: Mapping[str, int]) -> Table:
    """Return how the work of all stages grows with the workers, and how even it is."""
    rows: list[tuple[Cell, ...]] = []
    for n_workers in _WORKERS:
        of_worker = np.zeros(n_workers)
        for (kind, number), seconds in load.items():
            of_worker[worker_of(number % partitions[kind], partitions[kind], n_workers)] += seconds
        total, most = of_worker.sum(), of_worker.max()
        rows.append((n_workers, total / n * 1e6, most / n * 1e6, most * n_workers / total))
    head = ("workers", f"µs a {name}", "of the busiest worker", "busiest to mean")
    return Table(
        f"{name.capitalize()}s: growth with workers", head, rows, ("CPU time, without Kafka.",)
    )


def worker_of(partition: int, n_partitions: int, n_workers: int) -> int:
    """Return who has a partition of a topic by Kafka's `range` assignor: equal runs of numbers."""
    each, more = divmod(n_partitions, n_workers)
    with_more = more * (each + 1)
    if partition < with_more:
        return partition // (each + 1)
    return more + (partition - with_more) // each


def main(network_file: str, earlier: str, later: str) -> None:
    """Print the tables of two recorded traces."""
    network = load_network(network_file)
    trace = read_trace(earlier)
    node = NodeLocator(network, limit_m=_SNAP_M).locate(trace.lat, trace.lon, None)
    counted = np.bincount(node[node >= 0], minlength=network.n_nodes).astype(np.float64)
    network = replace(network, load_at=counted)
    moving = Moving.of(read_trace(later))
    console = Console(width=160)
    for name, (load, n), partitions in (
        (
            "position",
            of_positions(network, moving, n_districts=_N_DISTRICTS),
            {"source": _N_PARTS, "lane": _N_DISTRICTS},
        ),
        (
            "record",
            of_records(moving, n_streams=_N_STREAMS),
            {"stream": _N_PARTS},
        ),
    ):
        console.print(f"{n:,} {name}s")
        console.print(as_rich(stages_table(name, load, n)))
        console.print(as_rich(workers_table(name, load, n, partitions)))


if __name__ == "__main__":
    main(*sys.argv[1:])
