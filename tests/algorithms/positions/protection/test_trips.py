"""Trip ends: which positions are passed on, when, and what is suppressed."""

import os
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.protection import TripEnds, TripRule
from anonymizer.cluster.packed_state import pack, unpack
from tests.algorithms.positions.protection.journeys import Report, drive, may_pass, reports_of, tick

RULE = TripRule(
    start_m=95, start_s=3, end_m=95, end_s=4, delay_s=8, gap_s=12, dwell_m=45, dwell_s=6
)


def straight(start: float, end: float, *, mps: float = 60, every_s: float = 1) -> list[Report]:
    """Return the reports of a device that travels north without stopping."""
    times = np.arange(start, end + every_s / 2, every_s).tolist()
    return [Report(0, ts, (ts - start) * mps) for ts in times]


def test_both_ends_of_a_trip_are_suppressed_by_distance_and_by_time() -> None:
    # For a car the time is the limit, for a pedestrian the distance.
    passed, _ = drive(TripRule(), straight(0, 600), until=1000)
    assert passed == [float(ts) for ts in range(60, 541)]
    passed, _ = drive(TripRule(delay_s=300), straight(0, 1500, mps=1.01), until=2000)
    assert passed == [float(ts) for ts in range(199, 1302)]


def test_a_device_slower_than_the_distance_over_the_delay_is_never_passed_on() -> None:
    assert drive(TripRule(), straight(0, 900, mps=1.6), until=1100)[0] == []


def test_every_position_waits_exactly_for_the_delay() -> None:
    _, longest_s = drive(TripRule(), straight(0, 400), until=700)
    assert longest_s == 120


def test_a_position_is_passed_on_by_the_first_tick_after_its_delay() -> None:
    trips = TripEnds(RULE)
    tick(trips, straight(0, 20), now=20)
    assert len(tick(trips, [], now=20.999).passed) == 0
    assert [r.ts for r in reports_of(tick(trips, [], now=21).passed)] == [13]


def test_the_place_of_a_parked_device_stays_hidden_on_arrival_while_parked_and_on_departure() -> (
    None
):
    coming = straight(0, 300)
    parked = [Report(0, ts, 18_000 + ts % 3 * 10) for ts in range(301, 1000)]
    going = [Report(0, 1000 + i, 18_000 - 60 * i) for i in range(301)]
    passed, _ = drive(TripRule(), [*coming, *parked, *going], until=1500)
    # The departure is noticed a second after it happened.
    assert passed == [float(ts) for ts in (*range(60, 241), *range(1061, 1241))]


def test_the_place_where_a_trip_began_stays_hidden_when_it_is_passed_again() -> None:
    out_and_back = [*straight(0, 100), *[Report(0, 100 + i, 6000 - 60 * i) for i in range(1, 201)]]
    passed, _ = drive(TripRule(), out_and_back, until=500)
    assert set(range(60, 241)) - set(passed) == {197, 198, 199, 200, 201, 202, 203}


def test_a_red_light_does_not_end_a_trip() -> None:
    before = straight(0, 300)
    waiting = [Report(0, ts, 18_000) for ts in range(301, 341)]
    after = [Report(0, 340 + i, 18_000 + 60 * i) for i in range(1, 301)]
    passed, _ = drive(TripRule(), [*before, *waiting, *after], until=900)
    assert passed == [float(ts) for ts in range(60, 581)]


@pytest.mark.parametrize("every_s", [30, 60])
def test_a_device_that_reports_once_a_minute_is_passed_on_as_well(every_s: float) -> None:
    passed, longest_s = drive(TripRule(), straight(0, 1200, mps=10, every_s=every_s), until=1500)
    assert passed == np.arange(60.0, 1141.0, every_s).tolist()
    assert longest_s == 120


def test_a_device_that_reports_too_rarely_to_show_that_it_moved_on_is_suppressed() -> None:
    passed, _ = drive(TripRule(), straight(0, 1800, every_s=150), until=2200)
    assert passed == []


def test_a_silence_ends_the_trip_and_the_next_report_begins_another() -> None:
    first = straight(0, 200)
    second = [Report(0, 501 + i, 9000 + 60 * i) for i in range(201)]
    passed, _ = drive(TripRule(), [*first, *second], until=1000)
    assert passed == [*map(float, range(60, 141)), *map(float, range(561, 642))]


def test_only_a_silence_longer_than_the_gap_ends_a_trip() -> None:
    rule = TripRule(95, 4, 0, 0, delay_s=8, gap_s=12, dwell_m=45, dwell_s=6)
    for after_s, passed in ((12, [4, 16]), (13, [4])):
        reports = [Report(0, 0, 0), Report(0, 4, 240), Report(0, 4 + after_s, 400)]
        assert drive(rule, reports, until=60)[0] == passed


def test_the_place_of_a_dwelling_stays_hidden_even_if_the_device_is_next_seen_elsewhere() -> None:
    parked = [Report(0, 60 * i, 0) for i in range(5)]
    away = [Report(0, 300 + 60 * i, 600 - 300 * i) for i in range(5)]
    passed, _ = drive(TripRule(), [*parked, *away], until=800)
    # 600 is too early, 0 is the place, -600 the end.
    assert passed == [360.0, 480.0]


def test_a_position_to_which_the_device_turns_back_within_the_delay_is_suppressed() -> None:
    trips = TripEnds(TripRule(0, 0, 95, 4, delay_s=8, gap_s=12, dwell_m=45, dwell_s=6))
    tick(trips, [Report(0, 0, 0), Report(0, 5, 100)], now=5)
    out = tick(trips, [Report(0, 8, 60)], now=8)
    assert (len(out.passed), len(out.trip_end)) == (0, 1)


def test_a_report_after_the_delay_does_not_affect_a_position() -> None:
    # The device is 95 m away only after the delay.
    trips = TripEnds(TripRule(start_m=0, start_s=0, end_m=95, end_s=0, delay_s=8, gap_s=1000))
    tick(trips, [Report(0, 0, 0)], now=0)
    out = tick(trips, [Report(0, 9, 500)], now=9)
    assert (len(out.passed), len(out.trip_end)) == (0, 1)
    tick(trips, [Report(0, 20, 1000)], now=20)
    out = tick(trips, [Report(0, 28, 1500)], now=28)
    assert [r.ts for r in reports_of(out.passed)] == [20.0]


def test_a_report_that_arrives_after_the_delay_of_another_does_not_rescue_it() -> None:
    trips = TripEnds(TripRule(start_m=0, start_s=0, end_m=95, end_s=0, delay_s=8))
    tick(trips, [Report(0, 0, 0)], now=0)
    assert len(tick(trips, [], now=8).trip_end) == 1
    out = tick(trips, [Report(0, 7, 500)], now=16)
    assert (len(out.passed), len(out.trip_end)) == (0, 1)


def test_without_protection_every_position_is_passed_on_after_the_delay() -> None:
    rule = TripRule(start_m=0, start_s=0, end_m=0, end_s=0, delay_s=2)
    reports = [*straight(0, 10), *[Report(0, ts, 200) for ts in range(11, 30)]]
    assert drive(rule, reports, until=40)[0] == [r.ts for r in reports]


def test_a_rule_whose_delay_cannot_show_the_end_is_refused() -> None:
    with pytest.raises(ValueError, match="delay_s must not be below end_s"):
        TripRule(end_s=61, delay_s=60)


def test_a_report_is_returned_unchanged_with_the_tag_of_the_caller() -> None:
    trips = TripEnds(RULE)
    reports = [r._replace(slot=3, tag=0.5 + r.ts) for r in straight(0, 8)]
    tick(trips, reports, now=8)
    assert reports_of(tick(trips, [], now=12).passed) == [reports[3], reports[4]]


def test_late_and_repeated_reports_are_distinguished_and_move_no_device() -> None:
    trips = TripEnds(RULE)
    tick(trips, [Report(0, 5, 0)], now=5)
    again = [Report(0, 5, 500), Report(0, 4, 500), Report(0, 6, 20), Report(0, 6, 500)]
    out = tick(trips, again, now=6)
    assert [r.ts for r in reports_of(out.late)] == [4]
    assert [(r.ts, r.metres) for r in reports_of(out.duplicate)] == [(5, 500), (6, 500)]
    assert [r.ts for r in reports_of(out.trip_end)] == [6]


def test_if_a_device_has_too_many_held_the_oldest_overflow_and_the_others_pass() -> None:
    rule = TripRule(start_m=0, start_s=0, end_m=0, end_s=0, delay_s=10, max_held=3)
    trips = TripEnds(rule)
    out = tick(trips, [Report(s, ts, 0) for s in (0, 1) for ts in range(3 + 2 * s)], now=5)
    assert [(r.slot, r.ts) for r in reports_of(out.overflow)] == [(1, 0), (1, 1)]
    assert trips.n_held == 6
    out = tick(trips, [Report(0, 12, 0)], now=11)
    assert [(r.slot, r.ts) for r in reports_of(out.passed)] == [(0, 0), (0, 1)]
    assert len(out.overflow) == 0


def test_positions_held_for_a_forgotten_device_are_suppressed_and_its_slot_starts_afresh() -> None:
    trips = TripEnds(TripRule(start_m=0, start_s=0, end_m=0, end_s=0, delay_s=10))
    tick(trips, [Report(s, ts, 0) for s, ts in ((0, 1), (0, 2), (1, 3), (2, 2))], now=3)
    gone = trips.expire(3.0)
    assert gone.slot.tolist() == [0, 2]
    assert [(r.slot, r.ts) for r in reports_of(gone.trip_end)] == [(0, 1), (0, 2), (2, 2)]
    assert trips.n_held == 1
    assert trips.knows(np.array([0, 1, 2, 99], np.int32)).tolist() == [False, True, False, False]
    # The slot may belong to another device now, whose time may be older.
    out = tick(trips, [Report(0, 0.5, 0)], now=10.5)
    assert [r.ts for r in reports_of(out.passed)] == [0.5]
    last = trips.expire(np.inf)
    assert (last.slot.tolist(), len(last.trip_end), trips.n_held) == ([0, 1], 1, 0)


def test_a_state_goes_on_alike_and_apart_from_the_original() -> None:
    one, other = TripEnds(RULE), TripEnds(RULE)
    tick(one, straight(0, 8), now=8)
    other.restore(unpack(pack(one.state())))
    for now in (12, 30):
        expected = reports_of(tick(one, [Report(1, now, 0)], now=now).passed)
        assert reports_of(tick(other, [Report(1, now, 0)], now=now).passed) == expected
    assert one.n_held == other.n_held
    assert pack(one.state()) == pack(other.state())


def test_no_repr_shows_a_position() -> None:
    trips = TripEnds(RULE)
    out = tick(trips, straight(0, 30), now=30)
    assert len(out.passed)
    tick(trips, [Report(0, 31, 700)], now=31)
    shown = repr([trips, out, trips.expire(np.inf)])
    assert "60." not in shown
    assert "24." not in shown


legs = st.tuples(
    st.integers(0, 2),
    st.integers(1, 9),
    st.sampled_from([1, 1, 1, 2, 3]),
    st.sampled_from([0, 60, 60, -60, 20, -100]),
    st.sampled_from([0, 0, 4, 12, 13]),
)
"""Device, number of reports, seconds and metres between them, and seconds of silence after."""
Leg = tuple[int, int, int, int, int]


def journeys(driven: list[Leg]) -> list[Report]:
    ts, metres = Counter[int](), Counter[int]()
    reports: list[Report] = []
    for slot, n_reports, every_s, by_m, silent_s in driven:
        for _ in range(n_reports):
            ts[slot] += every_s
            metres[slot] += by_m
            reports.append(Report(slot, ts[slot], metres[slot], len(reports)))
        ts[slot] += silent_s
    return sorted(reports, key=lambda r: (r.ts, r.slot))


@given(
    st.lists(legs, max_size=16),
    st.sampled_from([1.0, 2.5, 7.0]),
    st.builds(
        TripRule,
        start_m=st.sampled_from([0, 95]),
        start_s=st.sampled_from([0, 3]),
        end_m=st.sampled_from([0, 95]),
        end_s=st.sampled_from([0, 4]),
        delay_s=st.sampled_from([4, 9, 30]),
        gap_s=st.sampled_from([4, 12]),
        dwell_m=st.sampled_from([5, 45]),
        dwell_s=st.sampled_from([2, 6]),
    ),
    st.randoms(use_true_random=False),
)
@example([(0, 9, 1, 60, 0)] * 4, 1.0, RULE, Random(0))  # noqa: S311  an order
def test_the_positions_passed_on_are_those_of_the_naive_twin_whatever_the_ticks(
    driven: list[Leg], tick_s: float, rule: TripRule, random: Random
) -> None:
    reports = journeys(driven)
    expected = {
        report
        for slot in range(3)
        for own in [[r for r in reports if r.slot == slot]]
        for report, passes in zip(own, may_pass(own, rule), strict=True)
        if passes
    }
    trips = TripEnds(rule)
    passed: list[Report] = []
    n_settled, now = 0, 0.0
    waiting = list(reports)
    while waiting or trips.n_held:
        now += tick_s
        batch = [r for r in waiting if r.ts <= now]
        waiting = [r for r in waiting if r.ts > now]
        random.shuffle(batch)
        out = tick(trips, batch, now=now)
        found = reports_of(out.passed)
        assert found == sorted(found)
        assert all(now - tick_s < r.ts + rule.delay_s <= now for r in found)
        passed += found
        n_settled += len(found) + len(out.trip_end)
        assert len(reports) == n_settled + trips.n_held + len(waiting)
    assert len(passed) == len(expected)
    assert set(passed) == expected


@given(
    st.lists(legs, max_size=6),
    st.lists(st.integers(0, 20), min_size=1, max_size=9),
    st.integers(1, 4),
)
def test_every_report_is_accounted_for_at_every_moment_even_if_late_repeated_or_forgotten(
    driven: list[Leg], delays_s: list[int], max_held: int
) -> None:
    rule = TripRule(0, 0, 0, 4, delay_s=9, gap_s=12, dwell_m=45, dwell_s=6, max_held=max_held)
    trips = TripEnds(rule)
    n_received = n_settled = 0
    for i, report in enumerate(journeys(driven)):
        delayed_s = delays_s[i % len(delays_s)]
        batch = [report._replace(ts=report.ts - delayed_s), report]
        out = tick(trips, batch, now=report.ts)
        n_received += 2
        settled = (out.passed, out.trip_end, out.overflow, out.late, out.duplicate)
        n_settled += sum(map(len, settled))
        if delayed_s == 20:
            n_settled += len(trips.expire(report.ts - 5.0).trip_end)
        assert n_received == n_settled + trips.n_held
        assert trips.n_held <= 3 * max_held


@pytest.mark.data
def test_ends_of_real_taxi_trips_stay_hidden_and_many_positions_between_are_passed_on() -> None:
    path = Path(os.environ["ANONYMIZER_DATA"]) / "traces" / "cabspotting_sf_2008-05-19_20.parquet"
    rows = pl.scan_parquet(path).filter(pl.col("ts") < pl.col("ts").min() + 7200).collect()
    slot = rows["device_id"].rank("dense").cast(pl.Int32).to_numpy()
    ts, lat, lon = (rows[name].cast(pl.Float64).to_numpy() for name in ("ts", "lat", "lon"))
    rule = TripRule()
    trips, passed = TripEnds(rule), []
    first, last = int(ts.min()), int(ts.max() + rule.delay_s) + 10
    for now in range(first, last, 10):
        new = (ts > now - 10) & (ts <= now)
        out = trips.tick(slot[new], ts[new], lat[new], lon[new], tag=ts[new], now=now)
        passed.append(out.passed)
    assert trips.n_held == 0
    everything = np.concatenate(passed)
    share = len(everything) / len(rows)
    assert 0.2 < share < 0.9
    for s in np.unique(slot).tolist():
        own = everything[everything["slot"] == s]["ts"]
        mine = ts[slot == s]
        silent = np.flatnonzero(np.diff(mine) > rule.gap_s)
        for end in [*mine[silent], mine[-1]]:
            assert not ((own > end - rule.end_s) & (own <= end)).any()
        for start in [mine[0], *mine[silent + 1]]:
            assert not ((own >= start) & (own < start + rule.start_s)).any()
