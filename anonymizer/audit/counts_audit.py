"""Audit of counts: attacks on the numbers that settings would publish about recorded positions."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.device_keys import slots_as_keys
from anonymizer.algorithms.positions.street_hours import Passages
from anonymizer.audit.attack import Subject
from anonymizer.audit.case import Reports
from anonymizer.audit.findings import Finding
from anonymizer.audit.mathematics.truth import TIME_SLACK_S
from anonymizer.audit.registry import mounted
from anonymizer.audit.stream_case import reports_of
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.discreet import discreet
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.outputs.counts.trip_durations import TripDurations, durations_of
from anonymizer.outputs.streets.street_hours import hour_passages
from anonymizer.outputs.windows import promised_k
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.settings import CountSettings, Settings


@discreet
class TimedTrips(NamedTuple):
    """How long trips took.

    `end_s`: end of each interval, unix seconds, shape (intervals,); `duration`: that of each device
    in it, an index, negative without a trip, shape (devices, intervals).
    """

    end_s: FloatArray
    duration: IntArray


@discreet
class CountsCase(NamedTuple):
    """The true positions, and what counts promise of them.

    `passages`: by street and hour, and which nodes are roads, see `hour_passages`; None: that is
    not attacked. `timed`: how long trips took, from `timed_trips`; None: that is not published.
    `seed`: of all random choices.
    """

    reports: Reports
    network: RoadNetwork
    counts: CountSettings
    passages: tuple[Passages, BoolArray] | None
    timed: TimedTrips | None
    seed: int


def audit_counts(
    trace: Trace, network: RoadNetwork, settings: Settings, *, seed: int = 0
) -> tuple[Finding, ...]:
    """Return what all attacks on counts find.

    InputError if the positions are of fewer than two intervals, or the network has no coordinates.
    """
    counts = settings.counts.model_copy(update={"k": promised_k(settings)})
    passages = None
    if not counts.has_noise and trace.node is None:
        passages = hour_passages(trace, network, settings, every_s=3600.0)
    reports = reports_of(trace, network, settings)
    knows_where = not np.isnan(trace.lat).any()
    timed = timed_trips(trace, settings) if counts.times_trips and knows_where else None
    return mounted(Subject.COUNTS, CountsCase(reports, network, counts, passages, timed, seed))


def timed_trips(trace: Trace, settings: Settings) -> TimedTrips:
    """Return how long the trips of a trace with coordinates took, as the gateway counts them.

    Privacy zones are not left out, and the first interval neither: an upper bound of what is told.
    """
    every_s = settings.counts.every_s
    trips = TripDurations(settings, keys=slots_as_keys)
    number = np.floor(trace.ts / every_s).astype(np.int64)
    numbers = np.arange(number[0], number[-1] + 2)
    first = np.searchsorted(number, np.append(numbers, numbers[-1] + 1))
    everybody = np.arange(trace.n_devices, dtype=np.uint64)
    found = []
    for each, begin, end in zip(numbers.tolist(), first[:-1], first[1:], strict=True):
        rows = slice(begin, end)
        slot, ts = trace.device_of[rows].astype(np.int32), trace.ts[rows]
        positions = Positions(slot, ts, trace.lat[rows], trace.lon[rows], ts)
        nodes = np.zeros(end - begin, np.int32)
        seconds = trips.tick(positions, nodes, now=(each + 1) * every_s - TIME_SLACK_S)
        found.append(durations_of(seconds or {}, everybody))
    # What a tick returns is the interval before.
    return TimedTrips(numbers[:-1].astype(np.float64) * every_s + every_s, np.stack(found[1:], 1))
