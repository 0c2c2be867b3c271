"""Devices of one's own show no more departures than none do."""

import numpy as np
import pytest

from experiments.departures_seen import FIGURES, departures_seen


def seen(name: str, n_own: int, secret: bytes | None) -> float:
    found = departures_seen(
        FIGURES[name],
        n_devices=120,
        k=15,
        n_own=n_own,
        n_intervals=60,
        secret=secret,
        rng=np.random.default_rng(3),
    )
    assert found.n_departures > 40
    return found.n_seen / found.n_departures


@pytest.mark.parametrize("name", FIGURES)
def test_own_devices_show_no_more_departures_than_none_do(name: str) -> None:
    sharp, alone, secret = seen(name, 5, None), seen(name, 0, None), seen(name, 5, b"secret")
    assert sharp > 1.5 * alone  # so the attack is known to work
    assert secret <= max(alone, 0.2)
