"""The distinct values of every equivalence class, in order, found without sorting."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Runs:
    """Distinct values of each class, one run each, rising within a class.

    Attributes
    ----------
    first_of
        Where the runs of each class begin, shape (classes,).
    code
        Value of each run, shape (runs, columns).
    n_persons
        Distinct persons who have it, shape (runs,).
    """

    first_of: IntArray
    code: Int32Array
    n_persons: IntArray

    def ends(self) -> IntArray:
        """Return where the runs of each class end, shape (classes,)."""
        return np.append(self.first_of[1:], len(self.code))

    def sum_of(self, what: IntArray | FloatArray | BoolArray) -> FloatArray:
        """Return the sum over the runs of each class, shape (classes,)."""
        return np.asarray(np.add.reduceat(what.astype(np.float64), self.first_of))

    def most(self) -> IntArray:
        """Return the most persons that any value of each class has, shape (classes,)."""
        return np.asarray(np.maximum.reduceat(self.n_persons, self.first_of))


class Survey:
    """Classes of records, to be looked at column by column.

    Attributes
    ----------
    size
        Records of each class, shape (classes,), all > 0.
    n_persons
        Distinct persons of each class, likewise.

    Raises
    ------
    ValueError
        If the numbers of the classes have a gap.

    Notes
    -----
    A look is O(n + codes) a column: records are brought into order by counting.
    """

    def __init__(self, class_of: Int32Array, person: Int32Array) -> None:
        kept = np.flatnonzero(class_of >= 0)
        self.size = np.bincount(class_of[kept])
        if not self.size.all():
            raise ValueError("a class number has no records")
        # From here on in the order of the classes: what is counted together lies together.
        self._record = _in_order(kept, class_of, len(self.size))
        self._class_of, self._person = class_of[self._record], person[self._record]
        self.n_persons = self.runs(np.zeros((len(class_of), 0), np.int32), ()).n_persons

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self.size)

    def runs(self, columns: Int32Array, attributes: Sequence[Attribute]) -> Runs:
        """Return the distinct rows of some columns, shape (n, columns), in each class."""
        order = np.arange(len(self._record))
        columns = columns[self._record]
        for column, attribute in zip(columns.T, attributes, strict=True):
            order = _in_order(order, np.ascontiguousarray(column), attribute.size)
        if len(attributes):
            order = _in_order(order, self._class_of, len(self))
        n_persons = int(self._person.max(initial=-1)) + 1
        first_of, record, count = _count(
            order, self._class_of, columns, self._person, len(self), n_persons
        )
        return Runs(first_of, columns[record], count)


@kernel
def _in_order(order: IntArray, key: Int32Array, n_keys: int) -> IntArray:
    """Return `order`, sorted by the key of each record; ties keep their order. O(n + keys)."""
    first = np.zeros(n_keys + 1, np.int64)
    for i in order:
        first[key[i] + 1] += 1
    first = np.cumsum(first)
    ordered = np.empty_like(order)
    for i in order:
        ordered[first[key[i]]] = i
        first[key[i]] += 1
    return ordered


@kernel
def _count(
    order: IntArray,
    class_of: Int32Array,
    columns: Int32Array,
    person: Int32Array,
    n_classes: int,
    n_persons: int,
) -> tuple[IntArray, IntArray, IntArray]:
    """Count the distinct persons of each stretch of `order` that is alike."""
    first_of = np.zeros(n_classes, np.int64)
    record = np.empty(len(order), np.int64)
    count = np.zeros(len(order), np.int64)
    last_run_of = np.full(n_persons, -1, np.int64)
    run = -1
    for at in range(len(order)):
        i = order[at]
        new_class = at == 0 or class_of[order[at - 1]] != class_of[i]
        new_run = new_class
        for j in range(columns.shape[1]):
            new_run |= at > 0 and columns[order[at - 1], j] != columns[i, j]
        if new_run:
            run += 1
            record[run] = i
        if new_class:
            first_of[class_of[i]] = run
        if last_run_of[person[i]] != run:
            last_run_of[person[i]] = run
            count[run] += 1
    return first_of, record[: run + 1].copy(), count[: run + 1].copy()
