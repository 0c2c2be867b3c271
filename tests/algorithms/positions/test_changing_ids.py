"""Ids that change: no vehicle is its own company, whatever it is called."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice, product
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from anonymizer.algorithms.positions.changing_ids import LAGS_S, LASTS, Instant, on_air
from anonymizer.algorithms.positions.operator import CloakingOperator
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.verification import groups_of_vehicles
from anonymizer.domain.arrays import BoolArray
from anonymizer.networks import load_network
from anonymizer.pipeline.positions.tick.factory import Operator, cloaking_operator
from anonymizer.pipeline.positions.tick.id_lives import IdLives
from anonymizer.settings import Settings
from tests.algorithms.positions.cloaks.driving import Shared, shared_of, traffic
from tests.algorithms.positions.releases import FixedCloak, release_of
from tests.examples import many
from tests.lanes import some_rows
from tests.naive import Group

CITY = load_network("city:400")
SLACK_S = 0.25


class Id(NamedTuple):
    vehicle: int
    since: float
    last: float


@st.composite
def lives(draw: st.DrawFn) -> list[Id]:
    """Ids of vehicles that use one after the other, each with gaps of silence around it."""
    ids = []
    for vehicle in range(draw(st.integers(1, 6))):
        now = draw(st.integers(0, 8))
        for _ in range(draw(st.integers(1, 4))):
            since = now + draw(st.integers(0, 3))
            last = since + draw(st.integers(0, 9))
            ids.append(Id(vehicle, float(since), float(last)))
            now = last
    return ids


@many(3)
@given(lives(), st.floats(-1, 60, allow_nan=False))
def test_at_no_instant_two_ids_of_a_vehicle_count(ids: list[Id], at: float) -> None:
    counts = counted(ids, at)
    vehicles = [each.vehicle for each, counted in zip(ids, counts, strict=True) if counted]
    assert len(vehicles) == len(set(vehicles))


@many(3)
@given(lives(), st.floats(0, 40, allow_nan=False))
def test_a_vehicle_whose_id_spans_the_instant_counts(ids: list[Id], at: float) -> None:
    for each, counts in zip(ids, counted(ids, at), strict=True):
        assert counts == (each.since + SLACK_S < at <= each.last)


def counted(ids: list[Id], at: float) -> BoolArray:
    since, last = np.array([(each.since, each.last) for each in ids]).T
    return on_air(since, last, at=at, slack_s=SLACK_S)


def test_ids_that_stay_always_count() -> None:
    since, last = np.array([LASTS, 5.0]), np.array([1.0, 6.0])
    assert on_air(since, last, at=9.0, slack_s=0.0).tolist() == [True, False]


@many(3)
@given(lives(), st.data())
def test_a_group_in_which_a_vehicle_has_two_ids_never_passes(
    ids: list[Id], data: st.DataObject
) -> None:
    slots = st.lists(st.integers(0, len(ids) - 1), min_size=1, unique=True)
    groups = data.draw(st.lists(slots, min_size=1, max_size=3))
    since, last = np.array([(each.since, each.last) for each in ids]).T
    release = release_of([Group(2, [0], members) for members in groups])
    for members, holds in zip(
        groups, groups_of_vehicles(release, since, last, slack_s=SLACK_S), strict=True
    ):
        vehicles = [ids[m].vehicle for m in members]
        if holds:
            assert len(vehicles) == len(set(vehicles))
        # It holds if there is an instant at which all were on the air.
        begun, ended = max(ids[m].since for m in members), min(ids[m].last for m in members)
        assert holds == (begun + SLACK_S < ended)


def test_a_group_shares_more_than_the_slack() -> None:
    release = release_of([Group(2, [0], [0, 1])])

    def holds(ended: float) -> list[bool]:
        since, last = np.array([[0.0, ended], [1.0, 5.0]]).T
        found: list[bool] = groups_of_vehicles(release, since, last, slack_s=SLACK_S).tolist()
        return found

    assert holds(1 + SLACK_S) == [False]
    assert holds(1 + 2 * SLACK_S) == [True]


@pytest.mark.parametrize(("every_s", "lag_s"), [(0.5, 1), (1, 1), (4, 5), (25, 30), (200, 240)])
def test_the_instant_is_the_latest_at_which_nearly_all_were_on_the_air(
    every_s: float, lag_s: float
) -> None:
    """A hundred vehicles report every so often, and their former ids are still remembered."""
    phase = np.arange(100) / 100 * every_s
    since = np.concatenate([np.zeros(100), 3000.0 + phase])
    last = np.concatenate([2999.0 + phase, 5000.0 - phase])
    instant = Instant(slack_s=0.1)
    counts = instant.counted(since, last, now=5000.0)
    assert instant._lag_s == lag_s
    assert lag_s in LAGS_S
    assert not counts[:100].any()
    assert counts[100:].sum() >= 90


@pytest.mark.parametrize("every_s", [1.0, 5.0, 10.0])
def test_who_counts_goes_on_counting_from_report_to_report(every_s: float) -> None:
    """Else a fleet of exactly k may be too small in the tick in which groups are formed.

    All but the last have been heard for so long that their ids stay.
    """
    since, phase = np.array([LASTS] * 4 + [0.0]), np.arange(5) / 5 * every_s
    instant = Instant(slack_s=0.1)
    for now in np.arange(500.0, 500 + 4 * every_s, 0.1).tolist():
        last = phase + np.floor((now - phase) / every_s) * every_s
        assert instant.counted(since, last, now=now).all()


class Rotating:
    """Vehicles that change their ids, and what is released about them by the ids' slots."""

    def __init__(
        self, operator: Operator, *, every_s: int, declared: bool = True, stays_after_s: float = 0
    ) -> None:
        self._operator = operator
        self._every_s = every_s
        self._declared = declared
        self._stays_after_s = stays_after_s
        self._ids = IdLives()
        self._slot_of: dict[tuple[int, int], int] = {}
        self._vehicle_of: list[int] = []
        self._seed = Random(5)  # noqa: S311  not for cryptography
        self._phase: dict[int, int] = defaultdict(lambda: self._seed.randrange(every_s))

    def run(self, n_ticks: int, *, n_vehicles: int = 300, says: float = 0.7) -> Iterator[Shared]:
        """Yield what is released; members are vehicles."""
        drives = traffic(CITY, n_vehicles, seed=3, says=says)
        for now, where in enumerate(islice(drives, n_ticks)):
            slot = np.array([self._slot(vehicle, now) for vehicle in where], np.int32)
            node = np.array(list(where.values()), np.int32)
            ts = np.full(len(slot), float(now))
            if self._declared:
                self._ids.mark(slot)
            since = self._ids.since(slot, ts, now=float(now), stays_after_s=self._stays_after_s)
            tick = self._operator.tick(slot, ts, node, now=float(now), since=since)
            for shared in shared_of(tick, now):
                yield shared._replace(
                    members=tuple(self._vehicle_of[member] for member in shared.members)
                )

    def _slot(self, vehicle: int, now: int) -> int:
        number = (now + self._phase[vehicle]) // self._every_s
        slot = self._slot_of.setdefault((vehicle, number), len(self._vehicle_of))
        if slot == len(self._vehicle_of):
            self._vehicle_of.append(vehicle)
        return slot


class SomeRotating(Rotating):
    """The first hundred keep their ids."""

    def _slot(self, vehicle: int, now: int) -> int:
        return super()._slot(vehicle, 0 if vehicle < 100 else now)


def options(mode: str, districts: int = 1) -> Settings:
    return Settings.model_validate(
        {
            "region": {"mode": mode, "districts": districts, "min_nodes": 2},
            "session": {"epoch_s": 20, "beat_s": 5},
            "presence": {"ttl_s": 40, "max_behind_s": 30},
            "adka": {"density_steps": [4], "k_values": [5, 3]},
        }
    )


@pytest.mark.parametrize(
    ("mode", "every_s", "districts"),
    some_rows(
        [*product(("snapshot", "session"), (7, 20, 60), (1, 4))],
        [("snapshot", 7, 1), ("snapshot", 60, 4), ("session", 7, 4), ("session", 20, 1)],
    ),
)
def test_every_group_has_k_vehicles_however_often_they_change_their_ids(
    mode: str, every_s: int, districts: int
) -> None:
    operator = cloaking_operator(options(mode, districts), CITY)
    released = list(Rotating(operator, every_s=every_s).run(90))
    assert len(released) > 100
    for shared in released:
        assert len(set(shared.members)) == len(shared.members) >= shared.k


@pytest.mark.parametrize(
    ("mode", "every_s", "districts"),
    some_rows(
        [*product(("snapshot", "session"), (1, 2, 3, 7, 20, 39), (1, 4))],
        [("snapshot", 2, 4), ("snapshot", 20, 1), ("session", 3, 1), ("session", 39, 1)],
    ),
)
def test_undeclared_ids_that_live_shorter_than_devices_count_are_no_company_either(
    mode: str, every_s: int, districts: int
) -> None:
    """From the first message on, and although some vehicles keep theirs."""
    chosen = options(mode, districts)
    rotating = SomeRotating(
        cloaking_operator(chosen, CITY),
        every_s=every_s,
        declared=False,
        stays_after_s=chosen.presence.ttl_s,
    )
    n_released = 0
    for shared in rotating.run(90):
        assert len(set(shared.members)) == len(shared.members) >= shared.k
        n_released += 1
    assert n_released


@pytest.mark.soak
@pytest.mark.parametrize("n_vehicles", [200, 1000])
@pytest.mark.parametrize("every_s", [60, 300, 900])
def test_by_default_every_group_has_k_vehicles_that_change_their_ids(
    every_s: int, n_vehicles: int
) -> None:
    operator = cloaking_operator(Settings(), CITY)
    released = list(Rotating(operator, every_s=every_s).run(400, n_vehicles=n_vehicles))
    assert len(released) > 100
    for shared in released:
        assert len(set(shared.members)) == len(shared.members) >= shared.k


@pytest.mark.parametrize("mode", ["snapshot", "session"])
def test_undeclared_vehicles_are_their_own_company(mode: str) -> None:
    """The control: what the declaration prevents happens without it."""
    operator = cloaking_operator(options(mode), CITY)
    released = list(Rotating(operator, every_s=20, declared=False).run(90))
    assert any(len(set(shared.members)) < shared.k for shared in released)


@pytest.mark.parametrize("every_s", [7, 20])
def test_every_region_of_adka_holds_k_vehicles(every_s: int) -> None:
    operator = cloaking_operator(options("adka"), CITY)
    assert isinstance(operator, CloakingOperator)
    rotating = Rotating(operator, every_s=every_s)
    n_seen = 0
    for shared in rotating.run(60):
        density = operator.density
        inside = np.flatnonzero(
            np.isin(density.node_of, shared.region) & density.is_counted[: len(density.node_of)]
        )
        vehicles = Counter(rotating._vehicle_of[slot] for slot in inside.tolist())
        assert len(vehicles) >= shared.k
        n_seen += 1
    assert n_seen > 100


class Reciprocal(FixedCloak):
    reciprocal = True


def n_released(cloak: FixedCloak) -> int:
    """Return how many groups are released after a while, of three vehicles at one node.

    Slots 0 and 1 are one vehicle: 1 begins where 0 ends. Slots 2 and 3 are others.
    """
    grid = load_network("grid:5x5")
    operator = CloakingOperator(grid, cloak, pace=Pace(ttl_s=99, epoch_s=0), k_floor=2)
    lives = {0: range(5), 1: range(5, 10), 2: range(10), 3: range(10)}
    for now in range(10):
        slot = np.array([s for s, heard in lives.items() if now in heard], np.int32)
        since = np.array([float(lives[s].start) for s in slot.tolist()])
        n = len(slot)
        tick = operator.tick(
            slot,
            np.full(n, float(now)),
            np.full(n, 12, np.int32),
            now=float(now),
            since=since,
        )
    return tick.release.n_groups


def test_a_cloak_that_joins_a_vehicle_with_itself_is_refused() -> None:
    for members, n_groups in (([0, 1], 0), ([0, 2], 1), ([1, 2], 1), ([1, 2, 3], 1)):
        assert n_released(Reciprocal([Group(2, [12], members)])) == n_groups, members


@pytest.mark.parametrize(("k", "n_groups"), [(3, 1), (4, 0)])
def test_a_region_of_fewer_than_k_vehicles_is_refused_however_many_ids_it_has(
    k: int, n_groups: int
) -> None:
    assert n_released(FixedCloak([Group(k, [12], [2])])) == n_groups


def test_a_vehicle_that_changes_its_id_is_counted_once_in_the_density() -> None:
    operator = cloaking_operator(options("session"), CITY)
    assert isinstance(operator, CloakingOperator)
    rotating = Rotating(operator, every_s=10)
    list(rotating.run(60, n_vehicles=100, says=1.0))
    density = operator.density
    counts = np.flatnonzero(density.counted_at >= 0)
    vehicles = [rotating._vehicle_of[slot] for slot in counts.tolist()]
    assert len(vehicles) == len(set(vehicles)) == density.n_devices
    assert (density.node_of >= 0).sum() > 2 * len(vehicles), "former ids are still remembered"


@examples(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_count_of_chosen_slots_equals_a_fresh_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    operator = cloaking_operator(options("session"), CITY)
    assert isinstance(operator, CloakingOperator)
    density = operator.density
    for now in range(8):
        slot = np.flatnonzero(rng.random(40) < 0.5).astype(np.int32)
        node = rng.integers(-1, CITY.n_nodes, len(slot)).astype(np.int32)
        density.advance(slot, np.full(len(slot), float(now)), node)
        density.count_only(rng.random(len(density.node_of)) < 0.5)
        density.expire(now - 4.0)
    chosen = density.is_counted & (density.node_of >= 0)
    fresh = np.bincount(density.node_of[chosen], minlength=CITY.n_nodes)
    assert density.n_at.tolist() == fresh.tolist()
    assert density.n_devices == int(chosen.sum())
