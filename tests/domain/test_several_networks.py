"""A network that consists of several: each alone, and which of them a trace is about."""

from dataclasses import replace

import numpy as np
import pytest

from anonymizer.domain.trace import Trace, check_one_network, layers_of
from anonymizer.errors import InputError
from anonymizer.networks import load_network

ROADS, PATHS = "grid:5x5", "grid:5x7"
BOTH = load_network(f"{ROADS} + {PATHS}")


def trace(*networks: str, device_of: tuple[int, ...] = (0, 1)) -> Trace:
    nowhere = np.zeros(len(device_of))
    return Trace(
        device_id=("a", "b"),
        device_of=np.array(device_of),
        ts=np.arange(float(len(device_of))),
        lat=nowhere,
        lon=nowhere,
        network=np.array(networks) if networks else None,
    )


def test_a_trace_says_on_which_network_its_devices_move() -> None:
    found = layers_of(trace(ROADS, PATHS), BOTH)
    assert found is not None
    assert found.tolist() == [0, 1]
    assert layers_of(trace(), load_network(ROADS)) is None
    check_one_network(load_network(ROADS))


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (trace(), "needs a column network"),
        (trace(ROADS, "city:100"), "none of grid:5x5, grid:5x7"),
        (trace(ROADS, PATHS, PATHS, device_of=(0, 1, 0)), "two networks for a device"),
    ],
)
def test_a_trace_that_does_not_say_it_is_refused(wrong: Trace, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        layers_of(wrong, BOTH)
    with pytest.raises(InputError, match="several networks"):
        check_one_network(replace(BOTH))
