"""Headings, from what devices state and from traces to the road that is taken."""

import numpy as np
import polars as pl

from anonymizer.algorithms.positions.protection import Zones
from anonymizer.domain.network import RoadNetwork
from anonymizer.files.traces import trace_of
from anonymizer.networks import from_arrays
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.positions.decode.headings import headings_in
from anonymizer.pipeline.positions.tick.intake import coordinate_locator
from anonymizer.pipeline.positions.tick.trip_guard import Positions, TripGuard
from anonymizer.settings import TripSettings

EAST_ROAD, SIDE_ROAD = 0, 2
"""First nodes of a road to the east, and of one to the north that ends just before it."""


def crossing() -> RoadNetwork:
    return from_arrays(
        node_id=np.arange(4),
        lat=np.array([60.0, 60.0, 60.00007, 60.001]),
        lon=np.array([24.0, 24.01, 24.001, 24.001]),
        u=np.array([0, 2]),
        v=np.array([1, 3]),
        length_m=np.full(2, np.nan),
        speed_mps=np.ones(2),
        forward=np.ones(2, np.bool_),
        backward=np.ones(2, np.bool_),
    )


def positions(heading: list[float] | None) -> Positions:
    """Return positions at one place, which is nearer to the side road."""
    n = 3
    column = None if heading is None else np.array(heading)
    lat, lon = np.full(n, 60.00005), np.full(n, 24.001)
    return Positions(np.arange(n, dtype=np.int32), np.ones(n), lat, lon, np.zeros(n), column)


def test_the_heading_chooses_the_road_of_a_position() -> None:
    locate = coordinate_locator(with_zones(crossing(), Zones()), snap_limit_m=50)
    assert locate(positions(None)).tolist() == [SIDE_ROAD] * 3
    assert locate(positions([np.nan, 90, 0])).tolist() == [SIDE_ROAD, EAST_ROAD, SIDE_ROAD]


def test_a_position_that_waits_for_its_trip_to_go_on_keeps_its_heading() -> None:
    guard = TripGuard(TripSettings(enabled=True), Ledger())
    passed = []
    for now in range(0, 600, 10):
        slot, column = np.zeros(1, np.int32), np.array([float(now)])
        place = np.array([60 + now * 1e-4]), np.array([24.0])
        out = guard.pass_on(Positions(slot, column, *place, column, column % 360), now=now)
        assert out.heading is not None
        np.testing.assert_array_equal(out.heading, out.ts % 360)
        passed += out.ts.tolist()
    assert passed


def test_a_trace_states_headings_in_a_column_and_they_count_above_walking_pace() -> None:
    rows = {"device_id": ["a", "b", "c"], "ts": [1, 2, 3], "lat": [60] * 3, "lon": [24] * 3}
    trace = trace_of(pl.DataFrame(rows | {"heading_deg": [90, None, 5], "speed_mps": [9, 9, 1]}))
    np.testing.assert_array_equal(headings_in(trace), [90, np.nan, np.nan])
    trace = trace_of(pl.DataFrame(rows | {"heading_deg": [90, None, 5]}))
    np.testing.assert_array_equal(headings_in(trace), [90, np.nan, 5])
    assert headings_in(trace_of(pl.DataFrame(rows))) is None
