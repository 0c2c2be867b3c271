"""The comparer of ratios fails when one is 20 % worse than stored, and only then."""

import json
import math
from pathlib import Path

import pytest

from benchmarks import ratios
from benchmarks.__main__ import main, outcome_of
from benchmarks.tables import Table

STORED = {"core/json.loads": 0.5, "relay/gateway": 1.1}


@pytest.mark.parametrize(
    ("factor", "fails"), [(0.1, False), (1.0, False), (1.19, False), (1.21, True), (9.0, True)]
)
def test_a_ratio_that_is_a_fifth_worse_fails(factor: float, *, fails: bool) -> None:
    found = {"relay/gateway": 1.1, "core/json.loads": factor * 0.5}
    assert ratios.worse(found, STORED) == (["core/json.loads"] if fails else [])


@pytest.mark.parametrize("unmeasured", [math.nan, math.inf, 0.0, -1.0])
def test_a_ratio_that_could_not_be_measured_fails_and_is_never_stored(
    unmeasured: float, tmp_path: Path
) -> None:
    found = {"core/json.loads": unmeasured}
    assert ratios.worse(found, STORED) == ["core/json.loads"]
    with pytest.raises(ValueError, match="is no ratio"):
        ratios.store(found, tmp_path / "ratios.json")
    assert not list(tmp_path.iterdir())


def test_a_new_ratio_passes_and_a_missing_one_is_not_compared() -> None:
    assert ratios.worse({"new": 9.0}, STORED) == []
    table = ratios.compared({"new": 9.0, "core/json.loads": 1.0}, STORED)
    assert [row[-1] for row in table.rows] == ["new", "worse"]


def test_storing_a_run_keeps_what_other_runs_have_stored(tmp_path: Path) -> None:
    file = tmp_path / "ratios.json"
    assert ratios.read(file) == {}
    ratios.store({"b": 2.0, "a": 1.23456}, file)
    ratios.store({"b": 3.0}, file)
    assert ratios.read(file) == {"a": 1.23, "b": 3.0}
    assert list(json.loads(file.read_text())) == ["a", "b"]


def test_the_ratios_of_the_project_are_stored_and_measurable() -> None:
    stored = ratios.read()
    assert stored
    assert ratios.worse(stored, stored) == []


def test_a_run_with_a_worse_ratio_ends_with_1_and_names_it(tmp_path: Path) -> None:
    file = tmp_path / "ratios.json"
    ratios.store(STORED, file)
    bad = Table("t", ("a",), [("b",)], ratios={"core/json.loads": 0.7})
    good = Table("t", ("a",), [("b",)], ratios={"core/json.loads": 0.4, "relay/gateway": 1.1})
    assert outcome_of([good], file)[1] == 0
    shown, code = outcome_of([good, bad], file)
    assert code == 1
    assert shown is not None
    assert ("core/json.loads", "worse") in [(row[0], row[-1]) for row in shown.rows]
    assert outcome_of([Table("t", ("a",), [("b",)])], file) == (None, 0)


def test_ratios_of_tiny_sizes_cannot_be_stored(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--quick", "--store"])
    assert stopped.value.code == 2
    assert "--store" in capsys.readouterr().err
