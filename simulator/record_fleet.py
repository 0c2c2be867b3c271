"""Simulated parts of records: registration, driver's profile and telemetry of vehicles.

The attributes are correlated like real ones: trucks are slow and have experienced drivers, and
old vehicles have faults. Everything is a pure function of the seed and the number of the part.
"""

import msgspec
import numpy as np

from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.pipeline.ports import Outgoing
from simulator.encoding import topic_level
from simulator.reports import Rounds, Turns, uniform_draws

SOURCES = ("registration", "profile", "telemetry")
TYPES = ("motorcycle", "car", "van", "truck", "bus")
REGIONS = ("north", "east", "south", "west")
FAULTS = ("none", "tyres", "brakes", "battery", "engine")
ALERTS = ("none", "speeding", "lane", "distraction", "drowsiness")
TURNS = 10
"""Of this many parts of a vehicle, one is its registration and one its driver's profile."""

SETTINGS = """\
# Settings for the parts that `simulator records` sends: anonymizer serve --config FILE
inputs = []

[[streams]]
name = "fleet"
window_s = 60.0
lateness_s = 5.0
model = "kld"
promise = { k = 10, d = 2, l = 2 }

[[streams.sources]]
name = "registration"
tells = ["type", "region", "built"]

[[streams.sources]]
name = "profile"
tells = ["age", "licence_years"]

[[streams.sources]]
name = "telemetry"
tells = ["speed_kmh", "fuel_percent", "fault"]

[[streams.attributes]]
name = "type"
values = ["motorcycle", "car", "van", "truck", "bus"]
lasting = true

[[streams.attributes]]
name = "region"
values = ["north", "east", "south", "west"]
lasting = true

[[streams.attributes]]
name = "built"
lo = 1990
hi = 2026
lasting = true

[[streams.attributes]]
name = "age"
lo = 18
hi = 80
lasting = true

[[streams.attributes]]
name = "licence_years"
lo = 0
hi = 62
lasting = true

[[streams.attributes]]
name = "speed_kmh"
lo = 0
hi = 160

[[streams.attributes]]
name = "fuel_percent"
lo = 0
hi = 100

[[streams.attributes]]
name = "fault"
role = "sensitive"
values = ["none", "tyres", "brakes", "battery", "engine"]
"""
"""Settings of a gateway that accepts these records."""

_DRAWS_PER_PART = 4
_STREAM = 0x7265636F726473


class Vehicles:
    """What is known of each vehicle and its driver, which does not change.

    Parameters
    ----------
    rng
        Draws all of it.
    n
        Number of vehicles.

    Attributes
    ----------
    type, region
        Indices of these, shape (n,).
    built, age, licence_years
        Year of the vehicle, age of its driver, and years of experience, shape (n,).
    """

    def __init__(self, rng: np.random.Generator, n: int) -> None:
        self.type: IntArray = rng.choice(len(TYPES), n, p=(0.08, 0.50, 0.14, 0.25, 0.03))
        self.region: IntArray = rng.integers(0, len(REGIONS), n)
        built = np.clip(2026 - rng.gamma(2.0, 4.5, n), 1990, 2026)
        self.built: IntArray = built.astype(np.int64)
        experience = rng.beta(2.0, 3.0, n) * 50 + 5 * (self.type >= TYPES.index("truck"))
        age = np.clip(20 + experience + rng.exponential(3.0, n), 18, 80)
        self.age: IntArray = age.astype(np.int64)
        self.licence_years: IntArray = np.minimum(experience.astype(np.int64), self.age - 18)

    def registration(self, vehicle: int) -> dict[str, object]:
        """Return the fields of the registration of a vehicle."""
        return {
            "type": TYPES[self.type[vehicle]],
            "region": REGIONS[self.region[vehicle]],
            "built": int(self.built[vehicle]),
        }

    def profile(self, vehicle: int) -> dict[str, object]:
        """Return the fields of the profile of the driver of a vehicle."""
        return {
            "age": int(self.age[vehicle]),
            "licence_years": int(self.licence_years[vehicle]),
        }


class RecordFleet:
    """A source in which every vehicle sends a part `rate_hz` times a second, at its own phase.

    Parameters
    ----------
    n_vehicles
        Number of vehicles.
    rate_hz
        Parts of each vehicle per second.
    duration_s
        When to end, in seconds; None: never.
    seed
        Seed of all values.
    """

    def __init__(
        self, n_vehicles: int, *, rate_hz: float, duration_s: float | None = None, seed: int = 0
    ) -> None:
        self.device_id = tuple(f"veh-{i:06d}" for i in range(n_vehicles))
        self._seed = seed
        self._topics = [
            [f"records/{source}/{topic_level(vehicle)}" for vehicle in self.device_id]
            for source in SOURCES
        ]
        rng = np.random.default_rng([seed, _STREAM])
        order = rng.permutation(n_vehicles)
        self._rounds = Rounds(order, rate_hz=rate_hz, duration_s=duration_s)
        self.rate_per_s = self._rounds.rate_per_s
        self.n_total = self._rounds.n_total
        self._vehicles = Vehicles(rng, n_vehicles)

    @property
    def next_due_s(self) -> float:
        """When the next part is due, in seconds of playing; infinite at the end."""
        return self._rounds.next_due_s

    def take(self, until_s: float, *, limit: int) -> Turns:
        """Return the parts due up to a moment, at most the oldest `limit`."""
        return self._rounds.take(until_s, limit=limit)

    def encode(self, parts: Turns, ts: FloatArray) -> list[Outgoing]:
        """Return the parts as messages, each with the topic of its source and vehicle."""
        source = self._source_of(parts)
        payloads = [
            self._payload(*row)
            for row in zip(
                source.tolist(),
                parts.device.tolist(),
                uniform_draws((self._seed, _STREAM), parts, n_each=_DRAWS_PER_PART).tolist(),
                ts.tolist(),
                strict=True,
            )
        ]
        topics = [
            self._topics[s][v] for s, v in zip(source.tolist(), parts.device.tolist(), strict=True)
        ]
        return [Outgoing(t, msgspec.json.encode(p)) for t, p in zip(topics, payloads, strict=True)]

    def _source_of(self, parts: Turns) -> IntArray:
        """Return the source of each part: mostly telemetry, sometimes one of the others."""
        # The index of the vehicle is added, so that the fleet does not change sources in step.
        turn = (parts.number // len(self.device_id) + parts.device) % TURNS
        sources: IntArray = np.minimum(turn, SOURCES.index("telemetry"))
        return sources

    def _payload(
        self, source: int, vehicle: int, draw: list[float], ts: float
    ) -> dict[str, object]:
        fleet = self._vehicles
        kind, age_of_vehicle = int(fleet.type[vehicle]), 2026 - int(fleet.built[vehicle])
        part: dict[str, object] = {"ts": round(ts, 3)}
        if SOURCES[source] == "registration":
            return part | fleet.registration(vehicle)
        if SOURCES[source] == "profile":
            return part | fleet.profile(vehicle)
        top_speed_kmh = (150, 140, 120, 90, 100)[kind]
        has_fault = draw[2] < 0.02 + 0.01 * age_of_vehicle
        return part | {
            "speed_kmh": round(top_speed_kmh * draw[0] ** 0.7),
            "fuel_percent": round(100 * draw[1]),
            "fault": FAULTS[1 + int(4 * draw[3])] if has_fault else FAULTS[0],
        }
