"""Benchmark of a first tick: what a device costs that was never heard of."""

import time
from collections.abc import Sequence
from hashlib import blake2b

from anonymizer.algorithms.positions.protection import Zones
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox
from anonymizer.settings import Settings
from benchmarks.crowds import Crowd, network_named
from benchmarks.tables import Table

_NOW = 1_800_000_000.0
_SOME = 500
_SECRET = b"of a benchmark"
_MOST_WAITING = 1 << 26


def newcomers(cases: Sequence[tuple[str, int]]) -> list[Table]:
    """Time the first tick of `PositionFlow` in which all devices are new."""
    columns = ("network", "devices", "first tick", "next tick", "new", "plain", "new/plain")
    notes = (
        "CPU of one run. New: what the first tick takes beyond the next one.",
        "plain: the topic split, a keyed hash of the id, and an entry of a dict.",
    )
    return [Table("New devices: µs a device", columns, [_row(*case) for case in cases], notes)]


def _row(source: str, n: int) -> tuple[str | int | float, ...]:
    network = network_named(source)
    ledger = Ledger()
    flow = PositionFlow(
        Settings.model_validate({"inputs": [{"max_speed_mps": 1e9}]}),
        with_zones(network, Zones()),
        ledger,
        secret=_SECRET,
        monotonic=time.monotonic,
    )

    def tick(said: PackedDeliveries, second: int) -> float:
        inbox = Inbox(_MOST_WAITING, ledger)
        inbox.put(said, at_s=float(second))
        began = time.process_time()
        output = flow.tick(inbox.take(), now=_NOW + second)
        took = time.process_time() - began
        flow.settle(output, [True] * len(output.messages), seconds=took)
        return took

    tick(_said(Crowd(network, _SOME), _SOME, "known"), 0)  # compiles or loads the kernels
    said = _said(Crowd(network, n), n, "new")
    first, following = (tick(said, second) / n * 1e6 for second in (1, 2))
    plain = _plain_s(said) / n * 1e6
    new = max(first - following, 0.0)
    return source, n, first, following, new, plain, new / plain


def _said(crowd: Crowd, n: int, name: str) -> PackedDeliveries:
    lat, lon = crowd.positions(crowd.moves(n).node)
    return PackedDeliveries.of(
        [
            Delivery(f"positions/{name}{i}", b'{"lat":%.7f,"lon":%.7f}' % at, 0)
            for i, at in enumerate(zip(lat.tolist(), lon.tolist(), strict=True))
        ]
    )


def _plain_s(said: PackedDeliveries) -> float:
    topics = [each.topic for each in said]
    began, number_of = time.process_time(), dict[int, int]()
    for topic in topics:
        device = topic.split("/")[1].encode()
        key = int.from_bytes(blake2b(device, digest_size=8, key=_SECRET).digest(), "big")
        number_of[key] = len(number_of)
    return time.process_time() - began
