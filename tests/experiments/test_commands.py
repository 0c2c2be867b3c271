import csv
import json
import os
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from anonymizer.errors import InputError, SettingsError
from anonymizer.narrow_tables import print_table
from anonymizer.networks import load_network
from experiments import habits_experiment, tracking_experiment
from experiments.adversaries_experiment import ATTACKS, Plan, run_adversaries, write_results
from experiments.commands import LearnedAttack, app
from experiments.result_tables import print_multisource, print_rows
from experiments.scores import Score

WIDTH = 100
"""Of the terminal."""


def told(*words: str | Path, kind: str = "none") -> str:
    """Return what the command says; it must succeed."""
    options = ("--no-attacks", "--format", kind)
    result = CliRunner(env={"COLUMNS": "120"}).invoke(
        app, ["adka", *options, *map(str, words)], catch_exceptions=False
    )
    assert result.exit_code == 0
    return result.stdout


def as_json(*words: str | Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(told("--json", *words))
    return report


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command reports without options."""
    return as_json("--out", tmp_path_factory.mktemp("usual"))


def test_the_seeds_output_is_told_and_its_files_are_written(
    tmp_path: Path, usual: dict[str, Any]
) -> None:
    lines = told("--out", tmp_path / "out", kind="png").splitlines()
    assert lines[0] == "30 users on 25 nodes"
    first, *_ = runs = usual["runs"]
    said = [line.split() for line in lines]
    assert ["target", str(first["target"])] in said
    assert ["density", str(first["density"])] in said
    assert ["selected", "k", str(first["k"])] in said
    assert ["region", *map(str, first["region"])] in said
    # One draw need not show every k; what it is a draw of does.
    assert [line[3:] for line in said if line[:3] == ["over", "all", "draws"]] == [
        ["2", "3.0%"], ["5", "71.5%"], ["10", "25.5%"]
    ]  # fmt: skip
    columns = ("run", "target", "density", "k", "region_size", "users_in_region")
    for run in runs:
        assert [str(cell) for cell in (*(run[name] for name in columns), *run["region"])] in said
    assert lines[-1].startswith("Written: ")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "adaptive_fixed.png", "density_k.png", "k_region_size.png", "manifest.json", "region.png",
        "runs.csv", "summary.json",
    ]  # fmt: skip


def test_the_users_at_each_node_are_told_one_by_one_on_a_small_network(tmp_path: Path) -> None:
    shown = told("--out", tmp_path, "--network", "grid:1x3", "--users", "0", "--targets", "nodes")
    assert "0: 0   1: 0   2: 0" in shown


def test_the_users_of_a_large_network_are_told_in_numbers(tmp_path: Path) -> None:
    shown = told("--out", tmp_path, "--network", "grid:20x20", "--users", "0", "--targets", "nodes")
    lines = shown.splitlines()
    assert lines[:2] == ["0 users on 400 nodes", "  0 at 400 nodes"]


def test_long_regions_are_cut_short_on_the_terminal_only(tmp_path: Path) -> None:
    options = ("--out", tmp_path, "--network", "grid:40x40", "--users", "40", "--runs", "1")
    (run,) = as_json(*options)["runs"]
    assert run["region_size"] > 100
    assert f"and {run['region_size'] - 100} more" in " ".join(told(*options).split())


def test_suppressed_runs_are_told_with_their_reason(tmp_path: Path) -> None:
    shown = told("--out", tmp_path, "--users", "3", "--runs", "7")
    assert shown.count("suppressed: too few devices") == 1 + 7  # the first is told twice


def test_the_json_holds_every_run_and_agrees_with_the_summary(tmp_path: Path) -> None:
    report = as_json("--out", tmp_path, "--runs", "30", "--seed", "7", "--users", "50")
    runs = report.pop("runs")
    assert report == json.loads((tmp_path / "summary.json").read_text())
    assert not [*tmp_path.glob("*.png")]  # `--format none`
    assert [run["run"] for run in runs] == list(range(1, 31))
    assert all(run["region_size"] == len(run["region"]) for run in runs)
    assert all(run["target"] in run["region"] for run in runs if run["outcome"] == "cloaked")
    assert (report["users"], report["seed"], report["over_runs"]["n"]) == (50, 7, 30)


def test_the_rule_and_the_cap_are_those_of_the_settings_file(tmp_path: Path) -> None:
    settings = tmp_path / "gateway.toml"
    settings.write_text(
        '[adka]\ndensity_steps = [3]\nk_values = [12, 4]\n[region]\nmode = "adka"\nmax_nodes = 2\n'
    )
    report = as_json("--out", tmp_path, "--config", settings)
    assert {run["k"] for run in report["runs"]} <= {12, 4}
    assert {run["region_size"] for run in report["runs"]} <= {0, 1, 2}
    assert report["over_runs"]["suppressed"].keys() == {"region_too_large"}


def test_a_rule_without_steps_is_a_rule_too(tmp_path: Path) -> None:
    settings = tmp_path / "gateway.toml"
    settings.write_text("[adka]\ndensity_steps = []\nk_values = [3]\n")
    report = as_json("--out", tmp_path, "--config", settings)
    assert {run["k"] for run in report["runs"]} == {3}


def test_names_of_nodes_are_not_taken_for_markup(tmp_path: Path) -> None:
    (tmp_path / "net_edges.csv").write_text("u,v\n[red]A,B\n")
    shown = told("--out", tmp_path, "--network", tmp_path / "net")
    assert "[red]A: " in shown


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--network", "nowhere"), InputError),
        (("--config", "nowhere.toml"), SettingsError),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_it(
    tmp_path: Path, options: tuple[str, ...], error: type[Exception]
) -> None:
    with pytest.raises(error, match="nowhere"):
        told("--out", tmp_path, *options)


@pytest.mark.parametrize("options", [("--runs", "0"), ("--users", "-1"), ("--seed", "-1"), ()])
def test_impossible_numbers_and_a_missing_folder_are_refused(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    out = ("--out", str(tmp_path)) if options else ()
    assert CliRunner().invoke(app, ["adka", *out, *options]).exit_code == 2


def multisource(*words: str | Path, kind: str = "none") -> str:
    """Return what the command says on small tables and of few values; it must succeed."""
    small = ("--census-rows", "0", "--repeats", "1", "--best-s", "0")
    ranges = ("-k", "10,20", "--census-k", "100,200", "-d", "1,2", "-l", "2,3")
    result = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(
        app,
        ["multisource", *small, *ranges, "--format", kind, *map(str, words)],
        catch_exceptions=False,
    )
    assert result.exit_code == 0
    return result.stdout


class Told(NamedTuple):
    """What the command has told of two tables, and the report that it has written."""

    lines: list[str]
    report: dict[str, Any]


@pytest.fixture(scope="module")
def two_tables(tmp_path_factory: pytest.TempPathFactory) -> Told:
    out = tmp_path_factory.mktemp("multisource") / "out"
    lines = multisource("--out", out, "--rows", "300", "--census-rows", "900").splitlines()
    return Told(lines, json.loads((out / "summary.json").read_text()))


def test_the_multisource_tables_are_shown_and_written(two_tables: Told) -> None:
    lines, report = two_tables
    assert lines[0] == "a made table in the shape of Adult: 300 records"
    said = [line.split() for line in lines]
    shown = [r for r in report["runs"] if r["l"] == 1 and r["qis"] == 6 and r["d"] == 2]
    for run in shown:
        if run["records"] in {300, 900} and run["reading"] == "as published":
            assert [run["method"], str(run["k"]), "2", f"{run['classes']:,}"] in [
                words[:4] for words in said
            ]
    titles = ("over k", "over d", "over l, d = 2")
    assert {f"a made table in the shape of Adult: {title}" for title in titles} <= {
        line.strip() for line in lines
    }
    assert "Times beside the paper's" not in "".join(lines)
    assert lines[-1].startswith("Written: ")


def test_tables_are_as_wide_as_the_terminal(two_tables: Told) -> None:
    *lines, written = two_tables.lines
    assert written.startswith("Written: ")
    assert 80 < max(map(len, lines)) <= WIDTH, "80 without a terminal"


@pytest.mark.parametrize("columns", [80, 200])
def test_tables_never_break_a_word_however_wide_they_may_be(two_tables: Told, columns: int) -> None:
    report, file = two_tables.report, StringIO()
    print_multisource(Console(file=file, width=columns, markup=False), report, times=[])
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    said = {word for line in lines for word in line.split()}
    for row in report["leaks"]:
        for name, value in row.items():
            if name not in {"promise", "suppressed"} and value is not None:
                assert set((f"{value:,}" if isinstance(value, int) else value).split()) <= said
    usual = [row for row in report["runs"] if (row["repeat"], row["k"], row["d"]) == (0, 10, 2)]
    assert {f"{row['gcp_range']:.4f}" for row in usual if row["records"] == 300} & said


def test_a_table_that_is_too_wide_goes_on_below_with_what_its_rows_are_about() -> None:
    file = StringIO()
    rows = [{"method": f"m{i}", "k": i, **{f"c{j}": 10**7 + j for j in range(12)}} for i in (2, 5)]
    print_rows(Console(file=file, width=80), "A table", rows, tuple(rows[0]))
    lines = [line.split() for line in file.getvalue().splitlines() if line.strip()]
    heads = [line for line in lines if line[:1] == ["method"]]
    assert len(heads) == 3
    assert [name for head in heads for name in head[2:]] == [f"c{j}" for j in range(12)]
    assert [line[:2] for line in lines if line[0] == "m5"] == [["m5", "5"]] * 3


def test_a_table_without_rows_is_not_printed() -> None:
    file = StringIO()
    print_table(Console(file=file), "A table", ["", "k"], [], words={""})
    assert file.getvalue() == ""


def test_plots_are_written_in_the_formats_and_ranges_asked_for_and_the_json_holds_all(
    tmp_path: Path,
) -> None:
    ranges = ("-k", "5:15:10", "-d", "1,3", "-l", "2", "--share", "0.5", "--share", "1")
    report = json.loads(
        multisource("--out", tmp_path, "--rows", "100", "--json", *ranges, kind="pdf")
    )
    manifest = json.loads((tmp_path / "manifest.json").read_text())["options"]
    assert manifest["ks"]["Adult"] == [5, 15]
    assert [manifest[name] for name in ("ds", "ls", "shares")] == [[1, 3], [2], [0.5, 1.0]]
    files = [*tmp_path.iterdir()]
    assert {path.suffix for path in files} == {".csv", ".tex", ".json", ".jsonl", ".pdf"}
    assert {path.stem for path in files if path.suffix == ".pdf"} == {
        "over_k", "over_d", "over_l", "over_qis", "over_records", "readings", "leaks", "example"
    }  # fmt: skip
    assert {row["records"] for row in report["times"]} == {50, 100}
    assert report["runs"] == json.loads((tmp_path / "summary.json").read_text())["runs"]


def test_a_users_table_of_two_sources_is_studied(tmp_path: Path) -> None:
    rows = [f"{i % 7},{'ab'[i % 2]},{i % 5},{'xyz'[i % 3]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["speed,kind,road,fuel", *rows]) + "\n")
    table = ("--table", tmp_path / "t.csv", "--out", tmp_path / "out", "--json")
    sources = ("--source", "speed, kind", "--source", "road")
    report = json.loads(multisource(*table, *sources, "--sa", "fuel"))
    assert report["tables"][0]["sources"] == [["speed", "kind"], ["road"]]
    assert report["tables"][0]["sensitive"] == ["fuel"]
    assert {row["records"] for row in report["times"]} == {15, 30, 45, 60}  # shares by default


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        (("--taxonomy", "tree.json"), SettingsError, "--table"),
        (("--l", "1:3"), SettingsError, "l: must be 2 or more"),
        (("--census-k", "9:2"), SettingsError, "census-k: must be LO:HI"),
        (("--table", "nowhere.csv"), InputError, "nowhere.csv"),
        (("--table", "nowhere.csv", "--sa", "sex"), InputError, "nowhere.csv"),
        (("--table", "t.csv", "--source", "a"), SettingsError, "two sources"),
    ],
)
def test_a_table_that_cannot_be_studied_is_an_error_that_says_why(
    tmp_path: Path, options: tuple[str, ...], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        multisource("--out", tmp_path, *options)


@pytest.mark.data
def test_the_multisource_command_repeats_the_papers_tables_on_adult(tmp_path: Path) -> None:
    data = Path(os.environ["ANONYMIZER_DATA"], "adult")
    table = ("--adult", data / "adult_uci_32561.csv.gz")
    order = ("--taxonomy", data / "adult_taxonomy.json", "--order", data / "adult_order.json")
    few = ("-k", "20", "-d", "1,2", "-l", "3", "--share", "1", "--census-rows", "0")
    multisource(*table, *order, *few, "--out", tmp_path)
    with (tmp_path / "leaks.csv").open(newline="") as file:
        of = {(row["by"], row["table"], row["algorithm"]): row for row in csv.DictReader(file)}
    assert of["the paper, Table 4", "4", "(k,d)-anonymity"]["classes"] == "388"
    assert of["ours", "4", "(k,d)-anonymity, hilbert"]["classes"] == "389"
    assert of["ours", "5", "(k,l,d)-diversity, printed"]["classes"] == "384"
    assert {row["leaks"] for (_, _, name), row in of.items() if name.startswith("(k,")} == {"0"}
    with (tmp_path / "runs.csv").open(newline="") as file:
        gcp = {
            (row["method"], row["d"], row["l"]): float(row["gcp_range"])
            for row in csv.DictReader(file)
            if (row["qis"], row["reading"]) == ("6", "as published")
        }
    assert gcp["hilbert", "1", "1"] == pytest.approx(0.12, abs=0.005)
    assert gcp["hilbert", "2", "1"] == pytest.approx(0.29, abs=0.005)
    with (tmp_path / "inferences.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    assert 1 <= int(first["record"]) <= 32_561
    told = json.loads((tmp_path / "manifest.json").read_text())
    assert len(told["input"]) == 3
    assert told["options"]["tables"] == {"adult_uci_32561.csv.gz": 32_561}


@pytest.mark.data
@pytest.mark.soak
def test_the_adka_command_runs_on_a_real_network_with_its_attacks(tmp_path: Path) -> None:
    network = Path(os.environ["ANONYMIZER_DATA"], "networks", "monaco")
    words = ("adka", "--network", network, "--users", "60", "--runs", "20", "--out", tmp_path)
    result = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0
    assert {path.stem for path in tmp_path.glob("*.png")} == {
        "density_k", "k_region_size", "adaptive_fixed", "region", "attacks"
    }  # fmt: skip
    with (tmp_path / "attacks.csv").open(newline="") as file:
        attacks = list(csv.DictReader(file))
    assert {row["mode"] for row in attacks} == {"adka", "snapshot", "session"}
    assert {row["attack"] for row in attacks} == {"centre", "root"}
    report = json.loads((tmp_path / "summary.json").read_text())
    assert {row["k"] for row in report["fixed_k"]} == {2, 5, 10}
    hashes = json.loads((tmp_path / "manifest.json").read_text())["input"]
    assert hashes.keys() == {"monaco_nodes.parquet", "monaco_edges.parquet"}


def test_tracking_prints_a_row_for_each_setting_and_writes_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking_experiment, "CHOICES", tracking_experiment.CHOICES[:1])
    words = ("tracking", "--network", "city:400", "--devices", "20", "--seconds", "400")
    run = CliRunner(env={"COLUMNS": "120"}).invoke
    plain = run(app, [*words, "--out", str(tmp_path / "one")], catch_exceptions=False)
    assert plain.exit_code == 0
    [row] = [line.split() for line in plain.stdout.splitlines() if " session " in line]
    assert row[:2] == ["20", "session"]
    assert "strongest" in plain.stdout
    parsed = run(app, [*words, "--json", "--out", str(tmp_path / "two")], catch_exceptions=False)
    (point,) = json.loads(parsed.stdout)["points"]
    assert (point["devices"], point["mode"]) == (20, "session")
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        "points.csv", "summary.json", "tracking.png", "tracking.svg"
    ]  # fmt: skip


def test_adversaries_are_a_table_with_controls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(habits_experiment, "RELEASES", {})
    monkeypatch.setattr(habits_experiment, "CLOAKED_DAYS", {})
    result = CliRunner(env={"COLUMNS": "200"}).invoke(
        app,
        ["adversaries", "--attack", "habits", "--network", "city:200", "--people", "40", "--json",
         "--out", str(tmp_path)],
        catch_exceptions=False,
    )  # fmt: skip
    assert result.exit_code == 0
    scores = json.loads(result.stdout)["scores"]
    with (tmp_path / "scores.csv").open() as file:
        assert [row["attack"] for row in csv.DictReader(file)] == [row["attack"] for row in scores]
    raw = [row for row in scores if row["release"].startswith("raw") and row["victims"]]
    assert raw
    assert all(row["low"] <= row["success"] <= row["high"] for row in raw)
    assert json.loads((tmp_path / "manifest.json").read_text())["options"]["attacks"] == ["habits"]


def test_every_attack_that_learns_can_be_chosen() -> None:
    assert [each.value for each in LearnedAttack] == list(ATTACKS)


def test_a_fleet_of_which_nothing_is_published_is_a_row_without_victims(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def publishes_nothing(*_: object) -> list[Score]:
        raise InputError("publishes no region")

    def finds(*_: object) -> list[Score]:
        return [Score("moments", "session", np.ones(5), np.zeros(5), 1.0)]

    monkeypatch.setitem(ATTACKS, "paths", publishes_nothing)
    monkeypatch.setitem(ATTACKS, "moments", finds)
    plan = Plan(load_network("grid:5x5"), 40, 8, None, 1)
    none, some = run_adversaries(plan, ["paths", "moments"])
    assert (none["attack"], none["victims"]) == ("paths", 0)
    assert (some["attack"], some["victims"], some["success"]) == ("moments", 5, 1.0)


def test_what_was_found_is_in_the_file_when_a_run_dies(tmp_path: Path) -> None:
    score = Score("moments", "session", np.ones(5), np.zeros(5), 1.0)

    def dies() -> Iterator[dict[str, Any]]:
        yield score.row()
        yield score.row() | {"release": "snapshot"}
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError):
        write_results(dies(), {"seed": 1}, tmp_path)
    with (tmp_path / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["release"] for row in rows] == ["session", "snapshot"]
    assert set(rows[0]) == set(score.row()), "the columns are those of a row"
    assert (tmp_path / "manifest.json").exists()
