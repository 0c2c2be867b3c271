"""The join: records of open windows, each made of the newest part from every source."""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from struct import pack

import numpy as np

from anonymizer.algorithms.records.meanings import meanings
from anonymizer.codecs.record_parts import texts_of
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.store_port import PartRow
from anonymizer.pipeline.records.topics import KEY_BYTES
from anonymizer.settings import StreamSettings
from anonymizer.settings.streams import MOST_OF_A_VEHICLE

_CODE_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Joined:
    """The records of one window, in an order that does not reveal the order of arrival.

    `cells`: code of each record in each column, the missing marker if no source reported it, shape
    (n, columns). `vehicle`: unique key of each record, that of its vehicle, followed by a time if
    one can have several. `person`: index of its vehicle, from 0. `n_parts`: that each record is
    made of, shape (n,). `reported`: whether each source reported a part of it, shape (n, sources).
    `values_of`: of each open column, in the order of their codes, as written; see `meant`.
    """

    cells: Int32Array
    vehicle: list[bytes]
    person: Int32Array
    n_parts: IntArray
    reported: BoolArray
    values_of: Mapping[int, Sequence[str]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.vehicle)

    def meant(self) -> "Joined":
        """Return the records with one value for all texts of an open column that mean the same."""
        cells, values_of = self.cells.copy(), dict(self.values_of)
        for column, texts in self.values_of.items():
            counts = zip(texts, np.bincount(cells[:, column], minlength=len(texts)), strict=False)
            values_of[column], code_of = valued({text: int(n) for text, n in counts})
            own = [code_of[text] for text in texts]
            cells[:, column] = recoded(cells[:, column], own, len(values_of[column]))
        return replace(self, cells=cells, values_of=values_of)


def _stays(known: PartRow, part: PartRow) -> bool:
    """Return whether a part stays when another of its source comes."""
    if part.ts != known.ts:
        return part.ts < known.ts
    codes = [
        np.frombuffer(each.cells, "<i4", len(each.cells) // _CODE_BYTES).tolist()
        for each in (known, part)
    ]
    return (codes[0], known.cells) < (codes[1], part.cells)


class OpenRecords:
    """Joins parts as they arrive; about 0.5 kB a record.

    At most `limit` records in all open windows, and `share` of one vehicle in a window. `apart`:
    parts of one vehicle with different times are separate records.
    """

    def __init__(self, *, n_sources: int, limit: int, share: int = 1, apart: bool = False) -> None:
        self._apart = apart
        self._share = share
        self._n_of: defaultdict[int, Counter[bytes]] = defaultdict(Counter)
        self._blank: list[PartRow | None] = [None] * n_sources
        self._limit = limit
        self._of: dict[int, dict[bytes, list[PartRow | None]]] = {}
        self.n_records = 0
        self.n_parts = 0
        """Number of parts that are the newest of their source."""

    @classmethod
    def of(cls, settings: StreamSettings) -> "OpenRecords":
        """Return the open records of a stream."""
        return cls(
            n_sources=len(settings.sources),
            limit=settings.max_records,
            share=MOST_OF_A_VEHICLE,
            apart=settings.per == "record",
        )

    def put(self, part: PartRow) -> tuple[Outcome, int]:
        """Join a part; return the outcome it settles, and the number of the part to drop.

        `HELD` and 0: nothing is settled or dropped. `SUPPRESSED__SUPERSEDED`: this part or the
        one it replaces. Of two parts with the same time the one with the smaller codes stays, so
        that their order makes no difference; missing markers are the greatest.
        """
        records = self._of.setdefault(part.window, {})
        key = self._key(part)
        parts = records.get(key)
        if parts is None:
            if self.n_records >= self._limit:
                return Outcome.SUPPRESSED__OVERLOAD, part.number
            if self._apart and self._n_of[part.window][part.vehicle] >= self._share:
                return Outcome.SUPPRESSED__OVER_SHARE, part.number
            parts = self._add(part, key)
        known = parts[part.source]
        if known is None:
            parts[part.source] = part
            self.n_parts += 1
            return Outcome.HELD, 0
        if (part.ts, part.cells) == (known.ts, known.cells):
            return Outcome.DUPLICATE, part.number
        if _stays(known, part):
            return Outcome.SUPPRESSED__SUPERSEDED, part.number
        parts[part.source] = part
        return Outcome.SUPPRESSED__SUPERSEDED, known.number

    def withdraw(self, vehicle: bytes) -> list[PartRow]:
        """Remove all records of a vehicle, and return their parts. O(records)."""
        gone: list[PartRow] = []
        for window, records in self._of.items():
            keys = [key for key in records if key.startswith(vehicle)]
            for key in keys:
                gone += (part for part in records.pop(key) if part is not None)
            self.n_records -= len(keys)
            self._n_of[window].pop(vehicle, None)
        self.n_parts -= len(gone)
        return gone

    def restore(self, parts: Iterable[PartRow]) -> None:
        """Restore the parts that were joined before a restart, without a limit."""
        for part in parts:
            key = self._key(part)
            joined = self._of.setdefault(part.window, {}).get(key) or self._add(part, key)
            joined[part.source] = part
            self.n_parts += 1

    def parts(self) -> Iterator[PartRow]:
        """Yield the parts of all records, for `restore`."""
        for records in self._of.values():
            for joined in records.values():
                yield from (part for part in joined if part is not None)

    def _add(self, part: PartRow, key: bytes) -> list[PartRow | None]:
        self.n_records += 1
        if self._apart:
            self._n_of[part.window][part.vehicle] += 1
        parts = self._of[part.window][key] = self._blank.copy()
        return parts

    def _key(self, part: PartRow) -> bytes:
        return part.vehicle + pack("<d", part.ts) if self._apart else part.vehicle

    def windows(self) -> Iterator[int]:
        """Yield the windows that have or had records and were not taken."""
        yield from self._of

    def take_of(self, stream: Stream, window: int) -> Joined:
        """Remove a window of a stream and return its records."""
        return self.take(
            window,
            columns_of=stream.columns_of,
            missing=[attribute.missing for attribute in stream.attributes],
            open_columns=stream.open_columns,
        )

    def take(
        self,
        window: int,
        *,
        columns_of: Sequence[Sequence[int]],
        missing: Sequence[int],
        open_columns: Collection[int] = (),
    ) -> Joined:
        """Remove a window and return its records.

        `missing`: the missing marker of each column; `open_columns`: those whose codes follow from
        the values that occur in the window.
        """
        records = self._of.pop(window, {})
        self._n_of.pop(window, None)
        vehicle = sorted(records)
        n = len(vehicle)
        cells = np.tile(np.array(missing, np.int32), (n, 1))
        reported = np.zeros((n, len(self._blank)), np.bool_)
        texts: dict[int, list[str | None]] = {column: [None] * n for column in open_columns}
        for source, columns in enumerate(columns_of):
            parts = [records[v][source] for v in vehicle]
            reported[:, source] = [p is not None for p in parts]
            width = _CODE_BYTES * len(columns)
            codes = b"".join(p.cells[:width] for p in parts if p is not None)
            of_parts = np.frombuffer(codes, "<i4").reshape(-1, len(columns))
            for column, values in zip(columns, of_parts.T, strict=True):
                cells[reported[:, source], column] = values
            stated = [column for column in columns if column in texts]
            for row, part in enumerate(parts) if stated else ():
                own = [] if part is None else texts_of(part.cells, n_attributes=len(columns))
                for column, text in zip(stated, own, strict=False):
                    texts[column][row] = text
        values_of = {}
        for column, of_column in texts.items():
            values_of[column], cells[:, column] = as_written(of_column)
        # A stable sort: by content, then by the key, which is a keyed digest.
        order = np.lexsort(cells.T[::-1])
        n_parts = reported.sum(axis=1)
        self.n_records -= n
        self.n_parts -= int(n_parts.sum())
        keys = [vehicle[i] for i in order.tolist()]
        return Joined(
            np.ascontiguousarray(cells[order]),
            keys,
            numbered([key[:KEY_BYTES] for key in keys]),
            n_parts[order],
            reported[order],
            values_of,
        )


def as_written(texts: Sequence[str | None]) -> tuple[list[str], list[int]]:
    """Return the distinct texts in order, and the code of each; that of None comes last."""
    written = sorted({text for text in texts if text is not None})
    code_of: dict[str | None, int] = {text: code for code, text in enumerate(written)}
    code_of[None] = missing_code(len(written))
    return written, [code_of[text] for text in texts]


def valued(counts: Mapping[str, int]) -> tuple[list[str], dict[str, int]]:
    """Return the values that texts mean, in order, and the code of each text, from how often it is.

    Texts that mean the same are one value, the most frequent of them; see `meanings`.
    """
    there = sorted(counts)
    shown = meanings(there, [counts[text] for text in there]).spelling
    values = sorted({value for value in shown if value is not None})
    code_of: dict[str | None, int] = {value: code for code, value in enumerate(values)}
    code_of[None] = missing_code(len(values))
    return values, {text: code_of[value] for text, value in zip(there, shown, strict=True)}


def recoded(codes: Int32Array, own: Sequence[int], n_values: int) -> Int32Array:
    """Return codes of texts, or that of None, as codes among `n_values` values.

    `own`: the code of each text there.
    """
    missing = missing_code(n_values)
    return np.array([*(own or [missing]), missing], np.int32)[codes]


def missing_code(n_values: int) -> int:
    """Return the code of no value: without any value, the domain has one that nobody has."""
    return n_values or 1


def numbered(vehicles: Sequence[Hashable]) -> Int32Array:
    """Return the index of each vehicle among the distinct ones, in order of appearance."""
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(v, len(number)) for v in vehicles], np.int32)
