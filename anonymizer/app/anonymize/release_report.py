"""Report on a release: criteria requested and reached, information loss, leaks and warnings."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from anonymizer.app.table_options import CostName
from anonymizer.files.coded_table import Origin
from anonymizer.files.meanings import Fold


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")

    def _repr_html_(self) -> str:
        from anonymizer.notebooks import html_report  # noqa: PLC0415  only notebooks ask

        return html_report(type(self).__name__, self.model_dump())


class Losses(_Part):
    """Information loss in the three forms, 0 to 1 (normalized certainty penalty)."""

    range: float
    set: float
    taxonomy: float


class QuasiIdentifier(_Part):
    """One quasi-identifier: its domain, and the criteria reached by the worst class.

    Attributes
    ----------
    kind, read_as, domain, size
        Numbers or categories; what the cells were taken for; origin of the domain; number of its
        codes.
    n_missing
        Records without a value, unless that counts as a value.
    d
        Fewest distinct values.
    max_share
        Largest share of a class with the same value.
    table_share, n_above
        Share of the most frequent value in the whole table, and published records in classes in
        which one value has more than `AnonymizeReport.share`.
    spread
        Least distance between the ends of a number.
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
    max_share: float
    table_share: float = 1.0
    n_above: int = 0
    spread: float | None
    ncp: Losses


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
    entropy_l: float
    t: float
    n_homogeneous_classes: int
    n_homogeneous_people: int
    table_share: float = 1.0
    n_above: int = 0


class Source(_Part):
    """The attributes of one source, and the largest share of a class with the same tuple."""

    qis: tuple[str, ...]
    max_share: float


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


class RequestedCriteria(_Part):
    """The criteria requested for every class; null: none."""

    k: int
    d: int
    l: int  # noqa: E741  the field's name for it
    max_share: float
    max_source_share: float
    min_spread: dict[str, float]
    entropy_l: float
    t: float | None


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
        Of a search: no release that keeps the promise has a lower `gcp` in the cost that it
        minimized, see `least_loss`.
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
