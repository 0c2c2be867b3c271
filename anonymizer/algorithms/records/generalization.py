"""Generalization: what is published of the quasi-identifiers of an equivalence class."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import Classes
from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.records import Attribute, Schema

MISSING = "?"
"""The missing marker as it is written; among categories it has a label of its own."""


@dataclass(frozen=True, slots=True, repr=False)
class Range:
    """Numbers that are there, by the least and the greatest; `missing`: some have none."""

    lo: float
    hi: float
    missing: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Values:
    """Categories that are there, in the order of the domain, the missing marker last."""

    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Node:
    """The lowest node of the hierarchy above all values that are there; `missing`: some are not."""

    label: str
    missing: bool = False


Value: TypeAlias = Range | Values | Node
"""A generalized value: what stands for one quasi-identifier of all members of a class."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Generalized:
    """The generalized quasi-identifiers of equivalence classes.

    Attributes
    ----------
    qis
        The quasi-identifiers.
    cost
        `TAXONOMY`: what has a hierarchy is published by its nodes; else the values that are there
        are.
    first_of, code
        Codes that are there, rising, of QI j in class c: `code[first_of[i]:first_of[i + 1]]` with
        i = c * qis + j.
    lo, hi
        The first and the last of them, the missing marker's included, shape (classes, qis).
    """

    qis: tuple[Attribute, ...]
    cost: Cost
    first_of: IntArray
    code: Int32Array
    lo: Int32Array
    hi: Int32Array

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self.lo)

    def present(self, c: int, j: int) -> Int32Array:
        """Return the codes of QI j that are there in class c, rising."""
        at = c * len(self.qis) + j
        return self.code[self.first_of[at] : self.first_of[at + 1]]

    def value(self, c: int, j: int) -> Value:
        """Return what is published of QI j in class c."""
        qi = self.qis[j]
        codes = self.present(c, j)
        missing = bool(codes[-1] == qi.missing)
        real = codes[:-1] if missing else codes
        if not len(real):
            return Values((_marker(qi),))
        if self._by_node(qi):
            return Node(_lowest(qi, real)[1], missing)
        if qi.numeric:
            return Range(float(qi.position[real[0]]), float(qi.position[real[-1]]), missing)
        return Values(tuple(qi.label[code] for code in codes.tolist()))

    def texts(self, j: int) -> list[str]:
        """Return what is published of QI j in each class, as `text` writes it."""
        return [text(self.value(c, j)) for c in range(len(self))]

    def rank(self) -> Int32Array:
        """Return a number for each generalized value of a column, shape (classes, qis).

        Equal where what is published is equal; otherwise in the order of the domain. It depends
        on nothing but what is published: to sort by it gives nothing away.
        """
        rank = np.zeros_like(self.lo)
        for j in range(len(self.qis)):
            keys = [self._key(c, j) for c in range(len(self))]
            number = {key: i for i, key in enumerate(sorted(set(keys)))}
            rank[:, j] = [number[key] for key in keys]
        return rank

    def _key(self, c: int, j: int) -> tuple[int, ...]:
        """Return what tells the generalized values of a column apart, in the domain's order."""
        qi, codes = self.qis[j], self.present(c, j)
        missing = bool(codes[-1] == qi.missing)
        real = codes[:-1] if missing else codes
        if not len(real):
            return (qi.size,)
        if self._by_node(qi):
            return (_lowest(qi, real)[0], missing)
        if qi.numeric:
            return (int(real[0]), int(real[-1]), missing)
        return tuple(codes.tolist())

    def _by_node(self, qi: Attribute) -> bool:
        return self.cost is Cost.TAXONOMY and qi.hierarchy is not None


def generalize(
    codes: Int32Array, classes: Classes, schema: Schema, cost: Cost = Cost.RANGE
) -> Generalized:
    """Return what is published of the quasi-identifiers of classes.

    Parameters
    ----------
    codes
        Code of each record in each quasi-identifier, shape (n, qis).
    classes
        None of them empty.

    Notes
    -----
    A range is over the values that are there, not over a step of some grid, and a set is of the
    values that are there: what is published never pretends to a value that no member has. O(n).
    """
    sizes = [qi.size for qi in schema.qis]
    first_of, code = _present(codes, classes.first_of, classes.member, max(sizes, default=0))
    shape = (len(classes), len(schema.qis))
    lo, hi = code[first_of[:-1]].reshape(shape), code[first_of[1:] - 1].reshape(shape)
    return Generalized(schema.qis, cost, first_of, code, lo, hi)


@kernel
def _present(
    codes: Int32Array, first_of: IntArray, member: IntArray, n_codes: int
) -> tuple[IntArray, Int32Array]:
    n_classes, n_qis = len(first_of) - 1, codes.shape[1]
    first = np.zeros(n_classes * n_qis + 1, np.int64)
    code = np.empty(len(member) * n_qis, np.int32)
    seen_in = np.full(n_codes, -1, np.int64)
    n = 0
    for c in range(n_classes):
        for j in range(n_qis):
            part, start = c * n_qis + j, n
            for i in member[first_of[c] : first_of[c + 1]]:
                value = codes[i, j]
                if seen_in[value] != part:
                    seen_in[value] = part
                    code[n] = value
                    n += 1
            code[start:n].sort()
            first[part + 1] = n
    return first, code[:n].copy()


def _lowest(qi: Attribute, codes: Int32Array) -> tuple[int, str]:
    """Return the lowest node above codes, which rise, and its label."""
    assert qi.hierarchy is not None  # noqa: S101  the caller asked
    below_first, below_last = qi.hierarchy.ancestor[codes[0]], qi.hierarchy.ancestor[codes[-1]]
    node = int(below_first[np.argmax(below_first == below_last)])
    return node, qi.hierarchy.label[node]


def _marker(qi: Attribute) -> str:
    return MISSING if qi.numeric else qi.label[qi.missing]


def text(value: Value) -> str:
    r"""Return a generalized value as it stands in a table.

    Notes
    -----
    Numbers `[lo-hi]`, also for a single one: `[30-30]`. Categories `{a|b}`, also for a single
    one: `{a}`. A node of a hierarchy is its label alone. With some missing `{[17-30]|?}`,
    `{a|b|?}`, `{group|?}`; all missing `{?}`. Within braces a `\`, `|` or `}` of a label is
    written after a `\`.
    """
    if isinstance(value, Values):
        return "{" + "|".join(_escaped(label) for label in value.labels) + "}"
    if isinstance(value, Range):
        plain = within = f"[{number(value.lo)}-{number(value.hi)}]"
    else:
        plain, within = value.label, _escaped(value.label)
    return f"{{{within}|{MISSING}}}" if value.missing else plain


def number(value: float) -> str:
    """Return the shortest decimal that reads as `value`, without an exponent."""
    return np.format_float_positional(value + 0.0, trim="-")


def _escaped(label: str) -> str:
    for special in "\\|}":
        label = label.replace(special, "\\" + special)
    return label
