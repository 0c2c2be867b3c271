"""Scores of releases: of targets that some records lack, and of k near the size of the table."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonymizer.app.tuning.bench import Bench, Learner, TargetKind, Trained, bench_of_table
from anonymizer.app.tuning.cross_validation import CrossValidation
from anonymizer.app.tuning.forming import for_part
from anonymizer.app.tuning.trial import Row, try_row
from anonymizer.app.tuning.tune_report import report_of
from anonymizer.domain.promises import Promise
from anonymizer.errors import SettingsError
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import TextTable, read_table


def table_of(folder: Path, columns: dict[str, list[Any]]) -> TextTable:
    path = folder / "table.csv"
    pl.DataFrame(columns).write_csv(path)
    return read_table(path, list(columns))


def tuned_table(
    folder: Path,
    target: list[Any],
    *,
    folds: int = 5,
    kind: TargetKind | None = None,
    learner: Learner = "tree",
) -> Bench:
    """Four groups of equal rows, and a target of each row."""
    x = np.arange(len(target)) % 4
    table = table_of(folder, {"x": x.tolist(), "y": target})
    validation = CrossValidation(folds, 1) if folds else None
    trained = Trained(target="y", validation=validation, kind=kind, learner=learner)
    return bench_of_table(table, Declared(qis=["x"], keep=["y"]), trained)


@pytest.mark.parametrize("model", ["cells", "kaca", "kd"])
def test_equal_releases_have_equal_scores_up_to_the_size_of_their_classes(
    model: str, tmp_path: Path
) -> None:
    target = ["hi" if i % 4 >= 2 else "lo" for i in range(200)]
    made = tuned_table(tmp_path, target)
    d = 2 if model == "kd" else 1
    found = {
        k: try_row(made, Row(model, k, d, (), (1,)), max_deletion=0.0)[0] for k in (70, 90, 100)
    }
    assert {trial.reached_k for trial in found.values()} == {100}
    assert [trial.score for trial in found.values()] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("k", "diverse", "share", "scaled"),
    [(200, 1, 0.8, 160), (2, 1, 0.5, 2), (5, 5, 0.8, 5), (10, 3, 0.25, 3), (9, 1, 1.0, 9)],
)
def test_k_is_the_same_share_of_a_part_and_leaves_room_for_l(
    k: int, diverse: int, share: float, scaled: int
) -> None:
    assert for_part(Promise(k=k, l=diverse), share) == Promise(k=scaled, l=diverse)


@pytest.mark.parametrize("folds", [0, 4])
@pytest.mark.parametrize("learner", ["tree", "forest"])
def test_rows_without_a_target_are_released_and_neither_train_nor_test(
    folds: int, learner: Learner, tmp_path: Path
) -> None:
    stated = ["hi" if i % 4 >= 2 else "lo" for i in range(200)]
    lacking = [None if i % 3 == 0 else value for i, value in enumerate(stated)]
    made = tuned_table(tmp_path, lacking, folds=folds, learner=learner)
    trial = try_row(made, Row("kaca", 5, 1, (), (1,)), max_deletion=1.0)[0]
    assert trial.score == 1.0
    assert made.n + (0 if folds else made.test_windows[0].records.n) == 200
    assert made.n_unstated == 67
    report = report_of(made, [trial], name="t", target="y", min_score=None, max_deletion=0.5,
                       sort="score", left_out={})  # fmt: skip
    assert report.original_score == 1.0
    assert report.guessing_score is not None
    assert report.guessing_score < 0.7
    assert report.n_unstated == 67


@pytest.mark.parametrize("model", ["cells", "kaca"])
def test_a_target_of_numbers_may_lack_some(model: str, tmp_path: Path) -> None:
    numbers = [None if i % 10 == 0 else i % 4 + (i % 7) / 100 for i in range(200)]
    made = tuned_table(tmp_path, numbers, kind="number")
    trial = try_row(made, Row(model, 5, 1, (), (1,)), max_deletion=1.0)[0]
    assert trial.score is not None
    assert trial.score > 0.95
    assert (made.n, made.n_unstated, made.n_judged) == (200, 20, 180)


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        ([None] * 20, None, "target: is missing in every row"),
        (["?", None, "NA"] * 7, None, "target: is missing in every row"),
        ([None] * 20, "number", "target: is missing in every row"),
        (["same"] * 20, None, "target: has the same value in every row"),
        ([3.5, None] * 10, "number", "target: has the same value in every row"),
    ],
)
def test_a_target_that_teaches_nothing_is_refused_with_what_to_do(
    target: list[Any], kind: TargetKind | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=message) as refused:
        tuned_table(tmp_path, target, kind=kind)
    assert "name another column" in str(refused.value) or "filled in" in str(refused.value)
