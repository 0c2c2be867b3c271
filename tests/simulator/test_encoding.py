"""Messages of simulated devices: the compiled texts against Python's own formatting."""

import json
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anonymizer.domain.arrays import FloatArray
from simulator.encoding import named_positions_to, positions_to, topic_level
from simulator.reports import Reports

Row: TypeAlias = tuple[int, float, float, float, float | None]
DEVICES = ("veh-1", 'of "quotes"', "Strassenbahn 7 Ä", "x" * 70)
rounded = st.integers(-1_800_000_000, 1_800_000_000).map(lambda n: n / 1e7)
rows = st.tuples(
    st.integers(0, len(DEVICES) - 1),
    st.floats(0, 4e9),
    rounded,
    rounded,
    st.none() | st.integers(0, 60),
)


def reports(*given: Row) -> tuple[Reports, FloatArray]:
    device, ts, lat, lon, speed = zip(*given, strict=True) if given else [()] * 5
    ts_s = np.array(ts, float)
    speeds = np.array([np.nan if each is None else each for each in speed], float)
    places = np.array(lat, float), np.array(lon, float)
    return Reports(np.array(device, np.int64), ts_s, *places, speed_mps=speeds), ts_s


@given(st.lists(rows, max_size=9))
@example([(0, 1.9999996, -0.0, 179.99999995, None), (0, 0.0, 89.99999999, -1e-8, 0.0)])
def test_texts_are_those_that_python_formats(
    given: list[Row],
) -> None:
    sent = positions_to("p/{device}", DEVICES)(*reports(*given))
    expected = []
    for device, ts, lat, lon, speed in given:
        text = f'{{"ts":{ts:.6f},"lat":{lat:.7f},"lon":{lon:.7f}'
        text += "}" if speed is None else f',"readings":{{"speed_mps":{speed:.2f}}}}}'
        expected.append((f"p/{topic_level(DEVICES[device])}", text.encode()))
    assert [(message.topic, message.payload) for message in sent] == expected


@given(st.lists(rows, max_size=9), st.integers(1, 4))
def test_texts_that_state_their_devices_are_joined_in_order(
    given: list[Row], per_message: int
) -> None:
    sent = named_positions_to("p/{device}", DEVICES, per_message=per_message)(*reports(*given))
    assert {message.topic for message in sent} <= {"p/batch"}
    arrays = [json.loads(message.payload) for message in sent]
    sizes = [min(per_message, len(given) - at) for at in range(0, len(given), per_message)]
    assert [len(array) for array in arrays] == sizes
    expected = [
        {"device": DEVICES[device], "ts": pytest.approx(ts, abs=1e-6), "lat": lat, "lon": lon}
        for device, ts, lat, lon, _ in given
    ]
    assert [each for array in arrays for each in array] == expected


def test_some_of_the_reports_keep_their_columns() -> None:
    many, _ = reports((0, 1.0, 2.0, 3.0, None), (1, 4.0, 5.0, 6.0, 7.0))
    [one] = zip(
        *(getattr(many.only(np.array([1])), n).tolist() for n in ("device", "lat", "speed_mps")),
        strict=True,
    )
    assert one == (1, 5.0, 7.0)
