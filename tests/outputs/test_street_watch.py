"""Traffic by street of the running gateway: each hour once, as `anonymizer traffic` makes it."""

import json
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest
from fastapi import FastAPI
from pydantic import ValidationError

from anonymizer.algorithms.positions.street_hours import PassageSums
from anonymizer.errors import GuaranteeError
from anonymizer.files.feature_collection import as_json
from anonymizer.files.traces import trace_of
from anonymizer.outputs import streets
from anonymizer.outputs.output import OVERLOAD, PUBLISHED, UNVERIFIED, StatedWindow
from anonymizer.outputs.streets import StreetsOutput
from anonymizer.outputs.streets.street_hours import street_hours
from anonymizer.outputs.streets.street_watch import StatedPassages
from anonymizer.pipeline.ports import Delivery
from anonymizer.settings import Settings
from anonymizer.web.network_file import file_router
from tests.outputs.drives import HOUR, NETWORK, drives
from tests.pipeline.positions.support import Rig, flow_settings

COUNTS = {"streets_s": HOUR, "k": 5}
TICK_S = 20.0


class Driven:
    """A flow through which recorded devices pass, and what it tells of streets."""

    def __init__(self, frame: pl.DataFrame, **tables: Any) -> None:  # noqa: ANN401  of any kind
        self.settings = flow_settings(counts=COUNTS, **tables)
        self.rig = Rig(counts=COUNTS, roads=NETWORK, **tables)
        self.outputs = self.rig.outputs
        self.frame = frame.sort("ts")
        self.hours: list[dict[str, Any]] = []

    def until(self, end_s: float, *, start_s: float = 0.0) -> None:
        for now in np.arange(start_s + TICK_S, end_s, TICK_S).tolist():
            rows = self.frame.filter(pl.col("ts").is_between(now - TICK_S, now, closed="right"))
            said = [
                Delivery(f"positions/{d}", json.dumps({"ts": t, "lat": a, "lon": o}).encode(), 0)
                for d, t, a, o in rows.iter_rows()
            ]
            self.rig.publish(*said, now=now)
            while self.outputs.publish_slow():
                if (newest := self.outputs.files.pop("streets", None)) is not None:
                    self.hours.append(json.loads(newest.content))

    def put(self, stated: StatedWindow) -> None:
        """Let an hour wait to be published."""
        [publisher] = self.outputs._publisher_of.values()
        self.outputs._slow.put((publisher, stated, 0.0))


def rows_of(hour: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [tuple(map(str, each["properties"].values())) for each in hour["features"]]


def test_each_whole_hour_is_told_once_and_as_from_the_recording() -> None:
    driven = Driven(drives(hours=4), presence={"ttl_s": 120})
    driven.until(4 * HOUR + 400)
    recorded = street_hours(
        trace_of(driven.frame),
        NETWORK,
        driven.settings,
        every_s=HOUR,
        rng=np.random.default_rng(0),
    )
    columns = [as_json(column) for column in recorded.columns.values()]
    rows = [tuple(map(str, row)) for row in zip(*columns, strict=True)]
    starts = [row[0] for row in rows]
    assert len(driven.hours) == 3, "the hour of the start is left out"
    for hour in driven.hours:
        found = rows_of(hour)
        expected = [row for row, at in zip(rows, starts, strict=True) if at == found[0][0]]
        assert found == expected
    assert len(rows_of(driven.hours[0])) > 1, "else there is nothing to compare"
    assert [rows_of(each)[0][0][11:13] for each in driven.hours] == ["01", "02", "03"]


def test_who_takes_no_part_or_is_in_a_zone_is_on_no_street() -> None:
    everywhere = {"circle": {"lat": NETWORK.lat[27], "lon": NETWORK.lon[27], "radius_m": 5000}}
    driven = Driven(drives(hours=2), zones=[everywhere])
    driven.until(2 * HOUR + 400)
    [hour] = driven.hours
    [row] = hour["features"]
    assert row["properties"]["devices_low"] == 0
    assert row["properties"]["n_roads"] == NETWORK.n_roads


def test_who_asks_to_take_no_part_is_on_no_street_of_hours_that_are_over() -> None:
    asked = {f"d{i}" for i in range(50)}
    frame = drives(hours=2).filter(pl.col("ts") < 2 * HOUR)
    driven = Driven(frame, device_zones={"topic": "zones/{device}"})
    assert driven.rig.flow.device_zones is not None
    driven.until(2 * HOUR + 150)
    assert driven.hours == []
    said = [Delivery(f"zones/{d}", b'[{"everywhere": true}]', 0) for d in sorted(asked)]
    driven.rig.flow.device_zones.put(said, by="")
    driven.until(2 * HOUR + 400, start_s=2 * HOUR + 140)
    [hour] = driven.hours
    others = frame.filter(~pl.col("device_id").is_in(sorted(asked)))
    alone = Driven(others)
    alone.until(2 * HOUR + 400)
    assert rows_of(hour) == rows_of(alone.hours[0])


def test_no_hour_is_told_in_which_a_publisher_is_shut_out() -> None:
    """It may have been the one of a device that has no part in it, and nobody knows any more."""
    frame = drives(hours=2).with_columns(pl.format("a/{}", "device_id").alias("device_id"))
    for n_names, n_hours in ((21 * 2, 1), (21 * 2 + 1, 0)):
        driven = Driven(
            frame,
            inputs=[{"topic": "positions/{user}/{device}"}],
            device_zones={"topic": "zones/{user}/{device}"},
            presence={"max_devices": 200},
        )
        driven.until(2 * HOUR + 150)
        assert driven.rig.flow.device_zones is not None
        names = [f"zones/a/{i}" for i in range(n_names)]
        said = [Delivery(each, b'{"everywhere": true}', 0) for each in names]
        driven.rig.flow.device_zones.put(said, by="")
        driven.until(2 * HOUR + 400, start_s=2 * HOUR + 140)
        assert len(driven.hours) == n_hours


def test_an_hour_that_is_not_told_is_counted_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise GuaranteeError("about few devices")

    driven = Driven(drives(hours=3))
    monkeypatch.setattr(streets, "safe_hours", fails)
    driven.until(2 * HOUR + 400)
    assert driven.hours == []
    monkeypatch.undo()
    driven.put(StatedWindow(1, None))
    driven.until(3 * HOUR + 400, start_s=2 * HOUR + 400)
    assert len(driven.hours) == 1, "the next hour is looked at"
    [n_of] = driven.outputs.figures().values()
    assert (n_of[UNVERIFIED], n_of[OVERLOAD], n_of[PUBLISHED]) == (1, 1, 1)


def test_who_took_no_part_for_a_moment_is_on_no_street_of_the_time_before() -> None:
    frame = drives(hours=2).filter(pl.col("ts") < 1.5 * HOUR)
    driven = Driven(frame, device_zones={"topic": "zones/{device}"})
    zones = driven.rig.flow.device_zones
    assert zones is not None
    driven.until(1.5 * HOUR)
    devices = frame["device_id"].unique().to_list()
    for i, payload in enumerate((b'[{"everywhere": true}]', b"")):
        zones.put([Delivery(f"zones/{device}", payload, 0) for device in devices])
        at_s = 1.5 * HOUR + TICK_S * i
        driven.until(at_s + TICK_S + 1, start_s=at_s)
    driven.until(2 * HOUR + 400, start_s=1.5 * HOUR + 2 * TICK_S)
    [hour] = driven.hours
    assert {row["properties"]["devices_low"] for row in hour["features"]} == {0}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({HOUR + 600: 3}, [8, 8]),
        # An hour that is over waits for late reports until it is published.
        ({2 * HOUR + 60: 3}, [8, 8]),
        ({HOUR + 600: 3, HOUR + 1200: 0}, [8, 5]),
        ({2 * HOUR + 60: 3, 2 * HOUR + 80: 0}, [5, 8]),
    ],
)
def test_an_hour_has_the_largest_k_that_was_asked_for_while_it_lasted_or_is_published(
    changes: dict[float, int], told: list[int]
) -> None:
    driven, start_s = Driven(drives(hours=3)), 0.0
    for at_s, k_extra in changes.items():
        driven.until(at_s, start_s=start_s)
        tables = driven.settings.model_dump(exclude_unset=True) | {"region": {"k_extra": k_extra}}
        driven.outputs.adopt(Settings.model_validate(tables))
        start_s = at_s - TICK_S
    driven.until(3 * HOUR + 400, start_s=start_s)
    assert [{row[2] for row in rows_of(hour)} for hour in driven.hours] == [
        {f"k={k}"} for k in told
    ]


def test_an_hour_that_waits_to_be_published_has_the_k_of_a_reload() -> None:
    driven = Driven(drives(hours=1))
    device = np.arange(14)
    key = np.stack([np.ones_like(device), np.zeros_like(device), device])
    driven.put(StatedWindow(1, StatedPassages(5, PassageSums(key, np.zeros((2, 14))))))
    tables = driven.settings.model_dump(exclude_unset=True) | {"region": {"k_extra": 1}}
    driven.outputs.adopt(Settings.model_validate(tables))
    driven.outputs.publish_slow()
    newest = driven.outputs.newest("streets")
    assert newest is not None
    [row] = json.loads(newest)["features"]
    assert row["properties"]["privacy"] == "k=6"
    assert row["properties"]["devices_low"] in {6, 12}


async def test_a_browser_gets_the_last_hour_and_asks_whether_there_is_another() -> None:
    newest: list[bytes | None] = [None]
    application = FastAPI()
    path, what = StreetsOutput.path, StreetsOutput.what
    router = file_router(path, lambda: newest[0], what=what, token="secret")  # noqa: S106
    application.include_router(router)
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as http:
        assert (await http.get(path)).status_code == 401
        http.headers["Authorization"] = "Bearer secret"
        assert (await http.get(path)).status_code == 404
        newest[0] = b'{"type":"FeatureCollection","features":[]}'
        first = await http.get(path)
        assert first.json()["features"] == []
        assert first.headers["Content-Type"] == "application/geo+json"
        known = {"If-None-Match": first.headers["ETag"]}
        assert (await http.get(path, headers=known)).status_code == 304
        newest[0] = b'{"type":"FeatureCollection","features":[1]}'
        assert (await http.get(path, headers=known)).json()["features"] == [1]


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ({"counts": COUNTS | {"privacy": "dp"}}, 'needs privacy = "k"'),
        ({"counts": {"streets_s": 30}}, "multiple of 60"),
        ({"counts": COUNTS, "http": {"host": ""}}, "needs http.host"),
        ({"counts": COUNTS, "inputs": [{"ids_change_s": 60}]}, "counts.streets_s: not where"),
    ],
)
def test_streets_that_cannot_be_told_are_refused(tables: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Settings.model_validate(tables)
