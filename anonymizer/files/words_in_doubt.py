"""What may mean something else than it is taken for: it is told, not decided."""

from collections.abc import Iterator

import polars as pl

from anonymizer.files.coded_table import Declared
from anonymizer.files.identifiers import counted_cells
from anonymizer.files.tables import TextTable

_WORDS = (
    "refused|declined|blank|empty|leer|vide|vac\u00edo|vuoto|\u043f\u0443\u0441\u0442\u043e|"
    "\u306a\u3057|\u7121|brak|nil|none|nessuno|keine|-9|-99|-999|-9999|999|9999|99999|9999-12-31|"
    "1900-01-01|0001-01-01|1970-01-01|n.d.|nd|nc|yok|entf\u00e4llt|test|dummy|placeholder|xx|xxx|"
    "xxxx|asdf|qwerty|withheld|not found"
)
"""Folded."""


def in_doubt(table: TextTable, declared: Declared) -> Iterator[str]:
    """Yield a sentence for each column with words that may mean no value, and count as one.

    And for each group of a hierarchy whose name is a range without a value that it holds. No value
    of the table is quoted.
    """
    if declared.hierarchies:
        yield from _misnamed(declared)
    for name in (*declared.qis, *declared.sensitive):
        counted = counted_cells(table, name, declared.markers_of(name))
        known = counted.with_columns(pl.col("cell").str.to_lowercase())
        known = known.filter(pl.col("cell").is_in(_WORDS.split("|")))
        if len(known):
            said = ", ".join(known["cell"].unique().sort())
            yield (
                f"{name}: {known['n'].sum():,} cells may say that there is no value, and count as "
                f"one: {said} (--missing names such words)"
            )


def _misnamed(declared: Declared) -> Iterator[str]:
    from anonymizer.files.hierarchies import misnamed  # noqa: PLC0415  few tables have one

    for name, branches in declared.hierarchies.items():
        for label, leaves in misnamed(branches).items():
            more = f" ({len(leaves):,} values)" if len(leaves) > 1 else ""
            yield (
                f"{name}: the group {label} of its hierarchy holds {leaves[0]}, which it says it "
                f"does not{more}: readers take it by its name"
            )
