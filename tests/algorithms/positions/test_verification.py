"""Verification of one release against its naive twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.verification import groups_that_hold
from tests import naive
from tests.algorithms.positions.releases import release_of
from tests.examples import many
from tests.naive import Group

N_NODES = 5
# Devices 0, 1 at node 0; 2, 3 at node 1; 4 at node 2; 5 off the graph.
NODE_OF = [0, 0, 1, 1, 2, -1]
TRUE = Group(k=3, region=[0, 1], members=[0, 2])
OTHER = Group(k=2, region=[1, 2], members=[3, 4])


def holds(groups: list[Group], node_of: list[int] = NODE_OF, *, k_floor: int = 2) -> list[bool]:
    result: list[bool] = groups_that_hold(
        release_of(groups), np.array(node_of, np.int32), n_nodes=N_NODES, k_floor=k_floor
    ).tolist()
    return result


def test_a_release_that_keeps_its_promise_passes() -> None:
    assert holds([TRUE, OTHER]) == [True, True]


def test_an_empty_release_passes() -> None:
    assert holds([]) == []


def test_a_region_with_exactly_k_devices_passes_and_with_one_fewer_does_not() -> None:
    assert holds([TRUE._replace(k=4)]) == [True]
    assert holds([TRUE._replace(k=5)]) == [False]


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(TRUE._replace(region=[0], k=3), id="too few devices"),
        pytest.param(TRUE._replace(region=[0, 0, 1], k=5), id="a repeated node"),
        pytest.param(TRUE._replace(region=[0, 1, N_NODES]), id="a node beyond the network"),
        pytest.param(TRUE._replace(region=[0, -1, 1]), id="a negative node"),
        pytest.param(TRUE._replace(k=2, region=[0]), id="a member outside the region"),
        pytest.param(TRUE._replace(members=[0, 0]), id="a member twice"),
        pytest.param(TRUE._replace(members=[0, 5]), id="a member off the graph"),
        pytest.param(TRUE._replace(members=[0, 6]), id="an unknown member"),
        pytest.param(TRUE._replace(members=[-1, 0]), id="a negative member"),
        pytest.param(TRUE._replace(k=1), id="k below the floor"),
        pytest.param(TRUE._replace(region=[]), id="an empty region"),
        pytest.param(TRUE._replace(members=[]), id="an empty group"),
    ],
)
def test_a_broken_group_is_refused_and_the_others_pass(broken: Group) -> None:
    assert holds([broken, OTHER]) == [False, True]
    assert holds([OTHER, broken]) == [True, False]


def test_a_member_of_two_groups_breaks_both() -> None:
    assert holds([TRUE, OTHER._replace(members=[2, 4])]) == [False, False]


def test_an_invalid_node_of_one_group_covers_no_member_of_another() -> None:
    # If groups and nodes were combined by arithmetic, N_NODES + 3 would be node 3 of the next.
    node_of = [0, 0, 3, 0]
    groups = [
        Group(k=2, region=[0, N_NODES + 3], members=[0]),
        Group(k=2, region=[0], members=[2]),
        Group(k=2, region=[0], members=[3]),
    ]
    assert holds(groups, node_of) == [False, False, True]


def test_a_region_without_devices_is_refused() -> None:
    assert holds([Group(k=2, region=[3, 4], members=[0, 1])]) == [False]


nodes = st.integers(-1, N_NODES)
groups = st.builds(
    Group,
    st.integers(1, 4),
    st.lists(nodes, max_size=5) | st.sets(st.integers(0, N_NODES - 1)).map(sorted),
    st.lists(st.integers(-1, 8), max_size=3),
)


@many(3)
@given(
    st.lists(groups, max_size=4),
    st.lists(st.integers(-1, N_NODES - 1), max_size=8),
    st.integers(1, 3),
)
def test_verification_agrees_with_its_naive_twin(
    groups: list[Group], node_of: list[int], k_floor: int
) -> None:
    expected = naive.promise_holds(groups, node_of, n_nodes=N_NODES, k_floor=k_floor)
    assert holds(groups, node_of, k_floor=k_floor) == expected
