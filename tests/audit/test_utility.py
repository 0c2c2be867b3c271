"""Utility of releases of which the truth is known."""

import numpy as np
import polars as pl
import pytest

from anonymizer.api.cloaking import CloakedTrace, cloak, measure_utility
from anonymizer.audit.publications import grid_cells, roads
from anonymizer.audit.utility import UtilityFigures
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from anonymizer.settings import Settings

NETWORK = load_network("grid:12x12")
SETTINGS = Settings.model_validate(
    {"adka": {"density_steps": [], "k_values": [2]}, "region": {"mode": "snapshot"}}
)
MINUTES = 5


def commuters(n: int = 120) -> pl.DataFrame:
    """Return devices that wander by one node every ten seconds."""
    rng = np.random.default_rng(3)
    node = rng.integers(0, NETWORK.n_nodes, n)
    rows = []
    for ts in range(0, 60 * MINUTES, 10):
        rows += [(f"d{i}", float(ts), int(v)) for i, v in enumerate(node)]
        first, count = NETWORK.first_arc_of[node], np.diff(NETWORK.first_arc_of)[node]
        node = NETWORK.neighbour_of[first + rng.integers(0, count)].astype(np.int64)
    return pl.DataFrame(rows, schema=["device_id", "ts", "node"], orient="row")


def as_released(trace: pl.DataFrame) -> pl.DataFrame:
    """Return a release that publishes every position as it is."""
    return trace.select(
        pseudonym=pl.col("device_id"),
        time=pl.col("ts"),
        region=pl.concat_list("node"),
        k=pl.lit(1),
        until=pl.col("ts") + 10.0,
    )


def of(figures: tuple[UtilityFigures, ...], what: str, side: int) -> UtilityFigures:
    [found] = [each for each in figures if (each.what, each.side) == (what, side)]
    return found


def test_a_release_of_the_truth_is_of_full_utility() -> None:
    trace = commuters()
    found = measure_utility(as_released(trace), trace, NETWORK, tick_s=0.001, settings=SETTINGS)
    for side in (0, 6, 18):
        # A region of one node is a piece, as it is when devices are spread evenly.
        exact = of(found, "release, spread evenly", side)
        assert (exact.density, exact.query or 0, exact.flow) == pytest.approx((0, 0, 0), abs=1e-9)
        assert of(found, "release", side).density == pytest.approx(0, abs=1e-9)
        assert exact.hotspots == pytest.approx(1)
        assert exact.popularity == pytest.approx(1)
        assert exact.crossing == pytest.approx(exact.crossing_true)
        raw = of(found, "raw", side)
        assert raw.density == 0
        assert raw.popularity == pytest.approx(1)
        assert (raw.speed_mps, exact.speed_mps) == (0, None)


def test_a_cloaked_trace_is_less_useful_than_the_truth_and_more_than_a_threshold() -> None:
    trace = commuters()
    cloaked = cloak(trace, NETWORK, seed=1, tick_s=10.0, settings=SETTINGS)
    assert isinstance(cloaked, CloakedTrace)
    found = measure_utility(cloaked, trace, NETWORK, tick_s=10.0, settings=SETTINGS)
    for side in (6, 18):
        release, threshold = of(found, "release", side), of(found, "threshold", side)
        assert 0 < release.density < threshold.density
        assert release.query is not None
        assert threshold.query is not None
        assert 0 < release.query < threshold.query
    assert {each.what for each in found} == {
        *("release", "release, spread evenly", "raw", "threshold"),
    }


def test_speeds_are_compared_with_those_between_positions_or_with_a_reading() -> None:
    trace = commuters()
    cloaked = cloak(trace, NETWORK, seed=1, tick_s=10.0, settings=SETTINGS)
    found = measure_utility(cloaked, trace, NETWORK, tick_s=10.0, settings=SETTINGS)
    assert of(found, "release", 6).speed_mps is None
    declared = SETTINGS.model_dump(exclude={"readings"}) | {
        "readings": [{"name": "speed", "lo": 0.0, "hi": 20.0, "statistics": ["mean"]}]
    }
    with_speed = Settings.model_validate(declared)
    driving = trace.with_columns(speed=pl.when(pl.col("node") < 72).then(3.0).otherwise(9.0))
    cloaked = cloak(driving, NETWORK, seed=1, tick_s=10.0, settings=with_speed)
    found = measure_utility(
        cloaked, driving, NETWORK, tick_s=10.0, settings=with_speed, speed="speed"
    )
    published = of(found, "release", 6).speed_mps
    assert published is not None
    assert 0 < published < 3  # nobody knows: 3
    with pytest.raises(InputError, match="no column speed"):
        measure_utility(cloaked, trace, NETWORK, settings=with_speed, speed="speed")


def test_a_device_at_a_crossing_is_on_its_roads_in_equal_shares() -> None:
    division = roads(NETWORK)
    assert division.share.shape == (NETWORK.n_nodes, NETWORK.n_roads)
    assert division.share.sum(axis=1) == pytest.approx(1)
    ends = (division.share > 0).sum(axis=0)
    assert set(ends.tolist()) == {2}


def test_a_region_that_has_ceased_to_hold_is_not_counted() -> None:
    trace = commuters()
    ended = as_released(trace).with_columns(until=pl.col("time"))
    found = measure_utility(ended, trace, NETWORK, tick_s=0.001, settings=SETTINGS)
    # Of the reports at a minute and one tick of grace, nothing else is left.
    exact = of(found, "release", 6)
    assert exact.density == 0
    late = ended.with_columns(time=pl.col("time") - 5.0, until=pl.col("time") - 4.0)
    assert of(
        measure_utility(late, trace, NETWORK, tick_s=0.001, settings=SETTINGS), "release", 6
    ).density == pytest.approx(1)


def test_a_release_shorter_than_two_minutes_is_refused() -> None:
    trace = commuters().filter(pl.col("ts") < 90)
    with pytest.raises(InputError, match="fewer than two whole intervals of 60 s"):
        measure_utility(as_released(trace), trace, NETWORK, settings=SETTINGS)


def test_cells_are_rows_and_columns_over_the_whole_network() -> None:
    cells = grid_cells(NETWORK, 3)
    assert sorted(set(cells.tolist())) == list(range(9))
    corners = cells[[0, 11, NETWORK.n_nodes - 12, NETWORK.n_nodes - 1]]
    assert len(set(corners.tolist())) == 4
