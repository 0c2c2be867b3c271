"""A morning as an analyst sees it, beside the truth: matrices, speeds of streets, starts by hour.

`python -m experiments.morning_experiment TRACE NETWORK` prints a table for a recorded trace, and
without arguments that of simulated commuters. What is asked of each published output is asked of
the true positions, too; the table says in how many answers the interval of 95 % holds the truth.
"""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import polars as pl

from anonymizer import client
from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.algorithms.positions.street_hours import passages_of
from anonymizer.api.anonymizing import anonymize
from anonymizer.app.trip_table import trip_table
from anonymizer.client.counts import Counts
from anonymizer.client.published_trips import PublishedTrips
from anonymizer.client.tables import Table
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.domain.trace import Trace
from anonymizer.files.traces import trace_of
from anonymizer.networks import load_network
from anonymizer.outputs.counts.counted_devices import CountedDevices
from anonymizer.outputs.counts.safe_messages import SafeMessages
from anonymizer.outputs.streets.street_hours import roads_under, street_hours
from anonymizer.outputs.trips.trip_windows import TripMessages, TripWindows
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.settings import Settings, zones_of
from experiments.commuter_weeks import drive_along
from simulator.shortest_paths import Router

HOUR_S = 3600.0
K = 10
CELLS_M = (1000.0, 2000.0, 4000.0)
N_STREETS = 50
N_COMMUTERS, N_WORKPLACES, REPORT_S = 3000, 40, 10.0
COUNT_S, TICK_S = 900.0, 60.0


class Row(NamedTuple):
    """How well one question is answered."""

    question: str
    """What was asked, of which output."""
    n: int
    """Answers: those where something is, or is expected."""
    held: float
    """Share of them whose interval holds the truth."""
    width: float
    """Mean length of the intervals, in the unit of the answer."""
    truth: float
    """Mean of the true answers."""
    error: float
    """Sum of the absolute errors by the sum of the true answers."""


@dataclass(frozen=True)
class Morning:
    """A morning: the true positions, the network, and the two hours that are asked about."""

    trace: Trace
    network: RoadNetwork
    start_s: float
    settings: Settings

    @property
    def end_s(self) -> float:
        """End of the two hours."""
        return self.start_s + 2 * HOUR_S


def recorded(path: Path, network: str, *, first_hour: int = 7) -> Morning:
    """Return the morning of the first day of a trace, from an hour after its beginning.

    It has an hour before and one after the two that are asked about.
    """
    frame = pl.read_parquet(path)
    begins = float(frame["ts"].min()) + first_hour * HOUR_S  # type: ignore[arg-type]
    start_s = np.ceil(begins / HOUR_S) * HOUR_S
    kept = frame.filter(pl.col("ts").is_between(start_s - HOUR_S, start_s + 3 * HOUR_S))
    return Morning(trace_of(kept), load_network(network), float(start_s), _settings())


def commuters(source: str = "city:3000", n: int = N_COMMUTERS, *, seed: int = 1) -> Morning:
    """Return simulated commuters, who drive from home to one of some workplaces.

    They report only while they drive, and leave within three hours, most in the middle.
    """
    network, rng = load_network(source), np.random.default_rng(seed)
    router = Router(network)
    work = rng.choice(network.n_nodes, N_WORKPLACES, replace=False)
    roads = [router.next_arcs_to(int(node)) for node in work]
    parts = []
    for device in range(n):
        home, leaves_s = (
            int(rng.integers(network.n_nodes)),
            6 * HOUR_S + rng.normal(1.5, 0.5) * HOUR_S,
        )
        path, at_s = drive_along(network, router, roads[int(rng.integers(N_WORKPLACES))], home)
        if len(path) < 2:
            continue
        pace = rng.uniform(1.2, 2.0)  # of the time without traffic
        seconds = np.arange(0.0, pace * at_s[-1], REPORT_S)
        place = [np.interp(seconds, pace * at_s, x[path]) for x in (network.lat, network.lon)]
        parts.append(
            pl.DataFrame(
                {
                    "device_id": [f"car-{device}"] * len(seconds),
                    "ts": leaves_s + seconds,
                    "lat": place[0],
                    "lon": place[1],
                }
            )
        )
    # The recording begins and ends when nobody drives, so that it cuts no trip.
    still = pl.DataFrame(
        {
            "device_id": ["nobody"] * 2,
            "ts": [0.0, 24 * HOUR_S],
            "lat": [float(network.lat[0])] * 2,
            "lon": [float(network.lon[0])] * 2,
        }
    )
    return Morning(trace_of(pl.concat([still, *parts])), network, 7 * HOUR_S, _settings())


def answers(morning: Morning) -> Iterator[Row]:
    """Yield how well each question is answered."""
    yield from _streets(morning)
    yield from _trips(morning)
    yield from _trips_told(morning)
    yield from _counts(morning)


def _settings() -> Settings:
    counts = {"privacy": "k", "every_s": COUNT_S, "k": K}
    return Settings.model_validate({"counts": counts, "trips_out": {"every_s": HOUR_S}})


def _row(question: str, shown: Table, name: str, true: FloatArray, there: BoolArray) -> Row:
    """Compare a column of a table, with its interval, to the truth."""
    bounds = (f"{name.removesuffix('_mps')}_low", f"{name.removesuffix('_mps')}_high")
    low, high = (
        shown[each if each in shown.columns else each.rpartition("_")[2]] for each in bounds
    )
    value, low, high, true = (
        each[there].astype(np.float64) for each in (shown[name], low, high, true)
    )
    error = np.abs(value - true).sum() / max(np.abs(true).sum(), 1e-9)
    # What is rounded to whole numbers in the table is compared as it is.
    held = ((low - 1e-9 <= true) & (true <= high + 1e-9)).mean()
    return Row(
        question,
        int(there.sum()),
        float(held),
        float((high - low).mean()),
        float(true.mean()),
        float(error),
    )


def _streets(morning: Morning) -> Iterator[Row]:
    trace, network, settings = morning.trace, morning.network, morning.settings
    found = street_hours(trace, network, settings, every_s=HOUR_S, rng=np.random.default_rng(0))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "traffic"
        Table(found.columns, found.geometry).write(path)
        hours = client.read_street_hours(path, network=network)
    road = roads_under(trace, network, limit_m=settings.network.snap_limit_m)
    passages = passages_of(
        trace.device_of,
        trace.ts,
        trace.lat,
        trace.lon,
        road,
        every_s=HOUR_S,
        gap_s=settings.presence.ttl_s,
    )
    begins = passages.interval * HOUR_S
    asked = passages.at((begins >= morning.start_s) & (begins < morning.end_s))
    moving = ~np.isnan(asked.speed_mps)
    n, n_moving, speed = (
        np.bincount(asked.road[chosen], weight[chosen], network.n_roads)
        for chosen, weight in (
            (np.ones(len(asked.road), np.bool_), np.ones(len(asked.road))),
            (moving, np.ones(len(moving))),
            (moving, asked.speed_mps),
        )
    )
    table = hours.roads(start=morning.start_s, end=morning.end_s)
    index = {name: i for i, name in enumerate(_road_names(hours.network))}
    number = np.array([index[name] for name in zip(table["u"], table["v"], strict=True)])
    n, n_moving, speed = n[number], n_moving[number], speed[number]
    mean = np.divide(speed, n_moving, out=np.full(len(n), np.nan), where=n_moving > 0)
    busiest = np.zeros(len(n), np.bool_)
    busiest[np.argsort(-n, kind="stable")[:N_STREETS]] = True
    of_busiest = f"of the {N_STREETS} busiest streets"
    known = ~np.isnan(table["speed_mps"]) & ~np.isnan(mean)
    yield _row(f"speed {of_busiest}, m/s", table, "speed_mps", mean, busiest & known)
    yield _row("speed of all streets, m/s", table, "speed_mps", mean, known)
    yield _row(f"passages {of_busiest}", table, "passages", n, busiest)
    yield _row("passages of all streets", table, "passages", n, n >= 0)


def _road_names(network: client.Network) -> list[tuple[object, object]]:
    ends = (network.node_id[each].tolist() for each in (network.u, network.v))
    return list(zip(*ends, strict=True))


def _trips(morning: Morning) -> Iterator[Row]:
    settings = morning.settings
    true = trip_table(morning.trace, settings.trips.rule, zones_of(settings.zones)).frame
    qi = ["start", "from_lat", "from_lon", "to_lat", "to_lon"]
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the domain is taken from the data
        path = Path(folder) / "trips.csv"
        anonymize(true, k=K, id="device_id", qi=qi).frame.write_csv(path)
        trips = client.read_trips(path, network=morning.network)
    yield from _beside_the_truth(morning, trips, true, "trips")


def _trips_told(morning: Morning) -> Iterator[Row]:
    """Yield the answers of the trips that a gateway tells: those between places on the network."""
    settings, limit_m = morning.settings, morning.settings.network.snap_limit_m
    true = trip_table(morning.trace, settings.trips.rule, zones_of(settings.zones)).frame
    locator = NodeLocator(morning.network, limit_m=limit_m)
    for end in ("from", "to"):
        places = (true[f"{end}_{name}"].to_numpy() for name in ("lat", "lon"))
        true = true.filter(pl.Series(locator.locate(*places) >= 0))
    yield from _beside_the_truth(morning, _published_trips(morning), true, "`cloaked/trips`: trips")


def _published_trips(morning: Morning) -> PublishedTrips:
    """Return the trips that a gateway would have published."""
    trace, network, settings = morning.trace, morning.network, morning.settings
    node = NodeLocator(network, limit_m=settings.network.snap_limit_m).locate(trace.lat, trace.lon)
    windows, lines = TripWindows(settings, network), list[bytes]()
    messages = TripMessages(settings, network, version=network_version(network))
    tick = np.floor(trace.ts / TICK_S).astype(np.int64)
    # It has run for some hours before, and does so afterwards.
    for number in range(int(tick[0]) - 180, int(tick[-1]) + 180):
        rows = slice(*np.searchsorted(tick, [number, number + 1]))
        slot = trace.device_of[rows].astype(np.int32)
        nothing = np.zeros(len(slot))
        positions = Positions(slot, trace.ts[rows], trace.lat[rows], trace.lon[rows], nothing)
        ended = windows.tick(positions, node[rows], now=(number + 1) * TICK_S)
        lines += [messages.of(each, wall_ahead_s=0.0).payload for each in ended]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trips.jsonl"
        path.write_bytes(b"\n".join(lines))
        return client.read_trips(path, network=network)


def _beside_the_truth(
    morning: Morning, trips: PublishedTrips, true: pl.DataFrame, what: str
) -> Iterator[Row]:
    start_s = true["start"].str.to_datetime("%Y-%m-%dT%H:%M:%SZ").dt.epoch("s").to_numpy()
    nodes = _Nearest(trips.network)
    ends = [nodes.of(true[f"{end}_lat"], true[f"{end}_lon"]) for end in ("from", "to")]
    for size_m in CELLS_M:
        cells = trips.network.grid(size_m)
        origin, destination = (cells.cell_of[end] for end in ends)
        question = f"{what} that begin, by hour, cells of {size_m:,.0f} m"
        yield _starts(trips, cells, origin, start_s, question)
        asked = (start_s >= morning.start_s) & (start_s < morning.end_s)
        moves = np.zeros((len(cells), len(cells)))
        np.add.at(moves, (origin[asked], destination[asked]), 1)
        table = trips.matrix(cells, start=morning.start_s, end=morning.end_s)
        there = (moves.ravel() > 0) | (table["trips"] > 0)
        question = f"{what} from A to B, cells of {size_m:,.0f} m"
        yield _row(question, table, "trips", moves.ravel(), there)


def _starts(
    trips: PublishedTrips,
    cells: client.Cells,
    origin: IntArray,
    start_s: FloatArray,
    question: str,
) -> Row:
    table = trips.starts(cells)
    hours = np.unique(table["time"]).astype("datetime64[s]").astype(np.int64)
    by_hour = [
        np.bincount(origin[(start_s >= at) & (start_s < at + HOUR_S)], minlength=len(cells))
        for at in hours.tolist()
    ]
    true = np.concatenate(by_hour).astype(np.float64)
    there = (true > 0) | (table["trips"] > 0)
    return _row(question, table, "trips", true, there)


class _Nearest:
    """Finds the node nearest to a place: what a cell of the client is made of."""

    def __init__(self, network: client.Network) -> None:
        from scipy.spatial import KDTree  # noqa: PLC0415  of this step alone

        self._east = float(np.cos(np.radians(network.lat.mean())))
        self._tree = KDTree(np.column_stack([network.lon * self._east, network.lat]))

    def of(self, lat: pl.Series, lon: pl.Series) -> IntArray:
        """Return the node of each place."""
        _, node = self._tree.query(np.column_stack([lon.to_numpy() * self._east, lat.to_numpy()]))
        return np.asarray(node, np.int64)


def _counts(morning: Morning) -> Iterator[Row]:
    locator = NodeLocator(morning.network, limit_m=morning.settings.network.snap_limit_m)
    node = locator.locate(morning.trace.lat, morning.trace.lon)
    counts = _published_counts(morning, node, 128)
    ends = [at for at in counts.ends if morning.start_s < at <= morning.end_s]
    places = [_last_node(morning.trace, node, at) for at in ends]
    for size_m in CELLS_M:
        cells = counts.network.grid(size_m)
        by_end = [np.where(at >= 0, cells.cell_of[at], -1) for at in places]
        mean = np.mean([np.bincount(at[at >= 0], minlength=len(cells)) for at in by_end], axis=0)
        table = counts.devices(cells, start=morning.start_s, end=morning.end_s)
        there = (mean > 0) | (table["high"] > 0)
        yield _row(f"devices there, cells of {size_m:,.0f} m", table, "devices", mean, there)


def _published_counts(morning: Morning, node: Int32Array, n_cells: int) -> Counts:
    """Return the safe counts that a gateway would have published."""
    trace, network = morning.trace, morning.network
    settings = morning.settings.counts.model_copy(update={"cells": n_cells})
    devices, lines = CountedDevices(settings, network), list[bytes]()
    safe = SafeMessages(settings, topic="", version=network_version(network))
    tick = np.floor(trace.ts / TICK_S).astype(np.int64)
    for number in range(int(tick[0]), int(tick[-1]) + 2):
        rows = slice(*np.searchsorted(tick, [number, number + 1]))
        slot = trace.device_of[rows].astype(np.int32)
        now = number * TICK_S + TICK_S / 2  # so that it ends no interval too early
        ended = devices.tick(slot, trace.ts[rows], node[rows], now=now)
        if ended is not None and ended.is_whole:
            lines.append(safe.message(ended.tally(), ended.end_s).payload)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "counts.jsonl"
        path.write_bytes(b"\n".join(lines))
        return client.read_counts(path, network=network)


def _last_node(trace: Trace, node: Int32Array, end_s: float) -> IntArray:
    """Return where each device was last in the interval before a time, -1 if it was not seen."""
    rows = np.flatnonzero((trace.ts >= end_s - COUNT_S) & (trace.ts < end_s) & (node >= 0))
    found = np.full(trace.n_devices, -1, np.int64)
    found[trace.device_of[rows]] = node[rows]  # of several, the last one stays
    return found


def main() -> None:
    """Print the table of a morning."""
    morning = recorded(Path(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 2 else commuters()
    print(f"{morning.trace.n_devices:,} devices, {morning.trace.n_rows:,} positions\n")  # noqa: T201
    print("| question | answers | intervals that hold | their length | true mean | error |")  # noqa: T201
    print("|---|--:|--:|--:|--:|--:|")  # noqa: T201
    for row in answers(morning):
        print(  # noqa: T201
            f"| {row.question} | {row.n:,} | {row.held:.3f} | {row.width:.1f} | {row.truth:.1f} | "
            f"{row.error:.0%} |"
        )


if __name__ == "__main__":
    main()
