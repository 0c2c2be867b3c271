"""Places where a device stops again and again are learned, hidden and never written."""

from typing import Any

import numpy as np

from anonymizer.algorithms.positions.device_keys import slots_as_keys
from anonymizer.algorithms.positions.protection import IN_ZONE
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.positions.trip_classes import n_cells_of
from anonymizer.domain.arrays import BoolArray
from anonymizer.domain.protection import TripRule
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.positions.tick.engine import PositionEngine
from anonymizer.pipeline.positions.tick.factory import engine_parameters, intake_parameters
from anonymizer.pipeline.positions.tick.intake import Intake, matching_with
from anonymizer.pipeline.positions.tick.learned_stops import LearnedStops
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.settings import Settings, zones_of
from tests.app.commuters import DAY_S, commuting

NETWORK = load_network("city:1000")
CELL = compact_parts(NETWORK, n_cells_of(NETWORK, 10))
N_DAYS = 5
WORLD = commuting(NETWORK, n_devices=60, n_days=N_DAYS, rush_s=1800, every_s=10.0, seed=3)


def stops(days: int = 2, *, most_devices: int = 1000) -> LearnedStops:
    return LearnedStops(TripRule(), days, NETWORK, keys=slots_as_keys, most_devices=most_devices)


def hidden_rows(
    learned: LearnedStops, trace: Trace = WORLD.trace, *, tick_s: float = 60.0
) -> BoolArray:
    """Return which rows of a trace of nodes are hidden."""
    node = np.searchsorted(NETWORK.node_id, np.asarray(trace.node)).astype(np.int32)
    hidden = np.zeros(trace.n_rows, np.bool_)
    number = np.floor(trace.ts / tick_s)
    for rows in np.split(np.arange(trace.n_rows), np.flatnonzero(np.diff(number)) + 1):
        positions = Positions(
            trace.device_of[rows].astype(np.int32),
            *(trace.ts[rows], trace.lat[rows], trace.lon[rows], np.zeros(len(rows))),
        )
        learned.learn(positions, node[rows], now=float((number[rows[0]] + 1) * tick_s))
        hidden[rows] = learned.keep_out(positions, node[rows]) == IN_ZONE
    return hidden


def test_homes_are_hidden_from_the_third_day_on_and_nothing_else_but_stops() -> None:
    trace, learned = WORLD.trace, stops(2)
    node = np.searchsorted(NETWORK.node_id, np.asarray(trace.node))
    hidden = hidden_rows(learned)
    day = (trace.ts // DAY_S).astype(np.int64)
    at_home = CELL[node] == CELL[WORLD.home[trace.device_of]]
    share = [float(hidden[at_home & (day == d)].mean()) for d in range(N_DAYS)]
    # On the first day nothing is known; on the second the evening's stop at home is the second.
    assert share[0] == 0
    assert share[1] < 1
    assert share[2:] == [1.0] * (N_DAYS - 2)
    # What is hidden are the cells in which trips end: home and work.
    for d in range(trace.n_devices):
        own = trace.device_of == d
        work = CELL[node[own][np.argmax(np.diff(trace.ts[own], prepend=0) > 3600)]]
        assert set(CELL[node[own & hidden]].tolist()) <= {CELL[WORLD.home[d]], work, *_ends(own)}


def _ends(own: BoolArray) -> list[Any]:
    """Return the cells where a device was before and after each silence."""
    trace = WORLD.trace
    node = np.searchsorted(NETWORK.node_id, np.asarray(trace.node))[own]
    breaks = np.flatnonzero(np.diff(trace.ts[own]) > 300)
    return [int(each) for each in CELL[node[np.concatenate([[0, -1], breaks, breaks + 1])]]]


def test_in_the_flow_a_learned_place_is_a_zone_but_its_trips_are_told() -> None:
    trace, ledger = WORLD.trace, Ledger()
    chosen = Settings.model_validate({"trips": {"learn_days": 2}})
    zoned = with_zones(NETWORK, zones_of(()))
    node = np.searchsorted(NETWORK.node_id, np.asarray(trace.node)).astype(np.int32)
    matching = matching_with(zoned, snap_limit_m=100.0, secret=b"", node_of_row=node)
    engine = PositionEngine(engine_parameters(chosen, NETWORK), NETWORK, ledger)
    intake = Intake(intake_parameters(chosen), matching, ledger, engine.operator)
    expected = hidden_rows(stops(2))
    number = np.floor(trace.ts / 60.0)
    for rows in np.split(np.arange(trace.n_rows), np.flatnonzero(np.diff(number)) + 1):
        slot, tag = trace.device_of[rows].astype(np.int32), rows.astype(np.float64)
        positions = Positions(slot, trace.ts[rows], trace.lat[rows], trace.lon[rows], tag)
        located = intake.locate(positions, now=float((number[rows[0]] + 1) * 60.0))
        assert located.hidden.tolist() == expected[rows].tolist()
        assert (located.counted_at[located.hidden] < 0).all()
        assert located.trip_node.tolist() == node[rows].tolist()
    assert "stops" not in intake.state()


def test_more_days_take_longer() -> None:
    trace = WORLD.trace
    day = (trace.ts // DAY_S).astype(np.int64)
    hidden = hidden_rows(stops(4))
    assert not hidden[day < 3].any()
    assert hidden[day == 4].any()


def test_memory_is_bounded_and_what_is_old_is_forgotten() -> None:
    few = stops(2, most_devices=10)
    hidden_rows(few)
    assert len(few._rows) <= 60
    one = Positions(np.zeros(1, np.int32), np.zeros(1), *(np.zeros(1),) * 3)
    few.learn(one._replace(ts=np.array([6 * DAY_S])), np.zeros(1, np.int32), now=6 * DAY_S)
    assert len(few._rows) <= 11
    known = stops(2)
    hidden_rows(known)
    assert known.n_hidden > 60
    late = (N_DAYS + 40) * DAY_S
    known.learn(one._replace(ts=np.array([late])), np.zeros(1, np.int32), now=late)
    assert known.n_hidden == 0
    assert "1 devices" in repr(known)


def test_of_who_takes_no_part_any_more_no_place_is_kept() -> None:
    known = stops(2)
    hidden_rows(known)
    everybody = np.arange(WORLD.trace.n_devices, dtype=np.uint64)
    known.withdraw(everybody[1:])
    assert 0 < known.n_hidden <= 8
    known.withdraw(everybody)
    assert known.n_hidden == 0


def test_a_new_device_has_no_place_of_one_that_was_forgotten() -> None:
    few, now = stops(2, most_devices=10), N_DAYS * DAY_S
    hidden_rows(few)
    for at_s in (now, now + 1):  # the second time, all are new
        slots = np.arange(100, 130, dtype=np.int32)
        column = np.full(len(slots), at_s)
        new = Positions(slots, column, column * 0, column * 0, column * 0)
        few.learn(new, np.zeros(len(slots), np.int32), now=at_s)
    for home in np.unique(WORLD.home).tolist():
        places = np.full(len(slots), home, np.int32)
        assert few.keep_out(new, places).tolist() == places.tolist()


def test_a_device_remembers_the_places_where_it_stops_most() -> None:
    learned = stops(2)
    ts, seen = [], []
    # Home every day, and each day another place, more of them than are remembered.
    for day in range(12):
        for hour, node in ((8, 0), (9, 40 + 80 * day), (18, 40 + 80 * day), (19, 0)):
            ts.append(day * DAY_S + hour * 3600.0)
            seen.append(node)
            ts.append(day * DAY_S + hour * 3600.0 + 250)
            seen.append(node + 1)
    for at, node in zip(ts, seen, strict=True):
        positions = Positions(
            np.zeros(1, np.int32), np.array([at]), NETWORK.lat[[node]], NETWORK.lon[[node]],
            np.zeros(1),
        )  # fmt: skip
        learned.learn(positions, np.array([node], np.int32), now=at)
    home = Positions(np.zeros(1, np.int32), np.array([ts[-1] + 9]), *(np.zeros(1),) * 3)
    assert learned.keep_out(home, np.array([0], np.int32)).tolist() == [IN_ZONE]
