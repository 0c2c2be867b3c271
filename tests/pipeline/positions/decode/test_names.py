"""The table of names beside a dictionary; what it keeps is bounded by bytes and by age."""

import gc
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.domain.arrays import Int32Array, IntArray, UInt8Array
from anonymizer.pipeline.name_hashes import hash_of
from anonymizer.pipeline.positions.decode.senders import UNKNOWN, NameTable

NAME = st.binary(max_size=9) | st.sampled_from([b"\x00", b"\x00\x00", b"a", b"a\x00", b"aa"])


def spans(*names: bytes) -> tuple[UInt8Array, Int32Array]:
    cuts = np.cumsum([0, *map(len, names)])
    joined = np.frombuffer(b"".join(names), np.uint8)
    return joined, np.stack([cuts[:-1], cuts[1:]], axis=1).astype(np.int32)


def find(table: NameTable, *names: bytes, kind: int = 0) -> IntArray:
    return table.find(*spans(*names), np.full(len(names), kind, np.int32))


def add(table: NameTable, *names: bytes, kind: int = 0) -> IntArray:
    return table.add(*spans(*names), np.full(len(names), kind, np.int32))


@settings(deadline=None)
@given(st.lists(st.tuples(NAME, st.integers(0, 2))), st.lists(NAME, min_size=1))
def test_a_name_has_the_number_of_its_first_appearance(
    added: list[tuple[bytes, int]], sought: list[bytes]
) -> None:
    table, number_of = NameTable(), dict[tuple[bytes, int], int]()
    for i in range(0, len(added), 3):
        names, kinds = (
            [name for name, _ in added[i : i + 3]],
            [kind for _, kind in added[i : i + 3]],
        )
        numbers = table.add(*spans(*names), np.array(kinds, np.int32)).tolist()
        assert numbers == [number_of.setdefault(each, len(number_of)) for each in added[i : i + 3]]
    assert len(table) == len(number_of)
    for (name, kind), number in number_of.items():
        assert (table.name(number), table.kind(number)) == (name, kind)
    for kind in range(3):
        expected = [number_of.get((name, kind), UNKNOWN) for name in sought]
        assert find(table, *sought, kind=kind).tolist() == expected


def test_many_names_are_all_found_again_and_no_others() -> None:
    names = [b"positions/device-%d" % i for i in range(30_000)]
    table = NameTable()
    assert add(table, *names[:9]).tolist() == list(range(9))
    assert add(table, *names).tolist() == list(range(30_000))
    assert find(table, *names).tolist() == list(range(30_000))
    assert (find(table, *(name + b"x" for name in names)) == UNKNOWN).all()
    kept = table.forget(at_s=0.0, kept_s=10.0)
    assert kept is None
    assert table.forget(at_s=6.0, kept_s=10.0) is not None
    find(table, *names[::3])
    kept = table.forget(at_s=12.0, kept_s=10.0)
    assert kept is not None
    assert kept.tolist() == list(range(0, 30_000, 3))
    assert find(table, *names[::3]).tolist() == list(range(10_000))
    assert (find(table, *names[1::3]) == UNKNOWN).all()


@given(
    st.lists(
        st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.floats(0, 10)).filter(
            lambda step: step[1] >= 0
        ),
        max_size=40,
    )
)
def test_no_name_is_kept_for_longer_than_the_limit_after_its_last_use(
    steps: list[tuple[bytes, float]],
) -> None:
    table, at_s, used_at_s, late_s = NameTable(), 0.0, dict[bytes, float](), 0.0
    for name, wait_s in steps:
        # `forget` is called often, as on every tick. Two generations may each end a tick late.
        late_s = max(late_s, wait_s / 10)
        for i in range(1, 11):
            table.forget(at_s=at_s + wait_s * i / 10, kept_s=12.0)
        at_s += wait_s
        kept = [table.name(number) for number in range(len(table))]
        assert all(at_s - used_at_s[each] <= 12.0 + 2 * late_s for each in kept)
        add(table, name)
        used_at_s[name] = at_s


def test_a_name_in_use_is_never_forgotten() -> None:
    table = NameTable()
    assert add(table, b"a").tolist() == [0]
    for at_s in range(0, 600, 4):
        table.forget(at_s=float(at_s), kept_s=12.0)
        assert find(table, b"a").tolist() == [0]


def test_after_a_pause_of_the_gateway_nothing_old_is_left() -> None:
    table = NameTable()
    table.forget(at_s=0.0, kept_s=60.0)
    add(table, b"a")
    table.forget(at_s=3600.0, kept_s=60.0)
    assert len(table) == 0


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 20_000), max_size=60))
def test_however_long_names_are_their_bytes_are_bounded(lengths: list[int]) -> None:
    table = NameTable(max_bytes=50_000)
    for i, length in enumerate(lengths):
        name = b"%d" % i
        (number,) = add(table, name.ljust(length)).tolist()
        assert table.n_bytes <= 50_000
        assert number == UNKNOWN or table.name(number) == name.ljust(length)
        if number == UNKNOWN:  # there is room again after the next call
            assert table.forget(at_s=1.0, kept_s=60.0) is not None
            assert table.n_bytes <= 25_000


@pytest.mark.parametrize("length", [5, 10_000])
def test_the_bytes_that_are_counted_for_a_name_are_those_that_it_takes(length: int) -> None:
    n = 2**15 + 1 if length == 5 else 200  # the places have just doubled
    table = NameTable()
    add(NameTable(), b"compiled")
    gc.collect()
    tracemalloc.start()
    add(table, *(b"%d" % i + bytes(length) for i in range(n)))
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert table.n_bytes / 4 < taken <= 2 * table.n_bytes


def test_hashes_of_different_names_differ() -> None:
    names = [bytes([a]) * n for a in (0, 1, 255) for n in range(300)]
    names += [bytes([0] * i + [1] + [0] * (40 - i)) for i in range(41)]
    hashes = hash_of(*spans(*names))
    assert (hashes >= 0).all()
    assert len(set(hashes.tolist())) == len(set(names))
