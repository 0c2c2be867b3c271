"""What may be committed of Kafka's partitions."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.arrays import IntArray
from anonymizer.transport.kafka_offsets import Offsets, Part

A, B = Part("raw", 0), Part("raw", 1)


def read(offsets: Offsets, part: Part, *at: int) -> IntArray:
    number = np.full(len(at), offsets.number(*part))
    return offsets.add(number, np.array(at))


def test_nothing_behind_a_message_that_waits_is_committed() -> None:
    offsets = Offsets()
    a, b = read(offsets, A, 5, 6, 7), read(offsets, B, 0, 1)
    assert offsets.settled() == {A: 5, B: 0}
    offsets.settle([a[1], a[2], b[0]])
    assert offsets.settled() == {A: 5, B: 1}
    offsets.settle([a[0]])
    assert offsets.settled() == {A: 8, B: 1}
    assert len(offsets) == offsets.n_waiting([A, B]) == 1


def test_receipts_of_a_partition_that_was_taken_settle_nothing_when_it_is_back() -> None:
    offsets = Offsets()
    old, other = read(offsets, A, 3, 4), read(offsets, B, 9)
    offsets.forget([A])
    assert offsets.settled() == {B: 9}
    again = read(offsets, A, 3, 4)
    offsets.settle(old)
    assert offsets.settled() == {A: 3, B: 9}
    offsets.settle([*again, *other])
    assert offsets.settled() == {A: 5, B: 10}


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=40), st.randoms())
def test_what_is_committed_is_what_a_naive_account_says(
    steps: list[tuple[int, bool]], random: Random
) -> None:
    offsets, parts = Offsets(), [Part("raw", i) for i in range(3)]
    read_to = [0, 0, 0]
    waiting: dict[int, tuple[int, int]] = {}
    for part, is_read in steps:
        if is_read or not waiting:
            [receipt] = read(offsets, parts[part], read_to[part]).tolist()
            waiting[receipt] = part, read_to[part]
            read_to[part] += 1
        else:
            receipt = random.choice(sorted(waiting))
            offsets.settle([receipt])
            del waiting[receipt]
    expected = {
        parts[i]: min([at for part, at in waiting.values() if part == i], default=read_to[i])
        for i in range(3)
        if read_to[i]
    }
    assert offsets.settled() == expected
