"""`python -m benchmarks.known_tables`: the search on tables whose losses others have published.

Needs the real data in `$ANONYMIZER_DATA`. Each promise is searched for from several seeds, for some
seconds of CPU time of one thread each. A row is printed as soon as it is known.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from rich.console import Console

from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.local_search import best, warm_up
from anonymizer.algorithms.records.measures import measure
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.task import TimeBudget
from anonymizer.domain.criteria.registry import bounds_of
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from anonymizer.files.coded_table import Declared, code_table
from anonymizer.files.hierarchies import read_hierarchy
from anonymizer.files.tables import read_table
from benchmarks.tables import Cell, Table, as_markdown, as_rich
from tests.algorithms.records.real_tables import adult

ARX_QIS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A promise about a table, and the bars of its release."""

    name: str
    """Of the row."""
    table: str
    """`arx` or `adult`."""
    promise: Promise
    cost: Cost
    dm_weight: float = 0.0
    """`promise`, `cost`, `dm_weight`: what is searched for."""
    gcp: float
    dm: float = 0.0
    """`gcp`, `dm`: bars of the information loss and of the discernibility; 0: none."""


_ADULT = Promise(k=20, d=2)
CASES = (
    *(
        Case(
            name=f"ARX, k = {k}",
            table="arx",
            promise=Promise(k=k, d=1),
            cost=Cost.TAXONOMY,
            gcp=bar,
        )
        for k, bar in ((2, 0.030), (5, 0.055), (10, 0.070))
    ),
    *(
        Case(name=f"Adult, {cost.name.lower()}", table="adult", promise=_ADULT, cost=cost, gcp=bar)
        for cost, bar in ((Cost.RANGE, 0.153), (Cost.SET, 0.110), (Cost.TAXONOMY, 0.380))
    ),
    Case(
        name="Adult, default promise",
        table="adult",
        promise=Promise(k=20, d=2, **bounds_of({}, d=2)),
        cost=Cost.RANGE,
        gcp=0.160,
    ),
    Case(
        name="Adult, small classes",
        table="adult",
        promise=_ADULT,
        cost=Cost.RANGE,
        dm_weight=0.5,
        gcp=0.18,
        dm=1.1e6,
    ),
)


def rows(
    cases: Sequence[Case], *, seeds: Sequence[int], budget_s: float
) -> Iterator[tuple[Cell, ...]]:
    """Yield the row of each case when all its seeds have been searched."""
    for case in cases:
        found = [_searched(case, seed, budget_s) for seed in seeds]
        gcp, dm = zip(*found, strict=True)
        reached = all(
            loss <= case.gcp and (not case.dm or squares <= case.dm) for loss, squares in found
        )
        yield (
            case.name,
            *(f"{loss:.4f}" for loss in (case.gcp, float(np.mean(gcp)), min(gcp), max(gcp))),
            case.dm or "",
            float(np.mean(dm)),
            "yes" if reached else "no",
        )


def known_tables(
    found: Sequence[tuple[Cell, ...]], *, seeds: Sequence[int], budget_s: float
) -> Table:
    """Return the rows as a table."""
    columns = ("promise", "bar", "mean GCP", "least", "most", "bar of DM", "mean DM", "reached")
    notes = (
        f"seeds {', '.join(map(str, seeds))}; {budget_s:g} s of CPU time of one thread each.",
        "ARX: its 30,162 rows of Adult, eight quasi-identifiers, its hierarchies; d = 1.",
        "Adult: 32,561 rows, six quasi-identifiers, k = 20, d = 2; the marker counts as a value.",
        "small classes: --dm-weight 0.5. DM: sum of the squared sizes of classes.",
        "reached: by every seed.",
    )
    return Table("Known tables", columns, found, notes)


def _searched(case: Case, seed: int, budget_s: float) -> tuple[float, float]:
    """Return the information loss and the discernibility of what is found."""
    records, schema = table_of(case.table)
    problem = make_problem(records, schema, case.promise, cost=case.cost)
    warm_up(schema, case.promise)
    time_left = TimeBudget(budget_s, time.process_time)
    class_of = best(
        problem,
        hilbert_order(records.qi, [qi.size for qi in schema.qis]),
        dm_weight=case.dm_weight,
        keep_going=lambda: time_left() > 0,
        time_left=time_left,
        seed=seed,
    )
    if class_of.min() < 0:
        raise RuntimeError("records were suppressed: the losses cannot be compared")
    squares = float((np.bincount(class_of).astype(np.float64) ** 2).sum())
    return measure(records, schema, class_of).gcp[case.cost], squares


@cache
def table_of(name: str) -> tuple[Records, Schema]:
    """Return the table `arx` or `adult`."""
    if name == "adult":
        return adult(markers_are_values=True, sensitive=None)
    folder = Path(os.environ["ANONYMIZER_DATA"], "adult")
    declared = Declared(
        qis=list(ARX_QIS),
        hierarchies={
            qi: read_hierarchy(folder / "hierarchies" / f"arx_{qi}.csv") for qi in ARX_QIS
        },
    )
    coded = code_table(read_table(folder / "adult_arx_30162.csv.gz", declared.columns), declared)
    return coded.records, coded.schema


def main(arguments: Sequence[str]) -> None:
    """Search, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.known_tables", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N")
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU time of each search")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name has this")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="file for the table")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if options.only in case.name]
    console, found = Console(), []
    for row in rows(cases, seeds=options.seeds, budget_s=options.seconds):
        console.print(*row)
        found.append(row)
    table = known_tables(found, seeds=options.seeds, budget_s=options.seconds)
    console.print(as_rich(table))
    if options.markdown:
        options.markdown.write_text(as_markdown(table), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
