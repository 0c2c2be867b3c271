"""A gateway that starts on the store of one with other settings: no time is released twice."""

import json
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from anonymizer.app.gateway.gateway import Gateway
from anonymizer.app.gateway.preflight import check_files
from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.pipeline.records.inbox import Arrived
from anonymizer.settings import Settings
from tests.lanes import some
from tests.pipeline.records.made import FLEET, LENGTH_S, traffic
from tests.settings.changes import by_key, changes, up_or_down

NETWORK = load_network("grid:10x10")
NOW = time.time() // (10 * LENGTH_S) * 10 * LENGTH_S
BASE: dict[str, Any] = {
    "network": {"source": "grid:10x10", "snap_limit_m": 30},
    "inputs": [{"topic": "positions/{device}"}],
    "adka": {"density_steps": [], "k_values": [2]},
    "region": {"min_nodes": 2, "place_devices": 1},
    "session": {"epoch_s": 8, "beat_s": 1},
    "presence": {"ttl_s": 20, "max_behind_s": 5},
    "tick": {"interval_s": 1.0},
    "counts": {"privacy": "w-event", "every_s": 60, "period_s": 120, "cells": 16},
    "http": {"host": ""},
    "streams": [FLEET],
}
Spans = dict[str, set[tuple[float, float]]]


class Run:
    """A gateway that is driven by hand; nothing is connected."""

    def __init__(self, settings: Settings) -> None:
        network, streams = check_files(settings)
        self.gateway = Gateway(settings, network, streams)
        self.names: set[str] = set()
        self.spans: Spans = {}

    def positions(self, start: float, *, n_ticks: int = 12) -> None:
        flow = self.gateway.flow
        for second in range(n_ticks):
            now = start + second
            said = [
                {"lat": NETWORK.lat[4 * i], "lon": NETWORK.lon[4 * i], "ts": now - 0.5}
                for i in range(24)
            ]
            told = [
                Delivery(f"positions/d{i}", json.dumps(each).encode(), 0, False)
                for i, each in enumerate(said)
            ]
            flow.ledger.receive(len(told))
            output = flow.tick([Arrivals(now, told)], now=now)
            flow.settle(output, [True] * len(output.messages), seconds=0.0)
            for message in output.messages:
                with suppress(ValueError, AttributeError):
                    self.names |= set(json.loads(message.payload).get("pseudonyms", ()))

    def records(self, start: float, *, n_windows: int, close: bool = True) -> None:
        assert self.gateway.records is not None
        flow, at_s = self.gateway.records.flow, time.monotonic()
        for window in range(n_windows):
            begins = start + window * LENGTH_S
            parts = [
                part.delivery(i + 1)
                for i, part in enumerate(
                    traffic(n_vehicles=24, n_windows=1, seed=window, start=begins)
                )
            ]
            flow.take(Arrived([parts]), now=begins + LENGTH_S, at_s=at_s)
            for due in flow.due(at_s=at_s + 1e6 * close):
                closing = flow.anonymize(
                    due, flow.memories(due), time_left=lambda: 0.0, clock=lambda: 0.0
                )
                flow.close(due, closing, now=begins + LENGTH_S)
                stream = flow.states[due.stream].stream
                span = stream.rule.span(due.window)
                assert not closing.messages or span not in self.spans.get(stream.settings.name, ())
                if closing.messages:
                    self.spans.setdefault(stream.settings.name, set()).add(span)
        flow.published(flow.waiting(limit=10_000), now=start)
        for state in flow.states:
            assert state.accounts.n_received == state.accounts.n_settled + state.n_held

    def end(self) -> None:
        if self.gateway.records is not None:
            self.gateway.records.store.close()
        self.gateway.flow.close()


def settings_in(folder: Path, settings: Settings) -> Settings:
    store = settings.store.model_copy(update={"path": folder / "records.sqlite"})
    return settings.model_copy(update={"store": store})


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str], Spans]:
    """Return a folder with what a gateway has left, the pseudonyms and the spans it published."""
    folder = tmp_path_factory.mktemp("stored")
    run = Run(settings_in(folder, Settings.model_validate(BASE)))
    run.positions(NOW)
    run.records(NOW - 20 * LENGTH_S, n_windows=3)
    run.records(NOW - 10 * LENGTH_S, n_windows=1, close=False)
    run.end()
    assert run.names
    assert len(run.spans["fleet"]) == 3
    return folder, run.names, run.spans


CHANGED = by_key(changes(Settings.model_validate(BASE)))


def overlaps(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@pytest.mark.parametrize("of_a_key", some(["one value", "every value"], ["one value"]))
@pytest.mark.parametrize("table", sorted({key.partition(".")[0] for key in CHANGED}))
async def test_no_change_of_a_setting_over_a_restart_crashes_or_releases_a_time_twice(
    table: str,
    of_a_key: str,
    stored: tuple[Path, set[str], Spans],
    tmp_path: Path,
) -> None:
    folder, names, spans = stored
    n_started = 0
    of_table = [(key, made) for key, made in CHANGED.items() if key.partition(".")[0] == table]
    tried = [
        (key, each)
        for turn, (key, made) in enumerate(of_table)
        for each in (up_or_down(made, turn) if of_a_key == "one value" else made)
    ]
    for number, (key, changed) in enumerate(tried):
        place = tmp_path / str(number)
        shutil.copytree(folder, place)
        try:
            run = Run(settings_in(place, changed))
        except SettingsError:
            continue  # refused before anything runs
        n_started += 1
        if changed.inputs:
            run.positions(NOW + 60)
        if changed.streams:
            # The same windows again, then those that follow.
            run.records(NOW - 20 * LENGTH_S, n_windows=3)
            run.records(NOW - 8 * LENGTH_S, n_windows=2)
        run.end()
        shutil.rmtree(place)
        assert not run.names & names, "an id outlives no restart"
        for stream, released in spans.items():
            again = run.spans.get(stream, set())
            assert not any(overlaps(a, b) for a in released for b in again), key
    assert n_started, "nothing was tried"
