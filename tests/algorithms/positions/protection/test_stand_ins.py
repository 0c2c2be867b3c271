import numpy as np

from anonymizer.algorithms.positions.protection.stand_ins import NO_ZONE, StandIns
from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.domain.arrays import FloatArray, Int32Array

ZONE_OF = np.array([NO_ZONE, 0, 0, 1, 0, 1, NO_ZONE], np.int32)
MEMBERS = {0: {1, 2, 4}, 1: {3, 5}}
SECRET = b"of this test"


def at(stand_ins: StandIns, slot: int, *zones: int, ts: float = 0.0) -> list[int]:
    """Let a device, whose key is its slot, be in zones one after the other."""
    n = len(zones)
    times: FloatArray = ts + np.arange(n) / 10
    who: Int32Array = np.full(n, slot, np.int32)
    found: list[int] = stand_ins.at(
        who, np.array(zones, np.int32), key=who.astype(np.uint64), ts=times
    ).tolist()
    return found


def test_a_device_has_one_stand_in_of_its_zone_for_its_whole_stay() -> None:
    stand_ins = StandIns(ZONE_OF, SECRET)
    for zone, members in MEMBERS.items():
        for slot in range(20):
            [first] = at(stand_ins, slot, zone, ts=zone)
            assert first in members
            assert {*at(stand_ins, slot, zone, zone, ts=5.0), *at(stand_ins, slot, zone)} == {first}


def test_every_node_of_a_zone_is_drawn_and_a_new_stay_draws_anew() -> None:
    stand_ins, together = StandIns(ZONE_OF, SECRET), StandIns(ZONE_OF, SECRET)
    drawn = []
    for tick in range(100):
        drawn += at(stand_ins, 3, 0, ts=float(tick))
        assert at(stand_ins, 3, NO_ZONE) == [-1]
        assert at(together, 3, 0, 0, NO_ZONE, ts=float(tick)) == [drawn[-1]] * 2 + [-1]
    assert set(drawn) == MEMBERS[0]


def test_the_next_device_in_a_slot_gets_a_stand_in_of_its_own() -> None:
    stand_ins = StandIns(ZONE_OF, SECRET)
    drawn = set()
    for tick in range(100):
        drawn.update(at(stand_ins, 3, 1, ts=float(tick)))
        stand_ins.forget(np.array([3, 99], np.int32))
    assert drawn == MEMBERS[1]


def test_who_has_the_secret_draws_the_same_and_nobody_else_does() -> None:
    drawn = [
        [at(stand_ins, slot, 0)[0] for slot in range(50)]
        for stand_ins in (StandIns(ZONE_OF, SECRET), StandIns(ZONE_OF, SECRET),
                          StandIns(ZONE_OF, b"another"))
    ]  # fmt: skip
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_state_goes_on_alike() -> None:
    one, other = StandIns(ZONE_OF, SECRET), StandIns(ZONE_OF, SECRET)
    first = at(one, 7, 0)
    other.restore(unpack(pack(one.state())))
    assert at(other, 7, 0, ts=1.0) == first


def test_without_zones_nobody_has_a_stand_in() -> None:
    nowhere = StandIns(np.full(5, NO_ZONE, np.int32), SECRET)
    assert at(nowhere, 0, NO_ZONE) == [-1]
    assert at(nowhere, 0) == []


def test_a_state_of_other_zones_puts_nobody_at_a_node_of_them() -> None:
    stand_ins = StandIns(ZONE_OF, SECRET)
    at(stand_ins, 3, 0)
    turned = StandIns(np.where(ZONE_OF < 0, ZONE_OF, 1 - ZONE_OF).astype(np.int32), SECRET)
    turned.restore(unpack(pack(stand_ins.state())))
    assert {*at(turned, 3, 0)} <= MEMBERS[1], "which is zone 0 by now"
