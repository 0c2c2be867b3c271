"""Benchmark of the positions flow in memory, from bytes to bytes, by stage."""

import json
import time
from collections.abc import Iterator, Sequence

from scipy.spatial import cKDTree

from anonymizer.algorithms.geodesy import unit_vectors
from anonymizer.algorithms.positions.protection import Zones
from anonymizer.domain.fixes import Fix
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.flow_stats import STAGES
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import RegionSettings, Settings
from benchmarks.crowds import Crowd, Moves, network_named
from benchmarks.peers import PlainCloak
from benchmarks.tables import Table
from benchmarks.timing import best_of, runs_for
from tests.codecs.test_native import naive_decode

_NOW = 1_800_000_000.0
_IN_MEMORY = [stage for stage in STAGES if stage != "publish"]
_SETTINGS = Settings(region=RegionSettings(mode="adka"))
_TENTH = 10
_SAMPLE = 2000
_PEER_RUNS = 3


def pipeline(cases: Sequence[tuple[str, int]]) -> list[Table]:
    """Time `PositionFlow.tick` and `settle` for networks and numbers of devices."""
    columns = (
        "network",
        "devices",
        "positions",
        "flow",
        *(f"of it {stage}" for stage in _IN_MEMORY),
        "of it rest",
        "plain",
        "plain/flow",
    )
    notes = (
        "one tick, in which all devices or a random tenth report. The rest is accounting.",
        f"plain: json, a k-d tree call, dicts and networkx per message; at most {_SAMPLE:,}.",
    )
    rows = [row for source, n in cases for row in _rows(source, n)]
    return [Table("Positions flow, bytes to bytes: µs a position", columns, rows, notes)]


def _rows(source: str, n: int) -> list[tuple[str | int | float, ...]]:
    crowd = Crowd(network_named(source), n)
    plain = _plain_us(crowd)
    flow = PositionFlow(
        _SETTINGS,
        with_zones(crowd.network, Zones()),
        Ledger(),
        secret=b"of a benchmark",
        monotonic=time.perf_counter,
    )
    rows = []
    for n_reporting in (n, max(1, n // _TENTH)):
        batches = _batches(crowd, n_reporting, runs_for(n_reporting) + 1)
        _, *laps = [_lap_us(flow, *batch) for batch in batches]
        best = min(laps, key=sum)
        ours = sum(best)
        rows.append((source, n, n_reporting, ours, *best, plain, plain / ours))
    return rows


def _lap_us(flow: PositionFlow, now: float, deliveries: list[Delivery]) -> list[float]:
    """Run one tick; return the time of each stage, and the rest, in µs a position."""
    flow.ledger.receive(len(deliveries))
    before = [flow.stats.stage_s[stage].total for stage in _IN_MEMORY]
    began = time.perf_counter()
    output = flow.tick([Arrivals(began, deliveries)], now=now)
    flow.settle(output, [True] * len(output.messages), seconds=0.0)
    total = time.perf_counter() - began
    spent = [
        flow.stats.stage_s[stage].total - s for stage, s in zip(_IN_MEMORY, before, strict=True)
    ]
    return [s / len(deliveries) * 1e6 for s in (*spent, total - sum(spent))]


def _batches(crowd: Crowd, n: int, n_ticks: int) -> Iterator[tuple[float, list[Delivery]]]:
    for _ in range(n_ticks):
        moves = crowd.moves(n)
        yield _NOW + float(moves.ts[0]), _deliveries(crowd, moves)


def _deliveries(crowd: Crowd, moves: Moves) -> list[Delivery]:
    lat, lon = crowd.positions(moves.node)
    columns = (moves.slot, _NOW + moves.ts, lat, lon)
    return [
        Delivery(f"positions/device-{s}", b'{"ts":%.3f,"lat":%.7f,"lon":%.7f}' % (t, y, x), 0)
        for s, t, y, x in zip(*(column.tolist() for column in columns), strict=True)
    ]


class _PlainGateway:
    """The same flow from bytes to bytes, one message at a time, in plain Python."""

    def __init__(self, network: RoadNetwork) -> None:
        self._node_id = network.node_id.tolist()
        self._tree = cKDTree(unit_vectors(network.lat, network.lon))
        self._cloak = PlainCloak(network)

    def move(self, moves: Moves) -> None:
        """Update the positions of devices without publishing."""
        for device, _, node in zip(*(column.tolist() for column in moves), strict=True):
            self._cloak.density.move(device, 0.0, node)
        self._population = self._cloak.population()

    def publish(self, deliveries: list[Delivery]) -> list[bytes]:
        """Return the published messages of a batch."""
        return [out for one in deliveries if (out := self._publish(one)) is not None]

    def _publish(self, delivery: Delivery) -> bytes | None:
        (fix,) = naive_decode(delivery.payload)
        if not isinstance(fix, Fix) or fix.ts is None:
            return None
        device = delivery.topic.removeprefix("positions/device-")
        _, root = self._tree.query(unit_vectors(fix.lat, fix.lon))
        self._cloak.density.move(int(device), fix.ts, int(root))
        region = self._cloak.region(int(root), self._population)
        if not isinstance(region, list):
            return None
        named = [self._node_id[node] for node in region]
        return json.dumps({"pseudonym": device, "time": fix.ts, "region": named}).encode()


def _plain_us(crowd: Crowd) -> float:
    gateway = _PlainGateway(crowd.network)
    gateway.move(crowd.moves(crowd.n_devices))
    few = min(crowd.n_devices, _SAMPLE)
    batches = (_deliveries(crowd, crowd.moves(few)) for _ in range(_PEER_RUNS + 1))
    n_published: list[int] = []
    seconds = best_of(lambda batch: n_published.append(len(gateway.publish(batch))), batches)
    if not min(n_published):
        raise RuntimeError("the plain gateway has refused all positions of a batch")
    return seconds / few * 1e6
