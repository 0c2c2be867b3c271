"""Every criterion of a class: forming, verifying, measuring, and telling agree about it."""

import subprocess
import sys
from dataclasses import fields, replace
from html import escape
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.base import clone

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
from anonymizer.domain.criteria.registry import BY_NAME, CRITERIA, FURTHER
from anonymizer.domain.partial_promises import promise_about
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from anonymizer.errors import SettingsError
from anonymizer.estimators.anonymizer import Anonymizer
from anonymizer.settings import Settings
from anonymizer.settings.json_schema import json_schema
from tests.algorithms.records.made import SCHEMA, numbers
from tests.algorithms.records.made import records as tables
from tests.algorithms.records.partitions import partitions

NEW = {"tests.domain.a_new_criterion", "tests.domain.a_new_criterion_of_numbers"}
each_criterion = pytest.mark.parametrize("criterion", CRITERIA, ids=lambda each: each.name)
each_further = pytest.mark.parametrize("criterion", FURTHER, ids=lambda each: each.name)


WITH_PAY = replace(SCHEMA, sensitive=(*SCHEMA.sensitive, numbers("pay", 1, 2, 4, 9, missing=True)))


def with_pay(table: Records) -> Records:
    """The table with a sensitive number besides."""
    pay = (3 * table.qi[:, :1] + table.qi[:, 1:2]) % 5
    return replace(table, sensitive=np.column_stack([table.sensitive, pay]).astype(np.int32))


def number_of(criterion: ClassCriterion) -> str:
    """The number for which a bound is stated that is stated for each attribute."""
    return "age" if criterion.of is Of.QI else "pay"


def promise_of(criterion: ClassCriterion, bound: float, *, margin: int = 0) -> Promise:
    """A promise that asks this alone; of one attribute, where it is stated for each."""
    stated: Any = {number_of(criterion): bound} if criterion.per_attribute else bound
    return Promise(**{"k": 1, "d": 0, "l": 0, criterion.name: stated}, margin=margin)


def bounds(criterion: ClassCriterion) -> st.SearchStrategy[float]:
    some = [1, 2, 3] if criterion.name in {"k", "d", "l"} else [0.25, 0.5, 0.75, 1.25, 1.5, 2.0]
    return st.sampled_from([x for x in some if criterion.least <= x <= criterion.most])


@each_criterion
@given(data=st.data())
def test_what_a_search_takes_for_a_class_keeps_it(
    criterion: ClassCriterion, data: st.DataObject
) -> None:
    table = with_pay(data.draw(tables(max_n=8)))
    margin = data.draw(st.integers(0, 2))
    promise = promise_of(criterion, data.draw(bounds(criterion)), margin=margin)
    problem, one = make_problem(table, WITH_PAY, promise), np.zeros(table.n, np.int32)
    taken = class_keeps(problem.arrays, problem.k, np.arange(table.n))
    broken = verify_classes(table, WITH_PAY, promise, one)
    assert not (taken and broken)
    assert {each.part for each in broken} <= {criterion.name}


@each_criterion
@given(partitions())
def test_a_release_keeps_what_is_measured_and_breaks_a_little_more(
    criterion: ClassCriterion, made: tuple[Records, Int32Array]
) -> None:
    table, class_of = with_pay(made[0]), made[1]
    assume((class_of >= 0).any() and len(np.unique(table.person)) == table.n)
    found = measure(table, WITH_PAY, class_of)
    reached = getattr(found, criterion.name)
    if criterion.of is Of.SOURCE:
        reached = reached[:1]  # the other one is of one quasi-identifier
    known = [x for x in (reached if isinstance(reached, tuple) else (reached,)) if x is not None]
    worst = max(known) if criterion.is_most else min(known)
    more = worst * 0.999 if criterion.is_most else worst + (1 if criterion.of is Of.CLASS else 0.01)
    assert not verify_classes(table, WITH_PAY, promise_of(criterion, worst), class_of)
    broken = verify_classes(table, WITH_PAY, promise_of(criterion, more), class_of)
    assert broken or worst == 0
    assert {each.part for each in broken} <= {criterion.name}


PEOPLE = pl.DataFrame(
    {
        "age": [20 + i % 30 for i in range(60)],
        "home": ["xyz"[i % 3] for i in range(60)],
        "ill": ["abcd"[i % 4 if i % 5 else 0] for i in range(60)],
        "pay": [10 + i * 7 % 30 for i in range(60)],
    }
)
ASKED: dict[str, Any] = {
    "qi": ["age", "home"], "sa": ["ill", "pay"], "k": 5, "d": 2, "l": 2,
    "sources": [["age", "home"]], "time_budget_s": 0,
}  # fmt: skip


def stated(criterion: ClassCriterion) -> Any:  # noqa: ANN401  a number, or one for each name
    if criterion.per_attribute:
        return {number_of(criterion): 5}
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
    loose = anonymizer.anonymize(PEOPLE, qi=["age"], sa=ASKED["sa"], k=2, d=1, time_budget_s=0)
    strict = required | {"qi": ["age"], "sources": [], "k": 1, "d": 0, "l": 0}
    if criterion.of is not Of.SOURCE:
        bound: Any = 0.02 if criterion.is_most else 3.99
        bound = {number_of(criterion): 29} if criterion.per_attribute else bound
        broken = anonymizer.audit_table(loose, PEOPLE, **strict | {criterion.name: bound})
        assert not broken.holds


@pytest.mark.parametrize("criterion", BY_NAME, ids=lambda each: each.name)
def test_the_numbers_of_every_class_are_as_far_apart_as_was_asked(
    criterion: ClassCriterion,
) -> None:
    name, far = number_of(criterion), 4 if criterion.of is Of.QI else 21
    asked: dict[str, Any] = {"k": 5, criterion.name: {name: far}, "time_budget_s": 0}
    made = anonymizer.anonymize(
        PEOPLE, qi=["age", "home"], sa=["ill", "pay"], model="kd", method="hilbert", **asked
    )
    class_of = np.append(made.frame["class_id"].to_numpy(), -1)[made._made.publication.out_row]
    number = PEOPLE[name].to_numpy()
    spans = [np.ptp(number[class_of == c]) for c in set(class_of.tolist()) - {-1}]
    assert len(spans) > 1
    assert min(spans) >= far


@each_further
def test_an_estimator_takes_it_by_its_name_and_keeps_it(criterion: ClassCriterion) -> None:
    roles: dict[str, Any] = {"categorical": ["home", "ill"], "sensitive": ["ill", "pay"]}
    asked = {criterion.name: stated(criterion)}
    if criterion.of is Of.SOURCE:  # every column is a source of its own
        with pytest.raises(TypeError, match=criterion.name):
            Anonymizer("kd", k=5, d=1, **roles, **asked)
        return
    made = clone(Anonymizer("kd", k=5, d=1, method="hilbert", **roles, **asked)).fit(PEOPLE)
    for at, reached in enumerate(getattr(made.measures_, criterion.name)):
        kind = ("age", "home") if criterion.of is Of.QI else ("ill", "pay")
        bound = criterion.bound_for(stated(criterion), kind[at])
        if reached is not None:
            assert (reached <= bound + 1e-9) if criterion.is_most else (reached >= bound - 1e-9)
    if criterion.per_attribute:
        text: Any = {"home" if criterion.of is Of.QI else "ill": 1.0}
        with pytest.raises(ValueError, match=f"{criterion.name}: .* is not a numeric"):
            Anonymizer("kd", k=5, d=1, **roles | {criterion.name: text}).fit(PEOPLE)


@each_further
def test_a_bound_that_no_class_can_have_is_refused_wherever_it_is_stated(
    criterion: ClassCriterion,
) -> None:
    if criterion.is_most:
        assert criterion.most == 1  # a share, or a distance of shares
    for bound in (criterion.least - 0.01, criterion.most + 0.01, float("nan")):
        if bound == float("inf"):
            continue
        stated: Any = {number_of(criterion): bound} if criterion.per_attribute else bound
        asked: dict[str, Any] = {"qi": ["age"], "sa": ["ill", "pay"], criterion.name: stated}
        said = f"{criterion.name}: must be a number"
        with pytest.raises(SettingsError, match=said):
            anonymizer.anonymize(PEOPLE, k=2, **asked)
        with pytest.raises(SettingsError, match=said):
            anonymizer.audit_table(PEOPLE, PEOPLE, auditor_map=PEOPLE, **asked)
        if criterion.name in signature(Anonymizer).parameters:
            own: dict[str, Any] = {"sensitive": ["ill", "pay"], criterion.name: stated}
            with pytest.raises(ValueError, match=said):
                Anonymizer("kd", k=2, **own).fit(PEOPLE)
        with pytest.raises(ValidationError, match=criterion.name):
            Settings.model_validate({"streams": [a_stream({criterion.name: stated})]})


@pytest.mark.parametrize("criterion", BY_NAME, ids=lambda each: each.name)
def test_a_bound_of_what_is_no_number_of_its_kind_is_refused_wherever_it_is_stated(
    criterion: ClassCriterion,
) -> None:
    said = f"{criterion.name}: home is not a numeric {criterion.of.value}"
    asked: dict[str, Any] = {"qi": ["age"], "sa": ["ill", "pay"], criterion.name: {"home": 1.0}}
    with pytest.raises(SettingsError, match=said):
        anonymizer.anonymize(PEOPLE, k=2, **asked)
    release = anonymizer.anonymize(PEOPLE, k=2, qi=["age"], sa=["ill", "pay"], method="hilbert")
    with pytest.raises(SettingsError, match=said):
        anonymizer.audit_table(release, PEOPLE, **asked)
    with pytest.raises(ValidationError, match=said):
        Settings.model_validate({"streams": [a_stream({criterion.name: {"home": 1.0}})]})
    stray: dict[str, Any] = {criterion.name: {"home": 1.0}}
    no_records = np.zeros((0, 0), np.int32)
    with pytest.raises(SettingsError, match=said):
        verify_classes(
            Records(no_records, no_records, np.zeros(0, np.int32)),
            Schema((), (), ()),
            Promise(k=1, **stray),
            np.zeros(0, np.int32),
        )


@pytest.mark.parametrize("criterion", BY_NAME, ids=lambda each: each.name)
def test_a_distance_between_bands_is_no_distance(criterion: ClassCriterion) -> None:
    if criterion.of is not Of.SENSITIVE:
        return  # bands are of sensitive numbers
    said = f"{criterion.name}: pay is not a numeric sensitive attribute without bands"
    asked: dict[str, Any] = {criterion.name: {"pay": 1.0}, "bands": {"pay": [20.0, 30.0]}}
    with pytest.raises(SettingsError, match=said):
        anonymizer.anonymize(PEOPLE, qi=["age"], sa=["ill", "pay"], k=2, **asked)
    with pytest.raises(ValueError, match=said):
        Anonymizer("kd", k=2, categorical=["home", "ill"], sensitive=["ill", "pay"], **asked).fit(
            PEOPLE
        )
    stream = a_stream({criterion.name: {"pay": 1.0}})
    stream["attributes"][2]["bands"] = [20.0, 30.0]
    with pytest.raises(ValidationError, match=said):
        Settings.model_validate({"streams": [stream]})


@pytest.mark.parametrize("criterion", BY_NAME, ids=lambda each: each.name)
def test_what_a_silent_source_would_have_told_is_no_part_of_a_promise(
    criterion: ClassCriterion,
) -> None:
    asked: dict[str, Any] = {criterion.name: {"age": 2.0, "pay": 5.0}}
    told: dict[str, Any] = {criterion.name: {"pay": 5.0}}
    whole, part = Promise(k=4, **asked), Promise(k=4, **told)
    assert promise_about(whole, {"pay"}) == part
    left = promise_about(whole, {"pay"}, sensitive=False)
    assert left == (Promise(k=4) if criterion.of is Of.SENSITIVE else part)


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


def a_stream(promise: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "fleet",
        "sources": [{"name": "car", "tells": ["age", "ill", "pay"]}],
        "attributes": [
            {"name": "age", "lo": 18, "hi": 90},
            {"name": "ill", "values": ["a", "b"], "role": "sensitive"},
            {"name": "pay", "lo": 0, "hi": 90, "role": "sensitive"},
        ],
        "promise": {"l": 2} | promise,
    }


@each_further
def test_a_stream_may_promise_it_and_the_contract_tells_it(criterion: ClassCriterion) -> None:
    stream = a_stream({criterion.name: stated(criterion)})
    settings = Settings.model_validate({"inputs": [], "streams": [stream]})
    (told,) = [each.promise for each in outputs_of(settings) if "fleet" in each.where]
    bound = 5 if criterion.per_attribute else stated(criterion)
    text = criterion.promised.format(bound, f"`{number_of(criterion)}`")
    assert text in told
    if criterion.per_attribute:
        assert "5" in text
        assert number_of(criterion) in text


@each_criterion
def test_what_a_reader_can_verify_is_read_of_the_content(criterion: ClassCriterion) -> None:
    values = {"ill": ["a", "a", "a", "b"], "pay": [9.0, 10.0, 8.5, 9.5]}
    content = {"k": 4, "count": 4, "sensitive": values}
    strict = promise_of(criterion, 0.5 if criterion.is_most else 3)
    if criterion.of is Of.SENSITIVE:
        name = number_of(criterion) if criterion.per_attribute else "ill"
        found = broken_contents([content], strict, {name: ()})
        assert found == ({0} if criterion.is_read else set())
    assert not broken_contents([content], Promise(k=4), {"ill": ()})
    nobody = {"k": 0, "count": 0, "sensitive": {"ill": []}}
    assert 0 in broken_contents([nobody, content], promise_of(criterion, 1), {"ill": ()})
    assert broken_contents([nobody], Promise(k=0, l=2), {"ill": ()}) == {0}


@pytest.mark.skipif(not NEW.isdisjoint(MODULES), reason="it runs here")
def test_a_new_criterion_is_one_file() -> None:
    """These tests of two exercises and those of options, in a process that has both besides."""
    names = " or ".join(import_module(module).CRITERION.name for module in NEW)
    files = [__file__, str(Path(__file__).parents[1] / "test_table_options.py")]
    program = (
        "import sys, pytest\nfrom anonymizer.domain.criteria import MODULES\n"
        f"MODULES.extend({sorted(NEW)!r})\n"
        "sys.exit(pytest.main(['-v', '-n0', '-p', 'no:cacheprovider', '-k',"
        f" '{names} or reaches_its_field', *{files!r}]))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    n_of_options = (
        2 * len(NEW) + 1
    )  # limits in two models, and that what is given reaches its field
    n_of_numbers = 4  # of one of them
    assert f"{8 * len(NEW) + n_of_options + n_of_numbers} passed" in done.stdout
