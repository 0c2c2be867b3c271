"""Nobody weighs more than others in a table, and who owns rows of a class learns nothing by it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.app.anonymize.plan import ReleasePlan
from anonymizer.app.anonymize.release_files import ReleasePaths, write_release
from anonymizer.app.anonymize.table_anonymization import anonymize
from anonymizer.audit.findings import TableAuditReport
from anonymizer.audit.mathematics.heavy_persons import weigh
from anonymizer.audit.table_audit import audit_table
from anonymizer.domain.promises import Promise
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import TextTable

ILL = ("flu", "cold", "gout", "asthma")
DECLARED = Declared(qis=["age", "zip"], sensitive=["ill"], id="name")
PROMISE = Promise(k=5, d=2, l=2)
MODEL_NAMES = ("kd", "kld", "kaca", "cells")


def people(*, n_heavy: int = 80, alike: bool = True, seed: int = 1) -> TextTable:
    """A hundred people of one row, and one of many, each with gout."""
    rng = np.random.default_rng(seed)
    n = 100 + n_heavy
    heavy = np.arange(n) >= 100
    age, zip_ = rng.integers(20, 60, n), rng.integers(10, 30, n)
    if alike:
        age[heavy], zip_[heavy] = age[100], zip_[100]
    rows = {
        "name": ["often" if is_heavy else f"p{i}" for i, is_heavy in enumerate(heavy)],
        "age": [str(a) for a in age],
        "zip": [str(z) for z in zip_],
        "ill": ["gout" if is_heavy else str(rng.choice(ILL)) for is_heavy in heavy],
    }
    order = rng.permutation(n)
    return TextTable(Path("people.csv"), pl.DataFrame(rows)[order])


def plan_of(model: str, promise: Promise = PROMISE) -> ReleasePlan:
    method = next(name for name in MODELS[model].methods if name != "best")
    d = promise.d if model in {"kd", "kld"} else 1
    return ReleasePlan(model=model, method=method, promise=replace(promise, d=d))


def audited(
    folder: Path,
    table: TextTable,
    declared: Declared,
    plan: ReleasePlan,
    **asked: Any,  # noqa: ANN401
) -> TableAuditReport:
    made = anonymize(table, declared, plan)
    paths = ReleasePaths(table=Path("t"), out=folder / "out.csv", auditor_map=folder / "map.csv")
    write_release(made, paths)
    promise = replace(plan.promise, **asked.pop("promise", {}))
    return audit_table(
        table, paths.out, DECLARED, promise, auditor_map=folder / "map.csv", bands={}, **asked
    )


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("model", MODEL_NAMES)
def test_a_person_of_80_rows_is_published_once_in_every_model(model: str, *, alike: bool) -> None:
    table = people(alike=alike)
    made = anonymize(table, DECLARED, plan_of(model))
    name = table.frame["name"].to_numpy()
    out_row = made.publication.out_row
    assert (out_row[name == "often"] >= 0).sum() <= 1
    assert len(set(name[out_row >= 0])) == made.report.n_published
    assert made.report.suppressed["repeated"] == 79
    assert made.report.class_size.min == made.report.k >= 5


@pytest.mark.parametrize("model", MODEL_NAMES)
def test_a_release_is_the_same_whether_somebody_has_one_row_or_80_like_it(model: str) -> None:
    """So nobody is found, or read, by the number of their rows."""
    table = people()
    row_of = table.frame.with_row_index().unique("name", keep="first").sort("index")
    once = TextTable(table.path, row_of.drop("index"))
    assert len(once) == 101
    one, many = (anonymize(each, DECLARED, plan_of(model)) for each in (once, table))
    assert one.publication.frame.equals(many.publication.frame)


def test_the_audit_finds_a_release_in_which_somebody_weighs_more(tmp_path: Path) -> None:
    rows_as_people = replace(DECLARED, id=None)
    report = audited(tmp_path, people(), rows_as_people, plan_of("kd", Promise(k=10, d=1)))
    assert not report.holds
    [found, read] = [f for f in report.findings if f.attack == "heavy persons"]
    assert found.fails
    figures: dict[str, Any] = {**found.figures, **read.figures}
    assert figures["n_people"] == 1
    assert figures["share_max"] > 0.5  # ten "people" are one
    assert figures["share_read"] == 1.0 > figures["share_read_control"]
    report = audited(tmp_path, people(), DECLARED, plan_of("kd"))
    [found] = [f for f in report.findings if f.attack == "heavy persons"]
    assert found.holds
    assert report.holds


def test_the_rows_that_stand_for_people_do_not_depend_on_the_order_of_the_table() -> None:
    table = people(alike=False)
    other = TextTable(table.path, table.frame[::-1])
    one, two = (anonymize(each, DECLARED, plan_of("kld")) for each in (table, other))
    assert one.publication.frame.equals(two.publication.frame)
    drawn = set()
    for seed in range(20):
        out_row = anonymize(table, DECLARED, replace(plan_of("kd"), seed=seed)).publication.out_row
        drawn |= {
            int(i) for i in np.flatnonzero(out_row >= 0) if table.frame["name"][int(i)] == "often"
        }
    assert len(drawn) > 10


@pytest.mark.parametrize("model", ["kld", "cells"])
def test_with_a_margin_who_owns_three_of_a_class_finds_nothing(tmp_path: Path, model: str) -> None:
    table = people(n_heavy=1)
    promise = Promise(k=8, d=5 if model == "kld" else 1, l=2, entropy_l=1.3, t=0.9, margin=3)
    plan = plan_of(model, promise)
    report = audited(tmp_path, table, DECLARED, plan, n_own=3)
    against = [f for f in report.findings if f.attack.startswith("own rows: 3 against")]
    assert len(against) > 7
    assert all(f.required and f.holds for f in against)
    assert report.holds
    if model == "kld":  # cells are large enough by themselves here
        plain = replace(plan, promise=replace(promise, margin=0))
        without = audited(tmp_path, table, DECLARED, plain, n_own=3, promise={"margin": 3})
        assert not without.holds
        assert any(f.fails for f in without.findings if f.attack.startswith("own rows: 3"))


def test_heavy_persons_are_weighed_by_hand() -> None:
    class_of = np.array([0, 0, 0, 0, 1, 1, -1, 1], np.int32)
    person = np.array([0, 0, 0, 1, 2, 3, 3, 4], np.int32)
    ill = np.array([[2], [2], [2], [1], [0], [0], [2], [1]], np.int32)
    found = weigh(class_of, person, ill)
    assert (found.n_people, found.share_max, found.share_fair) == (1, 0.75, 0.5)
    assert (found.read, found.read_control) == ((1.0,), (0.0,))
    twice = weigh(np.zeros(3, np.int32), np.array([0, 0, 1], np.int32), ill[[0, 1, 4]])
    assert (twice.n_people, twice.read, twice.read_control) == (1, (1.0,), (0.0,))
    nobody = weigh(np.full(8, -1, np.int32), person, ill)
    assert (nobody.n_people, nobody.share_max, nobody.read) == (0, 0.0, (0.0,))
