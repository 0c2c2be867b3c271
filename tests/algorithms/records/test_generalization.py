import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import Classes, classes_of
from anonymizer.algorithms.records.generalization import Generalized, generalize
from anonymizer.algorithms.records.generalized_values import (
    Node,
    Range,
    Value,
    Values,
    number,
    text,
)
from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import NO_CODE, Attribute, Records, Schema
from tests.algorithms.records.made import SCHEMA, categories, numbers, records


@st.composite
def parted(draw: st.DrawFn) -> tuple[Records, Int32Array]:
    """Records in classes without a gap in their numbers, some left out."""
    table = draw(records())
    raw = draw(st.lists(st.integers(-1, 4), min_size=table.n, max_size=table.n))
    numbers_ = sorted(set(raw) - {-1})
    return table, np.array([numbers_.index(c) if c >= 0 else -1 for c in raw], np.int32)


def covers(qi: Attribute, value: Value, code: int) -> bool:
    """Whether a published value allows a code, judged by names and places alone."""
    if isinstance(value, Values):
        return (qi.label[code] if qi.label else "?") in value.labels
    if code == qi.missing:
        return value.missing
    if isinstance(value, Range):
        assert value.ends is not None
        return value.ends[0] <= float(qi.position[code]) <= value.ends[1]
    assert isinstance(value, Node)
    assert qi.hierarchy is not None
    above = [qi.hierarchy.label[node] for node in qi.hierarchy.ancestor[code]]
    return value.label in above


@pytest.mark.parametrize("cost", list(Cost))
@given(case=parted())
def test_what_is_published_of_a_class_covers_every_member(
    cost: Cost, case: tuple[Records, Int32Array]
) -> None:
    table, class_of = case
    told = generalize(table.qi, classes_of(class_of), SCHEMA, cost)
    for i, c in enumerate(class_of.tolist()):
        if c >= 0:
            for j, qi in enumerate(SCHEMA.qis):
                assert covers(qi, told.value(c, j), int(table.qi[i, j]))


@given(case=parted())
def test_the_codes_of_a_class_are_those_of_its_members_and_no_others(
    case: tuple[Records, Int32Array],
) -> None:
    table, class_of = case
    told = generalize(table.qi, classes_of(class_of), SCHEMA)
    assert len(told) == class_of.max() + 1
    for c in range(len(told)):
        for j in range(len(SCHEMA.qis)):
            there = sorted(set(table.qi[class_of == c, j].tolist()))
            assert told.present(c, j).tolist() == there
            assert (told.lo[c, j], told.hi[c, j]) == (there[0], there[-1])


@given(case=parted())
def test_a_range_ends_in_values_that_are_there_and_a_set_has_no_others(
    case: tuple[Records, Int32Array],
) -> None:
    table, class_of = case
    told = generalize(table.qi, classes_of(class_of), SCHEMA)
    for c in range(len(told)):
        for j, qi in enumerate(SCHEMA.qis):
            codes = sorted(set(table.qi[class_of == c, j].tolist()))
            real = [code for code in codes if code != qi.missing]
            if qi.numeric and real:
                value = told.value(c, j)
                assert isinstance(value, Range)
                assert value.ends == (qi.position[real[0]], qi.position[real[-1]])
                assert value.missing == (real != codes)
            elif qi.numeric:
                assert told.value(c, j) == Values(("?",))
            else:
                assert told.value(c, j) == Values(tuple(qi.label[code] for code in codes))


@pytest.mark.parametrize("cost", list(Cost))
@given(case=parted())
def test_the_text_of_each_class_is_that_of_its_own_value(
    cost: Cost, case: tuple[Records, Int32Array]
) -> None:
    table, class_of = case
    general = generalize(table.qi, classes_of(class_of), SCHEMA, cost)
    for j in range(len(SCHEMA.qis)):
        own = [text(general.value(c, j)) for c in range(len(general))]
        assert general.texts(j) == own


@pytest.mark.parametrize("cost", list(Cost))
@given(case=parted())
def test_ranks_are_equal_exactly_where_what_is_published_is(
    cost: Cost, case: tuple[Records, Int32Array]
) -> None:
    table, class_of = case
    told = generalize(table.qi, classes_of(class_of), SCHEMA, cost)
    rank = told.rank()
    for j in range(len(SCHEMA.qis)):
        texts = told.texts(j)
        assert len(set(zip(texts, rank[:, j].tolist(), strict=True))) == len(set(texts))
        assert len(set(rank[:, j].tolist())) == len(set(texts))


def one_class(qi: Attribute, *codes: int, cost: Cost = Cost.RANGE) -> str:
    return generalized(qi, *codes, cost=cost).texts(0)[0]


def generalized(qi: Attribute, *codes: int, cost: Cost = Cost.RANGE) -> Generalized:
    everyone = Classes(np.array([0, len(codes)]), np.arange(len(codes)))
    return generalize(np.array([codes], np.int32).T, everyone, Schema((qi,), (), ((0,),)), cost)


AGE = numbers("age", 17, 18, 30.5, missing=True)
WORK = categories("work", ["a", "b", "c", "d"], missing=True, halves=True)


@pytest.mark.parametrize(
    ("qi", "codes", "cost", "written"),
    [
        (AGE, [0, 2, 1], Cost.RANGE, "[17-30.5]"),
        (AGE, [1], Cost.RANGE, "[18-18]"),
        (AGE, [0, 1, 3], Cost.RANGE, "{[17-18]|?}"),
        (AGE, [3], Cost.RANGE, "{?}"),
        (numbers("balance", -2, 0.00001), [0, 1], Cost.RANGE, "[-2-0.00001]"),
        (WORK, [2, 0], Cost.RANGE, "{a|c}"),
        (WORK, [1], Cost.SET, "{b}"),
        (WORK, [4, 1], Cost.SET, "{b|?}"),
        (WORK, [4], Cost.SET, "{?}"),
        (WORK, [0, 1], Cost.TAXONOMY, "low"),
        (WORK, [2], Cost.TAXONOMY, "c"),
        (WORK, [0, 3], Cost.TAXONOMY, "*"),
        (WORK, [0, 1, 4], Cost.TAXONOMY, "{low|?}"),
        (WORK, [4], Cost.TAXONOMY, "{?}"),
        (AGE, [0, 2], Cost.TAXONOMY, "[17-30.5]"),
    ],
)
def test_generalized_values_are_written_as_the_design_says(
    qi: Attribute, codes: list[int], cost: Cost, written: str
) -> None:
    assert one_class(qi, *codes, cost=cost) == written


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_written_without_an_exponent_and_read_back_exactly(value: float) -> None:
    assert float(number(value)) == value
    assert "e" not in number(value)


def test_the_marker_counts_as_a_value_where_it_is_declared_as_one() -> None:
    qi = Attribute("work", np.arange(2.0), ("a", "?"), NO_CODE)
    assert one_class(qi, 0, 1) == "{a|?}"
    assert generalized(qi, 0, 1).value(0, 0) == Values(("a", "?"))
    assert generalized(WORK, 0, 4, cost=Cost.TAXONOMY).value(0, 0) == Node("a", missing=True)
