import numpy as np
import pytest

from anonymizer.algorithms.kaca.features import Feature, Points, Scale, features, sum_of_squares
from anonymizer.algorithms.records.attributes import categories
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.kaca import naive
from tests.algorithms.kaca.made import HOW, TOLL, toll


def one(qi: Attribute, how: Feature, *codes: int) -> np.ndarray:
    table = np.array([codes], np.int32).T
    empty = np.zeros((len(codes), 0), np.int32)
    records = Records(table, empty, np.arange(len(codes), dtype=np.int32))
    return features(records, Schema((qi,), (), ((0,),)), [how]).of()


def test_a_section_is_its_full_number_and_a_time_its_minutes_both_over_their_span() -> None:
    lo, hi = 10530010, 7611530010
    found = features(toll([1, 3, 2], [0, 720, 1439]), TOLL, HOW).of()
    assert found[:, 0].tolist() == pytest.approx([(5615530120 - lo) / (hi - lo), 0, 1])
    assert found[:, 1].tolist() == pytest.approx([0, 720 / 1439, 1])


def test_on_a_circle_midnight_lies_between_its_neighbours() -> None:
    minute = TOLL.qis[1]
    before, after, noon = one(minute, Feature(Scale.CIRCLE), 1439, 1, 720)
    assert np.linalg.norm(before - after) == pytest.approx(2 / 1440, rel=1e-4)
    assert np.linalg.norm(before - noon) == pytest.approx(1 / np.pi, rel=1e-4)


def test_categories_without_an_order_are_all_equally_far_apart() -> None:
    a, b, c = one(Attribute("x", np.arange(3.0), ("a", "b", "c")), Feature(weight=2), 0, 1, 2)
    assert np.linalg.norm(a - b) == pytest.approx(2)
    assert np.linalg.norm(a - c) == pytest.approx(2)


def test_categories_of_a_taxonomy_and_too_many_of_them_lie_on_a_line() -> None:
    ordered = categories("x", "abc", branches=[(c, "*") for c in "abc"])
    assert one(ordered, Feature(), 0, 1, 2).tolist() == [[0], [0.5], [1]]
    many = Attribute("x", np.arange(17.0), tuple("abcdefghijklmnopq"))
    assert one(many, Feature(), 16, 0).tolist() == [[1], [0]]


def test_a_missing_value_is_no_neighbour_of_any_other() -> None:
    section = Attribute("x", np.arange(4.0), ("G10", "G20", "none", "?9"), missing=3)
    assert one(section, Feature(Scale.DIGITS), 0, 1, 2, 3).tolist() == [[0], [1], [-1], [-1]]
    minute = Attribute("x", np.array([0.0, 720.0, 1440.0]), missing=2)
    assert one(minute, Feature(Scale.CIRCLE), 2).tolist() == [[0, 0]]


def test_a_domain_of_one_value_tells_nothing_apart() -> None:
    assert one(Attribute("x", np.array([7.0])), Feature(), 0).tolist() == [[0]]
    assert one(Attribute("x", np.zeros(1), ("G7",)), Feature(Scale.DIGITS), 0).tolist() == [[0]]
    assert one(Attribute("x", np.zeros(1), ("G",)), Feature(Scale.DIGITS), 0).tolist() == [[-1]]


@pytest.mark.parametrize(
    "how",
    [
        (Feature(),),
        (Feature(Scale.CIRCLE), Feature()),
        (Feature(), Feature(Scale.DIGITS)),
        (Feature(), Feature(Scale.CIRCLE, period=0)),
        (Feature(weight=-1), Feature()),
        (Feature(), Feature(weight=float("nan"))),
    ],
)
def test_a_scale_that_does_not_suit_is_refused(how: tuple[Feature, ...]) -> None:
    with pytest.raises(ValueError, match=r"one feature|section: |minute: "):
        features(toll([0], [0]), TOLL, how)


def test_the_sum_of_squares_is_over_what_is_published() -> None:
    of_code = np.array([[0.0, 1], [2, 1], [9, 9], [4, 4], [4, 5]])
    codes = np.repeat(np.arange(5, dtype=np.int32)[:, None], 2, axis=1)
    feature = Points(codes, np.arange(2), np.array([0, 5]), of_code.T.ravel())
    class_of = np.array([0, 0, -1, 1, 1], np.int32)
    plain = naive.squares([(0, 1), (2, 1)]) + naive.squares([(4, 4), (4, 5)])
    assert sum_of_squares(feature, class_of) == pytest.approx(plain)
