"""Minimality: who a value is of, by what would be lost if it were anybody else's, tried plainly."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.records.criteria import loss
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.audit.mathematics.minimality import minimality
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records.made import SCHEMA, categories, numbers, promises, records

N_CLASSES = 4
MOST = 12
"""Records, so that no move is beyond those that are tried."""


def lost(table: Records, class_of: Int32Array) -> float:
    """The loss of all records, summed."""
    problem = make_problem(table, SCHEMA, Promise(k=1))
    members = [np.flatnonzero(class_of == c) for c in range(N_CLASSES)]
    return sum(len(own) * loss(problem, own) for own in members if len(own))


def neighbours_of(class_of: Int32Array, c: int) -> list[Int32Array]:
    """All classes that one move between a class and another one makes."""
    own, others = np.flatnonzero(class_of == c).tolist(), np.flatnonzero(class_of >= 0).tolist()
    found = []
    for i, z in product([*own, None], others):
        other = class_of.copy()
        if class_of[z] == c or (class_of == class_of[z]).sum() < 2:
            continue
        if i is not None:
            other[i] = class_of[z]
            found.append(other.copy())
        other[z] = c
        found.append(other)
    return found


def left_to_gain(table: Records, promise: Promise, class_of: Int32Array, c: int) -> float:
    """What the best move gains that keeps the promise."""
    best, before = 0.0, lost(table, class_of)
    for other in neighbours_of(class_of, c):
        changed = set(np.unique(np.r_[class_of[other != class_of], other[other != class_of]]))
        broken = {each.class_number for each in verify_classes(table, SCHEMA, promise, other)}
        if not broken & changed:
            best = max(best, before - lost(table, other))
    return best


def naive(
    table: Records, promise: Promise, class_of: Int32Array
) -> tuple[list[float], list[float]]:
    """The success in each class that tells, and that of a guess."""
    success, guess = [], []
    value, usual = table.sensitive[:, 0], np.bincount(table.sensitive[class_of >= 0, 0])
    for c in range(N_CLASSES):
        own = np.flatnonzero(class_of == c)
        alone = [i for i in own if (value[own] == value[i]).sum() == 1]
        if len(own) < 2 or not alone:
            continue
        owner = min(alone, key=lambda i: (usual[value[i]], i))
        gains = []
        for each in own:
            sensitive = table.sensitive.copy()
            sensitive[[owner, each]] = sensitive[[each, owner]]
            gains.append(left_to_gain(replace(table, sensitive=sensitive), promise, class_of, c))
        named = [each for each, gain in zip(own, gains, strict=True) if gain <= min(gains) + 1e-9]
        if len(named) < len(own):
            success.append((owner in named) / len(named))
            guess.append(1 / len(own))
    return success, guess


@settings(max_examples=150)
@given(table=records(max_n=MOST), promise=promises(), data=st.data())
def test_who_leaves_the_least_to_gain_is_named_as_by_trying_all_moves(
    table: Records, promise: Promise, data: st.DataObject
) -> None:
    classes = st.lists(st.integers(-1, N_CLASSES - 1), min_size=table.n, max_size=table.n)
    class_of = np.array(data.draw(classes), np.int32)
    success, guess = naive(table, promise, class_of)
    found = minimality(table, SCHEMA, promise, class_of, 0, seed=0)
    assert found.n == len(success)
    assert found.success == pytest.approx(np.mean(success) if success else 0.0)
    assert found.blind == pytest.approx(np.mean(guess) if guess else 0.0)


PLACES = Schema((numbers("age", *range(400)),), (categories("ill", "ny"),), ((0,),))


def misplaced(seed: int | None) -> tuple[Records, Int32Array]:
    """Classes of six in which one fits another better: the only one ill, or by a seed anybody."""
    class_of = np.repeat(np.arange(40, dtype=np.int32), 6)
    age = 10 * class_of + np.tile([0, 1, 2, 3, 4, 32], 40)
    ill = np.tile([5], 40) if seed is None else np.random.default_rng(seed).integers(0, 6, 40)
    sensitive = np.zeros((240, 1), np.int32)
    sensitive[6 * np.arange(40) + ill] = 1
    qi = np.minimum(age, 399).astype(np.int32)[:, None]
    return Records(qi, sensitive, np.arange(240, dtype=np.int32)), class_of


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_who_is_in_a_class_for_their_value_is_named_and_who_is_there_by_chance_is_not(
    seed: int | None,
) -> None:
    table, class_of = misplaced(seed)
    found = minimality(table, PLACES, Promise(k=5, l=2), class_of, 0, seed=0)
    assert found.names == (seed is None)
    assert found.blind == pytest.approx(1 / 6)
    if seed is None:
        assert found.success == 1
        assert found.n > 20


def test_who_is_named_by_quasi_identifiers_without_the_release_is_not_named_by_it() -> None:
    class_of = np.repeat(np.arange(10, dtype=np.int32), 6)
    ill = np.tile([0, 0, 0, 0, 0, 1], 10).astype(np.int32)
    schema = Schema((*PLACES.qis, numbers("pay", *range(400))), PLACES.sensitive, ((0,), (1,)))
    qi = np.column_stack([40 * class_of, 3 * ill])  # in each place the one who has pay is ill
    table = Records(qi, ill[:, None], np.arange(60, dtype=np.int32))
    found = minimality(table, schema, Promise(k=5, l=2), class_of, 0, seed=0)
    assert found.alike == 1
    assert not found.names


def test_where_nothing_is_promised_of_values_nobody_is_named() -> None:
    table, class_of = misplaced(None)
    found = minimality(table, PLACES, Promise(k=5), class_of, 0, seed=0)
    assert (found.n, found.names) == (0, False)


def test_a_table_without_classes_names_nobody() -> None:
    table, class_of = misplaced(None)
    nothing = np.full_like(class_of, -1)
    found = minimality(table, PLACES, Promise(k=5, l=2), nothing, 0, seed=0)
    assert (found.n, found.n_tried, found.names) == (0, 0, False)
