"""The user's own model, the minimizer for it, and cross-validated scores."""

from dataclasses import replace
from math import sqrt
from pathlib import Path
from traceback import format_exception
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.app.tuning.bench import Bench, Trained, bench_of_table
from anonymizer.app.tuning.cross_validation import (
    CrossValidation,
    fold_masks,
    score_of_folds,
    score_of_split,
    usual_folds,
)
from anonymizer.app.tuning.minimized import minimize, score_of_minimized
from anonymizer.app.tuning.model_score import (
    score_of_guessing,
    score_of_original,
    score_of_release,
)
from anonymizer.app.tuning.own_model import (
    OwnModel,
    frame_of,
    frame_of_codes,
    labels_of,
    read_own_model,
)
from anonymizer.app.tuning.search import SearchSettings, tune
from anonymizer.app.tuning.space import MINIMIZER, Configuration, Space
from anonymizer.app.tuning.trial import Row, Trial, try_row
from anonymizer.app.tuning.tune_report import report_of
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Schema
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import read_table
from tests.algorithms.cells.made import cells
from tests.algorithms.records.made import categories, numbers

VALIDATION = CrossValidation(folds=3, repeats=2)


class Stump(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A type that nobody has heard of."""

    def fit(self, X: pl.DataFrame, y: Any) -> "Stump":  # noqa: ANN401, ARG002, N803
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: pl.DataFrame) -> Any:  # noqa: ANN401, N803
        raise RuntimeError(f"cannot handle {X['age'][0]}")


def stored(folder: Path, model: object) -> Path:
    from skops.io import dump  # noqa: PLC0415  slow to load

    path = folder / "mine.skops"
    dump(model, path)
    return path


def own(folder: Path, model: object | None = None) -> OwnModel:
    usual = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["work"]), remainder="passthrough"
        ),
        DecisionTreeClassifier(min_samples_leaf=2),
    )
    return read_own_model(stored(folder, model or usual), trusted=[STUMP])


STUMP = f"{Stump.__module__}.{Stump.__qualname__}"


def people(folder: Path, *, missing: bool = False) -> Path:
    """Write a table in which age and work tell the income, but for each ninth person."""
    rows = []
    for i in range(90):
        age, work = 20 + i * 7 % 40, ("farm", "shop", "army")[i % 3]
        rich = (age > 38) ^ (work == "army") ^ (i % 9 == 0)
        cell = "" if missing and i % 11 == 0 else age
        rows.append(f"{cell},{work},{('flu', 'none', 'gout')[i % 7 % 3]},{'lh'[rich]}")
    path = folder / "people.csv"
    path.write_text("\n".join(["age,work,illness,income", *rows]) + "\n")
    return path


def bench(
    folder: Path, model: object | None = None, validation: CrossValidation | None = VALIDATION
) -> Bench:
    return bench_of_table(
        read_table(people(folder)),
        Declared(qis=["age", "work"], sensitive=["illness"], keep=["income"]),
        Trained(target="income", validation=validation, own=own(folder, model)),
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return bench(tmp_path_factory.mktemp("made"))


def test_every_record_tests_once_in_each_repeat_and_nobody_is_on_both_sides() -> None:
    rng = np.random.default_rng(1)
    person = rng.integers(0, 60, 100).astype(np.int32)
    target = (rng.random(60) < 0.3).astype(np.int32)[person]
    masks = fold_masks(person, target, VALIDATION, seed=1)
    assert len(masks) == 6
    for repeat in (masks[:3], masks[3:]):
        assert (np.sum(repeat, axis=0) == 1).all()
    assert any((a != b).any() for a, b in zip(masks[:3], masks[3:], strict=True))
    rare = [len({*person[m & (target == 1)].tolist()}) for m in masks]
    assert max(rare) - min(rare) <= 1
    for mask in masks:
        assert not {*person[mask].tolist()} & {*person[~mask].tolist()}
    with pytest.raises(InputError, match=r"too few persons for 3 folds.*state fewer folds"):
        fold_masks(np.arange(3, dtype=np.int32), np.array([0, 0, 1], np.int32), VALIDATION, seed=1)


def test_the_error_of_folds_counts_that_they_share_their_training_records() -> None:
    found = score_of_folds([0.7, 0.8, 0.8, 0.9], 2)
    variance = (0.01 + 0.01) / 3
    assert (found.mean, found.error) == pytest.approx((0.8, sqrt((1 / 4 + 1) * variance)))
    assert score_of_split(0.8, 100).error == pytest.approx(0.04)


def test_folds_are_scored_as_the_direct_way_scores_them_and_all_records_are_measured(
    made: Bench, tmp_path: Path
) -> None:
    (trial,) = try_row(made, Row("cells", 5, 1, (), (2,)), max_deletion=1.0)
    direct = []
    for each in made.fold_benches():
        (window,) = each.windows
        target = ModelTarget(window.target)
        found = cells(window.records, made.schema, Promise(k=3, l=2), target=target)  # 2/3 of 5
        direct.append(score_of_release(each, [found.class_of]))
    assert trial.fold_scores == tuple(direct)
    assert (len(direct), made.n, made.n_judged) == (6, 90, 90)
    expected = score_of_folds(trial.fold_scores, 3)
    assert (trial.score, trial.score_error) == (expected.mean, expected.error)
    (window,) = made.windows
    whole = cells(window.records, made.schema, Promise(k=5, l=2), target=ModelTarget(window.target))
    assert trial.n_classes == whole.n_classes
    once = bench(tmp_path, validation=None)
    (split,) = try_row(once, Row("cells", 5, 1, (), (2,)), max_deletion=1.0)
    assert split.score is not None
    assert (split.fold_scores, once.n) == ((), 68)
    assert split.score_error == sqrt(split.score * (1 - split.score) / 22)


def test_an_own_model_learns_the_published_rows_and_is_tested_on_original_ones(
    made: Bench,
) -> None:
    fold = made.fold_benches()[0]
    (window,), (test,) = fold.windows, fold.test_windows
    class_of = (np.arange(window.records.n) // 10 - 1).astype(np.int32)  # ten are suppressed
    told = score_of_release(fold, [class_of])
    shown = frame_of_codes(window.records.qi, made.schema)
    rows = []
    for i in np.flatnonzero(class_of >= 0):
        mine = shown.filter(class_of == class_of[i])
        works = mine["work"].to_list()
        rows.append((mine["age"].median(), min(set(works), key=lambda w: (-works.count(w), w))))
    assert fold.own is not None
    labels = made.labels[window.target[class_of >= 0]]
    assert set(labels) == {"l", "h"}
    learned = pl.DataFrame(rows, schema=["age", "work"], orient="row")
    model = fold.own.fitted(learned, labels)
    tested = frame_of_codes(test.records.qi, made.schema)
    assert told == np.mean(model.predict(tested) == made.labels[test.target])
    assert score_of_release(fold, [np.full(window.records.n, -1, np.int32)]) is None
    assert (score_of_original(fold) or 0) > 0.6


def test_rows_have_numbers_texts_and_gaps() -> None:
    schema = Schema(
        qis=(numbers("x", 1.0, 2.5, missing=True), categories("c", ["a", "b"])), sensitive=(),
        sources=((0,), (1,)),
    )  # fmt: skip
    codes = np.array([[0, 1], [1, 0], [2, 1]], np.int32)
    frame = frame_of_codes(codes, schema)
    assert frame["c"].to_list() == ["b", "a", "b"]
    assert frame["x"].is_nan().to_list() == [False, False, True]
    assert frame_of(np.array([[1.75, 0.0]]), schema).row(0) == (1.75, "a")
    assert labels_of(["0", "1"]).tolist() == [0, 1]
    assert labels_of(["0", "b"]).tolist() == ["0", "b"]


def test_types_that_are_not_trusted_are_named_and_not_loaded(tmp_path: Path) -> None:
    path = stored(tmp_path, Stump())
    with pytest.raises(SettingsError, match=f"not trusted: {STUMP}; --trust"):
        read_own_model(path)
    assert isinstance(read_own_model(path, trusted=[STUMP]).model, Stump)


def test_a_file_that_holds_no_classifier_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="must hold a classifier or regressor"):
        read_own_model(stored(tmp_path, StandardScaler()))
    with pytest.raises(InputError, match="cannot be read"):
        read_own_model(tmp_path / "nowhere.skops")
    (tmp_path / "text.skops").write_text("a model")
    with pytest.raises(InputError, match="is no file of skops"):
        read_own_model(tmp_path / "text.skops")


def test_an_own_model_is_seeded_and_its_digest_is_part_of_the_bench(
    made: Bench, tmp_path: Path
) -> None:
    fitted = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    found = read_own_model(stored(tmp_path, fitted), seed=7)
    assert found.model.random_state == 7
    assert not hasattr(found.model, "coef_")
    assert replace(made, own=found).digest() != made.digest()
    assert replace(made, validation=CrossValidation(3, 1)).digest() != made.digest()


def test_a_model_that_fails_is_named_without_the_value_it_failed_on(tmp_path: Path) -> None:
    broken = bench(tmp_path, Stump())
    with pytest.raises(SettingsError, match=r"mine\.skops: the model fails .*RuntimeError") as told:
        score_of_original(broken.fold_benches()[0])
    assert "handle" not in "".join(format_exception(told.value))


def released(of: Bench, k: int, diverse: int) -> Int32Array:
    (window,) = of.windows
    promise, target = Promise(k=k, l=diverse), ModelTarget(window.target)
    return cells(window.records, of.schema, promise, target=target, seed=of.seed).class_of


def test_the_minimizer_learns_from_released_rows_and_keeps_what_they_keep(made: Bench) -> None:
    (trial,) = try_row(made, Row(MINIMIZER, 6, 1, (), (2,)), max_deletion=1.0)
    assert (trial.state, trial.deletion, len(trial.fold_scores)) == ("tried", 0.0, 6)
    assert trial.reached_k >= 6
    assert trial.reached_l >= 2
    assert 0 < trial.gcp < 1
    assert (trial.linked, trial.homogeneous) != (None, None)
    class_of = released(made, 6, 2)
    _, minimized = minimize(made, class_of)
    for cell in np.unique(class_of):  # a class of the minimizer is a union of released ones
        assert len(np.unique(minimized[class_of == cell])) == 1
    assert trial.n_classes == minimized.max() + 1
    fold = made.fold_benches()[0]
    assert score_of_minimized(fold, released(fold, 4, 2)) == trial.fold_scores[0]  # 2/3 of 6
    (none,) = try_row(made, Row(MINIMIZER, 9, 1, (), (4,)), max_deletion=1.0)
    assert none.state == "impossible"
    assert none.why == "illness has 3 values, l = 4"


def test_rows_of_the_minimizer_depend_on_k(made: Bench) -> None:
    found = [try_row(made, Row(MINIMIZER, k, 1, (), (1,)), max_deletion=1.0)[0] for k in (3, 40)]
    assert found[0].gcp < found[1].gcp
    assert [trial.reached_k >= k for trial, k in zip(found, (3, 40), strict=True)] == [True, True]


def test_a_release_that_deletes_too_much_is_no_candidate(made: Bench) -> None:
    (window,) = made.windows
    ill = np.where(window.records.qi[:, 1] == 0, np.arange(made.n) % 2, 0).astype(np.int32)
    rare = replace(window, records=replace(window.records, sensitive=ill[:, None]))
    lean = replace(made, folds=(), windows=(rare,))
    (trial,) = try_row(lean, Row(MINIMIZER, 40, 1, (), (2,)), max_deletion=-1.0)
    assert (trial.state, trial.score) == ("pruned", None)


def houses(folder: Path) -> Path:
    rows = [f"{20 + i * 7 % 40},{('farm', 'shop', 'army')[i % 3]}" for i in range(240)]
    prices = [3.0 * (20 + i * 7 % 40) + 50 * (i % 3) + i / 1000 for i in range(240)]
    lines = [f"{row},{price}" for row, price in zip(rows, prices, strict=True)]
    path = folder / "houses.csv"
    path.write_text("\n".join(["age,work,price", *lines]) + "\n")
    return path


def regressing(
    folder: Path, model: object | None, validation: CrossValidation | None = VALIDATION
) -> Bench:
    return bench_of_table(
        read_table(houses(folder)),
        Declared(qis=["age", "work"], keep=["price"]),
        Trained(
            target="price",
            validation=validation,
            own=None if model is None else own(folder, model),
        ),
    )


def test_a_target_of_numbers_is_judged_by_r2_and_by_folds(tmp_path: Path) -> None:
    columns = make_column_transformer((OneHotEncoder(), ["work"]), remainder="passthrough")
    for model in (None, make_pipeline(columns, LinearRegression())):
        of = regressing(tmp_path, model)
        assert of.is_regression
        (trial,) = try_row(of, Row("cells", 5, 1, (), (1,)), max_deletion=1.0)
        original = [score_of_original(each) or 0.0 for each in of.fold_benches()]
        assert min(original) > 0.95
        assert 0.8 < (trial.score or 0) < np.mean(original)
        assert (score_of_guessing(of.fold_benches()[0]) or 0.0) <= 0
        if model is not None:
            (minimal,) = try_row(of, Row(MINIMIZER, 5, 1, (), (1,)), max_deletion=1.0)
            assert 0.8 < (minimal.score or 0) <= 1
            assert minimal.n_classes <= trial.n_classes
    with pytest.raises(SettingsError, match="a target of numbers requires 2 or more"):
        regressing(tmp_path, None, None)


def test_a_regressor_is_refused_for_a_target_of_words(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="values that are no number"):
        bench_of_table(
            read_table(people(tmp_path)),
            Declared(qis=["age"], keep=["income"]),
            Trained(target="income", validation=VALIDATION, own=own(tmp_path, LinearRegression())),
        )


def test_the_minimizer_says_that_it_cannot_handle_gaps(tmp_path: Path) -> None:
    lacking = bench_of_table(
        read_table(people(tmp_path, missing=True)),
        Declared(qis=["age", "work"], keep=["income"]),
        Trained(target="income", validation=VALIDATION, own=own(tmp_path)),
    )
    (trial,) = try_row(lacking, Row(MINIMIZER, 4, 1, (), (1,)), max_deletion=1.0)
    assert (trial.state, trial.why) == (
        "impossible", "age lacks values, which the minimizer cannot handle"
    )  # fmt: skip


def test_the_minimizer_needs_a_model_and_makes_no_setting(made: Bench, tmp_path: Path) -> None:
    asked = SearchSettings(
        name="people.csv", space=Space(models=[MINIMIZER], k=[6], l=[1]), target="income",
        min_score=0.3, max_deletion=0.5, sort="score",
    )  # fmt: skip
    tuned = tune(made, asked, tmp_path)
    assert tuned.report.recommended is not None
    assert tuned.why_no_setting == "minimized rows are no release"
    assert not (tmp_path / "recommended.toml").exists()
    assert (tuned.report.estimator, tuned.report.validation) == ("mine.skops", VALIDATION)
    with pytest.raises(SettingsError, match="minimizer requires --estimator"):
        tune(replace(made, own=None), asked, tmp_path)


def crossed(k: int, *scores: float, model: str = "cells", gcp: float = 0.5) -> Trial:
    found = score_of_folds(scores, VALIDATION.folds)
    return Trial(
        configuration=Configuration(model=model, k=k, d=1, l=1),
        state="tried",
        n_classes=1,
        deletion=0.0,
        gcp=gcp,
        score=found.mean,
        score_error=found.error,
        fold_scores=found.folds,
    )


def recommendation(
    bench: Bench, *trials: Trial, min_score: float | None = 0.8
) -> tuple[int, set[int]]:
    """Return the recommended k, 0 for none, and the k that are undecided."""
    report = report_of(
        bench, trials, name="t", target="x", min_score=min_score, max_deletion=1.0, sort="score",
        left_out={},
    )  # fmt: skip
    assert not any(trial.within and trial.undecided for trial in report.trials)
    best = report.recommended
    return (best.configuration.k if best else 0), {t.configuration.k for t in report.undecided}


def test_a_difference_within_the_error_decides_nothing(made: Bench) -> None:
    sure = crossed(2, 0.9, 0.89, 0.91, 0.9, 0.9, 0.9)
    shaky = crossed(9, 0.9, 0.7, 0.95, 0.75, 0.9, 0.65)  # its mean is above the bound, too
    assert recommendation(made, sure, shaky) == (2, {9})
    low = crossed(20, 0.5, 0.52, 0.5, 0.51, 0.5, 0.52)
    assert recommendation(made, sure, shaky, low) == (2, {9})
    # Of equal privacy, a score that is higher by less than its error does not outweigh the loss.
    higher, less = crossed(4, 0.9, 0.85, 0.95, 0.9, 0.85, 0.96), crossed(
        4, 0.9, 0.85, 0.95, 0.9, 0.85, 0.95, gcp=0.1, model="kaca"
    )  # fmt: skip
    report = report_of(
        made, [higher, less], name="t", target="x", min_score=0.5, max_deletion=1.0, sort="score",
        left_out={},
    )  # fmt: skip
    assert report.recommended is not None
    assert report.recommended.gcp == 0.1


def test_scores_are_compared_with_the_original_ones_fold_by_fold(made: Bench) -> None:
    original = [score_of_original(each) or 0.0 for each in made.fold_benches()]
    assert np.ptp(original) > 0.04  # folds differ, but a release that loses 0.01 in each does not
    assert recommendation(made, crossed(5, *(s - 0.01 for s in original)), min_score=None) == (
        5,
        set(),
    )
    below = sum(original) / len(original) - 0.02
    assert recommendation(made, crossed(5, *(s - 0.01 for s in original)), min_score=below) == (
        0,
        {5},
    )


def test_a_release_comes_before_what_the_minimizer_makes(made: Bench) -> None:
    scores = (0.9, 0.89, 0.91, 0.9, 0.9, 0.9)
    minimal = crossed(50, *scores, model=MINIMIZER)
    assert recommendation(made, minimal, crossed(3, *scores)) == (3, set())
    assert recommendation(made, minimal) == (50, set())


def test_a_small_table_has_folds_and_no_bound_that_its_error_hides(made: Bench) -> None:
    assert [usual_folds(n, 0.25, always=False) for n in (569, 2499, 2500)] == [5, 5, 0]
    assert usual_folds(100_000, 0.25, always=True) == 5
    original = score_of_folds(
        [score_of_original(each) or 0.0 for each in made.fold_benches()], VALIDATION.folds
    )
    assert original.error > 0.02
    losing = [fold - 0.8 * original.error for fold in original.folds]
    assert recommendation(made, crossed(5, *losing), min_score=None) == (5, set())
    losing = [fold - 1.2 * original.error for fold in original.folds]
    assert recommendation(made, crossed(5, *losing), min_score=None) == (0, set())
