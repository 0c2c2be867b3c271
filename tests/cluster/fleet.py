"""A small fleet's records on a cluster: its settings, what bridges send, and one process."""

from collections import deque
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from time import time
from typing import NamedTuple

from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.cluster.positions.raw_batches import Raw, decode_out, encode_raw
from anonymizer.cluster.records.stream_routing import StreamRouting
from anonymizer.cluster.records.stream_stage import stream_stages
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import Settings
from tests.app.gateway.records import toml
from tests.pipeline.records.made import FLEET, LENGTH_S, SOURCES, Sent, deliveries, traffic
from tests.pipeline.records.tolls import TOLL, exits

SECRET = bytes(range(32))
TOKEN = "of-this-test"  # noqa: S105  of no value
WAIT_S = 15.0
TICK_S = 0.25
TICKS_OF_WINDOW = 10
PAST_S = 900.0
"""How long ago bridges began to send. Kafka refuses what is in the future."""
START_S = time() // LENGTH_S * LENGTH_S - PAST_S - 60 * LENGTH_S
"""Of the first window, in event time: long enough ago that no record is in the future."""


class Raws(NamedTuple):
    """What the bridge sends at the end of a tick, by stage."""

    at_s: float
    values: list[bytes]


def config_of(folder: Path, *, kafka: str, prefix: str, port: int, broker: str = "") -> Path:
    """Write the settings of a process of a cluster into a folder, and the secret beside it."""
    secret = folder / "secret"
    secret.touch(mode=0o600)
    secret.write_bytes(SECRET)
    config = folder / f"gateway-{port}.toml"
    # No source becomes inactive, so that windows close by what was sent alone.
    streams = [FLEET | {"idle_s": 3600, "lateness_s": 1}, TOLL | {"idle_s": 3600}]
    config.write_text(f"""
        inputs = []
        streams = [{", ".join(map(toml, streams))}]
        [broker]
        url = "{broker or "mqtt://127.0.0.1:1"}"
        client_id = "cluster-0123456789abcdef0123456789abcdef"
        session_expiry_s = 600
        [store]
        path = "{folder}/releases-{port}.sqlite"
        [tick]
        interval_s = {TICK_S}
        [http]
        map = "none"
        port = {port}
        token = "{TOKEN}"
        [kafka]
        servers = "{kafka}"
        group = "{prefix}"
        [cluster]
        n_parts = 2
        wait_s = {WAIT_S}
        secret_file = "{secret}"
    """)
    return config


def sent(n_vehicles: int, n_windows: int) -> list[Sent]:
    """Return the parts of a fleet, and one of each source that closes the last window."""
    parts = list(traffic(n_vehicles=n_vehicles, n_windows=n_windows, seed=3, start=START_S))
    end = START_S + n_windows * LENGTH_S + FLEET["lateness_s"]  # later, it would be a leap
    last = {part.source: part for part in parts}
    return [*parts, *(Sent("closing", name, end, last[name].values) for name in SOURCES)]


def toll_exits(n: int) -> list[Outgoing]:
    """Return the exits of a day, and one of the next day, which closes the first."""
    day = list(exits(n=n, n_trucks=n // 2, seed=5))
    [after] = exits(n=1, n_trucks=1, seed=5, first_day="2023-01-04")
    return [Outgoing(f"toll/exit/{each.truck}", each.payload) for each in (*day, after)]


def raws_of(parts: Sequence[Sent], settings: Settings) -> list[Raws]:
    """Return what one bridge would send if a tenth of a window arrived in each tick."""
    routing = StreamRouting(settings.streams)
    began = time() - PAST_S
    found = []
    ticks = groupby(
        parts, key=lambda part: int((part.ts - START_S) // (LENGTH_S / TICKS_OF_WINDOW))
    )
    for n, (_, of_tick) in enumerate(ticks):
        packed = PackedDeliveries.of(deliveries(list(of_tick)))
        stage_of = routing.parts_of(packed, routing.n_stages)
        at_s = began + n * TICK_S
        tick = int(at_s // TICK_S)
        values = [
            encode_raw(
                Raw(
                    "bridge",
                    tick,
                    False,
                    [Arrivals(at_s, packed.copied((stage_of == j).nonzero()[0]))],
                )
            )
            for j in range(routing.n_stages)
        ]
        found.append(Raws(at_s, values))
    # Ticks without records: what was sent is stated, and time goes on.
    for _ in range(int(2 * WAIT_S / TICK_S)):
        at_s = found[-1].at_s + TICK_S
        raw = Raw("bridge", int(at_s // TICK_S), False, [])
        found.append(Raws(at_s, [encode_raw(raw)] * routing.n_stages))
    return found


class OneProcess:
    """All stages of the cluster in this process; each message arrives at once."""

    def __init__(self, settings: Settings) -> None:
        streams = declared_streams(settings)
        make = stream_stages(settings, streams, secret=SECRET)
        self.stages = [make(number) for number in range(StreamRouting(settings.streams).n_stages)]
        self.published: list[Outgoing] = []

    def take(self, raws: Raws) -> None:
        waiting = deque(("stream", number, value) for number, value in enumerate(raws.values))
        while waiting:
            to, number, value = waiting.popleft()
            if to == "out":
                self.published += decode_out(value)
            elif to != "release":
                waiting += self.stages[number].take(value, at_s=raws.at_s)
