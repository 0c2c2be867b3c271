"""Utility of a release: how close counts made from it are to the true ones.

Beside it stand raw positions, and counts with a threshold; other ways to publish the same traffic
are compared in `experiments`. Where an estimator can make more of a release than it shows, both
readings are measured.
"""

import numpy as np
from pydantic import BaseModel, ConfigDict

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.algorithms.utility import (
    density_error,
    divergence,
    hotspot_gain,
    popularity_tau,
    query_error,
    speed_error,
)
from anonymizer.audit.case import Reports
from anonymizer.audit.publications import (
    NodeDivision,
    PlaceReading,
    RegionReader,
    counting_times,
    grid,
    read_devices,
    roads,
    true_traffic,
)
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError

SIDES = (6, 18)
"""Rows and columns of the grids."""
N_QUERIES = 1000
LEAST_IN_CELL = 10
"""Cells with fewer devices are left out by the threshold."""
GRACE_TICKS = 2
"""A region holds for so many ticks beyond its time: the next one may be on its way."""


class UtilityFigures(BaseModel):
    """How close the counts made from one kind of publication are to the true ones."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str
    """The release, or what it is compared with. `release`: devices are spread by the density that
    all regions have in common, if regions are made of public pieces. `release, spread evenly`:
    evenly over the nodes of their regions."""
    places: str
    """`6x6`, `18x18` or `roads`."""
    side: int
    """Rows and columns of the grid, 0 for roads."""
    density: float
    """Jensen-Shannon divergence of the distributions over the places, mean over time; 0 is best.
    For roads all times count together, here and below."""
    query: float | None
    """Mean relative error of the number of devices in random boxes; 0 is best. None for roads."""
    hotspots: float
    """NDCG of the ten places with the most devices; 1 is best."""
    popularity: float
    """Kendall's tau of the places by their devices over all times; 1 is best."""
    flow: float | None
    """Jensen-Shannon divergence of the moves from cell to cell within a minute, all times together;
    for roads, of those that arrive. None: it has no moves."""
    crossing: float | None
    crossing_true: float
    """`crossing`, `crossing_true`: share of devices that are in another cell (at another node) a
    minute later, as published and true."""
    speed_mps: float | None
    """Mean absolute error of the mean speed at a place, weighted by the devices there, in metres a
    second; None: it has no speeds."""


def utility(
    observed: Observed,
    reports: Reports,
    network: RoadNetwork,
    *,
    present_s: float,
    until: FloatArray,
    tick_s: float,
    seed: int,
    piece_of: IntArray | None = None,
    true_mps: FloatArray | None = None,
    published_mps: FloatArray | None = None,
) -> tuple[UtilityFigures, ...]:
    """Return the utility of a release and of what it is compared with, for each kind of places.

    `present_s`: how long a device counts as present at its last position; `until`: unix seconds
    until which each record holds, if its pseudonym publishes no other, shape (records,); `tick_s`:
    the next record may be so much later; `seed`: of the queries; `piece_of`: as in
    `Case`; `true_mps`: speed that each report states, NaN for none, shape (reports,), by default
    the distances between reports, divided by the time between them; `published_mps`: likewise of
    each record. InputError if the network has no coordinates, or the release is shorter than two
    minutes.
    """
    if not network.has_coordinates:
        raise InputError("utility: the network has no coordinates")
    times = counting_times(observed.time)
    traffic = true_traffic(reports, network, times, present_s=present_s, speed_mps=true_mps)
    divisions = [*(grid(network, side) for side in SIDES), roads(network)]
    pieces = {"release": piece_of} | ({} if piece_of is None else {_EVENLY: None})
    readers = {
        what: RegionReader(
            observed,
            until=until + GRACE_TICKS * tick_s,
            times=times,
            n_nodes=network.n_nodes,
            piece_of=each,
            speed_mps=published_mps,
        )
        for what, each in pieces.items()
    }
    found: list[UtilityFigures] = []
    for division in divisions:
        truth = read_devices(traffic, division)
        read = {what: reader.read(division) for what, reader in readers.items()} | {
            "raw": truth,
            "threshold": read_devices(traffic, division, least=LEAST_IN_CELL),
        }
        found += [figures(what, division, truth, each, seed=seed) for what, each in read.items()]
    return tuple(found)


_EVENLY = "release, spread evenly"


def figures(
    what: str, division: NodeDivision, truth: PlaceReading, read: PlaceReading, *, seed: int
) -> UtilityFigures:
    """Return the figures of one reading; equal seeds ask the same queries."""
    side, n_true, n_read = division.side, truth.n_at, read.n_at
    flow, query = None, None
    if read.moves is not None and truth.moves is not None:
        flow = float(divergence(truth.moves.reshape(1, -1), read.moves.reshape(1, -1))[0])
    if side:
        rng = np.random.default_rng(seed)
        query = query_error(n_true, n_read, sides=(side, side), n_queries=N_QUERIES, rng=rng)
    speed = None
    if read.speed_mps is not None and truth.speed_mps is not None:
        speed = speed_error(truth.speed_mps, read.speed_mps, n_true.sum(axis=0))
    return UtilityFigures(
        what=what,
        places=division.name,
        side=side,
        density=density_error(n_true, n_read),
        query=query,
        hotspots=hotspot_gain(n_true, n_read),
        popularity=popularity_tau(n_true, n_read),
        flow=flow,
        crossing=read.crossing,
        crossing_true=truth.crossing or 0.0,
        speed_mps=speed,
    )
