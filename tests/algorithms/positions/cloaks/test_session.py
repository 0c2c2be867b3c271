"""The `session` cloak: what members of a group share over time, and how groups begin and end."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.atoms import Atoms, Company, cut_into_atoms, shared_levels
from anonymizer.algorithms.positions.cloaks import Epochs
from anonymizer.algorithms.positions.cloaks.beats import beat_of
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.spanning_forest import fold, spanning_forest
from anonymizer.domain.arrays import starts_of
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.networks import load_network
from anonymizer.pipeline.devices import DeviceTable
from tests import naive
from tests.algorithms.positions.cloaks.driving import (
    TWO,
    Drive,
    Shared,
    Where,
    session_cloak,
    snapshot_cloak,
    traffic,
)
from tests.examples import many
from tests.graphs import network_of, two_islands

GRID = load_network("grid:5x5")
WIDE = load_network("grid:12x12")
CITY = load_network("city:400")
RULE = DensityRule(steps=(4, 10), values=(6, 4, 2))
LENGTH_S = 20.0
SETTLE_S = 2.0
Life = tuple[int, int]
"""Slot and version of a pseudonym."""


class Days:
    """Five epochs of traffic, and the releases made from it."""

    def __init__(self, network: RoadNetwork, n_devices: int, n_cells: int) -> None:
        self.n_cells = n_cells
        self.min_nodes = 4
        cloak = session_cloak(
            network,
            rule=RULE,
            epochs=Epochs(n_cells, SETTLE_S),
            min_nodes=self.min_nodes,
            pace=Pace(ttl_s=30, epoch_s=LENGTH_S),
        )
        self.drive = Drive(network, cloak, ttl_s=30)
        self.reports: list[Where] = []
        self.outcomes: list[dict[int, str]] = []
        for now, where in enumerate(islice(traffic(network, n_devices, seed=9, says=0.5), 100)):
            self.drive.tick(where, now=now)
            self.reports.append(where)
            self.outcomes.append(dict(zip(where, self.drive.outcomes, strict=True)))

    @property
    def released(self) -> list[Shared]:
        return self.drive.released

    def ticks(self) -> list[list[Shared]]:
        """Return the groups of each tick."""
        n_ticks = len(self.reports)
        return [[one for one in self.released if one.now == now] for now in range(n_ticks)]

    def lives(self) -> dict[Life, list[Shared]]:
        """Return all that each pseudonym published, in order."""
        lives: defaultdict[Life, list[Shared]] = defaultdict(list)
        for shared in self.released:
            for life in shared.lives:
                lives[life].append(shared)
        return lives

    def births(self) -> list[float]:
        """Return when each group published first."""
        return [
            life[0].now for life in {lived[0]: lived for lived in self.lives().values()}.values()
        ]


@pytest.fixture(
    scope="module",
    params=[(WIDE, 150, 4), (CITY, 200, 1), (CITY, 200, 4)],
    ids=["grid", "city at once", "city in cells"],
)
def days(request: pytest.FixtureRequest) -> Days:
    days = Days(*request.param)
    assert len(days.lives()) > 200, "too few pseudonyms to test anything"
    return days


def test_every_pseudonym_shares_its_whole_life_with_k_minus_one_others(days: Days) -> None:
    twins: defaultdict[Sequence[tuple[float, tuple[int, ...]]], int] = defaultdict(int)
    published = {
        life: tuple((one.now, one.region) for one in lived) for life, lived in days.lives().items()
    }
    for transcript in published.values():
        twins[transcript] += 1
    for life, lived in days.lives().items():
        assert twins[published[life]] >= max(one.k for one in lived) >= RULE.floor


def test_no_two_groups_of_a_tick_share_a_device(days: Days) -> None:
    for groups in days.ticks():
        members = [m for group in groups for m in group.members]
        assert len(members) == len(set(members))


def test_a_device_has_one_pseudonym_at_a_time_and_none_comes_back(days: Days) -> None:
    borne: defaultdict[int, list[int]] = defaultdict(list)
    for shared in days.released:
        for slot, version in shared.lives:
            borne[slot].append(version)
    for versions in borne.values():
        assert versions == sorted(versions)


def test_members_are_the_same_from_birth_to_end(days: Days) -> None:
    for (_, version), lived in days.lives().items():
        assert len({(one.members, one.k) for one in lived}) == 1
        assert {v for one in lived for v in one.versions} == {version}


def test_a_group_lives_no_longer_than_an_epoch(days: Days) -> None:
    for lived in days.lives().values():
        assert lived[-1].now - lived[0].now < LENGTH_S


def test_a_group_publishes_when_a_member_reports_and_not_otherwise(days: Days) -> None:
    reporting = [{d for d, v in where.items() if v >= 0} for where in days.reports]
    for lived in days.lives().values():
        born, members = int(lived[0].now), set(lived[0].members)
        after = range(born + 1, int(lived[-1].now) + 1)
        assert [one.now for one in lived] == [born, *(t for t in after if members & reporting[t])]


def test_the_region_covers_the_last_node_of_every_member(days: Days) -> None:
    last: dict[int, int] = {}
    n_ghosts = 0
    for where, groups in zip(days.reports, days.ticks(), strict=True):
        last |= {d: v for d, v in where.items() if v >= 0}
        for group in groups:
            assert {last[m] for m in group.members} <= set(group.region)
            assert len(group.region) >= days.min_nodes
            n_ghosts += sum(m not in where for m in group.members)
    assert n_ghosts > 100, "too few ghosts to test anything"


def test_cells_begin_their_epochs_at_different_times(days: Days) -> None:
    phases = {birth % LENGTH_S for birth in days.births() if birth > SETTLE_S}
    assert phases == {LENGTH_S * i / days.n_cells for i in range(days.n_cells)}


def test_devices_in_a_group_are_published_and_all_others_are_held(days: Days) -> None:
    for outcomes, groups in zip(days.outcomes, days.ticks(), strict=True):
        members = {m for group in groups for m in group.members}
        for device, outcome in outcomes.items():
            if outcome != "SUPPRESSED__OFF_GRAPH":
                assert outcome == ("PUBLISHED" if device in members else "HELD")


def test_every_group_is_as_large_as_the_k_of_its_sparsest_member(days: Days) -> None:
    assert {group.k for group in days.released} <= {2, 4, 6}
    assert all(len(group.members) >= group.k for group in days.released)


def test_equal_inputs_give_equal_releases_whatever_the_order() -> None:
    epochs, pace = Epochs(4, SETTLE_S), Pace(ttl_s=120, epoch_s=LENGTH_S)
    one, other = (Drive(CITY, session_cloak(CITY, epochs=epochs, pace=pace)) for _ in range(2))
    for now, where in enumerate(islice(traffic(CITY, 100, seed=3, says=0.5), 45)):
        backwards = dict(reversed(list(where.items())))
        assert one.tick(where, now=now) == other.tick(backwards, now=now)
    assert one.released


def test_the_same_group_results_whichever_member_reports() -> None:
    where = next(traffic(CITY, 60, seed=4, says=1.0))

    def after(reports: Where) -> list[Shared]:
        drive = Drive(CITY, session_cloak(CITY))
        drive.tick(where, now=0)
        return drive.tick(reports, now=1)

    born = Drive(CITY, session_cloak(CITY)).tick(where, now=0)
    assert len(born) > 5
    for group in born[:5]:
        assert [after({m: where[m]}) for m in group.members] == [
            [group._replace(now=1)] for _ in group.members
        ]


def a_pair(*, ttl_s: float = 100) -> Drive:
    """Return a drive in which devices 0 and 1 share a group from second 0, until second 60."""
    drive = Drive(GRID, session_cloak(GRID, pace=Pace(ttl_s=100, epoch_s=60)), ttl_s=ttl_s)
    [born] = drive.tick({0: 12, 1: 13}, now=0)
    assert (born.members, born.region) == ((0, 1), (12, 13))
    return drive


def test_a_silent_member_is_covered_at_its_last_node_until_its_group_ends() -> None:
    # Even if the operator's time to live for it is over.
    drive = a_pair(ttl_s=20)
    [group] = drive.tick({0: 7}, now=59)
    assert group.members == (0, 1)
    assert set(group.region) >= {7, 13}
    assert drive.outcomes == ["PUBLISHED"]
    assert drive.last.freed.tolist() == [], "another device must not get its slot meanwhile"


def test_a_ghost_ends_with_its_group_and_does_not_join_the_next() -> None:
    drive = a_pair(ttl_s=20)
    assert drive.tick({0: 7}, now=60) == []
    assert drive.outcomes == ["HELD"]
    drive.tick({2: 7}, now=61)
    assert drive.last.freed.tolist() == [1], "its slot is free when no pseudonym depends on it"
    [group] = drive.tick({0: 7, 2: 7}, now=120)
    assert sorted(group.members) == [0, 2]


@pytest.mark.parametrize(("heard_s", "joins"), [(19, False), (20, True), (45, True)])
def test_a_member_joins_the_next_group_only_if_the_group_ends_before_the_member_expires(
    heard_s: float, *, joins: bool
) -> None:
    drive = a_pair()
    drive.tick({1: 13}, now=heard_s)
    groups = drive.tick({0: 7}, now=60)
    assert [sorted(group.members) for group in groups] == ([[0, 1]] if joins else [])


@pytest.mark.parametrize("left_s", [1, 58])  # if it only paused at 58 s, it would join the next
def test_a_member_that_leaves_the_graph_stays_covered_at_its_last_node(left_s: float) -> None:
    drive = a_pair()
    assert drive.tick({1: -1}, now=left_s) == []
    assert drive.outcomes == ["SUPPRESSED__OFF_GRAPH"]
    [group] = drive.tick({0: 7}, now=59)
    assert set(group.region) >= {7, 13}
    assert drive.tick({0: 7}, now=60) == [], "it joins no new group"


def test_a_member_in_a_component_too_small_for_groups_is_covered_until_its_group_ends() -> None:
    network = two_islands()
    drive = Drive(network, session_cloak(network, min_nodes=2))
    drive.tick({0: 0, 1: 4}, now=0)
    [group] = drive.tick({0: 0, 1: 7}, now=1)
    assert drive.outcomes == ["PUBLISHED", "PUBLISHED"]
    assert set(group.region) >= {0, 7}
    assert drive.tick({0: 0, 1: 7}, now=60) == []
    assert drive.outcomes == ["HELD", "SUPPRESSED__REGION_TOO_SMALL"]
    assert drive.operator.n_waiting == 1, "only one of them waits for a group"


def test_a_member_in_another_component_is_covered_there() -> None:
    network = two_islands()
    drive = Drive(network, session_cloak(network, min_nodes=2))
    drive.tick({0: 0, 1: 4}, now=0)
    [group] = drive.tick({1: 6}, now=1)
    assert set(group.region) >= {0, 5, 6}
    assert drive.tick({0: 0, 1: 6}, now=60) == [], "a new group is within one component"


def test_newcomers_wait_for_the_next_epoch() -> None:
    drive = a_pair()
    for now in (1, 30, 59):
        [group] = drive.tick({0: 12, 1: 13, 2: 12, 3: 12}, now=now)
        assert group.members == (0, 1)
        assert drive.outcomes == ["PUBLISHED", "PUBLISHED", "HELD", "HELD"]
        assert drive.operator.n_waiting == 2
    groups = drive.tick({}, now=60)
    assert sorted(m for group in groups for m in group.members) == [0, 1, 2, 3]
    assert drive.operator.n_waiting == 0


def test_members_of_a_group_that_ends_join_a_new_one_wherever_they_are() -> None:
    road = load_network("grid:1x8")
    drive = Drive(road, session_cloak(road, epochs=Epochs(2, 0)))
    others = {d: 0 if d < 18 else 7 for d in range(10, 26)}

    def versions(now: float, *nodes: int) -> list[int]:
        groups = drive.tick({**others, 0: nodes[0], 1: nodes[1]}, now=now)
        return [group.versions[0] for group in groups if group.members == (0, 1)]

    # They move from the cell whose epochs begin on the minute to the one half a minute later.
    [first] = versions(0, 1, 2)
    assert versions(59, 5, 6) == [first]
    [second] = versions(60, 5, 6)
    assert versions(89, 5, 6) == [second]
    [third] = versions(90, 5, 6)
    assert first < second < third


def test_a_group_that_verification_refuses_is_retired_for_all_its_members_at_once() -> None:
    drive = Drive(GRID, session_cloak(GRID), k_floor=3)
    assert drive.tick({0: 12, 1: 13}, now=0) == []
    assert drive.outcomes == ["SUPPRESSED__UNVERIFIED"] * 2
    assert drive.tick({0: 12, 1: 13}, now=1) == []
    assert drive.outcomes == ["HELD", "HELD"]


def test_a_group_that_verification_refuses_ends_no_other() -> None:
    rule = DensityRule(steps=(4,), values=(3, 2))
    drive = Drive(WIDE, session_cloak(WIDE, rule=rule), k_floor=3)
    where = {**dict.fromkeys(range(6), 0), **dict.fromkeys((6, 7, 8), 143)}
    [born] = drive.tick(where, now=0)
    assert (born.k, born.members) == (3, (6, 7, 8))
    assert drive.outcomes == ["SUPPRESSED__UNVERIFIED"] * 6 + ["PUBLISHED"] * 3
    [again] = drive.tick(where, now=1)
    assert again.lives == born.lives


def test_where_there_are_too_few_devices_none_is_published() -> None:
    network = two_islands()
    drive = Drive(network, session_cloak(network))
    groups = drive.tick({0: 0, 1: 3, 2: 5, 3: 7}, now=0)
    assert [group.members for group in groups] == [(0, 1)]
    assert drive.outcomes == ["PUBLISHED", "PUBLISHED", "HELD", "HELD"]


@pytest.mark.parametrize(("n_devices", "sizes"), [(3, []), (4, [4]), (8, [4, 4])])
def test_groups_have_k_extra_members_beyond_k(n_devices: int, sizes: list[int]) -> None:
    drive = Drive(WIDE, session_cloak(WIDE, rule=TWO, k_extra=2))
    groups = drive.tick({d: 48 * (d // 3) + 4 * (d % 3) for d in range(n_devices)}, now=0)
    assert [len(group.members) for group in groups] == sizes
    assert {group.k for group in groups} <= {2}


def test_no_pseudonym_is_used_again_after_a_restart() -> None:
    def names(secret: bytes) -> set[str]:
        devices = DeviceTable(secret=secret, max_devices=100)
        slots = [devices.slot(f"device {i}") for i in range(50)]
        drive = Drive(CITY, session_cloak(CITY, pace=Pace(ttl_s=120, epoch_s=10)))
        named: set[str] = set()
        for now in range(25):
            for group in drive.tick({slot: slot * 3 for slot in slots}, now=now):
                named |= set(devices.pseudonyms(group.members, group.versions))
        return named

    before = names(b"drawn at one start")
    assert len(before) == 3 * 50
    assert not before & names(b"drawn at the next")


def test_the_first_groups_are_formed_after_the_first_devices_had_time_to_report() -> None:
    drive = Drive(GRID, session_cloak(GRID, epochs=Epochs(1, 5)))
    assert drive.tick({}, now=0.0) == [], "kernels are warmed long before"
    start = 1_800_000_030.0
    assert drive.tick({0: 12, 1: 12}, now=start) == []
    assert drive.tick({2: 12, 3: 12}, now=start + 4.9) == []
    assert drive.operator.n_waiting == 4
    groups = drive.tick({}, now=start + 5)
    assert sorted(m for group in groups for m in group.members) == [0, 1, 2, 3]
    again = drive.tick({}, now=start + 30)
    assert sorted(m for group in again for m in group.members) == [0, 1, 2, 3]
    assert not {v for g in groups for v in g.versions} & {v for g in again for v in g.versions}


def test_a_group_states_the_k_of_its_sparsest_member() -> None:
    drive = Drive(GRID, session_cloak(GRID, rule=RULE))
    [group] = drive.tick({0: 12, 1: 12, 2: 12, 3: 12, 4: 12, 5: 0}, now=0.0)
    assert (group.k, len(group.members)) == (6, 6)


def test_putting_the_clock_back_does_not_prolong_a_group() -> None:
    drive = a_pair()
    [born] = drive.released
    drive.tick({}, now=-1000.0)
    groups = drive.tick({}, now=-990.0)
    assert groups == []
    assert [one for one in drive.released if set(one.versions) & set(born.versions)] == [born]
    drive.tick({2: 3, 3: 3}, now=-961.0)
    assert [group.members for group in drive.tick({2: 3, 3: 3}, now=-960.0)][-1:] == [(2, 3)]


def test_a_cloak_that_has_lost_its_state_uses_no_number_again() -> None:
    def numbers(start: int) -> set[int]:
        drive = Drive(CITY, session_cloak(CITY, pace=Pace(ttl_s=120, epoch_s=1)))
        for i in range(4):
            drive.tick({device: 3 * device for device in range(50)}, now=start + i / 2)
        return {version for shared in drive.released for version in shared.versions}

    first, later = numbers(1_800_000_000), numbers(1_800_000_002)
    assert len(first) == len(later) > 40
    assert max(first) < min(later)


def shortened(at: int) -> list[Shared]:
    """Return what is released around the moment at which an epoch of 300 s becomes one of 30 s."""
    pace = Pace(ttl_s=60, epoch_s=30, follows=True)
    drive = Drive(WIDE, session_cloak(WIDE, pace=pace, beat_s=10), ttl_s=1000)
    everyone = np.arange(6, dtype=np.int32)
    for ts in (-310.0, -10.0):  # devices that report every 300 seconds
        pace.advance(everyone, np.full(6, ts), now=ts)
    holds: dict[Life, float] = {}
    for now in range(0, at + 21, 5):
        where = {0: 0, 2: 142, 3: 143}
        if now in {0, at - 70}:
            where[1] = 1  # and is then silent: in a short epoch it counts as absent after 75 s
        if now >= 50:
            where |= {4: 70, 5: 71}  # they wait for the end of the long epoch
        if now == at:
            for ts in (at - 10.0, float(at)):
                pace.advance(everyone, np.full(6, ts), now=ts)
        groups = drive.tick(where, now=now)
        holds = {life: until for life, until in holds.items() if until > now}
        until = drive.last.release.until
        assert until is not None
        for group, until_s in zip(groups, until.tolist(), strict=True):
            assert not {slot for slot, _ in holds} & set(group.members), "one pseudonym at a time"
            holds |= dict.fromkeys(group.lives, until_s)
    return [one for one in drive.released if one.now >= at - 10]


def test_groups_of_a_longer_epoch_end_after_one_more_beat_and_keep_what_they_have_said() -> None:
    released = shortened(100)
    assert [(one.now, one.members) for one in released if one.now < 120] == [
        (90, (2, 3)),
        (95, (0, 1)),
        (100, (2, 3)),
        (100, (4, 5)),
        (110, (4, 5)),
        (110, (2, 3)),
    ]
    old, still_old, new = [one.versions for one in released if one.members == (2, 3)][:3]
    assert old == still_old != new


def test_a_group_that_ends_soon_publishes_nothing_more_once_a_member_counts_as_absent() -> None:
    assert [(one.now, one.members) for one in shortened(280) if one.now < 300] == [
        (270, (2, 3)),
        (275, (0, 1)),
        (280, (2, 3)),
        (290, (2, 3)),
    ]


@pytest.mark.parametrize(("ttl_s", "lives"), [(65, True), (64, False)])
def test_groups_that_a_cloak_is_restored_with_end_if_its_time_to_live_is_too_short_for_them(
    ttl_s: float, *, lives: bool
) -> None:
    drive = Drive(GRID, session_cloak(GRID, pace=Pace(ttl_s=100, epoch_s=60)))
    drive.tick({1: 13}, now=-5)
    [born] = drive.tick({0: 12}, now=0)
    assert born.members == (0, 1)
    again = session_cloak(GRID, pace=Pace(ttl_s=ttl_s, epoch_s=60))
    again.restore(drive.cloak.state())
    density = drive.operator.density
    slot, node = np.array([0], np.int32), np.array([7], np.int32)
    density.advance(slot, np.array([1.0]), node)
    assert (again.cloak(density, slot, now=1.0).release.n_groups == 1) == lives


@many(3)
@given(
    st.floats(0, 2e9),
    st.sampled_from([0.1, 1.0, 33.3, 60.0, 3600.0]),
    st.sampled_from([1, 2, 4, 8, 64]),
)
def test_an_epoch_ends_after_now_and_within_its_length(
    now: float, length_s: float, n_cells: int
) -> None:
    epochs = Epochs(n_cells, 0)
    ends = epochs.ends(now, length_s)
    slack = 1e-6
    assert ((ends > now) & (ends <= now + length_s + slack)).all()
    # An end that has come is followed by one an epoch later, not by itself.
    for end in ends.tolist():
        assert (epochs.ends(end, length_s) > end).all()
        assert np.isclose(epochs.ends(end, length_s), end + length_s, atol=slack).any()


# Places: how large the atom of each member is.

SHARED = Company(place_devices=3, area_devices=4)


def company_in(atoms: Atoms, everybody: list[int], v: int) -> int:
    """Return the devices at a node, and the other nodes of its atom at which there are any."""
    inside = set(np.flatnonzero(atoms.at == atoms.at[v]).tolist())
    return everybody.count(v) + len(inside & set(everybody) - {v})


@pytest.mark.parametrize("n_devices", [12, 40, 200])
@pytest.mark.parametrize("n_parked", [0, 30])
def test_a_member_is_told_as_an_atom_in_which_it_has_enough_company_and_others_of_its_size(
    n_devices: int, n_parked: int
) -> None:
    asked = SHARED.where_many_stand()  # for all that anybody knows in the first minute
    rng = np.random.default_rng(n_devices)
    nodes = [*rng.integers(CITY.n_nodes, size=n_devices).tolist(), *[7] * n_parked]
    forest = spanning_forest(CITY)
    levels = [cut_into_atoms(forest, min_nodes=times * 4) for times in (1, 2, 4)]
    cloak = session_cloak(CITY, rule=RULE, min_nodes=4, company=SHARED)
    groups = Drive(CITY, cloak).tick(dict(enumerate(nodes)), now=0)
    told = dict(zip(cloak._groups.member.tolist(), cloak._groups.level.tolist(), strict=True))
    everybody = [nodes[m] for m in told]
    assert groups
    for group in groups:
        for m in group.members:
            enough = [
                company_in(levels[i], everybody, nodes[m]) >= asked.place_devices
                and company_in(levels[2], everybody, nodes[m]) >= asked.area_devices
                for i in range(3)
            ]
            assert told[m] >= (enough.index(True) if True in enough else 2)
            atoms = levels[told[m]]
            a = atoms.at[nodes[m]]
            whole = atoms.node[atoms.first_node_of[a] : atoms.first_node_of[a + 1]]
            assert set(whole.tolist()) <= set(group.region)
        n_with = Counter(told[m] for m in group.members)
        assert min(n_with.values()) >= min(asked.place_devices, len(group.members))
    assert len(set(told.values())) > 1 or n_devices < 200


def test_a_full_car_park_lends_its_company_to_nobody_outside() -> None:
    cloak = session_cloak(WIDE, min_nodes=4, company=SHARED)
    Drive(WIDE, cloak).tick({**dict.fromkeys(range(9), 0), 9: 143}, now=0)
    told = dict(zip(cloak._groups.member.tolist(), cloak._groups.level.tolist(), strict=True))
    # The one that is in its group has a large place, too, which would else be known to be its own.
    assert Counter(told[m] for m in range(9)) == {0: 8, 2: 1}
    assert told[9] == 2


def test_devices_within_k_extra_are_not_those_of_its_size() -> None:
    rule = DensityRule(steps=(), values=(8,))
    cloak = session_cloak(WIDE, rule=rule, min_nodes=4, company=SHARED, k_extra=2)
    Drive(WIDE, cloak).tick({**dict.fromkeys(range(11), 0), 11: 143}, now=0)
    assert Counter(cloak._groups.level.tolist()) == {0: 6, 2: 6}


N_LARGEST = len(cut_into_atoms(spanning_forest(CITY), min_nodes=16).first_node_of) - 1
FEW = int(np.ceil(1.5 * N_LARGEST)) - 1


@pytest.mark.parametrize("mode", ["session", "snapshot"])
@pytest.mark.parametrize("k_extra", [0, 2])
def test_devices_so_few_that_the_largest_places_give_no_company_have_wider_ones(
    mode: str, k_extra: int
) -> None:
    forest = spanning_forest(CITY)
    largest, wider = (cut_into_atoms(forest, min_nodes=n) for n in (16, 24))
    apart = np.random.default_rng(3).permutation(CITY.n_nodes)

    def told(n_devices: int) -> set[str]:
        make = session_cloak if mode == "session" else snapshot_cloak
        # Nobody has so much company: all have places of the highest level.
        cloak = make(CITY, min_nodes=4, company=Company(99), k_extra=k_extra, wider=1.5)
        groups = Drive(CITY, cloak).tick(dict(enumerate(apart[:n_devices].tolist())), now=0)
        regions = {m: set(group.region) for group in groups for m in group.members}
        assert len(regions) == n_devices

        def whole(atoms: Atoms) -> bool:
            return all(
                set(np.flatnonzero(atoms.at == atoms.at[apart[m]]).tolist()) <= region
                for m, region in regions.items()
            )

        return {name for name, atoms in (("largest", largest), ("wider", wider)) if whole(atoms)}

    # Devices of the adversary's own make them no smaller.
    assert "wider" in told(FEW + k_extra)
    assert told(FEW + k_extra + 1) == {"largest"}


def test_few_devices_on_one_network_make_no_place_wider_on_another() -> None:
    two = load_network("city:400 + grid:20x20")
    where = {d: d for d in range(FEW)} | {d: 400 + d for d in range(FEW, 3 * FEW)}
    cloak = session_cloak(two, min_nodes=4, company=Company(99), wider=1.5)
    Drive(two, cloak).tick(where, now=0)
    told = dict(zip(cloak._groups.member.tolist(), cloak._groups.level.tolist(), strict=True))
    assert {told[d] for d in range(FEW)} == {3}
    assert {told[d] for d in range(FEW, 3 * FEW)} == {2}


def naive_shared(levels: list[int], least: list[int]) -> list[int]:
    """Return the levels of one group, from high to low, in blocks of at least so many."""
    left, shared = sorted(levels, reverse=True), list[int]()
    while left:
        n = max(left.count(left[0]), least[left[0]])
        n = len(left) if len(left) - n < least[left[0]] else n
        shared += [left[0]] * n
        del left[:n]
    return shared


@many(3)
@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=12), max_size=4),
    st.lists(st.integers(1, 5), min_size=6, max_size=6).map(sorted),
)
def test_levels_are_raised_until_enough_members_of_a_group_have_each(
    groups: list[list[int]], least: list[int]
) -> None:
    first = starts_of(np.array([len(group) for group in groups], np.int64))
    level = np.array([level for group in groups for level in group], np.int64)
    shared = shared_levels(level, first, np.array(least))
    assert (shared >= level).all()
    for g, group in enumerate(groups):
        found = shared[first[g] : first[g + 1]].tolist()
        assert sorted(found, reverse=True) == naive_shared(group, least)


def test_devices_within_k_extra_make_no_place_smaller() -> None:
    """Five devices of the adversary stand around its victim and join its group."""

    def levels(k_extra: int, *sybils: int) -> list[int]:
        rng = np.random.default_rng(3)
        nodes = rng.integers(CITY.n_nodes, size=60).tolist()
        rule = DensityRule(steps=(), values=(6,))
        cloak = session_cloak(CITY, rule=rule, min_nodes=4, company=Company(2, 3), k_extra=k_extra)
        Drive(CITY, cloak).tick(dict(enumerate([*nodes, *sybils])), now=0)
        told = dict(zip(cloak._groups.member.tolist(), cloak._groups.level.tolist(), strict=True))
        return [told[m] for m in range(60)]

    honest = levels(0)
    for v in range(0, CITY.n_nodes, 40):
        around = levels(5, *CITY.neighbour_of[CITY.first_arc_of[v] :][:5].tolist())
        assert all(now >= before for now, before in zip(around, honest, strict=True))
    assert levels(0, *range(100, 105)) != honest


@pytest.mark.parametrize("seed", range(8))
def test_devices_within_k_extra_that_crowd_around_a_victim_take_nobody_s_room(seed: int) -> None:
    rng, rule, k_extra = np.random.default_rng(seed), DensityRule((4, 10), (6, 4, 2)), 5
    nodes = rng.integers(CITY.n_nodes, size=60).tolist()
    first, end = CITY.first_arc_of[nodes[0] : nodes[0] + 2].tolist()
    sybils = rng.choice([nodes[0], *CITY.neighbour_of[first:end].tolist()], k_extra).tolist()
    cloak = session_cloak(CITY, rule=rule, k_extra=k_extra)
    groups = Drive(CITY, cloak).tick(dict(enumerate([*nodes, *sybils])), now=0)
    [group] = [each for each in groups if 0 in each.members]
    near = [nodes[0], *CITY.neighbour_of[first:end].tolist()]
    n_near = sum(node in near for node in nodes)
    k = naive.k_for(n_near, steps=rule.steps, values=rule.values, floor=rule.floor)
    assert group.k >= k
    assert sum(member < len(nodes) for member in group.members) >= k + k_extra


def test_sparse_groups_have_larger_places_than_dense_ones() -> None:
    def nodes_per_member(n_devices: int) -> float:
        rng = np.random.default_rng(5)
        where = {d: int(v) for d, v in enumerate(rng.integers(CITY.n_nodes, size=n_devices))}
        cloak = session_cloak(CITY, min_nodes=4, company=SHARED)
        groups = Drive(CITY, cloak).tick(where, now=0)
        return float(np.mean([len(group.region) / len(group.members) for group in groups]))

    assert nodes_per_member(12) > 2 * nodes_per_member(400)


def test_places_keep_their_size_until_the_group_ends() -> None:
    cloak = session_cloak(WIDE, min_nodes=4, company=SHARED)
    drive = Drive(WIDE, cloak)
    [alone] = drive.tick({0: 0, 1: 143}, now=0)
    [crowded] = drive.tick({0: 0, 1: 143, **dict.fromkeys(range(2, 40), 0)}, now=1)
    assert crowded.region == alone.region


# The beat: when a group publishes.


def beating(says: float, *, beat_s: float = 6.0) -> Drive:
    """Return a drive over 100 seconds whose groups have a beat."""
    cloak = session_cloak(
        CITY,
        rule=RULE,
        epochs=Epochs(4, SETTLE_S),
        pace=Pace(ttl_s=40, epoch_s=LENGTH_S),
        beat_s=beat_s,
    )
    drive = Drive(CITY, cloak, ttl_s=40)
    last: dict[int, int] = {}
    for now, where in enumerate(islice(traffic(CITY, 200, seed=9, says=says), 100)):
        groups = drive.tick(where, now=now)
        last |= {d: v for d, v in where.items() if v >= 0}
        members = {m for group in groups for m in group.members}
        for group in groups:
            assert {last[m] for m in group.members} <= set(group.region)
        for device, outcome in zip(where, drive.outcomes, strict=True):
            if outcome != "SUPPRESSED__OFF_GRAPH":
                assert outcome == ("PUBLISHED" if device in members else "HELD")
    return drive


@pytest.mark.parametrize("says", [1.0, 0.3])
def test_a_group_publishes_on_its_beat_whether_its_members_report_or_not(says: float) -> None:
    lives: defaultdict[Life, list[float]] = defaultdict(list)
    for shared in beating(says).released:
        for life in shared.lives:
            lives[life].append(shared.now)
    assert len(lives) > 200
    # A life of 20 seconds has room for three beats of 6 seconds, one of 15 for two.
    for times in lives.values():
        assert set(np.diff(times).tolist()) <= {6.0, 7.0, 8.0}
    assert {len(times) for times in lives.values()} >= {2, 3}
    assert max(len(times) for times in lives.values()) == 3


def beats_of_groups(
    where: Where,
    *,
    rule: DensityRule = TWO,
    moves: Collection[int] = (),
    until: int = 190,
    k_extra: int = 0,
) -> dict[tuple[int, ...], set[float]]:
    """Return the seconds between the publications of each group; a beat has ten.

    Groups are formed every 200 seconds. `moves`: devices that are elsewhere each time they report,
    until there.
    """
    cloak = session_cloak(
        WIDE,
        rule=rule,
        pace=Pace(ttl_s=900, epoch_s=200),
        beat_s=10,
        company=Company(place_devices=2),
        sizes=(1, 1.5, 2, 3, 4, 36),
        k_extra=k_extra,
    )
    drive = Drive(WIDE, cloak, ttl_s=900)
    begin = 1000.0
    for now in range(390):
        there = {d: (v + 7 * now) % 144 for d, v in where.items() if d in moves and now < until}
        drive.tick({**where, **there}, now=begin + now)
    published: defaultdict[tuple[int, ...], list[float]] = defaultdict(list)
    for shared in drive.released:
        if shared.now >= begin + 200:
            published[tuple(sorted(shared.members))].append(shared.now)
    return {members: set(np.diff(times).tolist()) for members, times in published.items()}


def test_a_group_publishes_more_rarely_the_larger_its_places_are() -> None:
    # Three devices share the smallest place; the three others have no company in any.
    where = {**dict.fromkeys(range(3), 0), 3: 65, 4: 104, 5: 143}
    found = beats_of_groups(where, rule=DensityRule(steps=(), values=(3,)))
    assert found == {(0, 1, 2): {10.0}, (3, 4, 5): {67.0}}


def test_the_loneliest_member_decides_how_often_its_group_publishes() -> None:
    # Eleven in a car park, and one without company.
    where = {**dict.fromkeys(range(11), 0), 11: 143}
    found = beats_of_groups(where, rule=DensityRule(steps=(), values=(12,)))
    assert found == {tuple(range(12)): {67.0}}


SCATTERED = dict(enumerate((0, 13, 26, 39, 52, 65, 78, 91, 104, 143)))
"""Ten devices that share only the largest places."""
ALL = tuple(SCATTERED)


@pytest.mark.parametrize(("n_moving", "beats"), [(0, {67.0}), (7, {67.0}), (8, {20.0})])
def test_groups_publish_sooner_where_nearly_all_devices_move(
    n_moving: int, beats: set[float]
) -> None:
    rule = DensityRule(steps=(), values=(10,))
    assert beats_of_groups(SCATTERED, rule=rule, moves=range(n_moving)) == {ALL: beats}


def test_where_devices_are_too_few_for_the_largest_places_none_are_published_sooner() -> None:
    few = {d: SCATTERED[d] for d in (0, 5, 9)}
    rule = DensityRule(steps=(), values=(3,))
    assert beats_of_groups(few, rule=rule, moves=few) == {(0, 5, 9): {67.0}}


def test_those_who_move_among_many_that_stand_still_are_published_as_rarely() -> None:
    # Two groups of five; of those of the second one nobody moves.
    rule = DensityRule(steps=(), values=(5,))
    west_moves = beats_of_groups(SCATTERED, rule=rule, moves=range(5))
    assert len(west_moves) == 2
    assert set.union(*west_moves.values()) == {66.0, 67.0}


@pytest.mark.parametrize(("until", "beats"), [(135, {67.0}), (145, {20.0})])
def test_who_has_stood_still_for_a_minute_moves_no_more(until: int, beats: set[float]) -> None:
    rule = DensityRule(steps=(), values=(10,))
    assert beats_of_groups(SCATTERED, rule=rule, moves=ALL, until=until) == {ALL: beats}


@pytest.mark.parametrize(("n_moving", "beats"), [(9, {67.0}), (10, {20.0})])
def test_devices_within_k_extra_that_move_make_no_beat_shorter(
    n_moving: int, beats: set[float]
) -> None:
    rule = DensityRule(steps=(), values=(8,))
    found = beats_of_groups(SCATTERED, rule=rule, moves=range(n_moving), k_extra=2)
    assert found == {ALL: beats}


@pytest.mark.parametrize(
    ("n_moving", "k_extra", "times"), [(9, 0, 36.0), (10, 0, 1.0), (9, 2, 36.0), (10, 2, 1.0)]
)
def test_where_many_stand_a_place_needs_half_as_many_devices_more(
    n_moving: int, k_extra: int, times: float
) -> None:
    # Four (with those of the adversary, six) at each of three nodes when groups are formed.
    where = {d: (0, 65, 143)[d % 3] for d in range(12 + 3 * k_extra)}
    movers = [*range(n_moving), *range(12, 12 + 3 * k_extra)]
    cloak = session_cloak(
        WIDE,
        rule=DensityRule(steps=(), values=(4,)),
        pace=Pace(ttl_s=900, epoch_s=200),
        beat_s=10,
        company=Company(place_devices=4),
        sizes=(1, 36),
        k_extra=k_extra,
    )
    drive = Drive(WIDE, cloak, ttl_s=900)
    for now in range(202):
        away = {d: (where[d] + 7 * now) % 144 for d in movers if now < 150}
        drive.tick({**where, **away}, now=1000.0 + now)
    levels = np.unique(cloak._levels.times[cloak._groups.level])
    assert levels.tolist() == [times]


@pytest.mark.parametrize(("size", "alike"), [(12.0, 2), (36.0, 4)])
def test_half_as_many_members_more_share_the_size_of_a_large_place(size: float, alike: int) -> None:
    # Three at one node when groups are formed, and one far away; all are known to move.
    where = {0: 0, 1: 0, 2: 0, 3: 143}
    cloak = session_cloak(
        WIDE,
        rule=DensityRule(steps=(), values=(4,)),
        pace=Pace(ttl_s=900, epoch_s=200),
        beat_s=10,
        company=Company(place_devices=2),
        sizes=(1, size),
    )
    drive = Drive(WIDE, cloak, ttl_s=900)
    for now in range(202):
        away = {d: (v + 7 * now) % 144 for d, v in where.items() if now < 150}
        drive.tick({**where, **away}, now=1000.0 + now)
    sizes = cloak._levels.times[cloak._groups.level].tolist()
    assert (sizes.count(size), sizes.count(1.0)) == (alike, 4 - alike)


def test_in_the_first_minute_nobody_is_known_to_move() -> None:
    cloak = session_cloak(
        WIDE,
        rule=DensityRule(steps=(), values=(10,)),
        pace=Pace(ttl_s=900, epoch_s=200),
        beat_s=10,
        company=Company(place_devices=2),
        sizes=(1, 1.5, 2, 3, 4, 36),
    )
    drive = Drive(WIDE, cloak, ttl_s=900)
    for now in range(400):
        drive.tick({d: (v + 7 * now) % 144 for d, v in SCATTERED.items()}, now=1000 + now)
    times = np.array([shared.now for shared in drive.released])
    first_life = times[times < 1200]
    assert set(np.diff(first_life).tolist()) == {67.0}
    assert set(np.diff(times[times >= 1200]).tolist()) == {20.0}


@pytest.mark.parametrize(
    ("every_s", "step", "id_age_s", "found"),
    [
        (10, 7, np.inf, (False, True)),
        (10, 0, np.inf, (True, False)),
        (90, 7, np.inf, (False, False)),  # in between, nobody knows whether they move
        (90, 0, np.inf, (True, False)),
        (10, 7, 100, (False, True)),
        (10, 7, 30, (True, False)),  # by another id they may stand where they are for hours
    ],
)
def test_who_is_not_known_to_move_counts_as_standing(
    every_s: int, step: int, id_age_s: float, found: tuple[bool, bool]
) -> None:
    cloak = session_cloak(
        WIDE, pace=Pace(ttl_s=900, epoch_s=200), company=Company(2), sizes=(1, 36)
    )
    drive = Drive(WIDE, cloak, ttl_s=900)
    for tick in range(6 + 360 // every_s):
        now = 1000.0 + every_s * tick
        drive.tick({d: (v + step * tick) % 144 for d, v in SCATTERED.items()}, now=now)
    density, published = drive.operator.density, np.arange(len(SCATTERED), dtype=np.int32)
    now += 0.9 * every_s
    density.since_of[published] = now - id_age_s
    paces = cloak._paces(density, published, now)
    assert (paces.many_stand.tolist(), paces.nearly_all_move.tolist()) == ([found[0]], [found[1]])


def test_nobody_is_known_to_move_before_there_was_time_to_report_again() -> None:
    pace = Pace(ttl_s=900, epoch_s=200, follows=True)  # has seen nothing: every 300 seconds
    cloak = session_cloak(WIDE, pace=pace, company=Company(2), sizes=(1, 36))
    drive = Drive(WIDE, cloak, ttl_s=900)
    published = np.arange(len(SCATTERED), dtype=np.int32)
    found = []
    for now in range(1000, 1400, 10):
        drive.tick({d: (v + 7 * now) % 144 for d, v in SCATTERED.items()}, now=now)
        found.append(cloak._paces(drive.operator.density, published, now).many_stand.tolist())
    assert found == [[True]] * 30 + [[False]] * 10


@given(
    times=st.lists(st.sampled_from([1.0, 2.0, 4.0, 9.0, 16.0, 64.0]), min_size=1),
    beat_s=st.sampled_from([0.0, 2.0, 6.0]),
)
def test_no_group_whose_members_move_publishes_more_rarely_nor_sooner_than_the_smallest_places(
    times: list[float], beat_s: float
) -> None:
    moving = beat_of(beat_s, np.array(times), moves=True)
    assert (beat_s <= moving).all()
    assert (moving <= beat_of(beat_s, np.array(times))).all()


def test_groups_that_are_formed_together_take_turns_so_that_no_tick_publishes_them_all() -> None:
    n_published = Counter(shared.now for shared in beating(1.0).released)
    # Six seconds of a beat, in each of which about as many groups publish.
    alive = sum(n_published.values()) * 6 / (100 - SETTLE_S)
    assert max(n_published.values()) < alive / 3
    assert min(n_published[now] for now in range(10, 100)) > alive / 40


def test_a_group_that_ends_soon_publishes_before_its_end() -> None:
    pace = Pace(ttl_s=40, epoch_s=LENGTH_S)
    cloak = session_cloak(CITY, epochs=Epochs(2, 0), pace=pace, beat_s=LENGTH_S)
    drive = Drive(CITY, cloak, ttl_s=40)
    drive.tick({device: 3 * device for device in range(100)}, now=3)
    groups = cloak._groups
    assert set(groups.ends_at) == {10, 20}
    short_lived = set(groups.only(groups.ends_at == 10).member.tolist())
    for now in np.arange(3.5, 10, 0.5):
        drive.tick({}, now=now)
    assert short_lived <= {m for shared in drive.released for m, _ in shared.lives}


def test_a_beat_that_a_late_tick_missed_is_made_up_once() -> None:
    drive = Drive(GRID, session_cloak(GRID, beat_s=10))
    drive.tick({0: 12, 1: 13}, now=0)
    published = [now for now in (9, 10, 11, 35, 36, 40, 41) if drive.tick({0: 12}, now=now)]
    assert published == [10, 35, 40]


def test_putting_the_clock_back_does_not_silence_a_beat() -> None:
    drive = Drive(GRID, session_cloak(GRID, pace=Pace(ttl_s=9000, epoch_s=2000), beat_s=10))
    start = 1000.0
    drive.tick({}, now=start)
    drive.tick({0: 12, 1: 13}, now=start)
    assert drive.tick({}, now=start - 500)


# Who is not published.

N_CITY = CITY.n_nodes


def with_side_road() -> RoadNetwork:
    """Return the city, and a road of twelve nodes that leads nowhere else."""
    tail = np.repeat(np.arange(N_CITY), np.diff(CITY.first_arc_of))
    city = [(u, v) for u, v in zip(tail.tolist(), CITY.neighbour_of.tolist(), strict=True) if u < v]
    return network_of(N_CITY + 12, [*city, *((N_CITY + v, N_CITY + v + 1) for v in range(11))])


SIDE_ROAD = with_side_road()


@pytest.mark.parametrize(("n_beside", "beats"), [(0, {33.0, 34.0}), (9, {33.0, 34.0})])
def test_who_is_not_published_makes_no_beat_longer(n_beside: int, beats: set[float]) -> None:
    cloak = session_cloak(
        SIDE_ROAD,
        rule=DensityRule(steps=(), values=(10,)),
        pace=Pace(ttl_s=900, epoch_s=200),
        beat_s=10,
        company=Company(place_devices=2),
        sizes=(1, 100),
    )
    drive = Drive(SIDE_ROAD, cloak, ttl_s=900)
    for now in range(390):
        where = {d: (v + 7 * now) % N_CITY for d, v in SCATTERED.items()}
        beside = {10 + d: N_CITY + d for d in range(n_beside)}
        drive.tick(where | beside, now=1000.0 + now)
    times = sorted({shared.now for shared in drive.released if shared.now >= 1200})
    assert set(np.diff(times).tolist()) == beats
    assert {m for shared in drive.released for m in shared.members} == set(SCATTERED)


def sent_beside(unpublished: Sequence[int], *, n: int, first: bool) -> list[Shared]:
    """Return what is sent, and when, about n devices in a city.

    Parameters
    ----------
    unpublished
        Nodes of other devices, that stand on the side road. They are too few for a group.
    first
        Whether they come before all others in the order of devices.
    """
    network = with_side_road()
    rule = DensityRule(steps=(4, 10), values=(6, 4, 2))
    cloak = session_cloak(
        network,
        rule=rule,
        epochs=Epochs(4, SETTLE_S),
        min_nodes=4,
        pace=Pace(ttl_s=40, epoch_s=LENGTH_S),
        beat_s=6.0,
        company=SHARED,
    )
    drive = Drive(network, cloak, ttl_s=40)
    before = len(unpublished) if first else 0
    others = range(len(unpublished)) if first else range(n, n + len(unpublished))
    for now, where in enumerate(islice(traffic(CITY, n, seed=9, says=1.0), 70)):
        reports = {d + before: v for d, v in where.items()}
        drive.tick(reports | dict(zip(others, unpublished, strict=True)), now=now)
    assert not {m for group in drive.released for m in group.members} & set(others)
    return [g._replace(members=tuple(m - before for m in g.members)) for g in drive.released]


@pytest.mark.parametrize("n", [90, 145, 200])
@pytest.mark.parametrize("n_more", [1, 3])
@pytest.mark.parametrize("first", [True, False])
def test_a_device_that_is_not_published_changes_nothing_that_is_sent_nor_when(
    n: int, n_more: int, *, first: bool
) -> None:
    alone = sent_beside([], n=n, first=False)
    assert len(alone) > 40
    assert sent_beside(list(range(N_CITY, N_CITY + n_more)), n=n, first=first) == alone


@pytest.mark.parametrize("k_extra", [0, 1])
def test_who_has_fallen_silent_changes_no_group_that_is_formed_without_it(k_extra: int) -> None:
    def sent(node: int | None) -> list[Shared]:
        cloak = session_cloak(
            WIDE,
            rule=DensityRule(steps=(4,), values=(6, 3)),
            epochs=Epochs(1, SETTLE_S),
            pace=Pace(ttl_s=45, epoch_s=20),
            k_extra=k_extra,
        )
        drive = Drive(WIDE, cloak, ttl_s=45)
        others = dict(enumerate([13] * (3 + k_extra) + [16] * 5 + [100] * 5 + [130] * 5))
        n = len(others)
        for now in range(80):
            says = {n: node} if now == 18 and node is not None else {}
            drive.tick(others | says, now=now)
        late = [one for one in drive.released if one.now >= 60]
        assert not any(n in one.members for one in late)
        return late

    assert len(sent(None)) > 20
    assert sent(13) == sent(None)


# Cells that too few devices are in.


@many(3)
@given(
    st.lists(st.integers(0, 30), min_size=8, max_size=8) | st.lists(st.just(0), min_size=8),
    st.integers(1, 40),
)
def test_every_cell_with_an_epoch_of_its_own_has_enough_devices(
    n_in: list[int], least: int
) -> None:
    n_in = n_in[:8]
    follows = fold(np.array(n_in), least)
    assert (follows[follows] == follows).all()
    devices = np.bincount(follows, n_in, 8)
    leading = np.unique(follows)
    assert len(leading) == 1 or (devices[leading] >= least).all()


@pytest.mark.parametrize(
    ("n_in", "follows"),
    [
        ([9, 9, 9, 9], [0, 1, 2, 3]),
        ([1, 9, 9, 9], [1, 1, 2, 3]),
        ([1, 1, 9, 9], [2, 2, 2, 3]),
        ([1, 1, 1, 1], [0, 0, 0, 0]),
        ([0, 0, 0, 9], [0, 0, 0, 0]),
        ([0, 0, 0, 20], [3, 3, 3, 3]),
        ([5, 5, 5, 5], [0, 1, 2, 3]),
        ([5, 4, 5, 5], [0, 0, 2, 3]),  # too few for two
        ([4, 6, 5, 5], [1, 1, 2, 3]),  # the smaller half follows the larger one
        ([6, 4, 5, 5], [0, 0, 2, 3]),
        ([0, 0, 4, 12], [3, 3, 3, 3]),  # ... and so on
        ([12, 4, 0, 0], [0, 0, 0, 0]),
    ],
)
def test_a_cell_with_too_few_devices_follows_the_one_beside_it(
    n_in: list[int], follows: list[int]
) -> None:
    assert fold(np.array(n_in), 5).tolist() == follows


def test_a_member_that_leaves_the_graph_within_a_tick_is_covered_where_it_was_last() -> None:
    drive = a_pair()
    slot, node = np.array([1, 1, 1, 0], np.int32), np.array([18, 24, -1, 12], np.int32)
    ts = np.array([8.0, 8.5, 9.0, 9.0])
    result = drive.operator.tick(slot, ts, node, now=10)
    assert [Outcome(o).name for o in result.outcome] == [
        "SUPPRESSED__SUPERSEDED", "SUPPRESSED__SUPERSEDED", "SUPPRESSED__OFF_GRAPH", "PUBLISHED",
    ]  # fmt: skip
    assert {12, 24} <= set(result.release.node.tolist())


def groups_among_parked(parked_s: float | None) -> list[set[int]]:
    """Return the groups of ten devices, of which the even ones stand still for 70 seconds."""
    cloak = session_cloak(
        WIDE, min_nodes=4, pace=Pace(ttl_s=120.0, epoch_s=60.0), parked_s=parked_s
    )
    drive = Drive(WIDE, cloak)
    for now in range(0, 71, 5):
        # Each beside the next one; the odd ones drive two nodes in each tick.
        drive.tick(
            {d: 12 * d + (0 if d % 2 == 0 else now // 5 * 2 % 12) for d in range(10)}, now=now
        )
    return [set(shared.members) for shared in drive.released if shared.now == 70]


def test_parked_devices_are_no_company_for_those_that_move() -> None:
    groups = groups_among_parked(60.0)
    assert set().union(*groups) == set(range(10))
    for group in groups:
        assert len({device % 2 for device in group}) == 1


@pytest.mark.parametrize("parked_s", [None, 71.0])
def test_without_a_limit_or_before_it_parked_devices_are_company(parked_s: float | None) -> None:
    groups = groups_among_parked(parked_s)
    assert any(len({device % 2 for device in group}) == 2 for group in groups)


def test_a_single_vehicle_among_parked_ones_waits_for_company() -> None:
    drive = Drive(WIDE, session_cloak(WIDE, min_nodes=4, parked_s=30.0))
    for now in range(0, 131, 5):
        drive.tick({0: now // 5 * 2 % 12} | {d: 12 * d for d in range(1, 8)}, now=now)
    last = [shared for shared in drive.released if shared.now == 130]
    assert set().union(*(shared.members for shared in last)) == set(range(1, 8))
    assert drive.outcomes[0] == Outcome.HELD.name
