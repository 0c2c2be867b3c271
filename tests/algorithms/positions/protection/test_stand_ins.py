import numpy as np

from anonymizer.algorithms.positions.protection.stand_ins import NO_ZONE, StandIns

ZONE_OF = np.array([NO_ZONE, 0, 0, 1, 0, 1, NO_ZONE], np.int32)
MEMBERS = {0: {1, 2, 4}, 1: {3, 5}}


def at(stand_ins: StandIns, slot: int, zone: int) -> int:
    (node,) = stand_ins.at(np.array([slot], np.int32), np.array([zone], np.int32)).tolist()
    return int(node)


def test_a_device_has_one_stand_in_of_its_zone_for_its_whole_stay() -> None:
    stand_ins = StandIns(ZONE_OF, np.random.default_rng(1))
    for zone, members in MEMBERS.items():
        for slot in range(20):
            first = at(stand_ins, slot, zone)
            assert first in members
            assert {at(stand_ins, slot, zone) for _ in range(5)} == {first}


def test_every_node_of_a_zone_is_drawn_and_a_new_stay_draws_anew() -> None:
    stand_ins = StandIns(ZONE_OF, np.random.default_rng(1))
    drawn = set()
    for _ in range(100):
        drawn.add(at(stand_ins, 3, 0))
        assert at(stand_ins, 3, NO_ZONE) < 0
    assert drawn == MEMBERS[0]


def test_the_next_device_in_a_slot_gets_a_stand_in_of_its_own() -> None:
    stand_ins = StandIns(ZONE_OF, np.random.default_rng(1))
    drawn = set()
    for _ in range(100):
        drawn.add(at(stand_ins, 3, 1))
        stand_ins.forget(np.array([3, 99], np.int32))
    assert drawn == MEMBERS[1]


def test_without_zones_nobody_has_a_stand_in() -> None:
    nowhere = StandIns(np.full(5, NO_ZONE, np.int32), np.random.default_rng(1))
    assert at(nowhere, 0, NO_ZONE) < 0
    assert not len(nowhere.at(np.zeros(0, np.int32), np.zeros(0, np.int32)))
