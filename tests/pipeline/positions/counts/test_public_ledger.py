"""Public counters move by k distinct devices that are heard afterwards, whatever happens."""

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.counts.contributors import Contributors, counter_of
from anonymizer.pipeline.positions.counts.figures import Figures
from anonymizer.pipeline.positions.counts.public_ledger import public_step
from anonymizer.pipeline.positions.tick.intake import LocatedPositions
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.settings import Settings
from tests.pipeline.positions.support import NOW, Rig, delivery

K = 3
LATE = int(counter_of(np.array([Outcome.LATE], np.uint8))[0])
DUPLICATE = int(counter_of(np.array([Outcome.DUPLICATE], np.uint8))[0])
ON_ROAD, OFF_ROAD, ZONE = 5, -1, -2


def located(heard: list[tuple[int, int]], *, now: float) -> LocatedPositions:
    """Return positions, given slot and node of each."""
    slot = np.array([slot for slot, _ in heard], np.int32)
    node = np.array([node for _, node in heard], np.int32)
    column = np.zeros(len(slot))
    positions = Positions(slot, column, column, column, column)
    none, hidden = np.zeros(0, np.int32), node == ZONE
    keys = np.zeros(0, np.uint64)
    return LocatedPositions(
        positions,
        node,
        node,
        hidden,
        node,
        None,
        none,
        keys,
        any_shut_out=False,
        now=now,
        event_s=now,
    )


class Tick(NamedTuple):
    """Who was heard where, and of whom something could not be used, and why."""

    heard: list[tuple[int, int]]
    noted: list[tuple[int, int]]


ticks = st.lists(
    st.builds(
        Tick,
        st.lists(st.tuples(st.integers(0, 4), st.sampled_from([ON_ROAD, OFF_ROAD, ZONE]))),
        st.lists(st.tuples(st.integers(0, 4), st.sampled_from([LATE, DUPLICATE]))),
    ),
    max_size=8,
)


def naive_contributors(made: list[Tick]) -> dict[int, int]:
    """Return how many devices contributed, from the ticks alone."""
    counts: dict[int, set[int]] = {}
    waits: dict[int, set[int]] = {}
    for tick in made:
        hidden = {slot for slot, node in tick.heard if node != ON_ROAD}
        for slot in {slot for slot, _ in tick.heard}:
            if slot not in hidden:
                for counter in waits.get(slot, ()):
                    counts.setdefault(counter, set()).add(slot)
            waits.pop(slot, None)
        for slot, counter in tick.noted:
            waits.setdefault(slot, set()).add(counter)
    return {counter: len(devices) for counter, devices in counts.items()}


@given(ticks)
def test_a_device_contributes_once_it_is_heard_on_the_road_afterwards(made: list[Tick]) -> None:
    devices = DeviceTable(secret=b"?", max_devices=9)
    for name in "abcde":
        devices.slot(name)
    contributors = Contributors(devices, delay_s=0.0, kept_s=99.0, most_devices=9)
    for second, tick in enumerate(made):
        noted = np.array(tick.noted, np.int64).reshape(-1, 2)
        contributors.note(noted[:, 0].astype(np.int32), noted[:, 1])
        contributors.tick(located(tick.heard, now=float(second)))
    found = {counter: n for counter, n in contributors.n_of().items() if n}
    assert found == naive_contributors(made)


def shown(rig: Rig) -> Figures:
    return rig.flow.public_figures.shown


def n_malformed(rig: Rig) -> int:
    return shown(rig).n_of.get(Outcome.INVALID__MALFORMED.label, 0)


def malformed(rig: Rig, *devices: str, second: int) -> int:
    """Let devices say what cannot be read for ten seconds; return how many were counted so far."""
    for i in range(10):
        said = [Delivery(f"positions/{device}", b"{", 0) for device in devices]
        rig.publish(*said, now=NOW + second + i)
    rig.publish(now=NOW + second + 10)
    return n_malformed(rig)


def test_a_counter_moves_when_k_devices_that_nobody_has_located_contributed() -> None:
    rig = Rig(adka={"k_values": [K], "density_steps": []})
    assert malformed(rig, "a", "b", second=0) == 0
    assert malformed(rig, "a", second=10) == 0
    assert malformed(rig, "c", second=20) == K
    assert malformed(rig, "a", "b", second=30) == K
    assert malformed(rig, *"abcdefg", second=40) == K + 2 * K
    assert shown(rig).refused == {(1, Outcome.INVALID__MALFORMED.label): 3 * K}


def test_whose_id_cannot_be_read_is_nobody() -> None:
    rig = Rig(
        adka={"k_values": [K], "density_steps": []},
        inputs=[{"topic": "positions", "device_from": "payload"}],
    )
    for second in range(30):
        rig.publish(*[Delivery("positions", b"{", 0)] * 9, now=NOW + second)
    assert rig.outcomes() == {"INVALID__MALFORMED": 270}
    assert n_malformed(rig) == 0


def test_with_devices_of_ones_own_nobody_knows_at_how_many_a_counter_moves() -> None:
    rig = Rig(adka={"k_values": [2], "density_steps": []}, region={"mode": "adka", "k_extra": 1})
    names = "abcde"
    waits = []
    for each in range(12):
        before, n = n_malformed(rig), 0
        while n_malformed(rig) == before:
            n += 1
            now = NOW + 10 * (10 * each + n)
            rig.publish(Delivery(f"positions/{names[n - 1]}", b"{", 0), now=now)
            rig.publish(now=now + 9)
            rig.publish(now=now + 10)
        waits.append(n)
    assert set(waits) == {3, 4, 5}


def test_devices_are_those_that_messages_told_of_at_one_moment_of_the_time_to_live() -> None:
    rig = Rig(
        adka={"k_values": [K], "density_steps": []}, presence={"ttl_s": 20.0, "max_behind_s": 9.0}
    )

    def devices(n: int, *, second: int) -> int:
        for i in range(11):
            now = NOW + second + i
            rig.publish(*(delivery(f"d{j}", 12, now) for j in range(n)), now=now)
        return shown(rig).n_published_devices

    assert devices(4, second=0) == 3
    assert devices(6, second=10) == 6
    assert devices(0, second=20) == 6
    assert devices(3, second=30) == 6
    assert devices(3, second=50) == 3
    told = shown(rig).n_of[Outcome.PUBLISHED.label]
    assert told % K == 0
    assert 0 <= rig.ledger.n(Outcome.PUBLISHED) - told < 2 * K


def test_a_defect_is_shown_at_once() -> None:
    rig = Rig(adka={"k_values": [K], "density_steps": []})
    rig.flow.public_figures.tick([], n_unverified=1, now=NOW)
    assert shown(rig).n_of[Outcome.SUPPRESSED__UNVERIFIED.label] == K


def test_the_step_is_the_largest_k_of_the_settings() -> None:
    tables = {"adka": {"k_values": [12, 3], "density_steps": [4]}, "region": {"k_extra": 2}}
    assert public_step(Settings.model_validate(tables)) == 14
