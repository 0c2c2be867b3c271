"""The subtraction attack on fleets of which most stand still (`make soak`)."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from anonymizer.algorithms.positions.map_matching import OFF_GRAPH, NodeLocator
from anonymizer.audit.attacks.subtraction import SUBTRACTION_RATIO, subtraction
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments.tracking_experiment import START, attacked
from simulator.traffic import Traffic
from tests.audit.test_places_without_roads import HELSINKI, Kind, moving

N_DEVICES = 1000
SECONDS = 400
NOISE_M = 3.0
METRES_PER_DEGREE = 111_195.0


@cache
def city() -> RoadNetwork:
    """Return the network, which takes a while and which nothing but `make soak` needs."""
    return load_network("city:10000")


def partly_parked(share: float, *, seed: int) -> Trace:
    """Return devices that report every second with noise; a share of them never moves."""
    traffic, rng = Traffic(city(), N_DEVICES, seed=seed), np.random.default_rng(seed)
    places = [traffic.advance(float(second)) for second in range(SECONDS)]
    lat, lon = np.array([lat for lat, _ in places]), np.array([lon for _, lon in places])
    still = rng.permutation(N_DEVICES)[: round(share * N_DEVICES)]
    lat[:, still], lon[:, still] = lat[0, still], lon[0, still]
    north, east = rng.normal(0, NOISE_M / METRES_PER_DEGREE, (2, *lat.shape))
    return Trace(
        device_id=tuple(f"device-{d}" for d in range(N_DEVICES)),
        device_of=np.tile(np.arange(N_DEVICES), SECONDS),
        ts=START + np.repeat(np.arange(SECONDS, dtype=np.float64), N_DEVICES),
        lat=(lat + north).ravel(),
        lon=(lon + east / np.cos(np.radians(lat))).ravel(),
    )


def found(share: float, *, parked_s: float | None) -> tuple[float, float]:
    """Return how often the attack is right, and blind guessing, over two fleets."""
    settings = Settings()
    presence = settings.presence.model_copy(update={"parked_s": parked_s})
    settings = settings.model_copy(update={"presence": presence})
    shares = []
    for seed in (1, 2):
        case = attacked(partly_parked(share, seed=seed), city(), settings)
        [figures] = [finding.figures for finding in subtraction(case)]
        shares.append((figures["success"], figures["one_in_n"]))
    success, blind = np.mean(np.array(shares, np.float64), axis=0).tolist()
    return success, blind


@pytest.mark.soak
def test_half_a_fleet_may_be_parked() -> None:
    success, blind = found(0.5, parked_s=None)
    assert success <= SUBTRACTION_RATIO * blind


@pytest.mark.soak
def test_where_nine_in_ten_are_parked_company_that_moves_halves_what_the_attack_finds() -> None:
    success, blind = found(0.9, parked_s=None)
    apart, apart_blind = found(0.9, parked_s=60.0)
    assert apart <= 0.6 * success
    assert apart / apart_blind < success / blind


LIMIT_M = 15.0


def off_the_ways(trace: Trace, network: RoadNetwork, what: str) -> Trace:
    """Return a trace in which devices off the graph report it, are silent, or wait at its edge."""
    off = NodeLocator(network, limit_m=LIMIT_M).locate(trace.lat, trace.lon) == OFF_GRAPH
    assert off.mean() > 0.1
    if what == "report it":
        return trace
    rows = np.flatnonzero(~off)
    at = rows
    if what == "wait":
        order = np.argsort(trace.device_of, kind="stable")
        last = np.maximum.accumulate(np.where(off[order], -1, np.arange(len(order))))
        known = (last >= 0) & (trace.device_of[order[last]] == trace.device_of[order])
        rows, at = order[known], order[last[known]]
        by_time = np.argsort(rows)
        rows, at = rows[by_time], at[by_time]
    return Trace(
        trace.device_id, trace.device_of[rows], trace.ts[rows], trace.lat[at], trace.lon[at]
    )


@pytest.mark.data
@pytest.mark.soak
@pytest.mark.parametrize("what", ["report it", "are silent", "wait"])
def test_walkers_who_leave_the_ways_are_not_found_among_those_off_the_graph(
    what: str, record_property: Callable[[str, object], None]
) -> None:
    network = load_network(f"walk:{HELSINKI}")
    south, west, north, east = (
        float(each)
        for each in (network.lat.min(), network.lon.min(), network.lat.max(), network.lon.max())
    )
    walkers = Kind(f"walk:{HELSINKI}", 200, (0.8, 1.6), (south, west, north, east))
    trace = off_the_ways(moving(walkers, network), network, what)
    settings = Settings.model_validate({"network": {"snap_limit_m": LIMIT_M}})
    [finding] = subtraction(attacked(trace, network, settings))
    for name, value in finding.figures.items():
        record_property(name, value)
    # With fewer the finding is chance.
    assert float(finding.figures.get("n_groups") or 0) >= 50
    assert finding.holds
