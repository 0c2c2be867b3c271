"""The experiment on tracking: small fleets, one small and one large place, and the files."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from matplotlib.image import imread

from anonymizer.networks import load_network
from experiments.tracking_experiment import Choice, Point, run_tracking
from experiments.tracking_results import rows_of, write_results

CITY = load_network("city:400")
CHOICES = (Choice("session", 1, 4), Choice("session", 3, 4), Choice("snapshot", 1, 4))


@pytest.fixture(scope="module")
def told() -> tuple[list[Point], list[tuple[float, str]]]:
    """The points of a few devices, and what was said of the progress."""
    said: list[tuple[float, str]] = []
    points = run_tracking(
        CITY,
        sizes=[12],
        choices=CHOICES[:1],
        n_fleets=2,
        seconds=330,
        seed=2,
        progress=lambda done, what: said.append((done, what)),
    )
    return points, said


@pytest.mark.soak
def test_larger_places_say_less_about_where_somebody_is() -> None:
    small, large, snapshot = points = run_tracking(
        CITY, sizes=[40], choices=CHOICES, n_fleets=1, seconds=420, seed=1
    )
    assert small.nodes < large.nodes
    # They publish at different moments, from which the targets are known.
    assert small.strongest / small.belief["none"] > large.strongest / large.belief["none"]
    assert [each.choice for each in points] == list(CHOICES)
    assert snapshot.n_devices == 40
    assert set(small.belief) == {"none", "raw", "regions", "pieces", "followed"}
    assert small.strongest == max(small.belief[name] for name in ("regions", "pieces", "followed"))


def test_progress_says_what_comes_next_and_how_much_is_done(
    told: tuple[list[Point], list[tuple[float, str]]],
) -> None:
    _, said = told
    assert said == [(0.0, "12 devices, session"), (0.5, "12 devices, session")]


def test_the_files_hold_the_points_and_are_equal_on_every_run(
    told: tuple[list[Point], list[tuple[float, str]]], tmp_path: Path
) -> None:
    points, _ = told
    report = {"network": "city:400", "points": rows_of(points)}
    files = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        files.append(write_results(points, report, folder))
    assert [path.name for path in files[0]] == [
        "points.csv", "summary.json", "tracking.png", "tracking.svg"
    ]  # fmt: skip
    for one, two in zip(*files, strict=True):
        assert one.read_bytes() == two.read_bytes()
    with files[0][0].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["nodes"]) for row in rows] == [point.nodes for point in points]
    assert json.loads(files[0][1].read_text(encoding="utf-8")) == report
    assert imread(files[0][2]).shape[0] > 400
    assert ET.parse(files[0][3]).getroot().tag.endswith("svg")  # noqa: S314  our own file
