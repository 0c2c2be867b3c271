"""Counts in the contract."""

from anonymizer.outputs.counts.private_counts import PrivateCountsMessage
from anonymizer.outputs.counts.safe_messages import CountsMessage
from anonymizer.outputs.message_kind import CONTRACT_VERSION, MessageKind, schema_of

COUNTS = MessageKind(
    "Counts",
    "Safe counts of devices by cells.",
    schema_of(CountsMessage),
    {
        "v": CONTRACT_VERSION,
        "time": 1800000060.0,
        "interval_s": 60.0,
        "network": "bec64b210518afc4",
        "k": 10,
        "n_cells": 128,
        "counts": [
            {
                "first": 0,
                "last": 3,
                "devices": 20,
                "speed_mps": 8.0,
                "dwell_s": 60.0,
                "origins": [{"first": 0, "last": 3, "devices": 10}],
            }
        ],
    },
)
PRIVATE_COUNTS = MessageKind(
    "PrivateCounts",
    "Counts of devices by cells, with differential privacy.",
    schema_of(PrivateCountsMessage),
    {
        "v": CONTRACT_VERSION,
        "time": 1800014400.0,
        "interval_s": 21600.0,
        "network": "bec64b210518afc4",
        "n_cells": 4,
        "privacy": {
            "period_s": 86400.0,
            "period_ends": 1800057600.0,
            "epsilon": 1.0,
            "delta": 1e-6,
            "epsilon_spent": 0.2287,
            "device_intervals": 4,
            "noise_sd": 18.1236,
        },
        "devices": [31, -4, 12, 55],
        "durations": {"up_to_s": [240, 480, 900, 1800, 3600], "devices": [3, 5, -1, 2, 0, 1]},
    },
)
