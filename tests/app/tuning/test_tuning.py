"""The search for k and l: what is tried, found, kept, and recommended."""

import gc
import multiprocessing
import os
import re
import resource
import time
import tomllib
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

from anonymizer.algorithms.cells.tree_features import encode, values_of
from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.task import ModelTarget, Task
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.app.tuning import trial as trying
from anonymizer.app.tuning.bench import (
    Bench,
    TargetKind,
    Trained,
    Window,
    bench_of_table,
    predicts_numbers,
    split_persons,
    split_windows,
)
from anonymizer.app.tuning.journal import TrialJournal
from anonymizer.app.tuning.model_score import (
    leaf_share,
    score_of_guessing,
    score_of_original,
    score_of_release,
)
from anonymizer.app.tuning.proposal import proposal_for_stream, proposal_for_table
from anonymizer.app.tuning.search import SearchSettings, search, tune
from anonymizer.app.tuning.space import Configuration, Space
from anonymizer.app.tuning.time_shares import RowTime
from anonymizer.app.tuning.trial import Row, Trial, try_row
from anonymizer.app.tuning.tune_report import Sort, TuneReport, front, report_of
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Schema
from anonymizer.errors import GuaranteeError, InputError, SettingsError
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import TextTable, read_table
from anonymizer.pipeline.records.declaration import declare
from anonymizer.settings import PromiseSettings, Settings, StreamSettings
from tests.algorithms.cells.made import cells
from tests.algorithms.records.made import SCHEMA, categories, numbers
from tests.app.tuning.tables import bench, window
from tests.pipeline.records.made import FLEET

GRID = Space(models=["cells", "kld"], k=[2, 5, 9], l=[1, 2, 3])


def grid(space: Space = GRID) -> list[Configuration]:
    return space.configurations(sensitive=True)


def found(bench: Bench, folder: Path, *, jobs: int = 1, max_deletion: float = 1.0) -> list[Trial]:
    journal = TrialJournal(folder / "journal.jsonl", bench.digest())
    return search(bench, grid(), journal, jobs=jobs, max_deletion=max_deletion)


def test_the_grid_has_l_from_1_to_k_and_nothing_that_says_nothing_new() -> None:
    triangle = Space(models=["cells"], k=range(2, 21)).configurations(sensitive=True)
    assert len(triangle) == sum(range(2, 21))
    assert all(1 <= each.l <= each.k for each in triangle)
    by_model = Counter(each.model for each in grid(replace(GRID, models=["kd", "kld", "cells"])))
    assert by_model == {"kd": 3, "kld": 5, "cells": 8}
    alone = Space(models=["cells", "kd"], k=[4]).configurations(sensitive=False)
    assert {each.l for each in alone} == {1}


@pytest.mark.parametrize(
    ("changes", "sensitive"),
    [
        ({"models": ["none"]}, True),
        ({"l": [2]}, False),
        ({"k": [1]}, True),
        ({"models": ["kld"], "l": [9], "k": [5]}, True),
        ({"models": ["kld"], "l": []}, False),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(
    changes: dict[str, Any],
    sensitive: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    with pytest.raises(SettingsError):
        replace(GRID, **changes).configurations(sensitive=sensitive)


@given(st.integers(0, 5), st.integers(3, 9), st.sampled_from([(1, 2), (1, 3), (2, 3)]))
def test_a_row_finds_of_each_l_what_the_direct_way_finds(
    seed: int, k: int, ls: tuple[int, ...]
) -> None:
    made = bench(60, seed=seed)
    (here,) = made.windows
    for trial in try_row(made, Row("cells", k, 1, (), ls), max_deletion=1.0):
        promise = Promise(k=k, l=trial.configuration.l)
        direct = cells(
            here.records, SCHEMA, promise, target=ModelTarget(here.target), seed=seed
        ).class_of
        members = [np.flatnonzero(direct == c) for c in range(direct.max() + 1)]
        assert trial.n_classes == len(members)
        assert trial.deletion == pytest.approx(np.mean(direct < 0))
        assert trial.lossless is bool((direct >= 0).all())
        assert trial.reached_k == min((len(m) for m in members), default=0)
        values = [{int(v) for v in here.records.sensitive[m, 0]} for m in members]
        assert trial.reached_l == min((len(v) for v in values), default=0)
        alike = sum(len(m) for m, v in zip(members, values, strict=True) if len(v) == 1)
        if members:
            assert trial.homogeneous == pytest.approx(alike / sum(map(len, members)))


@given(st.integers(0, 20))
def test_the_score_is_that_of_a_tree_that_learns_every_published_row(seed: int) -> None:
    made = bench(80, seed=seed)
    (here,), (judged,) = made.windows, made.test_windows
    class_of = cells(here.records, SCHEMA, Promise(k=5), target=ModelTarget(here.target)).class_of
    values = values_of(here.records.qi, SCHEMA.qis)
    for member in (np.flatnonzero(class_of == c) for c in range(class_of.max() + 1)):
        missing = here.records.qi[member, 0] == SCHEMA.qis[0].missing
        ages = values[member, 0]  # of a class that has mostly none, the age is that of the marker
        age = ages.max() if 2 * missing.sum() > len(member) else np.median(ages[~missing])
        most = [Counter(here.records.qi[member, j].tolist()).most_common() for j in (1, 2)]
        values[member] = [age, *(min(v for v, n in m if n == m[0][1]) for m in most)]
    kept = class_of >= 0
    model = DecisionTreeClassifier(min_weight_fraction_leaf=leaf_share(made), random_state=seed)
    model.fit(encode(values, SCHEMA.qis)[kept], here.target[kept])
    shown = encode(values_of(judged.records.qi, SCHEMA.qis), SCHEMA.qis)
    # A leaf's majority may be a tie, which two trees break alike only by chance.
    expected = float(np.mean(model.predict(shown) == judged.target))
    told = score_of_release(made, [class_of])
    assert told is not None
    assert abs(told - expected) <= 0.1


def with_targets(made: Bench, target_of: Callable[[Window], IntArray]) -> Bench:
    """Return a bench with other targets."""
    windows, judged = (
        tuple(replace(w, target=target_of(w).astype(np.int32)) for w in each)
        for each in (made.windows, made.test_windows)
    )
    return replace(made, windows=windows, test_windows=judged)


def test_the_bar_is_not_lowered_by_noise_that_an_overgrown_tree_learns() -> None:
    rng = np.random.default_rng(1)
    learned, overgrown = [], []
    for seed in range(4):
        noise = with_targets(
            bench(120, seed=seed), lambda w: (rng.random(w.records.n) < 0.3).astype(np.int64)
        )
        (here,), (judged,) = noise.windows, noise.test_windows
        shown = [encode(values_of(w.records.qi, SCHEMA.qis), SCHEMA.qis) for w in (here, judged)]
        tree = DecisionTreeClassifier(random_state=seed).fit(shown[0], here.target)
        overgrown.append(tree.score(shown[1], judged.target))
        learned.append(score_of_original(noise) or 0.0)
    assert np.mean(learned) > np.mean(overgrown)


def test_a_target_of_many_small_groups_is_learned_from_them() -> None:
    parity = with_targets(bench(400), lambda w: w.records.qi.sum(axis=1) % 2)
    assert leaf_share(parity) < 0.02
    assert (score_of_original(parity) or 0) > 0.9


def test_what_is_chosen_of_training_records_is_chosen_once_and_ends_with_them() -> None:
    made = bench(60)
    assert score_of_original(made) is not None
    assert made.leaf_share == [leaf_share(made)]
    assert not replace(made, seed=1).leaf_share
    records = weakref.ref(made.windows[0].records.qi)
    del made
    gc.collect()
    assert records() is None


def test_a_release_from_which_nothing_is_left_has_no_score() -> None:
    made = bench()
    assert score_of_release(made, [np.full(made.n, -1, np.int32)]) is None
    assert score_of_original(replace(made, test_windows=())) is None


def test_a_forest_learns_too() -> None:
    trials = try_row(bench(learner="forest"), Row("cells", 3, 1, (), (1,)), max_deletion=1.0)
    assert trials[0].score is not None
    assert trials[0].score > 0.5


def test_a_promise_that_no_table_keeps_is_shown_with_its_reason() -> None:
    (trial,) = try_row(bench(), Row("cells", 9, 1, (), (4,)), max_deletion=1.0)
    assert (trial.state, trial.why) == ("impossible", "illness has 3 values, l = 4")
    assert trial.score is None
    assert trial.deletion == 1.0


def test_a_class_that_breaks_its_promise_ends_the_search() -> None:
    wrong = replace(MODELS["kd"], methods={"each alone": _each_alone})
    with pytest.raises(GuaranteeError, match="breaches"):
        try_row(bench(), Row("kd", 3, 1, (), (1,)), max_deletion=1.0, models={"kd": wrong})


def _each_alone(task: Task) -> Int32Array:
    return np.arange(task.records.n, dtype=np.int32)


def test_every_window_is_anonymized_for_itself() -> None:
    made = bench(40, windows=3)
    (whole,) = try_row(made, Row("kld", 6, 2, (), (2,)), max_deletion=1.0)
    alone = [
        try_row(replace(made, windows=(each,)), Row("kld", 6, 2, (), (2,)), max_deletion=1.0)[0]
        for each in made.windows
    ]
    assert whole.n_classes == sum(each.n_classes for each in alone)
    assert whole.reached_k == min(each.reached_k for each in alone)
    sizes = [each.records.n for each in made.windows]
    assert whole.gcp == pytest.approx(np.average([each.gcp for each in alone], weights=sizes))


def test_a_quasi_identifier_that_is_left_out_is_lost_whole_and_gone_from_what_is_learned() -> None:
    made = bench()
    (whole,) = try_row(made, Row("cells", 4, 1, (), (1,)), max_deletion=1.0)
    (less,) = try_row(made, Row("cells", 4, 1, ("work", "home"), (1,)), max_deletion=1.0)
    assert less.gcp >= 2 / 3
    shown = trying.without(made, ("age", "work"))
    assert [qi.name for qi in shown.schema.qis] == ["home"]
    assert shown.schema.sources == ((0,),)
    assert (shown.windows[0].records.qi[:, 0] == made.windows[0].records.qi[:, 2]).all()
    assert whole.configuration.without == ()


@pytest.mark.soak
def test_a_search_whose_process_was_killed_goes_on_to_what_one_process_finds(
    tmp_path: Path,
) -> None:
    made = bench(windows=2)
    many = Space(models=["cells", "kld"], k=range(2, 60), l=[2]).configurations(sensitive=True)

    def kill(done: int) -> None:
        for each in multiprocessing.active_children() if done else ():
            each.kill()

    def journal(name: str) -> TrialJournal:
        return TrialJournal(tmp_path / name, made.digest())

    with pytest.raises(InputError, match="ended from outside"):
        search(made, many, journal("two"), jobs=2, progress=kill)
    assert 0 < len(journal("two").known) < len(many)
    assert search(made, many, journal("two"), jobs=2) == search(made, many, journal("one"))


def test_a_search_that_was_ended_goes_on_and_finds_the_same(tmp_path: Path) -> None:
    made = bench()
    whole = found(made, tmp_path)
    path = tmp_path / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == len(whole)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:20])  # killed in the midst of a line
    seen: list[int] = []
    journal = TrialJournal(path, made.digest())
    assert search(made, grid(), journal, progress=seen.append) == whole
    assert seen[0] == 4
    assert TrialJournal(path, made.digest()).known == {each.configuration: each for each in whole}
    assert not TrialJournal(path, bench(seed=1).digest()).known


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_what_had_no_time_is_listed_as_such_and_tried_when_the_search_is_continued(
    jobs: int, tmp_path: Path
) -> None:
    made = bench()
    late = TrialJournal(tmp_path / "late.jsonl", made.digest())
    none = search(made, grid(), late, jobs=jobs, deadline_s=time.monotonic())
    assert [trial.configuration for trial in none] == grid()
    assert {trial.state for trial in none} == {"no_time"}
    assert not late.known
    whole = found(made, tmp_path)
    assert search(made, grid(), late, jobs=jobs) == whole
    again = TrialJournal(tmp_path / "late.jsonl", made.digest())
    assert search(made, grid(), again, deadline_s=time.monotonic()) == whole
    report = report_of(
        made, none, name="t", target="x", min_score=0.0, max_deletion=1.0, sort="score", left_out={}
    )
    assert (len(report.trials), report.within, report.recommended) == (len(none), (), None)


def test_a_search_ends_with_its_work_whatever_the_clock_says_and_tells_that_it_was_cut_short() -> (
    None
):
    made, row = bench(4_000), Row("kd", 5, 2, (), (1,))

    def tried(search_s: float, clock: Callable[[], float]) -> Trial:
        row_time = RowTime(clock=clock, search_s=search_s)
        (trial,) = try_row(made, row, max_deletion=1.0, row_time=row_time)
        return trial

    hours = count(step=3600.0)
    quiet, busy = tried(0.05, time.monotonic), tried(0.05, lambda: next(hours))
    assert quiet == busy
    assert (quiet.state, quiet.cut_short) == ("tried", True)
    assert (tried(0.5, time.monotonic).gcp or 1) < (quiet.gcp or 0)
    (tree,) = try_row(made, Row("cells", 5, 1, (), (1,)), max_deletion=1.0)
    assert not tree.cut_short


def test_trials_of_searches_depend_on_no_number_of_processes(tmp_path: Path) -> None:
    made, few = (
        bench(1_000),
        Space(models=["kd"], k=[2, 5, 9], l=[1]).configurations(sensitive=True),
    )

    def searched(jobs: int) -> list[Trial]:
        journal = TrialJournal(tmp_path / f"{jobs}.jsonl", made.digest())
        return search(made, few, journal, jobs=jobs, time_budget_s=0.6)

    assert searched(1) == searched(2)


def test_a_bound_prunes_early_and_the_journal_serves_every_other_bound(tmp_path: Path) -> None:
    made = bench(60)
    made = replace(made, windows=(*made.windows, window(4, seed=9)))  # too few for a k of 5
    strict = found(made, tmp_path, max_deletion=0.0)
    pruned = [trial for trial in strict if trial.state == "pruned"]
    assert pruned
    assert all(trial.score is None and trial.deletion > 0 for trial in pruned)
    loose = found(made, tmp_path)
    assert all(trial.state != "pruned" for trial in loose)
    (tmp_path / "new").mkdir()
    assert loose == found(made, tmp_path / "new")
    assert strict == found(made, tmp_path, max_deletion=0.0)


def test_digests_differ_where_the_records_or_the_question_do() -> None:
    made = bench()
    (here,) = made.windows
    others = [
        made,
        bench(seed=1),
        replace(made, seed=1),
        replace(made, learner="forest"),
        replace(made, base=Promise(k=2, t=0.5)),
        replace(made, stated={"max_share": 0.9}),
        replace(made, test_windows=()),
        replace(made, windows=(Window(here.records, 1 - here.target),)),
    ]
    assert len({each.digest() for each in others}) == len(others)
    assert bench().digest() == made.digest()


@pytest.mark.parametrize(("d", "shares"), [(1, (1.0, 1.0)), (2, (0.995, 0.95))])
def test_what_is_tried_is_the_promise_of_a_release_or_stream_where_nothing_is_said(
    d: int, shares: tuple[float, float]
) -> None:
    promise = bench().promise(k=4, d=d, l=1, qis=[])
    assert (promise.max_share, promise.max_source_share) == shares
    assert PromiseSettings(k=4, d=d).promise == promise
    asked = replace(bench(), stated={"max_share": 1.0}).promise(k=4, d=d, l=1, qis=[])
    assert (asked.max_share, asked.max_source_share) == (1.0, shares[1])


def test_persons_are_on_one_side_and_late_windows_judge() -> None:
    whole = window(40, seed=0)
    person = (np.arange(40) // 4).astype(np.int32)
    shared = Window(replace(whole.records, person=person), whole.target)
    kept, judged = split_persons(shared, share=0.3, seed=1)
    assert not set(kept.records.person) & set(judged.records.person)
    assert len(set(judged.records.person)) == 3
    windows = [window(10, seed=i) for i in range(4)]
    assert split_windows(windows, share=0.25, seed=0) == (tuple(windows[:3]), (windows[3],))
    with pytest.raises(InputError):
        split_persons(window(1, seed=0), share=0.5, seed=0)


def trials(*points: tuple[int, int, float, float]) -> list[Trial]:
    """Trials of (k, l, deletion, score)."""
    return [
        Trial(
            configuration=Configuration(model="cells", k=k, d=1, l=diverse),
            state="tried",
            n_classes=1,
            deletion=deletion,
            lossless=deletion == 0,
            gcp=0.5,
            score=score,
        )
        for k, diverse, deletion, score in points
    ]


points = st.lists(
    st.tuples(
        st.integers(2, 5),
        st.integers(1, 3),
        st.sampled_from([0.0, 0.1, 0.2]),
        st.sampled_from([0.7, 0.8, 0.9]),
    ),
    max_size=12,
    unique_by=lambda point: point[:2],
)


@given(points)
def test_the_front_is_what_nothing_else_is_better_than(
    drawn: list[tuple[int, int, float, float]],
) -> None:
    made = trials(*drawn)
    told = front(made)
    for trial, mine in zip(made, drawn, strict=True):
        k, diverse, deletion, score = mine
        beaten = any(
            a >= k and b >= diverse and c <= deletion and s >= score and (a, b, c, s) != mine
            for a, b, c, s in drawn
        )
        assert (trial in told) is not beaten


@given(
    points,
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([0.0, 0.8]),
    st.sampled_from(["score", "deletion"]),
)
def test_what_is_outside_the_bounds_is_shown_last_and_never_recommended(
    drawn: list[tuple[int, int, float, float]], most: float, least: float, sort: Sort
) -> None:
    report = report_of(
        BENCH, trials(*drawn), name="t", target="x", min_score=least, max_deletion=most, sort=sort,
        left_out={},
    )  # fmt: skip
    assert len(report.trials) == len(drawn)
    inside = [p for p in drawn if p[2] <= most and p[3] >= max(least, GUESSING + 1e-9)]
    assert [each.within for each in report.trials] == sorted(
        (each.within for each in report.trials), reverse=True
    )
    assert len(report.within) == len(inside)
    best = report.recommended
    assert (best is None) is not bool(inside)
    if best is not None:
        product = best.configuration.k * best.configuration.l
        assert product == max(point[0] * point[1] for point in inside)
        assert best.within
    shown = [(each.deletion, -(each.score or 0)) for each in report.within]
    assert shown == sorted(shown, key=lambda of: of if sort == "deletion" else of[::-1])


BENCH = bench(40)
GUESSING = score_of_guessing(BENCH) or 0.0


@given(points, st.floats(0, 1))
def test_what_predicts_no_better_than_guessing_is_never_recommended(
    drawn: list[tuple[int, int, float, float]], score: float
) -> None:
    made = [*trials(*drawn), *trials((9, 3, 0.0, score))]
    report = report_of(
        BENCH, made, name="t", target="x", min_score=0, max_deletion=1.0, sort="score", left_out={}
    )
    assert report.guessing_score == GUESSING
    assert report.n_guessing == sum((each.score or 0) <= GUESSING for each in made)
    assert all((each.score or 0) > GUESSING for each in report.within)
    best = report.recommended
    assert (best is not None and best.configuration.k == 9) is (score > GUESSING)


@pytest.mark.parametrize(
    ("values", "kind", "is_number"),
    [
        (range(94), None, True),  # hours a week
        ([0.5 * x for x in range(12)], None, True),
        (range(10), None, False),
        ([f"grade {x}" for x in range(20)], None, False),
        ([*range(30), None, "?", "NA"], None, True),
        ([*range(30), "many"], None, False),
        (range(94), "class", False),
        (range(3), "number", True),
    ],
)
def test_a_target_of_more_than_ten_numbers_is_one_unless_something_else_is_said(
    values: Iterable[object], kind: TargetKind | None, *, is_number: bool
) -> None:
    cells = [None if x is None else str(x) for x in values] * 3
    table = TextTable(Path("t.csv"), pl.DataFrame({"x": cells}))
    assert predicts_numbers(table, Trained(target="x", kind=kind)) is is_number


def test_lossless_configurations_are_kept_and_marked(tmp_path: Path) -> None:
    tuned = tune(bench(), asked(), tmp_path)
    lossless = [each for each in tuned.report.trials if each.lossless]
    assert lossless
    assert all(each.deletion == 0 for each in lossless)
    told = (tmp_path / "results.csv").read_text().splitlines()
    assert len(told) == 1 + len(grid())
    assert {"lossless", "within", "recommended"} <= set(told[0].split(","))
    assert sum("true" in line for line in told) >= len(lossless)


def asked(**changes: Any) -> SearchSettings:  # noqa: ANN401  fields of any kind
    usual = SearchSettings(
        name="people.csv", space=GRID, target="x", min_score=0.5, max_deletion=0.5, sort="score"
    )
    return replace(usual, **changes)


def test_a_search_writes_all_its_files_and_the_same_ones_again(tmp_path: Path) -> None:
    tuned = tune(bench(), asked(), tmp_path)
    names = ["results.csv", "results.json", "front.png", "recommended.toml"]
    assert [path.name for path in tuned.files] == names
    before = {path: path.read_bytes() for path in tuned.files}
    tune(bench(), asked(), tmp_path)
    assert {path: path.read_bytes() for path in tuned.files} == before
    again = TuneReport.model_validate_json((tmp_path / "results.json").read_text())
    assert again == tuned.report
    settings = Settings.model_validate(tomllib.loads((tmp_path / "recommended.toml").read_text()))
    best = tuned.report.recommended
    assert best is not None
    promise = settings.streams[0].promise
    assert (promise.k, promise.l) == (best.configuration.k, best.configuration.l)
    # Where none is recommended any more, no setting is left to be mistaken for it.
    tuned = tune(bench(), asked(min_score=1.0), tmp_path)
    assert tuned.report.recommended is None
    assert not (tmp_path / "recommended.toml").exists()


@pytest.mark.parametrize("names", [("none",), ("age", "work", "home")])
def test_what_cannot_be_left_out_is_refused(names: tuple[str, ...], tmp_path: Path) -> None:
    space = replace(GRID, without=[names])
    with pytest.raises(SettingsError, match="leave-out"):
        tune(bench(), asked(space=space), tmp_path)


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=8),
        min_size=1,
        max_size=4,
        unique=True,
    ),
    st.sampled_from([(0.0, 1.0), (0.1, 0.25, 7.3), (-2.5, -2.25), (3.0,), (1e-7, 2e-7)]),
)
def test_a_setting_is_read_as_it_is_meant_whatever_the_labels(
    labels: list[str], values: tuple[float, ...]
) -> None:
    schema = Schema(
        qis=(categories("count", labels, missing=True), numbers("x", *values, missing=True)),
        sensitive=(categories("S", ["a", "b"]),),
        sources=((0,), (1,)),
    )
    if "?" in labels:
        return  # is the marker
    text = proposal_for_table(
        schema,
        name="täble",
        configuration=Configuration(model="cells", k=4, d=1, l=2),
        promise=Promise(k=4, l=2),
        banded=["S"],
    )
    assert "# S: sources must send the number of its band, from 0." in text.splitlines()
    (read,) = Settings.model_validate(tomllib.loads(text)).streams
    assert (read.model, read.promise.promise) == ("cells", Promise(k=4, d=1, l=2))
    assert read.learned is None
    first, second, third = read.attributes
    assert (first.values, first.missing, third.role) == (tuple(labels), "?", "sensitive")
    assert second.lo is not None
    assert second.hi is not None
    assert second.lo <= values[0] + 1e-12
    assert second.hi >= values[-1] - 1e-12
    assert [source.tells for source in read.sources] == [("count_",), ("x", "S")]
    assert (first.name, first.path) == ("count_", ("count",)), "count is a field of the class"
    # A table has none of which two mean the same, or one means nothing.
    said = ""
    try:
        declare(read)
    except SettingsError as error:
        said = str(error)
    assert not said or re.search("mean the same|there is no value", said)


def test_a_stream_gets_the_new_promise_and_stays_what_it_was_in_all_else() -> None:
    said = FLEET | {
        "attributes": [*FLEET["attributes"], {"name": "minute", "values": "time_of_day"}],
        "sources": [
            *FLEET["sources"][:2],
            {"name": "telemetry", "tells": ["speed", "fault", "minute"]},
        ],
        "promise": {"k": 4, "d": 2, "t": 0.5, "min_spread": {"speed": 2.0}},
    }  # fmt: skip
    before = StreamSettings.model_validate(said)
    configuration = Configuration(model="kld", k=7, d=3, l=2, without=("age",))
    promise = replace(before.promise.promise, k=7, d=3, l=2)
    text = proposal_for_stream(before, configuration, promise)
    (after,) = Settings.model_validate(tomllib.loads(text)).streams
    assert after.promise.promise == promise
    assert [source.name for source in after.sources] == ["registration", "telemetry"]
    assert after.attributes == tuple(a for a in before.attributes if a.name != "age")
    assert (after.model, after.method, after.window_s) == ("kld", "hilbert", before.window_s)
    followed = proposal_for_stream(
        before,
        Configuration(model="cells", k=7, d=2, l=2, without=("age",)),
        replace(promise, d=2),
        target="fault",
    )
    (cells,) = Settings.model_validate(tomllib.loads(followed)).streams
    assert (cells.model, cells.method, cells.learned) == ("cells", "auto", "fault")
    again = proposal_for_stream(cells, configuration, promise)
    (back,) = Settings.model_validate(tomllib.loads(again)).streams
    assert (back.model, back.target) == ("kld", None)
    kaca = proposal_for_stream(
        StreamSettings.model_validate(FLEET),
        Configuration(model="kaca", k=7, d=2, l=1),
        Promise(k=7, d=2),
    )
    (clustered,) = Settings.model_validate(tomllib.loads(kaca)).streams
    assert clustered.method == "auto"
    bounded = Promise(k=7, d=2, max_share=0.995, max_source_share=0.95)
    text = proposal_for_stream(clustered, Configuration(model="kd", k=7, d=2, l=1), bounded)
    assert Settings.model_validate(tomllib.loads(text)).streams[0].promise.promise == bounded


def people(folder: Path) -> Path:
    path = folder / "people.csv"
    rows = [f"{20 + i % 9},{i % 40 / 10 if i % 5 else '?'},{'yn'[i % 2]}" for i in range(80)]
    path.write_text("\n".join(["age,dose,well", *rows]))
    return path


def test_l_counts_bands_where_they_are_declared_and_never_the_marker(tmp_path: Path) -> None:
    declared = Declared(qis=["age"], sensitive=["dose"], keep=["well"])
    made = bench_of_table(
        read_table(people(tmp_path)), declared, Trained(target="well"), bands={"dose": [1, 3]}
    )
    (dose,) = made.schema.sensitive
    assert (dose.size, dose.missing) == (4, 3)
    assert (made.n, made.n_judged) == (60, 20)
    (most,) = try_row(made, Row("cells", 60, 1, (), (3,)), max_deletion=1.0)
    assert (most.n_classes, most.reached_l) == (1, 3)
    (more,) = try_row(made, Row("cells", 60, 1, (), (4,)), max_deletion=1.0)
    assert more.why == "dose has 3 values, l = 4"


@pytest.mark.parametrize(
    ("target", "bands", "said"),
    [
        ("age", {}, "target: must not be a quasi-identifier"),
        ("well", {"age": [1.0]}, "bands: age"),
        ("well", {"dose": [2.0, 1.0]}, "bands: dose"),
    ],
)
def test_what_does_not_go_with_the_table_is_refused(
    target: str, bands: dict[str, list[float]], said: str, tmp_path: Path
) -> None:
    declared = Declared(qis=["age"], sensitive=["dose"], keep=["well"])
    with pytest.raises(SettingsError, match=said):
        bench_of_table(read_table(people(tmp_path)), declared, Trained(target=target), bands=bands)


RADIUS = "mean radius"
EDGES = (10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0)


def test_the_front_of_the_breast_cancer_table_keeps_what_it_says(tmp_path: Path) -> None:
    """Every setting of the front is formed once more the direct way, and looked at by others."""
    source = load_breast_cancer()
    frame = pl.DataFrame(source.data, schema=[str(name) for name in source.feature_names])
    frame = frame.with_columns(pl.Series("diagnosis", source.target.astype(str)))
    frame.write_parquet(tmp_path / "tumours.parquet")
    qis = [name for name in frame.columns if name not in {RADIUS, "diagnosis"}]
    made = bench_of_table(
        read_table(tmp_path / "tumours.parquet"),
        Declared(qis=qis, sensitive=[RADIUS], keep=["diagnosis"]),
        Trained(target="diagnosis"),
        bands={RADIUS: EDGES},
    )
    space = Space(models=["cells"], k=range(2, 21), l=[1, 3])
    report = tune(made, asked(space=space, min_score=0.9), tmp_path).report
    assert len(report.trials) == 19 + 18
    assert all(trial.lossless for trial in report.trials)
    (here,) = made.windows
    for trial in (trial for trial in report.trials if trial.front):
        promise = Promise(k=trial.configuration.k, l=trial.configuration.l)
        class_of = cells(
            here.records, made.schema, promise, target=ModelTarget(here.target)
        ).class_of
        assert not verify_classes(here.records, made.schema, promise, class_of)
        assert trial.n_classes == int(class_of.max()) + 1
        assert trial.deletion == float(np.mean(class_of < 0))
        assert trial.score == score_of_release(made, [class_of])
    assert report.recommended is not None
    assert report.recommended.score is not None
    assert report.recommended.score >= 0.9


@pytest.mark.data
@pytest.mark.soak
def test_200_configurations_of_adult_take_two_cores_less_than_a_minute(tmp_path: Path) -> None:
    table = read_table(Path(os.environ["ANONYMIZER_DATA"]) / "adult" / "adult_uci_32561.csv.gz")
    qis = [
        *("age", "education-num", "capital-gain", "capital-loss", "hours-per-week", "workclass"),
        *("marital-status", "relationship", "race", "sex", "native-country"),
    ]
    declared = Declared(qis=qis, sensitive=["occupation"], keep=["salary-class"])
    made = bench_of_table(table, declared, Trained(target="salary-class"))
    assert made.n > 24_000
    before = _processor_s()
    tuned = tune(made, asked(space=Space(models=["cells"], k=range(2, 21)), jobs=2), tmp_path)
    assert len(tuned.report.trials) >= 200
    assert _processor_s() - before < 2 * 60
    assert tuned.report.original_score is not None
    at_10 = [each for each in tuned.report.trials if each.configuration.k == 10]
    best = max(each.score or 0.0 for each in at_10)
    assert best > tuned.report.original_score - 0.02


def _processor_s() -> float:
    """Return the time of this process and of those that it started and that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime
