"""Boats, hikers and drones: places without roads keep every promise that roads keep."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.app.cloak import cloak_trace
from anonymizer.audit import audit_release
from anonymizer.client import read
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.trace import Trace
from anonymizer.files.release_lines import read_auditor_map, read_release
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from simulator.fleet import FleetSource
from simulator.traffic import Traffic

SECONDS, EVERY_S = 1800, 5.0
START = 1_800_000_000.0
DATA = Path(os.environ.get("ANONYMIZER_DATA", "."))
HELSINKI = DATA / "networks" / "raw" / "helsinki_centre.osm.pbf"


class Kind(NamedTuple):
    """Devices on their network, and the box in which they go about freely; None: on its ways."""

    source: str
    n: int
    mps: tuple[float, float] = (0, 0)
    box: tuple[float, float, float, float] | None = None


LAKE = (46.40, 6.50, 46.45, 6.65)
HILLS = (46.30, 7.00, 46.34, 7.06)
FIELDS = (46.50, 6.60, 46.54, 6.66)
KINDS = {
    "boats": Kind(f"h3:9:{','.join(map(str, LAKE))}", 10, (2, 6), LAKE),
    "hikers": Kind(f"h3:10:{','.join(map(str, HILLS))}", 30, (0.8, 1.6), HILLS),
    "drones": Kind(f"h3:10:{','.join(map(str, FIELDS))}", 40, (8, 18), FIELDS),
    "walkers": Kind(f"walk:{HELSINKI}", 60),
}
EVERY_KIND = [
    pytest.param(name, marks=[pytest.mark.data] if name == "walkers" else []) for name in KINDS
]


def moving(kind: Kind, network: RoadNetwork, *, seed: int = 1) -> Trace:
    """Return half an hour of positions, of each device at its own moments."""
    if kind.box is None:
        return on_ways(kind, network, seed=seed)
    # From one random place to the next, in straight lines.
    rng = np.random.default_rng(seed)
    south, west, north, east = kind.box
    t = np.arange(0, SECONDS, EVERY_S)
    metres = np.radians(1) * EARTH_RADIUS_M * np.array([1, np.cos(np.radians(south))])
    paths: list[FloatArray] = []
    for mps in rng.uniform(*kind.mps, kind.n):
        corners = rng.uniform([south, west], [north, east], (200, 2))
        length_m = np.hypot(*(np.diff(corners, axis=0) * metres).T)
        at_m = np.concatenate(([0.0], np.cumsum(length_m)))
        paths.append(np.column_stack([np.interp(mps * t, at_m, c) for c in corners.T]))
    lat, lon = np.stack(paths, axis=1).reshape(-1, 2).T
    ts = (t[:, None] + rng.uniform(0, EVERY_S, kind.n)[None, :]).ravel() + START
    order = np.argsort(ts)
    device_of = np.tile(np.arange(kind.n), len(t))
    names = tuple(f"d{i}" for i in range(kind.n))
    return Trace(names, device_of[order], ts[order], lat[order], lon[order])


def on_ways(kind: Kind, network: RoadNetwork, *, seed: int) -> Trace:
    traffic = Traffic(network, kind.n, seed=seed)
    source = FleetSource(traffic, rate_hz=1 / EVERY_S, duration_s=SECONDS, seed=seed)
    reports = source.take(SECONDS, limit=round(kind.n * SECONDS / EVERY_S))
    device_of = reports.device.astype(np.int64)
    return Trace(source.device_id, device_of, START + reports.due_s, reports.lat, reports.lon)


@pytest.mark.parametrize("name", EVERY_KIND)
def test_nine_tenths_of_the_time_of_devices_without_roads_are_covered(
    tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    kind, out = KINDS[name], tmp_path / "cloaked.jsonl"
    network = load_network(kind.source)
    summary = cloak_trace(
        moving(kind, network), network, Settings(), tick_s=1.0, seed=0, out=out, auditor_map=None
    )
    assert summary.ledger.n(Outcome.SUPPRESSED__OFF_GRAPH) == 0
    releases = read(out)
    moments = np.arange(START + EVERY_S, START + SECONDS, 10)
    covered = sum(releases.devices(at) for at in moments.tolist()) / (kind.n * len(moments))
    record_property("covered", round(covered, 3))
    assert 0.9 <= covered <= 1


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", EVERY_KIND)
def test_places_without_roads_withstand_every_attack(
    tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    kind = KINDS[name]
    network, settings = load_network(kind.source), Settings()
    trace, published, named = moving(kind, network), tmp_path / "PUB.jsonl", tmp_path / "MAP.jsonl"
    cloak_trace(trace, network, settings, tick_s=1.0, seed=0, out=published, auditor_map=named)
    released = read_release(published, network)
    report = audit_release(
        trace,
        released,
        network,
        settings,
        device_of=read_auditor_map(named, pseudonym=released.pseudonym, device_id=trace.device_id),
        mode="session",
        tick_s=1.0,
        sample=300,
        seed=0,
    )
    assert report.holds, [finding.attack for finding in report.failures]
    for finding in report.findings:
        record_property(finding.attack, finding.figures)
        assert finding.holds is not False, finding.attack
