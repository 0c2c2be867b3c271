"""The join: which part of each source counts, and the order of records."""

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.records.join import Joined, OpenRecords
from anonymizer.pipeline.records.store_port import PartRow

COLUMNS_OF = ((0,), (1, 2))
MISSING = (9, 9, 9)
Sent = tuple[int, bytes, int, float, tuple[int, ...]]


def part(number: int, sent: Sent) -> PartRow:
    window, vehicle, source, ts, codes = sent
    return PartRow(number, window, vehicle, source, ts, struct.pack(f"<{len(codes)}i", *codes))


@st.composite
def parts(draw: st.DrawFn) -> list[Sent]:
    one = st.tuples(st.integers(0, 2), st.sampled_from([b"a", b"b", b"c"]), st.integers(0, 1))
    sent: list[Sent] = []
    for window, vehicle, source in draw(st.lists(one, max_size=25)):
        codes = tuple(draw(st.sampled_from([0, 1, 256])) for _ in COLUMNS_OF[source])
        sent.append((window, vehicle, source, float(draw(st.integers(0, 3))), codes))
    return sent


def joined(records: OpenRecords, window: int) -> Joined:
    return records.take(window, columns_of=COLUMNS_OF, missing=MISSING)


def rows(table: Joined) -> list[tuple[list[int], bytes, int, list[bool]]]:
    return [
        (cells, vehicle, n, reported)
        for cells, vehicle, n, reported in zip(
            table.cells.tolist(), table.vehicle, table.n_parts.tolist(), table.reported.tolist(),
            strict=True,
        )
    ]  # fmt: skip


def preferred(ts: float, cells: bytes) -> tuple[float, tuple[int, ...]]:
    """Of two parts the later one counts; at one time the one with the smaller codes."""
    return ts, tuple(-code for code in struct.unpack(f"<{len(cells) // 4}i", cells))


@given(parts())
def test_the_newest_part_of_each_source_is_joined(sent: list[Sent]) -> None:
    records = OpenRecords(n_sources=2, limit=1000)
    newest: dict[tuple[int, bytes, int], tuple[float, bytes]] = {}
    stored: dict[int, PartRow] = {}
    settled = 0
    for number, one in enumerate(sent, start=1):
        row = part(number, one)
        outcome, gone = records.put(row)
        settled += outcome is not Outcome.HELD
        stored[number] = row
        stored.pop(gone, None)
        key = (row.window, row.vehicle, row.source)
        newest[key] = max(
            newest.get(key, (-1.0, b"")), (row.ts, row.cells), key=lambda each: preferred(*each)
        )
    assert {(r.window, r.vehicle, r.source): (r.ts, r.cells) for r in stored.values()} == newest
    assert records.n_parts == len(newest) == len(sent) - settled
    again = OpenRecords(n_sources=2, limit=0)
    again.restore(stored.values())
    for window in range(3):
        table, restored = joined(records, window), joined(again, window)
        assert rows(table) == rows(restored)
        for cells, vehicle, n, reported in rows(table):
            for source, columns in enumerate(COLUMNS_OF):
                known = newest.get((window, vehicle, source))
                codes = [cells[c] for c in columns]
                assert reported[source] == (known is not None)
                assert codes == (
                    [9] * len(columns)
                    if known is None
                    else list(struct.unpack(f"<{len(columns)}i", known[1]))
                )
            assert n == sum(reported)
    assert (records.n_records, records.n_parts) == (again.n_records, again.n_parts) == (0, 0)


@given(parts(), st.integers(0, 99))
def test_the_order_of_arrival_changes_no_record(sent: list[Sent], seed: int) -> None:
    shuffled = [sent[i] for i in np.random.default_rng(seed).permutation(len(sent))]
    tables = []
    for order in (sent, shuffled):
        records = OpenRecords(n_sources=2, limit=1000)
        for number, one in enumerate(order, start=1):
            records.put(part(number, one))
        tables.append([rows(joined(records, window)) for window in range(3)])
    assert tables[0] == tables[1]


def test_records_are_sorted_by_their_content() -> None:
    records = OpenRecords(n_sources=2, limit=9)
    for number, (vehicle, code) in enumerate(((b"a", 2), (b"b", 0), (b"c", 1)), start=1):
        records.put(part(number, (0, vehicle, 0, 1.0, (code,))))
    assert joined(records, 0).vehicle == [b"b", b"c", b"a"]


def test_vehicles_beyond_the_limit_are_refused_until_a_window_is_taken() -> None:
    records = OpenRecords(n_sources=2, limit=2)
    for number, vehicle in enumerate((b"a", b"b"), start=1):
        assert records.put(part(number, (0, vehicle, 0, 1.0, (1,))))[0] is Outcome.HELD
    assert records.put(part(3, (1, b"c", 0, 1.0, (1,)))) == (Outcome.SUPPRESSED__OVERLOAD, 3)
    assert records.put(part(4, (0, b"a", 1, 1.0, (1, 1)))) == (Outcome.HELD, 0)
    joined(records, 0)
    assert records.put(part(5, (1, b"c", 0, 1.0, (1,)))) == (Outcome.HELD, 0)


def test_one_vehicle_has_its_share_of_the_records_of_a_window() -> None:
    records = OpenRecords(n_sources=1, limit=9, share=2, apart=True)
    first, second, third = ((0, b"a" * 16, 0, ts, (1,)) for ts in (1.0, 2.0, 3.0))
    assert records.put(part(1, first)) == (Outcome.HELD, 0)
    assert records.put(part(2, second)) == (Outcome.HELD, 0)
    assert records.put(part(3, third)) == (Outcome.SUPPRESSED__OVER_SHARE, 3)
    assert records.put(part(4, second)) == (Outcome.DUPLICATE, 4)
    assert records.put(part(5, (0, b"b" * 16, 0, 3.0, (1,)))) == (Outcome.HELD, 0)
    assert records.put(part(6, (1, b"a" * 16, 0, 9.0, (1,)))) == (Outcome.HELD, 0)
    again = OpenRecords(n_sources=1, limit=9, share=2, apart=True)
    again.restore([part(1, first), part(2, second)])
    assert again.put(part(3, third)) == (Outcome.SUPPRESSED__OVER_SHARE, 3)


def test_the_outcome_of_a_second_part_depends_on_its_time() -> None:
    records = OpenRecords(n_sources=2, limit=9)
    first = (0, b"a", 0, 5.0, (1,))
    assert records.put(part(1, first)) == (Outcome.HELD, 0)
    assert records.put(part(2, first)) == (Outcome.DUPLICATE, 2)
    assert records.put(part(3, (0, b"a", 0, 4.0, (2,)))) == (Outcome.SUPPRESSED__SUPERSEDED, 3)
    assert records.put(part(4, (0, b"a", 0, 6.0, (0,)))) == (Outcome.SUPPRESSED__SUPERSEDED, 1)
    assert np.array_equal(joined(records, 0).cells, [[0, 9, 9]])


def test_of_two_parts_with_one_time_the_one_that_states_more_at_first_stays() -> None:
    missing, stated = (0, b"a", 1, 5.0, (300, 2)), (0, b"a", 1, 5.0, (2, 9))  # 300: no value
    for order in ((missing, stated), (stated, missing)):
        records = OpenRecords(n_sources=2, limit=9)
        for number, sent in enumerate(order, start=1):
            records.put(part(number, sent))
        assert joined(records, 0).cells.tolist() == [[9, 2, 9]]
