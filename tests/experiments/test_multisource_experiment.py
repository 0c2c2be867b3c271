import csv
import gzip
import json
import os
import re
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread

from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.plots import BLUE, FORMATS, ORANGE, RED, TEAL
from anonymizer.domain.records import NO_CODE, Records, Schema
from anonymizer.errors import SettingsError
from experiments.compared_methods import Method
from experiments.kept_steps import KeptSteps
from experiments.leak_tables import leak_rows
from experiments.multisource_charts import _finish, draw_over_d, draw_over_l
from experiments.multisource_experiment import (
    DS,
    KS,
    LS,
    SHARES,
    Multisource,
    Plan,
    Ranges,
    Run,
    Trial,
    misclassified,
    run_multisource,
    trials,
    varied,
)
from experiments.multisource_results import (
    inference_rows,
    latex,
    leak_table_rows,
    run_rows,
    summary,
    time_rows,
    write_results,
)
from experiments.multisource_tables import (
    CENSUS_SENSITIVE,
    CENSUS_SOURCES,
    Reading,
    Study,
    StudyFiles,
    adult_like,
    census_like,
    made_census,
    made_study,
    read_census,
    read_study,
)
from experiments.printed_figures import ADULT, CENSUS, D, L

TABLES = [
    "runs.csv", "times.csv", "leaks.csv", "leaks.tex", "inferences.csv", "example.csv",
    "summary.json", "manifest.json",
]  # fmt: skip
K = 20
FEW = Ranges(ks={ADULT: (10, K), CENSUS: (100, 200)}, ds=(1, 2, 3), ls=(2, L), shares=(0.5, 1.0))
"""The shape of the whole experiment; all of its values take four times as long."""


@pytest.fixture(scope="module")
def experiment() -> Multisource:
    studies = {ADULT: made_study(600, seed=1), CENSUS: made_census(900, seed=1)}
    return run_multisource(studies, Plan(repeats=2, best_s=0.005, ranges=FEW))


@pytest.fixture(scope="module")
def quick() -> Multisource:
    """Without a search, equal plans give equal results."""
    return run_multisource({ADULT: made_study(300, seed=1)}, Plan(repeats=1, best_s=0, ranges=FEW))


@pytest.fixture(scope="module")
def out(experiment: Multisource, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the tables were written to; plots take a second each."""
    folder = tmp_path_factory.mktemp("results") / "deep" / "out"
    write_results(experiment, summary(experiment), folder, formats=())
    return folder


def shares_of(path: Path, *colours: str) -> list[float]:
    """Return how much of a picture has about each colour."""
    red, green, blue = np.moveaxis(imread(path)[..., :3], -1, 0)
    shares = []
    for colour in colours:
        r, g, b = to_rgb(colour)
        near = (abs(red - r) < 0.02) & (abs(green - g) < 0.02) & (abs(blue - b) < 0.02)
        shares.append(float(near.mean()))
    return shares


def test_every_combination_is_tried_once() -> None:
    found = trials(made_study(600, seed=1), ADULT, best=True)
    assert len(set(found)) == len(found)
    of = {m: [t for t in found if t.method is m] for m in Method}
    assert {t.k for t in of[Method.MONDRIAN] if t.d == 1} == set(KS[ADULT])
    assert {t.l for t in of[Method.PRINTED]} == set(LS)
    assert {t.l for t in of[Method.MONDRIAN]} == {1}
    for method in (Method.HILBERT, Method.BEST):
        for l in (1, L):  # noqa: E741  the field's name for it
            some = [t for t in of[method] if t.l == l]
            assert {t.d for t in some} == set(DS)
            assert {t.n_qis for t in some} == {2, 3, 4, 5, 6}
            assert {t.share for t in some} == set(SHARES)
    safe = [t for t in found if t.reading is Reading.SAFE]
    assert {(t.method, t.d) for t in safe} == set(product((Method.HILBERT, Method.BEST), DS))
    assert not any(
        t.method is Method.BEST for t in trials(made_study(60, seed=1), ADULT, best=False)
    )


def test_the_ranges_of_a_user_are_tried_and_the_fixed_values_stay() -> None:
    ranges = Ranges(ks={ADULT: (4, 8), CENSUS: (6,)}, ds=(2, 6), ls=(2,), shares=(0.5,))
    found = trials(made_study(600, seed=1), ADULT, best=False, ranges=ranges)
    assert {t.k for t in found} == {4, 8, K}
    assert {t.d for t in found} == {1, D, 6}  # 1 is plain k-anonymity, whose leaks are shown
    assert {t.l for t in found} == {1, 2, L}
    assert {t.share for t in found} == {0.5, 1.0}
    census = trials(made_census(600, seed=1), CENSUS, best=False, ranges=ranges)
    assert {t.k for t in census} == {6, 200}


def test_the_large_table_is_tried_over_its_own_k_and_records() -> None:
    found = trials(made_census(600, seed=1), CENSUS, best=True)
    assert {t.k for t in found} == set(KS[CENSUS])
    assert {t.share for t in found} == set(SHARES)
    assert {t.method for t in found} == {Method.HILBERT, Method.PRINTED, Method.BEST}


def ls(records: Records, schema: Schema) -> set[int]:
    """Return every l that is tried on a table."""
    study = Study("a table", is_adult=False, of=dict.fromkeys(Reading, (records, schema)))
    return {trial.l for trial in trials(study, ADULT, best=False)}


def test_no_more_sensitive_values_are_asked_for_than_there_are() -> None:
    records, schema = made_study(600, seed=1).of[Reading.PAPER]
    few = replace(records, sensitive=np.minimum(records.sensitive, 2))
    assert ls(few, schema) == {1, 2, 3}
    none = replace(records, sensitive=records.sensitive[:, :0])
    assert ls(none, replace(schema, sensitive=())) == {1}


def test_plain_k_anonymity_leaks_and_k_d_does_not(experiment: Multisource) -> None:
    for run in experiment.runs:
        leaked = sum(leak.n_cells for leak in run.leaks)
        assert len(run.leaks) == (0 if run.repeat else 2)  # each source to the other
        if run.trial.d > 1:
            assert leaked == 0
        if run.trial.k == FEW.ks[ADULT][0] and run.trial.d == 1 and not run.repeat:
            assert leaked > 0


def test_every_run_keeps_what_it_promises_and_leaves_nobody_out(experiment: Multisource) -> None:
    for run in experiment.runs:
        assert run.measures.k >= run.trial.k
        assert min(run.measures.d) >= run.trial.d
        assert min(run.measures.l) >= run.trial.l
        assert run.measures.n_suppressed == 0


def test_repeats_differ_by_who_of_equal_records_comes_first_alone(experiment: Multisource) -> None:
    of: dict[Trial, list[Run]] = {}
    for run in experiment.runs:
        of.setdefault(run.trial, []).append(run)
    assert {tuple(run.repeat for run in runs) for runs in of.values()} == {(0, 1)}
    swept = [runs for trial, runs in of.items() if trial.method is Method.HILBERT]
    differ = [a.trial for a, b in swept if a.measures.gcp != b.measures.gcp]
    # Only where something is asked of sensitive values is anything drawn.
    assert differ
    assert all(trial.l > 1 for trial in differ)


def test_a_line_has_the_trials_that_differ_in_one_thing(experiment: Multisource) -> None:
    runs = [
        r for r in experiment.runs if (r.trial.shape, r.trial.method) == (ADULT, Method.HILBERT)
    ]
    for over, values in (("d", FEW.ds), ("share", FEW.shares), ("n_qis", (2, 3, 4, 5, 6))):
        at = varied(runs, over, k=K)
        assert [where for where, _ in at] == list(values)
        assert {len(some) for _, some in at} == {2}
    assert [where for where, _ in varied(runs, "k")] == list(FEW.ks[ADULT])
    over_l = varied(runs, "l", k=K)
    assert [where for where, _ in over_l] == [1, *FEW.ls]
    assert {len(some) for _, some in over_l} == {2}


def test_the_steps_are_told_in_order() -> None:
    done: list[float] = []
    run_multisource(
        {ADULT: made_study(100, seed=1)},
        Plan(repeats=1, best_s=0, ranges=FEW),
        progress=lambda part, _what: done.append(part),
    )
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0.0, 1.0)


def test_what_is_interrupted_goes_on_and_ends_alike(quick: Multisource, tmp_path: Path) -> None:
    def end(so_far: Multisource) -> None:
        if so_far.done > 0.5:
            write_results(so_far, summary(so_far), tmp_path, formats=())
            draw_over_l(so_far, tmp_path / "some.png")
            raise KeyboardInterrupt

    studies = {ADULT: made_study(300, seed=1)}
    with pytest.raises(KeyboardInterrupt):
        run_multisource(studies, quick.plan, kept=KeptSteps(tmp_path, {}), partial_results=end)
    n_kept = KeptSteps(tmp_path, {}).n_kept
    assert n_kept > 20
    assert {*TABLES, "some.png"} <= {path.name for path in tmp_path.iterdir()}
    told: list[str] = []
    kept = KeptSteps(tmp_path, {})
    whole = run_multisource(
        studies, quick.plan, kept=kept, progress=lambda _done, what: told.append(what)
    )
    assert summary(whole) == summary(quick)
    assert kept.n_kept == len(told) - 1 > n_kept  # the last one: done
    assert len(set(told)) == len(told)


def test_more_repeats_go_on_from_fewer(quick: Multisource, tmp_path: Path) -> None:
    studies = {ADULT: made_study(300, seed=1)}
    run_multisource(studies, quick.plan, kept=KeptSteps(tmp_path, {}))
    n_once = KeptSteps(tmp_path, {}).n_kept
    kept = KeptSteps(tmp_path, {})
    twice = run_multisource(studies, replace(quick.plan, repeats=2), kept=kept)
    assert [r for r in run_rows(twice) if not r["repeat"]] == run_rows(quick)
    assert kept.n_kept == n_once + len(quick.runs)


def test_the_files_hold_all_runs(experiment: Multisource, out: Path) -> None:
    files = {path.name for path in out.iterdir()}
    assert files == {*TABLES}
    rows = list(csv.DictReader((out / "runs.csv").read_text().splitlines()))
    told = json.loads((out / "summary.json").read_text())
    assert [row["k"] for row in rows] == [str(row["k"]) for row in told["runs"]]
    assert len(rows) == len(experiment.runs)
    assert [t["records"] for t in told["tables"]] == [600, 900]
    assert told["tables"][0]["sources"][1] == ["occupation", "relationship", "native-country"]
    times = list(csv.DictReader((out / "times.csv").read_text().splitlines()))
    assert {row["repeats"] for row in times} == {"2"}
    assert all(float(r["least_s"]) <= float(r["mean_s"]) <= float(r["greatest_s"]) for r in times)


def test_the_manifest_says_what_the_results_depend_on(quick: Multisource, tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    source.write_text("a\n1\n")
    write_results(quick, summary(quick), tmp_path / "out", inputs=[source], formats=())
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["versions"].keys() >= {"python", "numpy", "numba"}
    assert {name: manifest["options"][name] for name in ("repeats", "best_s", "seed", "ds")} == {
        "repeats": 1, "best_s": 0, "seed": 1, "ds": list(FEW.ds)
    }  # fmt: skip
    assert re.fullmatch("[0-9a-f]{64}", manifest["input"]["t.csv"])


def test_the_inference_set_says_who_and_which_value(experiment: Multisource) -> None:
    records, schema = experiment.studies[ADULT].of[Reading.PAPER]
    rows = list(inference_rows(experiment))
    counted = sum(row.n_inferred or 0 for row in experiment.leak_rows if row.table in {4, 5})
    assert len(rows) == counted > 0
    names = [qi.name for qi in schema.qis]
    for row in rows[:50]:
        qi = names.index(row["attribute"])
        code = records.qi[row["record"] - 1, qi]
        attribute = schema.qis[qi]
        value = attribute.label[code] if attribute.label else attribute.position[code]
        assert row["value"] == value
        assert qi not in schema.sources[row["from_source"] - 1]


def test_only_figures_that_the_paper_prints_bear_its_name(experiment: Multisource) -> None:
    rows = leak_table_rows(experiment)
    assert {row["by"] for row in rows} == {"ours"}  # both tables are made
    assert all(row["data"].startswith("a made table") for row in rows)
    assert {row["paper_s"] for row in time_rows(experiment)} == {None}
    assert not any("paper" in name for row in run_rows(experiment) for name in row)


def test_the_tables_are_latex(experiment: Multisource) -> None:
    lines = latex(leak_table_rows(experiment)).splitlines()
    columns = len(re.findall("[lr]", lines[0].removeprefix(r"\begin{tabular}")))
    rows = [line for line in lines if line.endswith(r"\\")]
    assert {line.count(" & ") + 1 for line in rows} == {columns}
    assert len(rows) == 1 + len(experiment.leak_rows)
    assert lines[-1] == r"\end{tabular}"


def test_equal_plans_give_equal_files_whatever_the_matplotlibrc(
    quick: Multisource, tmp_path: Path
) -> None:
    again = run_multisource({ADULT: made_study(300, seed=1)}, quick.plan)
    assert summary(again) == summary(quick)
    for kind in FORMATS:
        draw_over_l(quick, tmp_path / f"first.{kind}")
        with mpl.rc_context({"figure.facecolor": "black", "lines.linewidth": 9}):
            draw_over_l(again, tmp_path / f"again.{kind}")
        first, second = (tmp_path / f"{name}.{kind}" for name in ("first", "again"))
        assert first.read_bytes() == second.read_bytes()


def test_every_method_is_drawn(experiment: Multisource, tmp_path: Path) -> None:
    draw_over_d(experiment, tmp_path / "d.png")
    assert min(shares_of(tmp_path / "d.png", BLUE, RED, ORANGE, TEAL)) > 0.0003
    draw_over_l(experiment, tmp_path / "l.png")
    assert shares_of(tmp_path / "l.png", RED) == [0]


@pytest.mark.parametrize(("values", "scale"), [((1.0, 40.0), "log"), ((3.0, 40.0), "linear")])
def test_an_axis_is_logarithmic_only_where_values_are_far_apart(
    values: tuple[float, float], scale: str
) -> None:
    axes = Figure().subplots()
    axes.plot([1, 2], values)
    _finish(axes, None, "records", log=True)
    assert axes.get_yscale() == scale
    assert scale == "log" or axes.get_ylim()[0] == 0


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


def rows_of(files: StudyFiles) -> list[dict[str, object]]:
    return run_rows(run_multisource({ADULT: read_study(files)}, Plan(repeats=1, best_s=0)))


def test_a_users_table_is_read_in_both_readings(tmp_path: Path) -> None:
    study = read_study(small_table(tmp_path))
    assert (study.name, study.n, study.is_adult) == ("t.csv", 40, False)
    work = {reading: schema.qis[1] for reading, (_, schema) in study.of.items()}
    assert work[Reading.SAFE].label == work[Reading.PAPER].label == ("c", "a", "b", "?")
    assert (work[Reading.SAFE].missing, work[Reading.PAPER].missing) == (3, NO_CODE)
    rows = rows_of(small_table(tmp_path))
    assert all(row["gcp_taxonomy"] is not None for row in rows)
    whole = [row for row in rows if row["k"] == 50]
    assert {(row["classes"], row["suppressed"]) for row in whole} == {(0, 40)}


def test_without_a_taxonomy_its_loss_is_left_out(tmp_path: Path) -> None:
    rows = rows_of(replace(small_table(tmp_path), taxonomy=None, order=None, sensitive=None))
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
@pytest.mark.soak  # `test_commands.py` repeats the tables of the paper with fewer values
@pytest.mark.timeout(600)
def test_on_adult_the_reproduction_is_near_what_the_paper_prints(tmp_path: Path) -> None:
    experiment = run_multisource({ADULT: read_study(adult())}, Plan(repeats=1, best_s=0.2))
    of = {run.trial: run for run in experiment.runs}
    assert all(run.measures.n_suppressed == 0 for run in experiment.runs)

    def swept(d: int = D, l: int = 1, method: Method = Method.HILBERT) -> Run:  # noqa: E741
        return of[Trial(ADULT, Reading.PAPER, method, 6, K, d, l)]

    gcp = [swept(d).measures.gcp[Cost.RANGE] for d in DS]
    assert gcp == pytest.approx([0.12, 0.29, 0.41, 0.50, 0.58], abs=0.005)
    assert swept().measures.gcp[Cost.SET] == pytest.approx(0.242, abs=0.0005)
    assert swept().measures.gcp[Cost.TAXONOMY] == pytest.approx(0.541, abs=0.0005)
    printed = [swept(l=each, method=Method.PRINTED).measures.n_classes for each in (3, 5)]
    assert printed == [384, 234]
    for run in experiment.runs:
        leaked = sum(leak.n_cells for leak in run.leaks)
        assert (leaked > 10_000) if run.trial.d == 1 and run.trial.l == 1 else (leaked >= 0)
        assert run.trial.d == 1 or leaked == 0

    rows = {(r["by"], r["algorithm"]): r for r in leak_table_rows(experiment) if r["table"] == 4}
    assert rows["the paper, Table 4", "(k,d)-anonymity"]["classes"] == 388
    assert rows["ours", "(k,d)-anonymity, hilbert"]["classes"] == 389
    assert rows["ours", "(k,d)-anonymity, hilbert"]["leaks"] == 0
    assert rows["ours", "Mondrian"]["leaks"] > 1000
    assert rows["ours", "Top-down"]["leaks"] > rows["ours", "Mondrian"]["leaks"]
    assert {row["paper_s"] for row in time_rows(experiment)} == {None, 0.3, 0.332}
    files = write_results(experiment, summary(experiment), tmp_path)
    assert all(file.stat().st_size for file in files)


@pytest.mark.data
def test_adult_is_known_by_its_shape_and_another_table_of_its_columns_is_not(
    tmp_path: Path,
) -> None:
    files = adult()
    assert read_study(files).is_adult
    with gzip.open(files.table, "rt") as whole:
        head = "".join(next(whole) for _ in range(500))
    (tmp_path / "head.csv").write_text(head)
    assert not read_study(replace(files, table=tmp_path / "head.csv")).is_adult


@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_the_census_is_read_as_it_is_distributed_and_tried_over_everything(
    tmp_path: Path, mark: str
) -> None:
    names = ["caseid", *(name for s in CENSUS_SOURCES for name in s), CENSUS_SENSITIVE, "iYearwrk"]
    rng = np.random.default_rng(1)
    rows = [[str(i), *map(str, rng.integers(0, 6, 7)), "0"] for i in range(400)]
    path = tmp_path / "USCensus1990.data.txt"
    path.write_text("\n".join(mark.join(row) for row in [names, *rows]) + "\n")
    study = read_census(path)
    assert (study.n, study.is_made, study.is_census) == (400, False, False)
    tried = trials(study, CENSUS, best=False)
    assert {t.d for t in tried} == {1, 2, 3, 4, 5}
    assert {t.l for t in tried} == {1, 2, 3, 4, 5}
    assert {t.n_qis for t in tried} == {2, 3, 4, 5, 6}
    assert set(trials(made_census(400, seed=1), CENSUS, best=False)) >= {
        t for t in tried if t.l <= 3
    }  # it has three sensitive values


def test_a_made_census_bears_no_figure_of_the_paper_whatever_its_size() -> None:
    study = made_census(900, seed=1)
    plan = Plan(repeats=1, best_s=0, ranges=replace(FEW, shares=(1.0,)))
    found = run_multisource({ADULT: made_study(300, seed=1), CENSUS: study}, plan)
    assert not any(row["paper_s"] for row in time_rows(found))
    assert not any(row.by_the_paper for row in found.leak_rows)
    read = replace(study, is_made=False, is_census=True, name="census.txt")
    assert any(row.by_the_paper for row in leak_rows(read, CENSUS, best_s=0, seed=1))


@pytest.mark.soak
def test_a_whole_census_is_drawn_by_its_records_and_promises(tmp_path: Path) -> None:
    read = replace(made_census(900, seed=1), is_made=False, is_census=True, name="census.txt")
    plan = Plan(repeats=1, best_s=0, ranges=replace(FEW, shares=(1.0,)))
    whole = run_multisource({ADULT: made_study(300, seed=1), CENSUS: read}, plan)
    paths = write_results(whole, summary(whole), tmp_path)
    drawn = {each.stem for each in paths if each.suffix == ".png"}
    assert {f"over_{x}_census" for x in ("k", "d", "l", "qis", "records")} <= drawn


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 2)), min_size=1, max_size=12))
def test_who_is_not_of_the_majority_of_a_class_is_misclassified(
    rows: list[tuple[int, int]],
) -> None:
    right = 0
    for each in {of for of, _ in rows} - {-1}:
        right += max(Counter(value for of, value in rows if of == each).values())
    class_of, value = np.array(rows, np.int32).T
    assert misclassified(class_of, value) == pytest.approx(1 - right / len(rows))
