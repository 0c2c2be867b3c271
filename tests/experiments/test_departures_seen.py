"""Devices of one's own show no more departures than none do."""

import numpy as np
import pytest

from experiments.departures_seen import FIGURES, departures_seen


def seen(name: str, n_devices: int, n_own: int, secret: bytes | None) -> float:
    found = departures_seen(
        FIGURES[name],
        n_devices=n_devices,
        k=15,
        n_own=n_own,
        n_intervals=60,
        secret=secret,
        rng=np.random.default_rng(3),
    )
    assert found.n_departures > 40
    return found.n_seen / found.n_departures


@pytest.mark.parametrize("n_devices", [120, 200])  # above k in an area, and above 2 k
@pytest.mark.parametrize("name", FIGURES)
def test_own_devices_show_no_more_departures_than_none_do(name: str, n_devices: int) -> None:
    sharp = seen(name, n_devices, 5, None)
    alone, secret = (seen(name, n_devices, n_own, of) for n_own, of in ((0, None), (5, b"secret")))
    assert sharp > 1.5 * alone  # so the attack is known to work
    assert secret <= max(alone, 0.2)
