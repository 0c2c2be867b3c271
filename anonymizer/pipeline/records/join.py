"""The records of open windows: parts of one vehicle, each source's newest."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from struct import pack

import numpy as np

from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.records.store_port import PartRow
from anonymizer.pipeline.records.topics import KEY_BYTES


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Joined:
    """The records of one window, in an order that says nothing of their arrival.

    Attributes
    ----------
    cells
        Code of each record in each column, the missing marker where no source told it, shape
        (n, columns).
    vehicle
        Key of each record: that of its vehicle, and of what tells it from others of the same;
        no two are equal.
    person
        Number of its vehicle, from 0, shape (n,).
    n_parts
        Parts that each record is made of, shape (n,).
    told
        Whether each source told something of it, shape (n, sources).
    """

    cells: Int32Array
    vehicle: list[bytes]
    person: Int32Array
    n_parts: IntArray
    told: BoolArray

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.vehicle)


class OpenRecords:
    """Joins parts as they come; about 0.5 kB a record.

    Parameters
    ----------
    n_sources
        Of the stream.
    limit
        Records in all open windows; further vehicles are refused.
    apart
        Whether parts of one vehicle are records of their own where their times differ.
    """

    def __init__(self, *, n_sources: int, limit: int, apart: bool = False) -> None:
        self._apart = apart
        self._blank: list[PartRow | None] = [None] * n_sources
        self._limit = limit
        self._of: dict[int, dict[bytes, list[PartRow | None]]] = {}
        self.n_records = 0
        self.n_parts = 0
        """That are the newest of their source."""

    def put(self, part: PartRow) -> tuple[Outcome, int]:
        """Take in a part; return what is settled by it, and the number of the part that goes.

        `HELD`, and 0: nothing is settled, none goes. `SUPPRESSED__SUPERSEDED`: this part or the
        one it replaces (of two parts of one time the greater codes stay, so that their order
        changes nothing).
        """
        records = self._of.setdefault(part.window, {})
        key = self._key(part)
        parts = records.get(key)
        if parts is None:
            if self.n_records >= self._limit:
                return Outcome.SUPPRESSED__OVERLOAD, part.number
            self.n_records += 1
            parts = records[key] = self._blank.copy()
        known = parts[part.source]
        if known is None:
            parts[part.source] = part
            self.n_parts += 1
            return Outcome.HELD, 0
        said, before = (part.ts, part.cells), (known.ts, known.cells)
        if said == before:
            return Outcome.DUPLICATE, part.number
        if said < before:
            return Outcome.SUPPRESSED__SUPERSEDED, part.number
        parts[part.source] = part
        return Outcome.SUPPRESSED__SUPERSEDED, known.number

    def restore(self, parts: Iterable[PartRow]) -> None:
        """Take in what was joined before a restart, all of it."""
        for part in parts:
            records = self._of.setdefault(part.window, {})
            key = self._key(part)
            if key not in records:
                records[key] = self._blank.copy()
                self.n_records += 1
            records[key][part.source] = part
            self.n_parts += 1

    def _key(self, part: PartRow) -> bytes:
        return part.vehicle + pack("<d", part.ts) if self._apart else part.vehicle

    def windows(self) -> Iterator[int]:
        """Yield the windows that hold something or did so once."""
        yield from self._of

    def take(
        self, window: int, *, columns_of: Sequence[Sequence[int]], missing: Sequence[int]
    ) -> Joined:
        """Remove a window and return its records.

        Parameters
        ----------
        columns_of
            The columns that each source tells.
        missing
            The missing marker of each column.
        """
        records = self._of.pop(window, {})
        vehicle = sorted(records)
        n = len(vehicle)
        cells = np.tile(np.array(missing, np.int32), (n, 1))
        told = np.zeros((n, len(self._blank)), np.bool_)
        for source, columns in enumerate(columns_of):
            parts = [records[v][source] for v in vehicle]
            told[:, source] = [p is not None for p in parts]
            codes = b"".join(p.cells for p in parts if p is not None)
            of_parts = np.frombuffer(codes, "<i4").reshape(-1, len(columns))
            for column, values in zip(columns, of_parts.T, strict=True):
                cells[told[:, source], column] = values
        # Stable: by content, then by a key that is a keyed digest.
        order = np.lexsort(cells.T[::-1])
        n_parts = told.sum(axis=1)
        self.n_records -= n
        self.n_parts -= int(n_parts.sum())
        keys = [vehicle[i] for i in order.tolist()]
        return Joined(
            np.ascontiguousarray(cells[order]),
            keys,
            numbered([key[:KEY_BYTES] for key in keys]),
            n_parts[order],
            told[order],
        )


def numbered(vehicles: Sequence[bytes]) -> Int32Array:
    """Return the number of each vehicle among the different ones, in order of appearance."""
    number: dict[bytes, int] = {}
    return np.array([number.setdefault(v, len(number)) for v in vehicles], np.int32)
