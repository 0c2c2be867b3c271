"""Membership in published trips: whether the trips of a person were in the release of a day.

The adversary knows all trips of the day, and shadow releases of random halves of the people.
"""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from anonymizer.algorithms.positions.trip_classes import (
    TripClass,
    WindowTrips,
    n_cells_of,
    trip_classes,
)
from anonymizer.audit.attacks.trips import true_windows
from anonymizer.audit.case import TripsCase
from anonymizer.audit.stream_case import reports_of
from anonymizer.domain.arrays import BoolArray, FloatArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings
from experiments.commuter_weeks import commuter_weeks
from experiments.membership import scores_of
from experiments.scores import Score

EVERY_S = 3600.0
REPORT_S = 30.0
RELEASES = {"trips": 10, "trips, one by one": 1}
"""Devices in a class: the default, and a release that hides nobody."""
_READERS = 4


def run_trips(
    network: RoadNetwork,
    *,
    n_people: int,
    n_shadows: int,
    seed: int,
    progress: Callable[[str], None] = lambda _what: None,
) -> Iterator[Score]:
    """Attack the trips of random halves of some commuters on a working day, in windows of an hour.

    Parameters
    ----------
    n_people
        In the pool; half of them are in each release.
    """
    trace = commuter_weeks(network, n_people, n_days=1, every_s=REPORT_S, seed=seed).trace
    settings = Settings()
    reports = reports_of(trace, network, settings)
    n_cells = n_cells_of(network, RELEASES["trips"])
    case = TripsCase(settings.trips.published_rule, EVERY_S, RELEASES["trips"], n_cells, reports)
    windows = [each.trips for each in true_windows(case, network)]
    rng = np.random.default_rng(seed)
    is_in = rng.random((n_shadows, n_people)) < 1 / 2
    makes = np.unique(np.concatenate([each.device for each in windows]))
    for name, k in RELEASES.items():
        progress(f"membership: {name}")
        begun = time.process_time()
        said = [_said(windows, row, k, n_cells)[makes] for row in is_in]
        yield from scores_of(name, (np.stack(said), is_in[:, makes]), begun)


def _said(windows: Sequence[WindowTrips], row: BoolArray, k: int, n_cells: int) -> FloatArray:
    total, n = np.zeros((len(row), _READERS)), np.zeros(len(row))
    for trips in windows:
        told = trip_classes(_of(trips, row), k, n_cells=n_cells)
        np.add.at(total, trips.device, read_trips(told, trips))
        np.add.at(n, trips.device, 1)
    return total / np.maximum(n, 1)[:, None]


def _of(trips: WindowTrips, row: BoolArray) -> WindowTrips:
    """Return the trips of some devices."""
    kept = np.flatnonzero(row[trips.device])
    return WindowTrips(
        trips.device[kept],
        trips.origin[kept],
        trips.destination[kept],
        trips.start[kept],
        [trips.roads[i] for i in kept.tolist()],
    )


def read_trips(told: Sequence[TripClass], trips: WindowTrips) -> FloatArray:
    """Return what a window says where each of its true trips would be, shape (trips, 4).

    Whether a class holds it, the devices of such classes for each of their places and times, how
    many places and times the closest one has, as its inverse, and the share of the trip's roads
    that are told.
    """
    found = np.zeros((len(trips.device), _READERS))
    for each in told:
        rows = each.holds(trips)
        volume = 1.0
        for span in (each.origin, each.destination, each.start):
            volume *= span.last - span.first + 1
        found[rows, 0] = 1.0
        found[rows, 1] += each.n_devices / volume
        found[rows, 2] = np.maximum(found[rows, 2], 1.0 / volume)
        for i in rows.tolist():
            road = trips.roads[i]
            if len(road):
                found[i, 3] = max(found[i, 3], float(np.isin(road, each.roads).mean()))
    return found
