import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.records.join import Joined, OpenRecords
from anonymizer.pipeline.records.store_port import PartRow

COLUMNS_OF = ((0,), (1, 2))
MISSING = (9, 9, 9)
Said = tuple[int, bytes, int, float, tuple[int, ...]]


def part(number: int, said: Said) -> PartRow:
    window, vehicle, source, ts, codes = said
    return PartRow(number, window, vehicle, source, ts, struct.pack(f"<{len(codes)}i", *codes))


@st.composite
def parts(draw: st.DrawFn) -> list[Said]:
    one = st.tuples(st.integers(0, 2), st.sampled_from([b"a", b"b", b"c"]), st.integers(0, 1))
    said: list[Said] = []
    for window, vehicle, source in draw(st.lists(one, max_size=25)):
        codes = tuple(draw(st.integers(0, 2)) for _ in COLUMNS_OF[source])
        said.append((window, vehicle, source, float(draw(st.integers(0, 3))), codes))
    return said


def joined(records: OpenRecords, window: int) -> Joined:
    return records.take(window, columns_of=COLUMNS_OF, missing=MISSING)


def rows(table: Joined) -> list[tuple[list[int], bytes, int, list[bool]]]:
    return [
        (cells, vehicle, n, told)
        for cells, vehicle, n, told in zip(
            table.cells.tolist(), table.vehicle, table.n_parts.tolist(), table.told.tolist(),
            strict=True,
        )
    ]  # fmt: skip


@given(parts())
def test_the_newest_part_of_each_source_is_what_is_joined(said: list[Said]) -> None:
    records = OpenRecords(n_sources=2, limit=1000)
    newest: dict[tuple[int, bytes, int], tuple[float, bytes]] = {}
    stored: dict[int, PartRow] = {}
    settled = 0
    for number, one in enumerate(said, start=1):
        row = part(number, one)
        outcome, gone = records.put(row)
        settled += outcome is not Outcome.HELD
        stored[number] = row
        stored.pop(gone, None)
        key = (row.window, row.vehicle, row.source)
        newest[key] = max(newest.get(key, (-1.0, b"")), (row.ts, row.cells))
    assert {(r.window, r.vehicle, r.source): (r.ts, r.cells) for r in stored.values()} == newest
    assert records.n_parts == len(newest) == len(said) - settled
    again = OpenRecords(n_sources=2, limit=0)
    again.restore(stored.values())
    for window in range(3):
        table, restored = joined(records, window), joined(again, window)
        assert rows(table) == rows(restored)
        for cells, vehicle, n, told in rows(table):
            for source, columns in enumerate(COLUMNS_OF):
                known = newest.get((window, vehicle, source))
                codes = [cells[c] for c in columns]
                assert told[source] == (known is not None)
                assert codes == (
                    [9] * len(columns)
                    if known is None
                    else list(struct.unpack(f"<{len(columns)}i", known[1]))
                )
            assert n == sum(told)
    assert (records.n_records, records.n_parts) == (again.n_records, again.n_parts) == (0, 0)


@given(parts(), st.integers(0, 99))
def test_the_order_of_parts_changes_nothing(said: list[Said], seed: int) -> None:
    shuffled = [said[i] for i in np.random.default_rng(seed).permutation(len(said))]
    tables = []
    for order in (said, shuffled):
        records = OpenRecords(n_sources=2, limit=1000)
        for number, one in enumerate(order, start=1):
            records.put(part(number, one))
        tables.append([rows(joined(records, window)) for window in range(3)])
    assert tables[0] == tables[1]


def test_records_are_in_the_order_of_their_content() -> None:
    records = OpenRecords(n_sources=2, limit=9)
    for number, (vehicle, code) in enumerate(((b"a", 2), (b"b", 0), (b"c", 1)), start=1):
        records.put(part(number, (0, vehicle, 0, 1.0, (code,))))
    assert joined(records, 0).vehicle == [b"b", b"c", b"a"]


def test_no_more_vehicles_than_there_is_room_for() -> None:
    records = OpenRecords(n_sources=2, limit=2)
    for number, vehicle in enumerate((b"a", b"b"), start=1):
        assert records.put(part(number, (0, vehicle, 0, 1.0, (1,))))[0] is Outcome.HELD
    assert records.put(part(3, (1, b"c", 0, 1.0, (1,)))) == (Outcome.SUPPRESSED__OVERLOAD, 3)
    assert records.put(part(4, (0, b"a", 1, 1.0, (1, 1)))) == (Outcome.HELD, 0)
    joined(records, 0)
    assert records.put(part(5, (1, b"c", 0, 1.0, (1,)))) == (Outcome.HELD, 0)


def test_what_becomes_of_a_second_part_depends_on_its_time() -> None:
    records = OpenRecords(n_sources=2, limit=9)
    first = (0, b"a", 0, 5.0, (1,))
    assert records.put(part(1, first)) == (Outcome.HELD, 0)
    assert records.put(part(2, first)) == (Outcome.DUPLICATE, 2)
    assert records.put(part(3, (0, b"a", 0, 4.0, (2,)))) == (Outcome.SUPPRESSED__SUPERSEDED, 3)
    assert records.put(part(4, (0, b"a", 0, 6.0, (0,)))) == (Outcome.SUPPRESSED__SUPERSEDED, 1)
    assert np.array_equal(joined(records, 0).cells, [[0, 9, 9]])
