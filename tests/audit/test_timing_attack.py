"""The timing attack finds devices whose groups publish when they report, and not on a beat."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymizer.audit import Finding, audit_release
from anonymizer.audit.attacks.timing import MOST_TIMES_CHANCE, timing
from anonymizer.domain.trace import Trace
from anonymizer.files.release_lines import read_auditor_map, read_release
from anonymizer.networks import load_network
from anonymizer.pipeline.positions.tick.factory import public_places
from anonymizer.settings import Settings
from experiments.tracking_experiment import attacked
from simulator.fleet import FleetSource
from simulator.traffic import Traffic
from tests.app.worlds import SIDE, Paper, World
from tests.audit.tracked import untracked

EVERY = 8
GROUP = 10
N_TICKS = 320
SETTINGS = Settings.model_validate({"presence": {"ttl_s": 90}})


def strolling(*, n_devices: int, seed: int) -> World:
    """Devices that report every few ticks, each at its own phase, from one node further on."""
    rng = np.random.default_rng(seed)
    tick = np.arange(N_TICKS)[:, None]
    reports = tick % EVERY == rng.integers(EVERY, size=n_devices)
    step = np.where(reports, rng.integers(-1, 2, size=reports.shape), 0)
    along = rng.random(reports.shape) < 0.5
    start = rng.integers(SIDE, size=(2, n_devices))
    # A device that would leave the grid is reflected.
    row, column = (
        np.abs((first + np.cumsum(steps, axis=0)) % (2 * SIDE - 2) - (SIDE - 1))
        for first, steps in zip(start, (step * along, step * ~along), strict=True)
    )
    return World(load_network(f"grid:{SIDE}x{SIDE}"), row * SIDE + column, reports)


def published(world: World, *, on_a_beat: bool) -> Paper:
    """Return one life of each group: it covers the atoms of its members, when one of them reports.

    On a beat, it publishes once in the time between two reports, at the same tick for all.
    """
    atom_at = public_places(world.network, SETTINGS)[0]
    paper = Paper(device_of={f"p{d}": f"device-{d}" for d in range(world.n_devices)})
    for t in range(EVERY, world.n_ticks):
        for first in range(0, world.n_devices, GROUP):
            members = range(first, first + GROUP)
            if t % EVERY == 0 if on_a_beat else world.reports[t, members].any():
                own = np.unique(atom_at[[world.last_known(t, d) for d in members]])
                region = np.flatnonzero(np.isin(atom_at, own)).tolist()
                paper.publish(t, [f"p{d}" for d in members], region, k=GROUP)
    return paper


def found_in(world: World, paper: Paper, folder: Path) -> Finding | None:
    paper.write(folder)
    released = read_release(folder / "PUB.jsonl", world.network)
    trace = world.trace()
    with untracked():
        report = audit_release(
            trace,
            released,
            world.network,
            SETTINGS,
            device_of=read_auditor_map(
                folder / "MAP.jsonl", pseudonym=released.pseudonym, device_id=trace.device_id
            ),
            mode="session",
            tick_s=1.0,
            sample=10,
            seed=0,
        )
    findings = [finding for finding in report.findings if finding.attack == "timing"]
    return findings[0] if findings else None


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Finding | None]:
    """What is found where groups publish on a beat, and where they do not."""
    world = strolling(n_devices=40, seed=3)
    return {
        on_a_beat: found_in(
            world, published(world, on_a_beat=on_a_beat), tmp_path_factory.mktemp("release")
        )
        for on_a_beat in (True, False)
    }


@pytest.mark.parametrize("on_a_beat", [True, False])
def test_when_a_group_publishes_gives_its_members_away_unless_it_has_a_beat(
    findings: dict[bool, Finding | None], *, on_a_beat: bool
) -> None:
    finding = findings[on_a_beat]
    assert finding is not None
    found = {name: value for name, value in finding.figures.items() if value is not None}
    gain = found["exact_followed_with_phase_5min"] - found["exact_followed_5min"]
    assert gain < 0.1 if on_a_beat else gain > 0.2
    assert 0 < found["chance_5min"] < 0.3
    # Regions are made of the smallest pieces here: these are the places.
    assert found["place_chance_5min"] == pytest.approx(found["chance_5min"], rel=0.2)
    for who in ("pieces", "pieces_with_phase", "followed", "followed_with_phase"):
        assert found[f"place_{who}_5min"] >= found[f"exact_{who}_5min"]
    without = max(found["place_chance_5min"], found["place_none_5min"])
    assert finding.holds is (found["place_followed_with_phase_5min"] <= 1.5 * without)
    assert on_a_beat or not finding.holds


def test_who_knows_no_release_finds_few_places(findings: dict[bool, Finding | None]) -> None:
    finding = findings[False]
    assert finding is not None
    found = {name: value for name, value in finding.figures.items() if value is not None}
    assert found["exact_none_5min"] < found["exact_followed_5min"]
    assert found["place_none_5min"] < found["place_followed_5min"]


def test_phases_of_devices_that_report_in_every_tick_are_not_known(tmp_path: Path) -> None:
    world = strolling(n_devices=10, seed=1)
    always = World(world.network, world.node, np.ones_like(world.reports))
    assert found_in(always, published(always, on_a_beat=False), tmp_path) is None


def reporting_every_ten_seconds(seed: int) -> Trace:
    """Return 200 devices of a city, each with a phase of its own."""
    traffic = Traffic(load_network("city:10000"), 200, seed=seed)
    source = FleetSource(traffic, rate_hz=0.1, duration_s=700, seed=seed)
    reports = source.take(700, limit=source.n_total or 0)
    return Trace(
        device_id=source.device_id,
        device_of=reports.device.astype(np.int64),
        ts=reports.due_s,
        lat=reports.lat,
        lon=reports.lon,
    )


@pytest.mark.soak
@pytest.mark.parametrize(
    ("tables", "fleets"),
    [
        ({}, (1, 2, 3)),
        ({"region": {"place_devices": 1}, "session": {"beat_s": 0}}, (1,)),
    ],
)
def test_known_phases_give_no_place_away_unless_places_are_small_and_there_is_no_beat(
    tables: dict[str, Any],
    fleets: tuple[int, ...],
    record_property: Callable[[str, object], None],
) -> None:
    settings, network = Settings.model_validate(tables), load_network("city:10000")
    found = [
        finding.figures
        for seed in fleets
        for finding in timing(attacked(reporting_every_ten_seconds(seed), network, settings))
    ]
    assert len(found) == len(fleets)
    shares = {
        name: np.mean([float(figures[name] or 0.0) for figures in found])
        for name in found[0]
        if name.endswith("min")
    }
    for name, share in shares.items():
        record_property(name, round(float(share), 3))
    for minute in (5, 10):
        without = max(shares[f"place_{who}_{minute}min"] for who in ("none", "chance"))
        strongest = max(
            shares[f"place_{who}_{minute}min"]
            for who in ("pieces", "pieces_with_phase", "followed", "followed_with_phase")
        )
        assert bool(strongest <= MOST_TIMES_CHANCE * without) == (not tables)
