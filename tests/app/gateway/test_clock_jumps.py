"""Time is an input like any other: no jump of the wall clock costs more work than a tick has."""

import json
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymizer.outputs.counts.private_counts import held_s_of, plan_of, spent_period
from anonymizer.outputs.trips.trip_windows import TripWindows
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.store.budget_file import BudgetFile
from tests.lanes import each_of_both
from tests.outputs.drives import HOUR, NETWORK
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
    "dp": {"counts": {"privacy": "w-event", "every_s": 60, "period_s": 120, "cells": 16}},
    "zones": {
        "device_zones": {"topic": "zones/{device}"},
        "zones": [{"circle": {"lat": NETWORK.lat[0], "lon": NETWORK.lon[0], "radius_m": 50}}],
    },
    "session": {"region": {"mode": "session", "min_nodes": 1, "place_devices": 1}},
}
CASES = each_of_both(FEATURES, JUMPS)
"""Every feature with some jump, and every jump with some feature; all of them in `make soak`."""
TICK_S, LONGEST_S = 20.0, 5.0
HOURLY_TICK_S = 60.0
"""Of streets, which need hours."""


class Clocked:
    """A flow whose wall clock, and that of the devices, is ahead of the steady one."""

    def __init__(self, tables: dict[str, Any], folder: Path) -> None:
        self._tables, self._folder = tables, folder
        self._tick_s = HOURLY_TICK_S if "streets_s" in tables.get("counts", {}) else TICK_S
        self.now, self.ahead_s = NOW, 0.0
        self.longest_s, self.n_published = 0.0, 0
        self.counts: Counter[bool] = Counter()
        """Messages of counts so far, by whether they were suppressed."""
        self.told: defaultdict[str, list[float]] = defaultdict(list)
        """Ends of the intervals that were published, by output."""
        self.budget: BudgetFile | None = None
        self.restart()

    def restart(self) -> None:
        """Lose everything but the disk; the steady clock begins at what the wall's says."""
        self.now, self.ahead_s = self.now + self.ahead_s, 0.0
        settings = flow_settings(**self._tables)
        if self.budget is not None:
            self.budget.close()
        if settings.counts.has_noise:
            plan, held_s = plan_of(settings.counts), held_s_of(settings.counts)
            most = 1 if settings.counts.slides else settings.counts.intervals_of_budget
            path = self._folder / "budget.sqlite"
            self.budget = BudgetFile(path, plan, held_s=held_s, most=most)
        self.rig, self.n_hours = Rig(roads=NETWORK, budget=self.budget, **self._tables), 0

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds / self._tick_s)):
            self.now += self._tick_s
            self.rig.put(*self._said())
            began = time.process_time()  # work, however busy the machine is
            output = self.rig.tick(now=self.now, wall_ahead_s=self.ahead_s)
            while self.rig.outputs.publish_slow():
                self.n_hours += 1
                hour = self.rig.outputs.files["streets"].window
                self.told["streets"] += [hour] * (hour not in self.told["streets"][-1:])
            self.longest_s = max(self.longest_s, time.process_time() - began)
            self.rig.settle(output, [True] * len(output.messages))
            self.n_published += len(output.messages)
            for each in output.messages:
                if each.topic in {"cloaked/counts", "cloaked/trips"}:
                    body = json.loads(each.payload)
                    self.counts["suppressed" in body] += each.topic == "cloaked/counts"
                    if "suppressed" not in body:
                        self.told[each.topic].append(body["time"])

    @property
    def n_told(self) -> int:
        """Intervals that were published."""
        return sum(map(len, self.told.values()))

    def held_until(self) -> float | None:
        """Return until when readiness says that nothing is told of intervals."""
        wall = self.now + self.ahead_s
        found = [*self.rig.outputs.held_until(wall).values()]
        if self.budget is not None:
            found += filter(None, [self.budget.ahead_until(wall, steady=self.now)])
        return max(found, default=None)

    def goes_on_when_it_says(self, *, is_back: bool) -> None:
        """Run for some intervals, the first of them after the time that readiness names."""
        n_told, until = self.n_told, self.held_until()
        assert (until is not None) == is_back
        if until is not None:
            self.run(until - self.now - self.ahead_s - 20)
            assert self.n_told == n_told
            assert self.held_until() == until
        self.run(300)
        assert self.n_told > n_told
        assert self.held_until() is None

    def _said(self) -> list[Delivery]:
        wall = self.now + self.ahead_s
        found = []
        for device in range(12):
            node = (device % 4 + int(self.now / self._tick_s)) % NETWORK.n_nodes
            said = {"lat": NETWORK.lat[node], "lon": NETWORK.lon[node], "ts": wall - 1.0}
            found.append(Delivery(f"positions/d{device}", json.dumps(said).encode(), 0, False))
        return found


@pytest.mark.parametrize(("feature", "jump"), CASES)
def test_a_jump_of_the_clock_stops_nothing_there_and_back(
    feature: str, jump: str, tmp_path: Path
) -> None:
    clocked = Clocked(FEATURES[feature], tmp_path)
    clocked.run(2 * HOUR if feature == "streets" else 400)
    clocked.longest_s = 0.0  # the first test of a fresh checkout has compiled kernels until here
    for ahead_s in (JUMPS[jump], 0.0):
        clocked.ahead_s = ahead_s
        before = clocked.n_published, clocked.n_hours
        clocked.run(3 * HOUR if feature == "streets" else 1200)
        assert clocked.n_published > before[0]
        if feature == "streets":
            assert clocked.n_hours > before[1], "hours are told again"
    assert clocked.longest_s < LONGEST_S
    assert clocked.n_hours < 60, "bounded by work, not by the clock"


@pytest.mark.parametrize("back_s", [90.0, 600.0])
@pytest.mark.parametrize("feature", ["counts", "dp", "dp of a period"])
def test_an_interval_is_published_once_and_readiness_says_when_the_next_is(
    feature: str, back_s: float, tmp_path: Path
) -> None:
    """With a budget a restart with the clock behind does what the running gateway does."""
    tables = FEATURES.get(feature, {"counts": FEATURES["dp"]["counts"] | {"privacy": "dp"}})
    clocked = Clocked(tables, tmp_path)
    clocked.run(480)
    for ahead_s in (-back_s, 0.0, -300.0):
        is_back, clocked.ahead_s = ahead_s < clocked.ahead_s, ahead_s
        clocked.goes_on_when_it_says(is_back=is_back)
    if clocked.budget is not None:
        clocked.ahead_s -= 300.0
        clocked.restart()
        clocked.goes_on_when_it_says(is_back=True)
    [times] = clocked.told.values()
    assert times == sorted(set(times))


@pytest.mark.parametrize("feature", ["streets", "trips_out"])
def test_an_hour_is_published_once_whatever_the_clock(feature: str, tmp_path: Path) -> None:
    clocked, long_s = Clocked(FEATURES[feature], tmp_path), HOUR if feature == "streets" else 60
    clocked.run(15 * long_s)
    n_told = clocked.n_told
    clocked.ahead_s = -3.0 * long_s
    clocked.run(15 * long_s)
    assert clocked.n_told > n_told > 0
    [times] = clocked.told.values()
    assert times == sorted(set(times))


@pytest.mark.parametrize(("feature", "jump"), CASES)
def test_a_jump_over_a_restart_stops_nothing_there_and_back(
    feature: str, jump: str, tmp_path: Path
) -> None:
    """Counts with a budget stand still after the way back until the operator's command."""
    clocked = Clocked(FEATURES[feature], tmp_path)
    clocked.run(2 * HOUR if feature == "streets" else 400)
    clocked.longest_s = 0.0
    for ahead_s in (JUMPS[jump], -JUMPS[jump]):
        clocked.ahead_s = ahead_s
        clocked.restart()
        budget, counts = clocked.budget, flow_settings(**FEATURES[feature]).counts
        if budget is not None and budget.ahead_until(clocked.now) is not None:
            before = clocked.counts.copy()
            clocked.run(300)
            assert clocked.counts[False] == before[False]
            assert clocked.counts[True] > before[True], "it is said"
            budget.go_on(*spent_period(counts, clocked.now))
        before, n = clocked.counts.copy(), clocked.n_published
        clocked.run(3 * HOUR if feature == "streets" else 1200)
        assert clocked.n_published > n
        assert clocked.counts[False] > before[False] or feature not in {"dp", "counts"}
        assert clocked.n_hours > 0 or feature != "streets"
    assert clocked.longest_s < LONGEST_S


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
