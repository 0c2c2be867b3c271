"""Columns of a table by what their values mean: before anything is counted or promised.

What was folded is listed; see `anonymizer.algorithms.records.meanings` for what is one value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import polars as pl
from pydantic import BaseModel, ConfigDict

from anonymizer.domain.binary_rounding import KEPT_DIGITS
from anonymizer.domain.date_forms import TIME_WITHIN, in_digits, with_century
from anonymizer.domain.spellings import CURRENCIES, ERROR, TRUTH
from anonymizer.files.coded_columns import TEXT
from anonymizer.files.tables import TextTable

if TYPE_CHECKING:
    from anonymizer.algorithms.records.meanings import Meanings

Spelling: TypeAlias = Mapping[str, str | None]
"""By cell of a column: how it is published and compared, None where it is missing."""
_PLAIN = "^[!-~]+( [!-~]+)*$"
_SEPARATED = "^[+-]?[0-9][0-9.]*[,' ]|^[(\\[{]|-$|&|[>)]$|[^0-9] (?i:[a-z])[0-9]{2}[0-9.]*$"
_WORDED = rf"(?i)[0-9] ?(pct|per ?cent|prozent|procent|pour|por)|\b({CURRENCIES})\b|[$]"
_BETWEEN, _JOINED = r"[_/'`\" ]|^=|[.,;:]+$", "([a-z])[-.]"
"""What may be left out or differ within a text, and more than that: then all is looked at."""
_QUANTITY = "^[0-9.,]+[^0-9., -]|^[$]"
_HALF = 0.5


class Fold(BaseModel):
    """What was folded in one column, in one way; it quotes no value but words for a missing one.

    Attributes
    ----------
    how
        In what the writings differ, or the word that says that there is no value.
    n_writings, n_values
        So many writings became so many values; no value: 0.
    n_cells
        Cells that were written otherwise than they are counted and published.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: str
    how: str
    n_writings: int
    n_values: int
    n_cells: int

    def __str__(self) -> str:
        """Return it in words."""
        if not self.n_values:
            return f"{self.column}: {self.n_cells:,} cells say that there is no value: {self.how}"
        return (
            f"{self.column}: {self.n_writings:,} writings count as {self.n_values:,}"
            f" {'value' if self.n_values == 1 else 'values'} ({self.how}; {self.n_cells:,} cells)"
        )


@dataclass(frozen=True, slots=True, repr=False)
class Meant:
    """A column by what it means; `spelling` is None if all cells are already written so."""

    spelling: Spelling | None
    folds: tuple[Fold, ...] = ()

    def of(self, column: pl.Series) -> pl.Series:
        """Return the cells as they are counted and published."""
        return column if self.spelling is None else spelled(column, self.spelling)


def spelled(column: pl.Series, spelling: Spelling) -> pl.Series:
    """Return a column of text or floats in a spelling; cells that it does not know stay."""
    kind = pl.Float64 if column.dtype == pl.Float64 else pl.String
    cells = column.cast(kind)
    old, new = (
        pl.Series(list(each), dtype=pl.String).cast(kind) for each in (spelling, spelling.values())
    )
    return cells.replace_strict(old, new, default=cells).alias(column.name)


def in_spelling(table: TextTable, spelling_of: Mapping[str, Spelling]) -> TextTable:
    """Return a table with some of its columns, if they are text, in a spelling each."""
    there = {name: each for name, each in spelling_of.items() if name in table.frame.columns}
    columns = [
        spelled(table.frame[name], each)
        for name, each in there.items()
        if each and table.frame[name].dtype in (*TEXT, pl.Float64)
    ]
    return TextTable(table.path, table.frame.with_columns(columns))


def meant(
    column: pl.Series,
    *,
    markers: Sequence[str],
    known: Sequence[str] = (),
    counts: pl.Series | None = None,
) -> Meant:
    """Return what a column of text or floats means; any other column means what it holds.

    Parameters
    ----------
    markers, known
        As for `meanings`.
    counts
        How often each cell stands for itself; None: once.
    """
    if column.dtype == pl.Float64:
        return _without_rounding(column, counts)
    if column.dtype not in TEXT:
        return Meant(None)
    cells = pl.DataFrame({"cell": column.cast(pl.String), "n": 1 if counts is None else counts})
    there = cells.group_by("cell").agg(pl.col("n").sum()).sort("cell", nulls_last=True)
    has_null = bool(there["cell"].null_count())
    there = there.drop_nulls()
    is_known = not known or bool(there["cell"].is_in(known).all())
    if is_known and _written_once(there["cell"], markers):
        return Meant(None)
    from anonymizer.algorithms.records.meanings import meanings  # noqa: PLC0415  not for all tables

    values = there["cell"].to_list()
    found = meanings(values, there["n"].to_list(), markers=markers, known=known)
    folds = _folds(column.name, found)
    # Where a missing value is written in one known way, it stays so.
    if found.spelling.count(None) + has_null <= 1:
        found.spelling[:] = [
            value if shown is None and value.strip() in {"", "?", *markers} else shown
            for value, shown in zip(values, found.spelling, strict=True)
        ]
    spelling = dict(zip(values, found.spelling, strict=True))
    changed = {cell: shown for cell, shown in spelling.items() if cell != shown}
    return Meant(changed or None, folds)


def _without_rounding(column: pl.Series, counts: pl.Series | None) -> Meant:
    """Return which floats are one number but for binary rounding, as the most frequent of them."""
    n = pl.lit(1) if counts is None else counts
    cells = column.to_frame("cell").with_columns(n.alias("n")).drop_nulls().drop_nans()
    cell, number = pl.col("cell"), _number_meant(cells["cell"])
    if (number == cells["cell"]).all():
        return Meant(None)
    cells = cells.with_columns(number.alias("number")).group_by("cell", "number").agg(pl.sum("n"))
    cells = cells.filter(pl.len().over("number") > 1).sort("n", "cell")
    if not len(cells):
        return Meant(None)
    cells = cells.with_columns(pl.last("cell").over("number").alias("shown"))
    others = cells.filter(cell != pl.col("shown"))
    fold = Fold(
        column=column.name,
        how="numbers",
        n_writings=len(cells),
        n_values=len(cells) - len(others),
        n_cells=int(others["n"].sum()),
    )
    return Meant({repr(a): repr(b) for a, b in others.select("cell", "shown").rows()}, (fold,))


def _written_once(cells: pl.Series, markers: Sequence[str]) -> bool:
    """Return whether it is plain that distinct cells are distinct values: what takes no time."""
    lower = cells.str.to_lowercase()
    number = cells.cast(pl.Float64, strict=False)
    others, number = lower.filter(number.is_null()), number.drop_nulls()
    n_quantities = cells.str.contains(_QUANTITY).sum()
    in_one_form = cells.str.replace_all("[0-9]", "0").n_unique() == 1 and (
        with_century(in_digits(cells[0])) == cells[0]
    )
    return bool(
        cells.str.contains(_PLAIN).all()
        and lower.str.replace_all(_BETWEEN, "").str.replace_all(_JOINED, "$1").n_unique()
        == len(cells)
        and others.str.replace_all(r"[\W_]+", "").n_unique() == len(others)
        and not cells.is_in([*markers, "?"]).any()
        and not _bare(others).is_in(_bare(pl.Series(markers, dtype=pl.String)).implode()).any()
        and not cells.str.contains(ERROR).any()
        and not lower.is_in(TRUTH - {"0", "1", "0.0", "1.0"}).any()
        and (
            in_one_form
            or not (
                _number_meant(number).n_unique() < len(number)
                or cells.str.contains(_SEPARATED).any()
                or cells.str.contains(_WORDED).any()
                or 0 < n_quantities > _HALF * len(cells) - len(number)
                or cells.str.contains(TIME_WITHIN).any()
            )
        )
    )


def _number_meant(number: pl.Series) -> pl.Series:
    """Return floats without binary rounding, as `without_rounding` does."""
    whole, short = number == number.round(), number.cast(pl.Float32)
    meant = number.zip_with(whole, number.round_sig_figs(KEPT_DIGITS))
    where = (~whole & (short.cast(pl.Float64) == number)).arg_true()
    return meant.scatter(where, short.gather(where).cast(pl.String).cast(pl.Float64))


def _bare(words: pl.Series) -> pl.Series:
    return words.str.to_lowercase().str.replace_all(r"[\W_]+", " ").str.strip_chars()


def _folds(column: str, found: "Meanings") -> tuple[Fold, ...]:
    folded = [
        Fold(column=column, how=how, n_writings=writings, n_values=values, n_cells=cells)
        for how, (writings, values, cells) in found.folded.items()
    ]
    if found.no_value:
        words, n = ", ".join(sorted(found.no_value)), sum(found.no_value.values())
        n_words = len(found.no_value)
        folded.append(Fold(column=column, how=words, n_writings=n_words, n_values=0, n_cells=n))
    return tuple(folded)
