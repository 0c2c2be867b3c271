"""Tables of records: declared attributes, and codes in place of values."""

from dataclasses import dataclass

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

NO_CODE = -1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Hierarchy:
    """A generalization hierarchy over the codes of one attribute.

    Attributes
    ----------
    ancestor
        Node of each code at each level, the leaf itself first and the root last; a branch that
        is shorter repeats its upper node, shape (size, height).
    label
        Of each node, shape (nodes,).
    n_leaves
        Codes below each node, itself included where it is a leaf, shape (nodes,).

    Notes
    -----
    The codes below a node follow each other, so that the lowest node above a set of codes is the
    lowest above its smallest and its largest.
    """

    ancestor: Int32Array
    label: tuple[str, ...]
    n_leaves: Int32Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attribute:
    """One attribute and its declared domain: what values it can have, not which it has.

    Attributes
    ----------
    name
        As the table or the source calls it.
    position
        Where each code lies on the axis of the attribute, rising: the number itself, or the place
        of a category in the order of its taxonomy, shape (size,).
    label
        Category behind each code; empty where the attribute is numeric.
    missing
        Code of the missing marker, the last one; `NO_CODE` where every record has a value. It
        is no value: it never counts towards diversity.
    hierarchy
        None: there is none.
    """

    name: str
    position: FloatArray
    label: tuple[str, ...] = ()
    missing: int = NO_CODE
    hierarchy: Hierarchy | None = None

    @property
    def numeric(self) -> bool:
        """Whether values are numbers."""
        return not self.label

    @property
    def size(self) -> int:
        """Codes of the domain, that of the missing marker included."""
        return len(self.position)

    @property
    def span(self) -> float:
        """Metre, year or step between the ends of the domain."""
        return float(self.position[-1] - self.position[0])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schema:
    """What the columns of a table are to privacy.

    Attributes
    ----------
    qis
        Quasi-identifiers: what an adversary may know.
    sensitive
        What he must not learn.
    sources
        The quasi-identifiers that each source tells, as indices into `qis`: who knows one source
        holds all of these of a record together. Every index is in one source.
    """

    qis: tuple[Attribute, ...]
    sensitive: tuple[Attribute, ...]
    sources: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Records:
    """A table in codes; direct identifiers are gone.

    Attributes
    ----------
    qi
        Code of each record in each quasi-identifier, C order, shape (n, qis).
    sensitive
        Likewise, shape (n, sensitive attributes).
    person
        Whose record it is, 0 and up, shape (n,). k counts these, not records.
    """

    qi: Int32Array
    sensitive: Int32Array
    person: Int32Array

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.qi)

    def only(self, chosen: BoolArray | IntArray) -> "Records":
        """Return the chosen records, in the order asked for."""
        return Records(self.qi[chosen], self.sensitive[chosen], self.person[chosen])
