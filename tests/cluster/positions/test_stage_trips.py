"""Trips of several sources: published when all have stated a window, left out if one cannot."""

import json

import numpy as np
import pytest

from anonymizer.algorithms.positions.trip_classes import N_STARTS, WindowTrips, n_cells_of
from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.cluster.positions.source_windows import WindowPiece
from anonymizer.cluster.positions.stage_trips import (
    LaneTrips,
    StatedTrips,
    decode_trips,
    stated_trips,
)
from anonymizer.networks import load_network
from anonymizer.pipeline.positions.out.trips import EndedTrips, TripMessages
from anonymizer.settings import Settings

NETWORK = load_network("grid:12x12")
SETTINGS = Settings.model_validate(
    {"trips_out": {"every_s": 600}, "counts": {"k": 3}, "cluster": {"n_parts": 2}}
)
N_CELLS = n_cells_of(NETWORK, 3)


def some_trips(seed: int, n: int = 60) -> WindowTrips:
    rng = np.random.default_rng(seed)
    cells = [rng.integers(0, most, n) for most in (N_CELLS, N_CELLS, N_STARTS)]
    roads = [np.unique(rng.integers(0, 40, rng.integers(0, 30))) for _ in range(n)]
    return WindowTrips._make([rng.integers(0, n, n) + 1000 * seed, *cells, roads])


def joined(one: WindowTrips, other: WindowTrips) -> WindowTrips:
    columns = (np.concatenate(pair) for pair in zip(one[:4], other[:4], strict=True))
    return WindowTrips._make([*columns, [*one.roads, *other.roads]])


def pieces_of(
    source: int, window: int, trips: WindowTrips, *, k: int = 3, n_cells: int = N_CELLS
) -> list[WindowPiece[StatedTrips]]:
    encoded = list(stated_trips(source, EndedTrips(window, k, trips), n_cells=n_cells))
    assert max(map(len, encoded)) < 700_000
    return [decode_trips(each, n_sources=2) for each in encoded]


def whole(
    source: int, window: int, trips: WindowTrips, *, k: int = 3, n_cells: int = N_CELLS
) -> WindowPiece[StatedTrips]:
    [stated] = pieces_of(source, window, trips, k=k, n_cells=n_cells)
    return stated


def test_the_trips_of_all_sources_are_classed_together() -> None:
    lane, one, other = LaneTrips(SETTINGS, NETWORK), some_trips(1), some_trips(2)
    assert lane.take(whole(0, 7, one)) == []
    cells, message = lane.take(whole(1, 7, other))
    assert cells.retain
    alone = TripMessages(SETTINGS, NETWORK, version=json.loads(message.payload)["network"])
    assert message == alone.of(EndedTrips(7, 3, joined(one, other)), wall_ahead_s=0.0)
    assert any(each["roads"] for each in json.loads(message.payload)["trips"])


def test_the_largest_k_that_a_source_promised_holds() -> None:
    """One was started again with a smaller k, after the trips had been made."""
    lane, one, other = LaneTrips(SETTINGS, NETWORK), some_trips(1), some_trips(2)
    lane.take(whole(0, 7, one, k=5))
    _, message = lane.take(whole(1, 7, other, k=3))
    assert json.loads(message.payload)["k"] == 5
    lane.take(whole(0, 8, one, k=2))
    _, message = lane.take(whole(1, 8, other, k=2))
    assert json.loads(message.payload)["k"] == 3  # its own


def test_many_trips_come_in_pieces_and_nothing_counts_twice_whatever_dies() -> None:
    roads = [np.arange(500)] * 1000
    many, few = some_trips(1, n=1000)._replace(roads=roads), some_trips(2)
    pieces = pieces_of(0, 7, many)
    assert len(pieces) > 2
    lane = LaneTrips(SETTINGS, NETWORK)
    for each in pieces[:2]:
        lane.take(each)
    state = lane.state()
    lane = LaneTrips(SETTINGS, NETWORK)
    lane.restore(state)
    for each in (*pieces[:1], *pieces[2:], pieces[-1]):
        assert lane.take(each) == []
    assert lane.take(whole(1, 7, few))[1] == TripMessages(
        SETTINGS, NETWORK, version=json.loads(lane._cells[0].payload)["network"]
    ).of(EndedTrips(7, 3, joined(many, few)), wall_ahead_s=0.0)


def test_a_window_that_a_source_has_not_watched_is_left_out() -> None:
    lane, trips = LaneTrips(SETTINGS, NETWORK), some_trips(1)
    lane.take(whole(0, 7, trips))
    assert lane.take(whole(1, 8, trips)) == []
    assert len(lane.take(whole(0, 8, trips))) == 2
    assert (lane.n_published, lane.n_suppressed) == (1, 1)


def test_a_source_that_stands_still_holds_up_three_windows() -> None:
    lane, trips = LaneTrips(SETTINGS, NETWORK), some_trips(1)
    for window in range(7, 12):
        assert lane.take(whole(0, window, trips)) == []
    assert lane.n_suppressed == 2
    # It comes back: what was left out is not published late.
    made = [lane.take(whole(1, window, trips)) for window in range(7, 12)]
    assert [len(each) for each in made] == [0, 0, 2, 2, 2]


def test_a_window_without_trips_is_published_empty() -> None:
    lane, none = LaneTrips(SETTINGS, NETWORK), some_trips(1, n=0)
    lane.take(whole(0, 7, none))
    _, message = lane.take(whole(1, 7, none))
    assert json.loads(message.payload)["trips"] == []


def test_trips_of_no_source_are_refused() -> None:
    [encoded] = stated_trips(2, EndedTrips(7, 3, some_trips(1)), n_cells=N_CELLS)
    with pytest.raises(ValueError, match="no piece"):
        decode_trips(encoded, n_sources=2)


def test_trips_that_were_stated_in_other_cells_are_left_out_and_counted() -> None:
    """All were started again with another k, so with other cells of the same network."""
    counts = SETTINGS.counts.model_copy(update={"k": 12})
    again = SETTINGS.model_copy(update={"counts": counts})
    assert n_cells_of(NETWORK, 12) < N_CELLS
    lane, trips = LaneTrips(SETTINGS, NETWORK), some_trips(1)
    lane.take(whole(0, 7, trips))
    state = unpack(pack(lane.state()))
    lane = LaneTrips(again, NETWORK)
    lane.restore(state)
    none = some_trips(1, n=0)
    assert lane.take(whole(1, 7, none, n_cells=4)) == []
    assert (lane.n_published, lane.n_suppressed) == (0, 1)
    state = lane.state()
    lane = LaneTrips(again, NETWORK)
    lane.restore(state)
    lane.take(whole(0, 8, none, n_cells=4))
    _, message = lane.take(whole(1, 8, none, n_cells=4))
    assert json.loads(message.payload)["n_cells"] == 4
    assert (lane.n_published, lane.n_suppressed) == (1, 1)
