"""Recorded arrivals of a city, and what the stages of the cluster make of them in one process."""

import json
from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import time
from typing import NamedTuple
from zlib import crc32

from anonymizer.cluster.positions.device_routing import FIXED_SOURCE
from anonymizer.cluster.positions.lane_stage import lane_stages
from anonymizer.cluster.positions.raw_batches import Raw, decode_out, encode_raw
from anonymizer.cluster.positions.source_stage import source_stages
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import Settings, zones_of
from tests.algorithms.positions.cloaks.driving import traffic

NETWORK = load_network("grid:10x10")
N_SOURCES, N_LANES, N_DEVICES = 2, 4, 100
FIRST_TICK = (int(time()) - 600) // 8 * 8
"""Ticks take a second. Kafka refuses what is in the future."""
WAIT_S = 15.0
"""Longer than sources run ahead of each other: two epochs. A cold start takes as long."""
SECRET = bytes(range(32))
TOKEN = "of-this-test"  # noqa: S105  of no value
_SETTINGS = """
[network]
source = "grid:10x10"
snap_limit_m = 30
[region]
mode = "session"
districts = {n_lanes}
min_nodes = 1
place_devices = 1
[session]
epoch_s = 4
beat_s = 2
[presence]
ttl_s = 9
max_behind_s = 5
[adka]
density_steps = []
k_values = [2]
[trips]
enabled = true
ends_m = 0
ends_s = 0
delay_s = 3
gap_s = 5
[[zones]]
circle = {{lat = {lat}, lon = {lon}, radius_m = 120}}
[counts]
privacy = "k"
every_s = 5
k = 3
cells = 16
[tick]
interval_s = 1
[http]
map = "none"
port = {port}
token = "{token}"
[kafka]
servers = "{kafka}"
group = "{prefix}"
[cluster]
n_parts = {n_sources}
wait_s = {wait_s}
secret_file = "{secret}"
"""


class Raws(NamedTuple):
    """What the bridge sends at the end of a tick, by source."""

    at_s: float
    values: list[bytes]
    n_positions: int


MORE = """
[current]
every_s = 2
[[inputs]]
topic = "positions/{device}"
[[inputs]]
topic = "fleet/+/{device}"
[[inputs]]
topic = "sensors/{device}"
kind = "fixed"
[fixed]
ttl_s = 18
"""
"""Settings of what one stage publishes for all."""


def config_of(folder: Path, *, kafka: str, prefix: str, port: int = 0, more: str = "") -> Path:
    """Write the settings of a process of a cluster into a folder, and the secret beside it."""
    secret = folder / "secret"
    secret.touch(mode=0o600)
    secret.write_bytes(SECRET)
    config = folder / f"gateway-{port}.toml"
    config.write_text(
        _SETTINGS.format(
            n_lanes=N_LANES,
            lat=NETWORK.lat[44],
            lon=NETWORK.lon[44],
            n_sources=N_SOURCES,
            wait_s=WAIT_S,
            token=TOKEN,
            kafka=kafka,
            prefix=prefix,
            port=port,
            secret=secret,
        )
        + more
    )
    return config


def arrivals(n_ticks: int, *, seed: int = 3, n_sensors: int = 0) -> Iterator[Raws]:
    """Yield what the bridge sends, tick after tick; it states every tick to every source.

    With sensors, every third device has another topic in every tick.
    """
    for tick, where in enumerate(
        islice(traffic(NETWORK, N_DEVICES, seed=seed, says=0.7), n_ticks), start=FIRST_TICK
    ):
        of: list[list[Delivery]] = [[] for _ in range(N_SOURCES)]
        for device, node in where.items():
            topic = f"positions/d{device}"
            source = crc32(topic.encode()) % N_SOURCES
            if n_sensors and device % 3 == 0:
                topic = f"fleet/{tick}/d{device}"
            place = {"lat": 10.0, "lon": 10.0}  # off the graph
            if node >= 0:
                place = {"lat": float(NETWORK.lat[node]), "lon": float(NETWORK.lon[node])}
            said = json.dumps(place | {"ts": tick + 0.5}).encode()
            of[source].append(Delivery(topic, said, 0))
        for sensor in range(n_sensors):
            place = {"lat": float(NETWORK.lat[4 * sensor]), "lon": float(NETWORK.lon[4 * sensor])}
            of[FIXED_SOURCE].append(Delivery(f"sensors/s{sensor}", json.dumps(place).encode(), 0))
        raws = [Raw("bridge", tick, False, [Arrivals(tick + 0.6, each)]) for each in of]
        yield Raws(tick + 1.1, [encode_raw(raw) for raw in raws], sum(map(len, of)))


class OneProcess:
    """All stages of the cluster in this process; each message arrives at once.

    `published` has the messages for MQTT of each lane, in order, `hours` the parts of files.
    """

    def __init__(self, settings: Settings) -> None:
        zoned = with_zones(NETWORK, zones_of(settings.zones))
        self.sources = list(map(source_stages(settings, zoned, secret=SECRET), range(N_SOURCES)))
        self.lanes = list(map(lane_stages(settings, zoned, secret=SECRET), range(N_LANES)))
        self.published: defaultdict[int, list[Outgoing]] = defaultdict(list)
        self.hours: list[bytes] = []

    def take(self, raws: Raws) -> None:
        waiting = deque(("source", number, value) for number, value in enumerate(raws.values))
        while waiting:
            to, number, value = waiting.popleft()
            if to == "out":
                self.published[number] += decode_out(value)
                continue
            if to == "files":
                self.hours.append(value)
                continue
            stage = self.sources[number] if to == "source" else self.lanes[number]
            waiting += stage.take(value, at_s=raws.at_s)
