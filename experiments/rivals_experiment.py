"""Rivals on one trace: published ways to publish streams of places beside the gateway's modes.

One trace, one grid, the same seeds and errors for all. What each promises stands beside its errors,
since the promises differ: a smaller error is no better where less is promised. All rivals are
reproductions from their papers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.releases.observed import Observed, tangent_plane
from anonymizer.audit.case import Reports
from anonymizer.audit.publications import (
    EVERY_S,
    RegionReader,
    Traffic,
    counting_times,
    grid,
    grid_cells,
    last_records,
    true_traffic,
)
from anonymizer.audit.stream_case import reports_of
from anonymizer.audit.utility import GRACE_TICKS
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.networks.construction import from_arrays
from anonymizer.outputs.counts.private_counts import noise_of
from anonymizer.settings import CountSettings, Settings
from experiments.baselines import SafeCounts
from experiments.local_synthesis import LOCAL_METHODS, central_tracks, local_tracks
from experiments.noisy_traces import independent, predicted, read_noisy
from experiments.stream_clusters import castle, fads, read_boxes
from experiments.stream_errors import Published, Stream, StreamErrors, counted, stream_errors
from experiments.tracking_experiment import released
from experiments.window_counts import WINDOW_METHODS, smoothed, window_counts

SIDE = 6
"""Rows and columns of the grid, as in the paper of RetraSyn."""
WINDOW = 20
"""Steps of a window (w), a minute each; likewise."""
EPSILON = 1.0
"""Budget of a window; likewise."""
K = 10
"""Devices in a cluster; `counts.k` by default."""
_HOUR_S = 3600.0
_SILENT_INTERVALS = 3
"""Reports that a device may miss and still count as present, if that is longer than by default."""
_NOISE_AT_M = (200, 1000)
"""Metres within which a place is at most 4 times as likely from one position as from another."""
_LATTICE_M = 140.0
"""Distance of the nodes of a lattice: positions between them are still on the network."""
_LATTICE_SPEED_MPS = 14.0


class Method(NamedTuple):
    """A way to publish."""

    name: str
    family: str
    """`name`, `family`: what it is called, and what it is drawn as."""
    promise: str
    """In words, of every device."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The errors of one way to publish, one for each run."""

    method: Method
    errors: tuple[StreamErrors, ...]


class _Scene(NamedTuple):
    """What all have in common."""

    network: RoadNetwork
    stream: Stream
    traffic: Traffic
    cell_of: IntArray
    """Cell of each node."""


def run_rivals(
    trace: Trace,
    network: RoadNetwork,
    *,
    tick_s: float = 1.0,
    runs: int = 5,
    seed: int = 1,
    progress: Callable[[float, str], None] = lambda _done, _what: None,
) -> list[Compared]:
    """Publish a trace in every way, several times, and measure the errors.

    Parameters
    ----------
    trace, network
        Of half an hour or more; the network needs coordinates.
    tick_s
        Length of a tick of the gateway.
    runs
        Runs with different noise and choices.
    seed
        Equal arguments and seed give equal errors.
    progress
        Called with the share that is done, and with what comes next.

    Raises
    ------
    InputError
        If the trace is shorter than some minutes.
    """
    scene = _scene(trace, network)
    found: dict[Method, list[StreamErrors]] = {}
    for run in range(runs):
        rng = np.random.default_rng(seed + run)
        ways = (_released(scene, trace, mode, tick_s, seed + run) for mode in _PROMISE)
        others = _counts(scene), _rivals(scene, rng), _central(scene, seed + run)
        for method, published in chain(ways, *others):
            errors = stream_errors(scene.stream, published, seed=seed + run)
            found.setdefault(method, []).append(errors)
            progress((run + 0.5) / runs, method.name)
    return [Compared(method, tuple(errors)) for method, errors in found.items()]


def lattice(trace: Trace) -> RoadNetwork:
    """Return a square lattice over the middle nine tenths of a trace, for cities without a map."""
    (south, north), (west, east) = (np.quantile(at, (0.05, 0.95)) for at in (trace.lat, trace.lon))
    metres = 111_195.0
    wide = metres * np.cos(np.deg2rad((south + north) / 2))
    rows, columns = (
        int(span // _LATTICE_M) + 1 for span in ((north - south) * metres, (east - west) * wide)
    )
    row, column = np.divmod(np.arange(rows * columns), columns)
    node = np.arange(rows * columns).reshape(rows, columns)
    u = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    v = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    both = np.ones(len(u), np.bool_)
    return from_arrays(
        node_id=np.arange(rows * columns),
        lat=south + row * _LATTICE_M / metres,
        lon=west + column * _LATTICE_M / wide,
        u=u,
        v=v,
        length_m=np.full(len(u), np.nan),
        speed_mps=np.full(len(u), _LATTICE_SPEED_MPS),
        forward=both,
        backward=both,
    )


def _settings(trace: Trace, mode: str) -> Settings:
    order = np.lexsort((trace.ts, trace.device_of))
    gap_s = np.diff(trace.ts[order])[np.diff(trace.device_of[order]) == 0]
    usual_s = float(np.median(gap_s)) if len(gap_s) else 0.0
    ttl_s = max(Settings().presence.ttl_s, _SILENT_INTERVALS * usual_s)
    tables: dict[str, Any] = {"region": {"mode": mode}, "presence": {"ttl_s": ttl_s}}
    return Settings.model_validate(tables)


def _scene(trace: Trace, network: RoadNetwork) -> _Scene:
    """Return the positions of each minute, from when all have had time to report."""
    settings = _settings(trace, "session")
    present_s = settings.presence.ttl_s
    reports = reports_of(trace, network, settings)
    times = counting_times(reports.ts[reports.ts >= reports.ts.min(initial=np.inf) + present_s])
    traffic = true_traffic(reports, network, times, present_s=present_s)
    x_m, y_m = tangent_plane(network)
    cell_of = grid_cells(network, SIDE)
    width_m, height_m = (max(float(np.ptp(at)), 1.0) / SIDE for at in (x_m, y_m))
    place = traffic.place
    stream = Stream(
        np.where(place >= 0, cell_of[place], -1),
        (x_m[place] - x_m.min()) / width_m,
        (y_m[place] - y_m.min()) / height_m,
        SIDE,
        width_m,
        height_m,
    )
    return _Scene(network, stream, traffic, cell_of)


_PROMISE = {
    "session": "k pseudonyms share every region of a pseudonym's life",
    "snapshot": "k devices publish the same region at each instant",
}


def _released(
    scene: _Scene, trace: Trace, mode: str, tick_s: float, seed: int
) -> tuple[Method, Published]:
    settings = _settings(trace, mode)
    case, release = released(trace, scene.network, settings, tick_s=tick_s, seed=seed)
    times, until = scene.traffic.times, release.until + GRACE_TICKS * tick_s
    reader = RegionReader(
        case.observed,
        until=until,
        times=times,
        n_nodes=scene.network.n_nodes,
        piece_of=case.piece_of,
    )
    n_at = reader.read(grid(scene.network, SIDE)).n_at
    rng = np.random.default_rng(seed)
    tracks = _region_tracks(case.observed, scene.cell_of, times, until, rng)
    return Method(mode, "ours", _PROMISE[mode]), Published(n_at, tracks)


def _region_tracks(
    observed: Observed,
    cell_of: IntArray,
    times: FloatArray,
    until: FloatArray,
    rng: np.random.Generator,
) -> IntArray:
    """Return a cell of each pseudonym at each step, shape (steps, pseudonyms).

    It stays where it was while its region allows that, else goes to a random node of its region.
    """
    region = np.repeat(np.arange(observed.n_regions), observed.region_size)
    n_cells = int(cell_of.max()) + 1
    pairs, n = np.unique(region * n_cells + cell_of[observed.node], return_counts=True)
    of, cell = np.divmod(pairs, n_cells)
    up_to = np.cumsum(n)
    end = up_to[np.searchsorted(of, np.arange(observed.n_regions), side="right") - 1]
    begin = end - observed.region_size
    tracks = np.full((len(times), observed.n_pseudonyms), -1, np.int64)
    for t, record in enumerate(last_records(observed, times, until)):
        there = np.flatnonzero(record >= 0)
        regions = observed.region_of[record[there]]
        before = tracks[t - 1, there] if t else np.full(len(there), -1)
        wanted = regions * n_cells + before
        found = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
        stays = (before >= 0) & (pairs[found] == wanted)
        node = rng.integers(begin[regions], end[regions])
        anywhere = cell[np.searchsorted(up_to, node, side="right")]
        tracks[t, there] = np.where(stays, before, anywhere)
    return tracks[:, (tracks >= 0).any(axis=0)]


def _counts(scene: _Scene) -> Iterator[tuple[Method, Published]]:
    """Yield the counts of the gateway; devices report once a minute."""
    place, times = scene.traffic.place, scene.traffic.times
    step, device = np.nonzero(place >= 0)
    reports = Reports(device, times[step] - EVERY_S / 2, place[step, device])
    safe = SafeCounts(reports, scene.network, times).read(grid(scene.network, SIDE))
    yield (
        Method("safe counts", "ours", f"{K} devices in each figure and difference"),
        Published(safe.n_at),
    )
    window_s = WINDOW * EVERY_S
    choices = (
        ("dp, each minute", "dp", 32, EVERY_S, _HOUR_S, "an hour by the clock"),
        ("w-event, each minute", "w-event", 32, EVERY_S, window_s, "any 20 minutes"),
        ("w-event, every 5 minutes", "w-event", 64, 5 * EVERY_S, window_s, "any 20 minutes"),
        ("w-event, every 20 minutes", "w-event", 128, window_s, window_s, "any 20 minutes"),
    )
    for name, privacy, n_cells, every_s, period_s, span in choices:
        cell_of = compact_parts(scene.network, n_cells).astype(np.int64)
        true = counted(np.where(place >= 0, cell_of[place], -1), n_cells)
        n_nodes = np.maximum(np.bincount(cell_of, minlength=n_cells), 1)
        spread = np.zeros((n_cells, SIDE * SIDE))
        np.add.at(spread, (cell_of, scene.cell_of), 1 / n_nodes[cell_of])
        settings = CountSettings.model_validate(
            {
                "privacy": privacy,
                "every_s": every_s,
                "period_s": period_s,
                "epsilon": EPSILON,
                "cells": n_cells,
            }
        )
        noise, apart = noise_of(settings), round(every_s / EVERY_S)
        noisy = np.array([noise.added_to(row) for row in true[::apart].astype(int).tolist()])
        read = np.repeat(smoothed(noisy.astype(np.float64), noise.scale**2), apart, axis=0)
        promise = f"ε = {EPSILON:g}, δ = 1e-6 for {span}, of a trusted server"
        n_at = np.maximum(read[: len(true)], 0.0) @ spread
        yield Method(name, "ours", promise), Published(n_at)


def _central(scene: _Scene, seed: int) -> Iterator[tuple[Method, Published]]:
    stream, rng = scene.stream, np.random.default_rng(seed)
    tracks = central_tracks(stream, epsilon=EPSILON, w=WINDOW, rng=rng)
    promise = f"ε = {EPSILON:g}, δ = 1e-6 for any {WINDOW} steps, of a trusted server"
    yield (
        Method("trips made up of counts", "w-event counts", promise),
        Published(counted(tracks, stream.n_cells), tracks),
    )


def _rivals(scene: _Scene, rng: np.random.Generator) -> Iterator[tuple[Method, Published]]:
    stream = scene.stream
    true = stream.counts()
    trusted = f"ε = {EPSILON:g} for any {WINDOW} steps, of a trusted server"
    for kind in WINDOW_METHODS:
        noisy = window_counts(true, kind, epsilon=EPSILON, w=WINDOW, rng=rng)
        yield Method(kind, "w-event counts", trusted), Published(np.maximum(noisy, 0.0))
    local = f"ε = {EPSILON:g} for any {WINDOW} steps, of nobody; devices are counted exactly"
    for each in LOCAL_METHODS:
        tracks = local_tracks(stream, each, epsilon=EPSILON, w=WINDOW, rng=rng)
        read = Published(counted(tracks, stream.n_cells), tracks)
        yield Method(each, "local synthesis", local), read
    for metres in _NOISE_AT_M:
        unit_m = metres / np.log(4.0)
        alone = independent(stream, scale_m=unit_m, rng=rng)
        divided = independent(stream, scale_m=unit_m * WINDOW, rng=rng)
        repeated = predicted(stream, unit_m=unit_m, w=WINDOW, rng=rng)
        one, all_ = (
            f"{of} at most 4 times as likely from {metres} m away"
            for of in ("each place", f"any {WINDOW} places together")
        )
        for name, promise, noisy_places in (
            (f"Laplace, {metres} m", one, alone),
            (f"Laplace, {metres} m a window", all_, divided),
            (f"predictive, {metres} m a window", all_, repeated),
        ):
            yield (
                Method(name, "geo-indistinguishable", promise),
                read_noisy(stream, noisy_places, rng),
            )
    delay = max(int((stream.cell >= 0).sum(axis=1).mean()), 1)
    clusters = f"{K} devices in each cluster; nothing over time; no names"
    for name, publish in (("CASTLE", castle), ("FADS", fads)):
        boxes = publish(stream, k=K, delay=delay, rng=rng)
        yield Method(name, "clusters", clusters), read_boxes(boxes, stream)
