"""Safe counts: whatever is added, subtracted or compared, no set below k devices appears."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.safe_counts import (
    NO_CELL,
    CellTally,
    SafeFigures,
    figures,
    runs_of,
    tally,
    together,
)
from anonymizer.domain.arrays import BoolArray, IntArray
from tests.examples import many

N_CELLS = 8
ks = st.integers(2, 5)
counts = st.lists(st.integers(0, 9), min_size=N_CELLS, max_size=N_CELLS)
devices = st.lists(
    st.tuples(st.integers(0, N_CELLS - 1), st.integers(NO_CELL, N_CELLS - 1)), max_size=60
)


def runs(n_in: list[int], k: int) -> list[int]:
    starts: list[int] = runs_of(np.array(n_in), k).tolist()
    return starts


def naive_runs(n_in: list[int], k: int) -> list[list[int]]:
    """Divide lists of cells: what holds fewer than k joins its neighbour from the other half."""

    def divide(cells: list[int]) -> list[list[int]]:
        half = len(cells) // 2
        if not half:
            return [cells]
        left, right = cells[:half], cells[half:]
        n_left, n_right = (sum(n_in[cell] for cell in side) for side in (left, right))
        if n_left >= k and n_right >= k:
            return divide(left) + divide(right)
        if n_left >= k:
            parts = divide(left)
            return [*parts[:-1], parts[-1] + right]
        if n_right >= k:
            parts = divide(right)
            return [left + parts[0], *parts[1:]]
        return [cells]

    return divide(list(range(len(n_in)))) if sum(n_in) >= k else []


def figures_of(said: list[tuple[int, int]], k: int) -> SafeFigures:
    cell = np.array([now for now, _ in said], np.int64)
    before = np.array([then for _, then in said], np.int64)
    nothing = np.full(len(said), np.nan)
    return figures(tally(cell, before, n_cells=N_CELLS, speed_mps=nothing, dwell_s=nothing), k)


def test_cells_with_few_devices_join_their_neighbours() -> None:
    assert runs([5, 5, 5, 5, 5, 5, 5, 5], 5) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert runs([5, 5, 5, 4, 5, 5, 5, 5], 5) == [0, 1, 2, 4, 5, 6, 7, 8]
    assert runs([0, 0, 0, 1, 9, 9, 9, 9], 5) == [0, 5, 6, 7, 8]
    assert runs([1, 0, 0, 0, 0, 0, 0, 1], 5) == [0]


@many(3)
@given(counts, ks)
def test_runs_equal_those_of_the_naive_twin(n_in: list[int], k: int) -> None:
    expected = naive_runs(n_in, k)
    assert runs(n_in, k) == [0, *(part[-1] + 1 for part in expected)]


@many(3)
@given(counts, ks)
def test_every_run_holds_at_least_k(n_in: list[int], k: int) -> None:
    for first, end in pairwise(runs(n_in, k)):
        assert sum(n_in[first:end]) >= k


@many(3)
@given(counts, ks, st.integers(0, N_CELLS - 1))
def test_an_empty_cell_looks_like_one_with_a_single_device(
    n_in: list[int], k: int, cell: int
) -> None:
    """A cell in which somebody might be alone is never singled out by the runs."""
    n_in[cell] = 0
    alone = list(n_in)
    alone[cell] = 1
    first, second = runs(n_in, k), runs(alone, k)
    for starts in (first, second):
        assert (cell in starts[:-1] and cell + 1 in starts) is False
    # They differ only where another area reaches k by this very device.
    if not any(sum(n_in[a:b]) == k - 1 for a, b in areas(cell)):
        assert first == second


def areas(cell: int) -> list[tuple[int, int]]:
    """Return the areas of the hierarchy that contain a cell."""
    sizes = (1, 2, 4, 8)
    return [(cell // size * size, cell // size * size + size) for size in sizes]


@many(3)
@given(devices, ks)
def test_all_numbers_are_multiples_of_k_and_what_is_left_is_nobody_or_k(
    said: list[tuple[int, int]], k: int
) -> None:
    found = figures_of(said, k)
    assert not (found.n_devices % k).any()
    assert not (found.n_flow % k).any()
    assert (found.n_devices >= k).all()
    assert (found.n_flow >= k).all()
    first = found.first_cell_of
    for r in range(len(first) - 1):
        inside = [each for each in said if first[r] <= each[0] < first[r + 1]]
        assert found.n_devices[r] == len(inside) // k * k
        listed = 0
        for origin, n in zip(
            found.flow_from[found.flow_to == r], found.n_flow[found.flow_to == r], strict=True
        ):
            moved = sum(first[origin] <= then < first[origin + 1] for _, then in inside)
            assert n == moved // k * k
            listed += moved
        assert len(inside) - listed == 0 or len(inside) - listed >= k


@many(3)
@given(st.lists(st.tuples(*[st.integers(0, N_CELLS - 1)] * 2), max_size=60), ks)
def test_no_comparison_of_two_intervals_proves_a_set_of_fewer_than_k(
    moves: list[tuple[int, int]], k: int
) -> None:
    """The adversary subtracts what left an area from what was there, with all the bounds it has."""
    earlier = figures_of([(then, NO_CELL) for then, _ in moves], k)
    later = figures_of([(now, then) for then, now in moves], k)
    for lowest, highest in remaining(earlier, later, k):
        assert lowest <= 0 or highest >= k


def remaining(earlier: SafeFigures, later: SafeFigures, k: int) -> list[tuple[int, int]]:
    """Return the bounds on how many of each earlier run are in no later flow from within it."""
    found = []
    was, now = earlier.first_cell_of, later.first_cell_of
    for r in range(len(was) - 1):
        within: IntArray = np.array(
            [
                n
                for origin, n in zip(later.flow_from, later.n_flow, strict=True)
                if was[r] <= now[origin] and now[origin + 1] <= was[r + 1]
            ],
            np.int64,
        )
        least = int(earlier.n_devices[r] - (within + k - 1).sum())
        most = int(earlier.n_devices[r] + k - 1 - within.sum())
        found.append((least, most))
    return found


def test_no_more_flows_are_left_out_than_must_be() -> None:
    """Flows of exactly k are listed; where too few remain, the smallest flow joins them."""
    exactly = [(0, 0)] * 3 + [(0, 7)] * 3 + [(7, 7)] * 3
    found = figures_of(exactly, 3)
    assert found.n_flow.tolist() == [3, 3, 3]
    found = figures_of([(0, 0)] * 6 + [(0, 7)] * 3 + [(0, NO_CELL)] + [(7, 7)] * 3, 3)
    flows = zip(found.flow_from.tolist(), found.flow_to.tolist(), found.n_flow, strict=True)
    assert list(flows) == [(0, 0, 6), (1, 1, 3)]


def test_a_mean_is_of_at_least_k_devices() -> None:
    cell = np.array([0] * 3 + [7] * 3)
    speed = np.array([1.0, 2.0, np.nan, 4.0, 5.0, 6.0])
    nowhere = np.full(6, NO_CELL)
    counted = tally(cell, nowhere, n_cells=N_CELLS, speed_mps=speed, dwell_s=np.ones(6))
    found = figures(counted, 3)
    assert np.isnan(found.speed_mps[0])
    assert found.speed_mps[1] == 5.0
    assert found.dwell_s.tolist() == [1.0, 1.0]


cells = st.integers(0, N_CELLS - 1)
values = st.one_of(st.just(np.nan), st.floats(0.0, 600.0))
reports = st.lists(
    st.tuples(cells, st.one_of(st.just(NO_CELL), cells), values, values, st.integers(0, 2)),
    min_size=1,
    max_size=40,
)


@many(3)
@given(reports, ks)
def test_tallies_of_parts_are_together_the_tally_of_all(
    said: list[tuple[int, int, float, float, int]], k: int
) -> None:
    cell, before, speed, dwell, part = (np.array(column) for column in zip(*said, strict=True))

    def of(these: BoolArray) -> CellTally:
        values = {"speed_mps": speed[these], "dwell_s": dwell[these]}
        return tally(cell[these], before[these], n_cells=N_CELLS, **values)

    whole = of(part >= 0)
    joined = together([of(part == number) for number in range(3)])
    for one, other in ((whole, joined), (figures(whole, k), figures(joined, k))):
        for mine, yours in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine, yours)
    found = figures(joined, k)
    for run, (first, last) in enumerate(pairwise(found.first_cell_of.tolist())):
        inside = (cell >= first) & (cell < last)
        for shown, said_here in ((found.speed_mps, speed), (found.dwell_s, dwell)):
            known = said_here[inside & ~np.isnan(said_here)]
            expected = known.mean() if len(known) >= k else np.nan
            np.testing.assert_allclose(shown[run], expected, atol=1e-4)
