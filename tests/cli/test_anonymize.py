"""`anonymizer anonymize`, as a user calls it."""

import csv
import json
import os
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from anonymizer.domain.criteria.criterion import Of
from anonymizer.domain.criteria.registry import criteria_of, named
from tests.cli.support import anonymizer, process
from tests.lanes import some

SEXES = ("f", "m")
HEADER = ["name", "age", "sex", "illness", "diary"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(HEADER)
        for i in range(60):
            rows.writerow([f"p{i}", 20 + i % 7, SEXES[i % 2], "abc"[i % 3], f"secret {i}"])
    return path


def told_of(table: Path, *options: str | Path) -> tuple[int, str]:
    """Return the exit code and what was said last."""
    done = anonymizer("anonymize", table, "--qi", "age,sex", "--method", "hilbert", *options)
    return done.returncode, done.stderr.strip().splitlines()[-1]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_table_is_published_with_its_report_page_and_map(table: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "out.csv", tmp_path / "report.json"
    done = anonymizer(
        *("anonymize", table, "--qi", "age,sex", "--sa", "illness", "--id", "name", "-k", "4"),
        *("--model", "kld", "-l", "3", "--source", "age", "--source", "sex", "--out", out),
        *("--method", "hilbert", "--domain", "age=18:30", "--report", report),
        *("--page", tmp_path / "page.html", "--auditor-map", tmp_path / "map.csv"),
    )
    assert done.returncode == 0, done.stderr
    rows = read(out)
    assert list(rows[0]) == ["class_id", "age", "sex", "illness"]
    assert {row["sex"] for row in rows} == {"{f|m}"}
    assert all(int(a["class_id"]) <= int(b["class_id"]) for a, b in pairwise(rows))
    assert "secret" not in out.read_text()
    told = json.loads(report.read_text())
    assert (told["n"], told["n_published"], told["suppressed"]) == (60, 60, {})
    assert told["k"] >= 4
    assert told["sensitive"][0]["l"] == 3
    assert told["qis"][0]["domain"] == "range"
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert [row["in_row"] for row in read(tmp_path / "map.csv")] == [str(i) for i in range(60)]
    for figure in ("GCP range", "DM", "values linked between sources", "note: "):
        assert figure in done.stderr


def test_dates_are_published_as_nodes_of_a_calendar_and_read_so_by_the_audit(
    tmp_path: Path,
) -> None:
    path, out = tmp_path / "births.csv", tmp_path / "out.csv"
    path.write_text("born\n" + "".join(f"{1 + i % 20}.{1 + i % 3}.1990\n" for i in range(60)))
    options = ("--qi", "born", "--hierarchy", "born=year-month", "-k", "4", "--missing", "none")
    done = anonymizer(
        *("anonymize", path, *options, "--cost", "taxonomy", "--method", "hilbert"),
        *("--out", out, "--auditor-map", tmp_path / "map.parquet", "--report", tmp_path / "r.json"),
    )
    assert done.returncode == 0, done.stderr
    assert {row["born"] for row in read(out)} <= {"1990-01", "1990-02", "1990-03", "1990"}
    told = json.loads((tmp_path / "r.json").read_text())
    assert (told["qis"][0]["read_as"], told["qis"][0]["domain"]) == ("dates", "hierarchy")
    done = anonymizer(
        "audit", "table", path, out, *options, "--auditor-map", tmp_path / "map.parquet"
    )
    assert done.returncode == 0, done.stderr


def test_a_promise_that_cannot_be_kept_is_one_line_that_names_the_attribute_and_exit_2(
    table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    code, said = told_of(table, "-k", "4", "-d", "3", "--out", out)
    assert (code, said.endswith("sex has 2 values, d = 3")) == (2, True)
    code, said = told_of(
        table, "-k", "4", "--model", "kld", "--sa", "illness", "-l", "4", "--out", out
    )
    assert (code, said.endswith("illness has 3 values, l = 4")) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "none"], "model: must be one of kd, kld"),
        (["--domain", "age=21:30"], "column age, row 1: lies outside its domain"),
        (["--min-spread", "age=1:2"], "min-spread: must be a name"),
    ],
)
def test_an_option_that_makes_no_sense_is_one_line_and_exit_2(
    options: list[str], said: str, table: Path, tmp_path: Path
) -> None:
    code, line = told_of(table, "-k", "4", "--out", tmp_path / "out.csv", *options)
    assert code == 2
    assert line.startswith("anonymizer: ")
    assert said in line
    assert not (tmp_path / "out.csv").exists()


def test_hierarchies_orders_and_kept_columns_are_heeded(table: Path, tmp_path: Path) -> None:
    (tmp_path / "sex.csv").write_text("f;person;*\nm;person;*\nx;*\n")
    (tmp_path / "order.json").write_text('{"age": [26, 25, 24, 23, 22, 21, 20]}')
    out = tmp_path / "out.parquet"
    code, _ = told_of(
        *(table, "-k", "4", "--hierarchy", f"sex={tmp_path / 'sex.csv'}", "--cost", "taxonomy"),
        *("--order", tmp_path / "order.json", "--keep", "diary", "--out", out),
    )
    assert code == 0
    import polars as pl  # noqa: PLC0415

    frame = pl.read_parquet(out)
    assert frame.columns == ["class_id", "age", "sex", "diary"]
    assert set(frame["sex"]) == {"person"}
    assert all(age.startswith("{2") for age in frame["age"])


@pytest.mark.data
def test_as_published_gives_the_papers_389_classes_of_adult(tmp_path: Path) -> None:
    adult = Path(os.environ["ANONYMIZER_DATA"]) / "adult"
    report = tmp_path / "report.json"
    sources = "age,workclass,marital-status", "occupation,relationship,native-country"
    done = anonymizer(
        *("anonymize", adult / "adult_uci_32561.csv.gz", "--qi", ",".join(sources)),
        *("--source", sources[0], "--source", sources[1], "-k", "20", "-d", "2"),
        *("--hierarchy", adult / "adult_taxonomy.json", "--order", adult / "adult_order.json"),
        *("--domain", "age=17:90", "--method", "hilbert", "--as-published"),
        *("--out", tmp_path / "out.csv", "--report", report),
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(report.read_text())
    assert (told["n_classes"], told["k"], told["suppressed"]) == (389, 20, {})
    gcp = told["gcp"]
    assert [round(gcp[form], 3) for form in ("range", "set", "taxonomy")] == [0.289, 0.242, 0.541]
    assert sum(leak["n_cells"] for leak in told["leaks"]) == 0


def test_cells_follow_what_a_model_is_to_learn(table: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "out.csv", tmp_path / "report.json"
    done = anonymizer(
        *("anonymize", table, "--qi", "age,sex", "--sa", "illness", "--model", "cells", "-k", "4"),
        *("-l", "2", "--target", "illness", "--out", out, "--report", report),
    )
    assert done.returncode == 0, done.stderr
    assert len(read(out)) == 60
    told = json.loads(report.read_text())
    assert told["settings"]["target"] == "illness"
    assert told["k"] >= 4
    assert told["sensitive"][0]["l"] >= 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "cells", "--target", "age"], "target: must be a sensitive attribute or a k"),
        (["--target", "illness"], "target: not available for model kd"),
        (
            ["--model", "cells", "--sa", "illness", "-k", "2", "-l", "3"],
            "cells: l = 3 is more than k",
        ),
        (["--sa", "illness", "--bands", "illness=1:2"], "bands: illness is not a numeric"),
        (["--sa", "name", "--bands", "illness"], "bands: must be a name, = and numbers"),
        (["--weight", "age=inf"], "weight: must be finite"),
    ],
)
def test_an_option_that_cannot_be_is_refused(
    table: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    out = tmp_path / "out.csv"
    done = anonymizer("anonymize", table, "--qi", "age,sex", "-k", "4", *options, "--out", out)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert not out.exists()


def test_l_counts_the_bands_of_a_number_that_is_told_as_it_is(tmp_path: Path) -> None:
    doses, out, report = (tmp_path / name for name in ("doses.csv", "out.csv", "report.json"))
    lines = [f"{20 + i % 7},{10 * (i % 7) + i / 100}" for i in range(70)]
    doses.write_text("\n".join(["age,dose", *lines]))
    least, audited = [], []
    auditor_map = tmp_path / "map.csv"
    for bands in ([], ["--bands", "dose=20:40"]):
        done = anonymizer(
            *("anonymize", doses, "--qi", "age", "--sa", "dose", "--model", "cells", "-k", "5"),
            *("-l", "3", "--out", out, "--report", report, "--auditor-map", auditor_map),
            *bands,
        )
        assert done.returncode == 0, done.stderr
        seen = defaultdict(set)
        for row in read(out):
            seen[row["class_id"]].add(sum(float(row["dose"]) >= edge for edge in (20, 40)))
        least.append(min(map(len, seen.values())))
        assert sorted(row["dose"] for row in read(out)) == sorted(x.split(",")[1] for x in lines)
        for edges in ([], ["--bands", "dose=20:40"]):
            done = anonymizer(
                *(
                    "audit",
                    "table",
                    doses,
                    out,
                    "--qi",
                    "age",
                    "--sa",
                    "dose",
                    "-k",
                    "5",
                    "-l",
                    "3",
                ),
                *("--auditor-map", auditor_map),
                *edges,
            )
            audited.append(done.returncode)
    assert least == [1, 3]
    assert audited == [0, 1, 0, 0]
    told = json.loads(report.read_text())
    assert told["settings"]["bands"] == {"dose": [20.0, 40.0]}
    assert (told["sensitive"][0]["size"], told["sensitive"][0]["l"]) == (3, 3)


@pytest.mark.parametrize(("language", "area"), [("zh", "区域"), ("en", " area")])
def test_kaca_publishes_its_own_labels_and_the_audit_reads_them(
    tmp_path: Path, language: str, area: str
) -> None:
    tolls, out, auditor_map = (tmp_path / name for name in ("tolls.csv", "out.csv", "map.csv"))
    with tolls.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["plate", "section_id", "exit_time", "toll_money"])
        for i in range(60):
            section = ("G5615530120", "G5611530010", "S0010530010")[i % 3]
            rows.writerow([f"p{i}", section, f"2023-01-03 {i * 7 % 24:02}:33:06", i])
    columns: list[str | Path] = [
        "--qi",
        "section_id,exit_time",
        "--id",
        "plate",
        "--label",
        "exit_time=hours",
    ]
    done = anonymizer(
        *("anonymize", tolls, "--model", "kaca", "-k", "5", *columns, "--lang", language),
        *("--label", "section_id=prefix", "--measure", "toll_money", "--out", out),
        *("--auditor-map", auditor_map),
    )
    assert done.returncode == 0, done.stderr
    published = read(out)
    assert list(published[0]) == ["class_id", "section_id", "exit_time", "count", "mean_toll_money"]
    assert {f"G561{area}", f"S0010530010{area}"} == {row["section_id"] for row in published}
    assert all(int(row["count"]) >= 5 for row in published)
    audit: list[str | Path] = [
        "audit",
        "table",
        tolls,
        out,
        "--auditor-map",
        auditor_map,
        *columns,
        "--measure",
        "toll_money",
        "-k",
        "5",
    ]
    done = anonymizer(*audit)
    assert done.returncode == 0, done.stdout + done.stderr
    out.write_text(out.read_text().replace("G561", "S001"))
    assert anonymizer(*audit).returncode == 1


@pytest.mark.parametrize("given", ["age", "age=range", "=prefix"])
def test_a_label_is_a_name_and_a_known_form(table: Path, tmp_path: Path, given: str) -> None:
    code, said = told_of(table, "-k", "4", "--out", tmp_path / "out.csv", "--label", given)
    assert (code, "label: must be a name, = and one of plain, prefix" in said) == (2, True)


def test_l_without_a_sensitive_attribute_is_refused_in_one_line(
    table: Path, tmp_path: Path
) -> None:
    columns = ("--qi", "age,sex", "-k", "2", "--out", tmp_path / "out.csv")
    done = anonymizer("anonymize", table, *columns, "-l", "2")
    names = named(criteria_of(Of.SENSITIVE), "and").replace("_", "-")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"anonymizer: {names} need a sensitive attribute: name one with --sa"
    ]


def test_nothing_is_said_of_links_where_one_source_knows_everything(
    table: Path, tmp_path: Path
) -> None:
    columns = ("--qi", "age,sex", "-k", "2", "--method", "hilbert", "--out", tmp_path / "out.csv")
    done = anonymizer("anonymize", table, *columns)
    assert done.returncode == 0, done.stderr
    assert "linked" not in done.stderr


def test_numbers_are_whole_on_a_narrow_terminal(table: Path, tmp_path: Path) -> None:
    words = ("anonymize", table, "-k", "2", "--qi", "age", "--out", tmp_path / "out.csv")
    told = anonymizer(*words, environment={"COLUMNS": "40"})
    assert told.returncode == 0, told.stderr
    assert "\u2026" not in told.stderr


# One that searches, and one that has nothing to search.
@pytest.mark.parametrize("model", some(["kd", "kld", "cells", "kaca"], ["kld", "kaca"]))
def test_a_machine_without_compiled_kernels_waits_for_none_unless_told_to_search(
    table: Path, tmp_path: Path, model: str
) -> None:
    out, cold = tmp_path / "out.csv", {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    more = ["--sa", "illness", "-l", "2"] if model in {"kld", "cells"} else []
    asked = ("--qi", "age,sex", "--id", "name", "-k", "4", "--model", model, *more, "--out")
    done = process("anonymize", table, *asked, out, environment=cold)
    assert done.returncode == 0, done.stderr
    assert ("--method best" in done.stderr) == (model in {"kd", "kld"})
    assert "least possible" not in done.stderr
    assert min(Counter(row["class_id"] for row in read(out)).values()) >= (
        1 if model == "kaca" else 4
    )
    assert list((tmp_path / "cache").rglob("*make_moves*.nbc")) == []
