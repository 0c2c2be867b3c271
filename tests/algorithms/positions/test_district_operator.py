"""Districts: the same promises as one operator, and the same groups whatever the order."""

from collections import defaultdict
from collections.abc import Sequence
from copy import deepcopy
from hashlib import sha256
from itertools import islice
from random import Random
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.changing_ids import LASTS
from anonymizer.algorithms.positions.district import DistrictTick
from anonymizer.algorithms.positions.district_operator import DistrictOperator
from anonymizer.algorithms.positions.district_routing import Router, Rows, Sent
from anonymizer.algorithms.positions.districts import (
    Districts,
    cut_into_districts,
    expected_load,
    network_of,
)
from anonymizer.algorithms.positions.operator import CloakingOperator, Newest
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.release import Release
from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.positions.tick.factory import (
    Operator,
    cloaking_operator,
    district_maker,
    districts_of,
    public_places,
)
from anonymizer.settings import PresenceSettings, SessionSettings, Settings
from tests.algorithms.positions.cloaks.driving import Shared, Where, shared_of, traffic
from tests.graphs import networks

CITY = load_network("city:400")
EPOCH_S = 20.0
MODES = ("adka", "snapshot", "session")


class EarlierSession(SessionSettings):
    """As it was stated when the releases of one district were recorded."""

    n_cells: ClassVar[int] = 4

    @property
    def settle_s(self) -> float:
        """How long after the first position the first groups are formed."""
        return 2.0

    @property
    def rotate_s(self) -> float:
        """How long a pseudonym lasts where groups do not."""
        return 300.0


def settings(mode: str = "session", districts: int = 4, **region: object) -> Settings:
    return Settings.model_validate(
        {
            "region": {"mode": mode, "districts": districts, "min_nodes": 2, **region},
            "session": EarlierSession(epoch_s=EPOCH_S, beat_s=0),
            "presence": {"ttl_s": 40, "max_behind_s": 30},
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
        ("adka", "fca10b131cef4f01f073d28f089bedf3d73402aba26f701d177abfe9d10307fc"),
        ("snapshot", "0068c7000d16832b007f1d3c8c29ce5c024ecf86a009444be89bc716516fac7f"),
        ("session", "324bf84280324e095707a1bacb9c6abfaf28f2b704be33866b392f0b22261fa7"),
    ],
)
def test_one_district_publishes_what_was_published_before_there_were_any(
    mode: str, digest: str
) -> None:
    operator = cloaking_operator(settings(mode, 1), CITY)
    assert isinstance(operator, CloakingOperator)
    assert digest_of(run(operator, REPORTS[:30])) == digest


def single_district(mode: str) -> DistrictOperator:
    one = settings(mode, 1)
    cut = districts_of(one, CITY)
    pace = cloaking_operator(one, CITY).pace
    return DistrictOperator(CITY, cut, [district_maker(one, CITY, cut)(0)], pace=pace)


@pytest.mark.parametrize("mode", MODES)
def test_a_single_district_publishes_what_an_operator_without_districts_does(mode: str) -> None:
    # All report at first, so that they get equal slots.
    reports = [{device: device for device in range(300)}, *REPORTS[:25]]
    without = cloaking_operator(settings(mode, 1), CITY)
    assert run(single_district(mode), reports) == run(without, reports)


def test_a_district_covers_who_drove_off_the_map_where_its_last_position_on_it_was() -> None:
    city = cloaking_operator(settings("session", 1), CITY)
    district, n_published = single_district("session"), 0
    for now, where in enumerate([{device: device for device in range(300)}, *REPORTS[:25]]):
        # A fifth of them are on the map and then off it within the tick.
        off = [device for device in where if now and (device + now) % 5 == 0]
        slot = np.array([*where, *off], np.int32)
        node = np.array([*where.values(), *(-1 for _ in off)], np.int32)
        ts = np.array([now - 0.5] * len(where) + [now] * len(off))
        expected = shared_of(city.tick(slot, ts, node, now=now), now)
        assert shared_of(district.tick(slot, ts, node, now=now), now) == expected
        n_published += len(expected)
    assert n_published > 20


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


@pytest.mark.parametrize("mode", MODES)
def test_the_order_in_which_positions_arrive_changes_nothing(mode: str) -> None:
    reports = REPORTS[:30]
    first = run(cloaking_operator(settings(mode), CITY), reports)
    assert run(cloaking_operator(settings(mode), CITY), reports, order=Random(1)) == first  # noqa: S311


def test_no_atom_crosses_a_border() -> None:
    of_node = districts_of(settings(), CITY).of_node
    for at in public_places(CITY, settings()):
        pairs = np.unique(np.stack([at, of_node]), axis=1)
        assert len(pairs[0]) == len(np.unique(at)), "every atom is in one district"


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


def test_what_districts_are_sent_shows_neither_devices_nor_places() -> None:
    one, some = np.array([77], np.int32), np.array([0])
    row = Rows(one.astype(np.uint64), some, np.zeros(1), one, one, np.zeros(1))
    newest = Newest(np.zeros(1, np.uint8), some, one, one)
    keys = row.key.astype(np.int64)
    release = Release(one, keys, one, keys, one, keys)
    tick = DistrictTick(release, keys, row.key, newest.outcome, keys)
    sent = Sent([0], [row], [some], keys, keys)
    assert "77" not in repr((row, newest, tick, sent))


def test_a_device_is_in_one_group_of_each_district_at_most(sessions: list[Shared]) -> None:
    # The number of a group tells its district.
    seen: defaultdict[tuple[float, int], set[int]] = defaultdict(set)
    for shared in sessions:
        [district] = {version % 4 for version in shared.versions}
        members = set(shared.members)
        assert len(members) == len(shared.members)
        assert members.isdisjoint(seen[shared.now, district])
        seen[shared.now, district] |= members


@pytest.mark.parametrize("mode", MODES)
def test_what_happens_elsewhere_changes_nothing_that_a_district_publishes(mode: str) -> None:
    cut, random = districts_of(settings(mode), CITY), Random(1)  # noqa: S311
    elsewhere = np.flatnonzero(cut.of_node != 0).tolist()
    moved = [
        {
            d: v if v < 0 or cut.of_node[v] == 0 else random.choice(elsewhere)
            for d, v in each.items()
        }
        for each in REPORTS[:45]
    ]
    assert moved != REPORTS[:45]

    def in_district_0(reports: Sequence[Where]) -> list[Shared]:
        released = run(cloaking_operator(settings(mode), CITY), list(reports))
        return [each for each in released if cut.of_node[each.region[0]] == 0]

    found = in_district_0(REPORTS[:45])
    assert found == in_district_0(moved)
    assert len(found) > 20


def test_a_member_that_leaves_is_covered_where_it_was_last_and_may_be_grouped_again() -> None:
    cut, operator = districts_of(settings(), CITY), cloaking_operator(settings(), CITY)
    assert isinstance(operator, DistrictOperator)
    home: dict[int, int] = {}
    last: dict[tuple[int, int], int] = {}
    n_elsewhere = n_twice = 0
    for now, reports in enumerate(REPORTS):
        last |= {(d, int(cut.of_node[v])): v for d, v in reports.items() if v >= 0}
        home |= {d: int(cut.of_node[v]) for d, v in reports.items() if v >= 0}
        slot = np.array(list(reports), np.int32)
        node = np.array(list(reports.values()), np.int32)
        result = operator.tick(slot, np.full(len(slot), float(now)), node, now=float(now))
        present = iter(result.present.tolist())
        for shared in shared_of(result, now):
            [district] = set(cut.of_node[list(shared.region)].tolist())
            for member in shared.members:
                assert last[member, district] in shared.region
                assert next(present) == (home[member] == district)
                n_elsewhere += home[member] != district
        n_twice += int((np.bincount(result.release.member, minlength=1) > 1).sum())
    assert n_elsewhere > 20
    assert n_twice > 20


def row_of(key: int, node: int, ts: float, *, left_from: int = -1) -> Rows:
    """Return the position of one device."""
    keys, at = np.array([key], np.uint64), np.array([node], np.int32)
    covered, stays = np.array([left_from], np.int32), np.full(1, LASTS)
    return Rows(keys, keys.astype(np.int64), np.array([ts]), at, covered, stays)


def test_a_district_is_told_once_that_a_device_has_left_it_and_not_where_it_is() -> None:
    cut, slot = districts_of(settings(), CITY), np.zeros(1, np.int32)
    router, [a, b] = Router(cut), [int(cut.nodes(district)[0]) for district in (0, 1)]
    sent = [
        router.route(slot, row_of(7, node, ts, left_from=left_from))
        for ts, node, left_from in (
            (1.0, -1, -1),  # in no district yet
            (2.0, a, -1),
            (3.0, b, -1),
            (4.0, b, -1),
            (5.0, -1, b),
            (6.0, -1, a),  # drove through another district on its way out
            (7.0, a, -1),
        )
    ]
    said = [
        {
            district: (rows.node.tolist(), rows.left_from.tolist())
            for district, rows in zip(each.district, each.rows, strict=True)
        }
        for each in sent
    ]
    gone, here = ([-1], [-1]), ([a], [-1])
    assert said == [
        {},
        {0: here},
        {0: gone, 1: ([b], [-1])},
        {1: ([b], [-1])},
        {1: ([-1], [b])},
        {1: gone},
        {0: here, 1: gone},
    ]
    assert [each.home.tolist() for each in sent] == [[-1], [0], [1], [1], [1], [1], [0]]
    assert [each.left.tolist() for each in sent] == [[-1], [-1], [0], [-1], [-1], [-1], [1]]
    router.forget(slot)
    assert router.homes(slot).tolist() == [-1]


def test_who_is_unknown_and_elsewhere_is_of_no_concern_to_a_district() -> None:
    district = district_maker(settings(), CITY, districts_of(settings(), CITY))(0)
    tick = district.tick(row_of(7, -1, 1.0), now=1.0)
    assert len(tick.outcome) == 1
    assert not len(district.handles())


def test_a_slot_is_free_once_no_district_knows_its_device() -> None:
    # Devices are absent after 75 seconds. If they reported seldom, it would be 750.
    options = settings()
    presence = PresenceSettings.model_construct(set(), **options.presence.model_dump())
    session = SessionSettings.model_construct(set(), **options.session.model_dump())
    following = {"presence": presence, "session": session}
    operator = cloaking_operator(options.model_copy(update=following), CITY)
    assert isinstance(operator, DistrictOperator)
    run(operator, REPORTS[:10])
    assert operator.pace.ttl_s < operator.pace.longest_ttl_s == 750
    none, no_ts = np.zeros(0, np.int32), np.zeros(0)
    freed = []
    for now in (200.0, 740.0, 800.0, 801.0):
        freed.append(len(operator.tick(none, no_ts, none, now=now).freed))
        known = [part.handles() for part in operator.parts]
        assert not freed[-1] or not len(np.concatenate(known))
    assert [n > 0 for n in freed] == [False, False, False, True]


@examples(max_examples=40)
@given(networks(max_nodes=30), st.sampled_from([1, 2, 4]), st.integers(1, 6))
def test_no_piece_of_a_district_is_small_beside_a_larger_one(
    network: RoadNetwork, n: int, least: int
) -> None:
    assume(network.n_nodes >= n * least)
    cut = cut_into_districts(network, n, load=expected_load(network), least_nodes=least)
    size = np.zeros(network.n_nodes, np.int64)
    for district in range(n):
        pieces = network_of(network, cut, district).component_of
        size[cut.nodes(district)] = np.bincount(pieces, minlength=1)[pieces]
    for v in range(network.n_nodes):
        for w in network.neighbour_of[network.first_arc_of[v] : network.first_arc_of[v + 1]]:
            assert cut.of_node[v] == cut.of_node[w] or size[v] >= least or size[w] < size[v] + 1


@examples(max_examples=40)
@given(networks(max_nodes=30), st.sampled_from([1, 2, 4]))
def test_a_district_is_the_network_of_its_nodes_and_the_roads_between_them(
    network: RoadNetwork, n: int
) -> None:
    assume(network.n_nodes >= n)
    cut = cut_into_districts(network, n, load=expected_load(network), least_nodes=1)
    for district in range(n):
        alone, nodes = network_of(network, cut, district), cut.nodes(district)
        assert cut.number_of[nodes].tolist() == list(range(alone.n_nodes))
        assert alone.node_id.tolist() == network.node_id[nodes].tolist()
        for number, node in enumerate(nodes.tolist()):
            roads = slice(network.first_arc_of[node], network.first_arc_of[node + 1])
            own = slice(alone.first_arc_of[number], alone.first_arc_of[number + 1])
            kept = cut.of_node[network.neighbour_of[roads]] == district
            assert nodes[alone.neighbour_of[own]].tolist() == [
                *network.neighbour_of[roads][kept].tolist()
            ]
            assert alone.length_m[own].tolist() == network.length_m[roads][kept].tolist()


@pytest.mark.parametrize("n", [2, 8, 16])
def test_a_cut_by_load_is_even_and_crosses_few_roads(n: int) -> None:
    # All load lies in a corner: half of the districts share a quarter of the grid at most.
    grid = load_network("grid:40x40")
    load = np.where((grid.lat > np.median(grid.lat)) & (grid.lon > np.median(grid.lon)), 9.0, 1.0)
    cuts = {
        name: cut_into_districts(grid, n, load=each, least_nodes=6)
        for name, each in (("load", load), ("nodes", np.ones(grid.n_nodes)))
    }
    skew = {name: skew_of(cut, load) for name, cut in cuts.items()}
    assert skew["load"] < 1.25
    assert skew["nodes"] > 1.4
    tail = np.repeat(np.arange(grid.n_nodes), np.diff(grid.first_arc_of))
    crossing = cuts["nodes"].of_node[tail] != cuts["nodes"].of_node[grid.neighbour_of]
    # Squares of equal size have no more than this.
    assert crossing.sum() / 2 <= 2 * 40 * (np.ceil(np.sqrt(n)) - 1)


def skew_of(cut: Districts, load: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return the largest load of a district, in multiples of the mean."""
    of_each = np.bincount(cut.of_node, weights=load, minlength=cut.n)
    return float(of_each.max() / of_each.mean())


def test_a_network_that_states_its_load_is_cut_by_that() -> None:
    stated = np.arange(CITY.n_nodes, dtype=np.float64)
    network = RoadNetwork(
        **{name: getattr(CITY, name) for name in CITY.__slots__} | {"load_at": stated}
    )
    assert (expected_load(network) == stated).all()
    assert skew_of(districts_of(settings(), network), stated) < 1.2
    assert skew_of(districts_of(settings(), CITY), stated) > 1.2
    bare = load_network("grid:3x3")
    nowhere = np.full(9, np.nan)
    unknown = {"lat": nowhere, "lon": nowhere}
    bare = RoadNetwork(**{name: getattr(bare, name) for name in bare.__slots__} | unknown)
    assert expected_load(bare).tolist() == [1.0] * 9


def test_a_network_has_room_for_districts_of_the_least_size() -> None:
    square = load_network("grid:2x2")
    assert sorted(cut_into_districts(square, 4, load=np.zeros(4), least_nodes=1).of_node) == [
        0,
        1,
        2,
        3,
    ]


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
    on_graph = whole.density.node_of >= 0
    assert (whole.place_of[on_graph] == whole.density.node_of[on_graph]).all()
    assert (whole.place_of >= 0).sum() >= on_graph.sum()
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
