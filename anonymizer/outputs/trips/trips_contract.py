"""Trips in the contract."""

from anonymizer.outputs.message_kind import CONTRACT_VERSION, MessageKind, schema_of
from anonymizer.outputs.trips.trip_windows import TripsMessage

TRIPS = MessageKind(
    "Trips",
    "Trips that ended in a window, in classes of at least k devices.",
    schema_of(TripsMessage),
    {
        "v": CONTRACT_VERSION,
        "time": 1800003600.0,
        "window_s": 3600.0,
        "network": "bec64b210518afc4",
        "k": 10,
        "n_cells": 256,
        "trips": [
            {
                "origin": {"first": 64, "last": 95},
                "destination": {"first": 200, "last": 207},
                "start": [1800000000.0, 1800003600.0],
                "devices": 20,
                "roads": [[1093, 1094], [1094, 1123]],
            }
        ],
    },
)
