"""`anonymizer clock`: what a wrong clock has left in the store is said, and goes on when asked."""

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from anonymizer.app.gateway.wrong_clock import AheadOfClock, budget_of, told
from anonymizer.errors import SettingsError
from anonymizer.pipeline.records.stream_state import ahead_until
from anonymizer.settings import load_settings
from tests.app.gateway.records import write_records_settings
from tests.cli.support import anonymizer
from tests.pipeline.records.made import LENGTH_S, traffic
from tests.pipeline.records.support import Rig

YEAR = 365.25 * 86_400.0
HERE = time.time() // LENGTH_S * LENGTH_S
COUNTS: dict[str, Any] = {
    "inputs": [{"topic": "positions/{device}"}],
    "counts": {"privacy": "w-event", "every_s": 60, "period_s": 600, "cells": 16},
}


def ahead(folder: Path, *, by_s: float) -> Path:
    """Leave a store of a clock that was ahead; return the settings."""
    config = write_records_settings(
        folder / "gateway.toml", "mqtt://localhost:1", store=folder / "records.sqlite", **COUNTS
    )
    rig = Rig(folder)
    later = HERE + by_s
    rig.take(*traffic(n_vehicles=24, n_windows=2, seed=1, start=later), now=later + 120)
    rig.close()
    rig.publish()
    rig.store.close()
    budget = budget_of(load_settings(config))
    assert budget is not None
    assert budget.charge(later, later + 60, most=1) == 1
    budget.close()
    return config


def test_the_command_says_what_is_ahead_and_goes_on(tmp_path: Path) -> None:
    config = ahead(tmp_path, by_s=10 * YEAR)
    for _ in range(2):
        said = anonymizer("clock", "-c", config)
        assert said.returncode == 0
        lines = said.stdout.splitlines()
        assert lines[0].startswith("this machine's clock: 20")
        assert lines[1].startswith("stream fleet: parts of times before 20")
        assert lines[2].startswith("counts: suppressed until 20")
        assert "--go-on" in lines[3]
    went = anonymizer("clock", "-c", config, "--go-on").stdout.splitlines()
    assert "goes on at 20" in went[1]
    assert " parts of later times are erased" in went[1]
    assert "taken for spent" in went[2]
    assert anonymizer("clock", "-c", config).stdout.endswith("nothing is ahead of it\n")


def test_readiness_names_what_is_ahead_and_the_command(tmp_path: Path) -> None:
    config = ahead(tmp_path, by_s=YEAR)
    settings = load_settings(config)
    budget = budget_of(settings)
    assert budget is not None
    rig = Rig(tmp_path)
    now = HERE

    def streams(now: float) -> list[tuple[str, float]]:
        until = ahead_until(rig.state.windows, now=now)
        return [] if until is None else [("stream fleet", until)]

    looked = AheadOfClock(
        lambda: now, steady=lambda: now, budget=budget, streams=streams, outputs=lambda _: {}
    )
    with closing(budget), closing(rig.store):
        of_stream, of_counts = looked.problems
        assert of_stream.startswith("stream fleet: parts of times before ")
        assert of_counts.startswith("counts: suppressed until ")
        assert "anonymizer clock --config FILE" in of_stream
        assert "anonymizer clock --config FILE" in of_counts
        now = HERE + YEAR + LENGTH_S
        assert looked.problems == []


def test_a_clock_before_the_program_was_installed_is_not_believed(tmp_path: Path) -> None:
    config = ahead(tmp_path, by_s=YEAR)
    with pytest.raises(SettingsError, match="set it first"):
        list(told(load_settings(config), now=60.0, going_on=True))
    assert "1970-01-01T00:01:00Z" in next(iter(told(load_settings(config), now=60, going_on=False)))


def test_a_store_that_a_gateway_uses_is_left_alone(tmp_path: Path) -> None:
    config = ahead(tmp_path, by_s=YEAR)
    rig = Rig(tmp_path)
    with closing(rig.store):
        said = anonymizer("clock", "-c", config, "--go-on")
    assert said.returncode == 2
    assert "is in use by another gateway" in said.stderr
