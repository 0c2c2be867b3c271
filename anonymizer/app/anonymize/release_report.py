"""The report on a release: what was asked for, what was reached, what it costs."""

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from anonymizer.files.coded_table import Origin

CostName: TypeAlias = Literal["range", "set", "taxonomy"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class Losses(_Part):
    """Information loss in the three forms, 0 to 1 (normalized certainty penalty)."""

    range: float
    set: float
    taxonomy: float


class QuasiIdentifier(_Part):
    """One quasi-identifier: its domain, and what the worst class has of it.

    Attributes
    ----------
    kind, domain, size
        Numbers or categories; where the domain is from; how many codes it has.
    n_missing
        Records without a value, where that is no value.
    d
        Fewest distinct values.
    max_share
        Largest share of a class that has one value.
    spread
        Least distance between the ends of a number.
    ncp
        Information loss, the mean over all records.
    """

    name: str
    kind: Literal["number", "category"]
    domain: Origin
    size: int
    n_missing: int
    d: int
    max_share: float
    spread: float | None
    ncp: Losses


class Sensitive(_Part):
    """One sensitive attribute: what the worst class has of it, see `Promise`.

    `n_homogeneous`: classes of a single value, and the persons in them.
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


class Source(_Part):
    """What one source tells, and the largest share of a class that has one tuple of it."""

    qis: tuple[str, ...]
    max_share: float


class LeakFound(_Part):
    """What an adversary learns for certain who holds one source.

    Attributes
    ----------
    knows
        `values`: the victim's values; `labels`: also what they were generalized to.
    known, learned
        The attributes he holds, and those he learns of.
    n_cells, n_people
        Values learned, and whose.
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


class Asked(_Part):
    """What was asked of every class; null: nothing."""

    k: int
    d: int
    l: int  # noqa: E741  the field's name for it
    max_share: float
    max_source_share: float
    min_spread: dict[str, float]
    entropy_l: float
    t: float | None


class Settings(_Part):
    """How it was done."""

    version: str
    table: str
    model: str
    method: str
    cost: CostName
    dm_weight: float
    time_budget_s: float
    seed: int
    target: str | None
    missing_is_a_value: bool
    id: str | None
    kept: tuple[str, ...]
    labels: dict[str, str] = {}
    measures: tuple[str, ...] = ()
    bands: dict[str, tuple[float, ...]] = {}


class AnonymizeReport(_Part):
    """What became of a table; what is reached is that of the worst class.

    Attributes
    ----------
    n
        Rows of the table.
    n_published
        Rows of the release.
    suppressed
        Rows that were left out, by reason: `no_identifier`, `promise` (no class with them keeps
        it).
    n_classes, class_size
        Equivalence classes.
    k
        Fewest distinct persons of a class; rows where no identifier is declared.
    gcp, gcp_published
        Information loss over all rows with an identifier, where one left out counts 1; over the
        published rows alone.
    dm
        Discernibility: the sum of the squared class sizes.
    leaks
        What the linkability attack finds, from each source to each other and to the sensitive
        attributes.
    warnings
        What the reader of these figures should know.
    seconds
        Time of each step.
    """

    asked: Asked
    settings: Settings
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
    dm: int
    leaks: tuple[LeakFound, ...]
    warnings: tuple[str, ...]
    seconds: dict[str, float] = {}

    def n_learned(self, *, sensitive: bool) -> int:
        """Return how many values the stronger adversary learns, over all sources he may hold.

        Of other sources, or of the sensitive attributes.
        """
        names = {attribute.name for attribute in self.sensitive}
        return sum(
            leak.n_cells
            for leak in self.leaks
            if leak.knows == "labels" and names.issuperset(leak.learned) == sensitive
        )
