"""The minimality attack: who runs the method for each possibility learns no more than the class."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records import class_methods
from anonymizer.algorithms.records.blind_classes import METHODS, formed_blindly, merged
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import class_keeps, why_impossible
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.task import Task
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.criteria.criterion import Of
from anonymizer.domain.criteria.registry import criteria_of
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records.made import SCHEMA, categories, numbers, promises, records

BLIND = ("best", "hilbert", "mondrian")
WORK = 20_000
NO_T: dict[str, Any] = {"t": np.inf}


def task_of(table: Records, promise: Promise, method: str, schema: Schema = SCHEMA) -> Task:
    former = Former(schema=schema, promise=promise, model=MODELS["kld"], method=method)
    return Task(former=former, records=table, problem=former.problem(table), work=WORK)


def exchanged(table: Records, class_of: Int32Array, rng: np.random.Generator) -> Records:
    """The table with the sensitive values of each class in another order."""
    sensitive = table.sensitive.copy()
    for c in np.unique(class_of[class_of != SUPPRESSED]):
        own = np.flatnonzero(class_of == c)
        sensitive[own] = sensitive[rng.permutation(own)]
    return replace(table, sensitive=sensitive)


def formed_by(method: str, task: Task) -> tuple[Int32Array, Int32Array]:
    """The classes that a method forms without sensitive values, by record, and the release."""
    seen = []

    def spied(inner: Task) -> Int32Array:
        assert inner.problem.cells.shape[1] == len(inner.problem.rule)
        assert not inner.records.sensitive.size
        names = class_methods.METHODS[method](inner)
        seen.append((inner.records.person, names))
        return names

    release = formed_blindly(spied, task)
    formed = release.copy()
    for person, names in seen:
        formed[person] = names
    return formed, release


@pytest.mark.parametrize("method", BLIND)
@settings(max_examples=10)
@given(table=records(), promise=promises(), seed=st.integers(0, 99))
def test_values_exchanged_within_a_formed_class_leave_the_release_as_it_is(
    method: str, table: Records, promise: Promise, seed: int
) -> None:
    task = task_of(table, replace(promise, l=2), method)
    formed, release = formed_by(method, task)
    other = exchanged(table, formed, np.random.default_rng(seed))
    assert METHODS[method](task).tolist() == release.tolist()
    again = METHODS[method](task_of(other, task.former.promise, method))
    assert again.tolist() == release.tolist()


@settings(max_examples=30)
@given(table=records(), promise=promises(), seed=st.integers(0, 99), arranges=st.booleans())
def test_the_release_does_not_depend_on_the_order_of_the_records(
    table: Records, promise: Promise, seed: int, *, arranges: bool
) -> None:
    promise = replace(promise, l=2)
    order = np.random.default_rng(seed).permutation(table.n)
    if arranges:  # as tables are: only records with equal quasi-identifiers change places
        order = order[np.lexsort(table.qi[order].T[::-1])]
    release = METHODS["hilbert"](task_of(table, promise, "hilbert"))
    other = METHODS["hilbert"](task_of(table.only(order), promise, "hilbert"))
    assert other.tolist() == release[order].tolist()


def test_among_equal_records_the_seed_decides_who_is_with_whom() -> None:
    """Else who has the method knows it, too."""
    qi = np.repeat(np.arange(3, dtype=np.int32), 8)[:, None] * np.ones((1, 3), np.int32)
    table = Records(qi, np.arange(24, dtype=np.int32)[:, None] % 3, np.arange(24, dtype=np.int32))
    task = task_of(table, Promise(k=2, l=2), "hilbert")
    formers = [replace(task.former, seed=seed) for seed in range(4)]
    found = {tuple(METHODS["hilbert"](replace(task, former=former))) for former in formers}
    assert len(found) > 1


@given(table=records(), promise=promises(), n=st.integers(1, 9), seed=st.integers(0, 99))
def test_classes_of_which_each_keeps_the_promise_stay(
    table: Records, promise: Promise, n: int, seed: int
) -> None:
    problem = make_problem(table, SCHEMA, promise)
    given_ = np.random.default_rng(seed).integers(-1, n, table.n).astype(np.int32)
    kept = merged(problem, given_)
    again = merged(problem, kept)
    assert ((kept[:, None] == kept) == (again[:, None] == again)).all()
    assert ((kept == SUPPRESSED) == (again == SUPPRESSED)).all()


@settings(max_examples=30)
@given(table=records(), promise=promises(), seed=st.integers(0, 99))
def test_without_t_values_exchanged_within_a_published_class_change_no_other_class(
    table: Records, promise: Promise, seed: int
) -> None:
    promise, rng = replace(promise, l=2, **NO_T), np.random.default_rng(seed)
    release = METHODS["hilbert"](task_of(table, promise, "hilbert"))
    for c in np.unique(release[release != SUPPRESSED]):
        one = np.where(release == c, 0, SUPPRESSED).astype(np.int32)
        other = exchanged(table, one, rng)
        again = METHODS["hilbert"](task_of(other, promise, "hilbert"))
        alike = (release[:, None] == release) & (release != SUPPRESSED)
        alike_again = (again[:, None] == again) & (again != SUPPRESSED)
        outside = release != c
        assert (alike[outside] == alike_again[outside]).all()


@settings(max_examples=50)
@given(
    table=st.booleans().flatmap(lambda repeats: records(repeats=repeats)),
    promise=promises(),
    n=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_merged_classes_are_whole_and_keep_the_promise(
    table: Records, promise: Promise, n: int, seed: int
) -> None:
    problem = make_problem(table, SCHEMA, promise)
    given_ = np.random.default_rng(seed).integers(-1, n, table.n).astype(np.int32)
    found = merged(problem, given_)
    assert (found[given_ == SUPPRESSED] == SUPPRESSED).all()
    for c in range(n):
        assert len(np.unique(found[given_ == c])) <= 1
    for c in np.unique(found[found != SUPPRESSED]):
        assert class_keeps(problem.arrays, promise.k, np.flatnonzero(found == c))
    everyone = np.zeros(table.n, np.int32)
    if why_impossible(problem, SCHEMA) is None and (merged(problem, everyone) == 0).all():
        assert (found[given_ != SUPPRESSED] != SUPPRESSED).all() or (given_ == SUPPRESSED).any()


@pytest.mark.parametrize("method", BLIND)
def test_an_order_of_rows_that_goes_with_values_puts_no_like_ones_together(method: str) -> None:
    rng = np.random.default_rng(5)
    qi = rng.integers(0, 3, (600, 3)).astype(np.int32)
    sensitive = np.sort(rng.integers(0, 3, 600)).astype(np.int32)[:, None]
    number, promise = np.arange(600, dtype=np.int32), Promise(k=5, l=3)
    counts = []
    for rows in (number, rng.permutation(number)):
        table = Records(qi[rows], sensitive[rows], number)
        formed, _ = formed_by(method, task_of(table, promise, method))
        counts.append(len(np.unique(np.column_stack([formed, table.sensitive[:, 0]]), axis=0)))
    assert counts[0] > 0.9 * counts[1]


TOWN = Schema(
    (numbers("age", *range(60)), numbers("home", *range(40))),
    (categories("ill", "ny"),),
    ((0,), (1,)),
)


def townspeople(n: int, seed: int) -> Records:
    """People of whom a tenth are ill."""
    rng = np.random.default_rng(seed)
    qi = np.column_stack([rng.integers(0, 60, n), rng.integers(0, 40, n)]).astype(np.int32)
    ill = (rng.random(n) < 0.1).astype(np.int32)
    return Records(qi, ill[:, None], np.arange(n, dtype=np.int32))


def named(method: str, promise: Promise, n: int, seed: int) -> tuple[float, float]:
    """The mean probability with which the attack names the only one ill of a class, and chance.

    For each member of the class the adversary runs the method as if it were the ill one, and rules
    out who gives another release.
    """
    table = townspeople(n, seed)
    form = METHODS.get(method, class_methods.METHODS["sighted"])
    release = form(task_of(table, promise, method, TOWN))
    ill = table.sensitive[:, 0] == 1
    found, chance = [], []
    for c in np.unique(release[release != SUPPRESSED]):
        own = np.flatnonzero(release == c)
        if ill[own].sum() != 1:
            continue
        left = 0
        for each in own:
            sensitive = table.sensitive.copy()
            sensitive[own], sensitive[each] = 0, 1
            other = task_of(replace(table, sensitive=sensitive), promise, method, TOWN)
            left += form(other).tolist() == release.tolist()
        found.append(1 / left)
        chance.append(1 / len(own))
    assert len(found) > 2
    return float(np.mean(found)), float(np.mean(chance))


ASKED = {
    "l": Promise(k=5, l=2),
    "entropy_l": Promise(k=5, entropy_l=1.2),
    "t": Promise(k=5, t=0.15),
}
"""Of two values, one of which a tenth of the table has."""


def test_each_criterion_of_sensitive_attributes_is_attacked() -> None:
    assert ASKED.keys() == {each.name for each in criteria_of(Of.SENSITIVE)}


@pytest.mark.parametrize("promise", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("method", BLIND)
def test_who_runs_the_method_for_each_possibility_names_nobody(
    method: str, promise: Promise
) -> None:
    success, chance = named(method, promise, 150, 1)
    assert success == pytest.approx(chance)


@pytest.mark.parametrize("promise", ASKED.values(), ids=ASKED)
def test_a_search_that_sees_the_values_is_read_by_the_same_attack(promise: Promise) -> None:
    success, chance = named("sighted", promise, 150, 1)
    assert success > 2 * chance
