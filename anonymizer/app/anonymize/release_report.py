"""Report on a release: criteria requested and reached, information loss, leaks and warnings."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, create_model

from anonymizer.app.table_options import CostName
from anonymizer.domain.criteria.criterion import ClassCriterion, Of
from anonymizer.domain.criteria.registry import CRITERIA, FURTHER, criteria_of
from anonymizer.files.coded_table import Origin
from anonymizer.files.meanings import Fold


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")

    def _repr_html_(self) -> str:
        from anonymizer.notebooks import html_report  # noqa: PLC0415  only notebooks ask

        return html_report(type(self).__name__, self.model_dump())

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401  of further criteria


PartT = TypeVar("PartT", bound=type[_Part])


def _with_criteria(*of: Of, asked: bool = False) -> Callable[[PartT], PartT]:
    """Give a part the bound or the figure of each criterion besides k, d and l, null: none."""

    def extended(part: PartT) -> PartT:
        figures: dict[str, Any] = {
            each.name if asked else each.key: (
                dict[str, float] if asked and each.per_attribute else float | None,
                ...,
            )
            for each in FURTHER
            if each.of in of
        }
        made: Any = create_model(
            part.__name__,
            __base__=part,
            __module__=part.__module__,
            __doc__=part.__doc__,
            **figures,
        )
        return made  # type: ignore[no-any-return]

    return extended


class Losses(_Part):
    """Information loss in the three forms, 0 to 1 (normalized certainty penalty)."""

    range: float
    set: float
    taxonomy: float


@_with_criteria(Of.QI)
class QuasiIdentifier(_Part):
    """One quasi-identifier: its domain, and the criteria reached by the worst class.

    Attributes
    ----------
    kind, read_as, domain, size
        Numbers or categories; what the cells were taken for; origin of the domain; number of its
        codes.
    n_missing
        Records without a value, unless that counts as a value.
    table_share, n_above
        Share of the most frequent value in the whole table, and published records in classes in
        which one value has more than `AnonymizeReport.share`.
    ncp
        Information loss, the mean over all records.
    """

    name: str
    kind: Literal["number", "category"]
    read_as: str
    domain: Origin
    size: int
    n_missing: int
    d: int
    table_share: float = 1.0
    n_above: int = 0
    ncp: Losses


@_with_criteria(Of.SENSITIVE)
class Sensitive(_Part):
    """One sensitive attribute: the criteria reached by the worst class, see `Promise`.

    `n_homogeneous`: classes of a single value, and the persons in them. `table_share`, `n_above`:
    see `QuasiIdentifier`.
    """

    name: str
    kind: Literal["number", "category"]
    domain: Origin
    size: int
    n_missing: int
    l: int  # noqa: E741  the field's name for it
    n_homogeneous_classes: int
    n_homogeneous_people: int
    table_share: float = 1.0
    n_above: int = 0


@_with_criteria(Of.SOURCE)
class Source(_Part):
    """The attributes of one source, and the largest share of a class with the same tuple."""

    qis: tuple[str, ...]


class LeakFound(_Part):
    """What an adversary who holds one source learns for certain.

    Attributes
    ----------
    knows
        `values`: the victim's values; `labels`: also what they were generalized to.
    known, learned
        The attributes known, and those learned.
    n_cells, n_people
        Number of values learned, and of people concerned.
    """

    knows: Literal["values", "labels"]
    known: tuple[str, ...]
    learned: tuple[str, ...]
    n_cells: int
    n_people: int


class ClassSizes(_Part):
    """Sizes of the classes, in records."""

    min: int
    median: float
    max: int


@_with_criteria(*Of, asked=True)
class RequestedCriteria(_Part):
    """The criteria requested for every class; null: none."""

    k: int
    d: int
    l: int  # noqa: E741  the field's name for it


class ReleaseSettings(_Part):
    """The settings of a release."""

    version: str
    table: str
    model: str
    method: str
    cost: CostName
    dm_weight: float
    prefer_share: float = 1.0
    share_price: float = 0.0
    weights: dict[str, float] = {}
    suppress: float | None = None
    time_budget_s: float
    seed: int
    target: str | None
    missing_is_a_value: bool
    markers: tuple[str, ...]
    id: str | None
    kept: tuple[str, ...]
    labels: dict[str, str] = {}
    measures: tuple[str, ...] = ()
    bands: dict[str, tuple[float, ...]] = {}


class KeptCriterion(NamedTuple):
    """One line of what was asked of the classes, and what the worst of them reaches, as told."""

    criterion: ClassCriterion
    what: str
    asked: str
    reached: str
    is_asked: bool


class AnonymizeReport(_Part):
    """Report on the release of a table; the criteria reached are those of the worst class.

    Attributes
    ----------
    n
        Rows of the table.
    n_published
        Rows of the release.
    suppressed
        Suppressed rows, by reason: those of `coded_table.Reason`, which are no records; `repeated`
        (of a person for whom another row stands), `limit` (chosen under the suppression limit, so
        that the others lose less), `promise` (no class with them keeps it).
    n_classes, class_size
        Equivalence classes.
    k
        Fewest distinct persons of a class; rows where no identifier is declared.
    gcp, gcp_published
        Information loss over one row of each person, where a suppressed one counts 1; over the
        published rows alone.
    least_gcp
        No release that keeps the promise has a lower `gcp` in the cost of the settings, whatever
        its method, see `least_loss`. None in reports of earlier versions, and for more than
        100,000 rows by a method that does not search.
    saved_by_twice_the_time
        Share of its loss that twice the time budget would save about, measured on a part of a
        table of 10,000 rows or more.
    dm, dm_published
        Discernibility: the sum of the squared class sizes, where a suppressed row counts the rows
        of all persons, as Bayardo and Agrawal have it; over the published rows alone.
    share, n_above
        Preferred share, one half if none was; and published records in classes in which one value
        has more, of any attribute of which none has more in the whole table.
    leaks
        What the linkability attack finds, from each source to each other and to the sensitive
        attributes.
    folds
        Writings that count as one value.
    warnings
        Warnings for the reader of these figures.
    seconds
        Time of each step.
    """

    asked: RequestedCriteria
    settings: ReleaseSettings
    n: int
    n_published: int
    suppressed: dict[str, int]
    n_classes: int
    class_size: ClassSizes
    k: int
    qis: tuple[QuasiIdentifier, ...]
    sources: tuple[Source, ...]
    sensitive: tuple[Sensitive, ...]
    gcp: Losses
    gcp_published: Losses
    least_gcp: float | None = None
    saved_by_twice_the_time: float | None = None
    dm: int
    dm_published: int
    share: float = 0.5
    n_above: int = 0
    leaks: tuple[LeakFound, ...]
    folds: tuple[Fold, ...] = ()
    warnings: tuple[str, ...]
    seconds: dict[str, float] = {}

    def n_learned(self, *, sensitive: bool) -> int:
        """Return how many values the stronger adversary learns, over all sources.

        Values of other sources, or of the sensitive attributes.
        """
        names = {attribute.name for attribute in self.sensitive}
        return sum(
            leak.n_cells
            for leak in self.leaks
            if leak.knows == "labels" and names.issuperset(leak.learned) == sensitive
        )

    def kept(self) -> Iterator[KeptCriterion]:
        """Yield each criterion, and each column of which one is asked, in the order of help."""
        k = CRITERIA[0]
        yield KeptCriterion(k, k.row, str(self.asked.k), str(self.k), is_asked=True)
        for criterion in criteria_of(Of.QI, Of.SOURCE):
            bound = getattr(self.asked, criterion.name)
            of = self.qis if criterion.of is Of.QI else self.sources
            if criterion.of_each:
                for each in of:
                    yield from self._kept(criterion, each)
                continue
            worst = max if criterion.is_most else min
            reached = worst(getattr(each, criterion.key) for each in of)
            yield _line(criterion, criterion.row, bound, reached)
        for attribute in self.sensitive:
            for criterion in criteria_of(Of.SENSITIVE):
                yield from self._kept(criterion, attribute)

    def _kept(
        self, criterion: ClassCriterion, of: "QuasiIdentifier | Source | Sensitive"
    ) -> Iterator[KeptCriterion]:
        """Yield one of a column, unless it is stated for columns by name and not for this one."""
        bound = getattr(self.asked, criterion.name)
        bounds = bound if criterion.per_attribute else {of.name: bound}
        if of.name in bounds:
            reached = getattr(of, criterion.key)
            yield _line(criterion, criterion.row.format(of.name), bounds[of.name], reached)


def _line(
    criterion: ClassCriterion, what: str, bound: float | None, reached: float | None
) -> KeptCriterion:
    is_asked = bound is not None and criterion.is_asked(bound)
    return KeptCriterion(
        criterion, what, criterion.told(bound), criterion.told(reached), is_asked=is_asked
    )
