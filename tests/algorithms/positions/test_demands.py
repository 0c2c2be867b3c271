"""Demands of devices: they are met, cost others little, and do not tell who has stated them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import pytest

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.atoms import cut_into_levels, lowest_level_with
from anonymizer.algorithms.positions.cloaks import Epochs
from anonymizer.algorithms.positions.demands import (
    UNMET,
    Demand,
    Demanded,
    SharedDemands,
)
from anonymizer.algorithms.positions.district_routing import KeyArray
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.spanning_forest import road_metres, spanning_forest
from anonymizer.domain.arrays import Int32Array
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
    shared = SharedDemands(shared_by, lambda slot: key[slot])
    by_key = {int(key[slot]): demand for slot, demand in stated.items()}
    here = steady(seed)
    for now in range(TICKS):
        demands = partial(shared.among, by_key) if from_tick <= now < until_tick else None
        driven.operator.demand(demands)
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
    driven = Drive(CITY, cloak)
    driven.operator.demand(
        lambda slot, _: Demanded(np.where(slot == 0, np.int32(6), np.int32(0)), np.zeros(len(slot)))
    )
    groups = driven.tick({device: device * 33 for device in range(12)}, now=0)
    assert sorted(m for group in groups for m in group.members) == list(range(12))
    [of_chooser] = [group for group in groups if 0 in group.members]
    assert of_chooser.k == 6
    assert len(of_chooser.members) >= 8


def test_a_demand_holds_from_the_next_group_on_and_until_it_is_withdrawn() -> None:
    released = drive(2, {5: Demand(K, 0.0)}, from_tick=25, until_tick=45)
    of_chooser = {group.now: group.k for group in released if 5 in group.members}
    assert all(k < K for now, k in of_chooser.items() if now < 25)
    assert all(k >= K for now, k in of_chooser.items() if 36 <= now < 45)
    assert all(k < K for now, k in of_chooser.items() if now >= 56)
    assert {group.now for group in released if 5 in group.members} >= set(range(57, TICKS))


def test_a_demand_that_nobody_can_meet_suppresses_only_those_who_share_it() -> None:
    everybody = company(drive(3, {}))
    left = company(drive(3, {5: Demand(N + 1, 0.0)}))
    assert 5 not in left
    assert len(everybody) - len(left) == SHARED_BY


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


def test_the_level_for_some_road_is_the_lowest_whose_every_atom_has_as_much() -> None:
    metres = road_metres(CITY)
    levels = cut_into_levels(CITY, spanning_forest(CITY), min_nodes=4, sizes=(1, 2, 4, 8))
    least = np.array([0.0, 100.0, 700.0, 2000.0, 1e9])
    shortest = [min(metres[at == atom].sum() for atom in set(at.tolist())) for at in levels.at]
    naive = [
        next((i for i in range(4) if all(s >= m for s in shortest[i:])), 4) for m in least.tolist()
    ]
    assert lowest_level_with(levels, metres, least).tolist() == naive


def test_companions_stay_the_same_and_leave_together() -> None:
    key = keys_of(5)
    everybody = np.arange(N, dtype=np.int32)

    def demanded(shared: SharedDemands, stated: dict[int, Demand], here: Int32Array) -> set[int]:
        found = shared.among({int(key[s]): d for s, d in stated.items()}, everybody, here)
        return set(np.flatnonzero(found.k >= K).tolist())

    shared = SharedDemands(SHARED_BY, lambda slot: key[slot])
    of_five = demanded(shared, {5: Demand(K, 0.0)}, everybody[:40])
    assert 5 in of_five
    assert len(of_five) == SHARED_BY
    assert of_five <= set(range(40))
    both = demanded(shared, {5: Demand(K, 0.0), 9: Demand(K + 1, 0.0)}, everybody)
    assert of_five < both
    assert demanded(shared, {9: Demand(K, 0.0)}, everybody) | of_five >= both
    assert demanded(shared, {}, everybody) == set()
    lone = shared.among({int(key[5]): Demand(K, 0.0)}, everybody, everybody[:4])
    assert np.flatnonzero(lone.k).tolist() == [5], "nobody demands anything with too few others"
    assert lone.k[5] == UNMET
    pairs = SharedDemands(2, lambda slot: key[slot])
    lone = pairs.among({int(key[5]): Demand(K, 0.0)}, everybody, everybody[5:6])
    assert lone.k.tolist() == [UNMET if slot == 5 else 0 for slot in range(N)]


def test_who_shares_several_demands_demands_the_most_of_each() -> None:
    key, everybody = keys_of(7, 3), np.arange(3, dtype=np.int32)
    stated = [(int(key[0]), Demand(4, 900.0)), (int(key[1]), Demand(7, 100.0))]
    for each in (stated, stated[::-1]):
        found = SharedDemands(3, key.take).among(dict(each), everybody, everybody)
        assert found.k.tolist() == [7] * 3, "three present suffice for three to share"
        assert found.road_m.tolist() == [900.0] * 3


def test_everybody_is_as_likely_to_be_a_companion() -> None:
    n, runs, shared_by = 12, 3000, 4
    drawn = np.zeros(n)
    everybody = np.arange(n, dtype=np.int32)
    for seed in range(runs):
        key = keys_of(seed, n)
        shared = SharedDemands(shared_by, key.take)
        found = shared.among({int(key[0]): Demand(K, 0.0)}, everybody, everybody)
        drawn += found.k > 0
    assert drawn[0] == runs
    mean = runs * (shared_by - 1) / (n - 1)
    assert np.abs(drawn[1:] - mean).max() < 4 * np.sqrt(mean)


def test_each_demand_has_companions_of_its_own() -> None:
    """Else who shares several of them was drawn, and who shares one alone has stated it."""
    key, everybody = keys_of(6), np.arange(N, dtype=np.int32)
    shared = SharedDemands(SHARED_BY, key.take)
    stated = {int(key[slot]): Demand(K, 0.0) for slot in range(10)}
    assert np.count_nonzero(shared.among(stated, everybody, everybody).k) > 4 * SHARED_BY


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
