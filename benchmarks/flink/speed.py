"""What a position costs in each engine: CPU time by program, delay and memory."""

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import numpy as np

from anonymizer.settings import load_settings
from benchmarks.crowds import Crowd, network_named
from benchmarks.flink.engines import Asked, Engine
from benchmarks.processes import cpu_s_of, cpu_s_of_child, machine_cpu_s, memory_bytes_of
from benchmarks.stages import raw_inputs
from tests.cluster import fleet
from tests.cluster.kafka import Kafka
from tests.cluster.processes import wait_until

_NETWORK, _N_SOURCES, _N_DISTRICTS = "city:10000", 4, 8
_WARM_S, _MEASURED_S, _QUIET_S = 20, 20, 6.0
_WARM_WINDOWS, _WINDOWS = 2, 4
_SETTINGS = """
[network]
source = "{network}"
[region]
districts = {n_districts}
[tick]
interval_s = 1.0
[kafka]
servers = "{kafka}"
group = "{prefix}"
[cluster]
n_parts = {n_sources}
secret_file = "{secret}"
[http]
port = 0
"""


class Cost(NamedTuple):
    """One run: µs of CPU a position by program, delay in seconds from the end of a tick."""

    engine: str
    rate_per_s: int
    us_of: dict[str, float]
    median_s: float
    p99_s: float
    memory_gb: float
    n_messages: int
    others_cores: float

    def __str__(self) -> str:
        """Return one line."""
        us = ", ".join(f"{program} {us:.1f}" for program, us in sorted(self.us_of.items()))
        return (
            f"{self.engine:6} {self.rate_per_s}/s: CPU, us a position: {us}; delay"
            f" {self.median_s:.2f} s, 99 % {self.p99_s:.2f} s; {self.memory_gb:.2f} GB;"
            f" {self.n_messages} messages; others used {self.others_cores:.1f} cores"
        )


def speed(rates: Sequence[int], engines: Sequence[Asked], kafka: Kafka) -> Iterator[Cost]:
    """Run the engines in turns at each rate, with one worker."""
    for rate in rates:
        for asked in engines:
            yield _measured(asked, rate, kafka)


def _measured(asked: Asked, rate: int, kafka: Kafka) -> Cost:
    home = Path(mkdtemp(prefix=f"{asked.name}-{rate}-", dir=asked.folder))
    config = _config(kafka, home)
    engine = asked.engine(config, home)
    try:
        engine.start(1)
        crowd = Crowd(network_named(_NETWORK), rate)
        _feed(engine, crowd, _WARM_S)
        wait_until(lambda: len(engine.published) > 0, "a message", deadline_s=600)
        _until_quiet(engine)
        engine.published.came.clear()
        before, cpu_before = machine_cpu_s(), _cpu_s(engine)
        began = time.monotonic()
        _feed(engine, crowd, _MEASURED_S)
        _until_quiet(engine)
        cpu = _cpu_s(engine)
        cpu.subtract(cpu_before)
        elsewhere = machine_cpu_s() - before - sum(cpu.values()) / 1e6
        came = list(engine.published.came)
        delays = [
            at - json.loads(each.payload)["time"] for at, each in came if b'"time"' in each.payload
        ]
        return Cost(
            asked.name,
            rate,
            {program: us / (rate * _MEASURED_S) for program, us in cpu.items()},
            float(np.median(delays)),
            float(np.quantile(delays, 0.99)),
            sum(map(memory_bytes_of, engine.pids)) / 1e9,
            len(came),
            elsewhere / (time.monotonic() - began),
        )
    finally:
        engine.stop()


class RecordCost(NamedTuple):
    """One run: µs of CPU a record by program, in windows of so many vehicles."""

    engine: str
    n_vehicles: int
    n_records: int
    us_of: dict[str, float]
    n_messages: int

    def __str__(self) -> str:
        """Return one line."""
        us = ", ".join(f"{program} {us:.1f}" for program, us in sorted(self.us_of.items()))
        return (
            f"{self.engine:6} windows of {self.n_vehicles}: CPU, us a record: {us};"
            f" {self.n_records} records, {self.n_messages} messages"
        )


def speed_of_records(
    sizes: Sequence[int], engines: Sequence[Asked], kafka: Kafka
) -> Iterator[RecordCost]:
    """Run the engines in turns on windows of each size, with one worker, as fast as they can."""
    for n_vehicles in sizes:
        for asked in engines:
            yield _of_records(asked, n_vehicles, kafka)


def _of_records(asked: Asked, n_vehicles: int, kafka: Kafka) -> RecordCost:
    home = Path(mkdtemp(prefix=f"{asked.name}-{n_vehicles}-", dir=asked.folder))
    config = fleet.config_of(home, kafka=kafka.address, prefix=f"b{secrets.token_hex(4)}", port=0)
    settings = load_settings(config)
    raws = fleet.raws_of(fleet.sent(n_vehicles, _WARM_WINDOWS + _WINDOWS), settings)
    n_warm = _WARM_WINDOWS * fleet.TICKS_OF_WINDOW
    engine = asked.engine(config, home)
    try:
        engine.start(1)
        for each in raws[:n_warm]:
            engine.feed(each.values, at_s=each.at_s, to="stream")
        wait_until(lambda: len(engine.published) > 0, "a class", deadline_s=600)
        _until_quiet(engine)
        n_before, before = len(engine.published), _cpu_s(engine)
        for each in raws[n_warm:]:
            engine.feed(each.values, at_s=each.at_s, to="stream")
        _until_quiet(engine)
        cpu = _cpu_s(engine)
        cpu.subtract(before)
        n_records = n_vehicles * _WINDOWS
        us_of = {program: us / n_records for program, us in cpu.items()}
        n_messages = len(engine.published) - n_before
        return RecordCost(asked.name, n_vehicles, n_records, us_of, n_messages)
    finally:
        engine.stop()


def _until_quiet(engine: Engine) -> None:
    """Wait until nothing more has come for a while: an engine that is behind has caught up."""
    n, since = len(engine.published), time.monotonic()
    while time.monotonic() - since < _QUIET_S:
        time.sleep(0.2)
        if len(engine.published) > n:
            n, since = len(engine.published), time.monotonic()


def _feed(engine: Engine, crowd: Crowd, n_ticks: int) -> None:
    """Feed so many ticks, each when it is over."""
    first = int(time.time())
    for tick in range(first, first + n_ticks):
        values = list(raw_inputs(crowd, _N_SOURCES, tick))
        time.sleep(max(0.0, tick + 1 - time.time()))
        engine.feed(values, at_s=time.time())


def _cpu_s(engine: Engine) -> Counter[str]:
    """Return microseconds of CPU by program."""
    found = Counter({"kafka": int(1e6 * cpu_s_of_child("kafka.Kafka"))})
    for pid in engine.pids:
        found[_program(pid)] += int(1e6 * cpu_s_of(pid))
    return found


def _program(pid: int) -> str:
    command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    return "java" if "java" in command.partition("\0")[0] else "python"


def _config(kafka: Kafka, home: Path) -> Path:
    prefix = f"b{secrets.token_hex(4)}"
    secret, config = home / "secret", home / "gateway.toml"
    secret.touch(mode=0o600)
    secret.write_bytes(bytes(range(32)))
    config.write_text(
        _SETTINGS.format(
            network=_NETWORK,
            n_districts=_N_DISTRICTS,
            n_sources=_N_SOURCES,
            kafka=kafka.address,
            prefix=prefix,
            secret=secret,
        ),
        encoding="utf-8",
    )
    return config
