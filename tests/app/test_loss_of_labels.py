"""The information loss in the report, against what a reader computes from the two tables alone."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.app.anonymize.plan import ReleasePlan
from anonymizer.app.anonymize.table_anonymization import anonymize
from anonymizer.domain.promises import Promise
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import TextTable

JOBS = (("a", "low", "*"), ("b", "low", "*"), ("c", "high", "*"), ("d", "high", "*"))
JOB_NAMES = [branch[0] for branch in JOBS]
DECLARED = Declared(qis=["age", "job", "city"], hierarchies={"job": JOBS})
PLAN = ReleasePlan(model="kd", method="hilbert", promise=Promise(k=2), time_budget_s=0.1)
COSTS: tuple[Literal["range", "set", "taxonomy"], ...] = ("range", "set", "taxonomy")

Cells = list[str | None]


def members(label: str) -> list[str]:
    inside = label[1:-1] if label.startswith("{") else label
    return inside.split("|")


def lost(label: str, column: Cells, cost: str, *, order: list[str], numeric: bool) -> float:
    """The loss that a reader sees in one published cell; `order`: of the values of the domain."""
    parts = members(label)
    said = [part for part in parts if part != "?"]
    if len(said) < len(parts):
        return 1.0 if said else 0.0
    if numeric:
        values = [float(cell) for cell in column if cell is not None]
        ends = re.fullmatch(r"\[(\d+)-(\d+)\]", label)
        width = int(ends[2]) - int(ends[1]) if ends else 0
        return width / ((max(values) - min(values)) or 1)
    branches = {branch[0]: branch for branch in JOBS}
    if cost == "taxonomy" and order[0] in branches and label not in order:
        return sum(label in branches[value] for value in order) / len(order)
    if cost == "range":
        places = [order.index(part) for part in said]
        return (max(places) - min(places)) / ((len(order) - 1) or 1)
    return (len(said) - 1) / ((len(order) - 1) or 1)


CELLS = st.tuples(
    st.none() | st.integers(20, 40).map(str),
    st.none() | st.sampled_from("abcd"),
    st.none() | st.sampled_from("uvwxyz"),
).filter(any)  # a row without any of them is no person


@pytest.mark.parametrize("method", ["hilbert", "mondrian", "best"])
@settings(max_examples=20)
@given(st.lists(CELLS, min_size=6, max_size=40), st.integers(2, 4), st.sampled_from(COSTS))
def test_the_loss_is_what_a_reader_of_the_labels_computes(
    method: Any,  # noqa: ANN401  a literal
    rows: list[tuple[str | None, ...]],
    k: int,
    cost: Literal["range", "set", "taxonomy"],
) -> None:
    rows = [("30", "a", "u"), ("31", "b", "v"), *rows]  # every column has two values
    columns: dict[str, Cells] = dict(
        zip(DECLARED.qis, map(list, zip(*rows, strict=True)), strict=True)
    )
    table = TextTable(
        Path("t.csv"), pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    )
    plan = replace(PLAN, method=method, promise=Promise(k=k), cost=cost)
    made = anonymize(table, DECLARED, plan)
    out = made.publication.frame
    found = 0.0
    for name, column in columns.items():
        there = {cell for cell in column if cell is not None}
        order = sorted(JOB_NAMES if name == "job" else there)
        sure = [
            lost(label, column, cost, order=order, numeric=name == "age") for label in out[name]
        ]
        found += sum(sure) + made.report.n - len(out)
    assert getattr(made.report.gcp, cost) == pytest.approx(found / 3 / made.report.n, abs=1e-6)


def test_what_nobody_lacks_costs_the_same_where_it_might_be_lacking() -> None:
    """A row that is left out as nobody's leaves its mark in the domain, and in no loss."""
    rng = np.random.default_rng(5)
    cells = {"age": rng.integers(20, 60, 60).astype(str), "city": rng.choice([*"abcdef"], 60)}
    for cost in COSTS:
        plan = replace(PLAN, method="mondrian", cost=cost)
        whole = anonymize(
            TextTable(Path("t.csv"), pl.DataFrame(cells)), Declared(qis=["age", "city"]), plan
        )
        marked = pl.concat([pl.DataFrame(cells), pl.DataFrame({"age": [None], "city": [None]})])
        again = anonymize(TextTable(Path("t.csv"), marked), Declared(qis=["age", "city"]), plan)
        assert whole.publication.frame.equals(again.publication.frame)
        assert whole.report.gcp == again.report.gcp
