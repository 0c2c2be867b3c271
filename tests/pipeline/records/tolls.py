"""Toll exits of trucks in the form of the seed, and the stream that publishes them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from anonymizer.pipeline.ports import Delivery

SECTIONS = ("G5615530120", "G7611530010", "S0010530010", "S0010530020", "S0014530010")
SHARES = (0.4, 0.05, 0.1, 0.2, 0.25)
DAY_S = 86_400.0
MIDNIGHT_S = datetime(2023, 1, 2, 16, tzinfo=UTC).timestamp()
"""The third of January begins, at UTC+8."""

TOLL: dict[str, Any] = {
    "name": "toll",
    "model": "kaca",
    "trucks_only": True,
    "method": "auto",
    "per": "record",
    "window_s": DAY_S,
    "utc_offset_h": 8,
    "lateness_s": 0,
    "idle_s": 30,
    "promise": {"k": 5},
    "sources": [
        {
            "name": "exit",
            "topic": "toll/exit/{vehicle}",
            "time": "exit_time",
            "tells": ["section_region", "time_period", "avg_toll"],
        }
    ],
    "attributes": [
        {
            "name": "section_region",
            "path": "section_id",
            "values": list(SECTIONS),
            "label": "prefix",
        },
        {
            "name": "time_period",
            "values": "time_of_day",
            "label": "hours",
        },
        {
            "name": "avg_toll",
            "path": "toll_money",
            "role": "measure",
            "lo": 0,
            "hi": 1000,
            "step": 0.01,
        },
    ],
}


@dataclass(frozen=True)
class Exit:
    """A truck leaves a motorway; `at` is local time, `cents` None if nothing was paid."""

    truck: str
    section: str
    at: datetime
    cents: int | None

    @property
    def payload(self) -> bytes:
        return json.dumps(self.told).encode()

    @property
    def told(self) -> Mapping[str, Any]:
        return {
            "exit_transaction_id": f"{self.section}{self.at:%Y%m%d%H%M%S}",
            "vehicle_class": "11",
            "exit_time": self.at.strftime("%Y-%m-%d %H:%M:%S.%f"),
            "toll_money": None if self.cents is None else self.cents / 100,
            "real_money": None if self.cents is None else self.cents // 2 / 100,
            "section_id": self.section,
        }

    def delivery(self, receipt: int = 0) -> Delivery:
        return Delivery(f"toll/exit/{self.truck}", self.payload, receipt)


def exits(
    *, n: int, n_trucks: int, seed: int, first_day: str = "2023-01-03", n_days: int = 1
) -> Iterator[Exit]:
    """Return the exits of some days in order of time; some trucks leave several times."""
    rng = np.random.default_rng(seed)
    for day in range(n_days):
        midnight = datetime.fromisoformat(first_day) + timedelta(days=day)
        second = np.sort(np.minimum(rng.normal(14, 5, n) % 24 * 3600, DAY_S - 1))
        for s in second.tolist():
            yield Exit(
                f"truck-{rng.integers(n_trucks):05}",
                str(rng.choice(SECTIONS, p=SHARES)),
                midnight + timedelta(seconds=round(s, 3)),
                None if rng.random() < 0.01 else int(rng.integers(500, 20_000)),
            )
