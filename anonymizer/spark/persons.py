"""Persons of a table on Spark: one number for all writings of an identifier.

How identifiers are read is decided from all of them, as in any table; a worker then numbers one
cell at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import polars as pl

from anonymizer.algorithms.records.generalized_values import MISSING
from anonymizer.algorithms.records.meanings import Reading, missing_words
from anonymizer.domain.person_key import person_key
from anonymizer.domain.plain_forms import plain_form
from anonymizer.files.coded_table import Declared, meaning_of, persons_of
from anonymizer.files.meanings import Fold
from anonymizer.files.person_keys import umlauts_of

MOST_READ = 2**20
"""Distinct identifiers from which it is decided how they are read."""


@dataclass(frozen=True, slots=True)
class PersonNumbers:
    """Numbers of persons."""

    reading: Reading | None
    """How identifiers are read; None: as they are written."""
    missing: frozenset[str]
    """Texts that name nobody."""
    umlauts: Mapping[str, str] = field(default_factory=dict)
    """As of `umlauts_of`."""

    @classmethod
    def of(cls, ids: Sequence[str], counts: Sequence[int], declared: Declared) -> "PersonNumbers":
        """Return the numbers for identifiers that occur so often."""
        if declared.id in declared.exact:
            return cls(None, frozenset(("", MISSING)))
        plain = [plain_form(each) for each in ids]
        missing = missing_words(plain, declared.markers)
        there = [i for i, text in enumerate(plain) if text not in missing]
        reading = Reading.of([plain[i] for i in there], [counts[i] for i in there])
        return cls(reading, missing, umlauts_of(ids))

    def __call__(self, cell: str | None) -> int | None:
        """Return the number of a person, None where a cell names nobody."""
        text = "" if cell is None else cell.strip() if self.reading is None else plain_form(cell)
        if text in self.missing:
            return None
        key = text if self.reading is None else self.reading.key(text)[0]
        if isinstance(key, Decimal):
            key = f"{key:f}"  # of 1 and 1.0
        if isinstance(key, str) and self.reading is not None:
            named = person_key(key)
            named = self.umlauts.get(named, named)
            key = key if named in self.missing else named
        same = repr(key)
        return int.from_bytes(blake2b(same.encode(), digest_size=8).digest(), signed=True)


def person_column(table: Any, declared: Declared) -> tuple[Any, tuple[Fold, ...]]:  # noqa: ANN401  pyspark is an extra
    """Return the person of each row of a data frame of Spark, null where it names none.

    And what that joined, of the `MOST_READ` identifiers that are looked at.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    cell = table[declared.id].cast("string")
    counted = table.groupBy(cell.alias("id")).count().where("id is not null")
    found = counted.limit(MOST_READ).toArrow().to_pydict()
    number = PersonNumbers.of(found["id"], found["count"], declared)
    # Without annotations, of which Spark would make something of its own.
    column = sql.udf(lambda text: number(text), "long")(cell)  # noqa: PLW0108
    return column, _joined(
        pl.Series(declared.id, found["id"], dtype=pl.String), found["count"], declared
    )


def _joined(ids: pl.Series, counts: Sequence[int], declared: Declared) -> tuple[Fold, ...]:
    """Return which writings of identifiers count as one, as in any table."""
    times = pl.Series(counts, dtype=pl.Int64)
    meant = meaning_of(ids, declared, counts=times)
    return (*persons_of(meant.of(ids), declared, counts=times)[1], *meant.folds)
