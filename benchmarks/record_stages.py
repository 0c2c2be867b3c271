"""Benchmarks of windows of records in the stages of a cluster, in memory: what they cost."""

import json
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from anonymizer.cluster.positions.raw_batches import Raw, encode_raw
from anonymizer.cluster.records.stream_stage import stream_stages
from anonymizer.cluster.stage import Send
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.pipeline.records.declaration import Stream, declare
from anonymizer.settings import Settings, StreamSettings
from benchmarks.tables import Table
from simulator.record_fleet import REGIONS, SETTINGS, TYPES
from tests.pipeline.records.tolls import TOLL

_SECRET = b"of a benchmark, and nothing else"
_START = 1_800_000_000.0
_WINDOW_S = 60.0
_PRESENT = 0.9
_CHURN = 0.02
_TRIPS = 1.3
"""Exits of a truck in a day."""
_WORKERS = 4


class Windows(NamedTuple):
    """Windows of n records in each of some streams."""

    stream: str
    """`lasting`: the fleet of `simulator records`, published in cohorts. `changing`: the same
    without lasting attributes. `toll`: exits of trucks under KACA."""
    n_records: int
    n_streams: int
    n_windows: int = 3


def record_stages(cases: Sequence[Windows]) -> list[Table]:
    """Time what a stage takes for each record, and count what it sends."""
    runs = [(case, Run(case)) for case in cases]
    head = ("stream", "records", "streams")
    kinds = ("parts", "due", "out", "release")
    return [
        Table(
            "Stages of records: CPU time, µs a record",
            (*head, "parts", "windows", f"busiest of {_WORKERS} workers"),
            [(*case[:3], *run.times()) for case, run in runs],
            (
                "A record of the fleet has 3 parts, an exit one; each stream has so many records.",
                "windows: joined, anonymized, verified, written. busiest: µs a record of all.",
                "without the first window; all stages in one process, without Kafka.",
            ),
        ),
        Table(
            "Stages of records: bytes a record, by kind of message",
            (*head, *kinds),
            [(*case[:3], *run.sizes(kinds)) for case, run in runs],
        ),
        Table(
            "Snapshots of a stream: CPU time, and bytes for each of its vehicles",
            (*head, "with a window open, ms", "bytes"),
            [(*case[:3], *run.snapshot) for case, run in runs],
        ),
    ]


class Run:
    """One cluster, from the first part to the last.

    Attributes
    ----------
    snapshot
        CPU time and bytes a vehicle of the first stream's, before the last window closes.
    """

    def __init__(self, case: Windows) -> None:
        self._case = case
        declared = stream_of(case.stream)
        streams = [_numbered(declared, number) for number in range(case.n_streams)]
        make = stream_stages(Settings(), streams, secret=_SECRET)
        self._stages = [make(number) for number in range(case.n_streams)]
        self._seconds: defaultdict[tuple[str, int], float] = defaultdict(float)
        self._bytes: Counter[str] = Counter()
        self._n_counted = 0
        self.snapshot = 0.0, 0.0
        for tick, (at_s, values) in enumerate(_sent(case)):
            if tick == case.n_windows:
                self._take_snapshot()
            if tick == 2:  # the first window has been closed by the first parts of the second
                self._seconds.clear()
                self._bytes.clear()
            if tick >= 2:
                self._n_counted += case.n_records * case.n_streams
            for number, value in enumerate(values):
                self._run(Send("parts", number, value), at_s)

    def _run(self, send: Send, at_s: float) -> None:
        """Let a stage take a message, and those that it sends itself."""
        kind = "due" if send.to == "stream" else send.to
        self._bytes[kind] += len(send.value)
        if kind in {"out", "release"}:
            return
        began = time.thread_time()
        sends = self._stages[send.number].take(send.value, at_s=at_s)
        self._seconds[kind, send.number] += time.thread_time() - began
        for each in sends:
            self._run(each, at_s)

    def _take_snapshot(self) -> None:
        stage = self._stages[0]
        began = time.thread_time()
        size = len(stage.snapshot())
        took_ms = (time.thread_time() - began) * 1e3
        self.snapshot = took_ms, size / self._case.n_records

    def times(self) -> list[float]:
        """Return the CPU time of parts, of windows and of the busiest worker, µs a record."""
        of_kind: defaultdict[str, float] = defaultdict(float)
        of_worker: defaultdict[int, float] = defaultdict(float)
        for (kind, number), seconds in self._seconds.items():
            of_kind[kind] += seconds
            of_worker[number % _WORKERS] += seconds
        found = (of_kind["parts"], of_kind["due"], max(of_worker.values()))
        return [seconds * 1e6 / self._n_counted for seconds in found]

    def sizes(self, kinds: Sequence[str]) -> list[float]:
        """Return the bytes of messages of these kinds, for each record."""
        return [self._bytes[kind] / self._n_counted for kind in kinds]


def stream_of(name: str) -> Stream:
    """Return a stream of `Windows`."""
    if name == "toll":
        return declare(StreamSettings.model_validate(TOLL | {"max_records": 10_000_000}))
    table: dict[str, Any] = tomllib.loads(SETTINGS)["streams"][0]
    table |= {"method": "hilbert", "max_records": 10_000_000, "window_s": _WINDOW_S}
    if name == "changing":
        table["attributes"] = [{**each, "lasting": False} for each in table["attributes"]]
    return declare(StreamSettings.model_validate(table))


def _numbered(stream: Stream, number: int) -> Stream:
    """Return a stream of another name, with topics of its own."""
    sources = [
        source.model_copy(update={"topic": f"{number}/{source.topic}"})
        for source in stream.settings.sources
    ]
    changes = {"name": f"{stream.settings.name}{number}", "sources": sources}
    return replace(stream, settings=stream.settings.model_copy(update=changes))


def _sent(case: Windows) -> Iterator[tuple[float, list[bytes]]]:
    """Yield what a bridge sends to each stream in each window, and when; the last ends them."""
    rng = np.random.default_rng(1)
    rule = stream_of(case.stream).rule
    parts_of = _exits if case.stream == "toll" else _Fleet(case.n_records, rng).parts
    first = rule.window_of(_START)
    for tick in range(case.n_windows + 1):
        start, end = rule.span(first + tick)
        parts = list(parts_of(case.n_records, start, rng))
        values = []
        for number in range(case.n_streams):
            mine = [part._replace(topic=f"{number}/{part.topic}") for part in parts]
            arrivals = [Arrivals(end, PackedDeliveries.of(mine))]
            values.append(encode_raw(Raw("bridge", tick, False, arrivals)))
        yield end, values


class _Fleet:
    """Vehicles like those of `simulator records`; some are away in a window, some never return."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self._here = np.arange(int(n / _PRESENT) + 1)
        self._next = len(self._here)
        most = 3 * self._next
        experience = rng.beta(2.0, 3.0, most) * 50
        age = np.clip(20 + experience + rng.exponential(3.0, most), 18, 80).astype(int)
        self._type = rng.choice(5, most, p=(0.08, 0.62, 0.14, 0.13, 0.03))
        self._region = rng.integers(0, 4, most)
        self._built = np.clip(2026 - rng.gamma(2.0, 4.5, most), 1990, 2026).astype(int)
        self._age = age
        self._licence = np.minimum(experience, age - 18).astype(int)

    def parts(self, n: int, start: float, rng: np.random.Generator) -> Iterator[Delivery]:
        leave = rng.random(len(self._here)) < _CHURN
        new = self._next + np.arange(int(leave.sum()))
        self._here, self._next = np.append(self._here[~leave], new), self._next + len(new)
        for v in np.sort(rng.permutation(self._here)[:n]).tolist():
            says: dict[str, dict[str, object]] = {
                "registration": {
                    "type": TYPES[int(self._type[v])],
                    "region": REGIONS[int(self._region[v])],
                    "built": int(self._built[v]),
                },
                "profile": {"age": int(self._age[v]), "licence_years": int(self._licence[v])},
                "telemetry": {
                    "speed_kmh": round(140 * float(rng.random()) ** 0.7),
                    "fuel_percent": int(rng.integers(0, 101)),
                    "fault": "none" if rng.random() < 0.9 else str(rng.choice(_FAULTS)),
                },
            }
            for source, values in says.items():
                ts = round(start + float(rng.random()) * _WINDOW_S * 0.99, 3)
                body = json.dumps({"ts": ts, **values}).encode()
                yield Delivery(f"records/{source}/veh-{v:08d}", body, 0, False)


_FAULTS = ("tyres", "brakes", "battery", "engine")


def _exits(n: int, start: float, rng: np.random.Generator) -> Iterator[Delivery]:
    """Yield the exits of a day, some trucks several times."""
    sections = TOLL["attributes"][0]["values"]
    shares = (0.4, 0.05, 0.1, 0.2, 0.25)
    section = rng.choice(len(sections), n, p=shares).tolist()
    truck = rng.integers(0, max(int(n / _TRIPS), 1), n).tolist()
    second = np.sort(rng.normal(14, 5, n) % 24 * 3600).tolist()
    cents = rng.integers(500, 20_000, n).tolist()
    for i in range(n):
        body = {
            "exit_time": start + second[i],
            "section_id": sections[section[i]],
            "toll_money": cents[i] / 100,
        }
        yield Delivery(f"toll/exit/{truck[i]:08d}", json.dumps(body).encode(), 0, False)
