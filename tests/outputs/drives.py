"""Drives over a small grid, and the hour in which they are counted."""

import numpy as np
import polars as pl

from anonymizer.networks import load_network

NETWORK = load_network("grid:8x8")
HOUR = 3600.0


def drives(n: int = 60, *, seed: int = 1, hours: int = 3) -> pl.DataFrame:
    """Return positions of devices that walk at random from junction to junction, 10 s apart."""
    rng = np.random.default_rng(seed)
    rows = []
    for device in range(n):
        at = int(rng.integers(NETWORK.n_nodes))
        ts = float(rng.uniform(0, hours * HOUR - 1300))
        for _ in range(40):
            first, last = NETWORK.first_arc_of[at], NETWORK.first_arc_of[at + 1]
            to = int(rng.choice(NETWORK.neighbour_of[first:last]))
            for part in (0.2, 0.5, 0.8):
                lat, lon = ((1 - part) * x[at] + part * x[to] for x in (NETWORK.lat, NETWORK.lon))
                rows.append((f"d{device}", ts, lat, lon))
                ts += 10.0
            at = to
    return pl.DataFrame(rows, ["device_id", "ts", "lat", "lon"], orient="row")
