"""Keys of persons: one for all writings of an identifier, such as `B-AB 100` and `BAB100`.

Blanks, signs and brackets are left out, unless they are of a number or an IP address: `1.5`, `-5`
and `1.1.1.11` stay apart from `15`, `5` and `1.1.11.1`, while `1,000` is `1000`. Identifiers that
differ in these alone (`1-23`, `12-3`) are one person: that can only lower k.
"""

import re
from collections.abc import Iterable, Sequence

import polars as pl

from anonymizer.domain.plain_forms import bare_form, plain_form
from anonymizer.files.coded_columns import TEXT, is_missing
from anonymizer.files.meanings import Fold

SEPARATORS = "blanks and signs"
"""How writings differ that have one key."""
_SIGNS = r"[ -/:-@\[-`{-~]+"
_AROUND = " '\"`=;"
_GROUPED = r"^[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?$"
_NUMBER = rf"{_GROUPED}|^[+-]?[0-9]*[.,]?[0-9]+$"
_DECIMALS = r"^(-?[0-9]*\.[0-9]*[1-9])0+$"
_NO_DECIMALS = r"^(-?[0-9]+)\.0+$"
_ADDRESS = r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$"
_PADDED = r"^0+([0-9]+)$"
_MIXED_CASE = r"[a-z].*[A-Z]"
_HALF = 0.5
_ASCII = "^[ -~]*$"
_SIGN = "[^0-9A-Za-z]"


def person_key(text: str) -> str:
    """Return the key of one identifier in bare form, whose case is folded if it matters not."""
    cell = text.strip(_AROUND)
    if re.search(_NUMBER, cell):
        key = cell.replace(",", "" if re.search(_GROUPED, cell) else ".").removeprefix("+")
        key = re.sub(_NO_DECIMALS, r"\1", re.sub(_DECIMALS, r"\1", key))
    else:
        key = cell if re.search(_ADDRESS, cell) else re.sub(_SIGNS, "", cell)
    return re.sub(_PADDED, r"\1", key) or text


def with_person_keys(
    ids: pl.Series, markers: Sequence[str], *, counts: pl.Series | None = None
) -> tuple[pl.Series, tuple[Fold, ...]]:
    """Return a column of identifiers, each in one writing, by key, and what that joined.

    `counts`: how often each stands for itself; None: once.
    Words for a missing value (`markers`) stay, and nobody becomes one. O(n): 8 s of CPU for
    5,000,000 identifiers with signs of which a fifth are joined, 0.2 s for as many without signs.
    """
    cells = ids.cast(pl.String)
    if ids.dtype not in TEXT or not cells.str.contains(_SIGN).any():
        return ids, ()
    key = _keys(cells)
    stay = (
        is_missing(cells, markers) | is_missing(key, markers) | (key.fill_null("") == "").to_numpy()
    )
    key = key.zip_with(~pl.Series(stay), cells).alias(ids.name)
    n_joined = cells.n_unique() - key.n_unique()
    if not n_joined:
        return key, ()
    rows = pl.DataFrame({"cell": cells, "key": key, "len": 1 if counts is None else counts})
    written = rows.drop_nulls().group_by("key", "cell").agg(pl.col("len").sum())
    found = written.group_by("key").agg(
        pl.len().alias("writings"), (pl.col("len").sum() - pl.col("len").max()).alias("others")
    )
    found = found.filter(pl.col("writings") > 1)
    n_cells, n_writings = int(found["others"].sum()), int(found["writings"].sum())
    fold = Fold(
        column=ids.name,
        how=SEPARATORS,
        n_writings=n_writings,
        n_values=n_writings - n_joined,
        n_cells=n_cells,
    )
    return key, (fold,)


def n_alike(folds: Iterable[Fold]) -> int:
    """Return how many identifiers count as another that differs in blanks and signs alone."""
    return sum(each.n_writings - each.n_values for each in folds if each.how == SEPARATORS)


def _keys(cells: pl.Series) -> pl.Series:
    """As `person_key`, of a column in any form."""
    lower = cells if _are_tokens(cells) else cells.str.to_lowercase()
    where = (~cells.str.contains(_ASCII)).arg_true()
    if len(where):
        # Letters of other scripts are few.
        plain = [bare_form(plain_form(cell).casefold()) for cell in lower.gather(where)]
        lower = lower.scatter(where, plain)
    lower = lower.str.strip_chars(_AROUND)
    key = lower.str.replace_all(_SIGNS, "")
    where = lower.str.contains(_ADDRESS).arg_true()
    key = key.scatter(where, lower.gather(where))
    where = lower.str.contains(_NUMBER).arg_true()
    if len(where):
        key = key.scatter(where, _numbers(lower.gather(where)))
    return key.str.replace(_PADDED, "$1")


def _numbers(cells: pl.Series) -> pl.Series:
    is_grouped = cells.str.contains(_GROUPED)
    plain = cells.str.replace_all(",", "").zip_with(is_grouped, cells.str.replace(",", "."))
    plain = plain.str.strip_prefix("+").str.replace(_DECIMALS, "$1")
    return plain.str.replace(_NO_DECIMALS, "$1")


def _are_tokens(cells: pl.Series) -> bool:
    """Return whether the case of most identifiers matters, as that of short links does."""
    n_tokens = (cells.str.contains("[0-9]") & cells.str.contains(_MIXED_CASE)).sum()
    return n_tokens > _HALF * len(cells)
