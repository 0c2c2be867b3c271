"""Every output over several sources: published when all have stated a window, exactly once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from anonymizer.algorithms.positions.safe_counts import NO_CELL, tally
from anonymizer.algorithms.positions.street_hours import PassageSums
from anonymizer.algorithms.positions.trip_classes import N_STARTS, WindowTrips, n_cells_of
from anonymizer.cluster.held_files import HeldFiles
from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.cluster.positions.stage_outputs import LaneOutputs, stated, takes_long
from anonymizer.cluster.stage import UnreadableError, reading
from anonymizer.networks import load_network
from anonymizer.outputs.counts import CountsOutput
from anonymizer.outputs.output import HeldFile, Output
from anonymizer.outputs.registry import OUTPUTS, output_in
from anonymizer.outputs.streets import StreetsOutput
from anonymizer.outputs.streets.street_hours import streets_of
from anonymizer.outputs.streets.street_watch import StatedPassages
from anonymizer.outputs.trips import StatedTrips, TripsOutput
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import Settings
from tests.outputs.occupancy import Occupancy

NETWORK = load_network("grid:12x12")
SETTINGS = Settings.model_validate(
    {
        "counts": {"privacy": "k", "k": 3, "every_s": 10, "cells": 16, "streets_s": 3600},
        "trips_out": {"every_s": 600},
        "region": {"k_extra": 0},
        "cluster": {"n_parts": 2},
    }
)
SECRET = b"of this test"
N_ROADS = int((streets_of(NETWORK).road_at >= 0).sum())


def a_tally(seed: int, n: int) -> Any:  # noqa: ANN401  of any kind, here and below
    rng = np.random.default_rng(seed)
    return tally(
        rng.integers(0, 16, n),
        np.full(n, NO_CELL, np.int64),
        n_cells=16,
        speed_mps=rng.random(n) * 20,
        dwell_s=np.ones(n),
    )


def some_trips(seed: int, n: int) -> Any:  # noqa: ANN401
    rng, n_cells = np.random.default_rng(seed), n_cells_of(NETWORK, 3)
    cells = [rng.integers(0, most, n) for most in (n_cells, n_cells, N_STARTS)]
    roads = [np.unique(rng.integers(0, 40, 400 if n > 500 else 20)) for _ in range(n)]
    roads = [np.arange(500)] * n if n > 500 else roads
    trips = WindowTrips._make([rng.integers(0, max(n, 1), n) + 1000 * seed, *cells, roads])
    return StatedTrips(3, n_cells, trips)


def some_passages(seed: int, n: int, *, hour: int = 7) -> Any:  # noqa: ANN401
    rng = np.random.default_rng(seed)
    n = max(1, n * 40)
    device = (rng.integers(0, 1 + n // 8, n) + (seed << 40)) * 3
    key = np.stack([np.full(n, hour), rng.integers(0, N_ROADS, n), device])
    key = np.unique(key, axis=1)
    metres, seconds = rng.integers(1, 1 << 20, (2, key.shape[1])) / (1 << 12)
    sums = PassageSums(key, np.stack([metres, seconds * (rng.random(key.shape[1]) < 0.9)]))
    return StatedPassages(3, sums)


def some_quarters(seed: int, n: int) -> Any:  # noqa: ANN401
    rng = np.random.default_rng(seed)
    return sorted({(int(q), 1000 * seed + i) for i, q in enumerate(rng.integers(0, 4, n))})


class Case(NamedTuple):
    output: type[Output]
    some: Callable[[int, int], Any]
    """Returns content, given a seed and how much."""
    is_cut: bool
    """Whether much of it comes in pieces."""


CASES = {
    "counts": Case(CountsOutput, a_tally, is_cut=False),
    "trips": Case(TripsOutput, some_trips, is_cut=True),
    "streets": Case(StreetsOutput, some_passages, is_cut=True),
    "occupancy": Case(Occupancy, some_quarters, is_cut=True),
}


def test_every_output_is_tried() -> None:
    assert {output_in(module) for module in OUTPUTS} < {each.output for each in CASES.values()}


class Lane:
    """The lane that publishes, and one source after the other."""

    def __init__(self, case: Case, settings: Settings = SETTINGS) -> None:
        self.output = case.output(settings, NETWORK)
        self.lane = LaneOutputs([self.output], n_sources=2, secret=SECRET)

    def say(self, source: int, window: int, content: Any) -> list[bytes]:  # noqa: ANN401
        return self.take(stated(self.output, source, window, content))

    def take(self, values: Iterator[bytes] | Sequence[bytes]) -> list[bytes]:
        """Return payloads that are not retained, and files."""
        found, files = list[bytes](), HeldFiles()
        for value in values:
            messages, sends = self.lane.take(*self.lane.read(value))
            found += [each.payload for each in messages if not each.retain]
            for send in sends:
                assert (send.to, send.number) == ("files", 0)
                files.take(send.value)
            if (newest := files.newest(self.output.name)) is not None and newest not in found:
                found.append(newest)
        return found

    def crash(self, settings: Settings = SETTINGS) -> None:
        """Lose everything but the state."""
        state = unpack(pack(self.lane.state()))
        self.output = type(self.output)(settings, NETWORK)
        self.lane = LaneOutputs([self.output], n_sources=2, secret=SECRET)
        self.lane.restore(state)

    @property
    def n_windows(self) -> tuple[int, int]:
        """Published and suppressed."""
        name, n_of = self.output.name, self.lane.counters
        return n_of[f"{name}_windows"], n_of[f"suppressed_{name}_windows"]


def alone(case: Case, window: int, *contents: Any) -> list[bytes]:  # noqa: ANN401
    """Return what one process publishes that has seen all of it."""
    publisher = case.output(SETTINGS, NETWORK).publisher(secret=SECRET)
    made = publisher.publish(window, contents)
    assert all(isinstance(each, Outgoing | HeldFile) for each in made)
    return [each.content if isinstance(each, HeldFile) else each.payload for each in made]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_what_all_sources_state_is_published_together(case: Case) -> None:
    lane, one, other = Lane(case), case.some(1, 60), case.some(2, 60)
    assert lane.say(0, 7, one) == []
    found = lane.say(1, 7, other)
    assert len(found) == 1
    assert found == alone(case, 7, one, other)
    assert found != alone(case, 7, one)
    assert lane.n_windows == (1, 0)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_window_of_few_is_published_as_in_one_process(case: Case, n: int) -> None:
    lane, one, other = Lane(case), case.some(1, n), case.some(2, 0)
    lane.say(0, 7, one)
    assert lane.say(1, 7, other) == alone(case, 7, one, other)


def test_much_comes_in_pieces_and_nothing_counts_twice_whatever_dies(case: Case) -> None:
    much, little = case.some(1, 1500), case.some(2, 60)
    lane = Lane(case)
    pieces = list(stated(lane.output, 0, 7, much))
    assert (len(pieces) > 2) == case.is_cut
    assert max(map(len, pieces)) < 700_000
    assert [takes_long(each) for each in pieces[-1:]] == [lane.output.is_slow]
    assert not any(map(takes_long, pieces[:-1]))
    found = lane.take(pieces[:2])
    lane.crash()
    found += lane.take([*pieces[:1], *pieces[2:], pieces[-1]])
    assert found == []
    lane.crash()
    assert lane.say(1, 7, little) == alone(case, 7, much, little)
    lane.crash()
    assert lane.take(pieces) == lane.say(1, 7, little) == [], "each window is published once"
    assert lane.n_windows == (1, 0)


def test_a_window_that_a_source_has_not_stated_is_left_out(case: Case) -> None:
    lane = Lane(case)
    lane.say(0, 7, case.some(1, 60))
    assert lane.say(1, 8, case.some(2, 60)) == []
    assert len(lane.say(0, 8, case.some(1, 60))) == 1
    assert lane.n_windows == (1, 1)


def test_a_window_that_a_source_cannot_state_is_left_out(case: Case) -> None:
    lane = Lane(case)
    try:
        pieces = list(stated(lane.output, 1, 7, None))
    except TypeError:
        assert case.output in {TripsOutput, Occupancy}, "their watches see every window whole"
        return
    lane.say(0, 7, case.some(1, 60))
    assert lane.take(pieces) == []
    assert lane.n_windows == (0, 1)


def test_a_source_that_stands_still_holds_up_some_windows(case: Case) -> None:
    lane, most = Lane(case), case.output.most_waiting
    contents = [case.some(1, 20) for _ in range(most + 2)]
    for window, content in enumerate(contents):
        assert lane.say(0, window, content) == []
    assert lane.n_windows == (0, 2)
    lane.crash()
    made = [lane.say(1, window, content) for window, content in enumerate(contents)]
    assert [len(each) for each in made] == [0, 0] + [1] * most, "nothing is published late"


def test_pieces_of_no_output_and_no_source_are_refused(case: Case) -> None:
    lane = Lane(case)
    [value, *_] = stated(lane.output, 2, 7, case.some(1, 5))
    name, source, *rest = unpack(value[1:])
    for broken in ([name, source, *rest], ["another", 0, *rest], [name, 0, "7", *rest[1:]]):
        with pytest.raises(ValueError, match="no piece"):
            lane.lane.read(value[:1] + pack(broken))
    for content in ([4, 5], "?", [[1], [2]], {"a": 1}):
        with pytest.raises(UnreadableError), reading():
            lane.lane.read(value[:1] + pack([name, 0, *rest[:-1], content]))


def test_a_state_of_another_meaning_is_refused_and_one_of_others_ignored(case: Case) -> None:
    lane = Lane(case)
    lane.say(0, 7, case.some(1, 20))
    state = unpack(pack(lane.lane.state()))
    [(name, (meaning, kept))] = state.items()
    changed = dict.fromkeys(meaning, "another")
    with pytest.raises(ValueError, match=f"other {name}"):
        lane.lane.restore({name: [changed, kept]})
    fresh = Lane(case)
    fresh.lane.restore({"gone": [{}, None]})
    assert fresh.n_windows == (0, 0)
