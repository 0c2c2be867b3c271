"""Benchmarks of windows of records in the stages of a cluster, in memory: loss and costs."""

import json
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from anonymizer.cluster.positions.raw_batches import Raw, encode_raw
from anonymizer.cluster.records.joiner_stage import joiner_stages
from anonymizer.cluster.records.planner_stage import planner_stages
from anonymizer.cluster.records.range_stage import range_stages
from anonymizer.cluster.stage import Send, Stage
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.pipeline.records.declaration import Stream, declare
from anonymizer.pipeline.records.release_messages import decode_release
from anonymizer.pipeline.records.store_port import PublishedWindow
from anonymizer.settings import Settings, StreamSettings
from benchmarks.tables import Cell, Table
from simulator.record_fleet import REGIONS, SETTINGS, TYPES
from tests.pipeline.records.tolls import TOLL

_SECRET = b"of a benchmark, and nothing else"
_START = 1_800_000_000.0
_WINDOW_S = 60.0
_PRESENT = 0.9
_CHURN = 0.02
_TRIPS = 1.3
"""Exits of a truck in a day."""
_KIND_OF = {
    b"R": "parts",
    b"T": "states",
    b"C": "closing",
    b"V": "surveys",
    b"N": "plans",
    b"W": "rows",
    b"M": "met",
    b"S": "numbers",
    b"A": "answers",
    b"P": "shuffled",
    b"Q": "questions",
    b"H": "questions",
}


class Windows(NamedTuple):
    """Windows of n records, each in as many ranges.

    Attributes
    ----------
    stream
        `lasting`: the fleet of `simulator records`, published in cohorts. `changing`: the same
        without lasting attributes. `toll`: exits of trucks under KACA.
    """

    stream: str
    n_records: int
    n_ranges: Sequence[int]
    n_windows: int = 3


def ranges(cases: Sequence[Windows]) -> list[Table]:
    """Compare the information loss of windows in several ranges with that in one."""
    rows: list[tuple[Cell, ...]] = []
    for case in cases:
        whole: list[float] = []
        for n_ranges in case.n_ranges:
            run = Run(case, n_ranges, _sent(case, n_ranges))
            lost = [_lost(summary) for summary in run.summaries]
            whole = whole or lost
            published = min(each["published"] / each["records"] for each in run.summaries)
            shares = [100 * (a / b - 1) for a, b in zip(lost, whole, strict=True)]
            rows.append(
                (
                    case.stream,
                    case.n_records,
                    n_ranges,
                    100 * lost[0],
                    shares[0],
                    100 * lost[-1],
                    shares[-1],
                    100 * published,
                    run.n_met / len(run.summaries),
                )
            )
    head = ("stream", "records", "ranges")
    first, last = ("first, GCP %", "first, more %"), ("last, GCP %", "last, more %")
    return [
        Table(
            "Windows in ranges: information loss against one process",
            (*head, *first, *last, "published, %", "met at borders"),
            rows,
            (
                "one range publishes what one process does, byte for byte; no search anywhere.",
                "GCP: suppressed records count as 1. more: in percent of the loss of one range.",
                "published: in the worst window. met: records of a window that met at borders.",
            ),
        )
    ]


def record_stages(cases: Sequence[Windows]) -> list[Table]:
    """Time what each stage takes for each record, and count what it sends."""
    runs = [(case, n, Run(case, n, _sent(case, n))) for case in cases for n in case.n_ranges]
    head = ("stream", "records", "ranges")
    kinds = ("parts", "states", "rows", "met", "answers", "out", "release")
    return [
        Table(
            "Stages of records: CPU time, µs a record",
            (*head, "joiners, parts", "joiners, windows", "planner", "ranges"),
            [(case.stream, case.n_records, n, *run.times()) for case, n, run in runs],
            (
                "As many joiners as ranges; a record of the fleet has 3 parts, an exit one.",
                "joiners, windows: surveys, rows, and booking what became of them.",
                "without the first window; all stages in one process, without Kafka.",
            ),
        ),
        Table(
            "Stages of records: bytes a record, by kind of message",
            (*head, *kinds),
            [(case.stream, case.n_records, n, *run.sizes(kinds)) for case, n, run in runs],
        ),
        Table(
            "Snapshots of joiners: CPU time, and bytes for each vehicle of the joiner",
            (*head, "with a window open, ms", "bytes"),
            [(case.stream, case.n_records, n, *run.snapshot) for case, n, run in runs],
        ),
    ]


def _lost(summary: dict[str, float]) -> float:
    """Return the information loss of all records of a window; that of a suppressed one is 1."""
    n, published = summary["records"], summary["published"]
    return (summary["gcp"] * published + n - published) / n


class Run:
    """One cluster, from the first part to the last.

    Attributes
    ----------
    summaries
        Of the windows, in their order.
    n_met
        Records that met at borders.
    snapshot
        CPU time and bytes a vehicle of the first joiner's, before the last window closes.
    """

    def __init__(
        self, case: Windows, n_ranges: int, sent: Sequence[tuple[float, Sequence[bytes]]]
    ) -> None:
        self._case, self._n = case, n_ranges
        stream = stream_of(case.stream)
        settings = Settings()
        sizes = {
            "n_parts": n_ranges,
            "records_per_range": -(-case.n_records // n_ranges),
        }
        settings = settings.model_copy(
            update={"cluster": settings.cluster.model_copy(update=sizes)}
        )
        joiner, planner, range_ = (
            make(settings, [stream], secret=_SECRET)
            for make in (joiner_stages, planner_stages, range_stages)
        )
        self._stages: dict[tuple[str, int], Stage] = {("planner", 0): planner(0)}
        self._stages |= {("joiner", i): joiner(i) for i in range(n_ranges)}
        self._stages |= {("range", i): range_(i) for i in range(n_ranges)}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._bytes: Counter[str] = Counter()
        self._n_counted = 0
        self.summaries: list[dict[str, float]] = []
        self.snapshot = 0.0, 0.0
        for tick, (at_s, of_joiners) in enumerate(sent):
            if tick == case.n_windows:
                self._take_snapshot()
            if tick == 2:  # the first window has been closed by the first parts of the second
                self._seconds.clear()
                self._bytes.clear()
            if tick >= 2:
                self._n_counted += case.n_records
            for number, value in enumerate(of_joiners):
                self._run([Send("joiner", number, value)], at_s)
        self.n_met = self._stages["planner", 0].counters["met_records"]  # type: ignore[attr-defined]

    def _run(self, sends: list[Send], at_s: float) -> None:
        """Let stages take messages, and others what they send."""
        while sends:
            send = sends.pop(0)
            kind = send.to if send.to in {"out", "release"} else _KIND_OF[send.value[:1]]
            self._bytes[kind] += len(send.value)
            if send.to == "release":
                found = decode_release(send.value)
                if isinstance(found, PublishedWindow):
                    self.summaries.append(dict(found.summary))
            if kind in {"out", "release"}:
                continue
            began = time.thread_time()
            sends += self._stages[send.to, send.number].take(send.value, at_s=at_s)
            name = "parts" if kind == "parts" else send.to
            self._seconds[name] += time.thread_time() - began

    def _take_snapshot(self) -> None:
        stage = self._stages["joiner", 0]
        began = time.thread_time()
        size = len(stage.snapshot())
        took_ms = (time.thread_time() - began) * 1e3
        self.snapshot = took_ms, size * self._n / self._case.n_records

    def times(self) -> list[float]:
        """Return the CPU time of each kind of stage, µs a record."""
        names = ("parts", "joiner", "planner", "range")
        return [self._seconds[name] * 1e6 / self._n_counted for name in names]

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


def _sent(case: Windows, n: int) -> list[tuple[float, list[bytes]]]:
    """Return what a bridge sends to each joiner in each window, and when; the last ends them."""
    rng = np.random.default_rng(1)
    rule = stream_of(case.stream).rule
    parts_of = _exits if case.stream == "toll" else _Fleet(case.n_records, rng).parts
    sent = []
    first = rule.window_of(_START)
    for tick in range(case.n_windows + 1):
        start, end = rule.span(first + tick)
        of: defaultdict[int, list[Delivery]] = defaultdict(list)
        for part in parts_of(case.n_records, start, rng):
            of[int(part.topic[-8:]) % n].append(part)
        arrivals = [Arrivals(end, PackedDeliveries.of(of[i])) for i in range(n)]
        sent.append((end, [encode_raw(Raw("bridge", tick, False, [each])) for each in arrivals]))
    return sent


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
