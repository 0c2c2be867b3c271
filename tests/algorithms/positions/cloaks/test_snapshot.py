"""The `snapshot` cloak: reciprocity at every tick, and what verification refuses."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.atoms import Company
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from tests import naive
from tests.algorithms.positions.cloaks.driving import TWO, Drive, snapshot_cloak, traffic
from tests.algorithms.positions.releases import FixedCloak
from tests.examples import many
from tests.graphs import networks, two_islands
from tests.naive import Group

CITY = load_network("city:400")
RULE = DensityRule(steps=(2, 4), values=(4, 3, 2))


class Reciprocal(FixedCloak):
    """Claims that the members of its groups hide each other."""

    reciprocal = True


class Behind(FixedCloak):
    """Claims that all devices are at a node that they have left."""

    def places(self, density: DensityMap) -> Int32Array:
        return np.full_like(density.node_of, 12)


@given(networks(), st.data(), st.integers(1, 4), st.integers(0, 2))
@many(2)
def test_at_each_tick_k_devices_share_every_region_and_no_device_is_in_two_groups(
    network: RoadNetwork, data: st.DataObject, min_nodes: int, k_extra: int
) -> None:
    nodes = st.integers(-1, network.n_nodes - 1)
    cloak = snapshot_cloak(network, rule=RULE, min_nodes=min_nodes, max_nodes=14, k_extra=k_extra)
    drive = Drive(network, cloak)
    graph = naive.graph_of(network).to_undirected()
    where: dict[int, int] = {}
    for now in range(3):
        reports = data.draw(st.dictionaries(st.integers(0, 15), nodes, max_size=16))
        where |= reports
        groups = drive.tick(reports, now=now)
        members = [m for group in groups for m in group.members]
        assert len(members) == len(set(members))
        for group in groups:
            assert len(group.members) >= group.k + k_extra
            assert {where[m] for m in group.members} <= set(group.region)
            assert len(group.region) >= min_nodes
            assert nx.is_connected(graph.subgraph(group.region))
            assert set(group.members) & set(reports)
        for device, outcome in zip(reports, drive.outcomes, strict=True):
            assert (outcome == "PUBLISHED") == (device in members)


@pytest.mark.parametrize("k_extra", [0, 3])
def test_the_k_of_a_group_is_the_largest_that_any_member_demands(k_extra: int) -> None:
    drive = Drive(CITY, snapshot_cloak(CITY, rule=RULE, k_extra=k_extra))
    where = {d: d % 400 for d in range(0, 3 * 400, 7)}
    density = drive.operator.density
    groups = drive.tick(where, now=0)
    assert len(groups) > 3
    for group in groups:
        near = density.n_near[[where[m] for m in group.members]]
        assert group.k == RULE.k_for(near - k_extra).max()


def test_devices_within_k_extra_make_no_place_smaller() -> None:
    def n_nodes(n_devices: int, k_extra: int) -> int:
        company = Company(place_devices=3, area_devices=3)
        cloak = snapshot_cloak(CITY, rule=RULE, min_nodes=4, company=company)
        cloak.set_rule(TWO, k_extra=k_extra)
        [group] = Drive(CITY, cloak).tick(dict.fromkeys(range(n_devices), 7), now=0)
        return len(group.region)

    assert n_nodes(5, k_extra=2) == n_nodes(3, k_extra=0) < n_nodes(4, k_extra=2)


def test_the_same_group_results_whichever_member_reports() -> None:
    where = next(traffic(CITY, 300, seed=4, says=1.0))
    first = Drive(CITY, snapshot_cloak(CITY)).tick(where, now=0)
    assert len(first) > 40
    for group in first[::5]:
        for member in group.members:
            drive = Drive(CITY, snapshot_cloak(CITY))
            drive.tick(where, now=0)
            [again] = drive.tick({member: where[member]}, now=1)
            assert again._replace(now=0) == group


def test_equal_inputs_give_equal_releases_whatever_the_order() -> None:
    one, other = (Drive(CITY, snapshot_cloak(CITY)) for _ in range(2))
    steps = traffic(CITY, 200, seed=2, says=0.5)
    for now in range(5):
        where = next(steps)
        backwards = dict(reversed(list(where.items())))
        assert one.tick(where, now=now) == other.tick(backwards, now=now)


def test_devices_without_a_group_are_suppressed_with_the_reason() -> None:
    drive = Drive(two_islands(), snapshot_cloak(two_islands(), min_nodes=3, max_nodes=4))
    drive.tick({0: 0, 1: 5, 2: 6, 3: 7, 4: 7}, now=0)
    too_small = "SUPPRESSED__REGION_TOO_SMALL"
    assert drive.outcomes == ["SUPPRESSED__TOO_FEW_DEVICES", *[too_small] * 4]
    apart = load_network("grid:1x9")
    drive = Drive(apart, snapshot_cloak(apart, max_nodes=4))
    assert drive.tick({0: 0, 1: 8}, now=0) == []
    assert drive.outcomes == ["SUPPRESSED__REGION_TOO_LARGE"] * 2


def test_a_pseudonym_lives_until_the_next_rotation() -> None:
    drive = Drive(CITY, snapshot_cloak(CITY), ttl_s=1000)
    versions = [drive.tick({0: 7, 1: 7}, now=now)[0].versions for now in (0, 299, 300)]
    assert versions[0] == versions[1]
    assert not set(versions[1]) & set(versions[2])


def test_a_region_published_by_fewer_than_k_is_refused_however_many_devices_it_contains() -> None:
    # Verification does not know how groups are formed; this cloak breaks its promise.
    honest, lie = Group(2, [12], [0, 1]), Group(2, [7, 8], [2])
    drive = Drive(load_network("grid:5x5"), Reciprocal([honest, lie]))
    [released] = drive.tick({0: 12, 1: 12, 2: 7, 3: 8}, now=0)
    assert released.members == (0, 1)
    assert drive.outcomes == [
        "PUBLISHED",
        "PUBLISHED",
        "SUPPRESSED__UNVERIFIED",
        "SUPPRESSED__UNVERIFIED",
    ]


def test_a_region_without_the_place_that_a_member_reports_from_is_refused() -> None:
    # The cloak's word is taken for silent devices only.
    drive = Drive(load_network("grid:5x5"), Behind([Group(2, [12], [0, 1])]))
    assert len(drive.tick({0: 12}, now=0)) == 1
    assert drive.tick({0: 13}, now=1) == []
    assert drive.outcomes == ["SUPPRESSED__UNVERIFIED"]


def test_the_anonymity_set_of_a_group_is_its_members() -> None:
    drive = Drive(CITY, snapshot_cloak(CITY))
    drive.tick(dict.fromkeys(range(5), 7), now=0)
    assert drive.operator.n_hidden_among(drive.last.release).tolist() == [5]
    assert np.all(drive.last.release.k == 2)
