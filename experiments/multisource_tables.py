"""Tables of two sources: the user's file, or a made one in the shape of a table of the paper.

Made tables are skewed and correlated, with many repeated records.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.records import NO_CODE, Attribute, Records, Schema
from anonymizer.errors import SettingsError
from anonymizer.files.coded_table import Declared, code_table
from anonymizer.files.hierarchies import read_hierarchies, read_orders
from anonymizer.files.tables import read_table

ADULT_ROWS = 32_561
CENSUS_ROWS = 2_458_285

ADULT_SOURCES = (
    ("age", "workclass", "marital-status"),
    ("occupation", "relationship", "native-country"),
)
ADULT_SENSITIVE = "race"
CENSUS_SOURCES = (("dAge", "dAncstry1", "dAncstry2"), ("iClass", "dDepart", "dHispanic"))
CENSUS_SENSITIVE = "dPoverty"

_N_PROFILES = 64
_KEPT = 0.7
"""Share of the values that a record takes from its profile; the rest are drawn for it alone."""


class Reading(StrEnum):
    """Meaning of the missing marker."""

    PAPER = "as published"
    """A value like any other, which counts towards d."""
    SAFE = "marker no value"
    """Not a value, as this product promises."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Study:
    """A table of two sources, in each reading.

    Attributes
    ----------
    name
        Name in the results.
    is_adult, is_census
        Whether it is a table of the paper, so that figures can be compared.
    is_made
        Whether it is made here; its name says so.
    of
        Records and schema by reading: the same codes, except for the missing marker.
    """

    name: str
    is_adult: bool
    of: dict[Reading, tuple[Records, Schema]]
    is_census: bool = False
    is_made: bool = False

    @property
    def n(self) -> int:
        """Number of records."""
        return self.of[Reading.PAPER][0].n


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFiles:
    """A table and its declaration."""

    table: Path
    """csv or parquet."""
    taxonomy: Path | None = None
    order: Path | None = None
    """`taxonomy`, `order`: JSON files of hierarchies and of the order of categories. None:
    categories are in the order of their hierarchy, or in alphabetical order."""
    sources: Sequence[Sequence[str]] = ADULT_SOURCES
    """The quasi-identifiers of each of two sources."""
    sensitive: str | None = ADULT_SENSITIVE
    """The sensitive attribute. None: there is none, and no (k,l,d)-diversity."""


def read_study(files: StudyFiles) -> Study:
    """Read a table in both readings.

    Raises
    ------
    InputError
        If a file cannot be read, or contradicts another.
    SettingsError
        If there are not two sources, or an attribute is declared twice.
    """
    if len(files.sources) != 2:
        raise SettingsError("the experiment requires two sources")
    qis = tuple(name for source in files.sources for name in source)
    sensitive = () if files.sensitive is None else (files.sensitive,)
    table = read_table(files.table, (*qis, *sensitive))
    hierarchies = {} if files.taxonomy is None else read_hierarchies(files.taxonomy)
    orders = {} if files.order is None else read_orders(files.order)
    of = {}
    for reading in Reading:
        declared = Declared(
            qis=qis,
            sensitive=sensitive,
            sources=files.sources,
            hierarchies=hierarchies,
            orders=orders,
            markers_are_values=reading is Reading.PAPER,
        )
        coded = code_table(table, declared)
        of[reading] = coded.records, coded.schema
    is_adult = len(table) == ADULT_ROWS and tuple(map(tuple, files.sources)) == ADULT_SOURCES
    is_census = len(table) == CENSUS_ROWS and tuple(map(tuple, files.sources)) == CENSUS_SOURCES
    return Study(name=files.table.name, is_adult=is_adult, of=of, is_census=is_census)


def read_census(path: Path) -> Study:
    """Read the Census of 1990 as the UCI repository distributes it, `USCensus1990.data.txt`.

    A header and a row for each person, divided by commas, semicolons or tabs; also packed with
    gzip, or as parquet. Other columns are ignored. The codes are numbers, in their own order.

    Raises
    ------
    InputError
        If the file cannot be read, or lacks one of the seven columns.
    """
    return read_study(StudyFiles(table=path, sources=CENSUS_SOURCES, sensitive=CENSUS_SENSITIVE))


def made_study(n: int, *, seed: int) -> Study:
    """Return a made table in the shape of Adult."""
    of = {
        reading: adult_like(n, seed=seed, markers_are_values=reading is Reading.PAPER)
        for reading in Reading
    }
    return Study(name="a made table in the shape of Adult", is_adult=False, of=of, is_made=True)


def made_census(n: int, *, seed: int) -> Study:
    """Return a made table in the shape of the Census of 1990. It has no missing values."""
    table = census_like(n, seed=seed)
    name = "a made table in the shape of the Census of 1990"
    return Study(name=name, is_adult=False, of=dict.fromkeys(Reading, table), is_made=True)


@dataclass(frozen=True, slots=True)
class _Column:
    """An attribute to make: code v is about (v + 1) ** -skew times as frequent as code 0."""

    name: str
    size: int
    skew: float
    numeric_from: int | None = None
    missing: bool = False

    def attribute(self, *, markers_are_values: bool) -> Attribute:
        position = np.arange(self.size, dtype=np.float64)
        if self.numeric_from is not None:
            return Attribute(self.name, position + self.numeric_from)
        label = [f"{self.name} {v + 1}" for v in range(self.size)]
        marked = self.missing and not markers_are_values
        if self.missing:
            label[-1] = "?"
        return Attribute(self.name, position, tuple(label), self.size - 1 if marked else NO_CODE)

    @property
    def weights(self) -> FloatArray:
        weight = (1.0 + np.arange(self.size)) ** -self.skew
        return np.asarray(weight / weight.sum())


_ADULT = (
    _Column("age", 74, 0.3, numeric_from=17),
    _Column("workclass", 9, 1.6, missing=True),
    _Column("marital-status", 7, 1.2),
    _Column("occupation", 15, 0.5, missing=True),
    _Column("relationship", 6, 0.9),
    _Column("native-country", 42, 2.2, missing=True),
    _Column("race", 5, 2.0),
)
_CENSUS = (
    _Column("dAge", 8, 0.2),
    _Column("dAncstry1", 12, 0.8),
    _Column("dAncstry2", 13, 2.0),
    _Column("iClass", 10, 1.2),
    _Column("dDepart", 6, 0.5),
    _Column("dHispanic", 10, 2.5),
    _Column("dPoverty", 3, 0.5),
)


def adult_like(
    n: int = ADULT_ROWS, *, seed: int, markers_are_values: bool = False
) -> tuple[Records, Schema]:
    """Return a made table of six quasi-identifiers of two sources, one of them numeric."""
    return _made(_ADULT, n, seed, markers_are_values=markers_are_values)


def census_like(n: int = CENSUS_ROWS, *, seed: int) -> tuple[Records, Schema]:
    """Return a made table of six small categories of two sources: few tuples, many repeats."""
    return _made(_CENSUS, n, seed, markers_are_values=True)


def _made(
    columns: Sequence[_Column], n: int, seed: int, *, markers_are_values: bool
) -> tuple[Records, Schema]:
    """Return records, each of which takes most of its values from one of a few profiles."""
    rng = np.random.default_rng(seed)
    weight = 1.0 / (1.0 + np.arange(_N_PROFILES))
    profile = rng.choice(_N_PROFILES, n, p=weight / weight.sum())
    cells: Int32Array = np.empty((n, len(columns)), np.int32)
    for j, column in enumerate(columns):
        typical = rng.choice(column.size, _N_PROFILES, p=column.weights)
        own = rng.choice(column.size, n, p=column.weights)
        cells[:, j] = np.where(rng.random(n) < _KEPT, typical[profile], own)
    attributes = [c.attribute(markers_are_values=markers_are_values) for c in columns]
    records = Records(
        qi=np.ascontiguousarray(cells[:, :-1]),
        sensitive=np.ascontiguousarray(cells[:, -1:]),
        person=np.arange(n, dtype=np.int32),
    )
    return records, Schema(tuple(attributes[:-1]), tuple(attributes[-1:]), ((0, 1, 2), (3, 4, 5)))
