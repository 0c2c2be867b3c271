"""Every criterion of a class: forming, verifying, measuring, and telling agree about it."""

import subprocess
import sys
from dataclasses import fields
from html import escape
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import anonymizer
from anonymizer.algorithms.records.content_verification import broken_contents
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.measures import measure
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.app.anonymize.report_page import page
from anonymizer.app.table_options import AuditOptions, TableOptions
from anonymizer.audit.evidence.outputs import outputs_of
from anonymizer.audit.registry import question_of
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.criteria import MODULES
from anonymizer.domain.criteria.criterion import ClassCriterion, Of
from anonymizer.domain.criteria.registry import CRITERIA, FURTHER
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from anonymizer.settings import Settings
from anonymizer.settings.json_schema import json_schema
from tests.algorithms.records.made import SCHEMA
from tests.algorithms.records.made import records as tables
from tests.algorithms.records.partitions import partitions

NEW = "tests.domain.a_new_criterion"
each_criterion = pytest.mark.parametrize("criterion", CRITERIA, ids=lambda each: each.name)
each_further = pytest.mark.parametrize("criterion", FURTHER, ids=lambda each: each.name)


def promise_of(criterion: ClassCriterion, bound: float, *, margin: int = 0) -> Promise:
    """A promise that asks this alone; of one attribute, where it is stated for each."""
    stated: Any = {"age": bound} if criterion.per_attribute else bound
    return Promise(**{"k": 1, "d": 0, "l": 0, criterion.name: stated}, margin=margin)


def bounds(criterion: ClassCriterion) -> st.SearchStrategy[float]:
    some = [1, 2, 3] if criterion.name in {"k", "d", "l"} else [0.25, 0.5, 0.75, 1.25, 1.5, 2.0]
    return st.sampled_from([x for x in some if criterion.least <= x <= criterion.most])


@each_criterion
@given(data=st.data())
def test_what_a_search_takes_for_a_class_keeps_it(
    criterion: ClassCriterion, data: st.DataObject
) -> None:
    table = data.draw(tables(max_n=8))
    margin = data.draw(st.integers(0, 2))
    promise = promise_of(criterion, data.draw(bounds(criterion)), margin=margin)
    problem, one = make_problem(table, SCHEMA, promise), np.zeros(table.n, np.int32)
    taken = class_keeps(problem.arrays, problem.k, np.arange(table.n))
    broken = verify_classes(table, SCHEMA, promise, one)
    assert not (taken and broken)
    assert {each.part for each in broken} <= {criterion.name}


@each_criterion
@given(partitions())
def test_a_release_keeps_what_is_measured_and_breaks_a_little_more(
    criterion: ClassCriterion, made: tuple[Records, Int32Array]
) -> None:
    table, class_of = made
    assume((class_of >= 0).any() and len(np.unique(table.person)) == table.n)
    found = measure(table, SCHEMA, class_of)
    reached = getattr(found, criterion.name)
    if criterion.of is Of.SOURCE:
        reached = reached[:1]  # the other one is of one quasi-identifier
    known = [x for x in (reached if isinstance(reached, tuple) else (reached,)) if x is not None]
    worst = max(known) if criterion.is_most else min(known)
    more = worst * 0.999 if criterion.is_most else worst + (1 if criterion.of is Of.CLASS else 0.01)
    assert not verify_classes(table, SCHEMA, promise_of(criterion, worst), class_of)
    broken = verify_classes(table, SCHEMA, promise_of(criterion, more), class_of)
    assert broken or worst == 0
    assert {each.part for each in broken} <= {criterion.name}


PEOPLE = pl.DataFrame(
    {
        "age": [20 + i % 30 for i in range(60)],
        "home": ["xyz"[i % 3] for i in range(60)],
        "ill": ["abcd"[i % 4 if i % 5 else 0] for i in range(60)],
    }
)
ASKED: dict[str, Any] = {
    "qi": ["age", "home"], "sa": ["ill"], "k": 5, "d": 2, "l": 2, "sources": [["age", "home"]],
    "time_budget_s": 0,
}  # fmt: skip


def stated(criterion: ClassCriterion) -> Any:  # noqa: ANN401  a number, or one for each name
    if criterion.per_attribute:
        return {"age": 5}
    return 0.5 if criterion.most == 1 else max(1.5, criterion.least)


@each_further
def test_who_asks_for_it_gets_it_with_its_words(criterion: ClassCriterion) -> None:
    asked = ASKED | {criterion.name: stated(criterion)}
    release = anonymizer.anonymize(PEOPLE, model="kld", **asked)
    assert getattr(release.report.asked, criterion.name) == stated(criterion)
    text = page(release.report, release._made.publication)
    assert escape(criterion.row.partition("{")[0]) in text
    required = {name: asked[name] for name in asked if name != "time_budget_s"}
    found = anonymizer.audit_table(release, PEOPLE, **required)
    mine = [each for each in found.findings if each.attack == criterion.finding]
    assert any(each.holds for each in mine), "asked for, and kept"
    loose = anonymizer.anonymize(PEOPLE, qi=["age"], sa=["ill"], k=2, d=1, time_budget_s=0)
    strict = required | {"qi": ["age"], "sources": [], "k": 1, "d": 0, "l": 0}
    if criterion.of is not Of.SOURCE:
        bound = {"age": 29} if criterion.per_attribute else 0.02 if criterion.is_most else 3.99
        broken = anonymizer.audit_table(loose, PEOPLE, **strict | {criterion.name: bound})
        assert not broken.holds


@each_further
def test_every_way_in_knows_it(criterion: ClassCriterion) -> None:
    for model in (TableOptions, AuditOptions):
        assert criterion.name in {each.name for each in fields(model)}
    for function in (anonymizer.anonymize, anonymizer.audit_table):
        assert criterion.name in signature(function).parameters
    keys = json_schema()["$defs"]["PromiseSettings"]["properties"]
    assert keys[criterion.name]["description"].startswith(criterion.meaning)
    question = question_of(criterion.finding)
    assert question is not None
    assert question.asks == criterion.question


@each_further
def test_a_stream_may_promise_it_and_the_contract_tells_it(criterion: ClassCriterion) -> None:
    stream = {
        "name": "fleet",
        "sources": [{"name": "car", "tells": ["age", "ill"]}],
        "attributes": [
            {"name": "age", "lo": 18, "hi": 90},
            {"name": "ill", "values": ["a", "b"], "role": "sensitive"},
        ],
        "promise": {"l": 2, criterion.name: stated(criterion)},
    }
    settings = Settings.model_validate({"inputs": [], "streams": [stream]})
    (told,) = [each.promise for each in outputs_of(settings) if "fleet" in each.where]
    assert criterion.promised.format(stated(criterion)) in told


@each_criterion
def test_what_a_reader_can_verify_is_read_of_the_content(criterion: ClassCriterion) -> None:
    values = ["a", "a", "a", "b"]
    content = {"k": 4, "count": 4, "sensitive": {"ill": values}}
    strict = promise_of(criterion, 0.5 if criterion.is_most else 3)
    if criterion.of is Of.SENSITIVE:
        found = broken_contents([content], strict, {"ill": ()})
        assert found == ({0} if criterion.is_read else set())
    assert not broken_contents([content], Promise(k=4), {"ill": ()})
    nobody = {"k": 0, "count": 0, "sensitive": {"ill": []}}
    assert 0 in broken_contents([nobody, content], promise_of(criterion, 1), {"ill": ()})
    assert broken_contents([nobody], Promise(k=0, l=2), {"ill": ()}) == {0}


@pytest.mark.skipif(NEW in MODULES, reason="it runs here")
def test_a_new_criterion_is_one_file() -> None:
    """These tests of an exercise, in a process that has it besides."""
    program = (
        "import sys, pytest\nfrom anonymizer.domain.criteria import MODULES\n"
        f"MODULES.append({NEW!r})\n"
        "sys.exit(pytest.main(['-v', '-n0', '-p', 'no:cacheprovider', '-k', 'alpha',"
        f" {__file__!r}]))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "6 passed" in done.stdout
