"""Criterion of an equivalence class: what its bound is, what is asked of a class, and its words.

What forms classes knows no criteria. It knows thresholds of a column (`problem.RULE`): distinct
values, the share of the most frequent one, spread, entropy, distance from the usual distribution.
A criterion states those that imply it, so a search is as fast with a new one; whether a release
keeps it is verified by its own `value`, of what the classes hold.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

_TOLERANCE = 1e-9
"""By which a bound may be missed, for rounding errors; of a bound above 1, the share of it."""


class Of(Enum):
    """What a criterion is about: the class, or each of its columns of a kind."""

    CLASS = "class"
    QI = "quasi-identifier"
    SOURCE = "source of several quasi-identifiers"
    SENSITIVE = "sensitive attribute"


class Holding(Protocol):
    """What each class holds of a column; each person counts once for each value.

    `leaving`: whichever so many persons leave, the least, or of `distance` the most, that there is.
    """

    @property
    def n_persons(self) -> "IntArray":
        """Persons of each class."""

    @property
    def most(self) -> "IntArray":
        """Persons with the most frequent value."""

    def n_values(self, leaving: int) -> "IntArray":
        """Return the distinct values, the missing marker left out."""

    def spread(self, leaving: int) -> "FloatArray":
        """Return the distance between the ends of a number; minus infinity without a value."""

    def diversity(self, leaving: int) -> "FloatArray":
        """Return exp(entropy): so many equally frequent values are as diverse."""

    def distance(self, leaving: int) -> "FloatArray":
        """Return the earth mover's distance from all records, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCriterion:
    """One criterion, for whatever forms, verifies, tells or asks for classes."""

    name: str
    """In a promise, in settings, as a keyword, and as an option."""
    of: Of
    """What it is about."""
    value: "Callable[[Holding, int], IntArray | FloatArray]"
    """Returns what the bound is compared with, of each class: held, and how many may leave."""
    thresholds: Callable[[Any, int], Mapping[str, float]]
    """Returns fields of `problem.RULE` that imply it: of a bound, and of the margin."""
    is_most: bool = False
    """Whether the bound is the most that a class may have; else it is the least."""
    neutral: float
    default: Any = None
    """`neutral`, `default`: the bound that every class meets, and that of a promise that states
    none."""
    least: float = 0
    most: float = inf
    above_least: bool = False
    """`least`, `most`, `above_least`: limits of a bound, and whether settings leave out the lower
    one."""
    per_attribute: bool = False
    """Whether a bound is stated for each number of its kind, by its name."""
    safe: float | None = None
    """The bound where d is 2 or more and none is stated; None: the default."""
    leaving: Callable[[int, float], int] = lambda margin, _bound: margin
    """Returns how many may leave, of the margin and the bound."""
    is_read: bool = False
    counts_values: bool = False
    """`is_read`, `counts_values`: whether a reader of one class can verify it; whether so many
    persons must have a value."""
    meaning: str = ""
    unstated: str = ""
    """`meaning`, `unstated`: what a bound means, and what holds where none is stated, for help and
    settings."""
    row: str
    head: str
    of_each: bool = False
    is_share: bool = False
    """`row`, `head`, `of_each`, `is_share`: words of a report: in a table of all criteria, and of
    columns; whether each column has a row of its own there; whether figures are told as shares."""
    promised: str = ""
    """Words of a contract, with the bound and the attribute; empty: it tells nothing."""
    finding: str
    figure: str
    danger: str
    question: str
    """`finding`, `figure`, `danger`, `question`: of an audit: the name of what it finds, of its
    figure, the criterion of the Article 29 Working Party to which it belongs, and what is asked."""
    told_as: str = ""
    """Name of the figure in a report's part on a column; empty: as of the criterion."""

    @property
    def key(self) -> str:
        """Name of the figure in a report's part on a column."""
        return self.told_as or self.name

    def bound_of(self, stated: Any, d: int) -> Any:  # noqa: ANN401  a number, or one for each name
        """Return the bound of a promise of which `stated` is stated, None if nothing is."""
        if stated is not None:
            return dict(stated) if self.per_attribute else stated
        return self.default if self.safe is None or d == 1 else self.safe

    def bound_for(self, bound: Any, attribute: str) -> float:  # noqa: ANN401  likewise
        """Return the bound for one attribute."""
        return float(bound.get(attribute, self.neutral) if self.per_attribute else bound)

    def is_asked(self, bound: Any) -> bool:  # noqa: ANN401  likewise
        """Return whether a bound asks more than a promise that states none."""
        return bool(bound not in (self.neutral, self.default))

    def fails(self, held: Holding, bound: float, margin: int) -> "BoolArray":
        """Return which classes break it, shape (classes,)."""
        value = self.value(held, self.leaving(margin, bound))
        slack = _TOLERANCE * max(abs(bound), 1.0)
        return ~(value <= bound + slack if self.is_most else value >= bound - slack)

    def told(self, value: float | None) -> str:
        """Return a figure as a report tells it."""
        if value is None or value == inf:
            return "-"
        return f"{value:.1%}" if self.is_share else f"{value:.3g}"
