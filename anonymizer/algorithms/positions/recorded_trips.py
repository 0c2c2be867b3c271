"""Trips in recorded positions: where each began and ended, and when.

A *trip* begins when a device appears, reappears after silence, or moves on after dwelling. It ends
where the next silence or dwelling begins: the definitions of `protection.trips`, for positions of
which the future is known.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.positions.protection.delay_buffer import apart
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray, starts_of
from anonymizer.domain.protection import TripRule
from anonymizer.domain.trace import Trace


class Trips(NamedTuple):
    """Trips of a trace, by device and time.

    `first`, `last`: rows of the trace at which each begins and ends; `length_m`: along the
    positions, shape (trips,); `n_cut`: trips left out because the recording begins or ends with
    them.
    """

    first: IntArray
    last: IntArray
    length_m: FloatArray
    n_cut: int


def trips_of(trace: Trace, rule: TripRule) -> Trips:
    """Return the trips of a trace of coordinates.

    Notes
    -----
    The first row of a trip after a stay is the last of the stay; the last row of a trip before a
    stay is the first of it. A trip is cut if the device was neither seen to stay before it nor
    silent for `gap_s` of the recording, or likewise after it. What never leaves `dwell_m` is no
    trip. O(n log n): .2 s for a million rows.
    """
    if not trace.n_rows:
        nothing = np.zeros(0, np.int64)
        return Trips(nothing, nothing, np.zeros(0), 0)
    order = np.lexsort((trace.ts, trace.device_of))
    device_of, ts = trace.device_of[order], trace.ts[order]
    lat, lon = trace.lat[order], trace.lon[order]
    step_m = np.zeros(len(ts))
    step_m[1:] = haversine_m(lat[:-1], lon[:-1], lat[1:], lon[1:])
    first_of = starts_of(np.bincount(device_of, minlength=trace.n_devices))
    first, last, cut = _trips(first_of, ts, lat, lon, rule.gap_s, rule.dwell_m, rule.dwell_s)
    along_m = np.cumsum(step_m)
    first, last = first[~cut], last[~cut]
    return Trips(order[first], order[last], along_m[last] - along_m[first], int(cut.sum()))


@kernel
def _trips(
    first_of: IntArray,
    ts: FloatArray,
    lat: FloatArray,
    lon: FloatArray,
    gap_s: float,
    dwell_m: float,
    dwell_s: float,
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the first and the last row of each trip, and whether the recording cuts it.

    The rows of device d are `first_of[d]` to `first_of[d + 1]`, exclusive, by time.
    """
    first, last = np.empty(len(ts), np.int64), np.empty(len(ts), np.int64)
    cut = np.empty(len(ts), np.bool_)
    n, begin_s, end_s = 0, ts.min(), ts.max()
    beyond_m = np.nextafter(dwell_m, np.inf)
    for d in range(len(first_of) - 1):
        a, b = first_of[d], first_of[d + 1]
        start = stay = a
        cut_at_start = a < b and ts[a] - begin_s <= gap_s
        for i in range(a + 1, b + 1):
            silent = i == b or ts[i] - ts[i - 1] > gap_s
            left = silent or apart(lat[stay], lon[stay], lat[i], lon[i], beyond_m)
            dwelt = left and ts[i - 1] - ts[stay] >= dwell_s
            if silent or dwelt:
                if stay > start:
                    first[n], last[n] = start, stay if dwelt else i - 1
                    cut_at_end = i == b and not dwelt and end_s - ts[i - 1] <= gap_s
                    cut[n] = cut_at_start or cut_at_end
                    n += 1
                start = i if silent else i - 1
                cut_at_start = False
            if left:
                stay = i
    return first[:n].copy(), last[:n].copy(), cut[:n].copy()
