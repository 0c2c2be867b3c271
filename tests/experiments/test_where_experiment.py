"""The experiment on where devices are: its fleets, its figures and its table."""

import csv
from pathlib import Path

import numpy as np
import pytest

from anonymizer.audit.attacks.tracking import ADVERSARIES, MOST_TIMES_NONE
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments.result_files import rows_written
from experiments.tracking_experiment import released
from experiments.where_chart import DEFAULT, draw, frontiers, read_marks
from experiments.where_experiment import (
    COLUMNS,
    Row,
    even,
    header,
    in_lots,
    line,
    served,
    summary,
    together,
    with_values,
)
from experiments.where_table import NOTED, table

CITY = load_network("city:400")


def test_the_mean_does_not_hide_the_most_exposed_tenth() -> None:
    belief = np.array([0.9, 0.7, *[0.1] * 18])
    assert summary(belief) == pytest.approx((0.17, 0.8, 0.1))
    assert summary(np.array([0.3])) == pytest.approx((0.3, 0.3, 0.0)), "one is its own tenth"


def test_settings_are_given_as_text() -> None:
    settings = with_values(Settings(), ["region.max_nodes=4000", "session.beat_s=10"])
    assert (settings.region.max_nodes, settings.session.beat_s) == (4000, 10.0)


def test_devices_of_lots_stand_in_five_places_and_are_no_victims() -> None:
    trace, victims = in_lots(CITY, 40, 0.5, seed=1)
    lat = trace.lat.reshape(-1, 40)
    stands = (lat == lat[0]).all(axis=0)
    assert not (stands & victims).any()
    assert (~victims).sum() == 20
    lots = {(round(a, 2), round(b, 2)) for a, b in zip(lat[0, ~victims], trace.lon[:40][~victims])}  # noqa: B905
    assert len(lots) <= 10


def test_what_is_known_has_an_age_and_is_valid_most_of_the_time() -> None:
    trace, _ = even(CITY, 30, seed=1)
    case, release = released(trace, CITY, Settings())
    nodes, valid, age_s = served(case, release)
    assert 6 <= nodes <= 400
    assert 0.8 < valid <= 1
    assert 5 < age_s < 60


def test_taxis_of_several_days_are_one_fleet_in_which_nobody_is_two() -> None:
    days = [even(CITY, n, seed=n)[0] for n in (3, 4)]
    fleet = together(days)
    assert fleet.n_devices == 7
    assert (np.diff(fleet.ts) >= 0).all()
    for day, first in zip(days, (0, 3), strict=True):
        for device in range(day.n_devices):
            was, now = day.device_of == device, fleet.device_of == first + device
            assert (day.lat[was] == fleet.lat[now]).all()


def test_a_row_has_a_cell_for_each_column() -> None:
    near = {name: np.full((20, 2), 0.25) for name in ADVERSARIES}
    row = Row("even:50", (1, 3), near, 100.0, 0.95, 28.0, 30.0, (2, 2))
    text = line(row)
    assert text.count("|") == header((1, 3)).splitlines()[0].count("|")
    assert "1.00 / 1.00" in text


def _kept(file: Path, fleet: str, settings: str, followed: float, hindsight: float | None) -> Path:
    """Keep the figures of one fleet, whose belief without a release is .1."""
    near = {
        "none": np.full((20, 2), 0.1),
        "placebo": np.full((20, 2), 0.1),
        "followed": np.full((20, 2), 0.1 * followed),
    }
    if hindsight is not None:
        near["hindsight"] = np.full((20, 2), 0.1 * hindsight)
    record = Row(fleet, (1, 5), near, 245.0, 0.95, 4.0, 30.0, (2, 2)).record(settings)
    assert list(rows_written([record], COLUMNS, file)) == [record]
    return file


def test_the_figures_of_a_fleet_are_kept_with_the_settings_that_were_tried(tmp_path: Path) -> None:
    file = _kept(tmp_path / "kept.csv", "even:200", "session.beat_s=10", 1.5, 1.25)
    with file.open(encoding="utf-8") as lines:
        (row,) = csv.DictReader(lines)
    assert (row["fleet"], row["settings"], row["victims"]) == (
        "even:200",
        "session.beat_s=10",
        "20",
    )
    shown = ("placebo", "followed", "followed_tenth", "hindsight", "none")
    assert [float(row[name]) for name in shown] == pytest.approx([1.0, 1.5, 1.5, 1.25, 0.1])


def test_the_picture_shows_the_stronger_adversary_and_names_fleets_that_stand(
    tmp_path: Path,
) -> None:
    files = [
        _kept(tmp_path / "a.csv", "even:200", "", 1.5, 1.75),
        _kept(tmp_path / "b.csv", "lots:200:0.5", "", 1.5, None),
        _kept(tmp_path / "c.csv", "taxis:18", "", 1.5, None),
    ]
    marks = read_marks(files)
    assert [(mark.settings, mark.n_devices, mark.name) for mark in marks] == [
        (DEFAULT, 200, ""),
        (DEFAULT, 200, "half in lots"),
    ], "nobody has counted the taxis"
    assert [mark.belief for mark in marks] == pytest.approx([1.75, 1.5])
    draw(marks, tmp_path / "fresh.svg")
    first = (tmp_path / "fresh.svg").read_bytes()
    assert b"<svg" in first
    draw(marks, tmp_path / "fresh.svg")
    assert (tmp_path / "fresh.svg").read_bytes() == first, "equal figures make equal files"


def test_the_table_of_the_notes_is_written_from_figures_that_were_kept_and_read_again(
    tmp_path: Path,
) -> None:
    files = [
        _kept(tmp_path / "a.csv", "even:200", "", 1.5, 1.75),
        _kept(tmp_path / "b.csv", "lots:1000:0.75", "region.place_devices=3", 1.5, 1.25),
        _kept(tmp_path / "c.csv", "even:1000:3000", "region.mode=snapshot", 1.5, None),
    ]
    notes = tmp_path / "notes.md"
    notes.write_text("\n".join(["## Tracking, fleet by fleet", "", *table(files)]), "utf-8")
    head, _, first, second, third = notes.read_text("utf-8").splitlines()[2:]
    assert first == (
        "| 200 evenly | 2 x 2 | 20 | .150 / .15 / 0 % | 1.50 / 1.50 | 1.75 / 1.75 | 1.75 / 1.75 |"
        " 1.00 / 1.00 | 245 | .95 | 4 s |"
    )
    assert second.startswith("| 1,000, three quarters in lots, 3 devices a place | 2 x 2 | ")
    assert third.startswith("| 1,000 in a town of 3,000 nodes, `snapshot` | 2 x 2 | ")
    assert head.count("|") == first.count("|")
    notes.write_text(notes.read_text("utf-8").replace(third, ""), "utf-8")
    read, kept = read_marks([notes]), read_marks(files[:2])
    for mark, like in zip(read, kept, strict=True):
        assert mark[:3] == like[:3]
        assert mark[3:] == pytest.approx(like[3:])


def test_what_fewer_devices_a_place_reveal_is_a_line_of_its_own_for_each_fleet(
    tmp_path: Path,
) -> None:
    three, two, beat = "region.place_devices=3", "region.place_devices=2", "session.beat_s=3"
    tried = [(fleet, each) for fleet in ("even:50", "lots:50:0.5") for each in ("", three, two)]
    marks = read_marks(
        [
            _kept(tmp_path / f"{i}.csv", fleet, each, 1.5, 1.25)
            for i, (fleet, each) in enumerate([*tried, ("even:50", beat), ("even:70", "")])
        ]
    )
    found = frontiers(marks)
    assert {name: [mark.place_devices for mark in of] for name, of in found.items()} == {
        "50 evenly": [2, 3, 4],
        "50, half in lots": [2, 3, 4],
    }
    assert all(mark.high == pytest.approx(1.5) == mark.worst for mark in marks)
    draw(marks, tmp_path / "fresh.svg")
    text = (tmp_path / "fresh.svg").read_text("utf-8")
    assert "what smaller regions reveal" in text


def test_the_interval_of_a_ratio_is_that_of_the_adversary_who_finds_more() -> None:
    rng = np.random.default_rng(0)
    none = rng.uniform(0.05, 0.15, (200, 2))
    near = dict.fromkeys(ADVERSARIES, none) | {"hindsight": none * rng.uniform(1, 2, (200, 2))}
    row = Row("even:50", (1, 5), near, 100.0, 0.95, 28.0, 30.0, (2, 2))
    kept = row.record("")
    assert kept["hindsight"] < kept["high"] < 1.2 * kept["hindsight"]
    assert kept["hindsight_tenth"] < kept["tenth_high"]
    assert row.highest(np.mean) == kept["high"], "equal beliefs have equal intervals"


ROOT = Path(__file__).parents[2]
NOTES = ROOT / "notes" / "attacks.md"


def test_every_fleet_of_the_notes_is_in_the_picture_but_the_taxis() -> None:
    marks = read_marks([NOTES])
    section = NOTES.read_text(encoding="utf-8").split("## Tracking, fleet by fleet\n")[1]
    table = [row for row in section.split("\n## ")[0].splitlines() if row.startswith("| ")][1:]
    assert len(marks) == sum("taxis" not in row and "the same" not in row for row in table)
    alike = [mark for mark in marks if mark.settings == DEFAULT and not mark.name]
    assert [mark.n_devices for mark in alike] == [20, 40, 50, 100, 200, 400, 1000, 10_000]
    page = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    assert "in no fleet drawn here." in page
    assert not [m for m in marks if m.settings == DEFAULT and m.worst > MOST_TIMES_NONE]
    column = NOTED.index("placebo")
    assert all(row.split("|")[1 + column].strip() for row in table), "an older row says so"
    assert {mark.settings for mark in marks} >= {DEFAULT, "snapshot"}
    lots = next(mark for mark in marks if mark.name == "half in lots")
    assert f"| {lots.age_s:.0f} s |" in next(row for row in table if "half in lots" in row)
