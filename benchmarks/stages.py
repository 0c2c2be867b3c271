"""Benchmark of the stages of a cluster in memory: CPU time and bytes of each."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.protection import Zones
from anonymizer.cluster.positions.lane_stage import LaneStage, lane_stages
from anonymizer.cluster.positions.raw_batches import RAW, Raw, encode_raw
from anonymizer.cluster.positions.source_stage import SourceStage, source_stages
from anonymizer.cluster.positions.stage_messages import BATCH, REPORT
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import Settings
from benchmarks.crowds import Crowd, network_named
from benchmarks.record_stages import Windows, record_stages
from benchmarks.tables import Table

_START = 1_800_000_000
_SECRET = b"of a benchmark, and nothing else"
_WAIT_S = 1.0
_WARM_TICKS = 6
_TICKS = 12
_KINDS = {RAW: "raw", BATCH: "batches", REPORT: "reports", b"O": "out"}


class Case(NamedTuple):
    """A cluster in which each device reports once a second."""

    network: str
    n_devices: int
    n_districts: int
    n_sources: int


def stages(cases: Sequence[Case | Windows]) -> list[Table]:
    """Run all stages of each cluster in this process, and time what each takes."""
    of_positions = [case for case in cases if isinstance(case, Case)]
    of_records = [case for case in cases if isinstance(case, Windows)]
    return _position_stages(of_positions) + record_stages(of_records)


def _position_stages(cases: Sequence[Case]) -> list[Table]:
    measured = [_Run(case) for case in cases]
    head = ("network", "devices", "districts", "sources")
    return [
        Table(
            "Stages of a cluster: CPU time, µs a position",
            (*head, "source, ticks", "source, reports", "lanes", "ms a tick of a lane"),
            [run.times() for run in measured],
            (
                "mode `session`, default settings, a position of each device and a tick a second.",
                "source, ticks: from packed JSON to batches; reports: booking what became of them.",
                f"mean of {_TICKS} ticks; all stages in one process, without Kafka.",
            ),
        ),
        Table(
            "Stages of a cluster: bytes a position, by kind of message",
            (*head, *_KINDS.values(), "rows sent"),
            [run.sizes() for run in measured],
            ("rows sent: how many districts get each position.",),
        ),
        Table(
            "Snapshots of stages: CPU time, and bytes for each device of the stage",
            (*head, "source, ms", "source, bytes", "lane, ms", "lane, bytes"),
            [run.snapshots() for run in measured],
            ("of the first source and of the lane with the most devices.",),
        ),
    ]


class _Run:
    """One cluster, from the first position to the last."""

    def __init__(self, case: Case) -> None:
        self.case = case
        network = network_named(case.network)
        settings = Settings.model_validate(
            {
                "region": {"mode": "session", "districts": case.n_districts},
                "cluster": {"n_parts": case.n_sources, "wait_s": _WAIT_S},
                "tick": {"interval_s": 1.0},
            }
        )
        zoned = with_zones(network, Zones())
        make_source = source_stages(settings, zoned, secret=_SECRET)
        make_lane = lane_stages(settings, zoned, secret=_SECRET)
        self.sources: list[SourceStage] = [make_source(i) for i in range(case.n_sources)]
        self.lanes: list[LaneStage] = [make_lane(i) for i in range(case.n_districts)]
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.bytes: Counter[str] = Counter()
        crowd = Crowd(network, case.n_devices)
        for tick in range(_WARM_TICKS + _TICKS):
            if tick == _WARM_TICKS:
                self.seconds.clear()
                self.bytes.clear()
            for source, value in enumerate(raw_inputs(crowd, case.n_sources, _START + tick)):
                self._take("source", source, value, at_s=_START + tick + 1.0)
        settled = sum(source.ledger.n_settled + source.n_held for source in self.sources)
        if settled != sum(source.ledger.n_received for source in self.sources):
            raise RuntimeError("positions were lost")

    def _take(self, kind: str, number: int, value: bytes, *, at_s: float) -> None:
        """Let a stage take a value, and the others what it sends."""
        name = _KINDS[value[:1]]
        self.bytes[name] += len(value)
        if kind == "out":
            return
        stage = self.sources[number] if kind == "source" else self.lanes[number]
        began = time.thread_time()
        sends = stage.take(value, at_s=at_s)
        self.seconds[name if kind == "source" else "lanes"] += time.thread_time() - began
        for send in sends:
            self._take(send.to, send.number, send.value, at_s=at_s)

    def _us(self, part: str) -> float:
        return self.seconds[part] * 1e6 / (_TICKS * self.case.n_devices)

    def times(self) -> tuple[str | int | float, ...]:
        lane_ms = self.seconds["lanes"] * 1e3 / (_TICKS * self.case.n_districts)
        return (*self.case, self._us("raw"), self._us("reports"), self._us("lanes"), lane_ms)

    def sizes(self) -> tuple[str | int | float, ...]:
        n = _TICKS * self.case.n_devices
        known = sum(len(lane.lane.district.handles()) for lane in self.lanes)
        return (
            *self.case,
            *(self.bytes[name] / n for name in _KINDS.values()),
            known / self.case.n_devices,
        )

    def snapshots(self) -> tuple[str | int | float, ...]:
        lane = max(self.lanes, key=lambda each: len(each.lane.district.handles()))
        found: list[float] = []
        n_of_source = self.case.n_devices / self.case.n_sources
        for stage, n in ((self.sources[0], n_of_source), (lane, len(lane.lane.district.handles()))):
            began = time.thread_time()
            size = len(stage.snapshot())
            found += [(time.thread_time() - began) * 1e3, size / max(n, 1)]
        return (*self.case, *found)


def raw_inputs(crowd: Crowd, n_sources: int, tick: int) -> Iterator[bytes]:
    """Yield what a bridge sends to each source in a tick."""
    moves = crowd.moves(crowd.n_devices)
    lat, lon = crowd.positions(moves.node)
    rows = list(zip(moves.slot.tolist(), lat.tolist(), lon.tolist(), strict=True))
    for source in range(n_sources):
        mine = [
            Delivery(
                f"positions/vehicle-{slot:07d}",
                b'{"ts":%d.5,"lat":%.6f,"lon":%.6f}' % (tick, at_lat, at_lon),
                0,
                False,
            )
            for slot, at_lat, at_lon in rows
            if slot % n_sources == source
        ]
        parts = np.array_split(np.arange(len(mine)), 10)
        arrivals = [
            Arrivals(tick + 0.1 * i, PackedDeliveries.of([mine[j] for j in part.tolist()]))
            for i, part in enumerate(parts)
        ]
        yield encode_raw(Raw("bridge", tick, False, arrivals))
