"""Risks of classes, against counting people one by one and drawing populations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.risks import expected_success, presence, risk

SIZES = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 9)), min_size=1, max_size=12)


@given(SIZES, st.floats(0, 1) | st.integers(1, 9).map(lambda n: 1 / n))
def test_the_risk_is_that_of_each_person_counted_one_by_one(
    classes: list[tuple[int, int]], threshold: float
) -> None:
    size = np.array([f for f, _ in classes])
    company = np.array([f + more for f, more in classes])
    people = [1 / (f + more) for f, more in classes for _ in range(f)]
    found = risk(size, 1 / company, threshold=threshold)
    assert found.highest == max(people)
    assert found.average == pytest.approx(sum(people) / len(people))
    assert found.share_above == pytest.approx(sum(x > threshold for x in people) / len(people))


def test_nobody_has_no_risk() -> None:
    none = np.zeros(0, np.int64)
    assert risk(none, none / 1, threshold=0.2) == risk(none, none / 1, threshold=0.0)
    assert risk(none, none / 1, threshold=0.2).average == 0


@pytest.mark.parametrize("share", [0.05, 0.4, 0.9])
def test_the_expected_success_is_the_mean_over_populations_that_may_be(share: float) -> None:
    """People are drawn one after the other until f are: how many were there to draw from?"""
    size = np.array([1, 2, 5, 30])
    rng = np.random.default_rng(1)
    drawn = np.array([rng.negative_binomial(f, share, 200_000) + f for f in size])
    assert expected_success(size, share) == pytest.approx((1 / drawn).mean(axis=1), rel=0.01)


def test_if_everybody_was_drawn_a_class_has_no_other_company() -> None:
    size = np.array([1, 3, 50])
    assert expected_success(size, 1.0) == pytest.approx(1 / size)


@given(st.integers(1, 400), st.floats(0.001, 0.999))
def test_the_expected_success_is_between_none_and_that_of_the_prosecutor(
    f: int, share: float
) -> None:
    found = float(expected_success(np.array([f]), share)[0])
    assert share / f * 0.999 <= found <= 1 / f * 1.001


def test_the_formulas_of_one_and_two_persons_are_the_published_ones() -> None:
    """Benedetti and Franconi's, as sdcMicro has them for frequencies of 1 and 2."""
    share = 0.03
    odds = share / (1 - share)
    one, two = expected_success(np.array([1, 2]), share)
    assert one == pytest.approx(odds * np.log(1 / share))
    assert two == pytest.approx(odds - odds**2 * np.log(1 / share))


def test_presence_is_the_share_of_the_people_who_fit_and_are_inside() -> None:
    assert presence(np.array([1, 4]), np.array([10, 4])).tolist() == [0.1, 1.0]
