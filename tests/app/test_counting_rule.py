"""The rule for counting: at no moment does anybody count a device twice."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import anonymizer
from anonymizer.networks import load_network
from anonymizer.settings import Settings

NETWORK = load_network("grid:12x12")
N_DEVICES, SECONDS = 60, 240


def wanderers(*, every_s: int = 5) -> pl.DataFrame:
    """Return devices that report at this interval and wander; half of them fall silent."""
    rng = np.random.default_rng(5)
    node = rng.integers(0, NETWORK.n_nodes, N_DEVICES)
    rows = []
    for ts in range(0, SECONDS, every_s):
        alive = np.arange(N_DEVICES) < (N_DEVICES if ts < SECONDS / 2 else N_DEVICES / 2)
        rows += [(f"d{i}", float(ts), int(node[i])) for i in np.flatnonzero(alive)]
        first, count = NETWORK.first_arc_of[node], np.diff(NETWORK.first_arc_of)[node]
        node = NETWORK.neighbour_of[first + rng.integers(0, count)].astype(np.int64)
    return pl.DataFrame(rows, schema=["device_id", "ts", "node"], orient="row")


def counted(frame: pl.DataFrame, now: float) -> list[str]:
    """Return the pseudonyms that hold at a moment, as a reader of the manual counts them."""
    newest = (
        frame.filter((pl.col("pseudonym") != "") & (pl.col("time") <= now))
        .sort("time")
        .group_by("pseudonym")
        .last()
    )
    names: list[str] = newest.filter(pl.col("until") > now)["pseudonym"].to_list()
    return names


@pytest.mark.parametrize("mode", ["session", "snapshot", "adka"])
@pytest.mark.parametrize("beat_s", [0.0, 30.0])
def test_nobody_counts_a_device_twice(mode: str, beat_s: float) -> None:
    tables: dict[str, Any] = {
        "region": {"mode": mode},
        "adka": {"density_steps": [], "k_values": [3]},
        "session": {"beat_s": beat_s, "epoch_s": 50.0},
    }
    frame, n_counted = published_once(wanderers(), tables)
    # The rule finds most of the devices, too, and fewer pseudonyms than there ever were.
    assert max(n_counted) > N_DEVICES / 2
    assert frame["pseudonym"].n_unique() > 2 * max(n_counted)


def test_a_group_that_ends_with_a_longer_epoch_keeps_what_it_has_said() -> None:
    """At the start nobody knows how often devices report, and the longest epoch is assumed."""
    tables: dict[str, Any] = {
        "adka": {"density_steps": [], "k_values": [3]},
    }
    frame, n_counted = published_once(wanderers(every_s=20), tables)
    first = frame.filter(pl.col("time") < 20)["pseudonym"].unique()
    lived = frame.filter(pl.col("pseudonym").is_in(first.to_list()))["time"].max()
    assert isinstance(lived, float)
    assert lived < 100, "the first groups did not end early"
    assert max(n_counted) > N_DEVICES / 2


def published_once(trace: pl.DataFrame, tables: dict[str, Any]) -> tuple[pl.DataFrame, list[int]]:
    """Cloak a trace; check that nobody is counted twice; return the release and the numbers."""
    settings = Settings.model_validate(tables)
    cloaked = anonymizer.cloak(trace, NETWORK, seed=1, settings=settings)
    assert isinstance(cloaked.frame, pl.DataFrame)
    assert isinstance(cloaked.auditor_map, pl.DataFrame)
    device_of = dict(cloaked.auditor_map.iter_rows())
    n_counted = []
    for now in np.arange(10.0, SECONDS, 3.7):
        devices = [device_of[name] for name in counted(cloaked.frame, float(now))]
        assert len(devices) == len(set(devices))
        n_counted.append(len(devices))
    return cloaked.frame, n_counted
