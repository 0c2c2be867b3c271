"""The truth behind a release: where devices and ghosts are at each tick."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.truth import (
    NOWHERE,
    Truth,
    follow_devices,
    follow_in_districts,
)
from tests.audit.mathematics import naive
from tests.audit.mathematics.made import observed_of

TTL_S = 3.0
reports = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 10).map(float), st.integers(-1, 3)),
    max_size=12,
)


def followed(
    sent: list[naive.Report], seconds: list[int], *, device_of: list[int] | None = None
) -> Truth:
    """Return the truth of three devices if every pseudonym publishes at all those seconds."""
    n_pseudonyms = len(device_of) if device_of else 1
    lines = [(p, second, (0,), 2) for p in range(n_pseudonyms) for second in seconds]
    device, ts, node = zip(*sent, strict=True) if sent else ((), (), ())
    return follow_devices(
        observed_of(lines),
        device=np.array(device, np.int64),
        ts=np.array(ts, np.float64),
        node=np.array(node, np.int32),
        n_devices=3,
        ttl_s=TTL_S,
        device_of=None if device_of is None else np.array(device_of),
    )


@given(reports, st.lists(st.integers(0, 12), min_size=1, unique=True))
def test_a_device_is_at_its_newest_node_while_it_is_on_the_air(
    sent: list[naive.Report], seconds: list[int]
) -> None:
    truth = followed(sent, seconds)
    expected = [[naive.where(sent, d, s, TTL_S)[0] for d in range(3)] for s in sorted(seconds)]
    assert truth.place.tolist() == expected
    assert truth.on_air.tolist() == [[node != NOWHERE for node in row] for row in expected]


@given(reports, st.lists(st.integers(0, 12), min_size=1, unique=True))
def test_a_ghost_is_at_its_last_known_node_and_off_the_air(
    sent: list[naive.Report], seconds: list[int]
) -> None:
    truth = followed(sent, seconds, device_of=[2])
    places = [naive.where(sent, 2, s, TTL_S) for s in sorted(seconds)]
    assert truth.place[:, 2].tolist() == [known for _, known in places]
    assert truth.on_air[:, 2].tolist() == [there != NOWHERE for there, _ in places]
    np.testing.assert_array_equal(truth.place[:, :2], followed(sent, seconds).place[:, :2])


def test_a_position_at_the_end_of_a_tick_belongs_to_it_even_if_the_time_is_rounded() -> None:
    closing = 0.1 + 0.2  # 0.30000000000000004, published as 0.3
    lines = [(0, 0, (0,), 2)]
    observed = observed_of(lines)
    observed.time[0] = 0.3
    truth = follow_devices(
        observed,
        device=np.zeros(1, np.int64),
        ts=np.array([closing]),
        node=np.array([7], np.int32),
        n_devices=1,
        ttl_s=1.0,
    )
    assert truth.place.tolist() == [[7]]


def test_a_pseudonym_that_crosses_a_border_is_another_device_to_each_district() -> None:
    """A snapshot renews pseudonyms by the clock, and not at borders."""
    lines = [(0, 0, (0,), 2), (0, 1, (2,), 2), (0, 2, (2,), 2)]
    observed = observed_of(lines)
    truth = follow_in_districts(
        observed,
        device=np.zeros(3, np.int64),
        ts=np.array([0.0, 1.0, 2.0]),
        node=np.array([0, 2, 3], np.int32),
        district_of_node=np.array([0, 0, 1, 1], np.int32),
        ttl_s=TTL_S,
        device_of=np.zeros(1, np.int64),
    )
    there = truth.devices_of_records(observed)
    assert truth.place[observed.tick_of, there].tolist() == [0, 2, 3]
    left = truth.place[:, there[0]]
    assert left.tolist() == [0, NOWHERE, NOWHERE], "it is published elsewhere, so it is no ghost"
    assert truth.device_of is not None
    assert truth.device_of.tolist() == there[:1].tolist()
