"""Keys of the persons of a column (`person_key`), and what they join."""

from collections.abc import Iterable, Sequence
from string import punctuation

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonymizer.domain.arrays import BoolArray
from anonymizer.domain.identifier_writings import (
    ANY,
    LONG_ADDRESS,
    WRITINGS,
    in_full,
    letters_of,
    spelled_out,
)
from anonymizer.domain.person_key import (
    ADDRESS,
    AROUND,
    DECIMALS,
    GROUPED,
    MIXED_CASE,
    NO_DECIMALS,
    NUMBER,
    PADDED,
    SIGNS,
    person_key,
)
from anonymizer.files.coded_columns import TEXT, is_missing
from anonymizer.files.meanings import Fold

SEPARATORS = "writings of identifiers"
"""How writings differ that have one key."""
_ALL_SIGNS = f" {punctuation}"
_HALF = 0.5
_NOT_ASCII = "[^ -~]"
_MAY_BE_A_NUMBER = rf"^[{AROUND}]*[-+.,0-9]+[{AROUND}]*$"
_FIRST = 100
_SIGN = "[^0-9A-Za-z]|^0[xX]"
_UMLAUT = "(?i)[\u00e4\u00f6\u00fc\u00f8\u00e5\u00e6]"


def with_person_keys(
    ids: pl.Series, markers: Sequence[str], *, counts: pl.Series | None = None
) -> tuple[pl.Series, tuple[Fold, ...]]:
    """Return a column of identifiers, each in one writing, by key, and what that joined.

    `counts`: how often each stands for itself; None: once. Words for a missing value (`markers`)
    stay, and nobody becomes one. What is joined is counted by 64-bit hashes, keys are texts. O(n).
    """
    cells = ids.cast(pl.String)
    if ids.dtype not in TEXT or not cells.str.contains(_SIGN).any():
        return ids, ()
    key = _keys(cells)
    if alias := umlauts_of(cells.filter(cells.str.contains(_UMLAUT)).unique().to_list()):
        key = key.replace(alias)
    stay = (
        is_missing(cells, markers) | is_missing(key, markers) | (key.fill_null("") == "").to_numpy()
    )
    if stay.any():
        key = key.zip_with(~pl.Series(stay), cells)
    key = key.alias(ids.name)
    fold = _joined(cells, key, counts)
    return key, () if fold is None else (fold,)


def umlauts_of(ids: Iterable[str]) -> dict[str, str]:
    """Return the keys of identifiers with umlauts, by the keys of what spells these out."""
    return {person_key(out): person_key(each.lower()) for each, out in spelled_out(ids).items()}


def _joined(cells: pl.Series, key: pl.Series, counts: pl.Series | None) -> Fold | None:
    """Return which writings have one key, None if each has its own."""
    n = pl.lit(1) if counts is None else counts
    there = pl.DataFrame({"cell": cells.hash(), "key": key.hash()}).with_columns(n.alias("len"))
    there = there.filter(cells.is_not_null())
    seats = _may_be_joined(there["cell"].to_numpy(), there["key"].to_numpy())
    written = there.filter(pl.Series(seats)).group_by("cell").agg(pl.first("key"), pl.sum("len"))
    found = written.group_by("key").agg(
        pl.len().alias("writings"), (pl.col("len").sum() - pl.col("len").max()).alias("others")
    )
    found = found.filter(pl.col("writings") > 1)
    if not len(found):
        return None
    n_writings = int(found["writings"].sum())
    return Fold(
        column=cells.name,
        how=SEPARATORS,
        n_writings=n_writings,
        n_values=len(found),
        n_cells=int(found["others"].sum()),
    )


def _may_be_joined(cell: NDArray[np.uint64], key: NDArray[np.uint64]) -> BoolArray:
    """Return which rows have the key of another cell, and a few more: all whose keys share a seat.

    Two looks at a table of seats take a quarter of the time of a group of each key.
    """
    n_seats = 2 ** (2 * len(key)).bit_length()
    seat = (key & np.uint64(n_seats - 1)).astype(np.int64)
    seen, is_shared = np.zeros(n_seats, np.uint64), np.zeros(n_seats, bool)
    seen[seat] = cell
    is_shared[seat[seen[seat] != cell]] = True
    return np.asarray(is_shared[seat])


def n_alike(folds: Iterable[Fold]) -> int:
    """Return how many identifiers count as another that differs in its writing alone."""
    return sum(each.n_writings - each.n_values for each in folds if each.how == SEPARATORS)


def _keys(cells: pl.Series) -> pl.Series:
    """As `person_key`, of a column in any form."""
    lower = with_one_writing(cells if _are_tokens(cells) else cells.str.to_lowercase())
    where = lower.str.contains(_NOT_ASCII).arg_true()
    if len(where):
        # Letters of other scripts are few.
        lower = lower.scatter(where, [letters_of(cell) for cell in lower.gather(where)])
    key = _without_signs(lower)
    where = lower.str.contains(_MAY_BE_A_NUMBER).arg_true()
    if len(where):
        key = key.scatter(where, _as_written(lower.gather(where), key.gather(where)))
    where = key.str.starts_with("0").arg_true()
    return key.scatter(where, key.gather(where).str.replace(PADDED, "$1")) if len(where) else key


def _without_signs(cells: pl.Series) -> pl.Series:
    """Return cells without `SIGNS`: those of the first ones by themselves, a pattern is slower."""
    first = "".join(cells.head(_FIRST).drop_nulls())
    for sign in sorted({*_ALL_SIGNS}.intersection(first)):
        cells = cells.str.replace_all(sign, "", literal=True)
    where = cells.str.contains(SIGNS).arg_true()
    if not len(where):
        return cells
    return cells.scatter(where, cells.gather(where).str.replace_all(SIGNS, ""))


def _as_written(cells: pl.Series, key: pl.Series) -> pl.Series:
    """Return the keys of cells of which some are numbers or addresses, whose signs matter."""
    cells = cells.str.strip_chars(AROUND)
    key = cells.zip_with(cells.str.contains(ADDRESS).fill_null(value=False), key)
    where = cells.str.contains(NUMBER).arg_true()
    return key.scatter(where, _numbers(cells.gather(where))) if len(where) else key


def _numbers(cells: pl.Series) -> pl.Series:
    where = cells.str.contains(",", literal=True).arg_true()
    if len(where):
        some = cells.gather(where)
        whole = some.str.replace_all(",", "", literal=True)
        some = whole.zip_with(some.str.contains(GROUPED), some.str.replace(",", "."))
        cells = cells.scatter(where, some)
    cells = cells.str.strip_prefix("+")
    where = (cells.str.ends_with("0") & cells.str.contains(".", literal=True)).arg_true()
    if not len(where):
        return cells
    some = cells.gather(where).str.replace(DECIMALS, "$1").str.replace(NO_DECIMALS, "$1")
    return cells.scatter(where, some)


def _are_tokens(cells: pl.Series) -> bool:
    """Return whether the case of most identifiers matters, as that of short links does."""
    n_least = _HALF * len(cells)
    is_mixed = cells.str.contains(MIXED_CASE)
    return is_mixed.sum() > n_least and (is_mixed & cells.str.contains("[0-9]")).sum() > n_least


def with_one_writing(cells: pl.Series) -> pl.Series:
    """Return a column of identifiers in plain writing, as `one_writing` each."""
    where = cells.str.contains(ANY).arg_true()
    if not len(where):
        return cells
    some = cells.gather(where)
    for form, put in WRITINGS:
        some = some.str.replace(form, put)
    long = some.str.contains(LONG_ADDRESS).arg_true()
    if len(long):
        some = some.scatter(long, [in_full(each) for each in some.gather(long)])
    return cells.scatter(where, some)
