"""Traffic of a recorded trace by street and hour: columns that may be published."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.algorithms.positions.recorded_trips import trips_of
from anonymizer.algorithms.positions.secret_thresholds import SecretThresholds
from anonymizer.algorithms.positions.spanning_forest import parts_of
from anonymizer.algorithms.positions.street_hours import (
    MOST_SPEED_MPS,
    SPEED_STEP_MPS,
    Passages,
    passages_of,
    stretches_of,
)
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import Lines, RoadNetwork, Shapes
from anonymizer.domain.protection import TripRule
from anonymizer.domain.trace import Trace, check_one_network
from anonymizer.errors import GuaranteeError, InputError
from anonymizer.networks.roads import roads_of
from anonymizer.outputs.windows import promised_k
from anonymizer.pipeline.positions.decode.headings import headings_in
from anonymizer.settings import Settings, zones_of

Geometry: TypeAlias = dict[str, Any]
_SIGMAS = 1.959964
"""Standard errors of an interval of 95 %."""
_NEIGHBOURHOOD = 256
"""Roads among which those of equal speed follow each other."""


class StreetHourTable(NamedTuple):
    """A row for each stretch of roads in each hour."""

    columns: Mapping[str, Any]
    """By name, of equal length; `time` is where the hour begins."""
    geometry: list[Geometry]
    """The roads of each stretch, as GeoJSON."""
    n_off: int
    n_private: int
    """`n_off`, `n_private`: positions that are near no road, or in a privacy zone or near the end
    of a trip. For the operator alone."""


class Streets(NamedTuple):
    """Roads in an order in which neighbours follow each other; `streets_of` makes them."""

    number_of: Int32Array
    """Place of each road in that order, shape (roads,)."""
    road_at: IntArray
    """Road at each place, -1 for none, shape (a power of two,)."""
    name: list[str]
    line: list[list[list[float]]]
    length_m: FloatArray
    """`name`, `line`, `length_m`: of each road."""


def street_hours(
    trace: Trace,
    network: RoadNetwork,
    settings: Settings,
    *,
    every_s: float,
    rng: np.random.Generator,
) -> StreetHourTable:
    """Return how many devices passed on each street in each hour, and how fast.

    Parameters
    ----------
    settings
        The promise is `counts.k`, and `region.k_extra`. Positions in `zones` are left out, and with
        `trips.enabled` those near the ends of trips.
    rng
        Draws the secret of the thresholds, with `region.k_extra`.

    Raises
    ------
    InputError
        If the trace names nodes, its ids change, so that k would not be of devices, or the settings
        ask for differential privacy.
    GuaranteeError
        If a figure is about fewer than k devices.
    """
    if settings.counts.has_noise:
        raise InputError('traffic: is published with k alone; set counts.privacy to "k" for it')
    private = _is_private(trace, settings)
    streets = streets_of(network)
    at = _place_of(trace, network, settings, streets)
    passages = _passages(trace, settings, np.where(private, -1, at), every_s)
    first, last = np.floor(trace.ts[[0, -1]] / every_s).astype(np.int64).tolist()
    shown = safe_hours(
        passages,
        range(first, last + 1),
        streets,
        k=promised_k(settings),
        every_s=every_s,
        secret=rng.bytes(32) if settings.region.k_extra else None,
    )
    return StreetHourTable(*shown, int(((at < 0) & ~private).sum()), int(private.sum()))


def safe_hours(
    passages: Passages,
    intervals: range,
    streets: Streets,
    *,
    k: int,
    every_s: float,
    secret: bytes | None = None,
) -> tuple[dict[str, Any], list[Geometry]]:
    """Return columns and geometries of the traffic with k of some intervals, checked.

    `secret`: of the thresholds; None: they are sharp.

    Raises `GuaranteeError` if a figure is about fewer than k devices.
    """
    columns, rows = _safe(passages, intervals, streets.road_at >= 0, k, secret)
    _check(passages, columns, rows, k, SecretThresholds(secret).most_more(k))
    shown = {
        "time": np.round(columns.pop("interval") * every_s * 1000).astype("datetime64[ms]"),
        "every_s": np.full(len(rows), every_s),
        "privacy": [f"k={k}"] * len(rows),
        **_drawn(streets, rows),
        **columns,
    }
    geometry = shown.pop("geometry")
    return shown, geometry


class HourPassages(NamedTuple):
    """What traffic with k is made of: for attacks on it."""

    passages: Passages
    """By place in the public order, each interval after the other."""
    is_road: BoolArray
    """Whether there is a road at each place, shape (a power of two,)."""


def hour_passages(
    trace: Trace, network: RoadNetwork, settings: Settings, *, every_s: float
) -> HourPassages:
    """Return the passages that count in `street_hours`; it raises what that raises."""
    private, streets = _is_private(trace, settings), streets_of(network)
    at = np.where(private, -1, _place_of(trace, network, settings, streets))
    return HourPassages(_passages(trace, settings, at, every_s), streets.road_at >= 0)


def _is_private(trace: Trace, settings: Settings) -> BoolArray:
    if trace.node is not None:
        raise InputError("traffic: the trace must have lat and lon")
    if not trace.n_rows:
        raise InputError("traffic: the trace has no positions")
    if any(each.ids_live_s for each in settings.inputs):
        raise InputError("traffic: ids change (inputs.ids_change_s), so that none counts once")
    private = zones_of(settings.zones).contains(trace.lat, trace.lon)
    if settings.trips.enabled:
        private |= ~_between_ends(trace, settings.trips.rule)
    return private


def _place_of(trace: Trace, network: RoadNetwork, settings: Settings, streets: Streets) -> IntArray:
    road = roads_under(trace, network, limit_m=settings.network.snap_limit_m)
    return np.where(road >= 0, streets.number_of[road], -1)


def _passages(trace: Trace, settings: Settings, at: IntArray, every_s: float) -> Passages:
    return passages_of(
        trace.device_of,
        trace.ts,
        trace.lat,
        trace.lon,
        at,
        every_s=every_s,
        gap_s=settings.presence.ttl_s,
    )


def roads_under(trace: Trace, network: RoadNetwork, *, limit_m: float) -> IntArray:
    """Return the road of each position, in the order of `roads_of`; -1 for none, shape (rows,)."""
    locator = NodeLocator(_apart(network), limit_m=limit_m)
    node = locator.locate(trace.lat, trace.lon, headings_in(trace))
    return node.astype(np.int64) // 2  # of nowhere, -1 // 2 is -1


def _safe(
    passages: Passages,
    intervals: range,
    is_road: BoolArray,
    k: int,
    secret: bytes | None,
) -> tuple[dict[str, Any], list[IntArray]]:
    """Return columns, and the places of each row.

    An interval in which fewer than k devices pass is one row that says so.
    """
    rows: list[IntArray] = []
    found: list[FloatArray] = []
    bounds = np.searchsorted(passages.interval, [*intervals, intervals.stop])
    for interval, (a, b) in zip(intervals, pairwise(bounds.tolist()), strict=True):
        thresholds = SecretThresholds(secret, interval=interval)
        safe = stretches_of(passages.at(slice(a, b)), len(is_road), k, thresholds)
        n = len(safe.n_devices)
        if n:
            rows += np.split(np.arange(len(is_road)), np.flatnonzero(np.diff(safe.stretch_of)) + 1)
            found.append(np.stack([np.full(n, interval), *safe[1:]], axis=1))
        else:
            rows.append(np.arange(len(is_road)))
            found.append(np.array([[interval, 0, np.nan, np.nan]]))
    interval, least, speed, spread = np.concatenate(found).T
    reach = SPEED_STEP_MPS / 2 + _SIGMAS * spread
    low = least.astype(np.int64)
    most = SecretThresholds(secret).most_more(k)
    middle, high = low + most / 2, low + most
    n_roads = np.array([is_road[row].sum() for row in rows], np.int64)
    columns = {
        "interval": interval,
        "devices": middle,
        "devices_low": low,
        "devices_high": high,
        "passages": middle,
        "passages_low": low,
        "passages_high": high * n_roads,
        "speed_mps": speed,
        "speed_low": np.maximum(speed - reach, 0.0),
        "speed_high": np.minimum(speed + reach, MOST_SPEED_MPS),
        "speed_spread": spread,
    }
    return columns, rows


def _check(
    passages: Passages, columns: Mapping[str, Any], rows: Sequence[IntArray], k: int, more: int
) -> None:
    """Count again, with other code, before anything is written."""
    on: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for interval, road, device in zip(*(each.tolist() for each in passages[:3]), strict=True):
        on[interval, road].add(device)
    least = columns["devices_low"].tolist()
    taken: set[tuple[int, int]] = set()
    few: set[float] = set()
    for interval, row, n in zip(columns["interval"].tolist(), rows, least, strict=True):
        places = {(int(interval), place) for place in row.tolist()}
        seen = len(set[int]().union(*(on[place] for place in places & on.keys())))
        # At least k, or once in an interval nothing but that they are fewer.
        is_right = n % k == 0 and n <= seen <= n + more
        if not is_right or taken & places or (not n and interval in few):
            raise GuaranteeError("traffic: a figure is about too few devices; nothing was written")
        taken |= places
        few |= set() if n else {interval}


class StreetFinder:
    """Finds the place in the public order of the road that each position is on.

    Parameters
    ----------
    network, streets
        With coordinates, and its roads in their public order.
    limit_m
        Positions farther than this from every road are on none.
    """

    def __init__(self, network: RoadNetwork, streets: Streets, *, limit_m: float) -> None:
        self._number_of = streets.number_of
        self._locator = NodeLocator(_apart(network), limit_m=limit_m)

    def find(self, lat: FloatArray, lon: FloatArray, heading: FloatArray | None) -> IntArray:
        """Return the place of each position, -1 for none, shape (n,)."""
        road = self._locator.locate(lat, lon, heading).astype(np.int64) // 2
        return np.where(road >= 0, self._number_of[road], -1)


def streets_of(network: RoadNetwork) -> Streets:
    """Return the roads of one network with coordinates."""
    check_one_network(network)
    if not network.has_coordinates:
        raise InputError("traffic: the network must have coordinates")
    lines, roads = network.lines(), roads_of(network)
    lat, lon = ((at[lines.tail] + at[lines.head]) / 2 for at in (network.lat, network.lon))
    n, n_places = len(lat), 1 << max(len(lat) - 1, 0).bit_length()
    near = np.argsort(parts_of(lon * np.cos(np.radians(lat.mean())), lat, n_places))
    # Of each neighbourhood the fast roads first: main roads are with each other, not with the side
    # streets beside them, which fewer devices pass.
    road_at = np.full(n_places, -1, np.int64)
    road_at[:n] = near[np.lexsort((-roads.speed_mps[near], np.arange(n) // _NEIGHBOURHOOD))]
    number = np.empty(n, np.int32)
    number[road_at[:n]] = np.arange(n)
    points = np.column_stack([lines.lon, lines.lat]).round(7)
    cut = np.split(points, lines.first_point_of[1:-1])
    ends = (network.node_id[each].tolist() for each in (roads.u, roads.v))
    return Streets(
        number,
        road_at,
        [f"{u}-{v}" for u, v in zip(*ends, strict=True)],
        [line.tolist() for line in cut],
        roads.length_m,
    )


def _drawn(streets: Streets, rows: Sequence[IntArray]) -> dict[str, Any]:
    """Return names, lengths and geometries of the roads of each row."""
    found = []
    for places in rows:
        road = streets.road_at[places]
        road = road[road >= 0]
        named = road.tolist()
        lines = [streets.line[r] for r in named]
        found.append(
            (
                [streets.name[r] for r in named],
                round(float(streets.length_m[road].sum()), 1),
                {"type": "MultiLineString", "coordinates": lines},
            )
        )
    return {
        "roads": [names for names, _, _ in found],
        "n_roads": np.array([len(names) for names, _, _ in found], np.int64),
        "length_m": np.array([length for _, length, _ in found], np.float64),
        "geometry": [geometry for _, _, geometry in found],
    }


def _apart(network: RoadNetwork) -> RoadNetwork:
    """Return a network of the same roads that meet nowhere: road i has the nodes 2i and 2i + 1."""
    lines: Lines = network.lines()
    n = len(lines.tail)
    first, last = lines.first_point_of[:-1], lines.first_point_of[1:] - 1
    inner = np.ones(len(lines.lat), np.bool_)
    inner[first] = inner[last] = False
    n_corners = np.zeros(2 * n, np.int64)
    n_corners[::2] = last - first - 1
    ends = np.stack([first, last], axis=1).ravel()
    nodes = np.arange(2 * n)
    return RoadNetwork(
        node_id=nodes,
        lat=lines.lat[ends],
        lon=lines.lon[ends],
        first_arc_of=np.arange(2 * n + 1, dtype=np.int32),
        neighbour_of=(nodes ^ 1).astype(np.int32),
        length_m=np.ones(2 * n),
        speed_mps=np.ones(2 * n),
        drivable=np.ones(2 * n, np.bool_),
        component_of=(nodes // 2).astype(np.int32),
        shapes=Shapes(
            np.concatenate([[0], np.cumsum(n_corners)]), lines.lat[inner], lines.lon[inner]
        ),
        reach_m=network.reach_m,
    )


def _between_ends(trace: Trace, rule: TripRule) -> BoolArray:
    """Return which rows are in a trip, and far enough from both of its ends, shape (rows,)."""
    order = np.lexsort((trace.ts, trace.device_of))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    trips = trips_of(trace, rule)
    far = np.zeros(len(order), np.bool_)
    for first, last in zip(place[trips.first].tolist(), place[trips.last].tolist(), strict=True):
        rows = order[first : last + 1]
        lat, lon, ts = trace.lat[rows], trace.lon[rows], trace.ts[rows]
        start_m = haversine_m(lat[0], lon[0], lat, lon)
        end_m = haversine_m(lat, lon, lat[-1], lon[-1])
        far[rows] = (
            (start_m >= rule.start_m)
            & (ts - ts[0] >= rule.start_s)
            & (end_m >= rule.end_m)
            & (ts[-1] - ts >= rule.end_s)
        )
    return far
