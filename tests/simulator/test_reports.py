"""Sources of reports: fleets, replays and recordings."""

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.traces import read_trace
from anonymizer.networks import load_network
from simulator.fleet import FleetSource
from simulator.reports import Recording, Reports, Source
from simulator.trace_replay import ReplaySource, locate_nodes
from simulator.trace_writer import TraceWriter
from simulator.traffic import Traffic
from tests.simulator.support import network

GRID = load_network("grid:4x4")


def fleet(*, n: int = 12, noise_m: float = 3.0, duration_s: float | None = 10.0) -> FleetSource:
    traffic = Traffic(GRID, n, seed=5)
    return FleetSource(traffic, rate_hz=2.0, duration_s=duration_s, noise_m=noise_m, seed=5)


def trace(ts: Sequence[float], *, device_of: Sequence[int] | None = None) -> Trace:
    device = np.arange(len(ts)) if device_of is None else np.array(device_of)
    ids = tuple(f"taxi {i}" for i in range(len(ts)))
    number = np.arange(len(ts), dtype=np.float64)
    return Trace(ids, device, np.array(ts, np.float64), 50 + number, 10 + number)


def played(source: Source, *looks_s: float, limit: int = 10_000) -> Reports:
    parts = [source.take(look_s, limit=limit) for look_s in looks_s]
    columns = [
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("device", "due_s", "lat", "lon")
    ]
    return Reports(*columns)


def check_cuts_do_not_matter(
    make: Callable[[], Source], cuts: Sequence[float], *, limit: int, end_s: float
) -> None:
    source = make()
    parts = [source.take(cut, limit=limit) for cut in cuts]
    while source.next_due_s <= end_s:
        parts.append(source.take(end_s, limit=limit))
        assert 0 < len(parts[-1]) <= limit
    whole = make().take(end_s, limit=10_000)
    for name in ("device", "due_s", "lat", "lon"):
        pieces = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(pieces, getattr(whole, name))


any_cuts = st.lists(st.floats(0, 12), max_size=6).map(sorted)


@settings(deadline=None, max_examples=25)
@given(cuts=any_cuts, limit=st.integers(1, 30))
def test_the_reports_of_a_fleet_are_the_same_however_they_are_batched(
    cuts: list[float], limit: int
) -> None:
    check_cuts_do_not_matter(fleet, cuts, limit=limit, end_s=12.0)


@settings(deadline=None)
@given(
    ts=st.lists(st.integers(0, 20), min_size=1, max_size=8).map(sorted),
    cuts=any_cuts,
    limit=st.integers(1, 5),
    loop=st.booleans(),
)
def test_a_replay_is_the_same_however_it_is_batched(
    ts: list[float], cuts: list[float], limit: int, *, loop: bool
) -> None:
    check_cuts_do_not_matter(
        lambda: ReplaySource(trace(ts), speed=2.0, loop=loop), cuts, limit=limit, end_s=13.0
    )


def test_each_device_reports_at_its_rate_and_at_its_own_phase() -> None:
    reports = played(fleet(), 10.0)
    assert len(reports) == 12 * 2 * 10
    assert np.allclose(np.diff(reports.due_s), 1 / 24)
    for device in range(12):
        assert np.allclose(np.diff(reports.due_s[reports.device == device]), 0.5)
    assert fleet().rate_per_s == 24


def test_a_fleet_ends_with_its_duration_or_never() -> None:
    source = fleet()
    assert source.n_total == 240
    assert len(played(source, 1e6)) == 240
    assert math.isinf(source.next_due_s)
    endless = fleet(duration_s=None)
    assert endless.n_total is None
    assert len(played(endless, 100.0)) == 2401
    assert endless.next_due_s == pytest.approx(100 + 1 / 24)


def test_reported_positions_have_the_requested_noise() -> None:
    noisy, exact = (played(fleet(noise_m=noise, n=100), 10.0) for noise in (4.0, 0.0))
    assert np.array_equal(noisy.due_s, exact.due_s)
    north_m = haversine_m(exact.lat, exact.lon, noisy.lat, exact.lon)
    east_m = haversine_m(exact.lat, exact.lon, exact.lat, noisy.lon)
    for error_m in (north_m, east_m):
        assert np.sqrt(np.mean(error_m**2)) == pytest.approx(4.0, rel=0.1)
    assert abs(np.mean(noisy.lat - exact.lat)) * 111_000 < 0.5


def test_equal_seeds_give_equal_recordings_and_other_seeds_others(tmp_path: Path) -> None:
    def record(name: str, seed: int, looks_s: list[float]) -> bytes:
        traffic = Traffic(GRID, 12, seed=seed)
        source = FleetSource(traffic, rate_hz=1.0, duration_s=60.0, seed=seed)
        with TraceWriter(tmp_path / name, device_id=source.device_id) as writer:
            recording = Recording(source, writer)
            assert (recording.rate_per_s, recording.n_total) == (12.0, 720)
            played(recording, *looks_s)
            assert math.isinf(recording.next_due_s)
        return (tmp_path / name).read_bytes()

    first = record("first.csv", 3, [60.0])
    assert record("again.csv", 3, [0.0, 1.7, 30.0, 30.01, 60.0]) == first
    assert record("other.csv", 4, [60.0]) != first
    recorded = read_trace(tmp_path / "first.csv")
    assert (recorded.n_rows, recorded.n_devices) == (720, 12)
    assert (recorded.ts[0], recorded.ts[-1]) == (0.0, 719 / 12)


def test_a_replay_at_speed_60_plays_a_minute_in_a_second() -> None:
    source = ReplaySource(trace([100, 160, 400]), speed=60.0)
    assert played(source, 0.0).due_s.tolist() == [0.0]
    assert source.next_due_s == 1.0
    assert played(source, 0.99).due_s.tolist() == []
    assert played(source, 5.0).due_s.tolist() == [1.0, 5.0]
    assert math.isinf(source.next_due_s)
    assert (source.n_total, source.rate_per_s) == (3, 3 / 5)


def test_a_replay_may_skip_the_beginning_and_end_early() -> None:
    source = ReplaySource(trace([100, 110, 111, 112, 115]), speed=1.0, skip_s=5, duration_s=2)
    reports = played(source, 99.0)
    assert reports.device.tolist() == [1, 2, 3]
    assert reports.due_s.tolist() == [0, 1, 2]


def test_a_loop_starts_again_at_its_end_while_time_continues() -> None:
    source = ReplaySource(trace([100, 104]), speed=2.0, loop=True)
    reports = played(source, 6.0)
    assert reports.device.tolist() == [0, 1, 0, 1, 0]
    assert reports.due_s.tolist() == [0, 2, 2.5, 4.5, 5]
    assert (source.n_total, source.rate_per_s) == (None, 2 / 2.5)
    timed = ReplaySource(trace([100, 104]), speed=2.0, loop=True, duration_s=5.0)
    assert (timed.n_total, timed.rate_per_s) == (5, 1.0)


def test_recorded_times_are_stated_as_they_are() -> None:
    source = ReplaySource(trace([100, 104]), speed=2.0, recorded_time=True)
    reports = source.take(9.0, limit=9)
    assert reports.ts is not None
    assert reports.ts.tolist() == [100, 104]
    assert ReplaySource(trace([100]), speed=2.0).take(0.0, limit=9).ts is None


def test_a_replay_of_one_moment_is_possible() -> None:
    source = ReplaySource(trace([100, 100]), speed=1.0)
    assert (len(played(source, 0.0)), source.rate_per_s) == (2, 2.0)


def test_a_replay_without_rows_or_with_backward_times_is_refused() -> None:
    with pytest.raises(InputError, match=r"the trace has no usable rows$"):
        ReplaySource(trace([]), speed=1.0)
    with pytest.raises(InputError, match="no usable rows after --from"):
        ReplaySource(trace([1, 2]), speed=1.0, skip_s=2)
    with pytest.raises(SettingsError, match="--loop"):
        ReplaySource(trace([1]), speed=1.0, loop=True, recorded_time=True)


def of_nodes(node: Sequence[object]) -> Trace:
    n = len(node)
    nan = np.full(n, np.nan)
    return Trace(("a",), np.zeros(n, np.int64), np.arange(float(n)), nan, nan, np.array(node))


@pytest.mark.parametrize("node", [[15, 0, 3], ["15", "0", "3"]])
def test_a_trace_of_nodes_is_replayed_at_their_coordinates(node: list[object]) -> None:
    located = locate_nodes(of_nodes(node), GRID)
    assert located.lat.tolist() == GRID.lat[[15, 0, 3]].tolist()
    assert located.lon.tolist() == GRID.lon[[15, 0, 3]].tolist()
    assert locate_nodes(located, GRID) is located


def test_unknown_nodes_and_networks_without_coordinates_are_refused() -> None:
    with pytest.raises(InputError, match="the network lacks the node of 2 rows"):
        locate_nodes(of_nodes([16, 3, -1]), GRID)
    nowhere = network([], n_nodes=1)
    nowhere.lat[:] = np.nan
    with pytest.raises(InputError, match="no coordinates"):
        locate_nodes(of_nodes([0]), nowhere)


def test_the_repr_of_reports_shows_no_place() -> None:
    assert "array" not in repr(played(fleet(), 0.0))


@pytest.mark.data
def test_the_taxis_of_san_francisco_report_in_the_order_and_number_recorded() -> None:
    path = Path(os.environ["ANONYMIZER_DATA"]) / "traces/cabspotting_sf_2008-05-19_20.parquet"
    source = ReplaySource(read_trace(path), speed=86_400 / 5)
    n, last_s = 0, 0.0
    while not math.isinf(source.next_due_s):
        reports = source.take(10.0, limit=100_000)
        assert reports.due_s[0] >= last_s
        n, last_s = n + len(reports), float(reports.due_s[-1])
    assert n == 920_645
    assert last_s == pytest.approx(10.0, abs=0.01)
