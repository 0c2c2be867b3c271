"""One known departure a day to the same home: what the releases of many days add up to.

Each day the adversary knows from where and when somebody leaves for home, and that the drive takes
less than five minutes. So the home is where one can drive in that time from all departures: that is
all that is known without a release. With one, the audit's tracker says how much more or less likely
than by driving alone it makes that the device is at each node then. The days are independent given
the home, so what they say is multiplied.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from anonymizer.audit.attacks.tracking import (
    HeardRelease,
    believe,
    close_to,
    most_exposed_tenth,
    steps_of,
)
from anonymizer.audit.stretches import Stretch, motion_of_others, tick_at
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.settings import Settings
from experiments.commuter_weeks import drive_along
from experiments.tracking_experiment import START, released
from simulator.shortest_paths import Router
from simulator.traffic import Traffic

LEAVES_S = 200.0
"""Victims leave so long after the release of a day begins: the tracker knows what was before."""
HOME_S = 300.0
"""So long after it left, a victim is at home; its drive takes at most `_LONGEST_S`."""
_LONGEST_S, _PACE = 270.0, 0.85
_SLIP = 0.05
"""Share of each belief that the adversary spreads over all nodes: it may be mistaken."""


class Known(NamedTuple):
    """Belief in the nodes within 300 m of the true home after each day, shape (days, victims)."""

    with_release: FloatArray
    without: FloatArray


def known_departures(
    network: RoadNetwork,
    settings: Settings,
    *,
    n_devices: int,
    n_victims: int,
    n_days: int,
    seed: int,
    tick_s: float = 2.0,
) -> Known:
    """Return what is believed of the homes of some devices after each day."""
    rng, router = np.random.default_rng(seed), Router(network)
    strong = router.strong_of == np.bincount(router.strong_of).argmax()
    home = rng.choice(np.flatnonzero(strong), n_victims, replace=False)
    near = close_to(network, home[:, None].astype(np.int32))[:, 0]
    seconds = _seconds_along(network, router)
    starts = np.isfinite(_within(csr_array(seconds.T), home)) & strong
    possible = np.ones((n_victims, network.n_nodes), np.bool_)
    log = np.zeros(possible.shape)
    with_release, without = [], []
    for day in range(n_days):
        start = np.array([rng.choice(np.flatnonzero(each)) for each in starts])
        possible &= np.isfinite(_within(seconds, start))
        ways = [
            drive_along(network, router, router.next_arcs_to(to), of)
            for of, to in zip(start.tolist(), home.tolist(), strict=True)
        ]
        trace = _day(network, ways, n_devices=n_devices, seed=1000 * seed + day)
        said = _beliefs_of(trace, network, settings, n_victims, tick_s)
        unsure = {name: (1 - _SLIP) * each + _SLIP / network.n_nodes for name, each in said.items()}
        log += np.log(unsure["followed"] / unsure["none"])
        weight = possible * np.exp(
            log - log.max(axis=1, keepdims=True, where=possible, initial=-1e9)
        )
        with_release.append((weight * near).sum(axis=1) / weight.sum(axis=1))
        without.append((possible * near).sum(axis=1) / possible.sum(axis=1))
    return Known(np.array(with_release), np.array(without))


def _seconds_along(network: RoadNetwork, router: Router) -> csr_array:
    """Return the seconds along each road."""
    shape = (network.n_nodes, network.n_nodes)
    seconds = router.length_m / router.speed_mps
    return csr_array((seconds, network.neighbour_of, network.first_arc_of), shape=shape)


def _within(seconds: csr_array, start: IntArray) -> FloatArray:
    """Return the seconds from each start to each node; infinite if it is no drive home."""
    return dijkstra(seconds, indices=start, limit=_LONGEST_S * _PACE)


def _day(
    network: RoadNetwork, ways: Sequence[tuple[IntArray, FloatArray]], *, n_devices: int, seed: int
) -> Trace:
    """Return a fleet, of which the first devices go their ways home, and stand before and after."""
    seconds = int(LEAVES_S + HOME_S) + 1
    traffic = Traffic(network, n_devices, seed=seed)
    places = [traffic.advance(float(second)) for second in range(seconds)]
    lat, lon = (np.array(each) for each in zip(*places, strict=True))
    gone_s = np.maximum(np.arange(seconds) - LEAVES_S, 0.0)
    for victim, (path, at_s) in enumerate(ways):
        node = path[np.searchsorted(at_s / _PACE, gone_s, "right") - 1]
        lat[:, victim], lon[:, victim] = network.lat[node], network.lon[node]
    return Trace(
        device_id=tuple(f"device-{d}" for d in range(n_devices)),
        device_of=np.tile(np.arange(n_devices), seconds),
        ts=START + np.repeat(np.arange(seconds, dtype=np.float64), n_devices),
        lat=lat.ravel(),
        lon=lon.ravel(),
    )


def _beliefs_of(
    trace: Trace, network: RoadNetwork, settings: Settings, n_victims: int, tick_s: float
) -> dict[str, FloatArray]:
    """Return the beliefs of a day with the release and without it, shape (victims, nodes) each."""
    case, release = released(trace, network, settings, tick_s=tick_s)
    fine_s, step_s = steps_of(case.reports.interval_s)
    steps_s: FloatArray = START + LEAVES_S + step_s * np.arange(int(HOME_S / step_s) + 1.0)
    stretch = Stretch(
        steps_s,
        np.array([len(steps_s) - 1]),
        case.truth.place[tick_at(case.observed, steps_s)],
        np.arange(n_victims),
    )
    motion = motion_of_others(
        case.observed, case.truth, network, [stretch], step_s=fine_s, every=round(step_s / fine_s)
    )
    heard = HeardRelease(case.observed, case.class_of, release.until)
    [(_, belief_of)] = believe(
        heard,
        case.truth,
        network,
        case.piece_of,
        chosen=[stretch],
        motion=motion,
        adversaries=("none", "followed"),
    )
    return {name: belief[:, 0] for name, belief in belief_of.items()}


def rows(network: RoadNetwork, *, n_devices: int, n_victims: int, seed: int) -> Iterator[Known]:
    """Yield mean and worst tenth of the beliefs in homes after each of ten days."""
    found = known_departures(
        network, Settings(), n_devices=n_devices, n_victims=n_victims, n_days=10, seed=seed
    )
    for day in zip(*found, strict=True):
        yield Known(*(np.array([each.mean(), most_exposed_tenth(each)]) for each in day))
