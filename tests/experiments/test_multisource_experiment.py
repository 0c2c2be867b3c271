import csv
import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.plots import BLUE, RED
from anonymizer.domain.records import NO_CODE, Records, Schema
from anonymizer.errors import InputError, SettingsError
from experiments.multisource_experiment import (
    DS,
    KS,
    LS,
    D,
    K,
    Method,
    Multisource,
    Reading,
    Study,
    StudyFiles,
    Trial,
    adult_like,
    census_like,
    made_study,
    read_study,
    run_multisource,
    trials,
)
from experiments.multisource_results import run_rows, summary, time_rows, write_results

FILES = [
    "runs.csv", "times.csv", "summary.json",
    "over_k.png", "over_d.png", "over_l.png", "leaks.png", "times.png",
]  # fmt: skip
TIMED = {"times.csv", "times.png"}


@pytest.fixture(scope="module")
def experiment() -> Multisource:
    return run_multisource(made_study(600, seed=1), census_rows=400, seed=1)


def written(experiment: Multisource, out: Path) -> dict[str, bytes]:
    paths = write_results(experiment, summary(experiment, seed=1), out)
    return {path.name: path.read_bytes() for path in paths}


def find(experiment: Multisource, trial: Trial) -> dict[str, float]:
    """Return the result of a trial that was run."""
    (row,) = (
        row
        for run, row in zip(experiment.runs, run_rows(experiment), strict=True)
        if run.trial == trial
    )
    return row


def share_of(colour: str, path: Path) -> float:
    near = np.abs(imread(path)[..., :3] - to_rgb(colour)).max(axis=-1) < 0.02
    return float(near.mean())


def test_every_combination_is_tried_once() -> None:
    found = trials(made_study(600, seed=1))
    assert len(set(found)) == len(found)
    paper = {t for t in found if t.reading is Reading.PAPER}
    assert {t.k for t in paper if (t.method, t.d) == (Method.MONDRIAN, 1)} == set(KS)
    assert {t.d for t in found if (t.reading, t.k) == (Reading.SAFE, K)} == set(DS)
    assert {t.l for t in paper} == {1, *LS}


def ls(records: Records, schema: Schema) -> set[int]:
    """Return every l that is tried on a table."""
    study = Study("a table", adult=False, of={Reading.PAPER: (records, schema)})
    return {trial.l for trial in trials(study)}


def test_no_more_sensitive_values_are_asked_for_than_there_are() -> None:
    study = made_study(600, seed=1)
    records, schema = study.of[Reading.PAPER]
    few = replace(records, sensitive=np.minimum(records.sensitive, 2))
    assert ls(few, schema) == {1, 2, 3}
    none = replace(records, sensitive=records.sensitive[:, :0])
    bare = replace(schema, sensitive=())
    assert ls(none, bare) == {1}


def test_plain_k_anonymity_leaks_and_k_d_does_not(experiment: Multisource) -> None:
    for run in experiment.runs:
        leaked = sum(leak.n_cells for leak in run.leaks)
        assert len(run.leaks) == 2  # each source to the other
        if run.trial.d > 1:
            assert leaked == 0
        if run.trial.k == KS[0] and run.trial.d == 1:
            assert leaked > 0


def test_every_run_keeps_what_it_promises_and_leaves_nobody_out(experiment: Multisource) -> None:
    for run in experiment.runs:
        assert run.measures.k >= run.trial.k
        assert min(run.measures.d) >= run.trial.d
        assert min(run.measures.l) >= run.trial.l
        assert run.measures.n_suppressed == 0


def test_the_large_table_grows_and_every_time_is_told(experiment: Multisource) -> None:
    assert [t.n for t in experiment.timings] == [100, 100, 200, 200, 300, 300, 400, 400]
    assert [t.l for t in experiment.timings] == [1, 2] * 4
    rows = time_rows(experiment)
    assert all(row["seconds"] > 0 for row in rows)
    assert {row["records"] for row in rows} == {600, 100, 200, 300, 400}
    assert all(row["paper_seconds"] is None for row in rows)


def test_without_a_large_table_only_the_trials_are_timed() -> None:
    done: list[float] = []
    study = made_study(100, seed=1)
    alone = run_multisource(
        study, census_rows=0, seed=1, progress=lambda part, _what: done.append(part)
    )
    assert alone.timings == ()
    assert len(time_rows(alone)) == len([r for r in alone.runs if r.trial.reading is Reading.PAPER])
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0.0, 1.0)


def test_the_files_hold_all_runs(experiment: Multisource, tmp_path: Path) -> None:
    files = written(experiment, tmp_path / "deep" / "out")
    assert list(files) == FILES
    rows = list(csv.DictReader(files["runs.csv"].decode().splitlines()))
    told = json.loads(files["summary.json"])
    assert [row["k"] for row in rows] == [str(row["k"]) for row in told["runs"]]
    assert len(rows) == len(experiment.runs)
    assert told["sources"][1] == ["occupation", "relationship", "native-country"]
    assert (told["table"], told["records"]) == ("a made table in the shape of Adult", 600)


def test_figures_of_the_paper_stand_beside_its_own_table_alone(experiment: Multisource) -> None:
    usual = Trial(Reading.PAPER, Method.HILBERT, K, D)
    assert find(experiment, usual)["paper_classes"] is None
    as_adult = replace(experiment, study=replace(experiment.study, adult=True))
    assert find(as_adult, usual)["paper_classes"] == 389
    assert find(as_adult, replace(usual, d=4))["paper_gcp_range"] == 0.5
    assert find(as_adult, replace(usual, k=10))["paper_classes"] is None


def test_equal_seeds_give_equal_files_but_times_whatever_the_matplotlibrc(
    experiment: Multisource, tmp_path: Path
) -> None:
    first = written(experiment, tmp_path / "first")
    again = run_multisource(made_study(600, seed=1), census_rows=400, seed=1)
    with mpl.rc_context({"figure.facecolor": "black", "lines.linewidth": 9}):
        second = written(again, tmp_path / "again")
    assert {n: b for n, b in first.items() if n not in TIMED} == {
        n: b for n, b in second.items() if n not in TIMED
    }
    other = run_multisource(made_study(600, seed=2), census_rows=0, seed=2)
    assert written(other, tmp_path / "other")["runs.csv"] != first["runs.csv"]


def test_both_methods_are_drawn(experiment: Multisource, tmp_path: Path) -> None:
    as_adult = replace(experiment, study=replace(experiment.study, adult=True))
    written(as_adult, tmp_path)
    for name in ("over_k.png", "over_d.png", "leaks.png", "times.png"):
        assert share_of(BLUE, tmp_path / name) > 0.0005
        assert share_of(RED, tmp_path / name) > 0.0005
    assert share_of(RED, tmp_path / "over_l.png") == 0


def test_a_folder_that_cannot_be_made_is_named(experiment: Multisource, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    with pytest.raises(InputError, match=r"taken: cannot be written: "):
        written(experiment, taken)


def test_made_tables_repeat_and_follow_each_other() -> None:
    records, schema = adult_like(20_000, seed=1)
    assert [a.size for a in schema.qis] == [74, 9, 7, 15, 6, 42]
    census, schema = census_like(20_000, seed=1)
    assert [a.size for a in schema.qis] == [8, 12, 13, 10, 6, 10]
    for codes in (records.qi, census.qi):
        alone = np.random.default_rng(1).permuted(codes, axis=0)
        n_distinct = len(np.unique(codes, axis=0))
        assert n_distinct < 0.6 * len(codes)
        assert n_distinct < 0.8 * len(np.unique(alone, axis=0))


def test_the_missing_marker_is_a_value_in_one_reading_only() -> None:
    _, safe = made_study(100, seed=1).of[Reading.SAFE]
    _, paper = made_study(100, seed=1).of[Reading.PAPER]
    assert [a.missing == a.size - 1 for a in safe.qis] == [False, True, False, True, False, True]
    assert {a.missing for a in paper.qis} == {NO_CODE}


def small_table(folder: Path) -> StudyFiles:
    """A table of two sources of one quasi-identifier each, with a taxonomy and an order."""
    rows = [f"{20 + i},{'abc?'[i % 4]},{'xy'[i % 2]}" for i in range(40)]
    (folder / "t.csv").write_text("\n".join(["age,work,race", *rows]) + "\n")
    (folder / "tree.json").write_text(json.dumps({"work": {"g": ["a", "b"], "h": ["c"]}}))
    (folder / "order.json").write_text(json.dumps({"work": ["c", "a", "b"]}))
    return StudyFiles(
        table=folder / "t.csv",
        taxonomy=folder / "tree.json",
        order=folder / "order.json",
        sources=[["age"], ["work"]],
    )


def test_a_users_table_is_read_in_both_readings(tmp_path: Path) -> None:
    study = read_study(small_table(tmp_path))
    assert (study.name, study.n, study.adult) == ("t.csv", 40, False)
    work = {reading: schema.qis[1] for reading, (_, schema) in study.of.items()}
    assert work[Reading.SAFE].label == work[Reading.PAPER].label == ("c", "a", "b", "?")
    assert (work[Reading.SAFE].missing, work[Reading.PAPER].missing) == (3, NO_CODE)
    rows = run_rows(run_multisource(study, census_rows=0, seed=1))
    assert all(row["gcp_taxonomy"] is not None for row in rows)
    whole = [row for row in rows if row["k"] == 50]
    assert {(row["classes"], row["suppressed"]) for row in whole} == {(0, 40)}


def test_without_a_taxonomy_its_loss_is_not_told(tmp_path: Path) -> None:
    bare = replace(small_table(tmp_path), taxonomy=None, order=None, sensitive=None)
    rows = run_rows(run_multisource(read_study(bare), census_rows=0, seed=1))
    assert {row["gcp_taxonomy"] for row in rows} == {None}
    assert {row["l"] for row in rows} == {1}


def test_three_sources_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="two sources"):
        read_study(replace(small_table(tmp_path), sources=[["age"], ["work"], ["race"]]))


def adult() -> StudyFiles:
    folder = Path(os.environ["ANONYMIZER_DATA"]) / "adult"
    return StudyFiles(
        table=folder / "adult_uci_32561.csv.gz",
        taxonomy=folder / "adult_taxonomy.json",
        order=folder / "adult_order.json",
    )


@pytest.mark.data
def test_on_adult_the_figures_are_those_of_the_paper_and_nothing_leaks(tmp_path: Path) -> None:
    experiment = run_multisource(read_study(adult()), census_rows=0, seed=1)
    of = {run.trial: run for run in experiment.runs}
    rows = [of[Trial(Reading.PAPER, Method.HILBERT, K, d)] for d in DS]
    assert rows[1].measures.n_classes == 389
    gcp = [run.measures.gcp[Cost.RANGE] for run in rows]
    assert gcp == pytest.approx([0.12, 0.29, 0.41, 0.50, 0.58], abs=0.005)
    assert rows[1].measures.gcp[Cost.SET] == pytest.approx(0.242, abs=0.0005)
    assert rows[1].measures.gcp[Cost.TAXONOMY] == pytest.approx(0.541, abs=0.0005)
    assert all(run.measures.n_suppressed == 0 for run in experiment.runs)
    for run in experiment.runs:
        leaked = sum(leak.n_cells for leak in run.leaks)
        assert (leaked > 10_000) if run.trial.d == 1 else (leaked == 0)
    seconds = {row["paper_seconds"] for row in time_rows(experiment)}
    assert seconds == {None, 0.3}
    assert share_of(RED, write_results(experiment, summary(experiment, seed=1), tmp_path)[4]) > 0


@pytest.mark.data
def test_adult_is_known_by_its_shape_and_another_table_of_its_columns_is_not(
    tmp_path: Path,
) -> None:
    files = adult()
    assert read_study(files).adult
    with gzip.open(files.table, "rt") as whole:
        head = "".join(next(whole) for _ in range(500))
    (tmp_path / "head.csv").write_text(head)
    assert not read_study(replace(files, table=tmp_path / "head.csv")).adult
