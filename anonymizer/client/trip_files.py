"""Reading of published trips: tables of classes, and what a gateway tells of its windows."""

from collections.abc import Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from anonymizer.client.counts import counted_cells
from anonymizer.client.messages import PlaceSpan, ToldWindow
from anonymizer.client.network import Network, read_network
from anonymizer.client.published_trips import PublishedTrips, TripsInClasses
from anonymizer.client.recordings import collected
from anonymizer.domain.arrays import FloatArray, IntArray, starts_of
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.extras import extra
from anonymizer.unfolding import (
    UnfoldingError,
    check_csv,
    check_frame,
    check_unfolding,
    parquet_source,
    polars_source,
)

_COLUMNS = ("start", "from_lat", "from_lon", "to_lat", "to_lon")


def _nodes_in(network: Network, boxes: FloatArray) -> list[IntArray]:
    """Return the nodes in each box; the nearest node where there is none."""
    east_m = np.cos(np.radians(network.lat.mean()))
    lat, lon = network.lat, network.lon
    found = []
    for south, north, west, east in boxes.tolist():
        inside = np.flatnonzero((south <= lat) & (lat <= north) & (west <= lon) & (lon <= east))
        if not len(inside):
            far = (lat - (south + north) / 2) ** 2 + (east_m * (lon - (west + east) / 2)) ** 2
            inside = np.array([far.argmin()])
        found.append(inside.astype(np.int64))
    return found


def _tight_shares(network: Network, boxes: FloatArray, n: IntArray) -> csr_array:
    """Return the probability that an end of a class is at each node, shape (classes, nodes).

    The box of a class ends where its members do: one of them is at each of its four sides. The
    others are anywhere in it, at all nodes alike. Of n members, those at a side are within the nth
    part of the box, by expectation.
    """
    inside, parts = _nodes_in(network, boxes), []
    for (south, north, west, east), size, node in zip(
        boxes.tolist(), n.tolist(), inside, strict=True
    ):
        lat, lon, here = network.lat[node], network.lon[node], np.ones(len(node))
        at_side = min(4.0 / size, 1.0)
        share = (1.0 - at_side) * here / here.sum()
        high, wide = (north - south) / size, (east - west) / size
        for gap, reach in (
            (lat - south, high),
            (north - lat, high),
            (lon - west, wide),
            (east - lon, wide),
        ):
            near = np.where(gap <= max(reach, float(gap.min())), here, 0.0)
            share += at_side / 4 * near / near.sum()
        parts.append(share)
    first = starts_of(np.array([len(each) for each in inside], np.int64))
    entries = np.concatenate(parts), np.concatenate(inside), first
    return csr_array(entries, shape=(len(boxes), network.n_nodes))


def read_trips(
    path: str | PathLike[str],
    *,
    network: str | PathLike[str] | RoadNetwork | Network | None = None,
) -> PublishedTrips:
    """Read published trips.

    Parameters
    ----------
    path
        csv or parquet, as `anonymizer anonymize` writes it of a table of `anonymizer trips`: with
        `class_id`, and ranges in `start`, `from_lat`, `from_lon`, `to_lat` and `to_lon`. Or lines
        of JSON as on the topic of the trips, for example from `mosquitto_sub -v -t cloaked/trips`;
        other messages are left out.
    network
        Of the city; see `read_network`. None: the one that is among the messages.

    Raises
    ------
    InputError
        If the file cannot be read or has no trips, a value is no range, or they are of another
        network.
    """
    path = Path(path)
    known = None if network is None else read_network(network)
    if path.suffix in {".csv", ".parquet"}:
        if known is None:
            raise InputError(f"{path}: a table of trips needs `network`")
        return _of_table(path, known)
    collector, known = collected(path, known)
    try:
        return trips_told(list(collector.trips.values()), known)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def trips_told(windows: Sequence[ToldWindow], network: Network | None) -> PublishedTrips:
    """Return the trips of messages.

    Raises
    ------
    InputError
        If there are none, or they are not of the network, or of windows of several lengths.
    """
    if not windows:
        raise InputError("no window of trips is published")
    if network is None:
        raise InputError(
            "the network of the trips is not known: pass `network=`, or take the messages on "
            "`anonymizer/network/#` as well"
        )
    if {each.network for each in windows} != {network.version}:
        raise InputError(
            f"the trips are not all about network {network.version}: take the one that the gateway "
            "publishes on `anonymizer/network/#`"
        )
    if len({each.window_s for each in windows}) > 1:
        raise InputError("the trips are of windows of several lengths; read them separately")
    windows = sorted(windows, key=lambda each: each.time)
    told = [(each, window) for window in windows for each in window.trips]
    least = np.array([each.devices for each, _ in told], np.int64)
    rest = np.array([window.most_more for _, window in told], np.int64)
    span_s = np.array([each.start for each, _ in told], np.float64).reshape(-1, 2)
    shares = [
        [
            _span_shares(network, window.n_cells, [getattr(each, end) for each in window.trips])
            for window in windows
        ]
        for end in ("origin", "destination")
    ]
    ends = csr_array(vstack(shares[0])), csr_array(vstack(shares[1]))
    classes = TripsInClasses(
        least=least,
        rest=rest,
        span_s=span_s,
        window_s=np.array([window.time for _, window in told], np.float64),
        lasts_s=_duration(network, *ends, least + rest / 2),
        ends=ends,
        names=(
            [f"{each.origin.first}-{each.origin.last}" for each, _ in told],
            [f"{each.destination.first}-{each.destination.last}" for each, _ in told],
        ),
        routes=[each.roads for each, _ in told],
    )
    return PublishedTrips(classes, network, windows=windows)


def _duration(network: Network, origin: csr_array, destination: csr_array, n: FloatArray) -> float:
    """Return how long trips last in the mean, in seconds, at half the free-flow speed."""
    if not len(n):
        return 0.0
    squared = sum(
        origin @ at**2 - 2 * (origin @ at) * (destination @ at) + destination @ at**2
        for at in network.plane_m
    )
    return float(n @ np.sqrt(np.maximum(squared, 0.0)) / n.sum() / (network.speed_mps.mean() / 2))


def _span_shares(network: Network, n_cells: int, spans: Sequence[PlaceSpan]) -> csr_array:
    """Return the probability that an end is at each node: alike at all nodes of its cells."""
    cell_of = counted_cells(network, n_cells)
    inside = [np.flatnonzero((cell_of >= each.first) & (cell_of <= each.last)) for each in spans]
    n = np.array([len(each) for each in inside], np.int64)
    if not n.all():
        raise InputError(f"a place of trips is none of the {n_cells} cells of the network")
    entries = np.repeat(1 / n, n), np.concatenate([*inside, np.zeros(0, np.int64)]), starts_of(n)
    return csr_array(entries, shape=(len(spans), network.n_nodes))


def _of_table(path: Path, network: Network) -> PublishedTrips:
    with extra("tables"):
        import polars as pl  # noqa: PLC0415  an extra

    try:
        if path.suffix == ".parquet":
            check_unfolding(path)
            frame = check_frame(pl.read_parquet(parquet_source(path)))
        else:
            check_csv(path)
            frame = pl.read_csv(polars_source(path), infer_schema=False)
        rows = frame.group_by("class_id", *_COLUMNS).len().sort("class_id").rows()
    except UnfoldingError as error:
        raise InputError(f"{path}: {error}") from None
    except (OSError, pl.exceptions.PolarsError):
        raise InputError(
            f"{path}: is no table of published trips: see `anonymizer trips`"
        ) from None
    try:
        spans = np.array([_span(row[1]) for row in rows]).reshape(-1, 2)
        boxes = [[end for value in row[2:6] for end in _range(value)] for row in rows]
    except ValueError:
        raise InputError(
            f"{path}: a value is no range; the columns {', '.join(_COLUMNS)} must be numbers and "
            "times that were generalized to ranges"
        ) from None
    if not rows:
        raise InputError(f"{path}: has no trips")
    n = np.array([row[6] for row in rows], np.int64)
    ends = [np.array(boxes).reshape(-1, 8)[:, columns] for columns in (slice(4), slice(4, None))]
    classes = TripsInClasses(
        least=n,
        rest=np.zeros(len(n), np.int64),
        span_s=spans,
        window_s=np.zeros(0),
        lasts_s=0.0,
        ends=(_tight_shares(network, ends[0], n), _tight_shares(network, ends[1], n)),
        names=(_box_names(ends[0]), _box_names(ends[1])),
        routes=[()] * len(n),
    )
    return PublishedTrips(classes, network)


def _box_names(boxes: FloatArray) -> list[str]:
    return [", ".join(f"{side:g}" for side in box) for box in boxes.tolist()]


def _range(value: Any) -> tuple[float, float]:  # noqa: ANN401  text or a number
    """Return the bounds of `[low-high]` or of a single number."""
    text = str(value)
    if not text.startswith("["):
        return float(text), float(text)
    inner = text[1:-1]
    cut = inner.index("-", 1)
    return float(inner[:cut]), float(inner[cut + 1 :])


def _span(value: Any) -> tuple[float, float]:  # noqa: ANN401  text or a number
    """Return the bounds of `[time..time]` or of a single time, in unix seconds."""
    first, _, last = str(value).removeprefix("[").removesuffix("]").partition("..")
    return _unix(first), _unix(last or first)


def _unix(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
