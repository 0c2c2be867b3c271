"""The subtraction attack against its naive twin, and on cases known by hand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.subtraction import (
    Remainder,
    covered_throughout,
    subtract_nodes,
    subtract_unchanged,
)
from anonymizer.audit.mathematics.truth import Truth
from tests.audit.mathematics import naive
from tests.audit.mathematics.made import GRID, Line, observed_of, random_release


def remainder_of(
    lines: list[Line], place: list[list[int]], device_of: list[int], *, least_share: float = 1.0
) -> Remainder:
    node = np.array(place, np.int32)
    truth = Truth(node, node >= 0, np.array(device_of))
    return subtract_unchanged(
        observed_of(lines),
        truth,
        device_of=np.array(device_of),
        n_nodes=GRID.n_nodes,
        least_share=least_share,
    )


@given(st.integers(0, 10_000), st.sampled_from([1.0, 0.5]))
def test_what_is_left_is_what_the_naive_twin_finds(seed: int, least_share: float) -> None:
    made = random_release(seed)
    observed, truth = made.observed, made.truth
    assert truth.device_of is not None
    found = subtract_unchanged(
        observed,
        truth,
        device_of=truth.device_of,
        n_nodes=GRID.n_nodes,
        least_share=least_share,
    )
    left = naive.without_unchanged(made.lines, least_share)
    for i, (p, t) in enumerate(zip(observed.pseudonym_of, observed.tick_of, strict=True)):
        nodes = left[int(p), int(observed.time[t])]
        assert found.n_nodes[i] == len(nodes)
        assert found.n_devices[i] == sum(int(v) in nodes for v in truth.place[t])
        assert found.holds_device[i] == (int(truth.place[t, truth.device_of[p]]) in nodes)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_what_is_covered_throughout_is_what_the_naive_twin_finds(seed: int, every_s: int) -> None:
    made = random_release(seed, n_ticks=12)
    observed, truth = made.observed, made.truth
    assert truth.device_of is not None
    always = covered_throughout(observed, GRID.n_nodes, every_s=every_s)
    assert set(np.flatnonzero(always).tolist()) == naive.always_covered(made.lines, every_s)
    true_node = truth.place[observed.tick_of, truth.device_of[observed.pseudonym_of]]
    n_left, holds_device = subtract_nodes(observed, subtracted=always, true_node=true_node)
    for i, r in enumerate(observed.region_of.tolist()):
        region = set(observed.node[slice(*observed.first_node_of[r : r + 2])].tolist())
        left = region - set(np.flatnonzero(always).tolist()) or region
        assert n_left[i] == len(left)
        assert holds_device[i] == (int(true_node[i]) in left)


def test_a_device_that_moves_among_parked_ones_is_left_where_every_group_publishes_once() -> None:
    # Devices 1 and 2 stand at 10 and 11; device 0 moves on. Each second has a pseudonym of its own.
    lines: list[Line] = [(second, second, (10, 11, second + 1), 3) for second in range(5)]
    observed = observed_of(lines)
    always = covered_throughout(observed, GRID.n_nodes, every_s=1.0)
    assert np.flatnonzero(always).tolist() == [10, 11]
    n_left, holds_device = subtract_nodes(
        observed, subtracted=always, true_node=np.arange(1, 6, dtype=np.int32)
    )
    assert n_left.tolist() == [1] * 5
    assert holds_device.all()


def test_a_device_that_moves_among_parked_ones_is_all_that_is_left() -> None:
    # Devices 1 and 2 stand at 10 and 11; device 0 moves from 1 to 2 to 3.
    lines: list[Line] = [(0, second, (10, 11, second + 1), 3) for second in range(3)]
    found = remainder_of(lines, [[1, 10, 11], [2, 10, 11], [3, 10, 11]], [0])
    assert found.n_nodes.tolist() == [1, 1, 1]
    assert found.n_devices.tolist() == [1, 1, 1]
    assert found.holds_device.all()


def test_company_that_moves_too_is_left_beside_the_target() -> None:
    lines: list[Line] = [(0, second, (10, second + 1, second + 5), 3) for second in range(2)]
    found = remainder_of(lines, [[1, 5, 10], [2, 6, 10]], [0])
    assert found.n_nodes.tolist() == [2, 2]
    assert found.n_devices.tolist() == [2, 2]
    assert found.holds_device.all()


def test_places_that_do_not_change_reveal_nothing_about_who_moves_between_them() -> None:
    # The target passes from 1 to 2, and both are covered all the time.
    lines: list[Line] = [(0, second, (1, 2, 10), 3) for second in range(2)]
    found = remainder_of(lines, [[1, 10], [2, 10]], [0])
    assert found.n_nodes.tolist() == [3, 3]
    assert found.n_devices.tolist() == [2, 2]


def test_the_target_is_missed_where_it_is_at_a_node_that_never_changes() -> None:
    lines: list[Line] = [(0, 0, (1, 10), 2), (0, 1, (1, 11), 2)]
    found = remainder_of(lines, [[1, 10], [1, 11]], [0])
    assert found.n_nodes.tolist() == [1, 1]
    assert not found.holds_device.any()


def test_the_order_of_equal_nodes_is_not_a_change() -> None:
    lines: list[Line] = [(0, 0, (1, 10), 2), (0, 1, (10, 1), 2)]
    found = remainder_of(lines, [[1, 10], [1, 10]], [0])
    assert found.n_nodes.tolist() == [2, 2]


def test_noise_hides_a_parked_device_only_from_who_subtracts_what_never_changes() -> None:
    # The parked device 1 is seen at 11 once; device 0 moves from 1 to 4.
    parked = [10, 11, 10, 10]
    lines: list[Line] = [(0, t, (parked[t], t + 1), 2) for t in range(4)]
    place = [[t + 1, parked[t]] for t in range(4)]
    assert remainder_of(lines, place, [0]).n_nodes.tolist() == [2] * 4
    found = remainder_of(lines, place, [0], least_share=0.5)
    assert found.n_nodes.tolist() == [1, 2, 1, 1]
    assert found.holds_device.all()
