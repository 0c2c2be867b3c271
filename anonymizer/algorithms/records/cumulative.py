"""Protection over many windows: the values that all classes of a person leave possible [1]_.

One class hides a value among d. A person who is published in many windows is in many classes, and
an adversary who finds the person in each of them can intersect their values. That concerns lasting
attributes only (the type of a vehicle, its home): a changing one (its speed) has another value each
time. The memory of a person is the set of codes that were present in every one of the classes.

References
----------
.. [1] S. Ganta et al., "Composition attacks and auxiliary information in data privacy", 2008.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema

NO_COMPANY = -1
UNKNOWN = -1
"""Number of values left before anything was published: all values of the domain."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LastingColumns:
    """The columns whose values last, as declared.

    `qis`, `sensitive`: indices into the schema; `missing`: missing marker of each column,
    quasi-identifiers first; `floor`: least number of values that must be left for each: d, or l;
    shape (columns,).
    """

    qis: tuple[int, ...]
    sensitive: tuple[int, ...]
    missing: Int32Array
    floor: IntArray

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.missing)

    def cells(self, records: Records) -> Int32Array:
        """Return the lasting columns of records, shape (n, columns)."""
        columns = (records.qi[:, list(self.qis)], records.sensitive[:, list(self.sensitive)])
        return np.ascontiguousarray(np.concatenate(columns, axis=1), dtype=np.int32)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Memory:
    """The memory of persons, in compressed sparse rows; the caller numbers the persons."""

    first_of: IntArray
    code: Int32Array
    """`first_of`, `code`: codes left for person p in lasting column a, rising:
    `code[first_of[i]:first_of[i + 1]]` with i = p * columns + a. Empty if nothing was published
    yet, since a class leaves at least one code. The missing marker is not among them."""
    company: IntArray
    """Number of the class in which each person was last published, unique over all windows;
    `NO_COMPANY`: in none. Shape (persons,)."""

    @property
    def n_persons(self) -> int:
        """Number of persons."""
        return len(self.company)


def lasting_columns(schema: Schema, promise: Promise, names: Iterable[str]) -> LastingColumns:
    """Return the columns of these names.

    Raises
    ------
    ValueError
        If a name is not in the schema, or is given twice.
    """
    wanted = list(names)
    every = [a.name for a in (*schema.qis, *schema.sensitive)]
    if len(set(wanted)) != len(wanted) or not set(wanted) <= set(every):
        raise ValueError("lasting attributes are attributes of the schema, each named once")
    qis = tuple(j for j, a in enumerate(schema.qis) if a.name in wanted)
    sensitive = tuple(j for j, a in enumerate(schema.sensitive) if a.name in wanted)
    attributes = [*(schema.qis[j] for j in qis), *(schema.sensitive[j] for j in sensitive)]
    least = promise.l + promise.margin if promise.l > 1 else promise.l
    floor = [promise.d] * len(qis) + [least] * len(sensitive)
    missing = np.array([a.missing for a in attributes], np.int32)
    return LastingColumns(qis, sensitive, missing, np.array(floor, np.int64))


def advance(
    memory: Memory,
    lasting: LastingColumns,
    records: Records,
    class_of: Int32Array,
    *,
    first_company: int,
) -> Memory:
    """Return the memory after these classes have been published.

    `memory`: of every person in the records; `class_of`: negative where suppressed, which leaves
    the memory of the person unchanged, shape (n,); `first_company`: class c becomes company
    `first_company + c`.

    Notes
    -----
    Only values that are present count, not all that a range covers: an adversary who knows the
    other members of a class can exclude values that none of them has. A class reveals nothing
    about a person whose own value is missing. If the value of a person is not among those left, it
    has changed, and the memory starts over with this class.

    O(n times the values of a class and column). A row is never longer than the distinct values of
    the class with which it started.
    """
    cells = lasting.cells(records)
    first_of, code = _intersected(
        memory.first_of,
        memory.code,
        records.person,
        class_of,
        cells,
        *codes_in_classes(cells, lasting.missing, class_of),
        lasting.missing,
    )
    company = memory.company.copy()
    kept = class_of >= 0
    company[records.person[kept]] = first_company + class_of[kept].astype(np.int64)
    return Memory(first_of, code, company)


def sensitive_part(
    memory: Memory, lasting: LastingColumns, among: Sequence[int]
) -> tuple[Memory, LastingColumns]:
    """Return the part of a memory, and of the columns, that concerns some sensitive attributes.

    `among` are their indices in the schema; the columns refer to a schema of these alone.
    """
    n, first = len(lasting), len(lasting.qis)
    chosen = [at for at, j in enumerate(lasting.sensitive) if j in among]
    columns = np.array([first + at for at in chosen], np.int64)
    rows = np.arange(memory.n_persons * n).reshape(-1, n)[:, columns].ravel()
    sizes = np.diff(memory.first_of)[rows]
    first_of = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    at = np.arange(first_of[-1]) + np.repeat(memory.first_of[rows] - first_of[:-1], sizes)
    sensitive = tuple(list(among).index(lasting.sensitive[at]) for at in chosen)
    only = LastingColumns((), sensitive, lasting.missing[columns], lasting.floor[columns])
    return Memory(first_of, memory.code[at], memory.company), only


def remaining(memory: Memory, lasting: LastingColumns) -> IntArray:
    """Return how many values are left for each person and column; `UNKNOWN` if unpublished.

    Shape (persons, columns).
    """
    left = np.diff(memory.first_of).reshape(memory.n_persons, len(lasting))
    return np.where(left == 0, UNKNOWN, left)


def short(memory: Memory, lasting: LastingColumns) -> BoolArray:
    """Return the persons with fewer values left than the floor in a column, shape (persons,)."""
    left = remaining(memory, lasting)
    return np.asarray(((left != UNKNOWN) & (left < lasting.floor)).any(axis=1))


def pack(memory: Memory, lasting: LastingColumns) -> list[bytes]:
    """Return the memory of each person as bytes, to be stored by key.

    The company in 8 bytes, then for each column 4 bytes for the number of codes left, then 4 bytes
    for each code; little endian.
    """
    n = len(lasting)
    bounds = memory.first_of.tolist()
    code = memory.code.astype("<i4")
    sizes = np.diff(memory.first_of).astype("<i4")
    company = memory.company.astype("<i8")
    return [
        company[p].tobytes()
        + sizes[p * n : (p + 1) * n].tobytes()
        + code[bounds[p * n] : bounds[(p + 1) * n]].tobytes()
        for p in range(memory.n_persons)
    ]


def unpack(stored: Sequence[bytes | None], lasting: LastingColumns) -> Memory:
    """Return the memory of persons from the bytes of `pack`; None: never published.

    Raises
    ------
    ValueError
        If the bytes do not fit the lasting columns.
    """
    n = len(lasting)
    head = 8 + 4 * n
    blank = np.int64(NO_COMPANY).astype("<i8").tobytes() + bytes(4 * n)
    blobs = [blank if blob is None else blob for blob in stored]
    if any(len(blob) < head or len(blob) % 4 for blob in blobs):
        raise ValueError("what is stored does not fit the lasting columns")
    heads = b"".join(blob[8:head] for blob in blobs)
    sizes = np.frombuffer(heads, "<i4").reshape(len(blobs), n)
    lengths = np.array([len(blob) - head for blob in blobs], np.int64) // 4
    if (sizes < 0).any() or (sizes.sum(axis=1) != lengths).any():
        raise ValueError("what is stored does not fit the lasting columns")
    return Memory(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)]),
        np.frombuffer(b"".join(blob[head:] for blob in blobs), "<i4").astype(np.int32),
        np.frombuffer(b"".join(blob[:8] for blob in blobs), "<i8").astype(np.int64),
    )


def codes_in_classes(
    cells: Int32Array, missing: Int32Array, class_of: Int32Array
) -> tuple[IntArray, Int32Array]:
    """Return the real codes in each class and column, rising, laid out as those of `Memory`.

    `missing` is the marker of each column, -1 where it has none.
    """
    kept = class_of >= 0
    n_classes, n = int(class_of.max(initial=-1)) + 1, cells.shape[1]
    row = (class_of[kept].astype(np.int64)[:, None] * n + np.arange(n)).ravel()
    code = cells[kept].ravel()
    real = (cells[kept] != missing).ravel()
    width = int(code.max(initial=0)) + 1
    there = np.unique(row[real] * width + code[real])
    sizes = np.bincount(there // width, minlength=n_classes * n)
    first_of = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return first_of, (there % width).astype(np.int32)


@kernel
def _intersected(
    first_of: IntArray,
    code: Int32Array,
    person: Int32Array,
    class_of: Int32Array,
    cells: Int32Array,
    first_value: IntArray,
    value: Int32Array,
    missing: Int32Array,
) -> tuple[IntArray, Int32Array]:
    n_columns = cells.shape[1]
    # A row may start over with a class; the room it needs at most is known in advance.
    room = first_of[1:] - first_of[:-1]
    for i in range(len(person)):
        for a in range(n_columns):
            if class_of[i] >= 0:
                at, of = person[i] * n_columns + a, class_of[i] * n_columns + a
                room[at] = max(room[at], first_value[of + 1] - first_value[of])
    start = np.zeros(len(room) + 1, np.int64)
    start[1:] = np.cumsum(room)
    left = np.empty(start[-1], np.int32)
    size = np.zeros(len(room), np.int64)
    for row in range(len(room)):
        old = code[first_of[row] : first_of[row + 1]]
        left[start[row] : start[row] + len(old)] = old
        size[row] = len(old)
    for i in range(len(person)):
        if class_of[i] < 0:
            continue
        for a in range(n_columns):
            if cells[i, a] == missing[a]:
                continue
            row, of = person[i] * n_columns + a, class_of[i] * n_columns + a
            present = value[first_value[of] : first_value[of + 1]]
            size[row] = _meet(left[start[row] : start[row + 1]], size[row], present, cells[i, a])
    out = np.zeros(len(room) + 1, np.int64)
    out[1:] = np.cumsum(size)
    packed = np.empty(out[-1], np.int32)
    for row in range(len(room)):
        packed[out[row] : out[row + 1]] = left[start[row] : start[row] + size[row]]
    return out, packed


@kernel
def _meet(left: Int32Array, size: int, present: Int32Array, own: int) -> int:
    """Intersect `left` with `present`, both rising; if `own` is not left, copy `present`."""
    at = np.searchsorted(left[:size], own)
    if at == size or left[at] != own:
        left[: len(present)] = present
        return len(present)
    n, j = 0, 0
    for i in range(size):
        while j < len(present) and present[j] < left[i]:
            j += 1
        if j < len(present) and present[j] == left[i]:
            left[n] = left[i]
            n += 1
    return n
