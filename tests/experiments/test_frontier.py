"""The frontier on a small city: exact publications tell most and are of most use."""

import csv
import json
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

from anonymizer.audit.attacks.tracking import beliefs
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments import frontier_experiment
from experiments.blur_schemes import SCHEMES
from experiments.commands import app
from experiments.frontier_experiment import OWN, PUBLIC, Point, run_frontier
from experiments.frontier_results import write_results
from experiments.kept_steps import KeptSteps
from experiments.tracking_experiment import drive

CITY = load_network("city:300")
pytestmark = pytest.mark.soak  # one fleet, published in twelve ways


def sparse(trace: Trace, every_s: int) -> Trace:
    """Return the reports of every so many seconds."""
    kept = (trace.ts - trace.ts[0]) % every_s == 0
    return Trace(
        trace.device_id, trace.device_of[kept], trace.ts[kept], trace.lat[kept], trace.lon[kept]
    )


class Found(NamedTuple):
    """What was found, and on the way."""

    points: list[Point]
    partial: list[int]
    again: list[Point]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    with pytest.MonkeyPatch.context() as few:
        few.setattr(frontier_experiment, "beliefs", partial(beliefs, n_starts=2))
        few.setattr(frontier_experiment, "SESSIONS", (2, 2))
        few.setattr(frontier_experiment, "LAPLACE_AT_M", (50, 2000))
        few.setattr(frontier_experiment, "THRESHOLDS", (2,))
        few.setattr(frontier_experiment, "CENTRAL_EPSILONS", (1, 1000))
        trace = sparse(drive(CITY, 40, seconds=500, seed=1), 20)
        own = {"mine": Settings.model_validate({"region": {"place_devices": 2, "min_nodes": 9}})}
        folder, partial_sizes = tmp_path_factory.mktemp("frontier"), list[int]()
        run = partial(run_frontier, trace, CITY, tick_s=20.0, seed=1, own=own)
        points = run(
            kept=KeptSteps(folder, {}),
            partial_results=lambda points: partial_sizes.append(len(points)),
        )
        few.setattr(frontier_experiment, "released", None)  # what is kept is not made again
        return Found(points, partial_sizes, run(kept=KeptSteps(folder, {})))


@pytest.fixture(scope="module")
def points(found: Found) -> list[Point]:
    return found.points


def of(points: list[Point], kind: str, setting: str = "") -> Point:
    return next(p for p in points if p.kind == kind and (not setting or p.setting == setting))


def test_every_way_to_publish_is_a_point(points: list[Point]) -> None:
    assert {point.kind for point in points} == {
        *("session", "snapshot", "adka", "raw", "safe counts", "planar Laplace", "threshold"),
        "central DP", OWN, PUBLIC,
    }  # fmt: skip
    for point in points:
        assert set(point.belief) == {1, 3, 5}
        assert all(point.belief[minute] >= point.none[minute] for minute in (1, 3, 5))
        assert set(point.density) == set(point.query) == {6, 18}


def test_who_publishes_all_is_followed_and_found(points: list[Point]) -> None:
    raw = of(points, "raw")
    assert raw.linked == 1
    assert raw.belief[5] == max(point.belief[5] for point in points if point.kind != PUBLIC)
    assert raw.belief[5] > 2 * raw.none[5]
    assert (raw.density[18], raw.query[18]) == (0, 0)
    session = of(points, "session")
    assert session.linked is not None
    assert session.linked < 0.5
    assert session.belief[5] < raw.belief[5]


def test_noise_buys_privacy_with_utility(points: list[Point]) -> None:
    little, much = (of(points, "planar Laplace", f"{metres} m") for metres in (50, 2000))
    assert little.belief[5] > much.belief[5]
    assert little.linked is not None
    assert much.linked is not None
    assert little.linked > much.linked
    assert little.density[18] < much.density[18]
    assert of(points, "central DP", "1000").query[6] < of(points, "central DP", "1").query[6]


def test_public_schemes_stand_beside_us_but_for_counts_by_the_hour(points: list[Point]) -> None:
    shown = {point.setting for point in points if point.kind == PUBLIC}
    assert shown == {scheme.name for scheme in SCHEMES} - {"counts below 10 out"}
    assert of(points, PUBLIC, "cells without ids").linked is None
    assert of(points, PUBLIC, "zone hole").published < 0.95
    assert of(points, PUBLIC, "ids rotated").density[18] == 0
    assert of(points, PUBLIC, "ids rotated").published == 1


@pytest.mark.parametrize("scheme", ["random rays", "an offset each"])
def test_who_moves_all_of_a_trip_alike_is_followed_and_found(
    points: list[Point], scheme: str
) -> None:
    """One known position tells the shift."""
    shifted, raw = of(points, PUBLIC, scheme), of(points, "raw")
    assert shifted.linked is not None
    assert shifted.linked > 0.8
    assert shifted.belief[5] > max(2 * shifted.none[5], raw.belief[5] / 2)
    assert shifted.density[18] > 0


def test_the_files_hold_the_points(points: list[Point], tmp_path: Path) -> None:
    files = write_results(points, {"seed": 1}, tmp_path, formats=["png"])
    assert [path.name for path in files] == ["points.csv", "manifest.json", "frontier.png"]
    with files[0].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["kind"] for row in rows] == [point.kind for point in points]
    assert json.loads(files[1].read_text(encoding="utf-8"))["options"] == {"seed": 1}
    picture = imread(files[2])
    assert picture.shape[0] > 800
    assert np.ptp(picture[..., :3]) > 0


def test_the_command_publishes_a_simulated_city_in_every_way(tmp_path: Path) -> None:
    words = ["frontier", "--out", str(tmp_path), "--network", "city:300", "--devices", "30"]
    result = CliRunner(env={"COLUMNS": "200"}).invoke(
        app, [*words, "--seconds", "480", "--format", "svg"], catch_exceptions=False
    )
    assert result.exit_code == 0
    assert "planar Laplace" in result.stdout
    assert {path.name for path in tmp_path.iterdir()} == {
        "points.csv", "manifest.json", "frontier.svg", "steps.jsonl"
    }  # fmt: skip
