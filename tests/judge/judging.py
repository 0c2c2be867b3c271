"""Releases judged by pycanon, which shares no code with this project: `make test-judge`.

pycanon counts rows and takes those with the same labels for one class. So each row is a person of
its own here, and what pycanon finds may be above what the report says where classes are published
alike, and never below it.
"""

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.interval_hierarchy import branches_of
from anonymizer.algorithms.records.methods import weighs
from anonymizer.algorithms.records.time_columns import LEVELS
from anonymizer.app.anonymize.plan import ReleasePlan
from anonymizer.app.anonymize.release_files import ReleasePaths, write_release
from anonymizer.app.anonymize.table_anonymization import anonymize
from anonymizer.app.table_options import CostName
from anonymizer.audit.lone_release import judge_release
from anonymizer.domain.promises import Promise
from anonymizer.errors import InputError
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import TextTable, read_table
from tests.app.test_exact_labels import random_table

JUDGE = os.environ["ANONYMIZER_JUDGE"]
"""The Python that has pycanon."""
PROGRAM = Path(__file__).with_name("figures.py")
QIS = ("age", "job", "city", "born")
JOBS = (("a", "low", "*"), ("b", "low", "*"), ("c", "high", "*"), ("d", "high", "*"))
COSTS: tuple[CostName, ...] = ("range", "set", "taxonomy")
PROMISES = {
    "kd": [Promise(k=2, d=1), Promise(k=7, d=2, max_share=0.9)],
    "kld": [
        Promise(k=4, d=1, l=2),
        Promise(k=5, d=2, l=3, entropy_l=2.2),
        Promise(k=6, d=1, l=2, t=0.3),
    ],
    "kaca": [Promise(k=3, d=1), Promise(k=9, d=1, l=2)],
    "cells": [Promise(k=3, d=1), Promise(k=8, d=1, l=2)],
}
N_RANDOM = 400
ROUNDING = 1e-9


@dataclass
class Written:
    """Releases in a folder, as pycanon is told of them, and what was promised of each."""

    folder: Path
    told: list[dict[str, Any]] = field(default_factory=list)
    promised: list[tuple[Promise, int, bool]] = field(default_factory=list)

    def release(self, table: TextTable, declared: Declared, plan: ReleasePlan) -> None:
        """Write a release of a table."""
        made = anonymize(table, declared, plan)
        name = f"{len(self.told)}.csv"
        write_release(made, ReleasePaths(table=table.path, out=self.folder / name))
        self.told.append({"file": name, "qi": declared.qis, "sa": declared.sensitive})
        report, frame = made.report, made.publication.frame
        shown = [name for name in declared.qis if name in frame.columns]
        n_labels = frame.select(shown).unique().height
        assert report.suppressed == {} or plan.suppress
        self.promised.append((plan.promise, report.k, n_labels == frame["class_id"].n_unique()))

    def judged(self) -> Sequence[Mapping[str, float]]:
        """Return the figures of pycanon."""
        (self.folder / "releases.json").write_text(json.dumps(self.told))
        command = [JUDGE, "-W", "ignore", str(PROGRAM), str(self.folder)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found: list[dict[str, float]] = json.loads(done.stdout)
        assert len(found) == len(self.told) > 0
        return found

    def check(self) -> None:
        """Check that pycanon finds every promise kept, and the k of the report."""
        for (promise, k, distinct), found in zip(self.promised, self.judged(), strict=True):
            assert found["k"] >= k >= promise.k
            assert found["k"] == k or not distinct
            if "l" in found:
                assert found["l"] >= promise.l
                assert found["entropy_l"] >= int(promise.entropy_l)
                assert found["t"] <= promise.t + ROUNDING


def people(n: int) -> TextTable:
    """Return people, some of whose values are missing."""
    rng = np.random.default_rng(8)
    day = pl.date(1960, 1, 1) + pl.duration(days=pl.col("day"))
    frame = pl.DataFrame(
        {
            "age": [str(20 + x) if x < 35 else "" for x in rng.integers(0, 40, n)],
            "job": [["a", "b", "c", "d", "?"][x] for x in rng.integers(0, 5, n)],
            "city": [["North|Side", "South}", "West"][x] for x in rng.integers(0, 3, n)],
            "day": rng.integers(0, 20_000, n),
            "illness": [["flu", "cold", "gout", "cough"][x] for x in rng.integers(0, 4, n)],
        }
    )
    frame = frame.with_columns(born=day.dt.to_string("%d.%m.%Y")).drop("day")
    return TextTable(Path("people.csv"), frame)


@pytest.mark.parametrize(
    ("model", "method"),
    [(name, method) for name, model in MODELS.items() for method in model.methods],
)
def test_pycanon_finds_what_each_method_promised(model: str, method: str, tmp_path: Path) -> None:
    table, written = people(400), Written(tmp_path)
    for promise in PROMISES[model]:
        for cost in COSTS:
            declared = Declared(
                qis=QIS,
                sensitive=["illness"],
                hierarchies={"job": JOBS},
                calendars={"born": LEVELS},
                markers=["none"],
            )
            plan = ReleasePlan(
                model=model, method=method, promise=promise, cost=cost, time_budget_s=1.0
            )
            written.release(table, declared, plan)
    written.check()


@pytest.mark.parametrize(
    ("model", "method"),
    [(name, method) for name in ("kd", "kld", "kaca") for method in MODELS[name].methods],
)
def test_pycanon_finds_what_was_promised_where_rows_are_left_out_and_columns_weigh(
    model: str, method: str, tmp_path: Path
) -> None:
    """One city has 95 % of the rows. Closeness is left out: pycanon has the released rows alone."""
    table, written = people(400), Written(tmp_path)
    city = ["South}" if i % 20 == 0 else "West" for i in range(400)]
    table = TextTable(table.path, table.frame.with_columns(city=pl.Series(city)))
    for each in PROMISES[model]:
        bounds: dict[str, Any] = {"max_share": 0.94, "t": inf}
        promise = replace(each, **bounds)
        declared = Declared(qis=QIS, sensitive=["illness"], markers=["none"])
        plan = ReleasePlan(
            model=model, method=method, promise=promise, suppress=0.4, time_budget_s=1.0
        )
        weighted = {"age": 3.0} if weighs(method) else {}
        written.release(table, declared, replace(plan, weights=weighted))
    written.check()


@pytest.mark.parametrize("method", ["hilbert", "mondrian"])
def test_pycanon_finds_what_was_promised_where_numbers_have_intervals_or_means(
    method: str, tmp_path: Path
) -> None:
    """A mean takes the place of the range of `age`, so that pycanon has the other columns."""
    table, written = people(400), Written(tmp_path)
    leaves = [str(20 + x) for x in range(35)]
    ages = branches_of(leaves, [x // 5 for x in range(35)], n_levels=2, joined=2)
    declared = Declared(
        qis=QIS, sensitive=["illness"], hierarchies={"age": ages, "job": JOBS}, markers=["none"]
    )
    for promise in PROMISES["kld"]:
        plan = ReleasePlan(model="kld", method=method, promise=promise, cost="taxonomy")
        written.release(table, declared, plan)
        written.release(table, declared, replace(plan, measures=["age"]))
        written.told[-1]["qi"] = [name for name in QIS if name != "age"]
        told, k, _ = written.promised[-1]
        written.promised[-1] = told, k, False  # classes may differ in the mean alone
    written.check()


def test_pycanon_finds_what_was_promised_of_random_tables(tmp_path: Path) -> None:
    written = Written(tmp_path)
    for seed in range(N_RANDOM):
        table = random_table(seed)
        declared = Declared(qis=table.frame.columns)
        plan = ReleasePlan(model="kd", method="hilbert", promise=Promise(k=3, d=1))
        with contextlib.suppress(InputError):  # some tables cannot keep the promise
            written.release(table, declared, plan)
    written.check()


@pytest.mark.data
@pytest.mark.parametrize("model", ["kd", "kld"])
def test_pycanon_finds_what_was_promised_of_adult(model: str, tmp_path: Path) -> None:
    folder = Path(os.environ["ANONYMIZER_DATA"]) / "adult"
    declared = Declared(
        qis=["age", "workclass", "education", "marital-status", "race", "sex"],
        sensitive=["salary-class"],
    )
    table = read_table(folder / "adult_uci_32561.csv.gz", declared.columns)
    written = Written(tmp_path)
    promise = Promise(k=20, d=2, l=2 if model == "kld" else 1)
    for method in ("hilbert", "best"):
        plan = ReleasePlan(model=model, method=method, promise=promise, time_budget_s=5.0)
        written.release(table, declared, plan)
    written.check()


LABELS_OF_OTHERS = {
    "ARX": (["*", "[20, 30[", "[30, 40[", ">=40"], ["81***", "82***", "*"]),
    "sdcMicro": (["(20,30]", "(30,40]", "NA"], ["1", "2", "NA"]),
    "anonypy": (["20-29", "30-39", "21"], ["Male,Female", "Male", "Female"]),
    "anjana": (["[20, 40)", "[40, 60)", "*"], ["13***", "1485*", "*"]),
}
"""How programs write ages and postal codes: suppressed, ranges, sets, prefixes."""


def test_pycanon_finds_in_releases_of_others_what_we_find(tmp_path: Path) -> None:
    """100 releases of forms of four programs: k, l, entropy l and t, as pycanon has them."""
    rng, told, ours = np.random.default_rng(3), [], []
    for number in range(100):
        ages, places = LABELS_OF_OTHERS[list(LABELS_OF_OTHERS)[number % 4]]
        n = int(rng.integers(20, 300))
        frame = pl.DataFrame(
            {
                "age": rng.choice(ages, n),
                "place": rng.choice(places, n),
                "illness": rng.choice(["flu", "cold", "gout"], n, p=[0.6, 0.3, 0.1]),
            }
        )
        # pycanon takes what is suppressed for a class; we leave it out, and count it.
        frame = frame.filter(~pl.all_horizontal(pl.col("age", "place").is_in(["*", "NA"])))
        frame.write_csv(tmp_path / f"{number}.csv")
        told.append({"file": f"{number}.csv", "qi": ["age", "place"], "sa": ["illness"]})
        ours.append(
            judge_release(read_table(tmp_path / f"{number}.csv"), ("age", "place"), ("illness",))
        )
    (tmp_path / "releases.json").write_text(json.dumps(told))
    done = subprocess.run(
        [JUDGE, PROGRAM, tmp_path], check=True, capture_output=True, text=True, timeout=600
    )
    for found, mine in zip(json.loads(done.stdout), ours, strict=True):
        illness = mine.sensitive["illness"]
        assert (found["n"], found["k"], found["l"]) == (mine.n_rows, mine.k, illness.distinct_l)
        # pycanon cuts off what it computes, and so makes 1 of a 2 that is rounded down.
        assert illness.entropy_l - 1 - ROUNDING < found["entropy_l"] <= illness.entropy_l + ROUNDING
        assert found["t"] == pytest.approx(illness.t)
