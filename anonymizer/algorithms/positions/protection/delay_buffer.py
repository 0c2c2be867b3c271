"""Delay buffer: kernels that hold positions until it is known whether their trip continues.

All held positions are in one pool of entries. The positions of a device are a linked list in
order of time. The free entries are another list, headed by entry 0, which never holds a position.
"""

import numpy as np

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray, IntArray, RecordArray, UInt8Array

ACCEPTED, PASSED, TRIP_END, OVERFLOW, LATE, DUPLICATE = range(6)

_REPORT = [
    ("slot", np.int32),
    ("ts", np.float64),
    ("lat", np.float64),
    ("lon", np.float64),
    ("tag", np.float64),
    ("heading", np.float64),
]
REPORT = np.dtype(_REPORT)
"""A position of a device, with a tag and a heading that are returned to the caller."""

HELD = np.dtype(
    [
        *_REPORT,
        ("next", np.int64),  # next entry of the same device, or next free entry
        ("passes", np.bool_),  # valid once it is decided
    ]
)
_NONE = 0

TRIP = np.dtype(
    [
        # The newest report.
        ("ts", np.float64),
        ("lat", np.float64),
        ("lon", np.float64),
        # The first report of the current stay.
        ("stay_ts", np.float64),
        ("stay_lat", np.float64),
        ("stay_lon", np.float64),
        # Where and when the trip began.
        ("start_ts", np.float64),
        ("start_lat", np.float64),
        ("start_lon", np.float64),
        # Held positions, oldest first; those before `undecided` are decided.
        ("head", np.int64),
        ("tail", np.int64),
        ("undecided", np.int64),
        ("n", np.int64),
    ]
)
UNKNOWN = np.zeros(1, TRIP)[0]
"""State of a device that has not reported yet."""
UNKNOWN["ts"] = -np.inf


@kernel
def link_free(held: RecordArray, first: int) -> None:
    """Add the entries from `first` on to the free list."""
    for e in range(first, len(held)):
        held[e]["next"] = held[_NONE]["next"]
        held[_NONE]["next"] = e


@kernel
def advance(
    trips: RecordArray, held: RecordArray, due_at: FloatArray, reports: RecordArray, rule: np.void
) -> UInt8Array:
    """Move devices by their reports, sorted by slot and time, and hold those that may pass.

    Returns `ACCEPTED`, `TRIP_END` (near the beginning), `LATE` or `DUPLICATE` for each report.
    There must be a free entry for every report.
    """
    outcome = np.empty(len(reports), np.uint8)
    for i in range(len(reports)):
        report = reports[i]
        s = report["slot"]
        trip = trips[s]
        if report["ts"] <= trip["ts"]:
            outcome[i] = DUPLICATE if report["ts"] == trip["ts"] else LATE
            continue
        # A report must not affect positions whose delay was over before it.
        while trip["undecided"] != _NONE and (
            held[trip["undecided"]]["ts"] + rule["delay_s"] < report["ts"]
        ):
            _decide(trip, held, rule)
        _move(trip, held, report, rule)
        begun = report["ts"] - trip["start_ts"] >= rule["start_s"] and apart(
            trip["start_lat"], trip["start_lon"], report["lat"], report["lon"], rule["start_m"]
        )
        if not begun:
            outcome[i] = TRIP_END
            continue
        outcome[i] = ACCEPTED
        _hold(trip, held, report)
        if trip["n"] > rule["max_held"]:
            due_at[s] = -np.inf
        elif trip["n"] == 1:
            due_at[s] = report["ts"] + rule["delay_s"]
    return outcome


@kernel
def release(
    trips: RecordArray,
    held: RecordArray,
    due_at: FloatArray,
    slot: IntArray,
    now: float,
    most: int,
    rule: np.void,
    n_held: int,
) -> tuple[IntArray, UInt8Array]:
    """Free the due entries of some devices, and the oldest of a device that holds more than `most`.

    Returns the entries, by device and time, and `PASSED`, `TRIP_END` or `OVERFLOW` for each.
    `n_held` bounds their number.
    """
    entry = np.empty(n_held, np.int64)
    outcome = np.empty(n_held, np.uint8)
    n = 0
    for s in slot:
        trip = trips[s]
        due_at[s] = np.inf
        while trip["head"] != _NONE:
            e = trip["head"]
            due = held[e]["ts"] + rule["delay_s"] <= now
            if not due and trip["n"] <= most:
                due_at[s] = held[e]["ts"] + rule["delay_s"]
                break
            if trip["undecided"] == e:
                _decide(trip, held, rule)
            if due:
                outcome[n] = PASSED if held[e]["passes"] else TRIP_END
            else:
                outcome[n] = OVERFLOW
            entry[n] = e
            n += 1
            trip["head"] = held[e]["next"]
            trip["n"] -= 1
            held[e]["next"] = held[_NONE]["next"]
            held[_NONE]["next"] = e
    return entry[:n].copy(), outcome[:n].copy()


@kernel
def _decide(trip: np.void, held: RecordArray, rule: np.void) -> None:
    """Decide the oldest undecided position by how far and how long the device has moved on."""
    at = held[trip["undecided"]]
    trip["undecided"] = at["next"]
    travelled_s = max(trip["stay_ts"] - at["ts"], 0.0)
    at["passes"] = travelled_s >= rule["end_s"] and apart(
        at["lat"], at["lon"], trip["lat"], trip["lon"], rule["end_m"]
    )


@kernel
def _move(trip: np.void, held: RecordArray, report: np.void, rule: np.void) -> None:
    """Move a device to its report: within its stay, to a new stay, or onto a new trip."""
    silent = report["ts"] - trip["ts"] > rule["gap_s"]
    beyond_m = np.nextafter(rule["dwell_m"], np.inf)
    left = silent or apart(
        trip["stay_lat"], trip["stay_lon"], report["lat"], report["lon"], beyond_m
    )
    dwelt = left and trip["ts"] - trip["stay_ts"] >= rule["dwell_s"]
    if silent or dwelt:
        # Later reports must not decide positions of the trip that is over.
        while trip["undecided"] != _NONE:
            _decide(trip, held, rule)
        trip["start_ts"] = report["ts"]
        # A device that leaves a dwelling set out from there, not from where it is first seen.
        trip["start_lat"] = report["lat"] if silent else trip["stay_lat"]
        trip["start_lon"] = report["lon"] if silent else trip["stay_lon"]
    if left:
        trip["stay_ts"] = report["ts"]
        trip["stay_lat"] = report["lat"]
        trip["stay_lon"] = report["lon"]
    trip["ts"] = report["ts"]
    trip["lat"] = report["lat"]
    trip["lon"] = report["lon"]


@kernel
def _hold(trip: np.void, held: RecordArray, report: np.void) -> None:
    """Append a report to the held positions of its device."""
    e = held[_NONE]["next"]
    at = held[e]
    held[_NONE]["next"] = at["next"]
    at["slot"] = report["slot"]
    at["ts"] = report["ts"]
    at["lat"] = report["lat"]
    at["lon"] = report["lon"]
    at["tag"] = report["tag"]
    at["heading"] = report["heading"]
    at["next"] = _NONE
    if trip["head"] == _NONE:
        trip["head"] = e
    else:
        held[trip["tail"]]["next"] = e
    trip["tail"] = e
    if trip["undecided"] == _NONE:
        trip["undecided"] = e
    trip["n"] += 1


@kernel
def apart(lat_a: float, lon_a: float, lat_b: float, lon_b: float, distance_m: float) -> bool:
    """Whether two places in degrees are at least `distance_m` apart (haversine)."""
    phi_a, phi_b = np.radians(lat_a), np.radians(lat_b)
    half_dlon = np.radians(lon_b - lon_a) / 2
    h = np.sin((phi_b - phi_a) / 2) ** 2 + np.cos(phi_a) * np.cos(phi_b) * np.sin(half_dlon) ** 2
    return bool(2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(min(h, 1.0))) >= distance_m)
