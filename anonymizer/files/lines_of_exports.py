"""Lines that an export adds to a table: counts, pages, filters, dates and notes, in any language.

Known by evidence, not by words. Such a line states one text alone, and no row that says more states
one like it; or a text where others have numbers, and a number where others have texts. Who states
one value of the kind that others state is a person of whom no more is known.
"""

from collections.abc import Mapping

import polars as pl

_MOSTLY = 0.9
"""Share of the other rows from which they say more than one thing."""
_FEW = 10
"""Of fewer words nothing is known."""
_BOUND = (
    r"^(?:under|over|below|above|up to|less|more|at least|at most|unter|\x{fc}ber|bis|ab|moins|"
    r"plus|menos|m\x{e1}s|meno|pi\x{f9}|onder|boven)\b.{0,12}\d+$"
)
"""A number that is known by its bounds."""
_PARTS = r"[/:]|\d-\d+-\d"
"""Of dates, times and pages, which other numbers lack."""


def stated_alone(
    frame: pl.DataFrame, missing: Mapping[str, list[str] | None]
) -> dict[str, pl.DataFrame]:
    """Return by column the cells of rows that state nothing else, `cell`, and how many, `alone`.

    `missing`: by column of which a person states one at least, the texts that state nothing; None:
    the column holds no text. O(n), without a look at texts where all rows state several.
    """
    lacks = {name: _lacks(frame[name], words) for name, words in missing.items()}
    if sum(bool(each.any()) for each in lacks.values()) < len(lacks) - 1 or len(lacks) < 2:
        return {}
    n_lacking = pl.DataFrame(list(lacks.values())).sum_horizontal()
    rows = (n_lacking == len(lacks) - 1).arg_true()
    return {
        name: frame[name]
        .gather(rows)
        .filter(~lacks[name].gather(rows))
        .cast(pl.String)
        .alias("cell")
        .value_counts(name="alone")
        for name, words in missing.items()
        if words is not None
    }


def lines_among(there: pl.DataFrame, alone: pl.DataFrame, is_number: pl.Expr) -> list[str]:
    """Return the cells of a column that are lines of an export where nothing else is stated.

    Parameters
    ----------
    there
        The distinct cells that state something, `cell`, and how often each is there, `n`.
    alone
        As of `stated_alone`.
    is_number
        Which cells look like numbers, dates or times.
    """
    if not len(alone):
        return []
    lower = pl.col("cell").str.to_lowercase().str.strip_chars()
    found = there.join(alone, on="cell", how="left").with_columns(
        pl.col("alone").fill_null(0),
        form=lower.str.replace_all(r"\d+", "0"),
        is_bound=lower.str.contains(_BOUND),
        is_number=is_number & ~pl.col("cell").str.contains(_PARTS),
    )
    fuller = pl.col("n").sum().over("form") - pl.col("alone").sum().over("form")
    found = found.with_columns(like_others=fuller > 0)
    others = found.filter("like_others")
    # Where many state one thing alone, the table has no more of anybody.
    if not len(others) or int(others["alone"].sum()) > (1 - _MOSTLY) * int(others["n"].sum()):
        return []
    words = others.filter(~is_number)
    n_words = int(words["n"].sum())
    if 2 * n_words > int(others["n"].sum()) and n_words < max(_FEW, 2 * len(words)):
        return []  # where each has a word of its own, another one tells nothing
    known = pl.any_horizontal("like_others", "is_bound", "is_number")
    return found.filter(~known, pl.col("alone") > 0)["cell"].to_list()


def _lacks(column: pl.Series, words: list[str] | None) -> pl.Series:
    missing = column.is_null()
    if column.dtype.is_float():
        return missing | column.is_nan().fill_null(value=False)
    if not words:
        return missing
    return missing | column.cast(pl.String).is_in(words).fill_null(value=False)
