"""One scenario for every method: vehicles with their positions, records and tolls, and sensors.

A vehicle reports where it is, states now and then what it is and how fast it really drives, and
pays toll at the borders of sections and where its trip ends.
`anonymizer init --all` writes the settings that receive this.
Everything is a pure function of network, seed and time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import msgspec
import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.pipeline.ports import Outgoing
from simulator.encoding import positions_to, topic_level
from simulator.fleet import FleetSource
from simulator.record_fleet import ALERTS, FAULTS, TYPES, Vehicles
from simulator.reports import Reports, Turns
from simulator.sensors import SensorNetwork
from simulator.traffic import REFRESH_S, Traffic

PART_EVERY_S = 5.0
"""A vehicle says something so often: in turn what it is and who drives it, and how it drives."""
SENSOR_EVERY_S = 5.0
_PER_KM = (1.0, 2.0, 3.0, 6.0, 5.0)
"""Toll by type of vehicle."""
_LEAST_TOLL = 0.5
_KM_PER_TANK = 500.0
_WARM_C, _OVERHEATED_C, _COLD_C = 88.0, 22.0, -25.0
_MOST_KMH = 160.0
_MOST_BRAKINGS = 60.0
_ROWS, _COLUMNS = 4, 8
"""Sections of the toll roads, from south to north and from west to east."""
SECTIONS = tuple(
    f"{'SN'[2 * row // _ROWS]}{1 + column // 2}-0{1 + row % 2 * 2 + column % 2}0"
    for row in range(_ROWS)
    for column in range(_COLUMNS)
)
_NOWHERE = -1
_DAY_S = 86_400.0
_STREAM = 0x616C6C


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Said:
    """Parts of records and exits, in the order in which they are due; see `simulator.reports.Due`.

    Attributes
    ----------
    device, due_s
        Index of the vehicle, and when to publish in seconds of playing, shape (m,).
    topic, time, body
        The topic of each, the field that states its time, and all other fields.
    begins_s
        Second of the day at which playing begins; None: as the clock has it.
    """

    device: IntArray
    due_s: FloatArray
    topic: Sequence[str]
    time: Sequence[str]
    body: Sequence[dict[str, Any]]
    begins_s: float | None = None
    ts: None = None

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.device)

    def only(self, rows: IntArray) -> Self:
        """Return some of the messages."""
        topic, time, body = (
            [each[row] for row in rows.tolist()] for each in (self.topic, self.time, self.body)
        )
        return type(self)(self.device[rows], self.due_s[rows], topic, time, body, self.begins_s)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Happened:
    """Messages of all kinds, in the order in which they are due; see `simulator.reports.Due`."""

    reports: Reports
    said: Said
    sensed: Turns
    """`reports`, `said`, `sensed`: positions, records with exits, and readings of sensors."""
    kind: IntArray
    row: IntArray
    """`kind`, `row`: to which of the three each message belongs, and its row there, shape (m,)."""
    device: IntArray
    due_s: FloatArray
    """`device`, `due_s`: index of the vehicle, or of the sensor after all vehicles; and when to
    publish."""
    ts: None = None

    @classmethod
    def of(cls, reports: Reports, said: Said, sensed: Turns, *, n_vehicles: int) -> Self:
        """Merge the three by the moment at which they are due."""
        parts = (reports, said, sensed)
        due_s = np.concatenate([part.due_s for part in parts])
        order = np.argsort(due_s, kind="stable")
        device = np.concatenate([reports.device, said.device, n_vehicles + sensed.device])
        kind = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        row = np.concatenate([np.arange(len(part)) for part in parts])
        return cls(*parts, kind[order], row[order], device[order], due_s[order])

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.device)

    def only(self, rows: IntArray) -> Self:
        """Return some of the messages."""
        return replace(
            self,
            kind=self.kind[rows],
            row=self.row[rows],
            device=self.device[rows],
            due_s=self.due_s[rows],
        )


class Scenario:
    """A source of everything that happens to a fleet, and of sensors at the roads.

    Parameters
    ----------
    network
        Where the vehicles drive and the sensors stand.
    n_vehicles, rate_hz
        Number of vehicles, and positions of each per second.
    n_sensors
        Number of sensors.
    duration_s
        When to end, in seconds; None: never.
    seed, noise_m, parked_share, begins_s
        As for `Traffic` and `FleetSource`.

    Notes
    -----
    Whether a trip has ended is seen in the destination of the vehicle, once a report. So one that
    chooses the same destination again, which is rare, is not seen to leave.
    """

    def __init__(
        self,
        network: RoadNetwork,
        n_vehicles: int,
        *,
        rate_hz: float,
        n_sensors: int,
        duration_s: float | None = None,
        seed: int = 0,
        noise_m: float = 3.0,
        parked_share: float = 0.1,
        begins_s: float | None = None,
    ) -> None:
        self._traffic = Traffic(
            network,
            n_vehicles,
            seed=seed,
            parked_share=parked_share,
            begins_s=begins_s,
        )
        self._fleet = FleetSource(
            self._traffic,
            rate_hz=rate_hz,
            duration_s=duration_s,
            noise_m=noise_m,
            seed=seed,
            states_speed=True,
        )
        self._sensors = SensorNetwork(
            network, n_sensors, rate_hz=1 / SENSOR_EVERY_S, duration_s=duration_s, seed=seed
        )
        self.device_id = (*self._fleet.device_id, *self._sensors.device_id)
        self.rate_per_s = n_vehicles * (rate_hz + 1.5 / PART_EVERY_S) + self._sensors.rate_per_s
        self.n_total: int | None = None
        self._n, self._interval_s = n_vehicles, 1 / rate_hz
        rng = np.random.default_rng([seed, _STREAM])
        self._vehicles = Vehicles(rng, n_vehicles)
        share = 0.02 + 0.01 * (2026 - self._vehicles.built)
        kind = rng.integers(1, len(FAULTS), n_vehicles)
        self._fault = np.where(rng.random(n_vehicles) < share, kind, 0)
        self._warmth_c = _WARM_C + rng.normal(0.0, 3.0, n_vehicles)
        self._warmth_c += _OVERHEATED_C * (self._fault == FAULTS.index("engine"))
        self._fuel_km = rng.uniform(0.0, _KM_PER_TANK, n_vehicles)
        mean = 2.0 + 24.0 / (1.0 + self._vehicles.licence_years)
        self._brakings = np.minimum(rng.gamma(2.0, mean / 2.0), _MOST_BRAKINGS)
        kind = rng.integers(1, len(ALERTS), n_vehicles)
        alerted = rng.random(n_vehicles) < 0.1 + 0.01 * self._brakings
        self._alert = np.where(alerted, kind, 0)
        self._trip_km = np.zeros(n_vehicles)
        self._section = np.full(n_vehicles, _NOWHERE)
        self._begins_s = begins_s
        self._slot = self._traffic.fleet["slot"].copy()
        self._n_reports = np.arange(n_vehicles)  # so that they do not send records in step
        self._every = max(1, round(PART_EVERY_S * rate_hz))
        self._area = [(each.min(), np.ptp(each) or 1.0) for each in (network.lat, network.lon)]
        self._positions = positions_to("positions/{device}", self._fleet.device_id)
        self._level = [topic_level(each) for each in self._fleet.device_id]

    @property
    def next_due_s(self) -> float:
        """When the next message is due, in seconds of playing; infinite at the end."""
        return min(self._fleet.next_due_s, self._sensors.next_due_s)

    def take(self, until_s: float, *, limit: int) -> Happened:
        """Return the messages due up to a moment: at most the oldest `limit` positions, and so on.

        No more than one position of each vehicle, and none beyond the moment at which destinations
        change: what is known of the vehicles is then what was so at their reports.
        """
        changes_s = (self._fleet.next_due_s // REFRESH_S + 1) * REFRESH_S
        before_s = min(until_s, float(np.nextafter(changes_s, 0.0)))
        reports = self._fleet.take(before_s, limit=min(limit, self._n))
        said = self._said(reports)
        sensed = self._sensors.take(min(until_s, self._fleet.next_due_s), limit=limit)
        reports = replace(reports, speed_mps=None)
        return Happened.of(reports, said, sensed, n_vehicles=self._n)

    def encode(self, happened: Happened, ts: FloatArray) -> list[Outgoing]:
        """Return the messages, each with the topic of its kind and device."""
        kinds: tuple[Callable[[IntArray, FloatArray], list[Outgoing]], ...] = (
            lambda rows, at: self._positions(happened.reports.only(rows), at),
            lambda rows, at: _encoded(happened.said.only(rows), at),
            lambda rows, at: self._sensors.encode(happened.sensed.only(rows), at),
        )
        messages: dict[int, Outgoing] = {}
        for kind, encode in enumerate(kinds):
            at = np.flatnonzero(happened.kind == kind)
            if len(at):
                encoded = encode(happened.row[at], ts[at])
                messages.update(zip(at.tolist(), encoded, strict=True))
        return [messages[i] for i in range(len(happened))]

    def _said(self, reports: Reports) -> Said:
        """Return what the vehicles say beside their positions, in the same order."""
        assert reports.speed_mps is not None  # noqa: S101  the fleet states it
        vehicle = reports.device
        mps = np.nan_to_num(reports.speed_mps)
        km = mps * self._interval_s / 1000
        self._trip_km[vehicle] += km
        self._fuel_km[vehicle] += km
        section = self._sections_at(reports.lat, reports.lon)
        left = self._left(vehicle, section)
        self._n_reports[vehicle] += 1
        turn, rest = np.divmod(self._n_reports[vehicle], self._every)
        rows: list[int] = []
        told: list[tuple[str, str, dict[str, Any]]] = []
        for row in np.flatnonzero(left | (rest == 0)).tolist():
            of = int(vehicle[row])
            if left[row]:
                told.append(self._exit(of, SECTIONS[self._section[of]]))
                rows.append(row)
            if rest[row] == 0:
                parts = self._parts(of, float(mps[row]), registers=turn[row] % 2 == 0)
                told += parts
                rows += [row] * len(parts)
        self._section[vehicle] = section
        topic, time, body = ([each[i] for each in told] for i in range(3))
        return Said(
            vehicle[rows],
            reports.due_s[rows],
            topic,  # type: ignore[arg-type]
            time,  # type: ignore[arg-type]
            body,  # type: ignore[arg-type]
            self._begins_s,
        )

    def _sections_at(self, lat: FloatArray, lon: FloatArray) -> IntArray:
        """Return the index of the section at each place, shape (n,)."""
        row, column = (
            np.clip(n * (x - low) / span, 0, n - 1).astype(np.int64)
            for n, x, (low, span) in zip((_ROWS, _COLUMNS), (lat, lon), self._area, strict=True)
        )
        section: IntArray = _COLUMNS * row + column
        return section

    def _left(self, vehicle: IntArray, section: IntArray) -> BoolArray:
        """Return who has left its section, or ended its trip, since its last report."""
        slot, before = self._traffic.fleet["slot"][vehicle], self._section[vehicle]
        left: BoolArray = (before != _NOWHERE) & (
            (slot != self._slot[vehicle]) | (section != before)
        )
        self._slot[vehicle] = slot
        return left

    def _exit(self, vehicle: int, section: str) -> tuple[str, str, dict[str, Any]]:
        """Return the exit of a vehicle that leaves a section, and begin its next trip."""
        kind = int(self._vehicles.type[vehicle])
        toll = max(_LEAST_TOLL, round(float(self._trip_km[vehicle]) * _PER_KM[kind], 2))
        self._trip_km[vehicle] = 0.0
        body = {"section_id": section, "toll_money": toll, "vehicle_type": TYPES[kind]}
        return f"toll/exit/{self._level[vehicle]}", "exit_time", body

    def _parts(
        self, vehicle: int, mps: float, *, registers: bool
    ) -> list[tuple[str, str, dict[str, Any]]]:
        """Return what the vehicle is and who drives it, or how it drives."""
        level = self._level[vehicle]
        if registers:
            return [
                (f"records/registration/{level}", "ts", self._vehicles.registration(vehicle)),
                (f"records/profile/{level}", "ts", self._vehicles.profile(vehicle)),
            ]
        fuel = 100 * (1 - float(self._fuel_km[vehicle]) / _KM_PER_TANK % 1)
        cold = _COLD_C if mps == 0 else 0.0
        telemetry = {
            "speed_kmh": round(min(3.6 * mps, _MOST_KMH)),
            "fuel_percent": round(fuel),
            "engine_c": round(float(self._warmth_c[vehicle]) + cold),
            "fault": FAULTS[self._fault[vehicle]],
            "brakings_per_hour": round(float(self._brakings[vehicle])),
            "alert": ALERTS[self._alert[vehicle]],
        }
        return [(f"records/telemetry/{level}", "ts", telemetry)]


def _encoded(said: Said, ts: FloatArray) -> list[Outgoing]:
    return [
        Outgoing(topic, msgspec.json.encode({time: round(at, 3), **_local(time, at, due), **body}))
        for topic, time, body, at, due in zip(
            said.topic, said.time, said.body, ts.tolist(), _hours(said, ts).tolist(), strict=True
        )
    ]


def _hours(said: Said, ts: FloatArray) -> FloatArray:
    """Return the seconds of the day where the vehicles drive, shape (n,)."""
    return (ts if said.begins_s is None else said.begins_s + said.due_s) % _DAY_S


def _local(time: str, at: float, second: float) -> dict[str, str]:
    """Return when an exit was by the clock of the scenario, as a local time without an offset."""
    if time != "exit_time":
        return {}
    midnight = datetime.fromtimestamp(at // _DAY_S * _DAY_S, UTC).replace(tzinfo=None)
    return {"left_at": (midnight + timedelta(seconds=second)).isoformat(timespec="seconds")}
