"""Toll exits of trucks from motorways: simulated from given marginals, or replayed from a CSV file.

Simulated exits follow the day and the week of goods traffic: little at night, most before and
after noon, less on Saturdays and least on Sundays. A truck mostly exits at its home section.
Everything is a pure function of the seed.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.errors import InputError
from anonymizer.files.atomic_write import whole_file
from anonymizer.pipeline.ports import Outgoing
from simulator.encoding import topic_level

COLUMNS = (
    *("truck_id", "exit_transaction_id", "vehicle_class", "axle_count"),
    *("exit_time", "toll_money", "real_money", "section_id"),
)
_NUMBERS = {"axle_count", "toll_money", "real_money"}
_TRUCKS = {"11", "12", "13", "14", "15", "16"}
"""Vehicle classes of trucks."""
_TIMES = "%Y-%m-%d %H:%M:%S.%f"
_HOURLY = (5, 4, 3, 3, 4, 6, 10, 16, 22, 26, 28, 26, 22, 24, 27, 28, 26, 23, 19, 16, 13, 11, 9, 7)
"""Relative goods traffic in each hour of a working day."""
_DAILY = (1.0, 1.04, 1.05, 1.05, 1.02, 0.82, 0.64)
"""Goods traffic from Monday to Sunday, relative to a Monday."""
_AT_HOME = 0.6
"""Share of a truck's exits at its home section."""
_PER_KM_YUAN = {2: 0.45, 3: 0.90, 4: 1.35, 5: 1.65, 6: 2.00}
"""Toll by number of axles."""
_MAX_AXLES = 6
_STREAM = 0x746F6C6C


@dataclass(frozen=True, slots=True)
class Marginals:
    """Relative frequencies of sections, truck classes and axles."""

    section: Mapping[str, float]
    """Exits at each section, by its id."""
    truck_class: Mapping[str, float]
    """Vehicles of each class."""
    axles: Mapping[str, Mapping[int, float]]
    """Vehicles with each number of axles, by class."""


MADE = Marginals(
    section={
        "G9001000010": 340.0,
        "G9001000020": 230.0,
        "G9003000010": 170.0,
        "S9010000010": 110.0,
        "S9010000020": 70.0,
        "S9014000010": 45.0,
        "S9014000020": 25.0,
        "S9021000010": 10.0,
    },
    truck_class={"11": 80, "12": 4, "13": 10, "14": 3, "16": 3},
    axles={"11": {2: 1}, "12": {2: 1}, "13": {3: 2, 5: 1, 6: 9}, "14": {4: 1}, "16": {6: 1}},
)
"""The default marginals, which are fictitious."""


def read_marginals(path: Path) -> Marginals:
    """Read counts by section, class and axles: `section_id`, `vehicle_type`, `axle_by_vehicle`.

    Raises
    ------
    InputError
        If the file cannot be read, or has no sections or no trucks.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {type(error).__name__}") from None
    try:
        axles = found.get("axle_by_vehicle", {})
        marginals = Marginals(
            section=_counts(found["section_id"]),
            truck_class={c: n for c, n in _counts(found["vehicle_type"]).items() if c in _TRUCKS},
            axles={c: _axles(_counts(axles[c])) for c in axles if c in _TRUCKS},
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"{path}: needs counts in section_id and vehicle_type") from None
    if not marginals.section or not marginals.truck_class:
        raise InputError(f"{path}: has no sections, or no trucks (classes 11 to 16)")
    return marginals


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exits:
    """Exits in the order in which they are due; see `simulator.reports.Due`."""

    device: IntArray
    due_s: FloatArray
    """`device`, `due_s`: index of the truck, and when to publish in seconds of playing, shape
    (m,)."""
    rows: Sequence[Mapping[str, Any]]
    """The fields of each exit."""
    ts: None = None
    """None: exits state their own time."""

    def __len__(self) -> int:
        """Return the number of exits."""
        return len(self.device)

    def only(self, rows: IntArray) -> Self:
        """Return some of the exits."""
        fields = [self.rows[row] for row in rows.tolist()]
        return type(self)(self.device[rows], self.due_s[rows], fields)


class TollSource:
    """A source of exits, of which `rate_per_s` are due in a second of playing.

    Parameters
    ----------
    exits
        Exits in order of time, each with a `truck_id`, which becomes part of its topic.
    n_total
        Number of exits.
    rate_per_s
        Exits per second of playing.
    """

    def __init__(
        self, exits: Iterator[Mapping[str, Any]], *, n_total: int, rate_per_s: float
    ) -> None:
        self.device_id: tuple[str, ...] = ()
        self.rate_per_s = rate_per_s
        self.n_total: int | None = n_total
        self._n_total = n_total
        self._exits = exits
        self._first = 0
        self._number_of: dict[str, int] = {}

    @property
    def n_trucks(self) -> int:
        """Number of distinct trucks so far."""
        return len(self._number_of)

    @property
    def next_due_s(self) -> float:
        """When the next exit is due, in seconds of playing; infinite at the end."""
        return math.inf if self._first >= self._n_total else self._first / self.rate_per_s

    def take(self, until_s: float, *, limit: int) -> Exits:
        """Return the exits due up to a moment, at most the oldest `limit`."""
        stop = min(math.floor(until_s * self.rate_per_s) + 1, self._first + limit, self._n_total)
        rows = list(islice(self._exits, max(stop - self._first, 0)))
        number = np.arange(self._first, self._first + len(rows))
        self._first += len(rows)
        trucks = (str(row["truck_id"]) for row in rows)
        device = [self._number_of.setdefault(t, len(self._number_of)) for t in trucks]
        return Exits(np.array(device, np.int64), number / self.rate_per_s, rows)


def encoder(topic: str) -> Callable[[Exits, FloatArray], list[Outgoing]]:
    """Return an encoder of exits as messages; `{vehicle}` in the topic is the truck."""

    def encode(exits: Exits, _ts: FloatArray) -> list[Outgoing]:
        return [
            Outgoing(
                topic.replace("{vehicle}", topic_level(str(row["truck_id"]))),
                msgspec.json.encode({k: v for k, v in row.items() if k != "truck_id"}),
            )
            for row in exits.rows
        ]

    return encode


def made_exits(
    marginals: Marginals, *, n_trucks: int, per_day: int, first_day: date, n_days: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield simulated exits in order of time.

    Parameters
    ----------
    per_day
        Exits on a Monday.
    """
    rng = np.random.default_rng([seed, _STREAM])
    sections, share = _shares(marginals.section)
    home = rng.choice(len(sections), n_trucks, p=share)
    classes, class_share = _shares(marginals.truck_class)
    of_class = [classes[i] for i in rng.choice(len(classes), n_trucks, p=class_share).tolist()]
    axles = _drawn_axles(marginals, of_class, rng)
    busy = rng.gamma(1.5, size=n_trucks)
    number = 0
    for day in range(n_days):
        midnight = datetime.combine(first_day, datetime.min.time()) + timedelta(days=day)
        n = round(per_day * _DAILY[midnight.weekday()])
        truck = rng.choice(n_trucks, n, p=busy / busy.sum())
        any_section = rng.choice(len(sections), n, p=share)
        section = np.where(rng.random(n) < _AT_HOME, home[truck], any_section)
        hour = rng.choice(24, n, p=np.array(_HOURLY) / sum(_HOURLY))
        second = np.sort((hour + rng.random(n)) * 3600)
        km = np.clip(rng.lognormal(3.6, 0.7, n), 3, 400)
        for s, t, where, length in zip(
            second.tolist(), truck.tolist(), section.tolist(), km.tolist(), strict=True
        ):
            number += 1
            toll = round(length * _PER_KM_YUAN[axles[t]], 2)
            left = midnight + timedelta(seconds=s)
            yield {
                "truck_id": f"truck-{t:06d}",
                "exit_transaction_id": f"{sections[where]}{left:%Y%m%d%H%M%S}{number:06d}",
                "vehicle_class": of_class[t],
                "axle_count": axles[t],
                "exit_time": left.strftime(_TIMES),
                "toll_money": toll,
                "real_money": round(toll * 0.95, 2),
                "section_id": sections[where],
            }


def n_made(per_day: int, first_day: date, n_days: int) -> int:
    """Return the number of exits that `made_exits` yields."""
    days = (first_day + timedelta(days=day) for day in range(n_days))
    return sum(round(per_day * _DAILY[day.weekday()]) for day in days)


def read_exits(path: Path) -> list[dict[str, Any]]:
    """Read exits from a CSV file with a header; return them in order of time.

    Raises
    ------
    InputError
        If the file cannot be read, lacks `truck_id` or `exit_time`, or has an invalid number.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = {"truck_id", "exit_time"} - set(reader.fieldnames or ())
            if missing:
                raise InputError(f"{path}: the column {min(missing)} is required")
            rows = [_exit(row, path, reader.line_num) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {type(error).__name__}") from None
    return sorted(rows, key=lambda row: str(row["exit_time"]))


def write_exits(path: Path, exits: Iterator[Mapping[str, Any]]) -> int:
    """Write exits to a CSV file that `read_exits` can read; return their number.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    n = 0
    with whole_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.DictWriter(text, COLUMNS)
        writer.writeheader()
        for row in exits:
            writer.writerow(row)
            n += 1
        text.detach()  # flushes, and leaves the file open
    return n


def settings_for(sections: Sequence[str]) -> str:
    """Return settings of a gateway that accepts these exits, in days of UTC+8."""
    return _SETTINGS.replace("SECTIONS", json.dumps(sorted(sections)))


_SETTINGS = """\
# Settings for the exits that `simulator tolls` sends: anonymizer serve --config FILE
inputs = []

[[streams]]
name = "toll"
model = "kaca"
per = "record"
trucks_only = true
window_s = 86_400.0
utc_offset_h = 8.0
lateness_s = 1800.0
idle_s = 60.0
promise = { k = 5 }

[[streams.sources]]
name = "exit"
topic = "toll/exit/{vehicle}"
time = "exit_time"
where = { vehicle_class = ["11", "12", "13", "14", "15", "16"] }
tells = ["section_region", "time_period", "avg_toll"]

[[streams.attributes]]
name = "section_region"
path = "section_id"
values = SECTIONS
label = "prefix"

[[streams.attributes]]
name = "time_period"
values = "time_of_day"
label = "hours"

[[streams.attributes]]
name = "avg_toll"
path = "toll_money"
role = "measure"
lo = 0
hi = 5000
step = 0.01
"""


def _exit(row: Mapping[str, str], path: Path, line: int) -> dict[str, Any]:
    if not row["truck_id"] or None in row:
        raise InputError(f"{path}: line {line}: has no truck_id, or too many fields")
    fields: dict[str, Any] = {}
    for name, text in row.items():
        try:
            fields[name] = float(text) if name in _NUMBERS and text else text or None
        except ValueError:
            raise InputError(f"{path}: line {line}: {name} is not a number") from None
    return fields


def _counts(found: Mapping[str, Any]) -> dict[str, float]:
    counts = {name: float(n) for name, n in found.items()}
    if any(not 0 <= n < math.inf for n in counts.values()):
        raise ValueError("counts must be finite and not below 0")
    return {name: n for name, n in counts.items() if n}


def _axles(counts: Mapping[str, float]) -> dict[int, float]:
    """Return the counts of valid numbers of axles; 255 stands for an unknown number."""
    return {int(float(a)): n for a, n in counts.items() if 2 <= float(a) <= _MAX_AXLES}


def _shares(counts: Mapping[str, float]) -> tuple[list[str], FloatArray]:
    names = sorted(counts)
    weight = np.array([counts[name] for name in names])
    return names, weight / weight.sum()


def _drawn_axles(
    marginals: Marginals, of_class: Sequence[str], rng: np.random.Generator
) -> list[int]:
    """Return the number of axles of each truck, given its class."""
    axles = np.zeros(len(of_class), np.int64)
    for truck_class in sorted(set(of_class)):
        counts = marginals.axles.get(truck_class) or {2: 1.0}
        numbers = sorted(counts)
        weight = np.array([counts[n] for n in numbers], np.float64)
        mine = np.array([each == truck_class for each in of_class])
        axles[mine] = rng.choice(numbers, int(mine.sum()), p=weight / weight.sum())
    return axles.tolist()
