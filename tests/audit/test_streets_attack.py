"""Attacks on traffic by street and hour: what is published holds, and what tells more is found."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from anonymizer.algorithms.positions.street_hours import (
    Passages,
    PublishedStretches,
    stretches_of,
)
from anonymizer.audit.attacks.streets import attack_streets
from anonymizer.audit.findings import Finding
from anonymizer.cli.main import main
from anonymizer.files.traces import trace_of
from anonymizer.outputs.streets.street_hours import HourPassages, hour_passages
from anonymizer.settings import Settings
from tests.cli.support import in_process
from tests.outputs.drives import HOUR, NETWORK, drives

K = 5


@pytest.fixture(scope="module")
def driven() -> HourPassages:
    return hour_passages(trace_of(drives()), NETWORK, Settings(), every_s=HOUR)


def attacked(
    driven: HourPassages, publish: Callable[[Passages], PublishedStretches] | None = None
) -> dict[str, Finding]:
    found = attack_streets(*driven, k=K, seed=1, publish=publish)
    return {each.attack: each for each in found}


@pytest.fixture(scope="module")
def found(driven: HourPassages) -> dict[str, Finding]:
    return attacked(driven)


def figure(finding: Finding, name: str) -> float:
    value = finding.figures[name]
    assert value is not None
    return value


def each_busy_road_by_itself(passages: Passages, n_roads: int) -> PublishedStretches:
    """Return roads with k devices as stretches, and what is left of areas as soon as it has k."""
    on = [set(passages.device[passages.road == road].tolist()) for road in range(n_roads)]
    stretch_of = np.full(n_roads, -1)
    n_devices: list[int] = []
    size = 1
    while size <= n_roads:
        for first in range(0, n_roads, size):
            left = np.flatnonzero(stretch_of[first : first + size] < 0) + first
            devices = set[int]().union(*(on[road] for road in left.tolist()))
            if len(devices) >= K:
                stretch_of[left] = len(n_devices)
                n_devices.append(len(devices) - len(devices) % K)
        size *= 2
    unknown = np.full(len(n_devices), np.nan)
    return PublishedStretches(stretch_of, np.array(n_devices, np.int64), unknown, unknown)


def test_nobody_is_told_to_have_passed_where_few_did(
    driven: HourPassages, found: dict[str, Finding]
) -> None:
    few = found["few on a road"]
    assert few.holds
    assert figure(few, "fewest") >= K
    assert figure(few, "n_told") == 0
    assert figure(few, "n_few") > 50
    assert figure(few, "n_figures") > 20
    speed = found["last speed"]
    assert speed.holds
    assert figure(speed, "n_victims") > 10
    assert attack_streets(*driven, k=K, seed=1) == list(found.values())


def test_figures_of_each_busy_road_tell_that_somebody_was_on_quiet_ones(
    driven: HourPassages,
) -> None:
    n_roads = len(driven.is_road)
    few = attacked(driven, lambda each: each_busy_road_by_itself(each, n_roads))["few on a road"]
    assert figure(few, "fewest") >= K  # counting devices does not find it
    assert figure(few, "n_told") > 50
    assert few.fails


def test_a_release_with_a_lower_k_is_found(driven: HourPassages) -> None:
    found = attacked(driven, lambda each: stretches_of(each, len(driven.is_road), 2))
    few = found["few on a road"]
    assert figure(few, "fewest") < K
    assert figure(few, "n_told") > 10
    assert few.fails


def test_exact_numbers_tell_where_the_last_passage_was(
    driven: HourPassages, found: dict[str, Finding]
) -> None:
    def exact(passages: Passages) -> PublishedStretches:
        n_on = np.bincount(passages.road, minlength=len(driven.is_road))[driven.is_road]
        stretch_of = np.where(driven.is_road, np.cumsum(driven.is_road) - 1, -1)
        unknown = np.full(len(n_on), np.nan)
        return PublishedStretches(stretch_of, n_on, unknown, unknown)

    broken, kept = (each["all passages but one"] for each in (attacked(driven, exact), found))
    assert figure(broken, "belief") > 0.95
    assert figure(kept, "belief") < 2 / K
    assert figure(kept, "belief_control") < 0.05


def test_without_traffic_nothing_is_attacked() -> None:
    nothing = np.zeros(0, np.int64)
    found = attack_streets(
        Passages(nothing, nothing, nothing, np.zeros(0)), np.ones(4, np.bool_), k=K, seed=1
    )
    assert [each.holds for each in found] == [None, None, None]


def test_the_command_attacks_traffic_beside_counts(tmp_path: Path) -> None:
    frame = drives(30)
    trace = tmp_path / "trace.parquet"
    frame.write_parquet(trace)
    done = in_process(
        main, "anonymizer", "audit", "counts", str(trace), "--network", "grid:8x8", "--json", "-"
    )
    assert done.returncode == 0, done.stderr
    found = {each["attack"]: each for each in json.loads(done.stdout)}
    assert found["few on a road"]["holds"]
    assert found["few on a road"]["required"]


def test_the_command_says_that_trips_among_private_counts_are_not_attacked(tmp_path: Path) -> None:
    trace, config = tmp_path / "trace.parquet", tmp_path / "gateway.toml"
    drives(30).write_parquet(trace)
    said = "Counts of trips were not attacked"
    for n_areas in (0, 2):
        config.write_text(
            '[network]\nsource = "grid:8x8"\n[counts]\nprivacy = "w-event"\nevery_s = 900\n'
            f"period_s = 900\ncells = 4\ntrip_areas = {n_areas}\n"
        )
        command = ("audit", "counts", str(trace), "--network", "grid:8x8", "--config", str(config))
        done = in_process(main, "anonymizer", *command)
        assert done.returncode == 0, done.stderr
        assert (said in done.stdout) == (n_areas > 0)
