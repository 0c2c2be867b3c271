"""Districts: the same promises as one operator, and the same groups whatever the order."""

from collections import Counter, defaultdict
from copy import deepcopy
from hashlib import sha256
from itertools import islice
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.changing_ids import LASTS
from anonymizer.algorithms.positions.district import (
    Claims,
    District,
    DistrictTick,
    Message,
    Received,
)
from anonymizer.algorithms.positions.district_operator import DistrictOperator
from anonymizer.algorithms.positions.district_routing import Router, Rows, Sent, no_rows
from anonymizer.algorithms.positions.districts import (
    Districts,
    Folds,
    cut_into_districts,
    fold,
    without_borders,
)
from anonymizer.algorithms.positions.operator import CloakingOperator, Newest
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.spanning_forest import spanning_forest
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Release
from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.positions.factory import (
    Operator,
    cloaking_operator,
    district_maker,
    districts_of,
    folds_of,
    public_levels,
)
from anonymizer.settings import Settings
from tests.algorithms.positions.cloaks.driving import Shared, Where, shared_of, traffic
from tests.algorithms.positions.releases import FixedCloak
from tests.graphs import networks
from tests.naive import Group as NaiveGroup

CITY = load_network("city:400")
EPOCH_S = 20.0
MODES = ("bfs", "snapshot", "session")


def settings(mode: str = "session", districts: int = 4, **region: object) -> Settings:
    return Settings.model_validate(
        {
            "region": {"mode": mode, "districts": districts, "min_nodes": 2, **region},
            "session": {"epoch_s": EPOCH_S, "settle_s": 2, "beat_s": 0, "cells": 4},
            "presence": {"ttl_s": 40, "max_behind_s": 30, "follow_intervals": False},
            "adka": {"density_steps": [4], "k_values": [5, 3]},
        }
    )


def run(
    operator: Operator, reports: list[Where], *, order: Random | None = None, start: int = 0
) -> list[Shared]:
    """Return all that is released; with `order`, each batch is shuffled."""
    released: list[Shared] = []
    for now, where in enumerate(reports, start):
        pairs = list(where.items())
        if order is not None:
            order.shuffle(pairs)
        slot = np.array([pair[0] for pair in pairs], np.int32)
        node = np.array([pair[1] for pair in pairs], np.int32)
        tick = operator.tick(slot, np.full(len(slot), float(now)), node, now=float(now))
        released += shared_of(tick, now)
    return released


def drives(n_ticks: int, *, seed: int = 3, n_devices: int = 300) -> list[Where]:
    return list(islice(traffic(CITY, n_devices, seed=seed, says=0.5), n_ticks))


REPORTS = drives(70)


@pytest.fixture(scope="module")
def sessions() -> list[Shared]:
    return run(cloaking_operator(settings(), CITY), REPORTS)


def digest_of(released: list[Shared]) -> str:
    return sha256("\n".join(map(repr, released)).encode()).hexdigest()


@pytest.mark.parametrize(
    ("mode", "digest"),
    [
        ("bfs", "fca10b131cef4f01f073d28f089bedf3d73402aba26f701d177abfe9d10307fc"),
        ("snapshot", "0068c7000d16832b007f1d3c8c29ce5c024ecf86a009444be89bc716516fac7f"),
        ("session", "7184c985af8b253c229222a817f411506709c38162fd658fa8496ee5c0575395"),
    ],
)
def test_one_district_publishes_what_was_published_before_there_were_any(
    mode: str, digest: str
) -> None:
    operator = cloaking_operator(settings(mode, 1), CITY)
    assert isinstance(operator, CloakingOperator)
    assert digest_of(run(operator, REPORTS[:30])) == digest


@pytest.mark.parametrize("mode", MODES)
def test_a_single_district_publishes_what_an_operator_without_districts_does(mode: str) -> None:
    one = settings(mode, 1)
    cut = districts_of(one, CITY)
    operator = DistrictOperator(
        CITY,
        cut,
        [district_maker(one, CITY, cut)(0)],
        folds=folds_of(one),
        pace=cloaking_operator(one, CITY).pace,
    )
    # All report at first, so that they get equal slots.
    reports = [{device: device for device in range(300)}, *REPORTS[:25]]
    assert run(operator, reports) == run(cloaking_operator(one, CITY), reports)


def test_the_members_of_a_group_share_its_whole_life(sessions: list[Shared]) -> None:
    lives: defaultdict[tuple[int, int], list[tuple[float, tuple[int, ...]]]] = defaultdict(list)
    members: dict[tuple[int, int], tuple[int, ...]] = {}
    for shared in sessions:
        assert len(shared.members) >= shared.k
        for life in shared.lives:
            lives[life].append((shared.now, shared.region))
            assert members.setdefault(life, shared.members) == shared.members
    for life, told in lives.items():
        its_group = [(member, life[1]) for member in members[life]]
        assert all(lives[other] == told for other in its_group)


@pytest.mark.parametrize("mode", ["snapshot", "session"])
def test_no_device_is_in_two_groups_at_once(mode: str, sessions: list[Shared]) -> None:
    released = sessions
    if mode == "snapshot":
        released = run(cloaking_operator(settings(mode), CITY), REPORTS[:30])
    in_tick: defaultdict[float, Counter[int]] = defaultdict(Counter)
    for shared in released:
        in_tick[shared.now].update(shared.members)
    assert all(max(counts.values()) == 1 for counts in in_tick.values())


def test_a_pseudonym_ends_before_its_device_gets_another(sessions: list[Shared]) -> None:
    seen: defaultdict[int, list[int]] = defaultdict(list)
    for shared in sessions:
        for slot, version in shared.lives:
            if not seen[slot] or seen[slot][-1] != version:
                seen[slot].append(version)
    assert all(len(versions) == len(set(versions)) for versions in seen.values())
    assert any(len({version % 4 for version in versions}) > 1 for versions in seen.values()), (
        "devices were grouped in several districts"
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_order_in_which_positions_arrive_changes_nothing(mode: str) -> None:
    reports = REPORTS[:30]
    first = run(cloaking_operator(settings(mode), CITY), reports)
    assert run(cloaking_operator(settings(mode), CITY), reports, order=Random(1)) == first  # noqa: S311


def test_a_group_follows_members_into_other_districts(sessions: list[Shared]) -> None:
    of_node = districts_of(settings(), CITY).of_node
    where: dict[int, int] = {}
    abroad = 0
    told = {shared.now: [] for shared in sessions}  # type: dict[float, list[Shared]]
    for shared in sessions:
        told[shared.now].append(shared)
    for now, reports in enumerate(REPORTS):
        where.update(reports)
        for shared in told.get(now, []):
            nodes = {where[member] for member in shared.members} - {-1}
            assert nodes <= set(shared.region)
            at = set(of_node[list(nodes)].tolist())
            abroad += len(at) > 1
    assert abroad


def test_no_atom_crosses_a_border() -> None:
    of_node = districts_of(settings(), CITY).of_node
    for at in public_levels(CITY, settings()).at:
        pairs = np.unique(np.stack([at, of_node]), axis=1)
        assert len(pairs[0]) == len(np.unique(at)), "every atom is in one district"


def test_every_group_is_formed_within_one_district_and_hides_there() -> None:
    # The adversary knows the districts, and cuts what a new group publishes by them.
    operator = cloaking_operator(settings(), CITY)
    of_node = districts_of(settings(), CITY).of_node
    where: dict[int, int] = {}
    known: set[tuple[int, int]] = set()
    for now, reports in enumerate(REPORTS[:45]):
        where.update(reports)
        slot = np.array(list(reports), np.int32)
        node = np.array(list(reports.values()), np.int32)
        tick = operator.tick(slot, np.full(len(slot), float(now)), node, now=float(now))
        for shared in shared_of(tick, now):
            if known.isdisjoint(shared.lives):
                leaders = operator._folds.leaders(now)  # type: ignore[union-attr]
                [leader] = {leaders[of_node[where[m]]] for m in shared.members}
                left = leaders[of_node[list(shared.region)]] == leader
                assert left.sum() >= 2, "not fewer nodes than settings().region.min_nodes"
            known.update(shared.lives)


def test_a_district_with_too_few_devices_is_led_by_another_after_two_epochs() -> None:
    quiet = settings(districts=4)
    of_node = districts_of(quiet, CITY).of_node
    operator = cloaking_operator(quiet, CITY)
    # Three devices in district 3, too few for a group of theirs alone, and a crowd in the others.
    busy, few = np.flatnonzero(of_node < 3), np.flatnonzero(of_node == 3)
    where = {i: int(v) for i, v in enumerate(busy[:: max(1, len(busy) // 250)])}
    lonely = dict(zip((900, 901), few[:2].tolist(), strict=True))
    released = run(operator, [{**where, **lonely}] * round(3.5 * EPOCH_S))
    first = min(shared.now for shared in released if 900 in shared.members)
    assert 2 * EPOCH_S <= first <= 3 * EPOCH_S + 1


def test_a_snapshot_over_folded_districts_warns_of_nothing() -> None:
    folded = settings("snapshot")
    operator = cloaking_operator(folded, CITY)
    few = {i: i for i in range(40)}
    released = run(operator, [few] * round(2.2 * EPOCH_S))
    assert operator._folds.leaders(0.0).tolist() == [0] * 4  # type: ignore[union-attr]
    assert released[-1].now == round(2.2 * EPOCH_S) - 1


def test_a_network_too_small_for_so_many_districts_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"region\.districts: the network has room for"):
        cloaking_operator(settings(districts=64), CITY)


def test_keys_are_equal_for_equal_devices_and_change_with_the_slot() -> None:
    tables = [DeviceTable(secret=b"s", max_devices=9) for _ in range(2)]
    names = ["a", "b", "c"]
    one = tables[0].keys(np.array([tables[0].slot(n) for n in names], np.int32))
    two = tables[1].keys(np.array([tables[1].slot(n) for n in reversed(names)], np.int32))
    assert one.tolist() == two.tolist()[::-1]
    assert len(set(one.tolist())) == 3
    tables[0].free(np.array([0], np.int32))
    assert tables[0].keys(np.array([tables[0].slot("d")], np.int32)).tolist() != one[:1].tolist()


def test_a_group_that_takes_in_a_guest_is_not_published() -> None:
    one = settings("bfs", 2)
    cut = districts_of(one, CITY)
    border = next(v for v in range(CITY.n_nodes) if len(set(near(cut, v))) > 1)
    home = int(cut.of_node[border])
    away = next(d for d in near(cut, border) if d != home)
    parts = []
    for number in (home, away):
        cloak = FixedCloak([NaiveGroup(k=2, region=[border], members=[0, 1])])
        operator = CloakingOperator(CITY, cloak, pace=Pace(ttl_s=9, epoch_s=0), k_floor=2)
        parts.append(District(number, cut, operator))
    rows = Rows(
        np.arange(2, dtype=np.uint64),
        np.arange(2),
        np.zeros(2),
        np.full(2, border, np.int32),
        np.full(2, -1, np.int32),
        np.zeros(2, bool),
        np.full(2, LASTS),
    )
    ticks = [part.tick(rows, Received([], complete=True), np.arange(2), now=1.0) for part in parts]
    assert [tick.release.n_groups for tick in ticks] == [1, 0]


def test_what_districts_exchange_shows_neither_devices_nor_places() -> None:
    one, some = np.array([77], np.int32), np.array([0])
    row = Rows(one.astype(np.uint64), some, np.zeros(1), one, one, np.zeros(1, bool), np.zeros(1))
    message = Message(Claims(row.key, np.zeros(1)), row)
    newest = Newest(np.zeros(1, np.uint8), some, one, one)
    keys = row.key.astype(np.int64)
    release = Release(one, keys, one, keys, one, keys)
    tick = DistrictTick(release, keys, row.key, newest.outcome, {1: message}, some, keys, keys)
    sent = Sent([0], [row], [some], keys)
    assert "77" not in repr((Received([message], complete=True), newest, tick, sent))


def test_groups_that_share_a_device_are_both_ended() -> None:
    operator = cloaking_operator(settings(), CITY)
    assert isinstance(operator, DistrictOperator)
    last = REPORTS[29]
    run(operator, REPORTS[:29])
    slot, node = np.array(list(last), np.int32), np.array(list(last.values()), np.int32)
    release = operator.tick(slot, np.full(len(slot), 29.0), node, now=29.0).release
    assert release.n_groups > 3
    assert operator._disjoint(release) is release
    release.member[release.first_member_of[1]] = release.member[0]
    bound = len(np.concatenate([part.members()[0] for part in operator.parts]))
    rest = operator._disjoint(release)
    assert rest.n_groups == release.n_groups - 2
    assert release.member[0] not in rest.member
    assert len(np.concatenate([part.members()[0] for part in operator.parts])) < bound


def test_a_position_whose_group_is_ended_counts_as_unverified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operator = cloaking_operator(settings(), CITY)
    assert isinstance(operator, DistrictOperator)
    run(operator, REPORTS[:29])
    monkeypatch.setattr(operator, "_disjoint", lambda r: r.only(np.arange(r.n_groups) > 0))
    slot, node = (np.array(list(of), np.int32) for of in (REPORTS[29], REPORTS[29].values()))
    result = operator.tick(slot, np.full(len(slot), 29.0), node, now=29.0)
    published = slot[result.outcome == Outcome.PUBLISHED]
    assert np.isin(published, result.release.member).all()
    assert (result.outcome == Outcome.SUPPRESSED__UNVERIFIED).any()


def test_a_device_roams_until_a_router_forgets_where_it_was_before_its_horizon() -> None:
    cut = districts_of(settings(), CITY)
    router, slot, leaders = Router(cut, horizon_s=5.0), np.zeros(1, np.int32), np.arange(cut.n)
    n_remembered, roams = [], []
    for now, district in ((0.0, 0), (1.0, 1), (4.0, 1), (9.0, 1)):
        at = np.flatnonzero(cut.of_node == district)[:1].astype(np.int32)
        key, handle = slot.astype(np.uint64), slot.astype(np.int64)
        row = Rows(key, handle, np.array([now]), at, at, at < 0, np.full(1, LASTS))
        sent = router.route(slot, row, leaders, now=now)
        n_remembered.append(len(router._slot))
        roams += sent.rows[sent.district.index(district)].roams.tolist()
    assert n_remembered == [0, 1, 1, 0]
    assert roams == [False, True, True, False], "one other district may have it in a group"


def test_a_slot_is_free_once_no_router_remembers_its_device() -> None:
    # Devices are absent after 75 seconds. If they reported seldom, it would be 750.
    options = settings()
    presence = options.presence.model_copy(update={"follow_intervals": True})
    operator = cloaking_operator(options.model_copy(update={"presence": presence}), CITY)
    run(operator, REPORTS[:10])
    assert operator.pace.ttl_s < operator.pace.longest_ttl_s == 750
    none, no_ts = np.zeros(0, np.int32), np.zeros(0)
    freed = [operator.tick(none, no_ts, none, now=now).freed for now in (200.0, 740.0, 800.0)]
    assert [len(each) > 0 for each in freed] == [False, False, True]


def row_of(key: int, node: int, ts: float, *, roams: bool = False) -> Rows:
    """Return the position of one device."""
    at, none = np.array([node], np.int32), np.full(1, -1, np.int32)
    keys = np.array([key], np.uint64)
    handle, stays = keys.astype(np.int64), np.full(1, LASTS)
    return Rows(keys, handle, np.array([ts]), at, none, np.array([roams]), stays)


def nothing_new() -> Received:
    return Received([], complete=True)


def test_a_device_that_is_claimed_is_a_guest_until_its_group_elsewhere_ends() -> None:
    cut = districts_of(settings(), CITY)
    district = district_maker(settings(), CITY, cut)(0)
    inside = int(np.flatnonzero(cut.of_node == 0)[0])
    claimed = Message(Claims(np.array([7], np.uint64), np.array([3.0])), no_rows())
    some = row_of(7, inside, 1.0, roams=True)
    is_guest = []
    for now, rows, received in (
        (1.0, some, nothing_new()),
        (2.0, no_rows(), Received([claimed], complete=True)),
        (3.0, no_rows(), Received([claimed], complete=False)),
        (4.0, no_rows(), Received([claimed], complete=True)),
    ):
        district.tick(rows, received, np.arange(cut.n), now=now)
        is_guest.append(bool(district.operator.density.is_guest[0]))
    assert is_guest == [True, True, True, False]


def test_a_member_that_leaves_is_claimed_while_its_group_lasts_and_then_handed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut = districts_of(settings(), CITY)
    district = district_maker(settings(), CITY, cut)(0)
    inside = int(np.flatnonzero(cut.of_node == 0)[0])
    far = next(v for v in np.flatnonzero(cut.of_node == 1).tolist() if 0 not in near(cut, v))
    until = np.full(len(district.operator.density.node_of), 4.0)
    monkeypatch.setattr(district.operator, "bound_until", lambda: until)
    ticks = [
        district.tick(rows, nothing_new(), np.arange(cut.n), now=now)
        for now, rows in (
            (1.0, row_of(7, inside, 1.0)),
            (2.0, row_of(7, far, 2.0)),
            (3.0, no_rows()),
            (4.0, no_rows()),
            (5.0, no_rows()),
        )
    ]
    found = [
        (to, message.claims.key.tolist(), message.claims.until.tolist(), message.handover.key.size)
        for tick in ticks
        for to, message in tick.messages.items()
    ]
    assert found == [(1, [7], [4.0], 0), (1, [7], [4.0], 0), (1, [], [], 1)]
    assert district.operator.density.node_of.max() == -1, "far away it counts towards nothing"


def test_the_leader_of_a_device_may_have_it_in_a_group_while_it_is_off_the_graph() -> None:
    cut = districts_of(settings(), CITY)
    border = next(v for v in range(CITY.n_nodes) if len(set(near(cut, v))) == 2)
    home = int(cut.of_node[border])
    router, slot = Router(cut, horizon_s=5.0), np.zeros(1, np.int32)
    for now, node in enumerate((border, -1), 1):
        row = row_of(7, node, float(now))
        sent = router.route(slot, row, np.arange(cut.n), now=float(now))
        roams = {d: rows.roams.tolist() for d, rows in zip(sent.district, sent.rows, strict=True)}
        assert roams == {d: [d != home] for d in near(cut, border)}


def near(cut: Districts, node: int) -> list[int]:
    found: list[int] = cut.near[cut.first_near_of[node] : cut.first_near_of[node + 1]].tolist()
    return found


@examples(max_examples=40)
@given(networks(max_nodes=30), st.sampled_from([1, 2, 4]), st.integers(1, 3))
def test_the_halo_is_what_lies_so_many_roads_beyond_the_border(
    network: RoadNetwork, n: int, hops: int
) -> None:
    assume(network.n_nodes >= n)
    cut = cut_into_districts(network, n, least_nodes=1, halo_hops=hops)
    assert np.bincount(cut.of_node, minlength=n).max() <= -(-network.n_nodes // n)
    for node in range(network.n_nodes):
        within = {node}
        for _ in range(hops):
            within |= {
                int(w)
                for v in within
                for w in network.neighbour_of[network.first_arc_of[v] : network.first_arc_of[v + 1]]
            }
        assert near(cut, node) == sorted({int(cut.of_node[v]) for v in within})


@examples(max_examples=40)
@given(networks(max_nodes=30), st.sampled_from([1, 2, 4]), st.integers(1, 6))
def test_no_piece_of_a_district_is_small_beside_a_larger_one(
    network: RoadNetwork, n: int, least: int
) -> None:
    assume(network.n_nodes >= n * least)
    cut = cut_into_districts(network, n, least_nodes=least)
    inside = without_borders(network, cut.of_node)
    size = np.bincount(inside.component_of)[inside.component_of]
    for v in range(network.n_nodes):
        for w in network.neighbour_of[network.first_arc_of[v] : network.first_arc_of[v + 1]]:
            assert cut.of_node[v] == cut.of_node[w] or size[v] >= least or size[w] < size[v] + 1


@examples(max_examples=40)
@given(networks(max_nodes=20), st.sampled_from([2, 4]))
def test_the_forest_of_a_district_joins_what_is_connected_in_it(
    network: RoadNetwork, n: int
) -> None:
    assume(network.n_nodes >= n)
    cut = cut_into_districts(network, n, least_nodes=1)
    forest = spanning_forest(network, part_of=cut.of_node)
    piece_of = without_borders(network, cut.of_node).component_of
    for district in range(n):
        nodes = cut.nodes(district, np.arange(n))
        part = forest.within(nodes)
        n_roots = int((part.parent_of == np.arange(len(nodes))).sum())
        assert n_roots == len(np.unique(piece_of[nodes]))
        assert (piece_of[nodes] == piece_of[nodes[part.parent_of]]).all()
        at = np.empty(len(nodes), np.int64)
        at[part.order] = np.arange(len(nodes))
        assert (at[part.parent_of] <= at).all(), "parents before children"
        in_order = piece_of[nodes][part.order]
        assert (np.diff(in_order) != 0).sum() == max(n_roots, 1) - 1, "tree by tree"
        assert (forest.cut(cut.of_node).parent_of[nodes] == nodes[part.parent_of]).all()


@examples(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=12))
def test_leaders_depend_on_counts_of_past_epochs_alone(counts: list[list[int]]) -> None:
    folds = Folds(4, least=5, epoch_s=2.0)
    leaders: list[list[int]] = []
    for tick, n_in in enumerate(counts):
        state, folds = folds.state(), Folds(4, least=5, epoch_s=2.0)
        folds.restore(state)  # whoever goes on from a state finds the same
        leaders.append(folds.leaders(float(tick)).tolist())
        for number, counted in enumerate(np.diag(n_in)):
            folds.count(number, counted, now=float(tick))
    for tick, found in enumerate(leaders):
        last = (tick // 2 - 1) * 2 - 1  # the last tick of the last epoch but one
        expected = [0, 1, 2, 3] if last < 0 else fold(np.array(counts[last]), 5).tolist()
        assert found == expected


def test_who_comes_from_elsewhere_is_a_guest_while_not_all_were_heard() -> None:
    operator = cloaking_operator(settings(), CITY)
    assert isinstance(operator, DistrictOperator)
    run(operator, REPORTS[:30])
    part, leaders = operator.parts[0], operator._folds.leaders(30.0)
    is_guest = part.operator.density.is_guest
    for now, complete in ((30.1, True), (30.2, False)):
        part.tick(no_rows(), Received([], complete=complete), leaders, now=now)
        came = part._roams & part._was_inside
        assert came.any()
        assert (is_guest[came] != complete).all()


@pytest.mark.parametrize(
    ("n_in", "leaders"),
    [
        ([5, 5, 5, 5], [0, 1, 2, 3]),
        ([5, 4, 5, 5], [0, 0, 2, 3]),  # too few for two
        ([4, 6, 5, 5], [1, 1, 2, 3]),  # the smaller half follows the larger one
        ([6, 4, 5, 5], [0, 0, 2, 3]),
        ([0, 0, 4, 12], [3, 3, 3, 3]),  # ... and so on
        ([12, 4, 0, 0], [0, 0, 0, 0]),
    ],
)
def test_a_district_with_too_few_devices_follows_the_other_half(
    n_in: list[int], leaders: list[int]
) -> None:
    assert fold(np.array(n_in), 5).tolist() == leaders


def test_a_network_has_room_for_districts_of_the_least_size() -> None:
    square = load_network("grid:2x2")
    assert sorted(cut_into_districts(square, 4, least_nodes=1).of_node) == [0, 1, 2, 3]


@pytest.mark.parametrize("mode", MODES)
def test_an_operator_goes_on_from_a_state_as_if_nothing_had_happened(mode: str) -> None:
    whole, again = (cloaking_operator(settings(mode, 1), CITY) for _ in range(2))
    assert isinstance(whole, CloakingOperator)
    assert isinstance(again, CloakingOperator)
    run(whole, REPORTS[:25])
    again.restore(deepcopy(whole.state()))
    rule = DensityRule((), (4,), 4)
    for each in (whole, again):
        each.set_rule(rule, k_extra=0)
    later = REPORTS[25:50]
    released = run(whole, later, start=25)
    assert released
    assert run(again, later, start=25) == released


@pytest.mark.parametrize("mode", ["snapshot", "session"])
def test_a_district_has_the_state_that_it_is_restored_from(mode: str) -> None:
    whole, again = (cloaking_operator(settings(mode), CITY) for _ in range(2))
    assert isinstance(whole, DistrictOperator)
    assert isinstance(again, DistrictOperator)
    run(whole, REPORTS[:25])
    assert 0 <= whole.n_waiting < len(REPORTS[24])
    placed = whole.place_of
    assert ((placed >= 0) >= (whole.density.node_of >= 0)).all()
    for old, new in zip(whole.parts, again.parts, strict=True):
        new.restore(deepcopy(old.state()))
        assert repr(flat(new.state())) == repr(flat(old.state()))
        assert sorted(new.handles()) == sorted(old.handles())
    whole.set_rule(DensityRule((), (9,), 9), k_extra=1)
    # By the end, all groups were formed by the new rule.
    later = run(whole, REPORTS[25:70], start=25)
    assert {each.k for each in later if each.now == 69} == {9}


def flat(state: object) -> object:
    """Return a state with its arrays as lists."""
    if isinstance(state, dict):
        return {name: flat(value) for name, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state
