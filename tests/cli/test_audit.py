import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from anonymizer.cli.audit import app
from anonymizer.errors import GuaranteeError, InputError
from tests.app.worlds import SIDE, TTL_S, Paper, fixed_pseudonyms, ideal_sessions, wandering

WORLD = wandering(n_devices=60, n_ticks=12, seed=2)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.toml"
    path.write_text(f"[presence]\nttl_s = {TTL_S}\nmax_behind_s = 1.0\n[session]\nepoch_s = 1\n")
    return path


def audit(
    folder: Path, paper: Paper, config: Path, *words: str | Path, columns: int = 120
) -> Result:
    release, auditor_map = paper.write(folder)
    trace = WORLD.write_trace(folder / "trace.csv")
    options = ["--network", f"grid:{SIDE}x{SIDE}", "--auditor-map", auditor_map, "-c", config]
    command = ["stream", trace, release, *options, "--all", *words]
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, [str(word) for word in command])


def test_a_release_that_holds_is_told_as_a_table_and_written_as_json(
    tmp_path: Path, config: Path
) -> None:
    result = audit(tmp_path, ideal_sessions(WORLD), config, "--json", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "out.json").read_text())
    assert (report["mode"], report["holds"]) == ("session", True)
    for finding in report["findings"]:
        assert finding["attack"] in result.stdout
    assert "FAILS" not in result.stdout


def test_a_broken_promise_ends_in_an_error_that_names_the_attacks(
    tmp_path: Path, config: Path
) -> None:
    result = audit(tmp_path, fixed_pseudonyms(WORLD), config, "--json", "-")
    assert isinstance(result.exception, GuaranteeError)
    assert "session, intersection, matching" in str(result.exception)
    assert json.loads(result.stdout)["holds"] is False
    assert "FAILS" in result.stderr


def test_a_summary_shows_whatever_fails_and_names_what_was_not_tried(
    tmp_path: Path, config: Path
) -> None:
    release, auditor_map = fixed_pseudonyms(WORLD).write(tmp_path)
    trace = WORLD.write_trace(tmp_path / "trace.csv")
    options = ["--network", f"grid:{SIDE}x{SIDE}", "--auditor-map", auditor_map, "-c", config]
    command = ["stream", trace, release, *options, "--json", tmp_path / "out.json"]
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, [*map(str, command)])
    assert isinstance(result.exception, GuaranteeError)
    assert "session, intersection, matching" in str(result.exception)
    report = json.loads((tmp_path / "out.json").read_text())
    failed = {f["attack"] for f in report["findings"] if f["required"] and f["holds"] is False}
    for attack in (*failed, "velocity", "timing"):
        assert attack in " ".join(result.stdout.split())
    assert len(failed) > 2


def test_a_narrow_terminal_shows_every_attack_and_verdict(tmp_path: Path, config: Path) -> None:
    result = audit(tmp_path, fixed_pseudonyms(WORLD), config, "--json", "-", columns=40)
    cells = [line.split("│")[1:-1] for line in result.stderr.splitlines() if line.count("│") > 3]
    attacks, verdicts = ("".join(row[i].strip() for row in cells) for i in (0, 3))
    findings = json.loads(result.stdout)["findings"]
    for each in findings:
        assert each["attack"].replace(" ", "") in attacks.replace(" ", "")
    failed = [each for each in findings if each["required"] and each["holds"] is False]
    assert verdicts.count("FAILS") == len(failed) > 0


def test_what_a_mode_does_not_promise_is_reported_only(tmp_path: Path, config: Path) -> None:
    result = audit(tmp_path, fixed_pseudonyms(WORLD), config, "--mode", "snapshot")
    assert result.exit_code == 0, result.output
    assert "would fail" in result.stdout
    assert "no case" in result.stdout  # no pseudonym ends


def test_without_the_map_the_table_says_what_is_left_out(tmp_path: Path, config: Path) -> None:
    release, _ = ideal_sessions(WORLD).write(tmp_path)
    trace = WORLD.write_trace(tmp_path / "trace.csv")
    words = ["stream", trace, release, "--network", f"grid:{SIDE}x{SIDE}", "-c", config]
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*map(str, words), "--mode", "adka"])
    assert result.exit_code == 0, result.output
    assert "soundness, centre, prefix, matching" in result.stdout


SPEED = '[[readings]]\nname = "speed[red]"\nlo = 0\nhi = 60\nstatistics = ["mean", "each"]\n'


def with_speeds(folder: Path) -> Paper:
    """Return an ideal release in which each pseudonym tells how fast its device always is."""
    paper = ideal_sessions(WORLD)
    for line in paper.lines:
        device = paper.device_of[line["pseudonym"]]
        line["values"] = {"speed[red]": int(device.removeprefix("device-"))}
    trace = WORLD.write_trace(folder / "trace.csv")
    header, *rows = trace.read_text().splitlines()
    told = [f"{row},{row.split(',')[0].removeprefix('device-')}" for row in rows]
    (folder / "speeds.csv").write_text("\n".join([f"{header},speed[red]", *told]))
    return paper


def test_what_values_cost_is_told_and_breaks_no_promise(tmp_path: Path, config: Path) -> None:
    paper = with_speeds(tmp_path)
    config.write_text(config.read_text() + SPEED)
    release, auditor_map = paper.write(tmp_path)
    words = [
        "stream",
        tmp_path / "speeds.csv",
        release,
        "--network",
        f"grid:{SIDE}x{SIDE}",
        "--all",
    ]
    words += ["-c", config, "--auditor-map", auditor_map, "--json", tmp_path / "out.json"]
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, [*map(str, words)])
    assert result.exit_code == 0, result.output
    [row] = [line for line in result.stdout.splitlines() if "values of speed[red]" in line]
    assert "would fail" in row
    assert "left out" not in result.stdout
    [*_, finding] = json.loads((tmp_path / "out.json").read_text())["findings"]
    assert (finding["attack"], finding["attribute"]) == ("values", "speed[red]")
    assert finding["figures"]["success"] == 1


def test_values_of_readings_that_are_not_declared_are_left_out_and_said(
    tmp_path: Path, config: Path
) -> None:
    result = audit(tmp_path, with_speeds(tmp_path), config)
    assert result.exit_code == 0, result.output
    assert "readings that are not declared" in result.stdout
    assert "values of speed[red]" in result.stdout


def test_a_trace_without_the_readings_that_are_published_is_refused(
    tmp_path: Path, config: Path
) -> None:
    config.write_text(config.read_text() + SPEED)
    result = audit(tmp_path, with_speeds(tmp_path), config)
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(f"{tmp_path / 'trace.csv'}: no column speed[red]")
    # Where the release tells nothing of them, nobody asks for them.
    assert audit(tmp_path, ideal_sessions(WORLD), config).exit_code == 0


def test_a_report_that_cannot_be_written_is_said(tmp_path: Path, config: Path) -> None:
    path = tmp_path / "no" / "folder.json"
    result = audit(tmp_path, ideal_sessions(WORLD), config, "--json", path)
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == f"{path}: cannot be written: No such file or directory"


def test_utility_is_reported_beside_raw_positions(tmp_path: Path) -> None:
    world = wandering(n_devices=12, n_ticks=185, seed=2)
    release, auditor_map = ideal_sessions(world).write(tmp_path)
    out = tmp_path / "out.json"
    config = tmp_path / "gateway.toml"
    config.write_text(f"[presence]\nttl_s = {TTL_S}\nmax_behind_s = 1.0\n[session]\nepoch_s = 1\n")
    trace = world.write_trace(tmp_path / "trace.csv")
    options = ["--network", f"grid:{SIDE}x{SIDE}", "-c", config, "--utility", "--json", out]
    command = ["stream", trace, release, *options]
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, [str(word) for word in command])
    assert "threshold" in result.stdout
    found = json.loads(out.read_text())["utility"]
    assert {(each["places"], each["side"]) for each in found} == {
        ("6x6", 6), ("18x18", 18), ("roads", 0)
    }  # fmt: skip
    [raw] = [each for each in found if (each["what"], each["side"]) == ("raw", 6)]
    assert (raw["density"], raw["query"]) == (0, 0)
    assert auditor_map.exists()


def test_no_pseudonym_device_or_node_is_printed(tmp_path: Path, config: Path) -> None:
    paper = fixed_pseudonyms(WORLD)
    result = audit(tmp_path, paper, config)
    for name in (*paper.device_of, *paper.device_of.values()):
        assert f" {name} " not in result.output


PEOPLE = "name,age,city,illness\n" + "".join(
    f"person-{i},{20 + i % 4},{'xy'[i % 2]},{['flu', 'cold'][i // 2 % 2]}\n" for i in range(12)
)
COLUMNS = ["--qi", "age,city", "--sa", "illness", "--id", "name"]
SOURCES = ["--source", "age", "--source", "city"]


def published(folder: Path, cities: str) -> list[str]:
    """Two classes of six, whose ages are told as one range and whose cities as given."""
    (folder / "people.csv").write_text(PEOPLE)
    rows = PEOPLE.splitlines()[1:]
    labels = [f"{i // 6},[20-23],{cities},{row.split(',')[3]}" for i, row in enumerate(rows)]
    (folder / "out.csv").write_text("\n".join(["class_id,age,city,illness", *labels]) + "\n")
    mapped = [f"{i},{i}" for i in range(12)]
    (folder / "map.csv").write_text("\n".join(["in_row,out_row", *mapped]) + "\n")
    files = [str(folder / name) for name in ("people.csv", "out.csv", "map.csv")]
    return ["table", files[0], files[1], "--auditor-map", files[2], *COLUMNS, *SOURCES]


def audit_of_table(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "150"}).invoke(app, list(words))


def test_a_table_that_keeps_what_is_asked_is_told_and_written_as_json(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    words = published(tmp_path, "{x|y}")
    asked = ["-k", "6", "-d", "2", "-l", "2", "--t", "0.2", "--min-spread", "age=3"]
    result = audit_of_table(*words, *asked, "--json", str(path))
    assert result.exit_code == 0, result.output
    report = json.loads(path.read_text())
    assert report["holds"] is True
    for finding in report["findings"]:
        assert finding["attack"].split()[0] in result.stdout
    assert "FAILS" not in result.stdout


def test_a_table_that_breaks_what_is_asked_ends_in_an_error_that_names_it(tmp_path: Path) -> None:
    result = audit_of_table(*published(tmp_path, "{x|y}"), "-k", "7", "--json", "-")
    assert isinstance(result.exception, GuaranteeError)
    assert str(result.exception).endswith("out.csv: does not meet the criteria: k")
    assert json.loads(result.stdout)["holds"] is False
    assert "FAILS" in result.stderr


def test_labels_that_are_not_true_fail_though_nothing_is_asked(tmp_path: Path) -> None:
    result = audit_of_table(*published(tmp_path, "{x}"))
    assert isinstance(result.exception, GuaranteeError)
    assert "labels" in str(result.exception)


def test_no_value_or_name_of_a_record_is_printed(tmp_path: Path) -> None:
    result = audit_of_table(*published(tmp_path, "{x}"))
    for cell in ("person-", "flu", "cold", "[20-23]"):
        assert cell not in result.output
