"""The benchmarks, tiny: they run, and their peers do the same work."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anonymizer.codecs import CODECS
from anonymizer.domain.fixes import Fix
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.costs import Stopwatch
from benchmarks.gateways import Scrape
from benchmarks.payloads import messages
from benchmarks.tables import Table, as_json, as_markdown
from benchmarks.timing import agree, best_of, runs_for
from tests.codecs.test_native import naive_decode


def quick_run(tmp_path: Path, *names: str) -> dict[str, Any]:
    """Run benchmarks with tiny sizes; return their results, which are also on a page."""
    found, page = tmp_path / "found.json", tmp_path / "page.md"
    files = ["--json", str(found), "--markdown", str(page)]
    command = [sys.executable, "-m", "benchmarks", *names, "--quick", *files]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=590, check=False)
    assert ran.returncode == 0, ran.stderr
    results: dict[str, Any] = json.loads(found.read_text())
    assert results["machine"]["cores"]
    assert list(results["benchmarks"]) == list(names)
    text = page.read_text()
    for tables in results["benchmarks"].values():
        for table in tables:
            assert table["title"] in text
            assert table["rows"]
            cells = [cell for row in table["rows"] for cell in row.values()]
            assert all(isinstance(cell, str) or cell >= 0 for cell in cells)
    return results


@pytest.mark.parametrize("codec", CODECS)
def test_each_codec_that_is_timed_reads_its_typical_message(codec: str) -> None:
    for payload in messages(codec, 2):
        assert [type(each) for each in CODECS[codec](payload)] == [Fix]
        if codec == "native":
            assert CODECS[codec](payload) == naive_decode(payload)


def test_every_part_of_a_tick_that_is_timed_exists() -> None:
    with Stopwatch().running():
        pass


@pytest.mark.soak
def test_every_benchmark_in_memory_runs_and_fills_its_tables(tmp_path: Path) -> None:
    of_processes = {"bus", "cluster", "durable", "end_to_end", "followers", "freshness", "gaps"}
    of_processes |= {"sustained"}
    quick_run(tmp_path, *(name for name in BENCHMARKS if name not in of_processes))


@pytest.mark.soak
def test_the_gateway_and_the_relays_carry_a_little_load_through_mosquitto(tmp_path: Path) -> None:
    results = quick_run(tmp_path, "end_to_end")
    runs = {row["program"]: row for row in results["benchmarks"]["end_to_end"][0]["rows"]}
    assert list(runs) == ["gateway", "bare", "reads", "paho"]
    for probed in runs.values():
        assert probed["yielded"] == probed["lost"] == 0
        assert 0 < probed["probe p50, ms"] <= probed["probe p99, ms"]
    assert runs["gateway"]["published/s"] > 0
    assert runs["bare"]["published/s"] == ""


@pytest.mark.soak
def test_the_benchmark_of_freshness_measures_cloaked_positions(tmp_path: Path) -> None:
    [run] = quick_run(tmp_path, "freshness")["benchmarks"]["freshness"][0]["rows"]
    assert run["published/s"] > 50
    assert 0 < run["age mean, s"] < run["age p95, s"] < 3
    assert 0 < run["region p50, s"] <= run["region p99, s"]


def test_an_unknown_benchmark_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["adka", "adak"])
    assert stopped.value.code == 2
    assert "adak: no such benchmark" in capsys.readouterr().err


def test_the_first_run_is_never_counted() -> None:
    seen: list[int] = []
    assert 0 <= best_of(seen.append, iter(range(3))) < math.inf
    assert seen == [0, 1, 2]
    with pytest.raises(ValueError, match="empty"):
        best_of(seen.append, [0])


def test_small_works_run_more_often_within_bounds() -> None:
    assert [runs_for(n) for n in (1, 10_000, 10_000_000)] == [50, 10, 5]


def test_a_peer_that_answers_otherwise_is_not_timed() -> None:
    agree([1], [1])
    with pytest.raises(RuntimeError, match="answers otherwise"):
        agree([1], [2])


def test_tables_say_numbers_so_that_they_can_be_compared() -> None:
    table = Table("t", ("name", "n", "µs"), [("a", 12_345, 0.1234), ("b", 6, math.nan)], ("why",))
    assert as_markdown(table).splitlines() == [
        "### t", "", "| name | n | µs |", "| --- | --: | --: |",
        "| a | 12,345 | 0.12 |", "| b | 6 | nan |", "", "- why",
    ]  # fmt: skip
    assert as_json(table)["rows"] == [
        {"name": "a", "n": 12_345, "µs": 0.1234},
        {"name": "b", "n": 6, "µs": None},
    ]


def test_quantiles_come_from_what_happened_between_two_scrapes() -> None:
    def scrape(*counts: int) -> Scrape:
        edges = ("0.1", "0.3", "+Inf")
        return Scrape(
            {f'h_bucket{{le="{edge}"}}': n for edge, n in zip(edges, counts, strict=True)}
        )

    between = scrape(15, 25, 25) - scrape(5, 5, 5)
    assert between.quantile("h", 0.5) == pytest.approx(0.1)
    assert between.quantile("h", 0.75) == pytest.approx(0.2)
    assert math.isnan((between - between).quantile("h", 0.5))
    assert math.isinf((scrape(0, 0, 1) - scrape(0, 0, 0)).quantile("h", 0.5))
