"""Demands of devices: they are met, cost others little, and do not tell who has stated them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.atoms import cut_into_levels, lowest_level_with
from anonymizer.algorithms.positions.cloaks import Epochs
from anonymizer.algorithms.positions.demands import TERM_S, Demand, SharedDemands
from anonymizer.algorithms.positions.device_keys import KeyArray
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.spanning_forest import road_metres, spanning_forest
from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.networks import load_network
from tests.algorithms.positions.cloaks.driving import Drive, Shared, Where, session_cloak, traffic

CITY = load_network("city:400")
RULE = DensityRule(steps=(4, 10), values=(6, 4, 2))
SHARED_BY = max(RULE.values)
K = 15
N = 120
TICKS = 70


def keys_of(seed: int, n: int = N) -> KeyArray:
    return np.random.default_rng(seed).integers(0, 2**64, n, np.uint64)


def drive(
    seed: int,
    stated: Mapping[int, Demand],
    *,
    shared_by: int = SHARED_BY,
    from_tick: int = 0,
    until_tick: int = TICKS,
) -> list[Shared]:
    """Return what is released about some devices, of which some state demands (by their slots)."""
    pace = Pace(ttl_s=30, epoch_s=10.0)
    cloak = session_cloak(CITY, rule=RULE, epochs=Epochs(2, 2.0), min_nodes=4, pace=pace)
    driven, key = Drive(CITY, cloak, ttl_s=30), keys_of(seed)
    shared = SharedDemands(shared_by, key.take)
    by_key = {int(key[slot]): demand for slot, demand in stated.items()}
    here = steady(seed)
    driven.operator.demand(shared)
    for now in range(TICKS):
        shared.stated = by_key if from_tick <= now < until_tick else {}
        driven.tick(next(here), now=now)
    return driven.released


def steady(seed: int) -> Iterator[Where]:
    """Return traffic in which nobody comes late or leaves for good: all are alike."""
    moving = traffic(CITY, N, seed=seed, says=1.0)
    first = next(moving)
    at = {device: first.get(device, device % CITY.n_nodes) for device in range(N)}

    for where in moving:
        at.update({device: node for device, node in where.items() if node >= 0})
        yield dict(at)


def company(released: list[Shared]) -> dict[int, tuple[float, float]]:
    """Return how often each device is published with K or more, and with how many in the mean."""
    seen: defaultdict[int, list[int]] = defaultdict(list)
    for group in released:
        for member in group.members:
            seen[member].append(group.k)
    return {
        device: (float((np.array(k) >= K).mean()), float(np.mean(k))) for device, k in seen.items()
    }


@pytest.mark.parametrize("chooser", [3, 77])
def test_who_demands_a_larger_k_is_only_in_groups_of_so_many(chooser: int) -> None:
    released = drive(1, {chooser: Demand(K, 0.0)})
    of_chooser = [group for group in released if chooser in group.members]
    assert len(of_chooser) > TICKS // 2
    assert all(len(set(group.members)) >= group.k >= K for group in of_chooser)
    assert any(group.k < K for group in released), "those elsewhere keep their k"


def test_a_group_for_a_demand_has_k_extra_members_beyond_it() -> None:
    cloak = session_cloak(CITY, k_extra=2)
    driven, key = Drive(CITY, cloak), keys_of(1)
    shared = SharedDemands(1, key.take)
    shared.stated = {int(key[0]): Demand(6, 0.0)}
    driven.operator.demand(shared)
    groups = driven.tick({device: device * 33 for device in range(12)}, now=0)
    assert sorted(m for group in groups for m in group.members) == list(range(12))
    [of_chooser] = [group for group in groups if 0 in group.members]
    assert of_chooser.k == 6
    assert len(of_chooser.members) >= 8


def test_a_demand_holds_from_the_next_group_on_and_after_its_withdrawal_until_its_term_ends() -> (
    None
):
    """Else whoever had stated it would be the one that is suddenly in small groups again."""
    released = drive(2, {5: Demand(K, 0.0)}, from_tick=25, until_tick=45)
    of_chooser = {group.now: group.k for group in released if 5 in group.members}
    assert all(k < K for now, k in of_chooser.items() if now < 25)
    assert all(k >= K for now, k in of_chooser.items() if now >= 36)
    assert {group.now for group in released if 5 in group.members} >= set(range(57, TICKS))


@pytest.mark.parametrize("demand", [Demand(N + 1, 0.0), Demand(0, 1e12), Demand(N + 1, 1e12)])
@pytest.mark.parametrize("n", [1, 10])
def test_a_demand_that_nobody_can_meet_suppresses_its_author_alone(n: int, demand: Demand) -> None:
    everybody = company(drive(3, {}))
    left = company(drive(3, dict.fromkeys(range(5, 5 + n), demand)))
    assert everybody.keys() - left.keys() == set(range(5, 5 + n))


def test_a_demand_of_more_than_are_there_costs_the_others_nothing() -> None:
    """The reproduction: k = 40 among 38 devices silenced nine others."""
    pace = Pace(ttl_s=120, epoch_s=60)
    cloak = session_cloak(CITY, rule=DensityRule(), min_nodes=4, pace=pace)
    driven, key = Drive(CITY, cloak), keys_of(4)
    shared = SharedDemands(10, key.take)
    shared.stated = {int(key[0]): Demand(40, 0.0)}
    driven.operator.demand(shared)
    groups = driven.tick({device: device * 10 for device in range(38)}, now=0)
    assert sorted(m for group in groups for m in group.members) == list(range(1, 38))
    assert max(group.k for group in groups) == 10


def test_what_an_absent_device_has_stated_changes_nothing() -> None:
    """The reproduction: 60 statements of ids that never report left 11 of 200 devices."""
    absent = dict.fromkeys(range(N - 20, N), Demand(K, 1e12)) | {N - 1: Demand(K, 0.0)}
    pace = Pace(ttl_s=30, epoch_s=10.0)

    def released(stated: Mapping[int, Demand]) -> list[Shared]:
        cloak = session_cloak(CITY, rule=RULE, epochs=Epochs(2, 2.0), min_nodes=4, pace=pace)
        driven, key = Drive(CITY, cloak, ttl_s=30), keys_of(9)
        shared = SharedDemands(SHARED_BY, key.take)
        shared.stated = {int(key[slot]): demand for slot, demand in stated.items()}
        driven.operator.demand(shared)
        moving = steady(9)
        for now in range(40):
            where = {d: node for d, node in next(moving).items() if d not in absent}
            driven.tick(where, now=now)
        return driven.released

    assert released(absent) == released({})


@pytest.mark.parametrize("demand", [Demand(14, 0.0), Demand(0, 1e5)])
def test_a_demand_that_no_region_below_the_cap_can_meet_suppresses_its_author_alone(
    demand: Demand,
) -> None:
    devices = {device: device * 7 % CITY.n_nodes for device in range(60)}

    def published(max_nodes: int, *, stated: bool, there: bool = True) -> list[Shared]:
        cloak = session_cloak(CITY, max_nodes=max_nodes, pace=Pace(ttl_s=120, epoch_s=60))
        driven, key = Drive(CITY, cloak), keys_of(5)
        shared = SharedDemands(2, key.take)
        shared.stated = {int(key[0]): demand} if stated else {}
        driven.operator.demand(shared)
        return driven.tick(devices if there else devices | {0: -1}, now=0)

    assert 0 in members_of(published(60, stated=False))
    without = published(60, stated=True)
    assert without == published(60, stated=False, there=False)
    assert members_of(without) == set(devices) - {0}
    if demand.k:
        assert 0 in members_of(published(CITY.n_nodes, stated=True))


def members_of(released: list[Shared]) -> set[int]:
    return {member for group in released for member in group.members}


def test_a_place_has_as_much_road_as_is_demanded() -> None:
    metres = road_metres(CITY)
    usual = [g for g in drive(4, {}) if 5 in g.members]
    shortest = min(metres[list(group.region)].sum() for group in usual)
    levels = cut_into_levels(CITY, spanning_forest(CITY), min_nodes=4, sizes=(1, 2, 4))
    least = np.bincount(levels.at[2], weights=metres).min()
    larger = [g for g in drive(4, {5: Demand(0, least)}) if 5 in g.members]
    assert larger
    assert min(metres[list(group.region)].sum() for group in larger) > max(least, shortest)
    assert 5 not in company(drive(4, {5: Demand(0, 1e9)})), "no place is so large"


@pytest.mark.parametrize("wider", [1.0, 1.5])
def test_the_level_for_some_road_is_the_lowest_whose_every_atom_has_as_much(wider: float) -> None:
    metres = road_metres(CITY)
    levels = cut_into_levels(
        CITY, spanning_forest(CITY), min_nodes=4, sizes=(1, 2, 4, 8), wider=wider
    )
    least = np.array([0.0, 100.0, 700.0, 2000.0, 1e9])
    shortest = [min(metres[at == atom].sum() for atom in set(at.tolist())) for at in levels.at[:4]]
    naive = [
        next((i for i in range(4) if all(s >= m for s in shortest[i:])), len(levels.at))
        for m in least.tolist()
    ]
    assert lowest_level_with(levels, metres, least).tolist() == naive


def served(shared: SharedDemands, *authors: int, n_present: int = N, now: float = 0) -> list[bool]:
    slot = np.array(authors, np.int32)
    return [bool(each) for each in shared.serve(slot, n_present=n_present, now=now)]


def holders(shared: SharedDemands, n: int = N) -> set[int]:
    held = shared.shared(np.arange(n, dtype=np.int32))
    return set(np.flatnonzero((held.k > 0) | (held.road_m > 0)).tolist())


def sharing(
    seed: int, demands: Mapping[int, Demand], *, n: int = N, shared_by: int = SHARED_BY
) -> SharedDemands:
    """Return demands by slot."""
    key = keys_of(seed, n)
    shared = SharedDemands(shared_by, key.take)
    shared.stated = {int(key[slot]): demand for slot, demand in demands.items()}
    return shared


def test_holders_hold_until_the_term_ends_whoever_leaves_and_then_all_leave_together() -> None:
    shared = sharing(5, {5: Demand(K, 0.0)})
    assert holders(shared) == set(), "nobody has been served yet"
    assert served(shared, 5) == [True]
    first = holders(shared)
    assert 5 in first
    assert len(first) > SHARED_BY / 2
    stated, shared.stated = shared.stated, {}
    for now in (0, TERM_S - 1):
        assert served(shared, now=now) == []
        assert holders(shared) == first, "also its author, who demands nothing any more"
    assert served(shared, now=TERM_S) == []
    assert holders(shared) == set()
    shared.stated = stated
    assert served(shared, 5, now=TERM_S) == [True]
    assert holders(shared) == first, "the same as before"
    assert served(shared, now=2 * TERM_S) == []
    assert holders(shared) == first, "its author was there in the term before"
    shared.stated = {}
    assert served(shared, now=3 * TERM_S) == []
    assert not shared


def test_an_author_that_asks_for_less_holds_what_it_asked_for_until_the_term_ends() -> None:
    shared = sharing(5, {5: Demand(K, 700.0)})
    served(shared, 5)
    [key] = shared.stated
    shared.stated = {key: Demand(K + 1, 0.0)}
    served(shared, 5, now=1)
    held = shared.shared(np.array([5], np.int32))
    assert (held.k.tolist(), held.road_m.tolist()) == ([K + 1], [700.0])
    served(shared, 5, now=TERM_S)
    assert shared.shared(np.array([5], np.int32)).road_m.tolist() == [0.0]


def test_who_shares_several_demands_demands_the_most_of_each() -> None:
    shared = sharing(7, {0: Demand(4, 900.0), 1: Demand(7, 100.0)}, n=3, shared_by=1)
    assert served(shared, 0, 1, n_present=3) == [True, True]
    held = shared.shared(np.arange(3, dtype=np.int32))
    assert (held.k.tolist(), held.road_m.tolist()) == ([4, 7, 0], [900.0, 100.0, 0.0])


def test_everybody_is_as_likely_to_be_a_companion() -> None:
    n, runs, shared_by = 48, 2000, 6
    drawn = np.zeros(n)
    for seed in range(runs):
        shared = sharing(seed, {0: Demand(K, 0.0)}, n=n, shared_by=shared_by)
        assert served(shared, 0, n_present=n) == [True]
        drawn[list(holders(shared, n))] += 1
    assert drawn[0] == runs
    mean = runs * (1.5 * shared_by - 1) / (n - 1)
    assert np.abs(drawn[1:] - mean).max() < 4 * np.sqrt(mean)


def test_demands_are_shared_by_half_of_the_devices_at_most_and_the_rest_is_not_met() -> None:
    shared = sharing(6, dict.fromkeys(range(20), Demand(K, 0.0)))
    found = served(shared, *range(20))
    assert sum(found) == int(0.5 * (N - 1) / (1.5 * SHARED_BY - 1)) == 7
    assert found == sorted(found, reverse=True), "who came first"
    assert len(holders(shared)) < 0.6 * N
    assert len(holders(shared)) > 4 * SHARED_BY, "each demand has companions of its own"


def test_of_one_publisher_not_all_demands_are_met_while_others_want_some() -> None:
    shared, key = sharing(6, dict.fromkeys(range(20), Demand(K, 0.0))), keys_of(6)
    two = SharedDemands(SHARED_BY, key.take, lambda slot: key[slot // 10])
    two.stated = shared.stated
    assert sum(served(two, *range(10))) == 1
    assert sum(served(two, *range(10, 20))) == 1
    assert served(two, 0, 10) == [True, True]


def test_holders_grow_with_a_fleet_that_shrinks_until_it_is_too_small() -> None:
    shared = sharing(6, {5: Demand(K, 0.0)})
    assert served(shared, 5, n_present=1000) == [True]
    few = len(holders(shared))
    assert served(shared, 5, n_present=N) == [True]
    assert len(holders(shared)) > few
    assert served(shared, 5, n_present=8) == [False]


def test_demands_go_on_alike_from_a_state() -> None:
    shared, other = sharing(6, {5: Demand(K, 9.0)}), sharing(6, {})
    served(shared, 5)
    other.restore(unpack(pack(shared.state())))
    assert holders(other) == holders(shared)
    assert other.state() == shared.state()


@pytest.mark.compiled
def test_who_follows_all_groups_cannot_tell_who_chose() -> None:
    """The adversary knows who is in each group, and takes the one that has most company.

    Beside it two controls, in a third of the runs: the choice not shared, and nobody has chosen.
    """
    n, n_controls, hits = 48, 16, defaultdict[str, float](float)
    for seed in range(n):
        chooser = int(np.random.default_rng(1000 + seed).integers(N))
        demand = {chooser: Demand(K, 0.0)}
        for name, stated, shared_by in (
            ("shared", demand, SHARED_BY), ("not shared", demand, 1), ("no choice", {}, SHARED_BY),
        ):  # fmt: skip
            if name != "shared" and seed >= n_controls:
                continue
            seen = company(drive(seed, stated, shared_by=shared_by))
            most = max(seen.values())
            best = [device for device, how in seen.items() if how == most]
            hits[name] += (chooser in best) / len(best)
    # 1 of 6 is right by chance; three standard errors are .16.
    assert hits["not shared"] / n_controls > 3 / SHARED_BY, "the attack works"
    assert hits["shared"] / n < 1 / SHARED_BY + 0.16
    assert hits["no choice"] / n_controls < 0.1
    print({name: round(hit, 2) for name, hit in hits.items()})  # noqa: T201
