import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.attacks.indistinguishability import indistinguishable_classes
from anonymizer.algorithms.attacks.value_linking import ValueLinks, link_values
from anonymizer.domain.arrays import FloatArray
from tests.algorithms.attacks.made import Line, observed_of

NONE = math.nan
SPAN = np.array([10.0])

few_values = st.sampled_from([NONE, 0.0, 1.0, 5.0, 10.0, 40.0])


def linked(lives: list[int], published: list[float], true: list[float]) -> ValueLinks:
    """Link pseudonyms of two ticks; those of one life are twins. Values are by pseudonym."""
    lines: list[Line] = [(p, t, (life,), 2) for p, life in enumerate(lives) for t in range(2)]
    observed = observed_of(lines)
    return link_values(
        observed,
        class_of=indistinguishable_classes(observed),
        published=column(published),
        true=column(true),
        span=SPAN,
    )


def column(values: list[float]) -> FloatArray:
    return np.array(values, np.float64)[:, None]


def naive_success(
    lives: list[int], published: list[float], true: list[float], target: int
) -> float:
    def apart(x: float, y: float) -> float:
        if math.isnan(x) or math.isnan(y):
            return float(math.isnan(x) != math.isnan(y))
        return min(abs(x - y) / 10.0, 1.0)

    distance = {
        p: sum(apart(published[2 * p + t], true[2 * target + t]) for t in range(2))
        for p in range(len(lives))
        if lives[p] == lives[target]
    }
    nearest = [p for p, d in distance.items() if d <= min(distance.values()) + 1e-6]
    return 1 / len(nearest) if target in nearest else 0.0


@given(st.data(), st.lists(st.integers(0, 1), min_size=1, max_size=6))
def test_linking_by_value_equals_its_naive_twin(data: st.DataObject, lives: list[int]) -> None:
    n = 2 * len(lives)
    published = data.draw(st.lists(few_values, min_size=n, max_size=n))
    true = data.draw(st.lists(few_values, min_size=n, max_size=n))
    links = linked(lives, published, true)
    targets = range(len(lives))
    assert links.success.tolist() == [naive_success(lives, published, true, p) for p in targets]
    assert links.by_chance.tolist() == [1 / lives.count(lives[p]) for p in targets]


def test_without_values_the_adversary_is_left_with_one_over_k() -> None:
    links = linked([0, 0, 0, 0], [NONE] * 8, [1, 2, 3, 4, 5, 6, 7, 8])
    assert links.success.tolist() == links.by_chance.tolist() == [0.25] * 4


def test_distinct_values_give_every_device_away() -> None:
    own = [1.0, 1.0, 4.0, 4.0, 9.0, 9.0]
    links = linked([0, 0, 0], own, own)
    assert links.success.tolist() == [1.0] * 3
    assert links.by_chance.tolist() == pytest.approx([1 / 3] * 3)


def test_a_profile_over_time_tells_what_no_single_value_tells() -> None:
    profiles = [1.0, 2.0, 2.0, 1.0, 1.0, 1.0, 2.0, 2.0]
    assert linked([0] * 4, profiles, profiles).success.tolist() == [1.0] * 4


def test_the_silent_one_among_those_with_values_is_found_by_its_silence() -> None:
    values = [NONE, NONE, 5.0, 5.0, 5.0, 5.0]
    assert linked([0, 0, 0], values, values).success.tolist() == [1.0, 0.5, 0.5]


def test_coarse_values_cost_less() -> None:
    rng = np.random.default_rng(7)
    n = 8
    true = np.repeat(rng.uniform(0, 10, n), 2)
    success = [
        linked([0] * n, rounded.tolist(), rounded.tolist()).success.mean()
        for rounded in (true, (true / 5).round() * 5, true * 0)
    ]
    assert success[0] == 1.0
    assert 1 / n < success[1] < 1.0
    assert success[2] == 1 / n


def test_pseudonyms_that_do_not_share_their_life_are_no_class() -> None:
    observed = observed_of([(0, 0, (1,), 2), (0, 1, (1,), 2), (1, 0, (1,), 2)])
    with pytest.raises(ValueError, match="equally many records"):
        link_values(
            observed,
            class_of=np.zeros(2, np.int64),
            published=column([1, 2, 3]),
            true=column([1, 2, 3]),
            span=SPAN,
        )
