"""A model of a release of records: what it declares and promises, and how its classes are formed.

Cheap to import: each method imports its algorithm when it is called.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from anonymizer.algorithms.records.methods import AUTO, Method, searches
from anonymizer.domain.criteria.registry import FURTHER
from anonymizer.domain.promises import Promise, check_cells_promise

_RECORDS_PER_S = 50_000
_ALWAYS_PAYS_S, _ALWAYS_PAYS_PER_RECORD_S = 4.0, 1e-6


class MadeOf(Enum):
    """What the classes of a model are made of, and so along what a table is divided into ranges."""

    STRETCHES = auto()
    """Of the Hilbert order."""
    CLUSTERS = auto()
    """Of records that are alike in their features."""
    CELLS = auto()
    """Of a decision tree, which may follow a target; see `algorithms.cells`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A kind of release: its promise and defaults, the methods that keep it, and its words."""

    name: str
    """In options and settings."""
    promises: tuple[str, ...]
    """The criteria that it is about, by their names."""
    d: int = 1
    l: int = 1  # noqa: E741  the field's name for it
    """`d`, `l`: default number of distinct values of a quasi-identifier and of a sensitive
    attribute."""
    needs_sensitive: bool = False
    """Whether there must be a sensitive attribute, about which it `promises` something."""
    has_labels: bool = False
    """Whether the user chooses labels for quasi-identifiers, the release has counts and means, and
    no two classes have the same labels."""
    formed: MadeOf = MadeOf.STRETCHES
    """What classes are made of."""
    methods: Mapping[str, Method]
    of_streams: tuple[str, ...]
    """`methods`, `of_streams`: by name, the default first; and the names of those that streams
    have."""
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The extras that a method needs, by its name."""
    counts_alone: bool = False
    """Whether streams bound k, d and l alone."""
    title: str
    explained: str
    """`title`, `explained`: what it is called, and what its rows promise to a reader, with `{k}`,
    `{d}` and `{l}`."""
    heading: str
    meaning: str
    in_streams: str
    """`heading`, `meaning`, `in_streams`: what its classes are called, what they have, and about
    its methods, in words of settings."""

    @property
    def learns(self) -> bool:
        """Whether its classes follow a target that a model will learn from the release."""
        return self.formed is MadeOf.CELLS

    def forms_classes_like(self, other: "Model") -> bool:
        """Return whether the methods of streams have the same names in both models."""
        return not self.methods.keys().isdisjoint(other.methods)

    def check(self, promise: Promise) -> None:
        """Raise `ValueError` if a promise is not the model's, or no class of it could keep it."""
        for each in FURTHER:
            if each.name in self.promises and not each.is_asked(getattr(promise, each.name)):
                raise ValueError(f"{each.name} is required")
        if self.learns:
            check_cells_promise(promise)

    def extras_of(self, method: str | None) -> tuple[str, ...]:
        """Return the extras that a method needs, by its name; None and `auto`: the default."""
        default = next(iter(self.methods), "")
        return self.extras.get(default if method in {None, AUTO} else str(method), ())

    def method_name(self, name: str | None, *, n: int, time_budget_s: float) -> str:
        """Return the method to use: `name`, or for None and `auto` the default one.

        Notes
        -----
        A search is the default only where it has time to improve on the first method that does
        not search: 1 s per 50,000 records, but never more than 4 s and 1 s per million. Before
        that it is still cutting the whole table, see notes/laboratory.md.
        """
        if name is not None and name != AUTO:
            return name
        needed_s = min(n / _RECORDS_PER_S, _ALWAYS_PAYS_S + n * _ALWAYS_PAYS_PER_RECORD_S)
        pays = time_budget_s > 0 and time_budget_s >= needed_s
        return next(each for each in self.methods if pays or not searches(each))
