"""Trips in recorded positions: by hand, and against a twin that reads as the definition does."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.recorded_trips import trips_of
from anonymizer.domain.protection import TripRule
from anonymizer.domain.trace import Trace

RULE = TripRule(gap_s=100, dwell_m=50, dwell_s=60)
STEP = 0.001
"""Degrees of latitude: 111 m."""


def trace(*rows: tuple[str, float, float]) -> Trace:
    """Return a trace of devices, times and steps north."""
    rows = tuple(sorted(rows, key=lambda row: row[1]))
    names = tuple(dict.fromkeys(name for name, _, _ in rows))
    return Trace(
        device_id=names,
        device_of=np.array([names.index(name) for name, _, _ in rows], np.int64),
        ts=np.array([ts for _, ts, _ in rows], np.float64),
        lat=np.array([60 + STEP * place for _, _, place in rows], np.float64),
        lon=np.full(len(rows), 24.0),
    )


def ends(found: Trace) -> tuple[list[tuple[str, float, float]], int]:
    """Return device, first and last second of each trip, and the number of those that are cut."""
    trips = trips_of(found, RULE)
    of_trip = zip(
        found.device_of[trips.first].tolist(),
        found.ts[trips.first].tolist(),
        found.ts[trips.last].tolist(),
        strict=True,
    )
    return [(found.device_id[d], a, b) for d, a, b in of_trip], trips.n_cut


EARLY_AND_LATE = (("x", 0.0, 0.0), ("x", 1000.0, 0.0))
"""The recording is longer than what any other device says."""


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # Appears, goes, falls silent.
        ([(200, 0), (250, 3), (300, 6)], [(200, 300)]),
        # Stays until 270, goes until 330, stays.
        ([(200, 0), (270, 0), (300, 4), (330, 8), (360, 8), (400, 8)], [(270, 330)]),
        # Two trips with a stay between them, which a silence does not begin.
        ([(200, 0), (250, 5), (330, 5), (380, 9)], [(200, 250), (330, 380)]),
        # A silence of more than 100 s begins another trip, one of 100 s does not.
        ([(200, 0), (300, 3), (401, 6), (450, 9)], [(200, 300), (401, 450)]),
        # A stay of less than 60 s is part of the trip.
        ([(200, 0), (250, 5), (309, 5), (350, 9)], [(200, 350)]),
        # Never left.
        ([(200, 0), (250, 0.2), (300, 0.1)], []),
        ([(200, 0)], []),
    ],
)
def test_trips_by_hand(
    rows: list[tuple[float, float]], expected: list[tuple[float, float]]
) -> None:
    found, n_cut = ends(trace(*EARLY_AND_LATE, *(("a", ts, at) for ts, at in rows)))
    assert [(a, b) for name, a, b in found] == expected
    assert {name for name, _, _ in found} <= {"a"}
    assert n_cut == 0


def test_trips_that_the_recording_cuts_are_counted_and_left_out() -> None:
    cut = (("a", 40.0, 0.0), ("a", 90.0, 5.0), ("b", 930.0, 0.0), ("b", 960.0, 5.0))
    assert ends(trace(*EARLY_AND_LATE, *cut)) == ([], 2)
    # Who stays first has been seen to begin, however early.
    stays = (("a", 10.0, 0.0), ("a", 80.0, 0.0), ("a", 120.0, 5.0))
    assert ends(trace(*EARLY_AND_LATE, *stays)) == ([("a", 80, 120)], 0)
    assert ends(trace()) == ([], 0)


def test_lengths_follow_the_positions() -> None:
    found = trace(*EARLY_AND_LATE, ("a", 200, 0), ("a", 250, 3), ("a", 300, 1))
    assert trips_of(found, RULE).length_m == pytest.approx([5 * 111.195], rel=1e-3)


def naive(found: Trace) -> list[tuple[int, int]]:
    """Return the ends of each trip that is not cut: runs without silence, cut by stays."""
    trips: list[tuple[int, int]] = []
    begin, end = found.ts.min(), found.ts.max()
    for d in range(found.n_devices):
        rows = [i for i in range(found.n_rows) if found.device_of[i] == d]
        runs: list[list[int]] = []
        for i in rows:
            if runs and found.ts[i] - found.ts[runs[-1][-1]] <= RULE.gap_s:
                runs[-1].append(i)
            else:
                runs.append([i])
        for run in runs:
            stays: list[list[int]] = []
            for i in run:
                if stays and _away_m(found, stays[-1][0], i) <= RULE.dwell_m:
                    stays[-1].append(i)
                else:
                    stays.append([i])
            dwellings = [s for s in stays if found.ts[s[-1]] - found.ts[s[0]] >= RULE.dwell_s]
            borders = [(None, run[0]), *((s[0], s[-1]) for s in dwellings), (run[-1], None)]
            for (_, first), (last, _) in pairwise(borders):
                assert first is not None
                assert last is not None
                begins, stops = first != run[0], last != run[-1]
                seen = begins or any(run[0] in s for s in dwellings)
                seen |= found.ts[run[0]] - begin > RULE.gap_s or run is not runs[0]
                ended = stops or any(run[-1] in s for s in dwellings)
                ended |= end - found.ts[run[-1]] > RULE.gap_s or run is not runs[-1]
                moved = any(first < s[0] <= last for s in stays)
                if moved and seen and ended:
                    trips.append((first, last))
    return trips


def _away_m(found: Trace, i: int, j: int) -> float:
    return float(haversine_m(found.lat[i], found.lon[i], found.lat[j], found.lon[j]))


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 12), st.integers(0, 3)),
        min_size=1,
        max_size=14,
        unique_by=lambda row: row[:2],
    )
)
def test_trips_are_those_of_the_definition(rows: list[tuple[str, int, int]]) -> None:
    found = trace(*((name, 35.0 * ts, float(at)) for name, ts, at in rows))
    trips = trips_of(found, RULE)
    assert list(zip(trips.first.tolist(), trips.last.tolist(), strict=True)) == naive(found)
