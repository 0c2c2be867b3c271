import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.arrays import distinct
from anonymizer.pipeline.devices import NO_ROW, NO_SLOT, DeviceTable, KeyRows

SECRET = b"of this test"


def table(max_devices: int = 10, secret: bytes = SECRET) -> DeviceTable:
    return DeviceTable(secret=secret, max_devices=max_devices)


def free(devices: DeviceTable, *slots: int) -> None:
    devices.free(np.array(slots, np.int32))


@given(st.integers(1, 4), st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef"))))
def test_a_device_keeps_one_slot_that_it_shares_with_nobody_while_it_is_present(
    max_devices: int, steps: list[tuple[bool, str]]
) -> None:
    devices = table(max_devices)
    present: dict[str, int] = {}
    for comes, device in steps:
        if comes:
            slot = devices.slot(device)
            if device in present:
                assert slot == present[device]
            elif len(present) == max_devices:
                assert slot == NO_SLOT
            else:
                assert slot not in present.values()
                assert 0 <= slot < max_devices
                present[device] = slot
        elif device in present:
            free(devices, present.pop(device))
        assert len(devices) == len(present)


def test_a_slot_set_free_twice_is_given_once() -> None:
    devices = table()
    slot = devices.slot("a")
    free(devices, slot, slot)
    assert devices.slot("b") != devices.slot("c")


def test_pseudonyms_differ_by_device_version_and_secret_and_are_equal_otherwise() -> None:
    def names(secret: bytes, version: int) -> list[str]:
        devices = table(secret=secret)
        return devices.pseudonyms([devices.slot("a"), devices.slot("b")], [version, version])

    everything = [*names(b"one", 0), *names(b"one", 1), *names(b"two", 0), *names(b"two", 1)]
    assert len(set(everything)) == 8
    assert names(b"one", 1) == everything[2:4]


def test_a_pseudonym_holds_for_its_version_and_says_nothing_of_the_device() -> None:
    devices = table()
    slot = devices.slot("bus-42")
    [first] = devices.pseudonyms([slot], [5])
    assert devices.pseudonyms([slot], [5]) == [first]
    assert devices.pseudonyms([slot], [6]) != [first]
    assert "bus" not in first
    assert len(first) == 12


def test_a_reused_slot_does_not_inherit_the_pseudonym() -> None:
    devices = table(1)
    slot = devices.slot("a")
    [old] = devices.pseudonyms([slot], [0])
    free(devices, slot)
    with pytest.raises(KeyError) as caught:
        devices.pseudonyms([slot], [0])
    assert "'a'" not in str(caught.value)
    assert devices.slot("b") == slot
    assert devices.pseudonyms([slot], [0]) != [old]


def test_a_device_that_returns_within_an_version_bears_the_same_pseudonym_in_any_slot() -> None:
    devices = table()
    [name] = devices.pseudonyms([devices.slot("a")], [3])
    free(devices, devices.slot("a"))
    devices.slot("b")
    assert devices.pseudonyms([devices.slot("a")], [3]) == [name]


def test_a_device_id_of_broken_text_still_has_a_pseudonym() -> None:
    devices = table()
    assert devices.pseudonyms([devices.slot("\ud800")], [0])[0]


@given(
    st.integers(1, 5), st.lists(st.tuples(st.lists(st.integers(0, 7)), st.sets(st.integers(0, 7))))
)
def test_many_devices_get_the_rows_that_they_would_get_one_by_one(
    most: int, steps: list[tuple[list[int], set[int]]]
) -> None:
    """With repetitions, rows that were given back, and no more room."""
    together, one_by_one = KeyRows(most), KeyRows(most)
    for come, go in steps:
        rows = together.of(np.array(come, np.uint64))
        assert rows.tolist() == [int(one_by_one.of(np.array([k], np.uint64))[0]) for k in come]
        gone = together.find(np.array(sorted(go), np.uint64))
        for table_ in (together, one_by_one):
            table_.drop(gone[gone != NO_ROW])
            assert len(table_) <= most
        assert together.used().tolist() == one_by_one.used().tolist()


@given(st.lists(st.integers(-3, 3)))
def test_distinct_items_are_those_of_a_set_in_order(items: list[int]) -> None:
    assert distinct(np.array(items, np.int32)).tolist() == sorted(set(items))


def test_a_slot_that_is_named_twice_is_freed_once_and_none_that_is_not_there() -> None:
    devices = table()
    slot = devices.slot("a")
    free(devices, NO_SLOT, 7)
    assert devices.slot("a") == slot
    free(devices, slot, slot, NO_SLOT, 7)
    assert devices.slots(["b", "c"]).tolist() == [slot, slot + 1]
