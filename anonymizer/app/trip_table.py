"""Trips of a recorded trace as a table: what `anonymizer anonymize` takes."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from anonymizer.algorithms.positions.protection import Zones
from anonymizer.algorithms.positions.recorded_trips import trips_of
from anonymizer.domain.protection import TripRule
from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError

_DIGITS = 5
"""Of a degree: a metre, which is more than a receiver knows."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TripTable:
    """True trips, to be anonymized.

    Attributes
    ----------
    frame
        `device_id`, `start` (text, UTC), `duration_s`, `from_lat`, `from_lon`, `to_lat`, `to_lon`
        and `length_m`, by time.
    n_devices
        How many devices have a trip.
    n_cut, n_private
        Trips left out: cut by the recording, and with an end in a privacy zone.
    """

    frame: pl.DataFrame
    n_devices: int
    n_cut: int
    n_private: int


def trip_table(trace: Trace, rule: TripRule, zones: Zones) -> TripTable:
    """Return the trips of a trace; see `trips_of`.

    Raises
    ------
    InputError
        If the trace names nodes, which are no places by themselves.
    """
    if trace.node is not None:
        raise InputError("trips: the trace must have lat and lon")
    trips = trips_of(trace, rule)
    ends = np.concatenate([trips.first, trips.last])
    private = zones.contains(trace.lat[ends], trace.lon[ends]).reshape(2, -1).any(axis=0)
    first, last = trips.first[~private], trips.last[~private]
    device_of = trace.device_of[first]
    frame = pl.DataFrame(
        {
            "device_id": np.array(trace.device_id, np.str_)[device_of],
            "start": (trace.ts[first] * 1000).astype("datetime64[ms]"),
            "duration_s": np.rint(trace.ts[last] - trace.ts[first]).astype(np.int64),
            "from_lat": trace.lat[first].round(_DIGITS),
            "from_lon": trace.lon[first].round(_DIGITS),
            "to_lat": trace.lat[last].round(_DIGITS),
            "to_lon": trace.lon[last].round(_DIGITS),
            "length_m": np.rint(trips.length_m[~private]).astype(np.int64),
        },
        schema_overrides={"device_id": pl.String},
    ).with_columns(pl.col("start").dt.to_string("%Y-%m-%dT%H:%M:%SZ"))
    return TripTable(
        frame.sort("start", maintain_order=True),
        n_devices=len(np.unique(device_of)),
        n_cut=trips.n_cut,
        n_private=int(private.sum()),
    )
