"""A small fleet in three sources, its settings, and the records that it sends."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.declaration import Stream, declare
from anonymizer.settings import StreamSettings

TYPES = ("car", "van", "truck", "bus")
REGIONS = ("north", "south", "east", "west")
FAULTS = ("none", "brakes", "tyres", "engine")
LENGTH_S = 60.0

FLEET: dict[str, Any] = {
    "name": "fleet",
    "window_s": LENGTH_S,
    "lateness_s": 5,
    "idle_s": 30,
    "method": "hilbert",
    "promise": {"k": 4, "d": 2},
    "sources": [
        {"name": "registration", "tells": ["type", "region"]},
        {"name": "profile", "tells": ["age"]},
        {"name": "telemetry", "tells": ["speed", "fault"]},
    ],
    "attributes": [
        {"name": "type", "values": list(TYPES), "lasting": True},
        {"name": "region", "values": list(REGIONS), "lasting": True},
        {"name": "age", "lo": 18, "hi": 90},
        {"name": "speed", "lo": 0, "hi": 50, "step": 0.5},
        {"name": "fault", "values": list(FAULTS), "role": "sensitive"},
    ],
}
SOURCES = tuple(source["name"] for source in FLEET["sources"])


def fleet(**changes: Any) -> StreamSettings:  # noqa: ANN401  settings of any kind
    return StreamSettings.model_validate(FLEET | changes)


def stream(**changes: Any) -> Stream:  # noqa: ANN401  settings of any kind
    return declare(fleet(**changes))


@dataclass(frozen=True)
class Sent:
    """A part as sent by a vehicle."""

    vehicle: str
    source: str
    ts: float
    values: dict[str, Any]

    @property
    def topic(self) -> str:
        return f"records/{self.source}/{self.vehicle}"

    @property
    def payload(self) -> bytes:
        return json.dumps({"ts": self.ts, **self.values}).encode()

    def delivery(self, receipt: int = 0) -> Delivery:
        return Delivery(self.topic, self.payload, receipt)


def traffic(*, n_vehicles: int, n_windows: int, seed: int, start: float = 0.0) -> Iterator[Sent]:
    """Yield one part of every vehicle, source and window, in order of time."""
    rng = np.random.default_rng(seed)
    kind, home, age = (rng.integers(0, n, n_vehicles) for n in (4, 4, 60))
    for w in range(n_windows):
        parts: list[Sent] = []
        for v in range(n_vehicles):
            for source, values in (
                ("registration", {"type": TYPES[kind[v]], "region": REGIONS[home[v]]}),
                ("profile", {"age": 20 + int(age[v])}),
                (
                    "telemetry",
                    {
                        "speed": round(float(rng.uniform(0, 50)), 1),
                        "fault": FAULTS[int(rng.integers(0, 4))],
                    },
                ),
            ):
                ts = round(start + (w + float(rng.uniform(0, 0.999))) * LENGTH_S, 3)
                parts.append(Sent(f"veh-{v:04}", source, ts, values))
        yield from sorted(parts, key=lambda part: part.ts)


def deliveries(parts: Sequence[Sent], *, first_receipt: int = 1) -> list[Delivery]:
    return [part.delivery(first_receipt + i) for i, part in enumerate(parts)]
