"""Commuters: devices that drive to work and back on several days, and report on the way."""

from dataclasses import dataclass

import numpy as np

from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from experiments.commuter_weeks import drive_along
from simulator.shortest_paths import Router

DAY_S = 86_400.0
RUSH_S = (8 * 3600.0, 17 * 3600.0)
N_WORKPLACES = 40


@dataclass(frozen=True, slots=True, eq=False)
class Commuters:
    """The trace of the commuters, and the node of each one's home, shape (devices,)."""

    trace: Trace
    home: IntArray


def commuting(
    network: RoadNetwork,
    *,
    n_devices: int,
    n_days: int,
    rush_s: float,
    every_s: float,
    late_s: float = 60.0,
    seed: int = 0,
) -> Commuters:
    """Return the trace of devices that commute every day.

    Parameters
    ----------
    rush_s
        A device leaves home within this time after 8:00, and work within it after 17:00, each
        day at the same time.
    late_s
        Standard deviation of how much later or earlier it leaves.
    every_s
        Time between two reports. A device reports only while it drives.
    """
    rng, router = np.random.default_rng(seed), Router(network)
    home = rng.choice(network.n_nodes, n_devices, replace=False)
    work_of = rng.integers(N_WORKPLACES, size=n_devices)
    roads = [router.next_arcs_to(node) for node in rng.choice(network.n_nodes, N_WORKPLACES)]
    leaves_s = [start + rng.uniform(0, rush_s, n_devices) for start in RUSH_S]
    device, ts, node = [], [], []
    for d in range(n_devices):
        path, at_s = drive_along(network, router, roads[work_of[d]], int(home[d]))
        backwards = path[::-1], at_s[-1] - at_s[::-1]
        for day in range(n_days):
            for usual_s, (way, passed_s) in zip(leaves_s, ((path, at_s), backwards), strict=True):
                begin_s = day * DAY_S + usual_s[d] + rng.normal(0, late_s)
                seconds = np.append(np.arange(0.0, passed_s[-1], every_s), passed_s[-1])
                device.append(np.full(len(seconds), d))
                ts.append(begin_s + seconds)
                node.append(way[np.searchsorted(passed_s, seconds, "right") - 1])
    where, when = np.concatenate(node), np.concatenate(ts)
    order = np.argsort(when, kind="stable")
    return Commuters(
        Trace(
            device_id=tuple(f"car-{d}" for d in range(n_devices)),
            device_of=np.concatenate(device)[order],
            ts=when[order],
            lat=network.lat[where[order]],
            lon=network.lon[where[order]],
            node=network.node_id[where[order]],
        ),
        home,
    )
