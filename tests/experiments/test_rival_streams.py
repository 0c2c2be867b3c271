"""Rivals: each keeps what it promises, and errors are what their papers say."""

import csv
import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from matplotlib.image import imread
from typer.testing import CliRunner

from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network
from anonymizer.outputs.counts.gaussian_noise import GaussianNoise
from experiments import local_synthesis as local
from experiments.commands import app
from experiments.noisy_traces import independent, predicted, read_noisy
from experiments.rivals_experiment import lattice
from experiments.rivals_results import interval
from experiments.stream_clusters import castle, fads, read_boxes, tuples_of
from experiments.stream_errors import (
    Published,
    Stream,
    _Tracks,
    beginnings,
    counted,
    stream_errors,
)
from experiments.tracking_experiment import drive
from experiments.window_counts import gaussian_scale, smoothed, window_counts

SIDE, W = 4, 5


def wandering(n_steps: int = 30, n_devices: int = 120, seed: int = 1) -> Stream:
    """Devices that wander over a map of four by four cells, and are away now and then."""
    rng = np.random.default_rng(seed)
    step = rng.normal(0.0, 0.25, (2, n_steps, n_devices))
    step[:, 0] = rng.uniform(0, SIDE, (2, n_devices)) ** 2 / SIDE
    x, y = np.clip(step.cumsum(axis=1), 0, SIDE - 1e-6)
    away = rng.random((n_steps, n_devices)) < 0.05
    cell = np.where(away, -1, y.astype(np.int64) * SIDE + x.astype(np.int64))
    return Stream(cell, x, y, SIDE, 500.0, 400.0)


cells = st.lists(
    st.lists(st.integers(-1, SIDE**2 - 1), min_size=6, max_size=6), min_size=1, max_size=5
)


def naive_tracks(way: list[list[int]]) -> list[list[tuple[int, int]]]:
    """Return the tracks of devices as step and cell, one after the other."""
    found: list[list[tuple[int, int]]] = []
    for each in way:
        track: list[tuple[int, int]] = []
        for t, cell in enumerate(each):
            if track and (cell < 0 or track[-1][0] != t - 1 or not near(track[-1][1], cell)):
                found.append(track)
                track = []
            if cell >= 0:
                track.append((t, cell))
        found += [track] if track else []
    return found


def near(one: int, other: int) -> bool:
    return abs(one // SIDE - other // SIDE) <= 1 and abs(one % SIDE - other % SIDE) <= 1


@hypothesis_settings(deadline=None)
@given(cells)
def test_tracks_are_those_of_the_naive_twin(way: list[list[int]]) -> None:
    cell = np.array(way, np.int64).T
    tracks, naive = _Tracks(cell, beginnings(cell, SIDE), SIDE), naive_tracks(way)
    trips = Counter((track[0][1], track[-1][1]) for track in naive)
    assert {(a, b): tracks.trips()[a * SIDE**2 + b] for a, b in trips} == dict(trips)
    assert tracks.trips().sum() == len(naive)
    pairs = [list(itertools.pairwise(track)) for track in naive]
    lengths = [
        sum(math.hypot(b // SIDE - a // SIDE, b % SIDE - a % SIDE) for (_, a), (_, b) in each)
        for each in pairs
    ]
    assert sorted(tracks.lengths().tolist()) == pytest.approx(sorted(lengths))
    assert tracks.moves().sum() == sum(len(each) for each in pairs)
    patterns = {
        (size, sum(c * (SIDE**2) ** (size - 1 - i) for i, (_, c) in enumerate(part)))
        for track in naive
        for size in range(2, 6)
        for start in range(len(track) - size + 1)
        for part in [track[start : start + size]]
        if size == 2 or all(a[1] != b[1] for a, b in itertools.pairwise(part))
    }
    assert tracks.patterns(np.array([0]), 6) == [patterns]


def test_who_publishes_all_has_no_error_and_who_publishes_nothing_true_has_a_large_one() -> None:
    stream = wandering()
    exact = stream_errors(stream, Published(stream.counts(), stream.cell), seed=1)
    assert [exact.density, exact.transition, exact.trip, exact.length] == [0, 0, 0, 0]
    assert [exact.hotspots, exact.pattern] == [1, 1]
    assert exact.popularity == pytest.approx(1)
    other = wandering(seed=2)
    turned = np.where(other.cell >= 0, SIDE**2 - 1 - other.cell, -1)
    other = other._replace(cell=turned)
    wrong = stream_errors(stream, Published(other.counts(), other.cell), seed=1)
    assert wrong.density > 0.1
    assert wrong.query > 2 * exact.query
    assert wrong.popularity < 0.5
    assert wrong.trip is not None
    assert wrong.trip > 0.3


def test_reports_of_devices_are_without_bias_and_as_random_as_they_promise() -> None:
    rng, state = np.random.default_rng(1), np.repeat([0, 1, 2], [500, 300, 200])
    found = np.mean([local.estimated(state, 4, 1.0, rng) for _ in range(3000)], axis=0)
    assert found == pytest.approx([0.5, 0.3, 0.2, 0.0], abs=0.01)
    drawn = np.array([local.estimated(state, 4, 1.0, rng)[3] for _ in range(3000)])
    assert drawn.var() == pytest.approx(local._variance(1.0, 1000), rel=0.15)
    # A bit is 1 with 1/2 if it is true, else with q: two reports differ in two bits at most.
    q = 1 / (math.e + 1)
    assert (0.5 / q) * ((1 - q) / 0.5) == pytest.approx(math.e)


class Watched(local._Reports):
    """Notes what is asked of whom."""

    asked: list[tuple[int, float, IntArray]]

    def ask(self, t: int, part: float) -> tuple[FloatArray, float]:
        before = self._asked.copy()
        found = super().ask(t, part)
        whom = np.flatnonzero(self._asked != before) if self.by_device else np.zeros(0, np.int64)
        self.asked.append((t, part, whom))
        return found


@pytest.mark.parametrize("method", local.LOCAL_METHODS)
def test_no_device_reports_more_than_its_budget_in_any_window(
    method: local.LocalMethod, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Watched] = []

    def watched(*args: Any, **keys: Any) -> Watched:  # noqa: ANN401  as the watched one
        found = Watched(*args, **keys)
        found.asked = []
        made.append(found)
        return found

    monkeypatch.setattr(local, "_Reports", watched)
    stream = wandering(n_steps=60)
    tracks = local.local_tracks(stream, method, epsilon=3.0, w=W, rng=np.random.default_rng(1))
    assert tracks.shape[0] == 60
    [reports] = made
    assert len({t for t, _, _ in reports.asked}) == 60 or method.startswith("RetraSyn")
    for first in range(60 - W + 1):
        within = [(part, whom) for t, part, whom in reports.asked if first <= t < first + W]
        if reports.by_device:
            people = np.concatenate([whom for _, whom in within])
            assert len(np.unique(people)) == len(people)
        else:
            assert sum(part for part, _ in within) <= 1 + 1e-9


def test_made_up_devices_move_as_the_true_ones_do_where_the_budget_is_large() -> None:
    stream = wandering(n_steps=40, n_devices=3000)
    central = local.central_tracks(stream, epsilon=0.5, w=W, rng=np.random.default_rng(1))
    trusted = stream_errors(stream, Published(counted(central, SIDE**2), central), seed=1)
    close, far = (
        stream_errors(
            stream,
            Published(counted(tracks, SIDE**2), tracks),
            seed=1,
        )
        for epsilon in (200.0, 0.5)
        for tracks in [
            local.local_tracks(
                stream, "RetraSyn_b", epsilon=epsilon, w=W, rng=np.random.default_rng(1)
            )
        ]
    )
    assert close.density < 0.1 * far.density
    assert close.transition is not None
    assert far.transition is not None
    assert close.transition < 0.5 * far.transition
    assert trusted.transition is not None
    assert close.transition < trusted.transition < 0.7 * far.transition


class Scales:
    """Draws no noise, and notes the scale of each: of a number first, then of all cells."""

    def __init__(self) -> None:
        self.steps: list[list[float]] = []

    def laplace(self, _loc: float, scale: float, size: int | None = None) -> FloatArray | float:
        if size is None:
            self.steps.append([])
            return 0.0
        self.steps[-1].append(1 / scale)
        return np.zeros(size)


@pytest.mark.parametrize("method", ["BD", "BA"])
def test_publications_of_any_window_share_half_of_the_budget(method: Any) -> None:  # noqa: ANN401
    """The other half is for the questions whether a publication is worth it."""
    true = np.random.default_rng(1).integers(0, 200, (80, 9)).astype(np.float64)
    true[20:40] = true[19]
    drawn = Scales()
    window_counts(true, method, epsilon=1.0, w=W, rng=cast("np.random.Generator", drawn))
    spent = [sum(step) for step in drawn.steps]
    assert len(spent) == 80
    assert max(sum(spent[t : t + W]) for t in range(80)) <= 0.5 + 1e-9
    assert sum(1 for each in spent if each) > 5
    assert not any(spent[21:40])


def test_noise_has_the_size_that_the_window_asks_for() -> None:
    nothing, rng = np.zeros((200, 500)), np.random.default_rng(1)
    flat = window_counts(nothing, "uniform", epsilon=2.0, w=10, rng=rng)
    assert flat.std() == pytest.approx(math.sqrt(2) * 5, rel=0.02)
    sampled = window_counts(nothing, "sample", epsilon=2.0, w=10, rng=rng)
    assert sampled.std() == pytest.approx(math.sqrt(2) / 2, rel=0.05)
    assert len(np.unique(sampled[:, 0])) == 20
    exact = GaussianNoise(epsilon=1.0, delta=1e-6, n_releases=20, n_changed=1).scale
    assert exact <= gaussian_scale(1.0, 20) < 1.2 * exact
    noisy = 50 + rng.normal(0.0, 20.0, (100, 36))
    assert np.abs(smoothed(noisy, 400.0)[50:] - 50).mean() < 0.3 * np.abs(noisy[50:] - 50).mean()


# No kernel compiles longer than that of CASTLE; FADS is tested alike.
@pytest.mark.parametrize("publish", [pytest.param(castle, marks=pytest.mark.soak), fads])
def test_every_cluster_covers_its_tuples_and_is_of_k_devices(publish: Any) -> None:  # noqa: ANN401
    stream, k = wandering(), 5
    boxes = publish(stream, k=k, delay=150, rng=np.random.default_rng(3))
    step, device, at = tuples_of(stream, np.random.default_rng(3))
    assert boxes.step.tolist() == step.tolist()
    shown = ~np.isnan(boxes.range_of[:, 0])
    assert shown.mean() > 0.9
    low, high = boxes.range_of[shown][:, ::2], boxes.range_of[shown][:, 1::2]
    assert ((low <= at[shown]) & (at[shown] <= high)).all()
    members: dict[tuple[float, ...], set[int]] = {}
    for box, each in zip(boxes.range_of[shown].tolist(), device[shown].tolist(), strict=True):
        members.setdefault(tuple(box), set()).add(each)
    assert min(map(len, members.values())) >= k
    assert read_boxes(boxes, stream).n_at.sum() == pytest.approx(shown.sum())


def test_noise_of_places_is_undone_and_the_budget_of_a_window_suffices() -> None:
    rng, shape = np.random.default_rng(1), (30, 1500)
    crowded = np.arange(1.0, SIDE**2 + 1) ** 3
    cell = rng.choice(SIDE**2, shape, p=crowded / crowded.sum())
    x, y = cell % SIDE + rng.random(shape), cell // SIDE + rng.random(shape)
    stream = Stream(cell, x, y, SIDE, 500.0, 400.0)
    wide = independent(stream, scale_m=300.0, rng=rng)
    way_m = np.hypot((wide.x - stream.x) * 500.0, (wide.y - stream.y) * 400.0)
    assert way_m.mean() == pytest.approx(600.0, rel=0.02)
    rounded = read_noisy(stream, wide, rng)
    assert rounded.tracks is not None
    undone = stream_errors(stream, rounded, seed=1).density
    as_shown = Published(counted(rounded.tracks, SIDE**2))
    assert undone < 0.3 * stream_errors(stream, as_shown, seed=1).density
    near_m = predicted(stream, unit_m=100.0, w=W, rng=rng)
    fresh = near_m.fresh.astype(int)
    most = max(fresh[t : t + W].sum(axis=0).max() for t in range(len(fresh) - W + 1))
    assert most == 3
    # Three fresh places and five tests: 3 / (4 x 100 m) + 5 / (20 x 100 m) is one in 100 m.
    assert 3 / near_m.scale_m + W * 0.25 / (100.0 * W) == pytest.approx(1 / 100.0)


def test_an_interval_of_runs_is_that_of_student() -> None:
    assert interval([1.0, 2.0, 3.0]) == pytest.approx((2.0, 4.303 / math.sqrt(3)), rel=1e-3)
    assert interval([None, None]) is None


def test_a_lattice_lies_under_the_middle_of_a_trace() -> None:
    rng = np.random.default_rng(1)
    lat, lon = 40 + rng.normal(0, 0.01, 500), 116 + rng.normal(0, 0.01, 500)
    roads = lattice(Trace(("a",), np.zeros(500, np.int64), np.arange(500.0), lat, lon))
    assert roads.has_coordinates
    assert roads.n_components == 1
    assert roads.lat.min() == pytest.approx(np.quantile(lat, 0.05))
    assert abs(roads.lon.max() - np.quantile(lon, 0.95)) < 0.002


@pytest.mark.soak
def test_the_command_compares_all_on_one_trace(tmp_path: Path) -> None:
    city = load_network("city:300")
    moving = drive(city, 40, seconds=1500, seed=1)
    kept = (moving.ts - moving.ts[0]) % 20 == 0
    names = np.array(moving.device_id)[moving.device_of[kept]]
    columns = {"device_id": names, "ts": moving.ts[kept], "lat": moving.lat[kept]}
    trace = tmp_path / "trace.parquet"
    pl.DataFrame({**columns, "lon": moving.lon[kept]}).write_parquet(trace)
    words = ["rivals", "--trace", str(trace), "--network", "city:300", "--runs", "2"]
    result = CliRunner().invoke(
        app, [*words, "--tick", "20", "--out", str(tmp_path)], catch_exceptions=False
    )
    assert result.exit_code == 0
    with (tmp_path / "rivals.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert {"session", "safe counts", "w-event, each minute", "RetraSyn_p", "FADS"} <= set(rows)
    assert len(rows) == 28
    assert all(row["promise"] and float(row["density"]) >= 0 for row in rows.values())
    assert float(rows["Laplace, 200 m"]["trip"]) < float(rows["RetraSyn_b"]["trip"])
    assert imread(tmp_path / "rivals.png").ndim == 3
