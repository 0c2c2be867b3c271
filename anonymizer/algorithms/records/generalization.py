"""Generalization: from equivalence classes to the generalized values that are published."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import Classes
from anonymizer.algorithms.records.generalized_values import (
    MISSING,
    Form,
    Hours,
    JoinableValue,
    LabelStyle,
    Language,
    Node,
    Prefix,
    Range,
    Span,
    Value,
    Values,
    common_prefix,
    covering_hours,
    hours_of_day,
    text,
    whole,
)
from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.records import Attribute, Schema

PLAIN = LabelStyle()
_BITS = 63
"""Codes of which a set is one number."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Generalized:
    """The generalized quasi-identifiers of equivalence classes.

    With `TAXONOMY` as `cost`, an attribute with a hierarchy is published by its nodes; otherwise by
    the values that are present. Codes of QI j present in class c, rising:
    `code[first_of[i]:first_of[i + 1]]` with i = c * qis + j. `lo`, `hi`: the first and the last of
    them, the missing marker's included, shape (classes, qis).
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
        """Return the codes of QI j that are present in class c, rising."""
        at = c * len(self.qis) + j
        return self.code[self.first_of[at] : self.first_of[at + 1]]

    def value(self, c: int, j: int) -> Value:
        """Return the generalized value of QI j in class c.

        Categories are in the order of the domain, the label of the missing marker last.
        """
        qi, codes = self.qis[j], self.present(c, j).tolist()
        missing = codes[-1] == qi.missing
        real = codes[:-1] if missing else codes
        if not real:
            return Values((MISSING if qi.numeric else qi.label[qi.missing],))
        if self._by_node(qi):
            return Node(_lowest(qi, real)[1], missing)
        if qi.written:
            return Span(qi.written[real[0]], qi.written[real[-1]], missing)
        if qi.numeric:
            ends = [qi.number(code) for code in (real[0], real[-1])]
            lo, hi = [whole(end) if isinstance(end, float) else end for end in ends]
            return Range((lo, hi), missing, qi.unit)
        return Values(tuple([qi.label[code] for code in codes]))

    def joinable_value(self, c: int, j: int, style: LabelStyle = PLAIN) -> JoinableValue:
        """Return the generalized value of QI j in class c, as one that can be joined to others.

        Two of them are equal if they cover the same: categories are sorted, and the missing
        marker is not among them. The hierarchy is not used.

        ValueError if the form does not suit the attribute.
        """
        qi = self.qis[j]
        _check_form(qi, style.form)
        real, missing = _real(qi, self.present(c, j))
        if style.form is Form.HOURS:
            place = qi.position[real]
            hours = hours_of_day(place, per_day=style.per_day, midnight=style.midnight).tolist()
            return Hours(covering_hours(hours) if hours else None, missing)
        if qi.numeric:
            if not len(real):
                return Range(None, missing)
            lo, hi = (qi.number(code) for code in real[[0, -1]].tolist())
            return Range((lo, hi), missing)
        names = sorted(qi.label[code] for code in real)
        if style.form is Form.PREFIX:
            prefix = common_prefix(names)
            return Prefix(prefix, missing)
        return Values(tuple(names), missing)

    def texts(
        self, j: int, style: LabelStyle = PLAIN, language: Language = Language.ZH
    ) -> list[str]:
        """Return the published text of QI j in each class.

        Raises
        ------
        ValueError
            If the form does not suit the attribute.
        """
        if style.form is Form.PLAIN:
            some, number = self._alike(j)
            told = [text(self.value(c, j)) for c in some]
            return [told[i] for i in number]
        _check_form(self.qis[j], style.form)
        values = [self.joinable_value(c, j, style) for c in range(len(self))]
        return [text(value, language) for value in values]

    def rank(self) -> Int32Array:
        """Return a number for each generalized value of a column, shape (classes, qis).

        Equal where the values are equal; otherwise in the order of the domain. It depends on what
        is published alone: sorting by it reveals nothing more.
        """
        rank = np.zeros_like(self.lo)
        for j in range(len(self.qis)):
            some, number = self._alike(j)
            keys = [self._key(c, j) for c in some]
            place = {key: i for i, key in enumerate(sorted(set(keys)))}
            rank[:, j] = np.array([place[key] for key in keys], np.int32)[number]
        return rank

    def _alike(self, j: int) -> tuple[list[int], list[int]]:
        """Return a class for each different content of QI j, and its place there for each class.

        Where the first, the last and the missing marker tell the value, they are the content.
        """
        qi, q = self.qis[j], len(self.qis)
        starts, ends = self.first_of[:-1][j::q], self.first_of[1:][j::q]
        if qi.numeric or self._by_node(qi):
            lo, hi = self.lo[:, j].astype(np.int64), self.hi[:, j].astype(np.int64)
            mixed = (hi == qi.missing) & (ends - starts > 1)
            last = np.where(mixed, self.code[ends - 1 - mixed], hi)
            key = (lo * (qi.size + 1) + last) * 2 + mixed
            _, some, number = np.unique(key, return_index=True, return_inverse=True)
            return some.tolist(), number.tolist()
        if qi.size <= _BITS:
            sets = _sets(self.first_of, self.code, j, q)
            _, some, number = np.unique(sets, return_index=True, return_inverse=True)
            return some.tolist(), number.tolist()
        at: dict[bytes, int] = {}
        found: list[int] = []
        places = []
        for c, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            place = at.setdefault(self.code[start:end].tobytes(), len(at))
            if place == len(found):
                found.append(c)
            places.append(place)
        return found, places

    def _key(self, c: int, j: int) -> tuple[int, ...]:
        """Return a key that identifies the generalized value and sorts in the domain's order."""
        qi, codes = self.qis[j], self.present(c, j)
        real, missing = _real(qi, codes)
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
    """Return the generalized quasi-identifiers of classes.

    `codes`: of each record in each quasi-identifier, shape (n, qis); no class is empty.

    A range ends in values that are present, not in steps of some grid, and a set holds the values
    that are present: no published value claims a value that no member has. O(n).
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


@kernel
def _sets(first_of: IntArray, code: Int32Array, j: int, n_qis: int) -> IntArray:
    """Return the codes of QI j in each class as bits of one number."""
    sets = np.zeros((len(first_of) - 1) // n_qis, np.int64)
    for c in range(len(sets)):
        at = c * n_qis + j
        for i in range(first_of[at], first_of[at + 1]):
            sets[c] |= np.int64(1) << np.int64(code[i])
    return sets


def _real(qi: Attribute, codes: Int32Array) -> tuple[Int32Array, bool]:
    """Return the codes without the missing marker's, and whether that was among them."""
    missing = bool(codes[-1] == qi.missing)
    return codes[:-1] if missing else codes, missing


def _lowest(qi: Attribute, codes: Int32Array | Sequence[int]) -> tuple[int, str]:
    """Return the lowest node above codes, which rise, and its label."""
    assert qi.hierarchy is not None  # noqa: S101  the caller checked
    below_first, below_last = qi.hierarchy.ancestor[codes[0]], qi.hierarchy.ancestor[codes[-1]]
    node = int(below_first[np.argmax(below_first == below_last)])
    return node, qi.hierarchy.label[node]


def _check_form(qi: Attribute, form: Form) -> None:
    if qi.written:
        raise ValueError(
            f"{qi.name}: dates, times and durations cannot be joined as they are written"
        )
    if form is not Form.PLAIN and qi.numeric is (form is Form.PREFIX):
        raise ValueError(f"{qi.name}: prefixes are for categories, hours for numbers")
