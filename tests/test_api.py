"""The public names: light to import, the same as the commands, and plain about mistakes."""

import ast
import doctest
import importlib
import json
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import anonymizer
from anonymizer.files.frame_kinds import DataFrame
from tests.audit.tracked import tracked_once
from tests.cli.support import anonymizer as run_command
from tests.console import ROOT
from tests.end_to_end import DEADLINE_S

NETWORK = "grid:6x6"
COLUMNS: Mapping[str, Any] = {
    "qi": ["age", "zip", "job"],
    "sa": "ill",
    "id": "name",
    "categories": "zip",
    "sources": [["age", "zip"], ["job"]],
    "hierarchies": {"job": {"care": ["nurse", "teacher"], "transport": ["driver"]}},
}
QUICK: Mapping[str, Any] = {"k": 3, "model": "kld", "time_budget_s": 0, **COLUMNS}


def people(n: int = 200) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "zip": rng.choice(["10115", "10117", "20095"], n),
            "job": rng.choice(["nurse", "teacher", "driver"], n),
            "ill": rng.choice(["flu", "gout", "none"], n),
            "note": [f"note {i}" for i in range(n)],
        }
    )


def trace(n_devices: int = 60, n_s: int = 8) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    n = n_devices * n_s
    return pl.DataFrame(
        {
            "device_id": [f"taxi {i % n_devices}" for i in range(n)],
            "ts": 1_800_000_000.0 + np.arange(n) // n_devices,
            "node": rng.integers(0, 36, n),
            "speed": rng.uniform(0, 20, n),
        }
    )


def in_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({name: frame[name].to_list() for name in frame.columns})


def without_nulls(row: Any) -> Any:  # noqa: ANN401  JSON
    """Return a row without what a frame must have and a line may lack."""
    if not isinstance(row, dict):
        return row
    return {name: without_nulls(value) for name, value in row.items() if value is not None}


def as_polars(frame: DataFrame) -> pl.DataFrame:
    return pl.DataFrame({name: frame[name].to_list() for name in frame.columns})


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=DEADLINE_S
    )
    return done.stdout.strip()


# The names


def test_the_package_is_imported_quickly_and_loads_nothing_else() -> None:
    code = """
import sys, time
before = set(sys.modules)
start = time.process_time()
import anonymizer
took_s = time.process_time() - start
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(took_s, *sorted(loaded & {"numpy", "polars", "pydantic", "numba", "networkx", "sklearn"}))
"""
    runs = [python(code).split() for _ in range(3)]
    assert [loaded for _, *loaded in runs] == [[], [], []]
    assert min(float(took_s) for took_s, *_ in runs) < 0.1


@pytest.mark.parametrize("name", anonymizer.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    value = getattr(anonymizer, name)
    assert name in dir(anonymizer)
    if name != "__version__":
        assert value.__doc__
        assert value.__name__ == name


def test_type_checkers_see_each_name_where_it_is_imported_from() -> None:
    tree = ast.parse(Path(anonymizer.__file__).read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    named = {name: of for of, names in anonymizer._NAMES_OF.items() for name in names}
    assert seen == {name: f"anonymizer.{of}" for name, of in named.items()}
    assert {*seen, "__version__"} == set(anonymizer.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'cloack'"):
        _ = anonymizer.cloack


@pytest.mark.parametrize(
    ("module", "extra", "uses"),
    [("polars", "tables", "anonymizer.cloak"), ("sklearn", "learn", "anonymizer.Minimizer")],
)
def test_a_missing_extra_is_named(module: str, extra: str, uses: str) -> None:
    code = f"""
import sys
sys.modules[{module!r}] = None
import anonymizer
anonymizer.load_network("grid:3x3")
try:
    {uses}
except anonymizer.SettingsError as error:
    print(error)
"""
    assert python(code).endswith(f"pip install 'anonymizer-gateway[{extra}]'")


@pytest.mark.parametrize(
    "name",
    [
        "anonymizer.api.anonymizing",
        "anonymizer.api.auditing",
        "anonymizer.api.cloaking",
        "anonymizer.networks.formats",
        "anonymizer.settings.toml_file",
    ],
)
def test_the_examples_of_docstrings_do_what_they_say(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert result.attempted
    assert not result.failed


# What goes in and what comes out


def test_a_table_comes_out_as_the_kind_of_frame_that_went_in(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    people().write_csv(file)
    of_polars = anonymizer.anonymize(people(), **QUICK)
    of_pandas = anonymizer.anonymize(in_pandas(people()), **QUICK)
    of_file = anonymizer.anonymize(file, **QUICK)
    assert [type(made.frame) for made in (of_polars, of_pandas, of_file)] == [
        pl.DataFrame,
        pd.DataFrame,
        pl.DataFrame,
    ]
    assert type(of_pandas.auditor_map) is pd.DataFrame
    for made in (of_pandas, of_file):
        assert as_polars(made.frame).equals(of_polars.frame)
        assert as_polars(made.auditor_map).equals(of_polars.auditor_map)
    assert of_polars.frame.columns == ["class_id", "age", "zip", "job", "ill"]
    assert of_polars.frame.dtypes == [pl.Int64, *[pl.String] * 4]
    assert of_polars.report.k >= 3


def test_a_trace_comes_out_as_the_kind_of_frame_that_went_in(tmp_path: Path) -> None:
    file = tmp_path / "trace.parquet"
    trace().write_parquet(file)
    network = anonymizer.load_network(NETWORK)
    of_polars = anonymizer.cloak(trace(), network, region="adka", seed=1)
    of_pandas = anonymizer.cloak(in_pandas(trace()), network, region="adka", seed=1)
    of_file = anonymizer.cloak(str(file), NETWORK, region="adka", seed=1)
    assert type(of_polars.frame) is type(of_file.frame) is pl.DataFrame
    assert type(of_pandas.frame) is type(of_pandas.auditor_map) is pd.DataFrame
    for made in (of_pandas, of_file):
        assert as_polars(made.frame).equals(of_polars.frame)
        assert as_polars(made.auditor_map).equals(of_polars.auditor_map)
        assert made.report == of_polars.report
    outcomes = of_polars.report.outcomes
    assert sum(outcomes.values()) == of_polars.report.n_received == len(trace())
    assert (of_polars.frame["k"] > 0).sum() == outcomes["published"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["3", None, "5"]),
        pd.Series([3, None, 5], dtype="Int64"),
        pd.Series([3, None, 5], dtype="Float64"),
        pd.Series([3.0, np.nan, 5.0]),
        pd.Series(["3", np.nan, "5"], dtype="category"),
        pd.Series([3, None, 5], dtype="object"),
    ],
    ids=lambda column: str(column.dtype),
)
def test_a_missing_value_of_pandas_is_missing(column: DataFrame) -> None:
    frame = pd.DataFrame({"age": pd.concat([column] * 4, ignore_index=True), "sex": "f"})
    made = anonymizer.anonymize(frame, qi=["age", "sex"], k=4, d=1, time_budget_s=0)
    qi, _ = made.report.qis
    assert (qi.kind, qi.n_missing, made.report.n) == ("number", 4, 12)


def test_columns_that_nobody_named_are_not_looked_at() -> None:
    frame = in_pandas(people())
    frame["odd"] = [{1}, "2"] * (len(frame) // 2)
    frame[7] = 0
    assert anonymizer.anonymize(frame, **QUICK).report.n == len(frame)


def test_suppressed_rows_are_missing_in_the_map_of_either_kind() -> None:
    frame = people(30).with_columns(name=pl.when(pl.col("age") > 30).then("name"))
    for given in (frame, in_pandas(frame)):
        made = anonymizer.anonymize(given, **QUICK)
        became = made.auditor_map["out_row"].to_list()
        n_suppressed = made.report.suppressed["no_identifier"]
        assert 0 < n_suppressed == sum(row is None or row is pd.NA for row in became)


# The same as the commands


def test_a_table_and_its_audit_are_those_of_the_commands(tmp_path: Path) -> None:
    table, out, where = tmp_path / "people.csv", tmp_path / "out.csv", tmp_path / "map.csv"
    people().write_csv(table)
    (tmp_path / "h.json").write_text(json.dumps(COLUMNS["hierarchies"]))
    columns = [
        "--qi", "age,zip,job", "--sa", "ill", "--id", "name", "--category", "zip",
        "--source", "age,zip", "--source", "job", "--hierarchy", str(tmp_path / "h.json"),
    ]  # fmt: skip
    told = run_command(
        "anonymize", table, "-k", "3", "--model", "kld", "--time-budget", "0", *columns,
        "--out", out, "--auditor-map", where, "--report", tmp_path / "report.json",
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    made = anonymizer.anonymize(table, **QUICK)
    assert made.frame.write_csv() == out.read_text()
    assert made.auditor_map.write_csv() == where.read_text()
    report, mine = json.loads((tmp_path / "report.json").read_text()), made.report.model_dump()
    assert report["gcp"] == mine["gcp"]
    assert report["asked"] == json.loads(made.report.model_dump_json())["asked"]
    told = run_command(
        "audit", "table", table, out, "--auditor-map", where, *columns, "-k", "3", "-d", "2",
        "--json", "-",
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    audited = anonymizer.audit_table(made, people(), k=3, d=2, **COLUMNS)
    # A command says which file it judged; a table in memory is none.
    assert json.loads(told.stdout) | {"judged": None} == json.loads(audited.model_dump_json())


def test_a_profile_is_that_of_the_command(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    people().write_csv(table)
    told = run_command("profile", table, "--sa", "ill", "-k", "3", "--json", "-")
    assert told.returncode == 0, told.stderr
    found = anonymizer.profile(people(), sa="ill", k=3)
    assert json.loads(told.stdout) == json.loads(found.model_dump_json())
    with pytest.raises(anonymizer.InputError, match="no column to look at"):
        anonymizer.profile(people().select("ill"), sa="ill")
    with pytest.raises(anonymizer.SettingsError, match="k: must be"):
        anonymizer.profile(people(), k=1)


def test_a_trace_and_its_audit_are_those_of_the_commands(tmp_path: Path) -> None:
    file, out, where = tmp_path / "trace.parquet", tmp_path / "out.jsonl", tmp_path / "map.jsonl"
    trace().write_parquet(file)
    config = tmp_path / "gateway.toml"
    config.write_text(
        '[[readings]]\nname = "speed"\nlo = 0.0\nhi = 20.0\nstep = 5.0\n'
        'statistics = ["mean", "each"]\n'
    )
    told = run_command(
        "cloak", file, "--network", NETWORK, "--out", out, "--auditor-map", where,
        "--region", "snapshot", "--seed", "9", "--config", config,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    settings = anonymizer.load_settings(config)
    made = anonymizer.cloak(trace(), NETWORK, region="snapshot", seed=9, settings=settings)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines == [without_nulls(row) for row in made.frame.to_dicts()]
    assert any("readings" in line and "values" in line for line in lines)
    told = run_command(
        "audit", "stream", file, out, "--network", NETWORK, "--auditor-map", where, "--all",
        "--mode", "adka", "--config", config, "--json", "-",
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    for release in (made, in_pandas(made.frame), out):
        audited = anonymizer.audit_stream(
            release, trace(), NETWORK, mode="adka", settings=settings, auditor_map=where
        )
        assert json.loads(told.stdout) | {"judged": None} == json.loads(audited.model_dump_json())


def test_pseudonyms_are_secret_unless_there_is_a_seed() -> None:
    first, again = (anonymizer.cloak(trace(), NETWORK, region="adka") for _ in range(2))
    assert not {*first.frame["pseudonym"]} & {*again.frame["pseudonym"]}


# Audits


def test_an_audit_finds_a_release_that_says_what_is_not_true() -> None:
    made = anonymizer.anonymize(in_pandas(people()), **QUICK)
    assert anonymizer.audit_table(made, people(), k=3, d=2, l=2, **COLUMNS).holds
    frame = made.frame.copy()
    frame.loc[0, "ill"] = "none" if frame.loc[0, "ill"] == "flu" else "flu"
    report = anonymizer.audit_table(
        frame, people(), auditor_map=made.auditor_map, k=3, d=2, l=2, **COLUMNS
    )
    assert not report.holds
    assert "truth" in {finding.attack for finding in report.failures}


def test_an_audit_without_a_map_leaves_out_what_needs_one_and_reports_its_steps() -> None:
    made = anonymizer.cloak(trace(), NETWORK, region="adka", seed=1)
    steps: list[str] = []
    report = anonymizer.audit_stream(
        made.frame, in_pandas(trace()), NETWORK, mode="adka", progress=steps.append
    )
    assert report.holds
    assert "soundness" in report.left_out
    assert steps[:2] == ["reading the network and the release", "reading the trace"]


def test_an_audit_reads_regions_as_those_of_the_mode_unless_the_settings_name_another() -> None:
    made = anonymizer.cloak(trace(), NETWORK, region="adka", seed=1)

    def held(settings: anonymizer.Settings | None) -> object:
        report = anonymizer.audit_stream(made, trace(), NETWORK, mode="adka", settings=settings)
        tracking = next(each for each in report.findings if each.attack == "tracking")
        return tracking.figures["pieces_held_share"]

    assert held(None) is None, "regions of adka are not made of pieces"
    assert held(anonymizer.Settings()) is None
    named = anonymizer.Settings.model_validate({"region": {"mode": "session"}})
    assert held(named) is not None


# Mistakes

MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "k": (lambda: anonymizer.anonymize(people(), qi="age", k=1), "k: must be a whole number of 2"),
    "text": (lambda: anonymizer.anonymize(people(), qi="age", k="5"), "k: must be a whole number"),  # type: ignore[arg-type]
    "share": (
        lambda: anonymizer.anonymize(people(), qi="age", k=2, max_share=2),
        "max_share: must be a number from 0 to 1",
    ),
    "budget": (
        lambda: anonymizer.anonymize(people(), qi="age", k=2, time_budget_s=-1),
        "time_budget_s: must be a number of 0 or more",
    ),
    "model": (
        lambda: anonymizer.anonymize(people(), qi="age", k=2, model="x"),
        "model: must be one of kd, kld, kaca, cells",
    ),
    "cost": (
        lambda: anonymizer.anonymize(people(), qi="age", k=2, cost="x"),  # type: ignore[arg-type]
        "cost: must be one of range, set, taxonomy",
    ),
    "domain": (
        lambda: anonymizer.anonymize(people(), qi="age", k=2, domains={"age": (1,)}),
        "domain: age: must be LO:HI",
    ),
    "domain of text": (
        lambda: anonymizer.anonymize(people(), qi="age", k=2, domains={"age": "0:100"}),  # type: ignore[dict-item]
        "domain: age: must be LO:HI or LO:HI:STEP, in Python (lo, hi) or (lo, hi, step)",
    ),
    "column": (lambda: anonymizer.anonymize(people(), qi="sex", k=2), "table: no column sex"),
    "twice": (
        lambda: anonymizer.anonymize(pd.DataFrame([[1, 2]], columns=["age", "age"]), qi="age", k=2),
        "table: column age is there twice",
    ),
    "names in numbers": (
        lambda: anonymizer.anonymize(pd.DataFrame([[1, 2]]), qi=[0], k=2),  # type: ignore[list-item]
        "pass frame.rename(columns=str)",
    ),
    "name in a number": (
        lambda: anonymizer.anonymize(pd.DataFrame([[1, 2]]), qi=0, k=2),  # type: ignore[arg-type]
        "pass frame.rename(columns=str)",
    ),
    "index": (
        lambda: anonymizer.anonymize(pd.DataFrame({"age": [1, 2]}).set_index("age"), qi="age", k=2),
        "table: age is in the index: pass frame.reset_index()",
    ),
    "several types": (
        lambda: anonymizer.anonymize(pd.DataFrame({"age": ["secret", 3]}), qi="age", k=2),
        "table: column age: holds values of several types",
    ),
    "no rows": (lambda: anonymizer.anonymize(people(0), qi="age", k=2), "table: has no rows"),
    "no table": (lambda: anonymizer.anonymize([1], qi="age", k=2), "table: must be a path, a pol"),
    "no file": (lambda: anonymizer.anonymize("no.csv", qi="age", k=2), "no.csv: no such file"),
    "too few": (lambda: anonymizer.anonymize(people(), qi="age", k=999), "cannot be kept"),
    "no map": (
        lambda: anonymizer.audit_table(people(), people(), qi="age"),
        "auditor_map: is needed",
    ),
    "region": (
        lambda: anonymizer.cloak(trace(), NETWORK, region="x"),  # type: ignore[arg-type]
        "region.mode: must be",
    ),
    "tick": (lambda: anonymizer.cloak(trace(), NETWORK, tick_s=0), "tick_s: must be a number"),
    "trace": (lambda: anonymizer.cloak(people(), NETWORK), "trace: no column device_id"),
    "settings": (
        lambda: anonymizer.cloak(trace(), NETWORK, settings={}),  # type: ignore[arg-type]
        "settings: must be what load_settings returns",
    ),
    "network": (lambda: anonymizer.cloak(trace(), 3), "network: must be a path"),  # type: ignore[arg-type]
    "nodes": (lambda: anonymizer.cloak(trace(), "grid:3x3"), "the network lacks the node of"),
    "mode": (
        lambda: anonymizer.audit_stream(people(), trace(), NETWORK, mode="x"),  # type: ignore[arg-type]
        "mode: must be one of adka, snapshot, session",
    ),
    "release": (
        lambda: anonymizer.audit_stream(people(), trace(), NETWORK),
        "release: no column pseudonym",
    ),
    "option": (
        lambda: anonymizer.load_settings(options={"adka": {"k_flor": 5}}),
        "options: adka.k_flor: there is no such setting",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_an_error_of_ours_in_one_line(mistake: str) -> None:
    call, says = MISTAKES[mistake]
    with pytest.raises((anonymizer.InputError, anonymizer.SettingsError)) as told:
        call()
    assert says in str(told.value)
    assert "\n" not in str(told.value)
    assert "secret" not in str(told.value)


def test_what_a_result_looks_like_tells_nobody_s_name_or_place() -> None:
    made = anonymizer.anonymize(people(), **QUICK)
    cloaked = anonymizer.cloak(trace(), NETWORK, region="adka")
    assert re.fullmatch(
        r"AnonymizedTable\(200 of 200 rows published in \d+ classes .*\)", repr(made)
    )
    assert repr(cloaked) == "CloakedTrace(480 of 480 positions published in 8 ticks)"
    for shown in map(repr, (made, made.report, cloaked, cloaked.report)):
        assert not re.search("person|taxi|note", shown.replace("persons", ""))


# The notebook of the documentation


def test_the_cells_of_the_notebook_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run its cells in order in one namespace, showing the last expression of each."""
    notebook = json.loads((ROOT / "docs" / "python.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells)
    monkeypatch.chdir(tmp_path)
    # Of the audits of random releases, one in some hundred fails a bar of three standard errors.
    monkeypatch.setattr(secrets, "randbits", lambda _: 1)
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    with tracked_once():
        for cell in cells:
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, cell["id"], "exec"), names)  # noqa: S102  the very point
            if isinstance(last, ast.Expr):
                code = compile(ast.Expression(last.value), cell["id"], "eval")
                shown.append(repr(eval(code, names)))  # noqa: S307  likewise
    assert shown[0] == "(1000, 1500)"
    assert not [text for text in shown if "taxi" in text or "person" in text]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"lat": 24.94, "lon": 60.17}, "lat and lon are exchanged"),
        ({"lat": 48.1, "lon": 11.6}, "the network is of another place"),
        ({"lat": 250.0}, "outside the earth"),
    ],
)
def test_a_trace_of_which_more_than_half_is_refused_comes_with_the_likely_reason(
    wrong: dict[str, float], said: str
) -> None:
    columns = {"ts": 1.7e9, "lat": 60.17, "lon": 24.94} | wrong
    trace = pl.DataFrame({"device_id": [f"d{i}" for i in range(20)]} | columns)
    with pytest.warns(UserWarning, match="20 of 20 positions are .*" + said):
        anonymizer.cloak(trace, "city:400", region="snapshot")


def test_a_table_of_which_more_than_half_is_suppressed_comes_with_what_to_do() -> None:
    table = pl.DataFrame({"age": [30] * 14 + list(range(31, 37))})
    with pytest.warns(UserWarning, match="14 of 20 rows are suppressed: .*smaller k than 2"):
        anonymizer.anonymize(table, qi=["age"], model="kaca", k=2, max_share=0.5)
