"""Persons told of in sentences: telephone numbers, e-mail addresses and names behind titles.

A column of notes tells of somebody in a few rows, so that no majority shows it. Within a sentence
only what is hardly anything else counts: an international number or one behind a word for it, an
address with `@`, and a capitalized name behind a title.
"""

import polars as pl

_TITLES = (
    r"Mrs?|Ms|Miss|Dr|Prof|Herrn?|Frau|Mme|Mlle|Madame|Monsieur|Sra?|Se\u{f1}ora?|Signora?|Dhr"
    r"|Mevr|Mevrouw|Meneer|Pani?|Fru|Rouva|Senhora?"
)
_NUMBER = r"\d[\d ()./-]{5,16}\d"
_CALLS = r"tel|telefon\p{Ll}*|phone|mobile|mob|cell|call|handy|t\u{e9}l|m\u{f3}vil|puh"
_FORMS = {
    "e-mail addresses in sentences": r"[^@\s,;:<>()]+@[^@\s,;<>()]+\.\p{L}{2,}",
    "phone numbers in sentences": rf"(?:^|[^\d.,])(?:\+|00)\(?{_NUMBER}"
    rf"|(?i:\b(?:{_CALLS}))\b[^\d\n]{{0,12}}(?:\(?{_NUMBER})",
    "names of people in sentences": rf"(?:^|[^\p{{L}}])(?:{_TITLES})\.? \p{{Lu}}\p{{Ll}}+",
}
_SENTENCE = r"\p{L}+\P{L}+(?:\S+ +)*\p{L}+|\p{L}{2,}[^\p{L}]+\d"
_SOME, _FEW_HAVE_IT = 0.01, 5


def told_of(counted: pl.DataFrame) -> tuple[str, int] | None:
    """Return what sentences in a column of text tell of persons, and in how many cells.

    One cell of a hundred is enough, if no more than a few have the same text. `counted`: the
    different cells of the column, as `cell`, and how often each occurs, as `n`.
    """
    n_there = int(counted["n"].sum())
    there = counted.filter(pl.col("cell").str.contains(_SENTENCE))
    for kind, form in _FORMS.items():
        fits = there.filter(pl.col("cell").str.contains(form))
        n_cells = int(fits["n"].sum())
        if n_cells >= max(_SOME * n_there, 1) and n_cells <= _FEW_HAVE_IT * len(fits):
            return kind, n_cells
    return None
