"""Releases of tables that an audit reads."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from anonymizer.app.anonymize.plan import ReleasePlan
from anonymizer.app.anonymize.release_files import ReleasePaths, write_release
from anonymizer.app.anonymize.table_anonymization import anonymize
from anonymizer.app.table_options import CostName
from anonymizer.audit.findings import Finding, TableAuditReport
from anonymizer.audit.table_audit import audit_table
from anonymizer.domain.promises import Promise
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import TextTable, read_table

JOBS = (("a", "low", "*"), ("b", "low", "*"), ("c", "high", "*"), ("d", "high", "*"))
DECLARED = Declared(
    qis=["age", "job", "city"],
    sensitive=["illness"],
    id="name",
    sources=[["age", "job"], ["city"]],
    hierarchies={"job": JOBS},
)
ASKED = Promise(k=3, d=2, l=2, max_share=0.9, min_spread={"age": 1.0}, entropy_l=1.2, t=0.9)


Rows = list[dict[str, str]]


class Release:
    """A table that has been anonymized, as files that a test may spoil."""

    def __init__(self, folder: Path, *, promise: Promise = ASKED, cost: CostName = "range") -> None:
        self.folder = folder
        self.original, self.out, self.map = (
            folder / name for name in ("people.csv", "out.csv", "map.csv")
        )
        some_people().write_csv(self.original)
        plan = ReleasePlan(model="kld", method="hilbert", promise=promise, cost=cost)
        made = anonymize(self.table, DECLARED, plan)
        places = ReleasePaths(table=self.original, out=self.out, auditor_map=self.map)
        write_release(made, places)

    @property
    def table(self) -> TextTable:
        return read_table(self.original)

    def spoil(self, path: Path, change: Callable[[Rows], object]) -> None:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        change(rows)
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    def audit(self, promise: Promise = ASKED, declared: Declared = DECLARED) -> TableAuditReport:
        return audit_table(self.table, self.out, declared, promise, auditor_map=self.map, bands={})


def some_people(n: int = 90) -> pl.DataFrame:
    """Some people, some cells empty, two without a name."""
    rng = np.random.default_rng(4)
    named = [f"person-{i}" for i in rng.permutation(n)]
    return pl.DataFrame(
        {
            "name": [*named[:-2], None, None],
            "age": [str(20 + x) if x < 9 else "" for x in rng.integers(0, 10, n)],
            "job": [["a", "b", "c", "d", "?"][x] for x in rng.integers(0, 5, n)],
            "city": [["North|Side", "South}", "West"][x] for x in rng.integers(0, 3, n)],
            "illness": [["flu", "cold", "gout"][x] for x in rng.integers(0, 3, n)],
        }
    )


def finding(report: TableAuditReport, attack: str, attribute: str | None = None) -> Finding:
    (found,) = [f for f in report.findings if (f.attack, f.attribute) == (attack, attribute)]
    return found
