"""`anonymizer cloak`, as a user calls it."""

import json
import os
import re
from pathlib import Path

import polars as pl
import pytest

from tests.cli.support import anonymizer

DEVICES = 40


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two rounds of devices that stand close together, the second with one far away."""
    rows = [
        (f"tram-{i}", 1_000.0 + 60 * turn, 60.1699 + i * 1e-5, 24.9384)
        for turn in range(2)
        for i in range(DEVICES)
    ]
    rows[-1] = (rows[-1][0], rows[-1][1], 60.21, 24.9384)
    path = tmp_path / "trace.csv"
    columns = ["device_id", "ts", "lat", "lon"]
    pl.DataFrame(rows, schema=columns, orient="row").write_csv(path)
    return path


def figures(table: str) -> dict[str, str]:
    """Read the table that is printed at the end."""
    return dict(re.findall(r"^ *(\D.*?)  +(\S.*?) *$", table, re.MULTILINE))


def test_equal_seeds_give_equal_files_and_every_row_is_accounted_for(
    trace: Path, tmp_path: Path
) -> None:
    def cloak(name: str, seed: int) -> tuple[bytes, dict[str, str]]:
        out = tmp_path / name
        told = anonymizer(
            *("cloak", trace, "--network", "grid:21x21", "--region", "adka"),
            *("--out", out, "--seed", str(seed)),
            *("--auditor-map", tmp_path / "map.jsonl"),
        )
        assert told.returncode == 0, told.stderr
        return out.read_bytes(), figures(told.stderr)

    first, table = cloak("first.jsonl", 7)
    assert first == cloak("again.jsonl", 7)[0]
    assert first != cloak("other.jsonl", 8)[0]
    lines = [json.loads(line) for line in first.splitlines()]
    published = sum(bool(line["region"]) for line in lines)
    assert (table["positions received"], table["unaccounted for"]) == (str(2 * DEVICES), "0")
    assert (table["published"], table["suppressed off graph"]) == (str(published), "1")
    assert published == 2 * DEVICES - 1


def test_a_release_is_printed_and_no_file_is_named_like_standard_output(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("cloak", trace, "--network", "grid:21x21", "--region", "adka", "--seed", "7")
    told = anonymizer(*command, "--out", "-")
    assert anonymizer(*command, "--out", "file").returncode == told.returncode == 0
    assert told.stdout == Path("file").read_text() != ""
    secret = anonymizer(*command, "--out", "file", "--auditor-map", "-")
    assert (secret.returncode, secret.stdout) == (2, "")
    assert "-: cannot be written: standard output is no file; name one" in secret.stderr
    assert not Path("-").exists()


def test_without_a_seed_nobody_can_compute_a_pseudonym(trace: Path, tmp_path: Path) -> None:
    def pseudonyms(name: str, *seed: str) -> tuple[set[str], str]:
        told = anonymizer(
            *("cloak", trace, "--network", "grid:21x21", "--region", "adka"),
            *("--out", tmp_path / name),
            *seed,
        )
        assert told.returncode == 0, told.stderr
        lines = (tmp_path / name).read_text().splitlines()
        named = {json.loads(line)["pseudonym"] for line in lines} - {""}
        return named, told.stderr

    one, quiet = pseudonyms("one.jsonl")
    other, _ = pseudonyms("other.jsonl")
    seeded, warned = pseudonyms("seeded.jsonl", "--seed", "0")
    assert len(one) == len(other) == len(seeded) > 0
    assert one & other == one & seeded == set()
    assert "reproducible" in warned
    assert "reproducible" not in quiet


def test_the_settings_choose_the_region_unless_an_option_does(trace: Path, tmp_path: Path) -> None:
    config, out = tmp_path / "gateway.toml", tmp_path / "out.jsonl"
    config.write_text('[region]\nmode = "adka"\n')

    def release(*options: str | Path) -> bytes:
        words = ("cloak", trace, "--network", "grid:21x21", "--out", out, "--seed", "1")
        assert anonymizer(*words, *options).returncode == 0
        return out.read_bytes()

    assert release("--config", config) == release("--region", "adka")
    assert (
        release("--config", config, "--region", "session")
        == release()
        != release("--config", config)
    )


def test_readings_come_from_the_columns_that_the_settings_declare(
    trace: Path, tmp_path: Path
) -> None:
    config, out = tmp_path / "gateway.toml", tmp_path / "out.jsonl"
    reading = '[[readings]]\nname = "load[kg]"\nlo = 0\nhi = 50\nstatistics = ["mean", "each"]\n'
    config.write_text(reading + "[presence]\nttl_s = 240\n")
    pl.read_csv(trace).with_row_index("load[kg]").write_csv(trace)
    told = anonymizer(
        *("cloak", trace, "--network", "grid:21x21", "--region", "snapshot"),
        *("--out", out, "--config", config),
    )
    assert told.returncode == 0, told.stderr
    table = figures(told.stderr)
    assert table["clamped, load[kg]"] == str(2 * DEVICES - 52)
    assert table["groups published without it"] == "0"
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    loads = sorted(line["values"]["load[kg]"] for line in lines if line["region"])
    # The last device, off the roads in the second round, is as it was, as if it had fallen silent.
    assert loads == sorted([*(min(50, i) for i in range(2 * DEVICES - 1)), DEVICES - 1])


def test_a_trace_that_does_not_fit_the_network_is_one_line_and_exit_2(
    tmp_path: Path,
) -> None:
    trace = tmp_path / "nodes.csv"
    trace.write_text("device_id,ts,node\na,1,900\n")
    told = anonymizer("cloak", trace, "--network", "grid:5x5", "--out", tmp_path / "out.jsonl")
    assert told.returncode == 2
    assert told.stderr.splitlines()[-1].startswith("anonymizer: ")


@pytest.mark.data
def test_an_hour_of_taxis_is_the_same_bytes_twice_and_accounted_for(tmp_path: Path) -> None:
    data = Path(os.environ["ANONYMIZER_DATA"])
    hour = pl.read_parquet(data / "traces" / "cabspotting_sf_2008-05-19_20.parquet")
    start = float(hour["ts"].min())  # type: ignore[arg-type]
    hour = hour.filter(pl.col("ts").is_between(start + 10 * 3_600, start + 11 * 3_600))
    trace, network = tmp_path / "hour.parquet", data / "networks" / "san_francisco"
    hour.write_parquet(trace)
    releases = []
    for name in ("first.jsonl", "again.jsonl"):
        out = tmp_path / name
        told = anonymizer(
            *("cloak", trace, "--network", str(network), "--region", "adka"),
            *("--out", out, "--tick", "10", "--seed", "3"),
        )
        assert told.returncode == 0, told.stderr
        table = figures(told.stderr)
        assert int(table["positions received"].replace(",", "")) == len(hour)
        assert table["unaccounted for"] == "0"
        releases.append(out.read_bytes())
    assert releases[0] == releases[1]
    lines = [json.loads(line) for line in releases[0].splitlines()]
    published = sum(bool(line["region"]) for line in lines)
    assert int(table["published"].replace(",", "")) == published > 0.3 * len(hour)


@pytest.mark.parametrize("mode", ["session", "adka"])
def test_why_nothing_is_published_is_said(mode: str, trace: Path, tmp_path: Path) -> None:
    pl.read_csv(trace).filter(pl.col("device_id") == "tram-0").write_csv(trace)
    place = ("--network", "grid:21x21", "--region", mode)
    told = anonymizer("cloak", trace, *place, "--out", tmp_path / "out.jsonl")
    assert told.returncode == 2
    assert "no group was formed: too few devices" in " ".join(told.stderr.split())
