"""What may mean something else than it is taken for: it is told, not decided."""

from collections.abc import Iterator

import polars as pl

from anonymizer.files.coded_columns import texts
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
_STATED, _TOGETHER = 0.5, 0.1
"""Of merged cells no more than that share states anything, and of these followed by another."""


def in_doubt(table: TextTable, declared: Declared) -> Iterator[str]:
    """Yield a sentence for each column with words that may mean no value, and count as one.

    And for each column that looks like merged cells, and each group of a hierarchy whose name is a
    range without a value that it holds. No value of the table is quoted.
    """
    if declared.hierarchies:
        yield from _misnamed(declared)
    if declared.id is not None and (n := _check_digits(texts(table, declared.id))):
        yield (
            f"{declared.id}: {n:,} identifiers of 14 to 16 digits begin as one of another length:"
            " an IMEI with and without its last digits is one device, and counts as several"
        )
    for name in (*declared.qis, *declared.sensitive):
        if told := merged_cells(texts(table, name)):
            yield f"{name}: {told}"
        counted = counted_cells(table, name, declared.markers_of(name))
        known = counted.with_columns(pl.col("cell").str.to_lowercase())
        known = known.filter(pl.col("cell").is_in(_WORDS.split("|")))
        if len(known):
            said = ", ".join(known["cell"].unique().sort())
            yield (
                f"{name}: {known['n'].sum():,} cells may say that there is no value, and count as "
                f"one: {said} (--missing names such words)"
            )


def merged_cells(cells: pl.Series) -> str:
    """Return what to say of a column that states a value once for all rows below it, else nothing.

    So a spreadsheet exports merged cells: the first row states a value, hardly any that does is
    followed by another, and no two that follow each other state the same. O(n).
    """
    at = cells.is_not_null().arg_true()
    n, n_stated = len(cells), len(at)
    if n_stated < 2 or n_stated > _STATED * n or at[0] != 0:
        return ""
    stated = cells.gather(at)
    n_together = int((at.diff().drop_nulls() == 1).sum())
    if n_together > _TOGETHER * n_stated or (stated == stated.shift(1)).any():
        return ""
    return (
        f"{n - n_stated:,} cells are empty below one that states a value, as merged cells of a "
        "spreadsheet are: they count as missing; fill them down if they mean what is above"
    )


def _check_digits(ids: pl.Series) -> int:
    """Return how many identifiers may be an IMEI of which others have more or fewer digits."""
    imei, digits = pl.col("imei"), pl.col("imei").str.len_bytes()
    found = ids.unique().to_frame("imei").filter(imei.str.contains("^[0-9]{14,16}$"))
    return len(found.filter(digits.n_unique().over(imei.str.head(14)) > 1))


def _misnamed(declared: Declared) -> Iterator[str]:
    from anonymizer.files.hierarchies import misnamed  # noqa: PLC0415  few tables have one

    for name, branches in declared.hierarchies.items():
        for label, leaves in misnamed(branches).items():
            more = f" ({len(leaves):,} values)" if len(leaves) > 1 else ""
            yield (
                f"{name}: the group {label} of its hierarchy holds {leaves[0]}, which it says it "
                f"does not{more}: readers take it by its name"
            )
