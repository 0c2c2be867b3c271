import math
from typing import TypeAlias

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.attacks.value_linking import last_sensed
from anonymizer.algorithms.positions.readings import ReadingAttribute
from tests.algorithms.attacks.made import observed_of

TTL_S = 3.0
FINE = ReadingAttribute("fine", 0.0, 10.0)
COARSE = ReadingAttribute("coarse", 0.0, 10.0, step=5.0)
NONE = math.nan

Said: TypeAlias = tuple[int, float, float, float]
"""Device, unix seconds, and what it read of both attributes."""

readings = st.sampled_from([NONE, -3.0, 1.0, 2.4, 2.6, 99.0])
reports = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 10).map(float), readings, readings), max_size=12
)


def naive_newest(said: list[Said], device: int, second: float, attribute: int) -> float:
    """Return the newest reading, of several at one time the largest."""
    known = [
        (ts, value)
        for d, ts, *values in said
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
def test_what_a_device_had_sensed_equals_its_naive_twin(
    said: list[Said], records: list[tuple[int, int]]
) -> None:
    names = sorted({device for device, _ in records})  # of the devices that publish at all
    lines = [(names.index(device), second, (0,), 2) for device, second in records]
    said = sorted(said, key=lambda report: report[1])
    columns = np.array(said, np.float64).reshape(-1, 4)
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
        [naive_newest(said, names[p], observed.time[t], a) for a in (0, 1)]
        for p, t in zip(observed.pseudonym_of.tolist(), observed.tick_of.tolist(), strict=True)
    ]
    assert np.array_equal(sensed, expected, equal_nan=True)
