"""Tables of records: declared attributes, and codes in place of their values."""

from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

NO_CODE = -1


class Unit(NamedTuple):
    """What is written before and behind each number of a column, with the blanks between."""

    before: str = ""
    after: str = ""


NO_UNIT = Unit()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Hierarchy:
    """A generalization hierarchy over the codes of one attribute.

    Notes
    -----
    The codes below a node are consecutive. So the lowest common ancestor of a set of codes is
    that of its smallest and its largest code.
    """

    ancestor: Int32Array
    """Node of each code at each level, from the leaf itself to the root, shape (size, height). A
    shorter branch repeats its upper node."""
    label: tuple[str, ...]
    """Label of each node, shape (nodes,)."""
    n_leaves: Int32Array
    """Number of values below each node (a leaf counts itself), the missing marker left out, shape
    (nodes,)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attribute:
    """An attribute and its declared domain: the values it can have, not those that occur."""

    name: str
    """Its name in the table or the source."""
    position: FloatArray
    """Position of each code on the axis of the attribute, rising, shape (size,): the number itself,
    or the place of a category in the order of its taxonomy."""
    label: tuple[str, ...] = ()
    """Category of each code; empty if the attribute is numeric."""
    missing: int = NO_CODE
    """Code of the missing marker, which is the last; `NO_CODE` if every record has a value. The
    marker is not a value: it never counts towards diversity."""
    hierarchy: Hierarchy | None = None
    """Its generalization hierarchy, or None."""
    exact: tuple[Decimal, ...] = ()
    """The number of each code, the missing marker left out, where some number is no float;
    `position` is then its distance from the first. Empty: the positions are the numbers."""
    written: tuple[str, ...] = ()
    """The text of each code, the missing marker left out, where the values are dates, times or
    durations; `position` is then the distance from the first: in days for dates, in months for
    months, otherwise in seconds. Empty: they are numbers or categories."""
    unit: Unit = NO_UNIT
    """Of all its numbers; they are published with it."""

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers, or times with a distance between them."""
        return not self.label

    def number(self, code: int) -> float | Decimal:
        """Return the number that a code stands for, to its last digit."""
        return self.exact[code] if self.exact else float(self.position[code])

    @property
    def size(self) -> int:
        """Number of codes in the domain, including the missing marker."""
        return len(self.position)

    @property
    def n_values(self) -> int:
        """Number of values in the domain, without the missing marker."""
        return self.size - (self.missing != NO_CODE)

    @property
    def span(self) -> float:
        """Distance between the ends of the domain, in the attribute's unit or in steps."""
        return float(self.position[-1] - self.position[0])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schema:
    """The roles of a table's columns."""

    qis: tuple[Attribute, ...]
    """Quasi-identifiers: attributes that an adversary may know."""
    sensitive: tuple[Attribute, ...]
    """Sensitive attributes: what the adversary must not learn."""
    sources: tuple[tuple[int, ...], ...]
    """The quasi-identifiers reported by each source, as indices into `qis`. An adversary who knows
    a source knows all of these about a record. Every index is in exactly one source."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Records:
    """A table in codes, without direct identifiers."""

    qi: Int32Array
    """Codes of the quasi-identifiers, C order, shape (n, qis)."""
    sensitive: Int32Array
    """Codes of the sensitive attributes, shape (n, sensitive attributes)."""
    person: Int32Array
    """Index of the person each record is about, from 0, shape (n,). k counts these, not records."""

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.qi)

    def only(self, chosen: BoolArray | IntArray) -> "Records":
        """Return the chosen records, in the order of the indices."""
        row = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        # `take` copies whole rows: a third of the time of `[]`.
        qi, sensitive = self.qi.take(row, axis=0), self.sensitive.take(row, axis=0)
        return Records(qi, sensitive, self.person.take(row))
