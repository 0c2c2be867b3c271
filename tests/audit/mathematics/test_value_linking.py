"""The value linking attack, and the readings that it starts from, against naive twins."""

import math
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.indistinguishability import indistinguishable_classes
from anonymizer.audit.mathematics.value_linking import ValueLinks, last_sensed, link_values
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.readings import ReadingAttribute
from tests.audit.mathematics.made import Line, observed_of

NONE = math.nan
SPAN = np.array([10.0])

few_values = st.sampled_from([NONE, 0.0, 1.0, 5.0, 10.0, 40.0])


def linked(lives: list[int], published: list[float], true: list[float]) -> ValueLinks:
    """Link pseudonyms over two ticks; equal lives are one class. Values are by pseudonym."""
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


def test_distinct_values_identify_every_device() -> None:
    own = [1.0, 1.0, 4.0, 4.0, 9.0, 9.0]
    links = linked([0, 0, 0], own, own)
    assert links.success.tolist() == [1.0] * 3
    assert links.by_chance.tolist() == pytest.approx([1 / 3] * 3)


def test_a_profile_over_time_identifies_devices_that_no_single_value_identifies() -> None:
    profiles = [1.0, 2.0, 2.0, 1.0, 1.0, 1.0, 2.0, 2.0]
    assert linked([0] * 4, profiles, profiles).success.tolist() == [1.0] * 4


def test_the_only_device_without_values_is_identified_by_their_absence() -> None:
    values = [NONE, NONE, 5.0, 5.0, 5.0, 5.0]
    assert linked([0, 0, 0], values, values).success.tolist() == [1.0, 0.5, 0.5]


def test_coarser_values_identify_fewer_devices() -> None:
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


def test_pseudonyms_with_different_lives_cannot_be_one_class() -> None:
    observed = observed_of([(0, 0, (1,), 2), (0, 1, (1,), 2), (1, 0, (1,), 2)])
    with pytest.raises(ValueError, match="equally many records"):
        link_values(
            observed,
            class_of=np.zeros(2, np.int64),
            published=column([1, 2, 3]),
            true=column([1, 2, 3]),
            span=SPAN,
        )


TTL_S = 3.0
FINE = ReadingAttribute("fine", 0.0, 10.0)
COARSE = ReadingAttribute("coarse", 0.0, 10.0, step=5.0)

Report: TypeAlias = tuple[int, float, float, float]
"""Device, unix seconds, and its readings of both attributes."""

readings = st.sampled_from([NONE, -3.0, 1.0, 2.4, 2.6, 99.0])
reports = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 10).map(float), readings, readings), max_size=12
)


def naive_newest(sent: list[Report], device: int, second: float, attribute: int) -> float:
    """Return the newest reading; among readings at the same time the largest."""
    known = [
        (ts, value)
        for d, ts, *values in sent
        if d == device
        and second - TTL_S <= ts <= second
        and not math.isnan(value := values[attribute])
    ]
    if not known:
        return NONE
    inside = min(max(max(known)[1], 0.0), 10.0)
    return (
        inside if attribute == 0 else {0.0: 0.0, 1.0: 0.0, 2.4: 0.0, 2.6: 5.0, 10.0: 10.0}[inside]
    )


@given(reports, st.lists(st.tuples(st.integers(0, 2), st.integers(0, 14)), min_size=1, unique=True))
def test_the_newest_readings_of_each_device_equal_those_of_the_naive_twin(
    sent: list[Report], records: list[tuple[int, int]]
) -> None:
    names = sorted({device for device, _ in records})  # the devices that publish at all
    lines = [(names.index(device), second, (0,), 2) for device, second in records]
    sent = sorted(sent, key=lambda report: report[1])
    columns = np.array(sent, np.float64).reshape(-1, 4)
    observed = observed_of(lines)
    sensed = last_sensed(
        observed,
        attributes=[FINE, COARSE],
        device=columns[:, 0].astype(np.int64),
        ts=columns[:, 1],
        value=columns[:, 2:],
        device_of=np.array(names),
        ttl_s=TTL_S,
    )
    expected = [
        [naive_newest(sent, names[p], observed.time[t], a) for a in (0, 1)]
        for p, t in zip(observed.pseudonym_of.tolist(), observed.tick_of.tolist(), strict=True)
    ]
    assert np.array_equal(sensed, expected, equal_nan=True)
