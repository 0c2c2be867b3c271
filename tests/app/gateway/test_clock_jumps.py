"""Time is an input like any other: no jump of the wall clock costs more work than a tick has."""

import json
import time
from typing import Any

import numpy as np
import pytest

from anonymizer.app.gateway.live_streets import LiveStreets
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.out.trips import TripWindows
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from tests.app.test_street_hours import HOUR, NETWORK
from tests.pipeline.positions.support import Rig, flow_settings

DAY, YEAR = 86_400.0, 365.25 * 86_400.0
NOW = 20_000 * DAY
JUMPS = {
    "an hour back": -3600.0,
    "an hour on": 3600.0,
    "a day on": DAY,
    "ten years on": 10 * YEAR,
    "to 1970": 60.0 - NOW,
    "ten years back": -10 * YEAR,
}
FEATURES: dict[str, dict[str, Any]] = {
    "streets": {"counts": {"streets_s": HOUR, "k": 2}},
    "trips_out": {"counts": {"k": 2}, "trips_out": {"every_s": 60}},
    "counts": {"counts": {"privacy": "k", "every_s": 60, "k": 2, "cells": 16}},
    "trips": {"trips": {"enabled": True}},
    "session": {"region": {"mode": "session", "min_nodes": 1, "place_devices": 1}},
}
TICK_S, LONGEST_S = 20.0, 5.0


class Clocked:
    """A flow whose wall clock, and that of the devices, is ahead of the steady one."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self.rig = Rig(roads=NETWORK, **tables)
        self.now, self.ahead_s = NOW, 0.0
        self.longest_s, self.n_published = 0.0, 0
        self.streets: LiveStreets | None = None
        settings = flow_settings(**tables)
        if settings.counts.streets_s:
            flow = self.rig.flow
            flow.streets = self.streets = LiveStreets(settings, NETWORK, flow.mobile.devices.keys)

    async def run(self, seconds: float) -> None:
        for _ in range(int(seconds / TICK_S)):
            self.now += TICK_S
            self.rig.put(*self._said())
            began = time.process_time()  # work, however busy the machine is
            output = self.rig.tick(now=self.now, wall_ahead_s=self.ahead_s)
            if self.streets is not None:
                await self.streets.look()
            self.longest_s = max(self.longest_s, time.process_time() - began)
            self.rig.settle(output, [True] * len(output.messages))
            self.n_published += len(output.messages)

    def _said(self) -> list[Delivery]:
        wall = self.now + self.ahead_s
        found = []
        for device in range(12):
            node = (device % 4 + int(self.now / TICK_S)) % NETWORK.n_nodes
            said = {"lat": NETWORK.lat[node], "lon": NETWORK.lon[node], "ts": wall - 1.0}
            found.append(Delivery(f"positions/d{device}", json.dumps(said).encode(), 0, False))
        return found


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("feature", FEATURES)
async def test_a_jump_of_the_clock_stops_nothing_there_and_back(feature: str, jump: str) -> None:
    clocked = Clocked(FEATURES[feature])
    await clocked.run(2 * HOUR if feature == "streets" else 400)
    clocked.longest_s = 0.0  # the first test of a fresh checkout has compiled kernels until here
    for ahead_s in (JUMPS[jump], 0.0):
        clocked.ahead_s = ahead_s
        before = clocked.n_published, _n_hours(clocked)
        await clocked.run(3 * HOUR if feature == "streets" else 1200)
        assert clocked.n_published > before[0]
        if feature == "streets":
            assert _n_hours(clocked) > before[1], "hours are told again"
    assert clocked.longest_s < LONGEST_S
    assert _n_hours(clocked) < 60, "bounded by work, not by the clock"


def _n_hours(clocked: Clocked) -> int:
    return 0 if clocked.streets is None else sum(clocked.streets.n_hours.values())


@pytest.mark.parametrize("jump", JUMPS)
def test_windows_of_trips_follow_a_clock_that_jumps(jump: str) -> None:
    settings = flow_settings(counts={"k": 2}, trips_out={"every_s": 60})
    windows = TripWindows(settings, NETWORK)
    none = np.zeros(0)
    nobody = Positions(np.zeros(0, np.int32), none, none, none, none)
    now, n_told = NOW, []
    for shift in (0.0, JUMPS[jump], 0.0):
        n_told.append(0)
        for second in range(0, 1200, 10):
            now = NOW + shift + second + 1200 * len(n_told)
            n_told[-1] += len(windows.tick(nobody, np.zeros(0, np.int32), now=now))
    assert all(0 < n < 60 for n in n_told), n_told
