"""Unsettled deliveries: as a dict from receipts to packet identifiers would keep them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.transport.unsettled import Receipts, Unsettled

mids = st.lists(st.integers(0, 9), max_size=6)
receipts = st.lists(st.integers(0, 40), max_size=8)


@given(steps=st.lists(st.tuples(mids, receipts), max_size=8))
def test_each_delivery_is_acknowledged_once_and_nothing_else_is(
    steps: list[tuple[list[int], list[int]]],
) -> None:
    unsettled, twin = Unsettled(Receipts()), dict[int, int]()
    taken = 1
    for arriving, settled in steps:
        given_receipts = unsettled.add(np.array(arriving, np.int64)).tolist()
        expected = []
        for mid in arriving:
            expected.append(taken if mid else 0)
            if mid:
                twin[taken] = mid
                taken += 1
        assert given_receipts == expected
        acknowledged = [twin.pop(each) for each in settled if each in twin]
        assert unsettled.settle(settled).tolist() == acknowledged
        assert len(unsettled) == len(twin)


def test_room_is_made_for_any_number_of_deliveries_however_late_they_are_settled() -> None:
    unsettled = Unsettled(Receipts())
    held = unsettled.add(np.array([7]))
    for mid in range(1, 4000):
        receipt = unsettled.add(np.array([mid]))
        assert unsettled.settle(iter(receipt.tolist())).tolist() == [mid]
    assert len(unsettled) == 1
    assert unsettled.settle(held).tolist() == [7]
    held = unsettled.add(np.arange(1, 5000))
    unsettled.clear()
    assert not unsettled.settle(held).tolist()


def test_receipts_of_one_connection_settle_nothing_on_the_next() -> None:
    receipts = Receipts()
    before, after = Unsettled(receipts), Unsettled(receipts)
    old, new = before.add(np.array([1, 2])), after.add(np.array([1, 2]))
    assert not after.settle(old).tolist()
    assert after.settle(new).tolist() == [1, 2]
